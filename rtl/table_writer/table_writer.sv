// SPDX-License-Identifier: Apache-2.0
// Executes commands on all PPUs, one at a time, in order. Holds a shadow copy of all entries, because a TCAM
// cell writes 14 entries together, and to answer reads.
//
// Writing an entry takes 57 cycles: reads the 14 entries of the row, hides the entry (4 cycles), writes the row's
// 32 addresses and the action, shows the entry (4 cycles). Removing an entry takes 25 cycles: it is hidden. The
// other entries of the row are rewritten with the same bits, and searches go on meanwhile. The other commands
// take 2 or 3 cycles. After a reset, no command is accepted for PPUS x ENTRIES cycles, in which the shadow copy
// is cleared and all entries are hidden.
//
// An entry is hidden, and shown, for all keys in the same cycle. The last chunk has two banks, and searches read
// the bank that `bank` selects. The writer writes the other bank at all its addresses, then `bank` changes.

`default_nettype none

module table_writer
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Number of PPUs, 1 to 255.
    parameter int unsigned PPUS = 4,
    // Entries of each PPU, a power of two, 16 to 4096.
    parameter int unsigned ENTRIES = 512,
    localparam int unsigned ROW_BITS = $clog2((ENTRIES + ROW_ENTRIES - 1) / ROW_ENTRIES),
    localparam int unsigned INDEX_BITS = $clog2(ENTRIES)
) (
    input  wire                                 clk,
    input  wire                                 rst,
    input  wire                                 command_valid,
    output wire                                 command_ready,
    input  command_t                            command,
    // One pulse when the command has been executed, or refused because PPU or index do not exist.
    output logic                                done,
    output logic                                refused,
    // Reads an entry of the shadow copy. Accepted between two commands; commands have precedence.
    input  wire                                 read_valid,
    output wire                                 read_ready,
    input  wire  [7:0]                          read_ppu,
    input  wire  [15:0]                         read_index,
    output logic                                reply_valid,
    output logic                                reply_exists,
    output logic [KEY_BITS-1:0]                 reply_value,
    output logic [KEY_BITS-1:0]                 reply_mask,
    output action_t                             reply_action,
    // To the PPUs; bit p of a select concerns PPU p.
    output logic [PPUS-1:0]                     select,
    output key_slice_t [KEY_SLICES-1:0]         slices,
    output logic [PPUS-1:0]                     write,
    output logic [PPUS-1:0]                     write_last,
    output logic [ROW_BITS-1:0]                 row,
    output logic [CHUNK_BITS-1:0]               address,
    output logic [CHUNKS-1:0][ROW_ENTRIES-1:0]  bits,
    output logic [PPUS-1:0]                     bank,
    output logic                                clearing,
    output logic [PPUS-1:0]                     act,
    output logic [INDEX_BITS-1:0]               index,
    output action_t                             action
);
  if (PPUS < 1 || PPUS > 255) $fatal(1, "table_writer: PPUS must be 1 to 255");
  if (ENTRIES < 16 || ENTRIES > 4096 || (ENTRIES & (ENTRIES - 1)) != 0)
    $fatal(1, "table_writer: ENTRIES must be a power of two, 16 to 4096");
  if (PPUS * ENTRIES < 2 << LAST_BITS)
    $fatal(1, "table_writer: PPUS x ENTRIES cycles must reach all addresses of the last chunk");

  localparam int unsigned AT_BITS = $clog2(PPUS * ENTRIES) + 1;
  localparam int unsigned PADDED_BITS = CHUNKS * CHUNK_BITS;
  localparam logic [4:0] LOAD_LAST = 5'(ROW_ENTRIES + 1);

  typedef enum logic [2:0] {
    CLEAR,
    IDLE,
    START,
    LOAD,
    HIDE,
    BITS,
    SHOW,
    READ
  } state_t;
  state_t state;
  logic [4:0] step;
  logic [AT_BITS-1:0] clear_at;
  command_t held;

  assign command_ready = state == IDLE;
  assign read_ready = state == IDLE && !command_valid;

  // Place in the shadow copy.
  wire [15:0] ppu_base = 16'(held.ppu) * 16'(ENTRIES);
  wire [AT_BITS-1:0] at = AT_BITS'(ppu_base + held.index);
  wire ppu_exists = held.ppu < 8'(PPUS);
  wire exists = ppu_exists && 32'(held.index) < ENTRIES;
  // Division by ROW_ENTRIES; with 14, exact for dividends up to 5,461.
  localparam int unsigned RECIPROCAL = (65536 + ROW_ENTRIES - 1) / ROW_ENTRIES;
  wire [31:0] scaled = 32'(held.index) * RECIPROCAL;
  wire [15:0] row_now = scaled[31:16];
  wire [15:0] row_first = row_now * 16'(ROW_ENTRIES);

  // Shadow copy: key, action, and whether the entry exists.
  logic [2*KEY_BITS-1:0] keys[PPUS*ENTRIES];
  logic [ACTION_BITS-1:0] actions[PPUS*ENTRIES];
  logic present[PPUS*ENTRIES];
  logic [2*KEY_BITS-1:0] key_q;
  logic [ACTION_BITS-1:0] action_q;
  logic present_q;
  wire starts = state == START && exists;
  wire write_key = starts && held.code == 2'(COMMAND_WRITE);
  wire write_action = starts && (held.code == 2'(COMMAND_WRITE) || held.code == 2'(COMMAND_ACT));
  wire write_present = state == CLEAR
      || (starts && (held.code == 2'(COMMAND_WRITE) || held.code == 2'(COMMAND_REMOVE)));
  wire [AT_BITS-1:0] present_at = state == CLEAR ? clear_at : at;
  // Places behind the last entry of a PPU have no match lines, so their keys do not matter.
  wire [AT_BITS-1:0] load_at = AT_BITS'(ppu_base + row_first + 16'(step));
  wire in_range = 32'(load_at) < PPUS * ENTRIES;
  wire [AT_BITS-1:0] read_at = state == LOAD ? (in_range ? load_at : '0) : at;
  localparam int unsigned PLACE_BITS = AT_BITS - 1;
  always_ff @(posedge clk) begin
    if (write_key) keys[at[PLACE_BITS-1:0]] <= {held.value, held.mask};
    key_q <= keys[read_at[PLACE_BITS-1:0]];
    if (write_action) actions[at[PLACE_BITS-1:0]] <= held.action;
    action_q <= actions[read_at[PLACE_BITS-1:0]];
    if (write_present) present[present_at[PLACE_BITS-1:0]] <= state != CLEAR && held.code == 2'(COMMAND_WRITE);
    present_q <= present[read_at[PLACE_BITS-1:0]];
  end

  // The 14 keys of the row, shifted in from the last place, so that entry 0 ends at place 0.
  logic [ROW_ENTRIES-1:0][PADDED_BITS-1:0] values, masks;
  // Those that do not exist, and the one that is written, are hidden.
  logic [ROW_ENTRIES-1:0] exist, hidden;
  logic [PPUS-1:0] banks;
  wire [PPUS-1:0] target = PPUS'(1) << held.ppu;
  wire bank_now = |(banks & target);
  // While all addresses are written, the bank that is not searched gets the new entry.
  wire shows = state == SHOW || (state == BITS && step[LAST_BITS] != bank_now);
  always_comb
    for (int e = 0; e < ROW_ENTRIES; e++)
      hidden[e] = !exist[e] || (!shows && 16'(e) == held.index - row_first);
  always_ff @(posedge clk) begin
    if (state == LOAD && step != 0) begin
      exist <= {present_q, exist[ROW_ENTRIES-1:1]};
      values <= {PADDED_BITS'(key_q[2*KEY_BITS-1:KEY_BITS]), values[ROW_ENTRIES-1:1]};
      masks  <= {PADDED_BITS'(key_q[KEY_BITS-1:0]), masks[ROW_ENTRIES-1:1]};
    end
  end

  always_ff @(posedge clk) begin
    for (int c = 0; c < CHUNKS; c++)
      for (int e = 0; e < ROW_ENTRIES; e++)
        bits[c][e] <= ((values[e][c*CHUNK_BITS+:CHUNK_BITS] ^ step) & masks[e][c*CHUNK_BITS+:CHUNK_BITS]) == 0
            && !(c == CHUNKS - 1 && (hidden[e] || state == CLEAR));
    address <= step[CHUNK_BITS-1:0];
    if (state == CLEAR) address <= CHUNK_BITS'(clear_at[LAST_BITS:0]);
    // The bank that is not searched.
    if (state == HIDE || state == SHOW) address <= CHUNK_BITS'({!bank_now, step[LAST_BITS-1:0]});
    row <= row_now[ROW_BITS-1:0];
    slices <= held.slices;
    index <= held.index[INDEX_BITS-1:0];
    action <= held.action;
    clearing <= rst || state == CLEAR;
    reply_exists <= present_q;
    {reply_value, reply_mask} <= key_q;
    reply_action <= action_q;
  end

  always_ff @(posedge clk) begin
    // One cycle later than `banks`, when the last write to the other bank is complete.
    bank <= banks;
    select <= '0;
    write <= '0;
    write_last <= '0;
    act <= '0;
    done <= 1'b0;
    refused <= 1'b0;
    reply_valid <= 1'b0;
    step <= '0;
    if (rst) begin
      state <= CLEAR;
      clear_at <= '0;
      banks <= '0;
    end else begin
      case (state)
        CLEAR: begin
          write_last <= '1;
          clear_at <= clear_at + 1'b1;
          if (32'(clear_at) == PPUS * ENTRIES - 1) state <= IDLE;
        end
        IDLE: begin
          held <= command;
          if (command_valid) state <= START;
          else if (read_valid) begin
            held.ppu <= read_ppu;
            held.index <= read_index;
            state <= READ;
          end
        end
        START: begin
          state <= IDLE;
          if (held.code == 2'(COMMAND_SELECT) ? !ppu_exists : !exists) refused <= 1'b1;
          else begin
            done <= held.code == 2'(COMMAND_SELECT) || held.code == 2'(COMMAND_ACT);
            case (held.code)
              2'(COMMAND_SELECT): select <= target;
              2'(COMMAND_ACT): act <= target;
              default: state <= LOAD;
            endcase
          end
        end
        LOAD: begin
          // Step 0 reads the first key; the last one arrives in step 14.
          step <= step + 1'b1;
          if (step == LOAD_LAST - 1'b1) begin
            step <= '0;
            state <= HIDE;
          end
        end
        HIDE: begin
          write_last <= target;
          step <= step + 1'b1;
          if (&step[LAST_BITS-1:0]) begin
            step <= '0;
            banks <= banks ^ target;
            state <= held.code == 2'(COMMAND_REMOVE) ? SHOW : BITS;
          end
        end
        BITS: begin
          write <= target;
          step <= step + 1'b1;
          if (&step[CHUNK_BITS-1:0]) begin
            step <= '0;
            act <= target;
            banks <= banks ^ target;
            state <= SHOW;
          end
        end
        SHOW: begin
          // The bank has changed. The other bank gets the same bits.
          write_last <= target;
          step <= step + 1'b1;
          if (&step[LAST_BITS-1:0]) begin
            done <= 1'b1;
            state <= IDLE;
          end
        end
        READ: begin
          step <= step + 1'b1;
          if (step == 5'd1) begin
            // A place that does not exist is reported as refused.
            refused <= !exists;
            reply_valid <= exists;
            state <= IDLE;
          end
        end
        default: state <= IDLE;
      endcase
    end
  end

  wire _unused = &{1'b0, scaled, row_now, at, read_at, present_at};
endmodule

`default_nettype wire
