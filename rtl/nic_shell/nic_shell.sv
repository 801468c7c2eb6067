// SPDX-License-Identifier: Apache-2.0
// NIC shell: merges the frames of N channels and of the control plane into one stream for the data plane, and
// distributes the frames that leave. Port p of the data plane is channel p - 1; port 0 does not exist.
//
// Each channel has an ingress and an egress FIFO. A frame is dropped whole, and counted at the channel, if
// the FIFO is full: at ingress, because all channels together are faster than the bus; at egress, because the
// channel is slower than the frames for it. So a channel never waits for another one.
//
// Latency: 4 cycles from a frame's last beat to its first beat at the data plane, and 4 from its last beat from
// the data plane to its first beat at the channel. Throughput: one beat per cycle in each direction.

`default_nettype none

module nic_shell
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Number of channels, 1 to 16.
    parameter int unsigned CHANNELS = 4,
    // Beats in the ingress FIFO of a channel, a power of two, 32 to 1024.
    parameter int unsigned INGRESS_BEATS = 64,
    // Beats in the egress FIFO of a channel and of the control plane, a power of two, 64 to 4096.
    parameter int unsigned EGRESS_BEATS = 512,
    // Multiplexer cells, as in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                                 clk,
    input  wire                                 rst,
    // Frames from the channels (AXI4-Stream); always accepted.
    input  wire  [CHANNELS-1:0]                 rx_valid,
    input  wire  [CHANNELS-1:0][BUS_BITS-1:0]   rx_data,
    input  wire  [CHANNELS-1:0][BUS_BYTES-1:0]  rx_keep,
    input  wire  [CHANNELS-1:0]                 rx_last,
    input  wire  [CHANNELS-1:0]                 rx_bad,
    // Frames to the channels (AXI4-Stream).
    output wire  [CHANNELS-1:0]                 tx_valid,
    input  wire  [CHANNELS-1:0]                 tx_ready,
    output wire  [CHANNELS-1:0][BUS_BITS-1:0]   tx_data,
    output wire  [CHANNELS-1:0][BUS_BYTES-1:0]  tx_keep,
    output wire  [CHANNELS-1:0]                 tx_last,
    // Packet_outs. `out_direct`: to the channel of `out_port`. Otherwise to PPU 0, as received at `out_port`.
    input  wire                                 out_valid,
    output wire                                 out_ready,
    input  wire  [BUS_BITS-1:0]                 out_data,
    input  wire  [BUS_BYTES-1:0]                out_keep,
    input  wire                                 out_last,
    input  wire  [7:0]                          out_port,
    input  wire                                 out_direct,
    // Frames for the control plane.
    output wire                                 up_valid,
    input  wire                                 up_ready,
    output wire  [BUS_BITS-1:0]                 up_data,
    output wire  [BUS_BYTES-1:0]                up_keep,
    output wire                                 up_last,
    output egress_t                             up_egress,
    // To the data plane, which always accepts.
    output wire                                 in_valid,
    output wire  [BUS_BITS-1:0]                 in_data,
    output wire  [BUS_BYTES-1:0]                in_keep,
    output wire                                 in_last,
    output wire                                 in_bad,
    output wire  [7:0]                          in_port,
    // From the data plane.
    input  wire                                 done_valid,
    output wire                                 done_ready,
    input  wire  [BUS_BITS-1:0]                 done_data,
    input  wire  [BUS_BYTES-1:0]                done_keep,
    input  wire                                 done_last,
    input  egress_t                             done_egress,
    // Counters of the shell, and of each channel.
    output logic [SHELL_COUNTERS-1:0][63:0]                  counters,
    output logic [CHANNELS-1:0][CHANNEL_COUNTERS-1:0][63:0]  channel_counters
);
  if (CHANNELS < 1 || CHANNELS > 16) $fatal(1, "nic_shell: CHANNELS must be 1 to 16");
  if (INGRESS_BEATS < 32 || INGRESS_BEATS > 1024)
    $fatal(1, "nic_shell: INGRESS_BEATS must be a power of two, 32 to 1024");
  if (EGRESS_BEATS < 64 || EGRESS_BEATS > 4096)
    $fatal(1, "nic_shell: EGRESS_BEATS must be a power of two, 64 to 4096");

  function automatic logic [BUS_BYTES-1:0] keep_of(input logic [5:0] bytes_less_1);
    for (int i = 0; i < BUS_BYTES; i++) keep_of[i] = 6'(i) <= bytes_less_1;
  endfunction

  // A frame longer than the FIFO reaches the data plane cut and marked, and is counted there.
  localparam int unsigned CUT_BEATS = INGRESS_BEATS - 1;
  localparam int unsigned FIFOS = CHANNELS + 1;
  localparam int unsigned EGRESS_BITS = $bits(egress_t);

  // Counted events; element CHANNELS of the egress is the control plane.
  wire [CHANNELS-1:0] rx_stored, rx_dropped;
  wire [CHANNELS-1:0][15:0] rx_bytes;
  wire [FIFOS-1:0] tx_stored, tx_dropped;
  wire [FIFOS-1:0][15:0] tx_bytes;

  // Ingress. Input CHANNELS of the multiplexer is the control plane.
  wire [FIFOS-1:0] mux_valid, mux_ready, mux_last, mux_bad;
  wire [FIFOS-1:0][BUS_BITS-1:0] mux_data;
  wire [FIFOS-1:0][7:0] mux_port;
  wire [FIFOS-1:0][5:0] mux_bytes;
  for (genvar c = 0; c < CHANNELS; c++) begin : gen_ingress
    assign mux_port[c] = 8'(c + 1);
    wire beat_valid, beat_last, beat_bad;
    wire [BUS_BITS-1:0] beat_data;
    wire [6:0] beat_bytes;
    beat_counter counter_i (
        .clk(clk),
        .rst(rst),
        .in_valid(rx_valid[c]),
        .in_data(rx_data[c]),
        .in_keep(rx_keep[c]),
        .in_last(rx_last[c]),
        .in_bad(rx_bad[c]),
        .in_info(1'b0),
        .out_valid(beat_valid),
        .out_data(beat_data),
        .out_bytes(beat_bytes),
        .out_last(beat_last),
        .out_bad(beat_bad),
        .out_info()
    );
    frame_fifo #(
        .BEATS(INGRESS_BEATS),
        .CUT_BEATS(CUT_BEATS)
    ) fifo_i (
        .clk(clk),
        .rst(rst),
        .in_valid(beat_valid),
        .in_data(beat_data),
        .in_bytes(beat_bytes),
        .in_last(beat_last),
        .in_bad(beat_bad),
        .in_info(1'b0),
        .out_valid(mux_valid[c]),
        .out_ready(mux_ready[c]),
        .out_data(mux_data[c]),
        .out_bytes_less_1(mux_bytes[c]),
        .out_last(mux_last[c]),
        .out_bad(mux_bad[c]),
        .out_info(),
        .stored(rx_stored[c]),
        .stored_bytes(rx_bytes[c]),
        .dropped(rx_dropped[c])
    );
  end
  assign mux_valid[CHANNELS] = out_valid && !out_direct;
  assign mux_data[CHANNELS] = out_data;
  assign mux_bytes[CHANNELS] = last_byte(out_keep);
  assign mux_last[CHANNELS] = out_last;
  assign mux_bad[CHANNELS] = 1'b0;
  assign mux_port[CHANNELS] = out_port;
  // A number of bytes needs a narrower multiplexer than keep bits.
  wire [FIFOS-1:0][13:0] mux_info;
  wire [5:0] in_bytes_less_1;
  for (genvar i = 0; i < FIFOS; i++) begin : gen_info
    assign mux_info[i] = {mux_bytes[i], mux_port[i]};
  end
  frame_mux #(
      .INPUTS(FIFOS),
      .INFO_BITS(14),
      .PRIMITIVE(PRIMITIVE)
  ) ingress_i (
      .clk(clk),
      .rst(rst),
      .in_valid(mux_valid),
      .in_ready(mux_ready),
      .in_data(mux_data),
      .in_keep({FIFOS{BUS_BYTES'(0)}}),
      .in_last(mux_last),
      .in_bad(mux_bad),
      .in_info(mux_info),
      .out_valid(in_valid),
      .out_ready(1'b1),
      .out_data(in_data),
      .out_keep(),
      .out_last(in_last),
      .out_bad(in_bad),
      .out_info({in_bytes_less_1, in_port})
  );
  assign in_keep = keep_of(in_bytes_less_1);

  // Egress: the data plane and direct Packet_outs.
  wire direct_ready, leaving_valid, leaving_last;
  wire [BUS_BITS-1:0] leaving_data;
  wire [BUS_BYTES-1:0] leaving_keep;
  egress_t direct_egress, leaving_egress;
  assign direct_egress = '{output_kind: 2'(OUTPUT_PORT), port: out_port, in_port: 8'd0, ppu: 8'hff};
  assign out_ready = out_direct ? direct_ready : mux_ready[CHANNELS];
  frame_mux #(
      .INPUTS(2),
      .INFO_BITS(EGRESS_BITS),
      .PRIMITIVE(PRIMITIVE)
  ) egress_i (
      .clk(clk),
      .rst(rst),
      .in_valid({out_valid && out_direct, done_valid}),
      .in_ready({direct_ready, done_ready}),
      .in_data({out_data, done_data}),
      .in_keep({out_keep, done_keep}),
      .in_last({out_last, done_last}),
      .in_bad(2'b00),
      .in_info({direct_egress, done_egress}),
      .out_valid(leaving_valid),
      .out_ready(1'b1),
      .out_data(leaving_data),
      .out_keep(leaving_keep),
      .out_last(leaving_last),
      .out_bad(),
      .out_info(leaving_egress)
  );

  // All egress FIFOs get the same beats.
  wire beat_valid, beat_last;
  wire [BUS_BITS-1:0] beat_data;
  wire [6:0] beat_bytes;
  egress_t beat_egress;
  beat_counter #(
      .INFO_BITS(EGRESS_BITS)
  ) counter_i (
      .clk(clk),
      .rst(rst),
      .in_valid(leaving_valid),
      .in_data(leaving_data),
      .in_keep(leaving_keep),
      .in_last(leaving_last),
      .in_bad(1'b0),
      .in_info(leaving_egress),
      .out_valid(beat_valid),
      .out_data(beat_data),
      .out_bytes(beat_bytes),
      .out_last(beat_last),
      .out_bad(),
      .out_info(beat_egress)
  );

  wire [FIFOS-1:0] to;
  wire [FIFOS-1:0] egress_valid, egress_ready, egress_last;
  wire [FIFOS-1:0][BUS_BITS-1:0] egress_data;
  wire [FIFOS-1:0][5:0] egress_bytes;
  wire [FIFOS-1:0][EGRESS_BITS-1:0] egress_info;
  wire to_port = beat_egress.output_kind == 2'(OUTPUT_PORT);
  assign to[CHANNELS] = beat_egress.output_kind == 2'(OUTPUT_CONTROLLER);
  for (genvar c = 0; c < CHANNELS; c++) begin : gen_to
    assign to[c] = to_port && beat_egress.port == 8'(c + 1);
    assign tx_valid[c] = egress_valid[c];
    assign egress_ready[c] = tx_ready[c];
    assign tx_data[c] = egress_data[c];
    assign tx_keep[c] = keep_of(egress_bytes[c]);
    assign tx_last[c] = egress_last[c];
  end
  assign up_valid = egress_valid[CHANNELS];
  assign egress_ready[CHANNELS] = up_ready;
  assign up_data = egress_data[CHANNELS];
  assign up_keep = keep_of(egress_bytes[CHANNELS]);
  assign up_last = egress_last[CHANNELS];
  assign up_egress = egress_info[CHANNELS];
  for (genvar f = 0; f < FIFOS; f++) begin : gen_egress
    frame_fifo #(
        .BEATS(EGRESS_BEATS),
        .INFO_BITS(EGRESS_BITS)
    ) fifo_i (
        .clk(clk),
        .rst(rst),
        .in_valid(beat_valid && to[f]),
        .in_data(beat_data),
        .in_bytes(beat_bytes),
        .in_last(beat_last),
        .in_bad(1'b0),
        .in_info(beat_egress),
        .out_valid(egress_valid[f]),
        .out_ready(egress_ready[f]),
        .out_data(egress_data[f]),
        .out_bytes_less_1(egress_bytes[f]),
        .out_last(egress_last[f]),
        .out_bad(),
        .out_info(egress_info[f]),
        .stored(tx_stored[f]),
        .stored_bytes(tx_bytes[f]),
        .dropped(tx_dropped[f])
    );
  end

  // Counters.
  wire no_channel = beat_valid && beat_last && to == '0;
  always_ff @(posedge clk) begin
    if (rst) begin
      counters <= '0;
      channel_counters <= '0;
    end else begin
      if (no_channel) counters[0] <= counters[0] + 64'd1;
      if (tx_dropped[CHANNELS]) counters[1] <= counters[1] + 64'd1;
      for (int c = 0; c < CHANNELS; c++) begin
        if (rx_stored[c]) begin
          channel_counters[c][CHANNEL_COUNTER_RX_FRAMES] <= channel_counters[c][CHANNEL_COUNTER_RX_FRAMES] + 64'd1;
          channel_counters[c][CHANNEL_COUNTER_RX_BYTES] <=
              channel_counters[c][CHANNEL_COUNTER_RX_BYTES] + 64'(rx_bytes[c]);
        end
        if (rx_dropped[c])
          channel_counters[c][CHANNEL_COUNTER_RX_DROPPED] <= channel_counters[c][CHANNEL_COUNTER_RX_DROPPED] + 64'd1;
        if (tx_stored[c]) begin
          channel_counters[c][CHANNEL_COUNTER_TX_FRAMES] <= channel_counters[c][CHANNEL_COUNTER_TX_FRAMES] + 64'd1;
          channel_counters[c][CHANNEL_COUNTER_TX_BYTES] <=
              channel_counters[c][CHANNEL_COUNTER_TX_BYTES] + 64'(tx_bytes[c]);
        end
        if (tx_dropped[c])
          channel_counters[c][CHANNEL_COUNTER_TX_DROPPED] <= channel_counters[c][CHANNEL_COUNTER_TX_DROPPED] + 64'd1;
      end
    end
  end

  wire _unused = &{1'b0, tx_stored[CHANNELS], tx_bytes[CHANNELS]};
endmodule

`default_nettype wire
