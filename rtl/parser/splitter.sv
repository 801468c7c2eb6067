// SPDX-License-Identifier: Apache-2.0
// Splits a frame into header (the first two beats) and payload (the rest), and starts the extended header.
//
// Latency: 1 cycle from the header's last beat. Throughput: one beat per cycle, so a frame of one beat gives
// one header per cycle. A header cannot be stalled; the first beat of a frame waits while IN_FLIGHT_MAX
// headers are between this module and the deparser.

`default_nettype none

module splitter
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Headers between this module and the deparser, 1 to 255.
    parameter int unsigned IN_FLIGHT_MAX = 128,
    // Multiplexer cells, as in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                clk,
    input  wire                rst,
    input  wire                in_valid,
    output wire                in_ready,
    input  wire [BUS_BITS-1:0] in_data,
    input  wire                in_last,
    input  wire [15:0]         in_bytes,
    input  wire [7:0]          in_port,
    output logic               header_valid,
    output header_t            header,
    output logic               payload_valid,
    // The FIFO has room for two beats: one may already be in the output register.
    input  wire                payload_ready,
    output logic [BUS_BITS-1:0] payload_data,
    // The deparser has finished a header.
    input  wire                header_done
);
  if (IN_FLIGHT_MAX < 1 || IN_FLIGHT_MAX > 255) $fatal(1, "splitter: IN_FLIGHT_MAX must be 1 to 255");

  typedef enum logic [1:0] {
    FIRST,
    SECOND,
    PAYLOAD
  } state_t;
  state_t state;

  logic [7:0] in_flight;
  logic [63:0] cycle, arrival;
  logic [BUS_BITS-1:0] first;

  assign in_ready = state == FIRST ? in_flight != IN_FLIGHT_MAX[7:0] : state == SECOND || payload_ready;
  wire take = in_valid && in_ready;
  wire starts = take && state == FIRST;
  wire emits = take && state != PAYLOAD && (state == SECOND || in_last);
  wire in_payload = take && state == PAYLOAD;

  wire [BUS_BITS-1:0] first_now;
  for (genvar b = 0; b < BUS_BITS; b += 8) begin : gen_first
    mux2 #(.PRIMITIVE(PRIMITIVE)) mux_i (
        .select(state == FIRST),
        .from({in_data[b+:8], first[b+:8]}),
        .selected(first_now[b+:8])
    );
  end

  header_t started;
  always_comb begin
    started = '0;
    started.ext.in_port = in_port;
    started.ext.frame_bytes = in_bytes;
    started.ext.timestamp = state == FIRST ? cycle : arrival;
    started.ext.frame[FRAME_BYTES*8-1-:RAW_BYTES*8] =
        {first_now, state == FIRST ? BUS_BITS'(0) : in_data};
    started.copied = in_bytes > 16'(RAW_BYTES) ? 8'(RAW_BYTES) : in_bytes[7:0];
    started.ppu = 8'hff;
  end

  always_ff @(posedge clk) begin
    header <= started;
    payload_data <= in_data;
    if (starts) first <= in_data;
    if (starts) arrival <= cycle;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= FIRST;
      in_flight <= '0;
      cycle <= '0;
      header_valid <= 1'b0;
      payload_valid <= 1'b0;
    end else begin
      cycle <= cycle + 1'b1;
      header_valid <= emits;
      payload_valid <= in_payload;
      if (starts != header_done) in_flight <= starts ? in_flight + 1'b1 : in_flight - 1'b1;
      if (take) state <= in_last ? FIRST : state == FIRST ? SECOND : PAYLOAD;
    end
  end
endmodule

`default_nettype wire
