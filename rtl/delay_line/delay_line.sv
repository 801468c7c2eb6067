// SPDX-License-Identifier: Apache-2.0
// Delays a word by a fixed number of cycles.
//
// Latency: CYCLES. Throughput: one word per cycle; there is no stall. The first CYCLES words after the start
// are undefined, so a valid bit must be delayed by registers beside this module.

`default_nettype none

module delay_line #(
    // Width of a word in bits, at least 1.
    parameter int unsigned WIDTH = 8,
    // Delay in cycles, 3 to 33.
    parameter int unsigned CYCLES = 8,
    // Memory cells, as in `lutram`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire              clk,
    input  wire              rst,
    input  wire  [WIDTH-1:0] in_data,
    output logic [WIDTH-1:0] out_data
);
  if (CYCLES < 3 || CYCLES > 33) $fatal(1, "delay_line: CYCLES must be 3 to 33");

  // A word that is written at cycle t is read at cycle t + CYCLES - 1 and is in the output register one later.
  localparam logic [4:0] LAST = 5'(CYCLES - 2);
  logic [4:0] at;
  wire [4:0] next = at == LAST ? 5'd0 : at + 5'd1;
  wire [WIDTH-1:0] oldest;

  always_ff @(posedge clk) begin
    at <= rst ? 5'd0 : next;
    out_data <= oldest;
  end

  // The oldest word is at the place that is overwritten in this cycle.
  lutram #(
      .WIDTH(WIDTH),
      .ONE_ADDRESS(1'b1),
      .PRIMITIVE(PRIMITIVE)
  ) memory_i (
      .clk(clk),
      .write(1'b1),
      .write_at(at),
      .write_data(in_data),
      .read_at(at),
      .read_data(oldest)
  );
endmodule

`default_nettype wire
