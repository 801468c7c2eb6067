// SPDX-License-Identifier: Apache-2.0
// Moves a row of bytes by 0 to 15 places. The multipliers of DSP cells do this without LUTs: the bits of one
// weight of neighbouring bytes form a number, which is multiplied by a power of two.
//
// Latency: none.

`default_nettype none

module byte_shift #(
    // Number of bytes that leave.
    parameter int unsigned BYTES = 16,
    // 1: multipliers, for DSP cells; 0: a shift, for simulation and proofs.
    parameter bit PRIMITIVE = 1'b0
) (
    // Byte `i` that leaves is byte `i + by`. The first byte is the most significant one.
    input  wire [3:0]              by,
    input  wire [(BYTES+15)*8-1:0] from,
    output wire [BYTES*8-1:0]      shifted
);
  if (BYTES < 1) $fatal(1, "byte_shift: BYTES must be at least 1");

  if (PRIMITIVE) begin : gen_cells
    // A DSP cell multiplies a signed number of 27 bits by one of 18 bits. So 12 bits of the product are bits of
    // the first number for each of the 16 places.
    localparam int unsigned GROUP = 12, WINDOW = 27;
    wire signed [17:0] factor = 18'sd1 << (4'd15 - by);
    for (genvar first = 0; first < BYTES; first += GROUP) begin : gen_group
      for (genvar b = 0; b < 8; b++) begin : gen_bit
        wire signed [WINDOW-1:0] window;
        for (genvar i = 0; i < WINDOW; i++) begin : gen_in
          if (first + i < BYTES + 15) assign window[i] = from[(BYTES+14-first-i)*8+b];
          else assign window[i] = 1'b0;
        end
        wire signed [WINDOW+17:0] product = window * factor;
        for (genvar i = 0; i < GROUP && first + i < BYTES; i++) begin : gen_out
          assign shifted[(BYTES-1-first-i)*8+b] = product[15+i];
        end
        wire _unused = &{1'b0, product};
      end
    end
  end else begin : gen_behaviour
    wire [(BYTES+15)*8-1:0] moved = from << {by, 3'b000};
    assign shifted = moved[(BYTES+15)*8-1-:BYTES*8];
    wire _unused = &{1'b0, moved};
  end
endmodule

`default_nettype wire
