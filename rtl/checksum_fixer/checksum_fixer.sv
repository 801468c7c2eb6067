// SPDX-License-Identifier: Apache-2.0
// Applies the summed changes to the checksums (RFC 1624, equation 3), and reduces the header to the record
// for the deparser.
//
// The upper-layer checksum is that of TCP, UDP or ICMPv6. A UDP checksum of 0 (none) stays 0, and one that
// becomes 0 is written as 0xffff. A checksum that the copied part of the frame does not contain stays.
//
// Latency: 3 cycles. Throughput: one header per cycle; there is no stall.

`default_nettype none

module checksum_fixer
  import device_pkg::*;
  import pipeline_pkg::*;
(
    input  wire     clk,
    input  wire     rst,
    input  wire     in_valid,
    input  header_t in_header,
    output wire     out_valid,
    output record_t out_record
);
  localparam int unsigned FRAME_BITS = FRAME_BYTES * 8;

  logic [2:0] valid;
  assign out_valid = valid[2];
  always_ff @(posedge clk) valid <= rst ? '0 : {valid[1:0], in_valid};

  function automatic logic [15:0] word_at(input logic [FRAME_BITS-1:0] frame, input logic [7:0] at);
    logic [15:0] found;
    found = '0;
    for (int i = 0; i < FRAME_BYTES - 1; i++)
      if (at == 8'(i)) found |= frame[FRAME_BITS-1-i*8-:16];
    return found;
  endfunction

  function automatic logic [15:0] fixed(input logic [15:0] old, input logic [15:0] change);
    return ~add_ones(~old, change);
  endfunction

  // Stage 1: places of the checksums.
  header_t h1;
  logic ip_q, l4_q, udp_q;
  logic [7:0] ip_at_q, l4_at_q;
  logic [7:0] l4_place;
  logic udp;
  always_comb begin
    udp = in_header.ext.present[PRESENT_UDP];
    l4_place = in_header.ext.l4_offset + (in_header.ext.present[PRESENT_TCP] ? 8'd16 : udp ? 8'd6 : 8'd2);
  end
  always_ff @(posedge clk) begin
    h1 <= in_header;
    ip_at_q <= in_header.ext.l3_offset + 8'd10;
    ip_q <= in_header.ip_change != 0 && in_header.ext.present[PRESENT_IPV4]
        && 9'(in_header.ext.l3_offset) + 9'd12 <= 9'(in_header.copied);
    l4_at_q <= l4_place;
    udp_q <= udp;
    l4_q <= in_header.l4_change != 0 && in_header.ext.l4_offset != 0
        && (in_header.ext.present[PRESENT_TCP] || udp
            || (in_header.ext.present[PRESENT_ICMP] && in_header.ext.present[PRESENT_IPV6]))
        && 9'(l4_place) + 9'd2 <= 9'(in_header.copied);
  end

  // Stage 2: new values.
  header_t h2;
  logic ip2_q, l42_q;
  logic [7:0] ip_at2_q, l4_at2_q;
  logic [15:0] ip_new_q, l4_new_q, l4_old, l4_fixed;
  always_comb begin
    l4_old = word_at(h1.ext.frame, l4_at_q);
    l4_fixed = fixed(l4_old, h1.l4_change);
  end
  always_ff @(posedge clk) begin
    h2 <= h1;
    ip2_q <= ip_q;
    ip_at2_q <= ip_at_q;
    ip_new_q <= fixed(word_at(h1.ext.frame, ip_at_q), h1.ip_change);
    l42_q <= l4_q && !(udp_q && l4_old == 0);
    l4_at2_q <= l4_at_q;
    l4_new_q <= udp_q && l4_fixed == 0 ? 16'hffff : l4_fixed;
  end

  // Stage 3: writes them.
  record_t n3, r3;
  always_comb begin
    n3.frame = h2.ext.frame;
    for (int i = 0; i < FRAME_BYTES - 1; i++) begin
      if (ip2_q && ip_at2_q == 8'(i)) n3.frame[FRAME_BITS-1-i*8-:16] = ip_new_q;
      if (l42_q && l4_at2_q == 8'(i)) n3.frame[FRAME_BITS-1-i*8-:16] = l4_new_q;
    end
    n3.copied = h2.copied;
    n3.payload_bytes = h2.payload_bytes;
    n3.output_kind = h2.output_kind;
    n3.port = h2.port;
    n3.in_port = h2.ext.in_port[7:0];
    n3.ppu = h2.ppu;
    n3.drop = h2.drop;
  end
  always_ff @(posedge clk) r3 <= n3;
  assign out_record = r3;

  wire _unused = &{1'b0, h2};
endmodule

`default_nettype wire
