// SPDX-License-Identifier: Apache-2.0
// Controller processing logic: answers the daemon's messages, and sends frames for the control plane as
// Packet_ins. It has an engine for each direction, so neither waits for the other.
//
// Each message is a UDP datagram in a frame on the control plane's channel. The message buffer drops messages
// if there is no room; the daemon sends them again.

`default_nettype none

module control
  import device_pkg::*;
  import pipeline_pkg::*;
  import control_pkg::*;
#(
    // Number of PPUs, 1 to 8, and entries of each.
    parameter int unsigned PPUS = 4,
    parameter int unsigned ENTRIES = 512,
    // Number of counters with lower and with higher numbers than those of this module; all are at most
    // COUNTERS_MAX.
    parameter int unsigned LOWER = 11,
    parameter int unsigned UPPER = 24,
    // Beats in the message buffer, a power of two, at least 64.
    parameter int unsigned MESSAGE_BEATS = 512,
    // Multiplexer cells, as in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                    clk,
    input  wire                    rst,
    // Constant during operation.
    input  addresses_t             addresses,
    // The control plane's channel (AXI4-Stream); input is always accepted.
    input  wire                    rx_valid,
    input  wire  [BUS_BITS-1:0]    rx_data,
    input  wire  [BUS_BYTES-1:0]   rx_keep,
    input  wire                    rx_last,
    input  wire                    rx_bad,
    output wire                    tx_valid,
    input  wire                    tx_ready,
    output wire  [BUS_BITS-1:0]    tx_data,
    output wire  [BUS_BYTES-1:0]   tx_keep,
    output wire                    tx_last,
    // Frames for the control plane, and Packet_outs; see `nic_shell`.
    input  wire                    up_valid,
    output wire                    up_ready,
    input  wire  [BUS_BITS-1:0]    up_data,
    input  wire  [BUS_BYTES-1:0]   up_keep,
    input  wire                    up_last,
    input  egress_t                up_egress,
    output wire                    out_valid,
    input  wire                    out_ready,
    output wire  [BUS_BITS-1:0]    out_data,
    output wire  [BUS_BYTES-1:0]   out_keep,
    output wire                    out_last,
    output wire  [7:0]             out_port,
    output wire                    out_direct,
    // Table writer; see `datapath`.
    output wire                    command_valid,
    input  wire                    command_ready,
    output command_t               command,
    input  wire                    done,
    input  wire                    refused,
    output wire                    read_valid,
    input  wire                    read_ready,
    output wire  [7:0]             read_ppu,
    output wire  [15:0]            read_index,
    input  wire                    reply_valid,
    input  wire                    reply_exists,
    input  wire  [KEY_BITS-1:0]    reply_value,
    input  wire  [KEY_BITS-1:0]    reply_mask,
    input  action_t                reply_action,
    input  wire  [63:0]            reply_packets,
    // Counters with lower and with higher numbers; element 0 is the first.
    input  wire  [LOWER-1:0][63:0] lower_counters,
    input  wire  [UPPER-1:0][63:0] upper_counters,
    // Counters from COUNTER_CONTROL_RECEIVED on.
    output logic [CONTROL_COUNTERS-1:0][63:0] counters
);
  localparam int unsigned WORDS = LOWER + CONTROL_COUNTERS + UPPER;
  if (PPUS < 1 || PPUS > 8) $fatal(1, "control: PPUS must be 1 to 8");
  if (WORDS > COUNTERS_MAX) $fatal(1, "control: there are more than COUNTERS_MAX counters");

  // Sums of the words of a datagram's headers that are constant; see `datagram_header` and `udp_sum`.
  logic [15:0] ip_sum, udp_sum_base;
  always_ff @(posedge clk) begin
    ip_sum <= fold(IP_WORDS + ip_pair(addresses.device_ip, addresses.daemon_ip));
    udp_sum_base <= fold(32'd17 + ip_pair(addresses.device_ip, addresses.daemon_ip) + 32'(addresses.device_port)
        + 32'(addresses.daemon_port));
  end

  // Filter and message buffer.
  wire filtered_valid, filtered_last, filtered_bad, received;
  wire [BUS_BITS-1:0] filtered_data;
  wire [BUS_BYTES-1:0] filtered_keep;
  outcome_t reason;
  message_filter filter_i (
      .clk(clk),
      .rst(rst),
      .addresses(addresses),
      .in_valid(rx_valid),
      .in_data(rx_data),
      .in_keep(rx_keep),
      .in_last(rx_last),
      .in_bad(rx_bad),
      .out_valid(filtered_valid),
      .out_data(filtered_data),
      .out_keep(filtered_keep),
      .out_last(filtered_last),
      .out_bad(filtered_bad),
      .received(received),
      .reason(reason)
  );
  wire message_valid, message_ready, message_last, no_room;
  wire [BUS_BITS-1:0] message_data;
  frame_buffer #(
      .BEATS(MESSAGE_BEATS),
      .FRAME_MAX(CONTROL_FRAME_MAX),
      .SOURCE_RESETS(1'b1)
  ) buffer_i (
      .clk(clk),
      .rst(rst),
      .in_valid(filtered_valid),
      .in_data(filtered_data),
      .in_keep(filtered_keep),
      .in_last(filtered_last),
      .in_bad(filtered_bad),
      .in_port(8'd0),
      .out_valid(message_valid),
      .out_ready(message_ready),
      .out_data(message_data),
      .out_last(message_last),
      .out_bytes(),
      .out_port(),
      .received(),
      .drop_runt(),
      .drop_bad(),
      .drop_no_room(no_room)
  );

  // Engines.
  wire start_valid, start_ready, start_counters, counted, sent, too_long;
  wire [7:0] start_code;
  wire [31:0] start_id;
  wire [575:0] start_body;
  wire [6:0] start_bytes;
  outcome_t outcome;
  wire [2:0] mux_valid, mux_ready, mux_last;
  wire [2:0][BUS_BITS-1:0] mux_data;
  wire [2:0][BUS_BYTES-1:0] mux_keep;
  message_engine #(
      .PPUS(PPUS),
      .ENTRIES(ENTRIES),
      .PRIMITIVE(PRIMITIVE)
  ) engine_i (
      .clk(clk),
      .rst(rst),
      .addresses(addresses),
      .ip_sum(ip_sum),
      .in_valid(message_valid),
      .in_ready(message_ready),
      .in_data(message_data),
      .in_last(message_last),
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
      .start_valid(start_valid),
      .start_ready(start_ready),
      .start_code(start_code),
      .start_id(start_id),
      .start_body(start_body),
      .start_bytes(start_bytes),
      .start_counters(start_counters),
      .echo_valid(mux_valid[0]),
      .echo_ready(mux_ready[0]),
      .echo_data(mux_data[0]),
      .echo_keep(mux_keep[0]),
      .echo_last(mux_last[0]),
      .out_valid(out_valid),
      .out_ready(out_ready),
      .out_data(out_data),
      .out_keep(out_keep),
      .out_last(out_last),
      .out_port(out_port),
      .out_direct(out_direct),
      .counted(counted),
      .outcome(outcome)
  );
  reply_writer #(
      .WORDS(WORDS),
      .PRIMITIVE(PRIMITIVE)
  ) writer_i (
      .clk(clk),
      .rst(rst),
      .addresses(addresses),
      .ip_sum(ip_sum),
      .udp_sum_base(udp_sum_base),
      .start_valid(start_valid),
      .start_ready(start_ready),
      .start_code(start_code),
      .start_id(start_id),
      .start_body(start_body),
      .start_bytes(start_bytes),
      .start_counters(start_counters),
      .counters({upper_counters, counters, lower_counters}),
      .out_valid(mux_valid[1]),
      .out_ready(mux_ready[1]),
      .out_data(mux_data[1]),
      .out_keep(mux_keep[1]),
      .out_last(mux_last[1])
  );
  packet_in #(
      .PRIMITIVE(PRIMITIVE)
  ) packet_in_i (
      .clk(clk),
      .rst(rst),
      .addresses(addresses),
      .ip_sum(ip_sum),
      .udp_sum_base(udp_sum_base),
      .in_valid(up_valid),
      .in_ready(up_ready),
      .in_data(up_data),
      .in_keep(up_keep),
      .in_last(up_last),
      .in_egress(up_egress),
      .out_valid(mux_valid[2]),
      .out_ready(mux_ready[2]),
      .out_data(mux_data[2]),
      .out_keep(mux_keep[2]),
      .out_last(mux_last[2]),
      .sent(sent),
      .too_long(too_long)
  );
  frame_mux #(
      .INPUTS(3),
      .PRIMITIVE(PRIMITIVE)
  ) mux_i (
      .clk(clk),
      .rst(rst),
      .in_valid(mux_valid),
      .in_ready(mux_ready),
      .in_data(mux_data),
      .in_keep(mux_keep),
      .in_last(mux_last),
      .in_bad(3'b000),
      .in_info(3'b000),
      .out_valid(tx_valid),
      .out_ready(tx_ready),
      .out_data(tx_data),
      .out_keep(tx_keep),
      .out_last(tx_last),
      .out_bad(),
      .out_info()
  );

  // Counters. The filter and the engine count different outcomes, so each counter has one event per cycle.
  always_ff @(posedge clk) begin
    for (int c = 0; c < CONTROL_COUNTERS; c++) begin
      if (rst) counters[c] <= '0;
      else if ((c == 0 && received) || (c != 0 && received && reason == 5'(c))
          || (counted && outcome == 5'(c) && outcome != OUTCOME_VALUE)
          || (no_room && OUTCOME_NO_ROOM == 5'(c))
          || (sent && c == CONTROL_COUNTERS - 2) || (too_long && c == CONTROL_COUNTERS - 1))
        counters[c] <= counters[c] + 64'd1;
      if (!rst && counted && outcome == OUTCOME_VALUE && OUTCOME_VALUE == 5'(c))
        counters[c] <= counters[c] + (received && reason == OUTCOME_VALUE ? 64'd2 : 64'd1);
    end
  end
endmodule

`default_nettype wire
