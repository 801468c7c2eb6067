// SPDX-License-Identifier: Apache-2.0
// Makes the key of a table: slices of the extended header, then one presence bit for each slice.
//
// Latency: 2 cycles. Throughput: one key per cycle. The configuration travels with the packet, so a change
// concerns a packet wholly or not at all.

`default_nettype none

module selector
  import device_pkg::*;
  import pipeline_pkg::*;
(
    input  wire                         clk,
    // The last element is the key's first slice.
    input  key_slice_t [KEY_SLICES-1:0] slices,
    input  header_t                     header,
    output logic [KEY_BITS-1:0]         key
);
  localparam int unsigned WORDS = EXTENDED_BYTES / 4;
  localparam int unsigned EXTENDED_BITS = EXTENDED_BYTES * 8;
  localparam logic [9:0] FRAME_AT = 10'(FRAME_BYTE);

  for (genvar s = 0; s < KEY_SLICES; s++) begin : gen_slice
    key_slice_t slice;
    assign slice = slices[s];

    // Stage 1: place of the slice in the extended header, and whether the packet contains it.
    logic [9:0] at, slice_end, limit;
    logic present;
    always_comb begin
      case (slice.base)
        2'(BASE_EXTENDED): at = 10'(slice.offset);
        2'(BASE_FRAME): at = FRAME_AT + 10'(slice.offset);
        2'(BASE_L3): at = FRAME_AT + 10'(header.ext.l3_offset) + 10'(slice.offset);
        default: at = FRAME_AT + 10'(header.ext.l4_offset) + 10'(slice.offset);
      endcase
      slice_end = at + 10'(slice.bytes);
      limit = FRAME_AT + 10'(header.copied);
      present = slice.bytes == 0
             || (slice_end <= limit && (slice.base != 2'(BASE_L4) || header.ext.l4_offset != 0));
    end

    // The 8 bytes that contain the slice: two neighbouring words, one of them at an even place.
    logic [31:0] even, odd;
    always_comb begin
      even = '0;
      odd = '0;
      for (int w = 0; w < WORDS; w += 2) begin
        if (8'((at[9:2] + 8'd1) >> 1) == 8'(w / 2)) even = header.ext[EXTENDED_BITS-1-w*32-:32];
        if (at[9:3] == 7'(w / 2)) odd = header.ext[EXTENDED_BITS-1-(w+1)*32-:32];
      end
    end

    logic [31:0] even_q, odd_q;
    logic [2:0] shift_q, bytes_q;
    logic present_q;
    always_ff @(posedge clk) begin
      even_q <= even;
      odd_q <= odd;
      shift_q <= at[2:0];
      bytes_q <= slice.bytes;
      present_q <= present;
    end

    // Stage 2: rotates and clears what does not belong to the slice.
    logic [63:0] both;
    logic [31:0] found;
    always_comb begin
      both = shift_q[2] ? {odd_q, even_q} : {even_q, odd_q};
      found = 32'((both << {shift_q[1:0], 3'b000}) >> 32);
      for (int b = 0; b < SLICE_BYTES; b++)
        if (!present_q || 3'(b) >= bytes_q) found[(SLICE_BYTES-1-b)*8+:8] = 8'd0;
    end
    always_ff @(posedge clk) begin
      key[KEY_SLICES+s*32+:32] <= found;
      key[s] <= present_q;
    end
  end

  wire _unused = &{1'b0, header};
endmodule

`default_nettype wire
