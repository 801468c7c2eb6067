// SPDX-License-Identifier: Apache-2.0
// Finds the number of bytes of each beat, and marks malformed beats, whose number is undefined.
//
// Latency: 1 cycle. Throughput: one beat per cycle.

`default_nettype none

module beat_counter
  import pipeline_pkg::*;
#(
    // Bits of information that travels with a frame, at least 1.
    parameter int unsigned INFO_BITS = 1
) (
    input  wire                  clk,
    input  wire                  rst,
    // AXI4-Stream; always accepted.
    input  wire                  in_valid,
    input  wire  [BUS_BITS-1:0]  in_data,
    input  wire  [BUS_BYTES-1:0] in_keep,
    input  wire                  in_last,
    // With the last beat: the frame is aborted or has a bad FCS.
    input  wire                  in_bad,
    input  wire  [INFO_BITS-1:0] in_info,
    // The same beats with their number of bytes, 1 to 64. A malformed `in_keep` leaves as `out_bad`.
    output logic                 out_valid,
    output logic [BUS_BITS-1:0]  out_data,
    output logic [6:0]           out_bytes,
    output logic                 out_last,
    output logic                 out_bad,
    output logic [INFO_BITS-1:0] out_info
);
  if (INFO_BITS < 1) $fatal(1, "beat_counter: INFO_BITS must be at least 1");

  logic malformed_before;
  wire contiguous = in_keep[0] && ((in_keep + 1'b1) & in_keep) == 0;
  wire malformed = !contiguous || (!in_last && !in_keep[BUS_BYTES-1]);
  always_ff @(posedge clk) begin
    out_last <= in_last;
    out_bad <= malformed || malformed_before || (in_last && in_bad);
    out_data <= in_data;
    out_bytes <= 7'(last_byte(in_keep)) + 7'd1;
    out_info <= in_info;
    out_valid <= in_valid && !rst;
    if (rst) malformed_before <= 1'b0;
    else if (in_valid) malformed_before <= !in_last && (malformed_before || malformed);
  end
endmodule

`default_nettype wire
