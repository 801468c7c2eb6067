// SPDX-License-Identifier: Apache-2.0
// Applies the summed changes to the checksums (RFC 1624, equation 3), and reduces the header to the record
// for the deparser. Lengths in the record are those of a frame padded to 60 bytes.
//
// The upper-layer checksum is that of TCP, UDP or ICMPv6. A UDP checksum of 0 (none) stays 0, and one that
// becomes 0 is written as 0xffff. A checksum that the copied part of the frame does not contain stays, and so
// does one whose change is 0 in one's complement (0 or 0xffff).
//
// Latency: 3 cycles. Throughput: one header per cycle; there is no stall.

`default_nettype none

module checksum_fixer
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Number of PPUs before this module, 1 to 8.
    parameter int unsigned PPUS = 4,
    // Multiplexer cells, as in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire     clk,
    input  wire     rst,
    input  wire     in_valid,
    input  header_t in_header,
    output wire     out_valid,
    output record_t out_record
);
  localparam int unsigned FRAME_BITS = FRAME_BYTES * 8;
  // Minimum length of an Ethernet frame without FCS.
  localparam logic [7:0] FRAME_MIN = 8'd60;

  logic [2:0] valid;
  assign out_valid = valid[2];
  always_ff @(posedge clk) valid <= rst ? '0 : {valid[1:0], in_valid};

  // A word at any byte has one byte in an even place and one in an odd place. PAIRS pairs of such places are
  // selected separately, each by a tree of multiplexers.
  localparam int unsigned PAIRS = FRAME_BYTES / 2;
  // The IP header begins at byte 22 or before it, and each PPU inserts at most one edit's data in front of it. So
  // this is the last possible byte of its checksum.
  localparam int unsigned IP_MAX = 22 + PPUS * EDIT_DATA_BYTES + 11;
  localparam int unsigned IP_LAST = IP_MAX < FRAME_BYTES ? IP_MAX : FRAME_BYTES - 1;
  localparam int unsigned IP_PAIRS = IP_LAST / 2 + 1;

  function automatic logic [7:0] pick(input logic [FRAME_BITS-1:0] frame, input int odd, input logic [6:0] pair,
                                       input int pairs);
    logic [127:0][7:0] from;
    for (int p = 0; p < 128; p++) from[p] = p < pairs ? frame[FRAME_BITS-1-(2*(p < PAIRS ? p : 0)+odd)*8-:8] : 8'd0;
    for (int level = 0; level < 7; level++)
      for (int p = 0; p < 64 >> level; p++) from[p] = pair[level] ? from[2*p+1] : from[2*p];
    return from[0];
  endfunction

  function automatic logic [15:0] word_at(input logic [FRAME_BITS-1:0] frame, input logic [7:0] at,
                                           input int pairs);
    logic [7:0] even, odd;
    even = pick(frame, 0, at[7:1] + 7'(at[0]), pairs);
    odd = pick(frame, 1, at[7:1], pairs);
    return at[0] ? {odd, even} : {even, odd};
  endfunction

  // Places of a word's two bytes in the frame; bit i is byte i.
  function automatic logic [FRAME_BYTES-1:0] places(input logic set, input logic [7:0] at);
    logic [6:0] even;
    even = at[7:1] + 7'(at[0]);
    for (int p = 0; p < PAIRS; p++) begin
      places[2*p] = set && even[6:3] == 4'(p / 8) && even[2:0] == 3'(p % 8);
      places[2*p+1] = set && at[7:4] == 4'(p / 8) && at[3:1] == 3'(p % 8);
    end
  endfunction

  function automatic logic [15:0] fixed(input logic [15:0] old, input logic [15:0] change);
    return ~add_ones(~old, change);
  endfunction

  function automatic logic changes(input logic [15:0] change);
    return change != 16'h0000 && change != 16'hffff;
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
    ip_q <= changes(in_header.ip_change) && in_header.ext.present[PRESENT_IPV4]
        && 9'(in_header.ext.l3_offset) + 9'd12 <= 9'(in_header.copied);
    l4_at_q <= l4_place;
    udp_q <= udp;
    l4_q <= changes(in_header.l4_change) && in_header.ext.l4_offset != 0
        && (in_header.ext.present[PRESENT_TCP] || udp
            || (in_header.ext.present[PRESENT_ICMP] && in_header.ext.present[PRESENT_IPV6]))
        && 9'(l4_place) + 9'd2 <= 9'(in_header.copied);
  end

  // Stage 2: new values, and the bytes that they replace.
  header_t h2;
  logic [FRAME_BYTES-1:0] ip_places_q, l4_places_q;
  logic [15:0] ip_new, l4_old, l4_fixed, l4_new;
  // Byte of an even place, byte of an odd place.
  logic [15:0] ip_new_q, l4_new_q;
  logic [7:0] copied, copied_q;
  logic [15:0] payload_bytes, payload_bytes_q;
  always_comb begin
    // Bytes behind the end of a frame are 0, so padding changes only lengths. A header without a byte is not
    // sent.
    copied = h1.copied;
    payload_bytes = h1.ext.frame_bytes > 16'(RAW_BYTES) ? h1.ext.frame_bytes - 16'(RAW_BYTES) : 16'd0;
    if (h1.copied != 0 && 17'(h1.copied) + 17'(payload_bytes) < 17'(FRAME_MIN)) begin
      if (payload_bytes == 0) copied = FRAME_MIN;
      else payload_bytes = 16'(FRAME_MIN) - 16'(h1.copied);
    end
    ip_new = fixed(word_at(h1.ext.frame, ip_at_q, IP_PAIRS), h1.ip_change);
    l4_old = word_at(h1.ext.frame, l4_at_q, PAIRS);
    l4_fixed = fixed(l4_old, h1.l4_change);
    l4_new = udp_q && l4_fixed == 0 ? 16'hffff : l4_fixed;
  end
  always_ff @(posedge clk) begin
    h2 <= h1;
    copied_q <= copied;
    payload_bytes_q <= payload_bytes;
    ip_places_q <= places(ip_q, ip_at_q);
    ip_new_q <= ip_at_q[0] ? {ip_new[7:0], ip_new[15:8]} : ip_new;
    l4_places_q <= places(l4_q && !(udp_q && l4_old == 0), l4_at_q);
    l4_new_q <= l4_at_q[0] ? {l4_new[7:0], l4_new[15:8]} : l4_new;
  end

  // Stage 3: writes them.
  record_t n3, r3;
  wire [FRAME_BITS-1:0] frame;
  for (genvar i = 0; i < FRAME_BYTES; i++) begin : gen_byte
    wire [7:0] old = h2.ext.frame[FRAME_BITS-1-i*8-:8];
    wire [7:0] l4 = l4_new_q[15-(i%2)*8-:8];
    if (i <= IP_LAST) begin : gen_both
      assign frame[FRAME_BITS-1-i*8-:8] = l4_places_q[i] ? l4 : ip_places_q[i] ? ip_new_q[15-(i%2)*8-:8] : old;
    end else begin : gen_one
      mux2 #(.PRIMITIVE(PRIMITIVE)) mux_i (
          .select(l4_places_q[i]),
          .from({l4, old}),
          .selected(frame[FRAME_BITS-1-i*8-:8])
      );
    end
  end
  always_comb begin
    n3.frame = frame;
    n3.copied = copied_q;
    n3.payload_bytes = payload_bytes_q;
    n3.output_kind = h2.output_kind;
    n3.port = h2.port;
    n3.in_port = h2.ext.in_port;
    n3.ppu = h2.ppu;
    n3.drop = h2.drop;
  end
  always_ff @(posedge clk) r3 <= n3;
  assign out_record = r3;

  wire _unused = &{1'b0, h2, ip_places_q};
endmodule

`default_nettype wire
