// SPDX-License-Identifier: Apache-2.0
// Ingress buffer: stores whole frames, and forwards only good ones. This is the one place where frames are
// dropped for lack of room, so the bus in front of it needs no back-pressure.
//
// Latency: 3 cycles from a frame's last beat to its first output beat. Throughput: one beat per cycle.
// A frame is dropped whole and counted if it is shorter than an Ethernet header (runt), longer than FRAME_MAX,
// aborted by `in_bad` or malformed (bad_frame), or if the buffer is full (no_room). A frame is malformed, too,
// if its first beats came before the end of a reset, or if its beats have different ports because a last beat
// was lost.

`default_nettype none

module frame_buffer
  import pipeline_pkg::*;
#(
    // Beats in the buffer, a power of two, at least 64.
    parameter int unsigned BEATS = 512,
    // Maximum length of a frame without FCS in bytes, 64 to 9216, less than the buffer.
    parameter int unsigned FRAME_MAX = 1518,
    // Whether the source is reset together with this module, so that a frame never goes on after a reset.
    parameter bit SOURCE_RESETS = 1'b0
) (
    input  wire                 clk,
    input  wire                 rst,
    // AXI4-Stream; byte 0 of a beat is `in_data[7:0]`. The sink is always ready.
    input  wire                 in_valid,
    input  wire [BUS_BITS-1:0]  in_data,
    input  wire [BUS_BYTES-1:0] in_keep,
    input  wire                 in_last,
    // With the last beat: the frame is aborted or has a bad FCS.
    input  wire                 in_bad,
    input  wire [7:0]           in_port,
    // Frames; byte 0 of a beat is the most significant. Bytes behind the frame's end are 0.
    output wire                 out_valid,
    input  wire                 out_ready,
    output wire [BUS_BITS-1:0]  out_data,
    output wire                 out_last,
    // Length and ingress port, constant during the frame.
    output wire [15:0]          out_bytes,
    output wire [7:0]           out_port,
    // One pulse per frame: at its end, and one of the drops.
    output logic                received,
    output logic                drop_runt,
    output logic                drop_bad,
    output logic                drop_no_room
);
  if (BEATS < 64 || (BEATS & (BEATS - 1)) != 0)
    $fatal(1, "frame_buffer: BEATS must be a power of two, at least 64");
  if (FRAME_MAX < 64 || FRAME_MAX > 9216 || FRAME_MAX > (BEATS - 1) * BUS_BYTES)
    $fatal(1, "frame_buffer: FRAME_MAX must be 64 to 9216, and less than the buffer");

  localparam int unsigned AT_BITS = $clog2(BEATS);
  localparam logic [15:0] RUNT_BELOW = 16'd14;

  // Stage 1: bytes in beat order, length of the beat.
  logic beat_valid, beat_last, beat_bad;
  logic [BUS_BITS-1:0] beat_data;
  logic [6:0] beat_bytes;
  logic [7:0] beat_port;
  // Only the last beat may be short, its bytes are the first ones, and it is not empty.
  wire contiguous = in_keep[0] && ((in_keep + 1'b1) & in_keep) == 0;
  // A source that is not reset goes on with its frame, so a reset does not change `in_frame`.
  logic in_frame = 1'b0;
  logic is_cut;
  logic [7:0] first_port;
  wire still_in_frame = SOURCE_RESETS && rst ? 1'b0 : in_valid ? !in_last : in_frame;
  always_ff @(posedge clk) begin
    in_frame <= still_in_frame;
    if (in_valid && !in_frame) first_port <= in_port;
    if (rst) is_cut <= still_in_frame;
    else if (in_valid && in_last) is_cut <= 1'b0;
  end
  wire malformed = !contiguous || (!in_last && !in_keep[BUS_BYTES-1]) || is_cut
      || (in_frame && in_port != first_port);
  always_ff @(posedge clk) begin
    beat_valid <= in_valid && !rst;
    beat_last <= in_last;
    beat_bad <= malformed || (in_last && in_bad);
    // Of a malformed beat, the number is not used.
    beat_bytes <= 7'(last_byte(in_keep)) + 7'd1;
    beat_port <= in_port;
    for (int i = 0; i < BUS_BYTES; i++)
      beat_data[(BUS_BYTES-1-i)*8+:8] <= in_keep[i] ? in_data[i*8+:8] : 8'd0;
  end

  // Stage 2: memory. `committed` is the end of the last whole frame.
  logic [BUS_BITS:0] memory[BEATS];
  logic [AT_BITS:0] write_at, committed, read_at;
  logic [15:0] bytes;
  logic bad, full;
  wire no_space = write_at - read_at == BEATS[AT_BITS:0];
  wire [15:0] bytes_now = bytes + {9'b0, beat_bytes};
  wire is_long = bytes_now > FRAME_MAX[15:0];
  // The length stops growing above the maximum, so that it cannot overflow.
  wire bad_now = bad || beat_bad || is_long;
  wire info_ready;
  wire full_now = full || no_space || (beat_last && !info_ready);
  wire store = beat_valid && !bad && !full && !no_space;
  wire good = beat_valid && beat_last && !bad_now && !full_now && bytes_now >= RUNT_BELOW;
  always_ff @(posedge clk) begin
    if (store) memory[write_at[AT_BITS-1:0]] <= {beat_last, beat_data};
  end
  always_ff @(posedge clk) begin
    received <= !rst && beat_valid && beat_last;
    drop_bad <= !rst && beat_valid && beat_last && bad_now;
    drop_runt <= !rst && beat_valid && beat_last && !bad_now && bytes_now < RUNT_BELOW;
    drop_no_room <= !rst && beat_valid && beat_last && !bad_now && bytes_now >= RUNT_BELOW && full_now;
    if (rst) begin
      write_at <= '0;
      committed <= '0;
      bytes <= '0;
      bad <= 1'b0;
      full <= 1'b0;
    end else if (beat_valid) begin
      bytes <= beat_last ? 16'd0 : is_long ? bytes : bytes_now;
      bad <= !beat_last && bad_now;
      full <= !beat_last && full_now;
      if (beat_last && !good) write_at <= committed;
      else if (store) write_at <= write_at + 1'b1;
      if (good) committed <= write_at + 1'b1;
    end
  end

  // Length and port of each whole frame.
  wire info_valid, info_take;
  fifo #(
      .WIDTH(24),
      .DEPTH(BEATS)
  ) info_i (
      .clk(clk),
      .rst(rst),
      .in_valid(good),
      .in_ready(info_ready),
      .in_data({bytes_now, beat_port}),
      .out_valid(info_valid),
      .out_ready(info_take),
      .out_data({out_bytes, out_port}),
      .used()
  );

  // Output register.
  logic [BUS_BITS:0] word_q;
  logic word_valid;
  wire taken = out_valid && out_ready;
  wire read = read_at != committed && (!word_valid || taken);
  assign out_valid = word_valid && info_valid;
  assign {out_last, out_data} = word_q;
  assign info_take = taken && out_last;
  always_ff @(posedge clk) if (read) word_q <= memory[read_at[AT_BITS-1:0]];
  always_ff @(posedge clk) begin
    if (rst) begin
      read_at <= '0;
      word_valid <= 1'b0;
    end else begin
      if (read) read_at <= read_at + 1'b1;
      if (read) word_valid <= 1'b1;
      else if (taken) word_valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
