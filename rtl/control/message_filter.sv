// SPDX-License-Identifier: Apache-2.0
// Message filter: passes only frames that are one correct message from the daemon to the device. Other frames
// leave marked as bad, so that the buffer behind drops them. Each frame has one reason, in this order of
// precedence: aborted, malformed or too long; foreign; spoofed; shorter than its headers; truncated; checksum;
// lengths; version; type; command. A datagram without a UDP checksum is refused. Padding behind the datagram
// is permitted.
//
// Latency: 6 cycles. Throughput: one beat per cycle.

`default_nettype none

module message_filter
  import device_pkg::*;
  import pipeline_pkg::*;
  import control_pkg::*;
(
    input  wire                  clk,
    input  wire                  rst,
    input  addresses_t           addresses,
    // Frames from the control plane's channel (AXI4-Stream); always accepted.
    input  wire                  in_valid,
    input  wire  [BUS_BITS-1:0]  in_data,
    input  wire  [BUS_BYTES-1:0] in_keep,
    input  wire                  in_last,
    // With the last beat: the frame is aborted or has a bad FCS.
    input  wire                  in_bad,
    // The same frames. `out_bad` with the last beat: the frame must be dropped.
    output wire                  out_valid,
    output wire  [BUS_BITS-1:0]  out_data,
    output wire  [BUS_BYTES-1:0] out_keep,
    output wire                  out_last,
    output wire                  out_bad,
    // One pulse per frame, with the reason of a drop, or OUTCOME_NONE.
    output logic                 received,
    output outcome_t             reason
);
  localparam int unsigned CYCLES = 6;

  // What the first beat decides.
  typedef struct packed {
    logic        foreign;
    logic        spoofed;
    logic        tiny;
    logic        no_checksum;
    logic        lengths;
    logic        version;
    logic        code;
    logic        command;
    logic [15:0] udp_bytes;
  } facts_t;

  // The frame itself waits for the verdict.
  logic [CYCLES-1:0] valid_q, last_q;
  delay_line #(
      .WIDTH(BUS_BITS + BUS_BYTES),
      .CYCLES(CYCLES)
  ) wait_i (
      .clk(clk),
      .rst(rst),
      .in_data({in_keep, in_data}),
      .out_data({out_keep, out_data})
  );
  always_ff @(posedge clk) begin
    valid_q <= rst ? '0 : {valid_q[CYCLES-2:0], in_valid};
    last_q <= {last_q[CYCLES-2:0], in_last};
  end

  // Stage A: bytes in order, bytes that do not exist are 0.
  logic in_frame, malformed_before;
  logic a_valid, a_first, a_last, a_bad;
  logic [BUS_BITS-1:0] a_data;
  logic [6:0] a_kept, kept;
  always_comb begin
    kept = '0;
    for (int i = 0; i < BUS_BYTES; i++) kept += 7'(in_keep[i]);
  end
  wire contiguous = in_keep[0] && ((in_keep + 1'b1) & in_keep) == 0;
  wire malformed = !contiguous || (!in_last && !in_keep[BUS_BYTES-1]);
  always_ff @(posedge clk) begin
    a_valid <= in_valid && !rst;
    a_first <= !in_frame;
    a_last <= in_last;
    a_bad <= malformed || (in_frame && malformed_before) || (in_last && in_bad);
    a_kept <= kept;
    for (int i = 0; i < BUS_BYTES; i++) a_data[BUS_BITS-1-i*8-:8] <= in_keep[i] ? in_data[i*8+:8] : 8'd0;
    if (rst) in_frame <= 1'b0;
    else if (in_valid) in_frame <= !in_last;
    if (in_valid) malformed_before <= malformed || (in_frame && malformed_before);
  end

  // Fields of the first beat.
  wire [111:0] ethernet = a_data[BUS_BITS-1-:112];
  wire [159:0] ip = a_data[BUS_BITS-1-112-:160];
  wire [63:0] udp = a_data[BUS_BITS-1-272-:64];
  wire [63:0] message = a_data[BUS_BITS-1-336-:64];
  wire [7:0] command = a_data[BUS_BITS-1-400-:8];
  wire [15:0] ip_bytes = ip[143:128];
  wire [15:0] udp_bytes = udp[31:16];
  wire [15:0] message_bytes = message[47:32];
  wire [7:0] code = message[55:48];
  logic [15:0] least, most;
  logic known, known_command;
  always_comb begin
    known = 1'b1;
    known_command = 1'b1;
    least = 16'(MESSAGE_HEADER_BYTES);
    most = 16'(MESSAGE_HEADER_BYTES);
    case (code)
      8'(MESSAGE_HELLO), 8'(MESSAGE_FLOW_REQUEST): {least, most} = {16'd12, 16'd12};
      8'(MESSAGE_STATS_REQUEST): {least, most} = {16'd8, 16'd8};
      8'(MESSAGE_ECHO_REQUEST): {least, most} = {16'd8, 16'(MESSAGE_BYTES_MAX)};
      8'(MESSAGE_PACKET_OUT): {least, most} = {16'd30, 16'(MESSAGE_BYTES_MAX)};
      8'(MESSAGE_FLOW_MOD):
      case (command)
        8'(COMMAND_SELECT): {least, most} = {16'd28, 16'd28};
        8'(COMMAND_WRITE): {least, most} = {16'd68, 16'd68};
        8'(COMMAND_REMOVE): {least, most} = {16'd12, 16'd12};
        8'(COMMAND_ACT): {least, most} = {16'd32, 16'd32};
        default: begin
          known_command = 1'b0;
          {least, most} = {16'd12, 16'(MESSAGE_BYTES_MAX)};
        end
      endcase
      default: begin
        known = 1'b0;
        {least, most} = {16'd8, 16'(MESSAGE_BYTES_MAX)};
      end
    endcase
  end
  facts_t facts;
  always_comb begin
    facts = '0;
    facts.foreign = ethernet[111:64] != addresses.device_mac || ethernet[15:0] != 16'h0800 || ip[159:152] != 8'h45
        || (ip[111:96] & 16'hbfff) != 0 || ip[87:80] != 8'd17 || ip[31:0] != addresses.device_ip
        || udp[47:32] != addresses.device_port;
    facts.spoofed = ethernet[63:16] != addresses.daemon_mac || ip[63:32] != addresses.daemon_ip
        || udp[63:48] != addresses.daemon_port;
    facts.tiny = a_last && a_kept < 7'(BODY_BYTE);
    facts.no_checksum = udp[15:0] == 0;
    facts.lengths = 17'(ip_bytes) != 17'(udp_bytes) + 17'd20 || 17'(udp_bytes) != 17'(message_bytes) + 17'd8
        || message_bytes < least || message_bytes > most;
    facts.version = message[63:56] != 8'(MESSAGE_VERSION);
    facts.code = !known;
    facts.command = !known_command;
    facts.udp_bytes = udp_bytes;
  end

  // Stage B: bytes that the UDP checksum covers, with the addresses of the pseudo header; sum of the IP header.
  logic b_valid, b_first, b_last, b_bad, b_truncated;
  logic [BUS_BITS-1:0] b_data;
  logic [19:0] b_ip_sum, ip_sum;
  logic [16:0] left, got;
  facts_t b_facts;
  wire [16:0] left_now = a_first ? 17'(ip_bytes) + 17'd14 : left;
  wire [16:0] got_now = (a_first ? 17'd0 : got) + 17'(a_kept);
  always_comb begin
    ip_sum = '0;
    for (int i = 0; i < 10; i++) ip_sum += 20'(ip[i*16+:16]);
  end
  always_ff @(posedge clk) begin
    b_valid <= a_valid && !rst;
    b_first <= a_first;
    b_last <= a_last;
    for (int i = 0; i < BUS_BYTES; i++)
      b_data[BUS_BITS-1-i*8-:8] <=
          17'(i) < left_now && !(a_first && i < 26) ? a_data[BUS_BITS-1-i*8-:8] : 8'd0;
    b_bad <= a_bad || got_now > 17'(CONTROL_FRAME_MAX);
    b_truncated <= left_now > 17'(a_kept);
    if (a_valid) begin
      left <= left_now > 17'd64 ? left_now - 17'd64 : 17'd0;
      // Stops above the maximum.
      if (got_now <= 17'h0ffff) got <= got_now;
      if (a_first) b_facts <= facts;
      if (a_first) b_ip_sum <= ip_sum;
    end
  end

  // Stages C and D: sum of the beat.
  wire [20:0] d_sum;
  beat_sum sum_i (
      .clk(clk),
      .data(b_data),
      .sum(d_sum)
  );
  logic c_valid, c_first, c_last, c_bad, c_truncated, c_ip_bad;
  logic d_valid, d_first, d_last, d_bad, d_truncated, d_ip_bad;
  facts_t c_facts, d_facts;
  always_ff @(posedge clk) begin
    c_valid <= b_valid && !rst;
    {c_first, c_last, c_bad, c_truncated, c_facts} <= {b_first, b_last, b_bad, b_truncated, b_facts};
    c_ip_bad <= fold(32'(b_ip_sum)) != 16'hffff;
    d_valid <= c_valid && !rst;
    {d_first, d_last, d_bad, d_truncated, d_facts} <= {c_first, c_last, c_bad, c_truncated, c_facts};
    d_ip_bad <= c_ip_bad;
  end

  // Stage E: sum of the datagram.
  logic e_valid, e_last, e_bad, e_truncated, e_ip_bad;
  logic [31:0] e_sum;
  facts_t e_facts;
  always_ff @(posedge clk) begin
    e_valid <= d_valid && !rst;
    {e_last, e_bad, e_truncated, e_ip_bad, e_facts} <= {d_last, d_bad, d_truncated, d_ip_bad, d_facts};
    if (d_valid) e_sum <= (d_first ? 32'(d_facts.udp_bytes) + 32'd17 : e_sum) + 32'(d_sum);
  end

  // Stage F: verdict.
  outcome_t verdict;
  always_comb begin
    if (e_bad) verdict = OUTCOME_BAD_FRAME;
    else if (e_facts.foreign) verdict = OUTCOME_FOREIGN;
    else if (e_facts.spoofed) verdict = OUTCOME_SPOOFED;
    else if (e_facts.tiny) verdict = OUTCOME_BAD_FRAME;
    else if (e_truncated) verdict = OUTCOME_LENGTH;
    else if (e_facts.no_checksum || e_ip_bad || fold(e_sum) != 16'hffff) verdict = OUTCOME_CHECKSUM;
    else if (e_facts.lengths) verdict = OUTCOME_LENGTH;
    else if (e_facts.version) verdict = OUTCOME_VERSION;
    else if (e_facts.code) verdict = OUTCOME_TYPE;
    else if (e_facts.command) verdict = OUTCOME_VALUE;
    else verdict = OUTCOME_NONE;
  end
  always_ff @(posedge clk) begin
    received <= !rst && e_valid && e_last;
    reason <= verdict;
  end

  assign out_valid = valid_q[CYCLES-1];
  assign out_last = last_q[CYCLES-1];
  assign out_bad = reason != OUTCOME_NONE;

  wire _unused = &{1'b0, ip, message, e_facts.udp_bytes};
endmodule

`default_nettype wire
