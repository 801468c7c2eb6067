// SPDX-License-Identifier: Apache-2.0
// The data plane: ingress buffer, parser, a chain of PPUs, checksums, deparser, and the writer of the tables.
//
// Only the ingress buffer drops frames for lack of room. From there on, frames wait at the splitter until the
// deparser has room, and PPUs never stall. Frames keep their order.
//
// Latency for 64 bytes, first beat in to first beat out: 16 + 12 x PPUS cycles.
// Throughput: one beat per cycle.

`default_nettype none

module datapath
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Number of PPUs, 1 to 8.
    parameter int unsigned PPUS = 4,
    // Entries of each PPU, a power of two, 16 to 4096.
    parameter int unsigned ENTRIES = 512,
    // Maximum length of a frame without FCS in bytes, 64 to 9216.
    parameter int unsigned FRAME_MAX = 1518,
    // Beats of 64 bytes in the ingress buffer and in the payload FIFO, a power of two, at least 64.
    parameter int unsigned BUFFER_BEATS = 512,
    // Whether the channels are reset together with the data plane; see `frame_buffer`.
    parameter bit SOURCE_RESETS = 1'b0,
    // Memory cells, as in `lutram`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                  clk,
    input  wire                  rst,
    // Frames from the channels (AXI4-Stream); always accepted. See `frame_buffer`.
    input  wire                  in_valid,
    input  wire  [BUS_BITS-1:0]  in_data,
    input  wire  [BUS_BYTES-1:0] in_keep,
    input  wire                  in_last,
    input  wire                  in_bad,
    input  wire  [7:0]           in_port,
    // Frames to the channels and to the control plane (AXI4-Stream).
    output wire                  out_valid,
    input  wire                  out_ready,
    output wire  [BUS_BITS-1:0]  out_data,
    output wire  [BUS_BYTES-1:0] out_keep,
    output wire                  out_last,
    output egress_t              out_egress,
    // Commands and reads; see `table_writer`.
    input  wire                  command_valid,
    output wire                  command_ready,
    input  command_t             command,
    output wire                  done,
    output wire                  refused,
    input  wire                  read_valid,
    output wire                  read_ready,
    input  wire  [7:0]           read_ppu,
    input  wire  [15:0]          read_index,
    output wire                  reply_valid,
    output wire                  reply_exists,
    output wire  [KEY_BITS-1:0]  reply_value,
    output wire  [KEY_BITS-1:0]  reply_mask,
    output action_t              reply_action,
    // Packets that hit the entry of `read_ppu` and `read_index` since it was written.
    output logic [63:0]          reply_packets,
    // OUTPUT_* of packets for which no PPU set an output.
    input  wire  [1:0]           miss_output,
    // Counters, from COUNTER_RECEIVED on; element 0 is the first.
    output logic [COUNTERS-1:0][63:0] counters
);
  if (PPUS < 1 || PPUS > 8) $fatal(1, "datapath: PPUS must be 1 to 8");

  localparam int unsigned IN_FLIGHT_MAX = 128;
  localparam int unsigned ROW_BITS = $clog2((ENTRIES + ROW_ENTRIES - 1) / ROW_ENTRIES);
  localparam int unsigned INDEX_BITS = $clog2(ENTRIES);

  // Ingress.
  wire frame_valid, frame_ready, frame_last;
  wire [BUS_BITS-1:0] frame_data;
  wire [15:0] frame_bytes;
  wire [7:0] frame_port;
  wire received, drop_runt, drop_bad, drop_no_room;
  frame_buffer #(
      .BEATS(BUFFER_BEATS),
      .FRAME_MAX(FRAME_MAX),
      .SOURCE_RESETS(SOURCE_RESETS)
  ) buffer_i (
      .clk(clk),
      .rst(rst),
      .in_valid(in_valid),
      .in_data(in_data),
      .in_keep(in_keep),
      .in_last(in_last),
      .in_bad(in_bad),
      .in_port(in_port),
      .out_valid(frame_valid),
      .out_ready(frame_ready),
      .out_data(frame_data),
      .out_last(frame_last),
      .out_bytes(frame_bytes),
      .out_port(frame_port),
      .received(received),
      .drop_runt(drop_runt),
      .drop_bad(drop_bad),
      .drop_no_room(drop_no_room)
  );

  wire split_valid, payload_in_valid, record_done;
  wire [BUS_BITS-1:0] payload_in_data;
  wire [$clog2(BUFFER_BEATS):0] payload_used;
  header_t split_header;
  splitter #(
      .IN_FLIGHT_MAX(IN_FLIGHT_MAX),
      .PRIMITIVE(PRIMITIVE)
  ) splitter_i (
      .clk(clk),
      .rst(rst),
      .in_valid(frame_valid),
      .in_ready(frame_ready),
      .in_data(frame_data),
      .in_last(frame_last),
      .in_bytes(frame_bytes),
      .in_port(frame_port),
      .header_valid(split_valid),
      .header(split_header),
      .payload_valid(payload_in_valid),
      .payload_ready(32'(payload_used) < BUFFER_BEATS - 1),
      .payload_data(payload_in_data),
      .header_done(record_done)
  );

  wire payload_valid, payload_ready;
  wire [BUS_BITS-1:0] payload_data;
  fifo #(
      .WIDTH(BUS_BITS),
      .DEPTH(BUFFER_BEATS)
  ) payload_i (
      .clk(clk),
      .rst(rst),
      .in_valid(payload_in_valid),
      .in_ready(),
      .in_data(payload_in_data),
      .out_valid(payload_valid),
      .out_ready(payload_ready),
      .out_data(payload_data),
      .used(payload_used)
  );

  // Tables.
  logic [PPUS-1:0] select, write, write_last, bank, act;
  key_slice_t [KEY_SLICES-1:0] slices;
  logic [ROW_BITS-1:0] row;
  logic [CHUNK_BITS-1:0] address;
  logic [CHUNKS-1:0][ROW_ENTRIES-1:0] bits;
  logic clearing;
  logic [INDEX_BITS-1:0] index;
  action_t action;
  table_writer #(
      .PPUS(PPUS),
      .ENTRIES(ENTRIES)
  ) writer_i (
      .clk(clk),
      .rst(rst),
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
      .select(select),
      .slices(slices),
      .write(write),
      .row(row),
      .address(address),
      .bits(bits),
      .write_last(write_last),
      .bank(bank),
      .clearing(clearing),
      .act(act),
      .index(index),
      .action(action)
  );

  // Parser and PPUs.
  logic [PPUS:0] chain_valid;
  header_t chain_header[PPUS+1];
  wire [PPUS-1:0][63:0] packets;
  parser parser_i (
      .clk(clk),
      .rst(rst),
      .in_valid(split_valid),
      .in_header(split_header),
      .out_valid(chain_valid[0]),
      .out_header(chain_header[0])
  );
  always_comb begin
    reply_packets = '0;
    for (int p = 0; p < PPUS; p++) if (8'(p) == read_ppu) reply_packets = packets[p];
  end
  for (genvar p = 0; p < PPUS; p++) begin : gen_ppu
    wire hit_valid;
    wire [INDEX_BITS-1:0] hit_index;
    ppu #(
        .PPU(p),
        .ENTRIES(ENTRIES),
        .PRIMITIVE(PRIMITIVE)
    ) ppu_i (
        .clk(clk),
        .rst(rst),
        .in_valid(chain_valid[p]),
        .in_header(chain_header[p]),
        .out_valid(chain_valid[p+1]),
        .out_header(chain_header[p+1]),
        .hit_valid(hit_valid),
        .hit_index(hit_index),
        .select(select[p]),
        .slices(slices),
        .write(write[p]),
        .row(row),
        .address(address),
        .bits(bits),
        .write_last(write_last[p]),
        .bank(bank[p]),
        .clearing(clearing),
        .act(act[p]),
        .index(index),
        .action(action)
    );
    // The count is cleared with the last write to the entry while it is hidden: hits of the old one are counted
    // by then, and the new one cannot be hit yet.
    hit_counter #(
        .ENTRIES(ENTRIES)
    ) hits_i (
        .clk(clk),
        .rst(rst),
        .hit_valid(hit_valid),
        .hit_index(hit_index),
        .clear(write[p] && &address),
        .clear_index(index),
        .read_index(read_index[INDEX_BITS-1:0]),
        .read_packets(packets[p])
    );
  end

  // Egress.
  wire fixed_valid, record_valid, record_ready;
  record_t fixed_record, record;
  checksum_fixer #(
      .PPUS(PPUS),
      .PRIMITIVE(PRIMITIVE)
  ) fixer_i (
      .clk(clk),
      .rst(rst),
      .in_valid(chain_valid[PPUS]),
      .in_header(chain_header[PPUS]),
      .out_valid(fixed_valid),
      .out_record(fixed_record)
  );
  // Has room for every header that the splitter lets in.
  fifo #(
      .WIDTH($bits(record_t)),
      .DEPTH(IN_FLIGHT_MAX)
  ) record_i (
      .clk(clk),
      .rst(rst),
      .in_valid(fixed_valid),
      .in_ready(),
      .in_data(fixed_record),
      .out_valid(record_valid),
      .out_ready(record_ready),
      .out_data(record),
      .used()
  );
  assign record_done = record_valid && record_ready;

  wire to_port, to_controller, discarded, bad_edit, ttl_expired;
  deparser #(
      .PRIMITIVE(PRIMITIVE)
  ) deparser_i (
      .clk(clk),
      .rst(rst),
      .miss_output(miss_output),
      .record_valid(record_valid),
      .record_ready(record_ready),
      .record(record),
      .payload_valid(payload_valid),
      .payload_ready(payload_ready),
      .payload_data(payload_data),
      .out_valid(out_valid),
      .out_ready(out_ready),
      .out_data(out_data),
      .out_keep(out_keep),
      .out_last(out_last),
      .out_egress(out_egress),
      .to_port(to_port),
      .to_controller(to_controller),
      .discarded(discarded),
      .bad_edit(bad_edit),
      .ttl_expired(ttl_expired)
  );

  wire [COUNTERS-1:0] events = {
    drop_no_room, drop_bad, drop_runt, ttl_expired, bad_edit, discarded, to_controller, to_port, received
  };
  always_ff @(posedge clk)
    for (int c = 0; c < COUNTERS; c++)
      if (rst) counters[c] <= '0;
      else if (events[c]) counters[c] <= counters[c] + 64'd1;
endmodule

`default_nettype wire
