// SPDX-License-Identifier: Apache-2.0
// FIFO with one clock. The output holds the oldest word until it is taken.
//
// Latency: 2 cycles from an accepted write to `out_valid`. Throughput: one word per cycle.
// Reset: synchronous; empties the FIFO. The memory is not reset.

`default_nettype none

module fifo #(
    // Width of a word in bits, at least 1.
    parameter int unsigned WIDTH = 8,
    // Words in the memory, a power of two, at least 2. The output register holds one more.
    parameter int unsigned DEPTH = 16
) (
    input  wire             clk,
    input  wire             rst,
    input  wire             in_valid,
    output wire             in_ready,
    input  wire [WIDTH-1:0] in_data,
    output logic            out_valid,
    input  wire             out_ready,
    output wire [WIDTH-1:0] out_data,
    // Words in the memory, without the output register.
    output logic [$clog2(DEPTH):0] used
);
  if (WIDTH < 1) $fatal(1, "fifo: WIDTH must be at least 1");
  if (DEPTH < 2 || (DEPTH & (DEPTH - 1)) != 0) $fatal(1, "fifo: DEPTH must be a power of two, at least 2");

  localparam int unsigned ADDRESS_BITS = $clog2(DEPTH);

  logic [WIDTH-1:0] memory[DEPTH];
  logic [WIDTH-1:0] out_q;
  logic [ADDRESS_BITS-1:0] write_at, read_at;

  wire write = in_valid && in_ready;
  wire read = used != 0 && (!out_valid || out_ready);

  assign in_ready = used != DEPTH[ADDRESS_BITS:0];
  assign out_data = out_q;

  always_ff @(posedge clk) begin
    if (write) memory[write_at] <= in_data;
    if (read) out_q <= memory[read_at];
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      write_at <= '0;
      read_at <= '0;
      used <= '0;
      out_valid <= 1'b0;
    end else begin
      if (write) write_at <= write_at + 1'b1;
      if (read) read_at <= read_at + 1'b1;
      if (write != read) used <= write ? used + 1'b1 : used - 1'b1;
      if (read) out_valid <= 1'b1;
      else if (out_ready) out_valid <= 1'b0;
    end
  end
endmodule

`default_nettype wire
