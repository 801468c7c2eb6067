// SPDX-License-Identifier: Apache-2.0
// The whole device: NIC shell, data plane, and controller processing logic.
//
// Port p of the data plane is channel p - 1. The control plane has a channel of its own.
//
// Latency from a frame's last beat at a channel to its first beat at another one, for 64 bytes on idle buses:
// 24 + 12 x PPUS cycles. Throughput: one beat per cycle for all channels together.

`default_nettype none

module device
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Number of channels, 1 to 16.
    parameter int unsigned CHANNELS = 4,
    // Number of PPUs, 1 to 8.
    parameter int unsigned PPUS = 4,
    // Entries of each PPU, a power of two, 16 to 4096.
    parameter int unsigned ENTRIES = 512,
    // Maximum length of a frame without FCS in bytes, 64 to 9216.
    parameter int unsigned FRAME_MAX = 1518,
    // Beats in the data plane's ingress buffer and payload FIFO, a power of two, at least 64.
    parameter int unsigned BUFFER_BEATS = 512,
    // Beats in each channel's ingress FIFO, a power of two, 32 to 1024. A longer frame is bad.
    parameter int unsigned INGRESS_BEATS = 64,
    // Beats in each egress FIFO, a power of two, 64 to 4096.
    parameter int unsigned EGRESS_BEATS = 512,
    // Beats in the buffer of messages, a power of two, at least 64.
    parameter int unsigned MESSAGE_BEATS = 512,
    // Memory cells, as in `lutram`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                                 clk,
    input  wire                                 rst,
    // Addresses of messages; constant during operation.
    input  addresses_t                          addresses,
    // OUTPUT_* of packets for which no PPU set an output.
    input  wire  [1:0]                          miss_output,
    // Channels (AXI4-Stream); received frames are always accepted.
    input  wire  [CHANNELS-1:0]                 rx_valid,
    input  wire  [CHANNELS-1:0][BUS_BITS-1:0]   rx_data,
    input  wire  [CHANNELS-1:0][BUS_BYTES-1:0]  rx_keep,
    input  wire  [CHANNELS-1:0]                 rx_last,
    input  wire  [CHANNELS-1:0]                 rx_bad,
    output wire  [CHANNELS-1:0]                 tx_valid,
    input  wire  [CHANNELS-1:0]                 tx_ready,
    output wire  [CHANNELS-1:0][BUS_BITS-1:0]   tx_data,
    output wire  [CHANNELS-1:0][BUS_BYTES-1:0]  tx_keep,
    output wire  [CHANNELS-1:0]                 tx_last,
    // The control plane's channel (AXI4-Stream); received frames are always accepted.
    input  wire                                 cpu_rx_valid,
    input  wire  [BUS_BITS-1:0]                 cpu_rx_data,
    input  wire  [BUS_BYTES-1:0]                cpu_rx_keep,
    input  wire                                 cpu_rx_last,
    input  wire                                 cpu_rx_bad,
    output wire                                 cpu_tx_valid,
    input  wire                                 cpu_tx_ready,
    output wire  [BUS_BITS-1:0]                 cpu_tx_data,
    output wire  [BUS_BYTES-1:0]                cpu_tx_keep,
    output wire                                 cpu_tx_last
);
  if (INGRESS_BEATS * BUS_BYTES < FRAME_MAX + BUS_BYTES)
    $fatal(1, "device: INGRESS_BEATS is too small for a frame of FRAME_MAX bytes");
  // Each PPU may insert an edit's data.
  if (EGRESS_BEATS * BUS_BYTES < FRAME_MAX + PPUS * EDIT_DATA_BYTES)
    $fatal(1, "device: EGRESS_BEATS is too small for a frame of FRAME_MAX bytes and its edits");

  localparam int unsigned LOWER = COUNTERS + SHELL_COUNTERS;
  localparam int unsigned UPPER = CHANNELS * CHANNEL_COUNTERS;

  // Shell and data plane.
  wire in_valid, in_last, in_bad, done_valid, done_ready, done_last;
  wire [BUS_BITS-1:0] in_data, done_data;
  wire [BUS_BYTES-1:0] in_keep, done_keep;
  wire [7:0] in_port;
  egress_t done_egress;
  // Shell and controller processing logic.
  wire up_valid, up_ready, up_last, out_valid, out_ready, out_last, out_direct;
  wire [BUS_BITS-1:0] up_data, out_data;
  wire [BUS_BYTES-1:0] up_keep, out_keep;
  wire [7:0] out_port;
  egress_t up_egress;
  logic [SHELL_COUNTERS-1:0][63:0] shell_counters;
  logic [CHANNELS-1:0][CHANNEL_COUNTERS-1:0][63:0] channel_counters;
  nic_shell #(
      .CHANNELS(CHANNELS),
      .INGRESS_BEATS(INGRESS_BEATS),
      .EGRESS_BEATS(EGRESS_BEATS),
      .PRIMITIVE(PRIMITIVE)
  ) shell_i (
      .clk(clk),
      .rst(rst),
      .rx_valid(rx_valid),
      .rx_data(rx_data),
      .rx_keep(rx_keep),
      .rx_last(rx_last),
      .rx_bad(rx_bad),
      .tx_valid(tx_valid),
      .tx_ready(tx_ready),
      .tx_data(tx_data),
      .tx_keep(tx_keep),
      .tx_last(tx_last),
      .out_valid(out_valid),
      .out_ready(out_ready),
      .out_data(out_data),
      .out_keep(out_keep),
      .out_last(out_last),
      .out_port(out_port),
      .out_direct(out_direct),
      .up_valid(up_valid),
      .up_ready(up_ready),
      .up_data(up_data),
      .up_keep(up_keep),
      .up_last(up_last),
      .up_egress(up_egress),
      .in_valid(in_valid),
      .in_data(in_data),
      .in_keep(in_keep),
      .in_last(in_last),
      .in_bad(in_bad),
      .in_port(in_port),
      .done_valid(done_valid),
      .done_ready(done_ready),
      .done_data(done_data),
      .done_keep(done_keep),
      .done_last(done_last),
      .done_egress(done_egress),
      .counters(shell_counters),
      .channel_counters(channel_counters)
  );

  wire command_valid, command_ready, done, refused, read_valid, read_ready, reply_valid, reply_exists;
  command_t command;
  wire [7:0] read_ppu;
  wire [15:0] read_index;
  wire [KEY_BITS-1:0] reply_value, reply_mask;
  action_t reply_action;
  logic [63:0] reply_packets;
  logic [COUNTERS-1:0][63:0] counters;
  datapath #(
      .PPUS(PPUS),
      .ENTRIES(ENTRIES),
      .FRAME_MAX(FRAME_MAX),
      .BUFFER_BEATS(BUFFER_BEATS),
      .SOURCE_RESETS(1'b1),
      .PRIMITIVE(PRIMITIVE)
  ) datapath_i (
      .clk(clk),
      .rst(rst),
      .in_valid(in_valid),
      .in_data(in_data),
      .in_keep(in_keep),
      .in_last(in_last),
      .in_bad(in_bad),
      .in_port(in_port),
      .out_valid(done_valid),
      .out_ready(done_ready),
      .out_data(done_data),
      .out_keep(done_keep),
      .out_last(done_last),
      .out_egress(done_egress),
      .command_valid(command_valid),
      .command_ready(command_ready),
      .command(command),
      .done(done),
      .refused(refused),
      .read_valid(read_valid),
      .read_ready(read_ready),
      .read_ppu(read_ppu),
      .read_index(read_index),
      .reply_valid(reply_valid),
      .reply_exists(reply_exists),
      .reply_value(reply_value),
      .reply_mask(reply_mask),
      .reply_action(reply_action),
      .reply_packets(reply_packets),
      .miss_output(miss_output),
      .counters(counters)
  );

  control #(
      .PPUS(PPUS),
      .ENTRIES(ENTRIES),
      .LOWER(LOWER),
      .UPPER(UPPER),
      .MESSAGE_BEATS(MESSAGE_BEATS),
      .PRIMITIVE(PRIMITIVE)
  ) control_i (
      .clk(clk),
      .rst(rst),
      .addresses(addresses),
      .rx_valid(cpu_rx_valid),
      .rx_data(cpu_rx_data),
      .rx_keep(cpu_rx_keep),
      .rx_last(cpu_rx_last),
      .rx_bad(cpu_rx_bad),
      .tx_valid(cpu_tx_valid),
      .tx_ready(cpu_tx_ready),
      .tx_data(cpu_tx_data),
      .tx_keep(cpu_tx_keep),
      .tx_last(cpu_tx_last),
      .up_valid(up_valid),
      .up_ready(up_ready),
      .up_data(up_data),
      .up_keep(up_keep),
      .up_last(up_last),
      .up_egress(up_egress),
      .out_valid(out_valid),
      .out_ready(out_ready),
      .out_data(out_data),
      .out_keep(out_keep),
      .out_last(out_last),
      .out_port(out_port),
      .out_direct(out_direct),
      .command_valid(command_valid),
      .command_ready(command_ready),
      .command(command),
      .done(done),
      .refused(refused),
      .read_valid(read_valid),
      .read_ready(read_ready),
      .read_ppu(read_ppu),
      .read_index(read_index),
      .reply_valid(reply_valid),
      .reply_exists(reply_exists),
      .reply_value(reply_value),
      .reply_mask(reply_mask),
      .reply_action(reply_action),
      .reply_packets(reply_packets),
      .lower_counters({shell_counters, counters}),
      .upper_counters(channel_counters),
      .counters()
  );
endmodule

`default_nettype wire
