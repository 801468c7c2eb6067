// SPDX-License-Identifier: Apache-2.0
// Ternary match on distributed RAM with two cycles per search. A memory cell has two pages: its address
// is 4 key bits and the page. Each page holds half of the entries. A search reads page 0 in its first
// cycle and page 1 in its second, so memory cells, AND gates and priority encoder exist for half of the
// entries.
//
// Latency: 5 cycles from the first cycle of `in_valid` to `out_valid`. Throughput: one search in two
// cycles, also during an update, because the read ports of a cell do not depend on its write port. The
// entry with the lowest index wins.
// Update: 17 cycles. A write stores the bits of one address for two neighbouring entries. The first
// write, at address 0, hides the entry (`shown`). 15 writes at the other addresses follow. The last
// write, again at address 0, shows the entry. A removal takes the first write only. A search sees an
// entry whole or not at all, and sees updates in their order.

`default_nettype none

module tcam_paged
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Number of entries, a power of two, 32 to 4096.
    parameter int unsigned ENTRIES = 512,
    // Key bits in an address, and the number of these parts of a key.
    localparam int unsigned PART_BITS = 4,
    localparam int unsigned PARTS = (KEY_BITS + PART_BITS - 1) / PART_BITS,
    localparam int unsigned INDEX_BITS = $clog2(ENTRIES)
) (
    input  wire                        clk,
    // The key must stay until `in_ready`, which is 1 in the second cycle of a search.
    input  wire                        in_valid,
    output wire                        in_ready,
    input  wire  [KEY_BITS-1:0]        key,
    output wire                        out_valid,
    output wire                        hit,
    output logic [INDEX_BITS-1:0]      index,
    // Writes whether entries 2 x `pair` and 2 x `pair` + 1 accept the value `address` of each part of a key.
    // Part 0 has the least significant key bits. At address 0, also writes whether the entries can be hit.
    input  wire                        write,
    input  wire  [INDEX_BITS-2:0]      pair,
    input  wire  [PART_BITS-1:0]       address,
    input  wire  [PARTS-1:0][1:0]      bits,
    input  wire  [1:0]                 shown,
    // After a reset, while all entries are hidden by writes: no search begins, and no entry is hit.
    input  wire                        clearing
);
  if (ENTRIES < 32 || ENTRIES > 4096 || (ENTRIES & (ENTRIES - 1)) != 0)
    $fatal(1, "tcam_paged: ENTRIES must be a power of two, 32 to 4096");
  if (CHUNK_BITS != PART_BITS + 1) $fatal(1, "tcam_paged: CHUNK_BITS must be 5, the address bits of a cell");

  // Entries of a page.
  localparam int unsigned LINES = ENTRIES / 2;
  localparam int unsigned LINE_BITS = INDEX_BITS - 1;
  // Each part takes a place in a cell, and so do the bits `shown`. Places that are left accept each key.
  localparam int unsigned USED = PARTS + 1;
  localparam int unsigned CELLS = (USED + 6) / 7;
  localparam int unsigned PLACES = CELLS * 7;
  // Bits of an AND in a DSP cell. Groups of six accept bits are combined in LUTs until the rest fits.
  localparam int unsigned AND_MAX = 24;
  localparam int unsigned GROUPS = USED > AND_MAX ? (USED - AND_MAX + 4) / 5 : 0;
  localparam int unsigned AND_BITS = USED - GROUPS * 5;

  logic page;
  always_ff @(posedge clk) page <= in_valid && !page && !clearing;
  assign in_ready = page;

  // Address and data of each place of a cell.
  wire [PARTS*PART_BITS-1:0] parts = (PARTS * PART_BITS)'(key);
  wire [PLACES-1:0][CHUNK_BITS-1:0] read_at;
  wire [PLACES-1:0][1:0] written;
  for (genvar c = 0; c < PLACES; c++) begin : gen_place
    if (c < PARTS) begin : gen_part
      assign read_at[c] = {page, parts[c*PART_BITS+:PART_BITS]};
      assign written[c] = bits[c];
    end else begin : gen_other
      assign read_at[c] = {page, PART_BITS'(0)};
      assign written[c] = c == PARTS ? shown : 2'b11;
    end
  end

  // A carry chain combines the accept bits of odd entries, and a DSP cell combines the bits of even entries.
  wire [LINES-1:0] lines_q;
  wire [LINES/2-1:0][AND_BITS-1:0] even;
  for (genvar k = 0; k < LINES / 2; k++) begin : gen_pair
    wire here = write && pair[LINE_BITS-2:0] == (LINE_BITS - 1)'(k);
    wire [CELLS:0] match;
    wire [PLACES-1:0] accepts;
    assign match[0] = 1'b1;
    for (genvar p = 0; p < CELLS; p++) begin : gen_cell
      pair_cell cell_i (
          .clk(clk),
          .write(here),
          .write_at({pair[LINE_BITS-1], address}),
          .write_data(written[p*7+:7]),
          .chunks(read_at[p*7+:7]),
          .accepts(accepts[p*7+:7]),
          .in_match(match[p]),
          .out_match(match[p+1])
      );
    end
    logic line_q;
    always_ff @(posedge clk) line_q <= match[CELLS];
    assign lines_q[2*k+1] = line_q;
    for (genvar g = 0; g < GROUPS; g++) begin : gen_group
      assign even[k][g] = &accepts[g*6+:6];
    end
    assign even[k][AND_BITS-1:GROUPS] = accepts[USED-1:GROUPS*6];
    wire _unused = &{1'b0, accepts};
  end
  for (genvar k = 0; k < LINES / 2; k += 2) begin : gen_and
    pair_and #(
        .WIDTH(AND_BITS)
    ) and_i (
        .clk(clk),
        .bits(even[k+:2]),
        .all({lines_q[2*k+2], lines_q[2*k]})
    );
  end

  // The result of page 0 leaves the encoder one cycle before that of page 1.
  wire found;
  wire [LINE_BITS-1:0] line;
  priority_encoder #(
      .LINES(LINES)
  ) encoder_i (
      .clk(clk),
      .lines(lines_q),
      .hit(found),
      .index(line)
  );
  logic found_q;
  logic [LINE_BITS-1:0] first_q;
  logic [3:0] valid;
  always_ff @(posedge clk) begin
    found_q <= found;
    first_q <= line;
    valid <= clearing ? '0 : {valid[2:0], in_ready};
  end
  assign out_valid = valid[3];
  assign hit = (found_q || found) && !clearing;
  assign index = found_q ? {1'b0, first_q} : {1'b1, line};
endmodule

`default_nettype wire
