// SPDX-License-Identifier: Apache-2.0
// Writes replies of up to 8 x COUNTERS_MAX bytes, 8 bytes per cycle. The body is stored before the header is
// sent, because the header has the checksum.
//
// Latency for a body of n words of 8 bytes: n + 14 cycles to the first beat, 8 for each further beat.

`default_nettype none

module reply_writer
  import device_pkg::*;
  import pipeline_pkg::*;
  import control_pkg::*;
#(
    // Number of counters in a Stats_reply, 1 to COUNTERS_MAX.
    parameter int unsigned WORDS = 32,
    // Maximum bits of a body other than that of a Stats_reply, a multiple of 64.
    parameter int unsigned BODY_BITS = 576,
    // Multiplexer cells, as in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                    clk,
    input  wire                    rst,
    input  addresses_t             addresses,
    // Sums of the constant words of the headers; see `control`.
    input  wire  [15:0]            ip_sum,
    input  wire  [15:0]            udp_sum_base,
    // A reply. Its body is `start_body` from the most significant byte on, or all counters.
    input  wire                    start_valid,
    output wire                    start_ready,
    input  wire  [7:0]             start_code,
    input  wire  [31:0]            start_id,
    input  wire  [BODY_BITS-1:0]   start_body,
    input  wire  [6:0]             start_bytes,
    input  wire                    start_counters,
    input  wire  [WORDS-1:0][63:0] counters,
    // Frames (AXI4-Stream).
    output logic                   out_valid,
    input  wire                    out_ready,
    output logic [BUS_BITS-1:0]    out_data,
    output logic [BUS_BYTES-1:0]   out_keep,
    output logic                   out_last
);
  if (WORDS < 1 || WORDS > COUNTERS_MAX) $fatal(1, "reply_writer: WORDS must be 1 to COUNTERS_MAX");
  if (BODY_BITS % 64 != 0 || BODY_BITS > 64 * 16)
    $fatal(1, "reply_writer: BODY_BITS must be a multiple of 64, at most 1024");

  localparam int unsigned AT_BITS = $clog2(COUNTERS_MAX) + 1;
  // A frame is sent as words of 8 bytes behind 6 bytes of padding, so that the body begins with a word.
  localparam int unsigned PAD_BYTES = 6;
  localparam int unsigned HEADER_WORDS = (BODY_BYTE + PAD_BYTES) / 8;
  localparam int unsigned WINDOW_BITS = 9 * 64 - PAD_BYTES * 8;

  typedef enum logic [2:0] {
    IDLE,
    BODY,
    SUM,
    HEADER,
    SEND
  } state_t;
  state_t state;

  logic [7:0] code;
  logic [31:0] id;
  logic [BODY_BITS-1:0] body;
  logic from_counters;
  logic [15:0] body_bytes;
  logic [AT_BITS-1:0] words, at, stored_at;
  logic stored_valid;
  logic [63:0] word;
  logic [31:0] sum;
  logic [15:0] checksum_sum;
  logic [HEADER_WORDS*64-1:0] header;

  assign start_ready = state == IDLE;
  wire [15:0] message_bytes = body_bytes + 16'(MESSAGE_HEADER_BYTES);

  // Words of the body. It is read until the first word is taken.
  wire [BODY_BITS-1:0] next_body;
  for (genvar b = 0; b < BODY_BITS; b += 8) begin : gen_body
    mux2 #(.PRIMITIVE(PRIMITIVE)) mux_i (
        .select(state == IDLE),
        .from({start_body[b+:8], b < 64 ? 8'd0 : body[(b<64?0:b-64)+:8]}),
        .selected(next_body[b+:8])
    );
  end
  always_ff @(posedge clk) body <= next_body;
  logic [63:0] memory[COUNTERS_MAX];
  always_ff @(posedge clk) if (stored_valid) memory[stored_at[AT_BITS-2:0]] <= word;
  localparam int unsigned COUNTER_BITS = WORDS > 1 ? $clog2(WORDS) : 1;
  wire [COUNTER_BITS-1:0] counter_at = COUNTER_BITS'(at);
  wire [63:0] counter = counters[counter_at];

  // Sending: a window of 9 words, without the padding; a beat is complete when its last word has arrived.
  logic [WINDOW_BITS-1:0] window;
  logic [3:0] filled;
  logic [3:0] headers_left;
  logic [15:0] bytes_left;
  wire full = filled == 4'd9;
  wire move = full && (!out_valid || out_ready);
  wire push = state == SEND && !full;
  // Behind the body, old words follow, which the keep bits hide.
  wire [63:0] push_word = headers_left != 0 ? header[HEADER_WORDS*64-1-:64] : memory[at[AT_BITS-2:0]];

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
      stored_valid <= 1'b0;
      out_valid <= 1'b0;
      filled <= '0;
    end else begin
      stored_valid <= 1'b0;
      if (out_ready) out_valid <= 1'b0;
      case (state)
        IDLE: begin
          at <= '0;
          sum <= '0;
          filled <= '0;
          code <= start_code;
          id <= start_id;
          from_counters <= start_counters;
          body_bytes <= start_counters ? 16'(WORDS * 8) : 16'(start_bytes);
          words <= start_counters ? AT_BITS'(WORDS) : AT_BITS'((8'(start_bytes) + 8'd7) >> 3);
          if (start_valid) state <= BODY;
        end
        BODY: begin
          // A word is taken in one cycle, stored and summed in the next one.
          stored_valid <= at != words;
          stored_at <= at;
          word <= from_counters ? counter : body[BODY_BITS-1-:64];
          at <= at + 1'b1;
          if (stored_valid) sum <= sum + 32'(word[63:48]) + 32'(word[47:32]) + 32'(word[31:16]) + 32'(word[15:0]);
          if (at == words) state <= SUM;
        end
        SUM: begin
          checksum_sum <= udp_sum(udp_sum_base, code, id, message_bytes, sum);
          state <= HEADER;
        end
        HEADER: begin
          header <= {48'd0, datagram_header(addresses, code, id, message_bytes, ip_sum, checksum_sum)};
          headers_left <= 4'(HEADER_WORDS);
          bytes_left <= message_bytes + 16'(MESSAGE_BYTE);
          at <= '0;
          state <= SEND;
        end
        SEND: begin
          if (push) begin
            window <= {window[WINDOW_BITS-65:0], push_word};
            filled <= filled + 4'd1;
            if (headers_left == 0) at <= at + 1'b1;
            else begin
              header <= header << 64;
              headers_left <= headers_left - 4'd1;
            end
          end
          if (move) begin
            out_valid <= 1'b1;
            out_data <= flip(window[WINDOW_BITS-1-:BUS_BITS]);
            out_keep <= keep_of(bytes_left);
            out_last <= bytes_left <= 16'd64;
            bytes_left <= bytes_left - 16'd64;
            filled <= 4'd1;
            if (bytes_left <= 16'd64) state <= IDLE;
          end
        end
        default: state <= IDLE;
      endcase
    end
  end

  wire _unused = &{1'b0, stored_at};
endmodule

`default_nettype wire
