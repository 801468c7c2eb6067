// SPDX-License-Identifier: Apache-2.0
// Programmable processing unit: field selector, TCAM, action memory, action unit. A header without a hit
// passes unchanged.
//
// Latency: 12 cycles (selector 2, TCAM 4, action memory 2, action unit 4). Throughput: one header per cycle;
// there is no stall, also not during an update.

`default_nettype none

module ppu
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Number of this PPU, 0 to 254.
    parameter int unsigned PPU = 0,
    // Number of entries, a power of two, 16 to 4096.
    parameter int unsigned ENTRIES = 512,
    // Memory cells, as in `lutram`.
    parameter bit PRIMITIVE = 1'b0,
    localparam int unsigned ROW_BITS = $clog2((ENTRIES + ROW_ENTRIES - 1) / ROW_ENTRIES),
    localparam int unsigned INDEX_BITS = $clog2(ENTRIES)
) (
    input  wire                                 clk,
    input  wire                                 rst,
    input  wire                                 in_valid,
    input  header_t                             in_header,
    output wire                                 out_valid,
    output header_t                             out_header,
    // A packet has hit an entry.
    output wire                                 hit_valid,
    output wire  [INDEX_BITS-1:0]               hit_index,
    // From the table writer, for this PPU only.
    input  wire                                 select,
    input  key_slice_t [KEY_SLICES-1:0]         slices,
    input  wire                                 write,
    input  wire                                 write_last,
    input  wire  [ROW_BITS-1:0]                 row,
    input  wire  [CHUNK_BITS-1:0]               address,
    input  wire  [CHUNKS-1:0][ROW_ENTRIES-1:0]  bits,
    input  wire                                 bank,
    input  wire                                 clearing,
    input  wire                                 act,
    input  wire  [INDEX_BITS-1:0]               index,
    input  action_t                             action
);
  localparam int unsigned SEARCH_CYCLES = 8;

  key_slice_t [KEY_SLICES-1:0] slices_q;
  always_ff @(posedge clk) begin
    if (rst) slices_q <= '0;
    else if (select) slices_q <= slices;
  end

  extended_t extended;
  assign extended = extend(in_header.ext);
  logic [KEY_BITS-1:0] key;
  selector #(
      .PRIMITIVE(PRIMITIVE)
  ) selector_i (
      .clk(clk),
      .slices(slices_q),
      .extended(extended),
      .copied(in_header.copied),
      .key(key)
  );

  logic hit;
  logic [INDEX_BITS-1:0] found;
  tcam #(
      .ENTRIES(ENTRIES),
      .PRIMITIVE(PRIMITIVE)
  ) tcam_i (
      .clk(clk),
      .key(key),
      .bank(bank),
      .hit(hit),
      .index(found),
      .write(write),
      .write_last(write_last),
      .row(row),
      .address(address),
      .bits(bits),
      .clearing(clearing)
  );

  action_t found_action;
  action_memory #(
      .ENTRIES(ENTRIES)
  ) memory_i (
      .clk(clk),
      .read_at(found),
      .read_data(found_action),
      .write(act),
      .write_at(index),
      .write_data(action)
  );

  logic [SEARCH_CYCLES-1:0] valid;
  logic [1:0] hit_q;
  logic [1:0][INDEX_BITS-1:0] found_q;
  always_ff @(posedge clk) begin
    valid <= rst ? '0 : {valid[SEARCH_CYCLES-2:0], in_valid};
    hit_q <= {hit_q[0], hit};
    found_q <= {found_q[0], found};
  end

  header_t waited;
  delay_line #(
      .WIDTH($bits(header_t)),
      .CYCLES(SEARCH_CYCLES),
      .PRIMITIVE(PRIMITIVE)
  ) wait_i (
      .clk(clk),
      .rst(rst),
      .in_data(in_header),
      .out_data(waited)
  );

  assign hit_valid = valid[SEARCH_CYCLES-1] && hit_q[1] && !waited.done;
  assign hit_index = found_q[1];

  action_unit #(
      .PPU(PPU),
      .PRIMITIVE(PRIMITIVE)
  ) action_i (
      .clk(clk),
      .rst(rst),
      .in_valid(valid[SEARCH_CYCLES-1]),
      .in_header(waited),
      .hit(hit_q[1]),
      .action(found_action),
      .out_valid(out_valid),
      .out_header(out_header)
  );
endmodule

`default_nettype wire
