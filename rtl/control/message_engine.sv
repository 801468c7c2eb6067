// SPDX-License-Identifier: Apache-2.0
// Engine for messages from the daemon: executes one message after the other, and answers it.
//
// Transaction IDs: the engine remembers the outcome of the last MESSAGE_WINDOW IDs. A Flow_mod that was
// executed is answered again and not executed. A Flow_mod older than one that was executed is refused. See
// crates/device/src/message.rs.
//
// Latency: 3 or 4 cycles from a message's first beat to its command, read or reply. Throughput: one message at
// a time.

`default_nettype none

module message_engine
  import device_pkg::*;
  import pipeline_pkg::*;
  import control_pkg::*;
#(
    // Number of PPUs and entries of each, for Hello.
    parameter int unsigned PPUS = 4,
    parameter int unsigned ENTRIES = 512,
    // Multiplexer cells, as in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                  clk,
    input  wire                  rst,
    input  addresses_t           addresses,
    // Sum of the constant words of the IPv4 header; see `control`.
    input  wire  [15:0]          ip_sum,
    // Frames that the filter passed; byte 0 is the most significant.
    input  wire                  in_valid,
    output wire                  in_ready,
    input  wire  [BUS_BITS-1:0]  in_data,
    input  wire                  in_last,
    // To the table writer.
    output logic                 command_valid,
    input  wire                  command_ready,
    output command_t             command,
    input  wire                  done,
    input  wire                  refused,
    output logic                 read_valid,
    input  wire                  read_ready,
    output wire  [7:0]           read_ppu,
    output wire  [15:0]          read_index,
    input  wire                  reply_valid,
    input  wire                  reply_exists,
    input  wire  [KEY_BITS-1:0]  reply_value,
    input  wire  [KEY_BITS-1:0]  reply_mask,
    input  action_t              reply_action,
    input  wire  [63:0]          reply_packets,
    // To the reply writer.
    output logic                 start_valid,
    input  wire                  start_ready,
    output logic [7:0]           start_code,
    output wire  [31:0]          start_id,
    output wire  [575:0]         start_body,
    output logic [6:0]           start_bytes,
    output logic                 start_counters,
    // Echo replies (AXI4-Stream).
    output wire                  echo_valid,
    input  wire                  echo_ready,
    output wire  [BUS_BITS-1:0]  echo_data,
    output wire  [BUS_BYTES-1:0] echo_keep,
    output wire                  echo_last,
    // Packet_outs (AXI4-Stream); see `nic_shell`.
    output wire                  out_valid,
    input  wire                  out_ready,
    output wire  [BUS_BITS-1:0]  out_data,
    output wire  [BUS_BYTES-1:0] out_keep,
    output wire                  out_last,
    output wire  [7:0]           out_port,
    output wire                  out_direct,
    // One pulse per message.
    output logic                 counted,
    output outcome_t             outcome
);
  localparam int unsigned WINDOW_BITS = $clog2(MESSAGE_WINDOW);
  localparam int unsigned CARRY_BITS = BUS_BITS - PACKET_BYTE * 8;
  localparam int unsigned ECHO_BYTES = BUS_BYTES - BODY_BYTE;

  typedef enum logic [3:0] {
    FIRST,
    SECOND,
    DECODE,
    JUDGE,
    COMMAND,
    DONE,
    READ,
    REPLY_READ,
    REPLY,
    ECHO,
    PACKET,
    DRAIN
  } state_t;
  state_t state;

  // The message's first two beats.
  logic [BUS_BITS-1:0] head, tail;
  logic ended;
  wire [2*BUS_BITS-1:0] both = {head, tail};
  wire [7:0] code = both[2*BUS_BITS-1-(MESSAGE_BYTE+1)*8-:8];
  wire [15:0] message_bytes = both[2*BUS_BITS-1-(MESSAGE_BYTE+2)*8-:16];
  wire [31:0] id = both[2*BUS_BITS-1-(MESSAGE_BYTE+4)*8-:32];
  wire [15:0] checksum = both[2*BUS_BITS-1-(MESSAGE_BYTE-2)*8-:16];
  wire [479:0] body = both[2*BUS_BITS-1-BODY_BYTE*8-:480];

  // Fields of the body.
  wire [7:0] command_code = body[479-:8];
  wire [7:0] command_ppu = body[471-:8];
  wire [15:0] index = body[463-:16];
  wire [135:0] value = body[447-:136];
  wire [135:0] mask = body[311-:136];
  wire [15:0] key_padding = body[175-:16];
  action_t write_action, act_action, action_now;
  assign write_action = body[159-:160];
  assign act_action = body[447-:160];
  assign action_now = command_code == 8'(COMMAND_WRITE) ? write_action : act_action;
  key_slice_t [KEY_SLICES-1:0] slices;
  logic slices_ok;
  always_comb begin
    slices_ok = index == 0;
    for (int i = 0; i < KEY_SLICES; i++) begin
      slices[KEY_SLICES-1-i] = '{
          base: body[447-i*32-6-:2], offset: body[447-i*32-8-:8], bytes: body[447-i*32-16-5-:3]
      };
      if (body[447-i*32-:6] != 0 || body[447-i*32-16-:8] > 8'(SLICE_BYTES) || body[447-i*32-24-:8] != 0)
        slices_ok = 1'b0;
    end
  end
  wire action_ok = action_now.base <= 2'(EDIT_BASE_L4) && action_now.insert <= 4'(EDIT_DATA_BYTES)
      && action_now.remove <= 5'(REMOVE_BYTES_MAX) && action_now.reserved == 0
      && (action_now.write_metadata || action_now.metadata == 0);
  wire key_ok = (value & ~mask) == 0 && mask[3:0] == 0 && key_padding == 0;
  logic body_ok;
  always_comb begin
    case (code)
      8'(MESSAGE_HELLO), 8'(MESSAGE_FLOW_REQUEST): body_ok = body[471-:8] == 0;
      8'(MESSAGE_PACKET_OUT): body_ok = body[471-:7] == 0 && body[463-:48] == 0;
      8'(MESSAGE_FLOW_MOD):
      case (command_code)
        8'(COMMAND_SELECT): body_ok = slices_ok;
        8'(COMMAND_WRITE): body_ok = key_ok && action_ok;
        8'(COMMAND_ACT): body_ok = action_ok;
        default: body_ok = 1'b1;
      endcase
      default: body_ok = 1'b1;
    endcase
  end

  // Session and window. IDs are compared modulo 2^32.
  typedef struct packed {
    logic [31:0] id;
    logic        flow_mod;
    logic        done;
  } seen_t;
  logic session;
  logic [31:0] hello, oldest, newest_mod;
  logic [MESSAGE_WINDOW-1:0] seen_valid;
  seen_t seen[MESSAGE_WINDOW];
  seen_t seen_q;
  logic seen_valid_q;
  wire [WINDOW_BITS-1:0] seen_at = id[WINDOW_BITS-1:0];
  logic remember, remember_done;
  always_ff @(posedge clk) begin
    if (remember) seen[seen_at] <= '{id: id, flow_mod: code == 8'(MESSAGE_FLOW_MOD), done: remember_done};
    seen_q <= seen[seen_at];
    seen_valid_q <= seen_valid[seen_at];
  end
  // `oldest` and older IDs are outside the window.
  wire [31:0] above_oldest = id - oldest;
  wire [31:0] above_mod = id - newest_mod;
  wire [31:0] mod_above_oldest = newest_mod - oldest;
  wire is_stale = !session || above_oldest == 0 || above_oldest[31];
  wire is_seen = seen_valid_q && seen_q.id == id;
  wire is_late = above_mod[31] || above_mod == 0;
  logic body_ok_q;

  // Frames that are streamed.
  logic [15:0] left;
  logic [CARRY_BITS-1:0] carry;
  logic first;
  wire needs_data = left > 16'(CARRY_BITS / 8);
  wire echo_from_head = first;
  wire [15:0] echo_sum = add_ones(~checksum, 16'd1);
  wire [BODY_BYTE*8-1:0] echo_header =
      datagram_header(addresses, 8'(MESSAGE_ECHO_REPLY), id, message_bytes, ip_sum, echo_sum);
  assign echo_valid = state == ECHO && (echo_from_head || in_valid);
  wire [BUS_BITS-1:0] echo_head = {echo_header, head[ECHO_BYTES*8-1:0]}, echo_beat;
  for (genvar b = 0; b < BUS_BITS; b += 8) begin : gen_echo
    mux2 #(.PRIMITIVE(PRIMITIVE)) mux_i (
        .select(echo_from_head),
        .from({echo_head[b+:8], in_data[b+:8]}),
        .selected(echo_beat[b+:8])
    );
  end
  assign echo_data = flip(echo_beat);
  assign echo_keep = keep_of(left);
  assign echo_last = left <= 16'd64;
  assign out_valid = state == PACKET && (!needs_data || in_valid);
  // Without `needs_data`, the keep bits hide what follows the carried bytes.
  assign out_data = flip({carry, in_data[BUS_BITS-1-:PACKET_BYTE*8]});
  assign out_keep = keep_of(left);
  assign out_last = left <= 16'd64;
  assign out_port = body[479-:8];
  assign out_direct = !body[464];
  wire echo_go = echo_valid && echo_ready;
  wire out_go = out_valid && out_ready;
  assign in_ready = state == FIRST || state == SECOND || state == DRAIN
      || (echo_go && !echo_from_head) || (out_go && needs_data);
  wire take = in_valid && in_ready;

  assign read_ppu = body[479-:8];
  assign read_index = index;
  assign start_id = id;

  // Body of a reply: its first word, and the entry that was read.
  logic [31:0] start_head;
  logic [511:0] start_entry;
  assign start_body = {start_head, start_entry, 32'd0};
  always_ff @(posedge clk) begin
    if (state == DECODE) start_entry <= '0;
    else if (state == REPLY_READ && reply_valid)
      start_entry <= {reply_value, 4'd0, reply_mask, 4'd0, 16'd0, reply_action, reply_packets};
  end

  always_ff @(posedge clk) begin
    body_ok_q <= body_ok;
    command <= '{
        code: command_code[1:0],
        ppu: command_ppu,
        index: index,
        value: value[135:4],
        mask: mask[135:4],
        action: action_now,
        slices: slices
    };
    if (take && state == FIRST) head <= in_data;
    if (take && state == SECOND) tail <= in_data;
    if (state == FIRST) ended <= in_last;
    else if (take) ended <= in_last;
  end

  // The rest of these messages is streamed, so their second beat stays in the buffer.
  wire [7:0] code_now = in_data[BUS_BITS-1-(MESSAGE_BYTE+1)*8-:8];
  wire streams = code_now == 8'(MESSAGE_ECHO_REQUEST) || code_now == 8'(MESSAGE_PACKET_OUT);

  // Next state after a message.
  wire state_t finished = ended ? FIRST : DRAIN;

  always_ff @(posedge clk) begin
    counted <= 1'b0;
    remember <= 1'b0;
    if (rst) begin
      state <= FIRST;
      session <= 1'b0;
      seen_valid <= '0;
      command_valid <= 1'b0;
      read_valid <= 1'b0;
      start_valid <= 1'b0;
    end else begin
      if (remember) begin
        seen_valid[seen_at] <= 1'b1;
        if (!above_oldest[31] && above_oldest > 32'(MESSAGE_WINDOW)) oldest <= id - 32'(MESSAGE_WINDOW);
        if (code == 8'(MESSAGE_FLOW_MOD)) newest_mod <= id;
      end else if (mod_above_oldest[31]) newest_mod <= oldest;
      case (state)
        FIRST: if (take) state <= in_last || streams ? DECODE : SECOND;
        SECOND: if (take) state <= DECODE;
        DECODE: begin
          // The window and the check of the body are read.
          start_counters <= 1'b0;
          start_head <= '0;
          start_bytes <= 7'd4;
          first <= 1'b1;
          carry <= head[CARRY_BITS-1:0];
          left <= code == 8'(MESSAGE_ECHO_REQUEST) ? message_bytes + 16'(MESSAGE_BYTE)
              : message_bytes - 16'(MESSAGE_HEADER_BYTES) - 16'd8;
          state <= JUDGE;
        end
        JUDGE: begin
          counted <= 1'b1;
          outcome <= OUTCOME_REQUEST;
          if (!body_ok_q) begin
            outcome <= OUTCOME_VALUE;
            state <= finished;
          end else begin
            case (code)
              8'(MESSAGE_HELLO): begin
                start_code <= 8'(MESSAGE_HELLO);
                start_head <= {8'(PPUS), 8'd0, 16'(ENTRIES)};
                start_valid <= 1'b1;
                state <= REPLY;
                if (!session || id != hello) begin
                  session <= 1'b1;
                  {hello, oldest, newest_mod} <= {3{id}};
                  seen_valid <= '0;
                end
              end
              8'(MESSAGE_ECHO_REQUEST): state <= ECHO;
              8'(MESSAGE_FLOW_REQUEST): begin
                read_valid <= 1'b1;
                state <= READ;
              end
              8'(MESSAGE_STATS_REQUEST): begin
                start_code <= 8'(MESSAGE_STATS_REPLY);
                start_counters <= 1'b1;
                start_valid <= 1'b1;
                state <= REPLY;
              end
              8'(MESSAGE_FLOW_MOD): begin
                start_code <= 8'(MESSAGE_FLOW_ACK);
                if (is_stale) begin
                  outcome <= OUTCOME_STALE;
                  state <= finished;
                end else if (is_seen) begin
                  outcome <= OUTCOME_DUPLICATE;
                  start_head[31:24] <= {7'd0, seen_q.done};
                  start_valid <= seen_q.flow_mod;
                  state <= seen_q.flow_mod ? REPLY : finished;
                end else if (is_late) begin
                  outcome <= OUTCOME_LATE;
                  start_valid <= 1'b1;
                  state <= REPLY;
                end else begin
                  outcome <= OUTCOME_FLOW_MOD;
                  command_valid <= 1'b1;
                  state <= COMMAND;
                end
              end
              default: begin
                if (is_stale) begin
                  outcome <= OUTCOME_STALE;
                  state <= finished;
                end else if (is_seen) begin
                  outcome <= OUTCOME_DUPLICATE;
                  state <= finished;
                end else begin
                  outcome <= OUTCOME_PACKET_OUT;
                  remember <= 1'b1;
                  remember_done <= 1'b0;
                  state <= PACKET;
                end
              end
            endcase
          end
        end
        COMMAND: begin
          if (command_ready) begin
            command_valid <= 1'b0;
            state <= DONE;
          end
        end
        DONE: begin
          if (done || refused) begin
            remember <= 1'b1;
            remember_done <= done;
            start_head[31:24] <= {7'd0, done};
            start_valid <= 1'b1;
            state <= REPLY;
          end
        end
        READ: begin
          if (read_ready) begin
            read_valid <= 1'b0;
            state <= REPLY_READ;
          end
        end
        REPLY_READ: begin
          // A place that does not exist is reported as an entry that does not exist.
          start_code <= 8'(MESSAGE_FLOW_REPLY);
          start_bytes <= 7'd68;
          start_head <= {read_ppu, 7'd0, reply_valid && reply_exists, read_index};
          if (reply_valid || refused) begin
            start_valid <= 1'b1;
            state <= REPLY;
          end
        end
        REPLY: begin
          if (start_ready) begin
            start_valid <= 1'b0;
            state <= finished;
          end
        end
        ECHO: begin
          if (echo_go) begin
            first <= 1'b0;
            left <= left - 16'd64;
            if (echo_last) state <= (echo_from_head ? ended : in_last) ? FIRST : DRAIN;
          end
        end
        PACKET: begin
          if (out_go) begin
            left <= left - 16'd64;
            if (needs_data) carry <= in_data[CARRY_BITS-1:0];
            if (out_last) state <= (needs_data ? in_last : ended) ? FIRST : DRAIN;
          end
        end
        default: if (in_valid && in_last) state <= FIRST;
      endcase
    end
  end

  wire _unused = &{1'b0, both, body, mod_above_oldest};
endmodule

`default_nettype wire
