// SPDX-License-Identifier: Apache-2.0
// Proof of `table_writer` with `tcam`: a search sees an entry whole or not at all, and never misses a valid one,
// in every cycle of every command. The cycle in which an entry appears or disappears does not depend on the key.
//
// The searched key and the observed entry are arbitrary but constant. RESET = 1: the invariant holds when the
// writer becomes idle after a reset. RESET = 0: from any idle state with the invariant, the assertions hold
// during any one command or read, and the invariant holds when the writer is idle again. So they hold always.

`default_nettype none

module update_proof
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    parameter bit RESET = 1'b0
) (
    input wire        clk,
    input wire        command_valid,
    input command_t   command,
    input wire        read_valid,
    input wire [7:0]  read_ppu,
    input wire [15:0] read_index,
    input wire [KEY_BITS-1:0] chosen_key,
    input wire [3:0]  chosen_entry
);
  localparam int unsigned ENTRIES = 16, ROW_BITS = $clog2((ENTRIES + ROW_ENTRIES - 1) / ROW_ENTRIES);
  localparam logic [2:0] IDLE = 3'd1, SHOW = 3'd6;

  logic started = 1'b0;
  always_ff @(posedge clk) started <= 1'b1;
  wire rst = RESET && !started;

  // Constants that the solver chooses in the first cycle. Registers that only keep their value would be removed.
  logic [KEY_BITS-1:0] key_q;
  logic [3:0] entry_q;
  wire [KEY_BITS-1:0] key = started ? key_q : chosen_key;
  wire [3:0] entry = started ? entry_q : chosen_entry;
  always_ff @(posedge clk) begin
    key_q <= key;
    entry_q <= entry;
  end

  wire write, write_last, clearing, select, act;
  wire [ROW_BITS-1:0] row;
  wire [CHUNK_BITS-1:0] address;
  wire [CHUNKS-1:0][ROW_ENTRIES-1:0] bits;
  wire bank;
  wire hit;
  table_writer #(
      .PPUS(1),
      .ENTRIES(ENTRIES)
  ) writer_i (
      .clk(clk),
      .rst(rst),
      // One command or read; the next one starts in an idle state, too.
      .command_valid(command_valid && !RESET && !started),
      .command_ready(),
      .command(command),
      .done(),
      .refused(),
      .read_valid(read_valid && !RESET && !started),
      .read_ready(),
      .read_ppu(read_ppu),
      .read_index(read_index),
      .reply_valid(),
      .reply_exists(),
      .reply_value(),
      .reply_mask(),
      .reply_action(),
      .select(select),
      .slices(),
      .write(write),
      .write_last(write_last),
      .row(row),
      .address(address),
      .bits(bits),
      .bank(bank),
      .clearing(clearing),
      .act(act),
      .index(),
      .action()
  );
  tcam #(
      .ENTRIES(ENTRIES)
  ) tcam_i (
      .clk(clk),
      .key(key),
      .bank(bank),
      .hit(hit),
      .index(),
      .write(write),
      .write_last(write_last),
      .row(row),
      .address(address),
      .bits(bits),
      .clearing(clearing)
  );

  // The entry as packets may see it: it disappears and appears when the bank changes, for all keys.
  wire changes = writer_i.banks != bank && writer_i.held.index == 16'(entry);
  wire appears = changes && writer_i.state == SHOW && writer_i.held.code == 2'(COMMAND_WRITE);
  logic live;
  logic [KEY_BITS-1:0] value, mask;
  wire soon_live = clearing ? 1'b0 : changes ? appears : live;
  wire [KEY_BITS-1:0] soon_value = appears ? writer_i.held.value : value;
  wire [KEY_BITS-1:0] soon_mask = appears ? writer_i.held.mask : mask;
  always_ff @(posedge clk) begin
    live <= soon_live && !rst;
    value <= soon_value;
    mask <= soon_mask;
  end
  wire is_match = ((key ^ value) & mask) == 0;
  // State of the entry when the memory of the searches that now end was read.
  logic was_live, was_matching, was_clearing, seen = 1'b0;
  always_ff @(posedge clk) begin
    was_clearing <= clearing;
    was_live <= live;
    was_matching <= is_match;
    seen <= started;
  end

  // The bits of the entry in both banks of the last chunk. The last write may still be on its way to the TCAM.
  localparam int unsigned LAST = CHUNKS - 1;
  localparam int unsigned ROWS = (ENTRIES + ROW_ENTRIES - 1) / ROW_ENTRIES;
  wire [ROW_BITS-1:0] row_of_entry = ROW_BITS'(32'(entry) / ROW_ENTRIES);
  wire [3:0] place = 4'(32'(entry) % ROW_ENTRIES);
  wire writes = (write || write_last) && (clearing || row == row_of_entry);
  wire [1:0] accepts_last;
  for (genvar b = 0; b < 2; b++) begin : gen_bank
    wire [CHUNK_BITS-1:0] at = CHUNK_BITS'({1'(b), key[KEY_BITS-1-:LAST_BITS]});
    wire [ROWS-1:0][ROW_ENTRIES-1:0] stored;
    for (genvar r = 0; r < ROWS; r++) begin : gen_stored
      assign stored[r] = tcam_i.gen_row[r].gen_chunk[LAST].memory_i.gen_behaviour.memory[at];
    end
    assign accepts_last[b] = writes && address == at ? bits[LAST][place] : stored[row_of_entry][place];
  end

  // The invariant.
  wire [CHUNKS*CHUNK_BITS-1:0] differs = (CHUNKS * CHUNK_BITS)'((key ^ soon_value) & soon_mask);
  logic invariant;
  always_comb begin
    invariant = !write && writer_i.banks == bank && writer_i.present[entry] == soon_live
        && (&tcam_i.accepts[entry]) == (live && is_match)
        && accepts_last == {2{soon_live && differs[LAST*CHUNK_BITS+:CHUNK_BITS] == 0}};
    if (soon_live) begin
      invariant &= writer_i.keys[entry] == {soon_value, soon_mask};
      for (int c = 0; c < LAST; c++)
        invariant &= tcam_i.accepts[entry][c] == (differs[c*CHUNK_BITS+:CHUNK_BITS] == 0);
    end
  end

  always_comb begin
    if (!RESET && !started) begin
      assume (writer_i.state == IDLE);
      assume (!clearing);
      assume (invariant);
    end
    if (started && writer_i.state == IDLE && !clearing) assert (invariant);
    if (started && clearing) assert (!hit);
    if (started && seen && !clearing && !was_clearing) assert (tcam_i.lines_q[entry] == (was_live && was_matching));
  end
  wire _unused = &{1'b0, select, act};
endmodule

`default_nettype wire
