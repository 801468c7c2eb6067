// SPDX-License-Identifier: Apache-2.0
// FIFO of whole frames for a channel. A frame leaves after its last beat has arrived, so its beats leave
// without gaps. A frame for which there is no room is dropped whole and counted.
//
// Latency: 2 cycles from a frame's last beat to its first output beat. Throughput: one beat per cycle.

`default_nettype none

module frame_fifo
  import pipeline_pkg::*;
#(
    // Beats in the FIFO, a power of two, at least 4.
    parameter int unsigned BEATS = 64,
    // A frame is cut after this number of beats and marked as bad. Less than BEATS; 0: frames are not cut.
    parameter int unsigned CUT_BEATS = 0,
    // Bits of information that travels with a frame, at least 1.
    parameter int unsigned INFO_BITS = 1
) (
    input  wire                  clk,
    input  wire                  rst,
    // Beats of a `beat_counter`; always accepted.
    input  wire                  in_valid,
    input  wire  [BUS_BITS-1:0]  in_data,
    input  wire  [6:0]           in_bytes,
    input  wire                  in_last,
    input  wire                  in_bad,
    input  wire  [INFO_BITS-1:0] in_info,
    // A beat has one byte more than `out_bytes_less_1`.
    output wire                  out_valid,
    input  wire                  out_ready,
    output wire  [BUS_BITS-1:0]  out_data,
    output wire  [5:0]           out_bytes_less_1,
    output wire                  out_last,
    output wire                  out_bad,
    output wire  [INFO_BITS-1:0] out_info,
    // One pulse per frame: stored with this number of bytes, or dropped.
    output logic                 stored,
    output logic [15:0]          stored_bytes,
    output logic                 dropped
);
  if (BEATS < 4 || (BEATS & (BEATS - 1)) != 0) $fatal(1, "frame_fifo: BEATS must be a power of two, at least 4");
  if (CUT_BEATS >= BEATS) $fatal(1, "frame_fifo: CUT_BEATS must be less than BEATS");
  if (INFO_BITS < 1) $fatal(1, "frame_fifo: INFO_BITS must be at least 1");

  localparam int unsigned AT_BITS = $clog2(BEATS);
  localparam int unsigned WORD_BITS = BUS_BITS + 8 + INFO_BITS;

  // Memory. `committed` is the end of the last whole frame. UltraRAM spares block RAM (512 beats) and
  // LUT RAM (64 beats).
  (* ram_style = "ultra" *)
  logic [WORD_BITS-1:0] memory[BEATS];
  logic [AT_BITS:0] write_at, committed, read_at;
  logic full, cut;
  logic [15:0] beats, bytes;
  wire no_space = write_at - read_at == BEATS[AT_BITS:0];
  wire cuts = CUT_BEATS != 0 && beats == 16'(CUT_BEATS) - 16'd1 && !in_last;
  wire ends = in_last || cuts;
  wire store = in_valid && !full && !cut && !no_space;
  wire commit = store && ends;
  wire [5:0] bytes_less_1 = 6'(in_bytes - 7'd1);
  always_ff @(posedge clk)
    if (store) memory[write_at[AT_BITS-1:0]] <= {in_info, in_bad || cuts, ends, bytes_less_1, in_data};
  always_ff @(posedge clk) begin
    stored <= !rst && commit;
    stored_bytes <= bytes + 16'(in_bytes);
    dropped <= !rst && in_valid && in_last && !cut && (full || no_space);
    if (rst) begin
      write_at <= '0;
      committed <= '0;
      full <= 1'b0;
      cut <= 1'b0;
      beats <= '0;
      bytes <= '0;
    end else if (in_valid) begin
      full <= !in_last && (full || (no_space && !cut));
      cut <= !in_last && (cut || commit);
      beats <= in_last ? 16'd0 : beats == '1 ? beats : beats + 16'd1;
      bytes <= in_last ? 16'd0 : bytes + 16'(in_bytes);
      if (commit) committed <= write_at + 1'b1;
      if (in_last && !commit && !cut) write_at <= committed;
      else if (store) write_at <= write_at + 1'b1;
    end
  end

  // Output register.
  logic [WORD_BITS-1:0] word;
  logic word_valid;
  wire read = read_at != committed && (!word_valid || out_ready);
  assign out_valid = word_valid;
  assign {out_info, out_bad, out_last, out_bytes_less_1, out_data} = word;
  always_ff @(posedge clk) if (read) word <= memory[read_at[AT_BITS-1:0]];
  always_ff @(posedge clk) begin
    if (rst) begin
      read_at <= '0;
      word_valid <= 1'b0;
    end else begin
      if (read) read_at <= read_at + 1'b1;
      if (read) word_valid <= 1'b1;
      else if (out_ready) word_valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
