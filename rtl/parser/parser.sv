// SPDX-License-Identifier: Apache-2.0
// Locates headers in four stages: Ethernet, VLAN, IP, upper layer. Fills the parsed fields of the extended
// header; the rules are those of the software's header walk (crates/wire).
//
// Differences from the software: at most 2 VLAN tags are skipped (8 in software), a frame with LLC and SNAP
// counts as LLC, and IPv6 extension headers are not skipped, so such packets have no upper-layer header.
//
// Latency: 4 cycles. Throughput: one header per cycle; there is no stall.

`default_nettype none

module parser
  import device_pkg::*;
  import pipeline_pkg::*;
(
    input  wire     clk,
    input  wire     rst,
    input  wire     in_valid,
    input  header_t in_header,
    output wire     out_valid,
    output header_t out_header
);
  localparam int unsigned FRAME_BITS = FRAME_BYTES * 8;
  localparam logic [15:0] TYPE_IPV4 = 16'h0800, TYPE_IPV6 = 16'h86dd, TYPE_LLC = 16'h05ff;
  localparam logic [7:0] ICMP = 8'd1, TCP = 8'd6, UDP = 8'd17, ICMPV6 = 8'd58, SCTP = 8'd132;

  function automatic logic is_tag(input logic [15:0] eth_type);
    return eth_type == 16'h8100 || eth_type == 16'h88a8 || eth_type == 16'h9100;
  endfunction

  // 16 bits of the frame at a fixed byte.
  function automatic logic [15:0] word(input logic [FRAME_BITS-1:0] frame, input int unsigned at);
    return frame[FRAME_BITS-1-at*8-:16];
  endfunction

  logic [3:0] valid;
  header_t h1, h2, h3, h4;
  assign out_valid  = valid[3];
  assign out_header = h4;
  always_ff @(posedge clk) valid <= rst ? '0 : {valid[2:0], in_valid};

  // Stage 1: Ethernet. Decides how many whole tags there are.
  header_t n1;
  logic [1:0] tags_q;
  wire first_tag = is_tag(word(in_header.ext.frame, 12)) && in_header.copied >= 8'd18;
  wire second_tag = is_tag(word(in_header.ext.frame, 16)) && in_header.copied >= 8'd22;
  always_comb begin
    n1 = in_header;
    n1.ext.present[PRESENT_ETHERNET] = 1'b1;
  end
  always_ff @(posedge clk) begin
    h1 <= n1;
    tags_q <= {first_tag && second_tag, first_tag};
  end

  // Stage 2: VLAN tags and the EtherType behind them.
  header_t n2;
  logic [15:0] inner_type;
  always_comb begin
    n2 = h1;
    inner_type = tags_q[1] ? word(h1.ext.frame, 20) : tags_q[0] ? word(h1.ext.frame, 16) : word(h1.ext.frame, 12);
    n2.ext.eth_type = inner_type < 16'h0600 ? TYPE_LLC : inner_type;
    n2.ext.l3_offset = tags_q[1] ? 8'd22 : tags_q[0] ? 8'd18 : 8'd14;
    n2.ext.present[PRESENT_VLAN] = tags_q[0];
    n2.ext.vlan = tags_q[0] ? (word(h1.ext.frame, 14) & 16'hefff) | 16'h1000 : 16'd0;
  end
  always_ff @(posedge clk) h2 <= n2;

  // Stage 3: IP. `room` is what the frame has from L3 on; `l4_bytes` what the datagram has from L4 on.
  header_t n3;
  logic [159:0] ip;
  logic [15:0] room, total, l4_bytes;
  logic [7:0] ip_header_bytes;
  logic is_v4, is_v6, has_upper;
  logic has_upper_q;
  logic [15:0] l4_bytes_q;
  logic [7:0] l4_at_q;
  always_comb begin
    ip = h2.ext.l3_offset == 8'd22 ? h2.ext.frame[FRAME_BITS-1-22*8-:160]
       : h2.ext.l3_offset == 8'd18 ? h2.ext.frame[FRAME_BITS-1-18*8-:160]
       : h2.ext.frame[FRAME_BITS-1-14*8-:160];
    room = h2.ext.frame_bytes - 16'(h2.ext.l3_offset);
    ip_header_bytes = h2.ext.eth_type == TYPE_IPV4 ? {2'b0, ip[155:152], 2'b0} : 8'd40;
    is_v4 = h2.ext.eth_type == TYPE_IPV4 && room >= 16'd20 && ip[159:156] == 4'd4
         && ip_header_bytes >= 8'd20 && room >= 16'(ip_header_bytes) && ip[143:128] >= 16'(ip_header_bytes);
    is_v6 = h2.ext.eth_type == TYPE_IPV6 && room >= 16'd40 && ip[159:156] == 4'd6;
    // A length near the maximum must not wrap around.
    total = is_v4 ? ip[143:128] : ip[127:112] > 16'hff00 ? 16'hffff : ip[127:112] + 16'd40;
    l4_bytes = (room < total ? room : total) - 16'(ip_header_bytes);
    // Later fragments have no upper-layer header.
    has_upper = is_v6 || (is_v4 && ip[108:96] == 13'd0);
    n3 = h2;
    n3.ext.present[PRESENT_IPV4] = is_v4;
    n3.ext.present[PRESENT_IPV6] = is_v6;
    n3.ext.ip_tos = is_v4 ? ip[151:144] : is_v6 ? ip[155:148] : 8'd0;
    n3.ext.ip_proto = is_v4 ? ip[87:80] : is_v6 ? ip[111:104] : 8'd0;
  end
  always_ff @(posedge clk) begin
    h3 <= n3;
    has_upper_q <= has_upper;
    l4_bytes_q <= l4_bytes;
    l4_at_q <= h2.ext.l3_offset + ip_header_bytes;
  end

  // Stage 4: upper layer.
  header_t n4;
  logic tcp, udp, icmp, sctp;
  always_comb begin
    tcp = has_upper_q && h3.ext.ip_proto == TCP && l4_bytes_q >= 16'd20;
    udp = has_upper_q && h3.ext.ip_proto == UDP && l4_bytes_q >= 16'd8;
    sctp = has_upper_q && h3.ext.ip_proto == SCTP && l4_bytes_q >= 16'd12;
    icmp = has_upper_q && l4_bytes_q >= 16'd4
        && h3.ext.ip_proto == (h3.ext.present[PRESENT_IPV6] ? ICMPV6 : ICMP);
    n4 = h3;
    n4.ext.present[PRESENT_TCP] = tcp;
    n4.ext.present[PRESENT_UDP] = udp;
    n4.ext.present[PRESENT_ICMP] = icmp;
    n4.ext.present[PRESENT_SCTP] = sctp;
    n4.ext.l4_offset = tcp || udp || sctp || icmp ? l4_at_q : 8'd0;
  end
  always_ff @(posedge clk) h4 <= n4;

  wire _unused = &{1'b0, ip};
endmodule

`default_nettype wire
