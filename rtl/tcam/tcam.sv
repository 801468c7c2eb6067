// SPDX-License-Identifier: Apache-2.0
// Ternary match on distributed RAM. A chunk of 5 key bits is an address; each data bit belongs to an entry
// and says whether the entry accepts this value of the chunk. An entry matches if all its chunks accept.
//
// Latency: 4 cycles from `key` to `hit` and `index`. Throughput: one search per cycle, also while a row is
// written, because read and write ports of the memory are independent. The entry with the lowest index wins.
// Update: `write` stores one address of one row in all chunks. There are no valid bits: the last chunk has few
// key bits, so few addresses; an entry that must not be hit accepts no value of this chunk. The table writer
// hides an entry by `write_last` before it changes the other chunks.

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

  localparam int unsigned PARTS = (CHUNKS + 5) / 6;
  localparam int unsigned PADDED = ROWS * ROW_ENTRIES;

  wire [CHUNKS*CHUNK_BITS-1:0] padded_key = (CHUNKS * CHUNK_BITS)'(key);
  // Accept bits of the chunks, grouped by 6 for one LUT each. Missing chunks accept.
  wire [PADDED-1:0][PARTS*6-1:0] accepts;
  logic [ENTRIES-1:0] lines_q;

  for (genvar r = 0; r < ROWS; r++) begin : gen_row
    wire writes = write && row == ROW_BITS'(r);
    wire last_writes = writes || (write_last && (clearing || row == ROW_BITS'(r)));
    for (genvar c = 0; c < PARTS * 6; c++) begin : gen_chunk
      if (c < CHUNKS) begin : gen_memory
        wire [ROW_ENTRIES-1:0] accepted;
        lutram #(
            .WIDTH(ROW_ENTRIES),
            .PRIMITIVE(PRIMITIVE)
        ) memory_i (
            .clk(clk),
            .write(c == CHUNKS - 1 ? last_writes : writes),
            .write_at(address),
            .write_data(bits[c]),
            .read_at(padded_key[c*CHUNK_BITS+:CHUNK_BITS]),
            .read_data(accepted)
        );
        for (genvar e = 0; e < ROW_ENTRIES; e++) begin : gen_entry
          assign accepts[r*ROW_ENTRIES+e][c] = accepted[e];
        end
      end else begin : gen_missing
        for (genvar e = 0; e < ROW_ENTRIES; e++) begin : gen_entry
          assign accepts[r*ROW_ENTRIES+e][c] = 1'b1;
        end
      end
    end
  end

  if (PADDED > ENTRIES) begin : gen_unused
    // The last row has places without an entry.
    wire _unused = &{1'b0, accepts[PADDED-1:ENTRIES]};
  end

  // An entry matches if a carry passes all its parts: carry chains take no further LUTs.
  for (genvar e = 0; e < ENTRIES; e++) begin : gen_line
    wire [PARTS-1:0] parts;
    for (genvar p = 0; p < PARTS; p++) begin : gen_part
      assign parts[p] = &accepts[e][p*6+:6];
    end
    wire [PARTS:0] carried = {1'b0, parts} + 1'b1;
    always_ff @(posedge clk) lines_q[e] <= carried[PARTS];
    wire _unused = &{1'b0, carried};
  end

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
