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
    input  extended_t                   extended,
    // Bytes of the frame in `extended.frame`.
    input  wire  [7:0]                  copied,
    output logic [KEY_BITS-1:0]         key
);
  localparam int unsigned WORDS = EXTENDED_BYTES / SLICE_BYTES;
  localparam int unsigned EXTENDED_BITS = EXTENDED_BYTES * 8;
  localparam logic [9:0] FRAME_AT = 10'(FRAME_BYTE);

  // Byte `lane` of the given word, by a tree of multiplexers. Words behind the last one are those before it,
  // because no result depends on them.
  function automatic logic [7:0] pick(input logic [EXTENDED_BITS-1:0] ext, input int lane, input logic [5:0] word);
    logic [63:0][7:0] from;
    for (int w = 0; w < 64; w++)
      from[w] = ext[EXTENDED_BITS-1-((w < WORDS ? w : w - 16)*4+lane)*8-:8];
    for (int level = 0; level < 6; level++)
      for (int w = 0; w < 32 >> level; w++) from[w] = word[level] ? from[2*w+1] : from[2*w];
    return from[0];
  endfunction

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
        2'(BASE_L3): at = FRAME_AT + 10'(extended.l3_offset) + 10'(slice.offset);
        default: at = FRAME_AT + 10'(extended.l4_offset) + 10'(slice.offset);
      endcase
      slice_end = at + 10'(slice.bytes);
      limit = FRAME_AT + 10'(copied);
      present = slice.bytes == 0
             || (slice_end <= limit && (slice.base != 2'(BASE_L4) || extended.l4_offset != 0));
    end

    // The 4 bytes, each in its lane: the place modulo 4. Lanes before the slice's first are in the next word.
    wire [5:0] next = at[7:2] + 6'd1;
    logic [SLICE_BYTES-1:0][7:0] lanes_q;
    logic [SLICE_BYTES-1:0] clear_q;
    logic [1:0] shift_q;
    logic present_q;
    always_ff @(posedge clk) begin
      for (int b = 0; b < SLICE_BYTES; b++) begin
        lanes_q[b] <= pick(extended, b, 2'(b) < at[1:0] ? next : at[7:2]);
        clear_q[b] <= !present || 3'(b) >= slice.bytes;
      end
      shift_q <= at[1:0];
      present_q <= present;
    end

    // Stage 2: rotates and clears what does not belong to the slice.
    always_ff @(posedge clk) begin
      for (int b = 0; b < SLICE_BYTES; b++)
        key[KEY_SLICES+s*32+(SLICE_BYTES-1-b)*8+:8] <= clear_q[b] ? 8'd0 : lanes_q[2'(2'(b)+shift_q)];
      key[s] <= present_q;
    end
  end

  wire _unused = &{1'b0, extended};
endmodule

`default_nettype wire
