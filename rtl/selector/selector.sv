// SPDX-License-Identifier: Apache-2.0
// Makes the key of a table: slices of the extended header, then one presence bit for each slice.
//
// Latency: 2 cycles. Throughput: one key per cycle. The configuration travels with the packet, so a change
// concerns a packet wholly or not at all.

`default_nettype none

module selector
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Multiplexer cells, as in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                         clk,
    // The last element is the key's first slice.
    input  key_slice_t [KEY_SLICES-1:0] slices,
    input  extended_t                   extended,
    // Bytes of the frame in `extended.frame`.
    input  wire  [7:0]                  copied,
    output logic [KEY_BITS-1:0]         key
);
  localparam int unsigned EXTENDED_BITS = EXTENDED_BYTES * 8;
  localparam logic [9:0] FRAME_AT = 10'(FRAME_BYTE);
  if (FRAME_BYTES != 144) $fatal(1, "selector: the frame must have 36 words");
  localparam int unsigned FRAME_WORD = FRAME_BYTE / SLICE_BYTES, FRAME_WORDS = FRAME_BYTES / SLICE_BYTES;

  for (genvar s = 0; s < KEY_SLICES; s++) begin : gen_slice
    key_slice_t slice;
    assign slice = slices[s];

    // Stage 1: place of the slice, counted from the frame's first byte, and whether the packet contains it.
    logic [9:0] at, slice_end;
    logic present;
    always_comb begin
      case (slice.base)
        2'(BASE_EXTENDED): at = 10'(slice.offset) - FRAME_AT;
        2'(BASE_FRAME): at = 10'(slice.offset);
        2'(BASE_L3): at = 10'(extended.l3_offset) + 10'(slice.offset);
        default: at = 10'(extended.l4_offset) + 10'(slice.offset);
      endcase
      // Negative before the frame.
      slice_end = at + 10'(slice.bytes);
      present = slice.bytes == 0
             || ($signed(slice_end) <= $signed({2'b00, copied}) && (slice.base != 2'(BASE_L4) || extended.l4_offset != 0));
    end

    // The 4 bytes, each in its lane: the place modulo 4. Lanes before the slice's first are in the next word.
    // Words count from the frame's first, modulo 64: the last quarter has those before the frame, in which most
    // bits are constants. Selections of words that do not exist have any result.
    wire [5:0] next = at[7:2] + 6'd1;
    wire [SLICE_BYTES-1:0][7:0] lanes;
    logic [SLICE_BYTES-1:0][7:0] lanes_q;
    logic [SLICE_BYTES-1:0] clear_q;
    logic [1:0] shift_q;
    logic present_q;
    for (genvar b = 0; b < SLICE_BYTES; b++) begin : gen_lane
      wire [5:0] word = 3'(b) < {1'b0, at[1:0]} ? next : at[7:2];
      wire [35:0][7:0] frame;
      wire [15:0][7:0] before_frame;
      wire [3:0][7:0] quarters;
      for (genvar w = 0; w < FRAME_WORDS; w++)
        assign frame[w] = extended[EXTENDED_BITS-1-((FRAME_WORD+w)*4+b)*8-:8];
      for (genvar w = 0; w < 16; w++)
        assign before_frame[w] = w < 16 - FRAME_WORD ? 8'd0
            : extended[EXTENDED_BITS-1-((w < 16 - FRAME_WORD ? 0 : w + FRAME_WORD - 16)*4+b)*8-:8];
      for (genvar q = 0; q < 2; q++) begin : gen_quarter
        mux16 #(.PRIMITIVE(PRIMITIVE)) mux_i (
            .select(word[3:0]),
            .from(frame[q*16+:16]),
            .selected(quarters[q])
        );
      end
      mux4 #(.PRIMITIVE(PRIMITIVE)) last_i (
          .select(word[1:0]),
          .from(frame[35:32]),
          .selected(quarters[2])
      );
      // Four words that do not exist; and lanes of four others, which are 0 in the device.
      mux16 #(
          .ZEROS(b < 2 ? 2 : 1),
          .PRIMITIVE(PRIMITIVE)
      ) before_i (
          .select(word[3:0]),
          .from(before_frame),
          .selected(quarters[3])
      );
      mux4 #(.PRIMITIVE(PRIMITIVE)) mux_i (
          .select(word[5:4]),
          .from(quarters),
          .selected(lanes[b])
      );
    end
    always_ff @(posedge clk) begin
      lanes_q <= lanes;
      for (int b = 0; b < SLICE_BYTES; b++) clear_q[b] <= !present || 3'(b) >= slice.bytes;
      shift_q <= at[1:0];
      present_q <= present;
    end

    // Stage 2: rotates and clears what does not belong to the slice.
    wire [SLICE_BYTES-1:0][7:0] rotated;
    for (genvar b = 0; b < SLICE_BYTES; b++) begin : gen_rotated
      wire [3:0][7:0] from;
      for (genvar k = 0; k < 4; k++) assign from[k] = lanes_q[(b+k)%4];
      mux4 #(.PRIMITIVE(PRIMITIVE)) mux_i (
          .select(shift_q),
          .from(from),
          .selected(rotated[b])
      );
    end
    always_ff @(posedge clk) begin
      for (int b = 0; b < SLICE_BYTES; b++)
        key[KEY_SLICES+s*32+(SLICE_BYTES-1-b)*8+:8] <= clear_q[b] ? 8'd0 : rotated[b];
      key[s] <= present_q;
    end
  end

  wire _unused = &{1'b0, extended};
endmodule

`default_nettype wire
