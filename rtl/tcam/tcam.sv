// SPDX-License-Identifier: Apache-2.0
// Ternary match on distributed RAM. A chunk of 5 key bits is an address; each data bit belongs to an entry
// and says whether the entry accepts this value of the chunk. An entry matches if all its chunks accept.
//
// Latency: 4 cycles from `key` to `hit` and `index`. Throughput: one search per cycle, also while a row is
// written, because read and write ports of the memory are independent. The entry with the lowest index wins.
// Update: `write` stores one address of one row in all chunks. There are no valid bits: the last chunk has few
// key bits, so few addresses; an entry that must not be hit accepts no value of this chunk. Two banks of the last
// chunk use the address bit above its key bits. So the table writer hides and shows an entry for all keys in the
// same cycle: it writes the bank that is not searched, then changes `bank`.

`default_nettype none

module tcam
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Number of entries, a power of two, 16 to 4096.
    parameter int unsigned ENTRIES = 512,
    // Memory cells, as in `lutram`.
    parameter bit PRIMITIVE = 1'b0,
    localparam int unsigned ROWS = (ENTRIES + ROW_ENTRIES - 1) / ROW_ENTRIES,
    localparam int unsigned ROW_BITS = $clog2(ROWS),
    localparam int unsigned INDEX_BITS = $clog2(ENTRIES)
) (
    input  wire                                 clk,
    input  wire  [KEY_BITS-1:0]                 key,
    // Bank of the last chunk that this search reads.
    input  wire                                 bank,
    output wire                                 hit,
    output logic [INDEX_BITS-1:0]               index,
    // Writes `bits` at `address` of the row, in all chunks or in the last one. Chunk 0 has the least
    // significant key bits.
    input  wire                                 write,
    input  wire                                 write_last,
    input  wire  [ROW_BITS-1:0]                 row,
    input  wire  [CHUNK_BITS-1:0]               address,
    input  wire  [CHUNKS-1:0][ROW_ENTRIES-1:0]  bits,
    // After a reset: `write_last` writes all rows, and no entry is hit.
    input  wire                                 clearing
);
  if (ENTRIES < 16 || ENTRIES > 4096 || (ENTRIES & (ENTRIES - 1)) != 0)
    $fatal(1, "tcam: ENTRIES must be a power of two, 16 to 4096");
  if (LAST_BITS == CHUNK_BITS) $fatal(1, "tcam: the last chunk needs an address bit for the bank");

  localparam int unsigned PADDED = ROWS * ROW_ENTRIES;
  // With memory cells, the first chunks are in cells of seven chunks for two entries; 6 to 12 chunks are left. They
  // are in cells of one chunk for a row: the last chunk must be writable alone.
  localparam int unsigned PAIR_CELLS = PRIMITIVE && CHUNKS > 12 ? (CHUNKS - 6) / 7 : 0;
  localparam int unsigned PAIR_CHUNKS = PAIR_CELLS * 7;

  wire [CHUNKS*CHUNK_BITS-1:0] padded_key = (CHUNKS * CHUNK_BITS)'({bank, key});
  wire [CHUNKS-1:0][CHUNK_BITS-1:0] chunks = padded_key;
  // Accept bits of each entry. Those of entry 1 of a pair are not visible outside of the pair's cells.
  wire [PADDED-1:0][CHUNKS-1:0] accepts;
  wire [ROWS-1:0] writes;
  wire [ENTRIES-1:0] lines_q;

  for (genvar r = 0; r < ROWS; r++) begin : gen_row
    wire here = row == ROW_BITS'(r);
    assign writes[r] = write && here;
    wire last_writes = writes[r] || (write_last && (clearing || here));
    for (genvar c = PAIR_CHUNKS; c < CHUNKS; c++) begin : gen_chunk
      wire [ROW_ENTRIES-1:0] accepted;
      lutram #(
          .WIDTH(ROW_ENTRIES),
          .PRIMITIVE(PRIMITIVE)
      ) memory_i (
          .clk(clk),
          .write(c == CHUNKS - 1 ? last_writes : writes[r]),
          .write_at(address),
          .write_data(bits[c]),
          .read_at(chunks[c]),
          .read_data(accepted)
      );
      for (genvar e = 0; e < ROW_ENTRIES; e++) begin : gen_entry
        assign accepts[r*ROW_ENTRIES+e][c] = accepted[e];
      end
    end
  end

  if (PAIR_CELLS != 0) begin : gen_pairs
    // The accept bits of pair cells take no LUTs: a carry chain combines the bits of entry 1, and a DSP cell
    // the bits of entry 0. Only the chunks in cells of a row take LUTs.
    wire [ENTRIES/2-1:0][PAIR_CHUNKS:0] even;
    for (genvar k = 0; k < PADDED / 2; k++) begin : gen_pair
      if (k < ENTRIES / 2) begin : gen_cells
        localparam int unsigned ROW = k * 2 / ROW_ENTRIES, PLACE = k * 2 % ROW_ENTRIES;
        wire [PAIR_CELLS:0] match;
        assign match[0] = &accepts[2*k+1][CHUNKS-1:PAIR_CHUNKS];
        for (genvar p = 0; p < PAIR_CELLS; p++) begin : gen_cell
          wire [6:0][1:0] pair;
          for (genvar c = 0; c < 7; c++) assign pair[c] = bits[p*7+c][PLACE+:2];
          pair_cell cell_i (
              .clk(clk),
              .write(writes[ROW]),
              .write_at(address),
              .write_data(pair),
              .chunks(chunks[p*7+:7]),
              .accepts(accepts[2*k][p*7+:7]),
              .in_match(match[p]),
              .out_match(match[p+1])
          );
        end
        logic line_q;
        always_ff @(posedge clk) line_q <= match[PAIR_CELLS];
        assign lines_q[2*k+1] = line_q;
        assign even[k] = {&accepts[2*k][CHUNKS-1:PAIR_CHUNKS], accepts[2*k][PAIR_CHUNKS-1:0]};
      end else begin : gen_none
        assign accepts[2*k][PAIR_CHUNKS-1:0] = '0;
      end
      assign accepts[2*k+1][PAIR_CHUNKS-1:0] = '0;
    end
    for (genvar k = 0; k < ENTRIES / 2; k += 2) begin : gen_and
      pair_and #(
          .WIDTH(PAIR_CHUNKS + 1)
      ) and_i (
          .clk(clk),
          .bits(even[k+:2]),
          .all({lines_q[2*k+2], lines_q[2*k]})
      );
    end
  end else begin : gen_entries
    for (genvar e = 0; e < ENTRIES; e++) begin : gen_line
      logic line_q;
      always_ff @(posedge clk) line_q <= &accepts[e];
      assign lines_q[e] = line_q;
    end
  end

  // The last row has places without an entry.
  wire _unused = &{1'b0, accepts};

  wire found;
  assign hit = found && !clearing;
  priority_encoder #(
      .LINES(ENTRIES)
  ) encoder_i (
      .clk(clk),
      .lines(lines_q),
      .hit(found),
      .index(index)
  );
endmodule

`default_nettype wire
