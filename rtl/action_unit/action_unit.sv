// SPDX-License-Identifier: Apache-2.0
// Executes an action word on a header: edit, TTL, metadata, output.
//
// The edit replaces `remove` bytes at an offset by `insert` bytes of data. All later bytes move by one shift
// of -16 to +12 bytes. TTL and checksum changes are computed from the bytes before the edit. Changes of
// checksums are only summed up; `checksum_fixer` applies them behind the last PPU. A packet that an action
// does not fit is dropped as `bad_edit`; `action.rs` lists the reasons.
//
// Latency: 4 cycles. Throughput: one header per cycle; there is no stall.

`default_nettype none

module action_unit
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Number of this PPU, 0 to 254.
    parameter int unsigned PPU = 0,
    // Multiplexer cells, as in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire     clk,
    input  wire     rst,
    input  wire     in_valid,
    input  header_t in_header,
    // The header has hit an entry with this action.
    input  wire     hit,
    input  action_t action,
    output wire     out_valid,
    output header_t out_header
);
  localparam int unsigned FRAME_BITS = FRAME_BYTES * 8;
  localparam int unsigned DATA_BITS = EDIT_DATA_BYTES * 8;
  // A line has 16 bytes; the frame's part has LINES of them.
  localparam int unsigned LINES = FRAME_BYTES / 16;
  // The IP header begins at byte 22 or before it, and each PPU inserts at most one edit's data in front of it. So
  // these are the last possible places of a TTL before and after the edit, and the lines before the edit.
  localparam int unsigned L3_MAX = 22 + PPU * EDIT_DATA_BYTES;
  localparam int unsigned TTL_LAST = L3_MAX + 8 + EDIT_DATA_BYTES < FRAME_BYTES ? L3_MAX + 8 + EDIT_DATA_BYTES
                                                                               : FRAME_BYTES - 1;
  localparam int unsigned TTL_LINES = (L3_MAX + 8) / 16 + 1 < LINES ? (L3_MAX + 8) / 16 + 1 : LINES;
  localparam int unsigned TTL_FIRST = 7;

  logic [3:0] valid;
  assign out_valid = valid[3];
  always_ff @(posedge clk) valid <= rst ? '0 : {valid[2:0], in_valid};

  // Protocol numbers of IPv6 extension headers.
  function automatic logic is_extension(input logic [7:0] proto);
    return proto == 8'd0 || proto == 8'd43 || proto == 8'd44 || proto == 8'd51
        || proto == 8'd60 || proto == 8'd135;
  endfunction

  // Stage 1: where the edit is, whether it fits, and where the TTL is.
  typedef struct packed {
    header_t              header;
    logic                 edit;     // the edit is executed
    logic                 ttl;      // the TTL is decremented
    logic [7:0]           at;       // first byte of the edit
    logic [7:0]           end_at;   // first byte after the inserted ones; 255 without an edit
    logic [7:0]           ttl_at;   // byte of the TTL before the edit
    logic [4:0]           shift;    // 12 + remove - insert
    logic [DATA_BITS-1:0] data;
    logic [3:0]           insert;
    logic                 sum_ip;
    logic                 sum_l4;
  } stage_t;
  stage_t s1, n1;
  logic [9:0] at, end_at, longer, l3_at, l4_at, ttl_at;
  logic run, edits, fits, cuts, touches_ttl, hidden, bad, is_ip, hairpin;
  always_comb begin
    run = hit && !in_header.done;
    edits = action.insert != 0 || action.remove != 0;
    l3_at = 10'(in_header.ext.l3_offset);
    l4_at = 10'(in_header.ext.l4_offset);
    is_ip = in_header.ext.present[PRESENT_IPV4] || in_header.ext.present[PRESENT_IPV6];
    ttl_at = l3_at + (in_header.ext.present[PRESENT_IPV4] ? 10'd8 : 10'd7);
    at = 10'(action.offset);
    if (action.base == 2'(EDIT_BASE_L3)) at += l3_at;
    if (action.base == 2'(EDIT_BASE_L4)) at += l4_at;
    end_at = at + 10'(action.remove);
    longer = 10'(in_header.copied) + 10'(action.insert) - 10'(action.remove);
    fits = end_at <= 10'(in_header.copied) && longer <= 10'(FRAME_BYTES)
        && (action.base != 2'(EDIT_BASE_L4) || l4_at != 0);
    // An edit must not remove the first byte of a header together with bytes before it, and not touch a TTL
    // that is decremented.
    cuts = (is_ip && at < l3_at && end_at > l3_at) || (l4_at != 0 && at < l4_at && end_at > l4_at);
    touches_ttl = action.dec_ttl && is_ip && (at == ttl_at || (at < ttl_at && end_at > ttl_at));
    // Behind IPv6 extension headers, the parser does not find the checksum that would have to change.
    hidden = action.fix_l4 && in_header.ext.present[PRESENT_IPV6]
          && is_extension(in_header.ext.ip_proto);
    bad = (edits && (!fits || cuts || touches_ttl || hidden)) || (action.dec_ttl && !is_ip);
    // A packet does not leave by its ingress port, unless the action asks for this port.
    hairpin = action.output_kind == 2'(OUTPUT_PORT) && !action.to_ingress
           && action.port == in_header.ext.in_port;
    n1 = '0;
    n1.header = in_header;
    n1.edit = run && edits && !bad;
    n1.ttl = run && action.dec_ttl && !bad;
    n1.at = at[7:0];
    n1.end_at = n1.edit ? at[7:0] + 8'(action.insert) : 8'hff;
    n1.ttl_at = ttl_at[7:0];
    n1.shift = 5'd12 + action.remove - 5'(action.insert);
    n1.data = action.data;
    n1.insert = action.insert;
    n1.sum_ip = run && action.fix_ip && fits;
    n1.sum_l4 = run && action.fix_l4 && fits;
    if (run) begin
      if (bad) begin
        n1.header.drop = DROP_BAD_EDIT;
        n1.header.done = 1'b1;
      end else begin
        if (action.write_metadata) n1.header.ext.metadata = action.metadata;
        if (action.output_kind != 2'(OUTPUT_KEEP)) begin
          n1.header.output_kind = hairpin ? 2'(OUTPUT_DISCARD) : action.output_kind;
          n1.header.port = action.to_ingress ? in_header.ext.in_port : action.port;
          n1.header.ppu = 8'(PPU);
        end
        n1.header.done = action.last || action.output_kind == 2'(OUTPUT_DISCARD);
      end
    end
  end
  always_ff @(posedge clk) s1 <= n1;

  // Byte `lane` of one of the first `lines` lines, by a tree of multiplexers; 0 behind them.
  function automatic logic [7:0] pick(
      input logic [FRAME_BITS-1:0] frame, input int lane, input logic [3:0] line, input int lines
  );
    logic [15:0][7:0] from;
    for (int l = 0; l < 16; l++)
      from[l] = l < lines ? frame[FRAME_BITS-1-((l < LINES ? l : 0)*16+lane)*8-:8] : 8'd0;
    for (int level = 0; level < 4; level++)
      for (int l = 0; l < 8 >> level; l++) from[l] = line[level] ? from[2*l+1] : from[2*l];
    return from[0];
  endfunction

  // Bytes of the frame before `at`; bit i is byte i.
  function automatic logic [FRAME_BYTES-1:0] before_place(input logic [7:0] first);
    for (int l = 0; l < LINES; l++)
      for (int i = 0; i < 16; i++)
        before_place[l*16+i] = 4'(l) < first[7:4] || (4'(l) == first[7:4] && 4'(i) < first[3:0]);
  endfunction

  // Stage 2: shift by 0 to 15 bytes; bytes before the edit and data, each in its lane: the place modulo 16; TTL;
  // source of each byte.
  localparam logic [1:0] KEPT = 2'd0, PUT = 2'd1, SHIFTED = 2'd2, SHIFTED_BY_LINE = 2'd3;
  // Bytes behind this number come from behind the header's end.
  localparam int unsigned SHIFTED_BYTES = FRAME_BYTES + 12;
  stage_t s2, n2;
  // Byte 12 is the frame's first.
  wire [SHIFTED_BYTES*8-1:0] shifted;
  byte_shift #(
      .BYTES(SHIFTED_BYTES),
      .PRIMITIVE(PRIMITIVE)
  ) shift_i (
      .by(s1.shift[3:0]),
      .from({96'd0, s1.header.ext.frame, 120'd0}),
      .shifted(shifted)
  );
  logic [SHIFTED_BYTES*8-1:0] shifted_q;
  // The ring of data and four free lanes, turned so that data begin in the lane of the edit's first byte.
  wire [127:0] ring;
  byte_shift #(
      .BYTES(16),
      .PRIMITIVE(PRIMITIVE)
  ) ring_i (
      .by(~s1.at[3:0]),
      .from({s1.data[DATA_BITS-9:0], 32'd0, s1.data, 32'd0}),
      .shifted(ring)
  );
  logic [127:0] old_q, put_q;
  logic [15:0] replaced;
  logic [7:0] ttl, ttl_q, move;
  logic [15:0][7:0] ttl_lanes;
  logic [FRAME_BYTES-1:0] kept, changed;
  logic [FRAME_BYTES-1:0][1:0] source, source_q;
  always_comb begin
    // Lanes whose byte is replaced by a byte of data.
    for (int i = 0; i < 16; i++) replaced[i] = 4'(i) - s1.at[3:0] < s1.insert;
    for (int i = 0; i < 16; i++) ttl_lanes[i] = pick(s1.header.ext.frame, i, s1.ttl_at[7:4], TTL_LINES);
    ttl = ttl_lanes[s1.ttl_at[3:0]];
    kept = before_place(s1.edit ? s1.at : 8'hff);
    changed = ~before_place(s1.end_at);
    for (int i = 0; i < FRAME_BYTES; i++)
      source[i] = changed[i] ? (s1.shift[4] ? SHIFTED_BY_LINE : SHIFTED) : kept[i] ? KEPT : PUT;
    // Offsets behind the edit move with their headers.
    move = s1.edit ? 8'd12 - 8'(s1.shift) : 8'd0;
    n2 = s1;
    n2.header.copied = s1.header.copied + move;
    if (s1.at < s1.header.ext.l3_offset) n2.header.ext.l3_offset = s1.header.ext.l3_offset + move;
    if (s1.header.ext.l4_offset != 0 && s1.at < s1.header.ext.l4_offset)
      n2.header.ext.l4_offset = s1.header.ext.l4_offset + move;
    if (s1.ttl_at > s1.at) n2.ttl_at = s1.ttl_at + move;
  end
  always_ff @(posedge clk) begin
    s2 <= n2;
    shifted_q <= shifted;
    source_q <= source;
    ttl_q <= ttl;
    for (int i = 0; i < 16; i++) begin
      // Lanes before the edit's first are in the next line.
      old_q[127-i*8-:8] <=
          replaced[i] ? pick(s1.header.ext.frame, i, s1.at[7:4] + 4'(4'(i) < s1.at[3:0]), LINES) : 8'd0;
      put_q[127-i*8-:8] <= replaced[i] ? ring[127-i*8-:8] : 8'd0;
    end
  end

  // Stage 3: shift by a line; the edited frame; sum of the changes in 16-bit words of the frame.
  header_t h3, n3;
  wire [FRAME_BITS-1:0] edited;
  for (genvar i = 0; i < FRAME_BYTES; i++) begin : gen_edited
    wire [3:0][7:0] from;
    assign from[SHIFTED] = shifted_q[SHIFTED_BYTES*8-1-i*8-:8];
    // Less than 16 bytes behind the header's end, there is nothing.
    if (i + 16 < SHIFTED_BYTES) assign from[SHIFTED_BY_LINE] = shifted_q[SHIFTED_BYTES*8-1-(i+16)*8-:8];
    else assign from[SHIFTED_BY_LINE] = 8'd0;
    assign from[KEPT] = s2.header.ext.frame[FRAME_BITS-1-i*8-:8];
    assign from[PUT] = put_q[127-(i%16)*8-:8];
    mux4 #(.PRIMITIVE(PRIMITIVE)) mux_i (
        .select(source_q[i]),
        .from(from),
        .selected(edited[FRAME_BITS-1-i*8-:8])
    );
  end
  logic [19:0] sum, sum_q;
  logic expired, ttl_write_q, sum_ip_q, sum_l4_q, odd_q;
  logic [7:0] ttl_new_q;
  logic [FRAME_BYTES-1:0] ttl_places_q;
  always_comb begin
    n3 = s2.header;
    n3.ext.frame = edited;
    sum = '0;
    for (int i = 0; i < 8; i++) sum += 20'(put_q[i*16+:16]) + 20'({4'd0, ~old_q[i*16+:16]});
    expired = s2.ttl && ttl_q <= 8'd1;
    if (expired) begin
      n3.drop = DROP_TTL;
      n3.done = 1'b1;
    end
  end
  always_ff @(posedge clk) begin
    h3 <= n3;
    sum_q <= sum;
    sum_ip_q <= s2.sum_ip;
    sum_l4_q <= s2.sum_l4;
    odd_q <= s2.header.ext.l3_offset[0];
    ttl_write_q <= s2.ttl;
    for (int i = 0; i < FRAME_BYTES; i++)
      ttl_places_q[i] <= i >= TTL_FIRST && i <= TTL_LAST && s2.ttl && s2.ttl_at[7:4] == 4'(i / 16) && s2.ttl_at[3:0] == 4'(i % 16);
    ttl_new_q <= ttl_q - 8'd1;
  end

  // Stage 4: TTL, VLAN word, changes of checksums.
  header_t n4, h4;
  logic [15:0] change, tpid;
  logic has_tag;
  wire [FRAME_BITS-1:0] frame;
  for (genvar i = 0; i < FRAME_BYTES; i++) begin : gen_ttl
    mux2 #(.PRIMITIVE(PRIMITIVE && i >= TTL_FIRST && i <= TTL_LAST)) mux_i (
        .select(i >= TTL_FIRST && i <= TTL_LAST && ttl_places_q[i]),
        .from({ttl_new_q, h3.ext.frame[FRAME_BITS-1-i*8-:8]}),
        .selected(frame[FRAME_BITS-1-i*8-:8])
    );
  end
  always_comb begin
    n4 = h3;
    n4.ext.frame = frame;
    change = add_ones(sum_q[15:0], {12'd0, sum_q[19:16]});
    if (odd_q) change = {change[7:0], change[15:8]};
    if (sum_ip_q) n4.ip_change = add_ones(h3.ip_change, change);
    // The TTL is the high byte of its word: the word falls by 0x0100.
    if (ttl_write_q && h3.ext.present[PRESENT_IPV4]) n4.ip_change = add_ones(n4.ip_change, 16'hfeff);
    if (sum_l4_q) n4.l4_change = add_ones(h3.l4_change, change);
    // The parser's rule for the outermost tag, applied again.
    tpid = h3.ext.frame[FRAME_BITS-1-12*8-:16];
    has_tag = h3.copied >= 8'd18 && (tpid == 16'h8100 || tpid == 16'h88a8 || tpid == 16'h9100);
    n4.ext.present[PRESENT_VLAN] = has_tag;
    n4.ext.vlan = has_tag ? (h3.ext.frame[FRAME_BITS-1-14*8-:16] & 16'hefff) | 16'h1000 : 16'd0;
  end
  always_ff @(posedge clk) h4 <= n4;
  assign out_header = h4;

  wire _unused = &{1'b0, action.reserved, s2.edit, s2.shift, s2.at, s2.end_at, s2.data, s2.insert, at[9:8],
                      ttl_at[9:8]};
endmodule

`default_nettype wire
