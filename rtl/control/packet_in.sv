// SPDX-License-Identifier: Apache-2.0
// Engine for packets that go up: puts each frame into a Packet_in. The frame waits in a FIFO until its
// checksum is known. A frame that a Packet_in cannot hold is dropped and counted.
//
// Latency: 9 cycles from a frame's last beat to the first beat of its message. Throughput: one beat per cycle;
// a message has one beat more than its frame, or as many.

`default_nettype none

module packet_in
  import device_pkg::*;
  import pipeline_pkg::*;
  import control_pkg::*;
#(
    // Beats of frames that wait, a power of two, at least 64.
    parameter int unsigned BEATS = 512,
    // Multiplexer cells, as in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                  clk,
    input  wire                  rst,
    input  addresses_t           addresses,
    // Sums of the constant words of the headers; see `control`.
    input  wire  [15:0]          ip_sum,
    input  wire  [15:0]          udp_sum_base,
    // Frames for the control plane (AXI4-Stream).
    input  wire                  in_valid,
    output wire                  in_ready,
    input  wire  [BUS_BITS-1:0]  in_data,
    input  wire  [BUS_BYTES-1:0] in_keep,
    input  wire                  in_last,
    input  egress_t              in_egress,
    // Messages (AXI4-Stream).
    output wire                  out_valid,
    input  wire                  out_ready,
    output wire  [BUS_BITS-1:0]  out_data,
    output wire  [BUS_BYTES-1:0] out_keep,
    output wire                  out_last,
    // One pulse per frame.
    output logic                 sent,
    output logic                 too_long
);
  if (BEATS < 64 || (BEATS & (BEATS - 1)) != 0) $fatal(1, "packet_in: BEATS must be a power of two, at least 64");

  localparam int unsigned FRAME_BEATS_MAX = (PACKET_BYTES_MAX + BUS_BYTES - 1) / BUS_BYTES;
  localparam int unsigned FRAMES = 16;
  localparam int unsigned CARRY_BITS = PACKET_BYTE * 8;
  localparam int unsigned FIRST_BITS = BUS_BITS - CARRY_BITS;

  typedef struct packed {
    logic [15:0] bytes;
    logic [31:0] sum;
    logic [7:0]  port;
    logic [7:0]  ppu;
    logic [7:0]  code;
  } frame_t;

  // Stage A: bytes in order. Beats behind the maximum are not stored. The FIFOs have room for what is between
  // here and them.
  wire [$clog2(BEATS):0] beats_used;
  wire [$clog2(FRAMES):0] frames_used;
  assign in_ready = 32'(beats_used) <= BEATS - 2 && 32'(frames_used) <= FRAMES - 5;
  wire take = in_valid && in_ready;
  logic in_frame;
  logic [7:0] beats;
  logic a_valid, a_first, a_last, a_stored;
  logic [BUS_BITS-1:0] a_data;
  logic [6:0] a_kept;
  egress_t a_egress;
  always_ff @(posedge clk) begin
    a_valid <= take && !rst;
    a_first <= !in_frame;
    a_last <= in_last;
    a_stored <= take && beats < 8'(FRAME_BEATS_MAX);
    a_kept <= 7'(last_byte(in_keep)) + 7'd1;
    a_egress <= in_egress;
    for (int i = 0; i < BUS_BYTES; i++) a_data[BUS_BITS-1-i*8-:8] <= in_keep[i] ? in_data[i*8+:8] : 8'd0;
    if (rst) begin
      in_frame <= 1'b0;
      beats <= '0;
    end else if (take) begin
      in_frame <= !in_last;
      beats <= in_last ? 8'd0 : beats == '1 ? beats : beats + 8'd1;
    end
  end

  wire data_valid, data_ready;
  wire [BUS_BITS-1:0] data;
  fifo #(
      .WIDTH(BUS_BITS),
      .DEPTH(BEATS)
  ) beats_i (
      .clk(clk),
      .rst(rst),
      .in_valid(a_valid && a_stored),
      .in_ready(),
      .in_data(a_data),
      .out_valid(data_valid),
      .out_ready(data_ready),
      .out_data(data),
      .used(beats_used)
  );

  // Stages B and C: sum of the beat. Stage D: sum of the frame.
  wire [20:0] c_sum;
  beat_sum sum_i (
      .clk(clk),
      .data(a_data),
      .sum(c_sum)
  );
  logic b_valid, b_first, b_last, c_valid, c_first, c_last, d_last;
  logic [6:0] b_kept, c_kept;
  egress_t b_egress, c_egress;
  frame_t d_frame;
  wire [15:0] bytes_now = (c_first ? 16'd0 : d_frame.bytes) + 16'(c_kept);
  always_ff @(posedge clk) begin
    b_valid <= a_valid && !rst;
    {b_first, b_last, b_kept, b_egress} <= {a_first, a_last, a_kept, a_egress};
    c_valid <= b_valid && !rst;
    {c_first, c_last, c_kept, c_egress} <= {b_first, b_last, b_kept, b_egress};
    d_last <= c_valid && c_last && !rst;
    if (c_valid) begin
      // Stops above the maximum.
      if (c_first || d_frame.bytes <= 16'(PACKET_BYTES_MAX)) d_frame.bytes <= bytes_now;
      d_frame.sum <= (c_first ? 32'd0 : d_frame.sum) + 32'(c_sum);
      d_frame.port <= c_egress.in_port;
      d_frame.ppu <= c_egress.ppu;
      d_frame.code <= c_egress.port;
    end
  end
  wire frame_valid, frame_ready;
  frame_t frame;
  fifo #(
      .WIDTH($bits(frame_t)),
      .DEPTH(FRAMES)
  ) frames_i (
      .clk(clk),
      .rst(rst),
      .in_valid(d_last),
      .in_ready(),
      .in_data(d_frame),
      .out_valid(frame_valid),
      .out_ready(frame_ready),
      .out_data(frame),
      .used(frames_used)
  );

  // Message: the headers, then the frame moved by their length.
  typedef enum logic [1:0] {
    IDLE,
    SUM,
    SEND,
    DROP
  } state_t;
  state_t state;
  logic [31:0] id;
  logic [15:0] left, sum, message_bytes;
  logic [7:0] beats_left;
  logic [63:0] body;
  logic [CARRY_BITS-1:0] carry;
  logic first;
  wire is_long = frame.bytes > 16'(PACKET_BYTES_MAX);
  wire [BODY_BYTE*8-1:0] header =
      datagram_header(addresses, 8'(MESSAGE_PACKET_IN), id, message_bytes, ip_sum, sum);
  // Bytes of the frame that are not in the carry register exist as long as more bytes are left than it holds.
  wire needs_data = left > 16'(PACKET_BYTE);
  wire [CARRY_BITS-1:0] carried, begins = {header, body};
  for (genvar b = 0; b < CARRY_BITS; b += 8) begin : gen_carried
    mux2 #(.PRIMITIVE(PRIMITIVE)) mux_i (
        .select(first),
        .from({begins[b+:8], carry[b+:8]}),
        .selected(carried[b+:8])
    );
  end
  assign frame_ready = state == IDLE;
  assign out_valid = state == SEND && (!needs_data || data_valid);
  assign out_data = flip({carried, needs_data ? data[BUS_BITS-1-:FIRST_BITS] : FIRST_BITS'(0)});
  assign out_keep = keep_of(left);
  assign out_last = left <= 16'd64;
  wire go = out_valid && out_ready;
  assign data_ready = (go && needs_data) || state == DROP;

  always_ff @(posedge clk) begin
    sent <= !rst && go && out_last;
    too_long <= !rst && state == IDLE && frame_valid && is_long;
    if (rst) begin
      state <= IDLE;
      id <= '0;
    end else begin
      case (state)
        IDLE: begin
          message_bytes <= frame.bytes + 16'(MESSAGE_HEADER_BYTES) + 16'd8;
          left <= frame.bytes + 16'(PACKET_BYTE);
          sum <= fold(frame.sum);
          body <= {frame.port, frame.ppu, frame.code, 40'd0};
          first <= 1'b1;
          beats_left <= 8'(FRAME_BEATS_MAX);
          if (frame_valid) state <= is_long ? DROP : SUM;
        end
        SUM: begin
          sum <= udp_sum(udp_sum_base, 8'(MESSAGE_PACKET_IN), id, message_bytes,
                         32'(sum) + 32'(body[63:48]) + 32'(body[47:32]));
          state <= SEND;
        end
        SEND: begin
          if (go) begin
            first <= 1'b0;
            left <= left - 16'd64;
            if (needs_data) carry <= data[CARRY_BITS-1:0];
            if (out_last) begin
              id <= id + 32'd1;
              state <= IDLE;
            end
          end
        end
        default: begin
          // All stored beats of the long frame.
          if (data_valid) begin
            beats_left <= beats_left - 8'd1;
            if (beats_left == 8'd1) state <= IDLE;
          end
        end
      endcase
    end
  end

  wire _unused = &{1'b0, a_egress.output_kind, a_egress.port, c_egress.output_kind};
endmodule

`default_nettype wire
