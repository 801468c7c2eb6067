// SPDX-License-Identifier: Apache-2.0
// Sum of the 32 words of 16 bits of a beat, for Internet checksums.
//
// Latency: 2 cycles. Throughput: one beat per cycle.

`default_nettype none

module beat_sum
  import pipeline_pkg::*;
(
    input  wire                 clk,
    input  wire  [BUS_BITS-1:0] data,
    output logic [20:0]         sum
);
  logic [7:0][17:0] fours;
  logic [20:0] all;
  always_comb begin
    all = '0;
    for (int i = 0; i < 8; i++) all += 21'(fours[i]);
  end
  always_ff @(posedge clk) begin
    for (int i = 0; i < 8; i++)
      fours[i] <= 18'(data[i*64+:16]) + 18'(data[i*64+16+:16]) + 18'(data[i*64+32+:16]) + 18'(data[i*64+48+:16]);
    sum <= all;
  end
endmodule

`default_nettype wire
