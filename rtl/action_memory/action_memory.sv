// SPDX-License-Identifier: Apache-2.0
// Action words by entry.
//
// Latency: 2 cycles. Throughput: one read and one write per cycle. A read at the address of a simultaneous
// write returns the old word.

`default_nettype none

module action_memory
  import device_pkg::*;
#(
    // Number of entries, a power of two.
    parameter int unsigned ENTRIES = 512
) (
    input  wire                        clk,
    input  wire  [$clog2(ENTRIES)-1:0] read_at,
    output action_t                    read_data,
    input  wire                        write,
    input  wire  [$clog2(ENTRIES)-1:0] write_at,
    input  action_t                    write_data
);
  logic [ACTION_BITS-1:0] memory[ENTRIES];
  logic [ACTION_BITS-1:0] word_q;

  always_ff @(posedge clk) begin
    if (write) memory[write_at] <= write_data;
    word_q <= memory[read_at];
    read_data <= word_q;
  end
endmodule

`default_nettype wire
