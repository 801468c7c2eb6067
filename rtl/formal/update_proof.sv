// SPDX-License-Identifier: Apache-2.0
// Proof of `table_writer` with `tcam`: a search sees an entry whole or not at all, and never misses a valid one,
// in every cycle of every command.
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
  localparam logic [2:0] IDLE = 3'd1;

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

  wire write, mark, mark_valid, select, act;
  wire [ROW_BITS-1:0] row;
  wire [CHUNK_BITS-1:0] address;
  wire [CHUNKS-1:0][ROW_ENTRIES-1:0] bits;
  wire [3:0] index;
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
      .row(row),
      .address(address),
      .bits(bits),
      .mark(mark),
      .mark_valid(mark_valid),
      .act(act),
      .index(index),
      .action()
  );
  tcam #(
      .ENTRIES(ENTRIES)
  ) tcam_i (
      .clk(clk),
      .rst(rst),
      .key(key),
      .hit(),
      .index(),
      .write(write),
      .row(row),
      .address(address),
      .bits(bits),
      .mark(mark),
      .mark_index(index),
      .mark_valid(mark_valid)
  );

  // The entry as packets may see it: it disappears and appears by a change of its valid bit.
  logic live;
  logic [KEY_BITS-1:0] value, mask;
  wire marks = mark && index == entry;
  always_ff @(posedge clk) begin
    if (rst) live <= 1'b0;
    else if (marks) begin
      live <= mark_valid;
      value <= writer_i.held.value;
      mask <= writer_i.held.mask;
    end
  end
  wire is_match = ((key ^ value) & mask) == 0;
  // State of the entry when the valid bit of the searches that now end was read.
  logic was_live, was_matching, seen = 1'b0;
  always_ff @(posedge clk) begin
    was_live <= live;
    was_matching <= is_match;
    seen <= started;
  end

  // The invariant. A change of the valid bit may still be on its way to the TCAM.
  wire soon_live = marks ? mark_valid : live;
  wire [KEY_BITS-1:0] soon_value = marks ? writer_i.held.value : value;
  wire [KEY_BITS-1:0] soon_mask = marks ? writer_i.held.mask : mask;
  wire [CHUNKS*CHUNK_BITS-1:0] differs = (CHUNKS * CHUNK_BITS)'((key ^ soon_value) & soon_mask);
  logic invariant;
  always_comb begin
    invariant = !write && tcam_i.valid_q[entry] == live && writer_i.present[entry] == soon_live;
    if (soon_live) begin
      invariant &= writer_i.keys[entry] == {soon_value, soon_mask};
      for (int c = 0; c < CHUNKS; c++)
        invariant &= tcam_i.accepts[entry][c] == (differs[c*CHUNK_BITS+:CHUNK_BITS] == 0);
    end
    if (live) invariant &= (&tcam_i.parts_q[entry]) == is_match;
  end

  always_comb begin
    if (!RESET && !started) begin
      assume (writer_i.state == IDLE);
      assume (invariant);
    end
    if (started && writer_i.state == IDLE) assert (invariant);
    if (started && seen) assert (tcam_i.lines_q[entry] == (was_live && was_matching));
  end

  wire _unused = &{1'b0, select, act};
endmodule

`default_nettype wire
