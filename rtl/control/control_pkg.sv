// SPDX-License-Identifier: Apache-2.0
// Datagrams of the controller processing logic: Ethernet, IPv4 without options, UDP, message.

package control_pkg;
  import device_pkg::*;
  import pipeline_pkg::*;

  // Position of the message, of its body, and of the frame in a Packet_in or Packet_out.
  localparam int unsigned MESSAGE_BYTE = 42;
  localparam int unsigned BODY_BYTE = MESSAGE_BYTE + MESSAGE_HEADER_BYTES;
  localparam int unsigned PACKET_BYTE = BODY_BYTE + 8;
  // Maximum length of a frame with a message.
  localparam int unsigned CONTROL_FRAME_MAX = MESSAGE_BYTE + MESSAGE_BYTES_MAX;
  // Maximum length of a frame in a Packet_in or Packet_out.
  localparam int unsigned PACKET_BYTES_MAX = MESSAGE_BYTES_MAX - MESSAGE_HEADER_BYTES - 8;

  // Outcome of a frame from the control plane: element of CONTROL_COUNTERS, 0 for none.
  typedef logic [4:0] outcome_t;
  localparam outcome_t OUTCOME_NONE = 5'd0;
  localparam outcome_t OUTCOME_BAD_FRAME = 5'(COUNTER_CONTROL_BAD_FRAME - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_FOREIGN = 5'(COUNTER_CONTROL_FOREIGN - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_SPOOFED = 5'(COUNTER_CONTROL_SPOOFED - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_CHECKSUM = 5'(COUNTER_CONTROL_CHECKSUM - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_LENGTH = 5'(COUNTER_CONTROL_LENGTH - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_VERSION = 5'(COUNTER_CONTROL_VERSION - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_TYPE = 5'(COUNTER_CONTROL_TYPE - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_VALUE = 5'(COUNTER_CONTROL_VALUE - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_NO_ROOM = 5'(COUNTER_CONTROL_NO_ROOM - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_STALE = 5'(COUNTER_CONTROL_STALE - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_DUPLICATE = 5'(COUNTER_CONTROL_DUPLICATE - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_LATE = 5'(COUNTER_CONTROL_LATE - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_FLOW_MOD = 5'(COUNTER_CONTROL_FLOW_MOD - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_REQUEST = 5'(COUNTER_CONTROL_REQUEST - COUNTER_CONTROL_RECEIVED);
  localparam outcome_t OUTCOME_PACKET_OUT = 5'(COUNTER_CONTROL_PACKET_OUT - COUNTER_CONTROL_RECEIVED);

  // Reverses the order of the bytes of a beat: AXI4-Stream has byte 0 in the lowest bits.
  function automatic logic [BUS_BITS-1:0] flip(input logic [BUS_BITS-1:0] data);
    for (int i = 0; i < BUS_BYTES; i++) flip[i*8+:8] = data[BUS_BITS-1-i*8-:8];
  endfunction

  // The keep bits of a beat with this number of bytes; more than 64 count as 64.
  function automatic logic [BUS_BYTES-1:0] keep_of(input logic [15:0] bytes);
    for (int i = 0; i < BUS_BYTES; i++) keep_of[i] = 16'(i) < bytes;
  endfunction

  // Reduces a sum to 16 bits in one's complement.
  function automatic logic [15:0] fold(input logic [31:0] sum);
    logic [16:0] once;
    once = {1'b0, sum[15:0]} + {1'b0, sum[31:16]};
    return once[15:0] + {15'b0, once[16]};
  endfunction

  // Sum of the words of two IPv4 addresses.
  function automatic logic [31:0] ip_pair(input logic [31:0] one, input logic [31:0] other);
    return 32'(one[31:16]) + 32'(one[15:0]) + 32'(other[31:16]) + 32'(other[15:0]);
  endfunction

  // Words of the IPv4 header without length and addresses: version, DF, TTL 64 and UDP.
  localparam logic [31:0] IP_WORDS = 32'h4500 + 32'h4000 + 32'h4011;

  // Sum that a UDP checksum covers. `body` is the sum of the words behind the message's header.
  function automatic logic [15:0] udp_sum(
      input logic [15:0] base, input logic [7:0] code, input logic [31:0] id, input logic [15:0] message_bytes,
      input logic [31:0] body
  );
    logic [31:0] header;
    header = 32'(base) + (32'(message_bytes) + 32'd8) * 32'd2 + 32'({8'(MESSAGE_VERSION), code})
        + 32'(message_bytes) + 32'(id[31:16]) + 32'(id[15:0]);
    return fold(header + 32'(fold(body)));
  endfunction

  // Headers of a datagram to the daemon, up to the message's body.
  function automatic logic [BODY_BYTE*8-1:0] datagram_header(
      input addresses_t a, input logic [7:0] code, input logic [31:0] id, input logic [15:0] message_bytes,
      input logic [15:0] base, input logic [15:0] sum
  );
    logic [15:0] total, ip_checksum, udp_checksum;
    total = message_bytes + 16'd28;
    ip_checksum = ~add_ones(base, total);
    udp_checksum = sum == '1 ? 16'hffff : ~sum;
    return {
      a.daemon_mac, a.device_mac, 16'h0800, 16'h4500, total, 16'h0000, 16'h4000, 16'h4011, ip_checksum, a.device_ip,
      a.daemon_ip, a.device_port, a.daemon_port, message_bytes + 16'd8, udp_checksum, 8'(MESSAGE_VERSION), code,
      message_bytes, id
    };
  endfunction
endpackage
