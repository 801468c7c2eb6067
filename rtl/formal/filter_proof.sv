// SPDX-License-Identifier: Apache-2.0
// Proof of `message_filter`: a frame passes if and only if it is one correct message from the daemon to the
// device. Proved by induction for any number of cycles and frames of any length.
//
// The statement below is written from the format of the messages, not from the module: it counts the bytes of a
// frame from its beginning. `beat_sum`, which adds the words of a beat, is not proved; the proof shows which
// bytes it adds, and what follows from the sum.

`default_nettype none

module filter_proof
  import device_pkg::*;
  import pipeline_pkg::*;
  import control_pkg::*;
#(
    // 0: everything, as the induction needs it. For the search of counterexamples: 1: the verdict, given the
    // sums of the beats; 2: the bytes that are added.
    parameter int unsigned PART = 0
) (
    input wire                 clk,
    input addresses_t          chosen_addresses,
    input wire                 in_valid,
    input wire [BUS_BITS-1:0]  in_data,
    input wire [BUS_BYTES-1:0] in_keep,
    input wire                 in_last,
    input wire                 in_bad
);
  logic started = 1'b0;
  always_ff @(posedge clk) started <= 1'b1;
  // Constants that the solver chooses in the first cycle.
  addresses_t addresses_q;
  addresses_t addresses;
  assign addresses = started ? addresses_q : chosen_addresses;
  always_ff @(posedge clk) addresses_q <= addresses;

  wire out_valid, out_last, out_bad, received;
  outcome_t reason;
  message_filter filter_i (
      .clk(clk),
      .rst(!started),
      .addresses(addresses),
      .in_valid(in_valid),
      .in_data(in_data),
      .in_keep(in_keep),
      .in_last(in_last),
      .in_bad(in_bad),
      .out_valid(out_valid),
      .out_data(),
      .out_keep(),
      .out_last(out_last),
      .out_bad(out_bad),
      .received(received),
      .reason(reason)
  );

  // A beat as it arrived, one cycle later.
  logic valid, last, aborted;
  logic [BUS_BITS-1:0] data;
  logic [BUS_BYTES-1:0] keep;
  always_ff @(posedge clk) begin
    valid <= started && in_valid;
    last <= in_last;
    aborted <= in_last && in_bad;
    data <= in_data;
    keep <= in_keep;
  end

  // Byte i of the beat; bytes that do not exist are 0.
  logic [BUS_BYTES-1:0][7:0] byte_of;
  // Number of the beat's bytes, and whether they are the first ones, and all if another beat follows.
  logic [6:0] count;
  logic well_formed;
  always_comb begin
    count = '0;
    well_formed = keep[0];
    for (int i = 0; i < BUS_BYTES; i++) begin
      byte_of[i] = keep[i] ? data[i*8+:8] : 8'd0;
      count += {6'd0, keep[i]};
      if (i > 0 && keep[i] && !keep[i-1]) well_formed = 1'b0;
      if (!keep[i] && !last) well_formed = 1'b0;
    end
  end

  // A field of the first beat.
  function automatic logic [47:0] field(input logic [BUS_BYTES-1:0][7:0] bytes, input int at, input int length);
    field = '0;
    for (int i = 0; i < length; i++) field = {field[39:0], bytes[at+i]};
  endfunction
  localparam int unsigned ETHERNET = 0, IP = 14, UDP = 34, MESSAGE = 42, BODY = 50;
  wire [15:0] ip_bytes = 16'(field(byte_of, IP + 2, 2));
  wire [15:0] udp_bytes = 16'(field(byte_of, UDP + 4, 2));
  wire [15:0] message_bytes = 16'(field(byte_of, MESSAGE + 2, 2));
  wire [7:0] code = byte_of[MESSAGE+1];
  wire [7:0] command = byte_of[BODY];

  // The headers are right, and the lengths fit each other and the type.
  logic to_device, from_daemon, is_message, right_length;
  always_comb begin
    to_device = field(byte_of, ETHERNET, 6) == addresses.device_mac && 16'(field(byte_of, 12, 2)) == 16'h0800
        && byte_of[IP] == 8'h45 && byte_of[IP+9] == 8'd17
        // No fragment: neither "more fragments", nor the reserved bit, nor an offset.
        && !byte_of[IP+6][7] && byte_of[IP+6][5:0] == 0 && byte_of[IP+7] == 0
        && 32'(field(byte_of, IP + 16, 4)) == addresses.device_ip
        && 16'(field(byte_of, UDP + 2, 2)) == addresses.device_port;
    from_daemon = field(byte_of, 6, 6) == addresses.daemon_mac
        && 32'(field(byte_of, IP + 12, 4)) == addresses.daemon_ip
        && 16'(field(byte_of, UDP, 2)) == addresses.daemon_port;
    is_message = byte_of[MESSAGE] == 8'd1 && 16'(field(byte_of, UDP + 6, 2)) != 0
        && 32'(ip_bytes) == 32'(udp_bytes) + 20 && 32'(udp_bytes) == 32'(message_bytes) + 8;
    right_length = 1'b0;
    case (code)
      8'd0: right_length = message_bytes == 12;
      8'd1: right_length = message_bytes >= 8 && message_bytes <= 1552;
      8'd3: right_length = (command == 0 && message_bytes == 28) || (command == 1 && message_bytes == 68)
          || (command == 2 && message_bytes == 12) || (command == 3 && message_bytes == 32);
      8'd5: right_length = message_bytes == 12;
      8'd8: right_length = message_bytes >= 30 && message_bytes <= 1552;
      8'd9: right_length = message_bytes == 8;
      default: right_length = 1'b0;
    endcase
  end
  logic [19:0] ip_sum;
  always_comb begin
    ip_sum = '0;
    for (int i = 9; i >= 0; i--) ip_sum += 20'(field(byte_of, IP + 2 * i, 2));
  end

  // The frame: how many bytes were before this beat, and what its first beat decided.
  logic is_first, is_malformed, headers_q;
  logic [17:0] start, start_q;
  logic [16:0] ends_at, ends_q;
  logic [19:0] ip_sum_q;
  logic [15:0] udp_bytes_q;
  logic too_long, too_long_q;
  // 11 bits are enough for the greatest permitted length.
  logic [10:0] length_q;
  wire [10:0] earlier = is_first ? 11'd0 : length_q;
  wire [11:0] length = 12'(earlier) + 12'(count);
  always_comb begin
    start = is_first ? 18'd0 : start_q;
    // The datagram ends here.
    ends_at = is_first ? 17'(ip_bytes) + 17'(IP) : ends_q;
    too_long = (!is_first && too_long_q) || length > 12'(CONTROL_FRAME_MAX);
  end
  wire headers = to_device && from_daemon && is_message && right_length && !(last && count < 7'(BODY));
  wire malformed_now = !well_formed || aborted || (!is_first && is_malformed);
  always_ff @(posedge clk) begin
    if (!started) is_first <= 1'b1;
    else if (valid) begin
      is_first <= last;
      is_malformed <= malformed_now;
      // Stops behind the greatest length of a datagram.
      start_q <= start[17] ? start : start + 18'd64;
      ends_q <= ends_at;
      too_long_q <= too_long;
      length_q <= length[10:0];
    end
  end

  // The beat's bytes that the UDP checksum covers: from the IPv4 addresses to the end of the datagram.
  logic [BUS_BITS-1:0] covered;
  always_comb
    for (int i = 0; i < BUS_BYTES; i++)
      covered[BUS_BITS-1-i*8-:8] =
          32'(start) + i >= 26 && 32'(start) + i < 32'(ends_at) ? byte_of[i] : 8'd0;

  // The same facts, as the beat goes through the stages of the module.
  logic [BUS_BITS-1:0] covered_b;
  logic [3:0] valid_p, first_p, last_p, bad_p, headers_p, cut_p;
  logic [3:0][19:0] ip_sum_p;
  logic [3:0][15:0] udp_bytes_p;
  logic [31:0] sum;
  // A beat has been in the stage.
  logic [3:0] seen;
  always_ff @(posedge clk) begin
    seen <= started ? seen | {valid_p[2:0], valid} : '0;
    covered_b <= covered;
    valid_p <= started ? {valid_p[2:0], valid} : '0;
    first_p <= {first_p[2:0], is_first};
    last_p <= {last_p[2:0], last};
    bad_p <= {bad_p[2:0], malformed_now || too_long};
    cut_p <= {cut_p[2:0], 32'(start) + 32'(count) < 32'(ends_at)};
    if (valid && is_first) {headers_q, ip_sum_q, udp_bytes_q} <= {headers, ip_sum, udp_bytes};
    headers_p[3:1] <= {headers_p[2:1], headers_q};
    ip_sum_p[3:1] <= {ip_sum_p[2:1], ip_sum_q};
    udp_bytes_p[3:1] <= {udp_bytes_p[2:1], udp_bytes_q};
    // The pseudo header has the protocol and the length, too.
    if (valid_p[2]) sum <= (first_p[2] ? 32'(udp_bytes_p[2]) + 32'd17 : sum) + 32'(filter_i.d_sum);
  end
  assign headers_p[0] = headers_q;
  assign ip_sum_p[0] = ip_sum_q;
  assign udp_bytes_p[0] = udp_bytes_q;
  wire passes = !bad_p[3] && headers_p[3] && !cut_p[3] && fold(32'(ip_sum_p[3])) == 16'hffff && fold(sum) == 16'hffff;
  logic verdict, ends, valid_last;
  always_ff @(posedge clk) begin
    verdict <= passes;
    valid_last <= started && valid_p[3];
    ends <= started && valid_p[3] && last_p[3];
  end

  wire [17:0] rest = 18'(ends_q) > start_q ? 18'(ends_q) - start_q : 18'd0;
  // Stages of the module agree with the facts above.
  `define AGREES(x, i) \
    assert (filter_i.``x``_valid == valid_p[i]); \
    if (valid_p[i]) begin \
      assert (filter_i.``x``_last == last_p[i] && filter_i.``x``_bad == bad_p[i]); \
      assert (filter_i.``x``_truncated == cut_p[i]); \
    end \
    if (valid_p[i] || (i == 0 && !is_first)) begin \
      assert (filter_i.``x``_facts.udp_bytes == udp_bytes_p[i]); \
      assert (headers_p[i] == ({filter_i.``x``_facts.foreign, filter_i.``x``_facts.spoofed, \
          filter_i.``x``_facts.tiny, filter_i.``x``_facts.no_checksum, filter_i.``x``_facts.lengths, \
          filter_i.``x``_facts.version, filter_i.``x``_facts.code, filter_i.``x``_facts.command} == 0)); \
    end
  always_comb begin
    if (started) begin
      // The bytes that are added.
      if (valid_p[0] && PART != 1) assert (filter_i.b_data == covered_b);
    end
    if (started && PART != 2) begin
      // The verdict on each frame, with its last beat.
      assert ((out_valid && out_last) == ends);
      assert (received == ends);
      if (ends) assert (out_bad == !verdict && out_bad == (reason != OUTCOME_NONE));

    end
    if (started && PART == 0) begin
      // State of the module, for the induction. Stage A.
      assert (filter_i.a_valid == valid);
      assert (filter_i.valid_q == {valid_last, valid_p, valid});
      if (valid) begin
        assert (filter_i.a_first == is_first && filter_i.a_last == last && filter_i.a_kept == count);
        assert (filter_i.last_q[0] == last);
        assert (filter_i.a_bad == malformed_now);
        for (int i = 0; i < BUS_BYTES; i++) assert (filter_i.a_data[BUS_BITS-1-i*8-:8] == byte_of[i]);
      end
      assert (filter_i.in_frame == (valid ? !last : !is_first));
      if (filter_i.in_frame) assert (filter_i.malformed_before == (valid ? malformed_now : is_malformed));
      if (!is_first) begin
        assert (18'(filter_i.left) == rest && start_q != 0 && start_q[5:0] == 0);
        assert (filter_i.got <= 17'h0ffff && (filter_i.got > 17'(CONTROL_FRAME_MAX)) == too_long_q);
        if (!too_long_q) assert (17'(length_q) == filter_i.got);
      end
      // Stages B to E.
      if (valid_p[0]) assert (filter_i.b_first == first_p[0]);
      if (valid_p[0] || !is_first) assert (filter_i.b_ip_sum == ip_sum_p[0]);
      if (valid_p[1]) assert (filter_i.c_first == first_p[1] && filter_i.c_ip_bad == (fold(32'(ip_sum_p[1])) != '1));
      if (valid_p[2]) assert (filter_i.d_first == first_p[2] && filter_i.d_ip_bad == (fold(32'(ip_sum_p[2])) != '1));
      if (valid_p[3]) assert (filter_i.e_ip_bad == (fold(32'(ip_sum_p[3])) != '1));
      // The sum of a frame begins with its first beat.
      if (seen[3]) assert (filter_i.e_sum == sum);
      if (!is_first) assert (seen[0]);
      for (int i = 0; i < 4; i++) if (valid_p[i]) assert (seen[i]);
      for (int i = 0; i < 3; i++) if (!seen[i+1]) assert (seen[i] == valid_p[i] && (!seen[i] || first_p[i]));
      for (int i = 0; i < 4; i++) if (valid_p[i]) assert (filter_i.last_q[i+1] == last_p[i]);
      if (valid_last) assert (filter_i.last_q[5] == ends);
      assert (!ends || valid_last);
      `AGREES(b, 0)
      `AGREES(c, 1)
      `AGREES(d, 2)
      `AGREES(e, 3)
    end
  end
endmodule

`default_nettype wire
