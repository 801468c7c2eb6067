// SPDX-License-Identifier: Apache-2.0
// Types that travel between the modules of the pipeline. Byte 0 of a frame is the most significant byte of a
// vector, as in the layout of the extended header.

package pipeline_pkg;
  import device_pkg::*;

  // Bits and bytes of the bus.
  localparam int unsigned BUS_BITS = 512;
  localparam int unsigned BUS_BYTES = BUS_BITS / 8;

  // Entries that one memory cell of the TCAM writes together, key bits that address it, and cells per row.
  localparam int unsigned ROW_ENTRIES = 14;
  localparam int unsigned CHUNK_BITS = 5;
  localparam int unsigned CHUNKS = (KEY_BITS + CHUNK_BITS - 1) / CHUNK_BITS;
  // Key bits of the last chunk. Its address bit above them selects one of two banks.
  localparam int unsigned LAST_BITS = KEY_BITS - (CHUNKS - 1) * CHUNK_BITS;

  // Reason why a PPU drops a packet.
  localparam logic [1:0] DROP_NONE = 2'd0;
  localparam logic [1:0] DROP_BAD_EDIT = 2'd1;
  localparam logic [1:0] DROP_TTL = 2'd2;

  // What travels of the extended header. `extend` makes the whole of it.
  typedef struct packed {
    logic [7:0]  in_port;
    logic [15:0] metadata;
    logic [15:0] eth_type;
    logic [15:0] vlan;
    logic [7:0]  ip_tos;
    logic [7:0]  ip_proto;
    logic [7:0]  present;
    logic [7:0]  l3_offset;
    logic [7:0]  l4_offset;
    logic [15:0] frame_bytes;
    logic [63:0] timestamp;
    logic [FRAME_BYTES*8-1:0] frame;
  } parsed_t;

  // The extended header: physical port and port are equal, other fields are always 0.
  function automatic extended_t extend(input parsed_t parsed);
    extend = '0;
    extend.in_port = 32'(parsed.in_port);
    extend.in_phy_port = 32'(parsed.in_port);
    extend.metadata = 64'(parsed.metadata);
    extend.eth_type = parsed.eth_type;
    extend.vlan = parsed.vlan;
    extend.ip_tos = parsed.ip_tos;
    extend.ip_proto = parsed.ip_proto;
    extend.present = parsed.present;
    extend.l3_offset = parsed.l3_offset;
    extend.l4_offset = parsed.l4_offset;
    extend.frame_bytes = parsed.frame_bytes;
    extend.timestamp = parsed.timestamp;
    extend.frame = parsed.frame;
  endfunction

  // A packet's header on its way through the PPUs.
  typedef struct packed {
    parsed_t     ext;
    logic [7:0]  copied;         // bytes of the frame in `ext.frame`, at most FRAME_BYTES
    logic [1:0]  output_kind;    // OUTPUT_*
    logic [7:0]  port;           // port of OUTPUT_PORT
    logic [7:0]  ppu;            // PPU that set the output, 255 if none did
    logic        done;           // later PPUs do not change the packet
    logic [1:0]  drop;           // DROP_*
    logic [15:0] ip_change;      // one's complement sum by which the IPv4 header checksum must change
    logic [15:0] l4_change;      // the same of the upper-layer checksum
  } header_t;

  // What the deparser needs of a header. A frame of less than 60 bytes has the length to which it is padded.
  typedef struct packed {
    logic [FRAME_BYTES*8-1:0] frame;
    logic [7:0]               copied;
    logic [15:0]              payload_bytes;
    logic [1:0]               output_kind;
    logic [7:0]               port;
    logic [7:0]               in_port;
    logic [7:0]               ppu;
    logic [1:0]               drop;
  } record_t;

  // Number of the last byte of a beat whose keep bits are contiguous, by halving.
  function automatic logic [5:0] last_byte(input logic [BUS_BYTES-1:0] keep);
    last_byte = '0;
    for (int bit_at = 5; bit_at >= 0; bit_at--) last_byte[bit_at] = keep[last_byte | 6'(1 << bit_at)];
  endfunction

  // Adds two 16-bit numbers in one's complement.
  function automatic logic [15:0] add_ones(input logic [15:0] a, input logic [15:0] b);
    logic [16:0] sum;
    sum = {1'b0, a} + {1'b0, b};
    return sum[15:0] + {15'b0, sum[16]};
  endfunction
endpackage
