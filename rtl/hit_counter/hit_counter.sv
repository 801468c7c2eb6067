// SPDX-License-Identifier: Apache-2.0
// Counters of the packets that hit each entry of a PPU, in block RAM.
//
// Two banks count the hits of even and of odd cycles, so each bank has two cycles for a hit. Its free cycles
// serve the clearing of an entry and the read port. An entry's count is the sum of both banks.
//
// Throughput: one hit per cycle, and none is lost. `read_packets` follows `read_index` by 5 cycles or fewer,
// and has counted every hit of 6 or more cycles ago.

`default_nettype none

module hit_counter #(
    // Number of entries, a power of two, 16 to 4096.
    parameter int unsigned ENTRIES = 512,
    // Bits of a counter, 8 to 64. 48 bits overflow after 10 days of a hit per cycle at 322 MHz.
    parameter int unsigned COUNT_BITS = 48,
    localparam int unsigned INDEX_BITS = $clog2(ENTRIES)
) (
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   hit_valid,
    input  wire  [INDEX_BITS-1:0] hit_index,
    // Sets the count of an entry to 0, at most once in 4 cycles, and not while the entry is hit.
    input  wire                   clear,
    input  wire  [INDEX_BITS-1:0] clear_index,
    input  wire  [INDEX_BITS-1:0] read_index,
    output logic [63:0]           read_packets
);
  if (ENTRIES < 16 || ENTRIES > 4096 || (ENTRIES & (ENTRIES - 1)) != 0)
    $fatal(1, "hit_counter: ENTRIES must be a power of two, 16 to 4096");
  if (COUNT_BITS < 8 || COUNT_BITS > 64) $fatal(1, "hit_counter: COUNT_BITS must be 8 to 64");

  logic phase;
  wire [1:0][COUNT_BITS-1:0] parts;
  always_ff @(posedge clk) begin
    phase <= rst ? 1'b0 : !phase;
    read_packets <= 64'(parts[0]) + 64'(parts[1]);
  end

  for (genvar b = 0; b < 2; b++) begin : gen_bank
    // In its turn, the bank reads the counter of a hit and writes that of the hit before.
    wire turn = phase == (b == 1);
    logic [COUNT_BITS-1:0] memory[ENTRIES];
    logic [COUNT_BITS-1:0] found, sum, part;
    logic [INDEX_BITS-1:0] hit_at, sum_at, clear_at;
    logic hit, sum_valid, written, clears;
    initial for (int i = 0; i < ENTRIES; i++) memory[i] = '0;

    wire write = turn ? sum_valid : clears;
    wire [INDEX_BITS-1:0] write_at = turn ? sum_at : clear_at;
    always_ff @(posedge clk) begin
      if (write) memory[write_at] <= turn ? sum : '0;
      found <= memory[turn ? hit_index : read_index];
    end

    // The counter that was read is old if it was written in the same cycle.
    wire is_old = written && sum_at == hit_at;
    assign parts[b] = part;
    always_ff @(posedge clk) begin
      if (turn) part <= found;
      if (turn) hit_at <= hit_index;
      if (!turn && hit) begin
        sum <= (is_old ? sum : found) + 1'b1;
        sum_at <= hit_at;
      end
      if (clear) clear_at <= clear_index;
    end
    always_ff @(posedge clk) begin
      if (rst) begin
        hit <= 1'b0;
        sum_valid <= 1'b0;
        written <= 1'b0;
        clears <= 1'b0;
      end else begin
        if (turn) hit <= hit_valid;
        if (turn) written <= sum_valid;
        if (!turn) sum_valid <= hit;
        clears <= clear || (clears && turn);
      end
    end
  end
endmodule

`default_nettype wire
