// SPDX-License-Identifier: Apache-2.0
// Selects one of 16 bytes: four LUTs per bit, whose outputs are selected by the multiplexers of a slice.
//
// Latency: none.

`default_nettype none

module mux16 #(
    // Number of groups of four bytes, from `select` 0 on, that are always 0 and take no LUTs.
    parameter int unsigned ZEROS = 0,
    // 1: cells LUT6_2, MUXF7 and MUXF8 of UltraScale+; 0: their behaviour, for simulation and proofs.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire [3:0]       select,
    // The last element is the one of `select` 0.
    input  wire [15:0][7:0] from,
    output wire [7:0]       selected
);
  if (PRIMITIVE) begin : gen_cells
    wire [3:0][7:0] fours;
    for (genvar i = 0; i < 4; i++) begin : gen_four
      if (i < ZEROS) assign fours[i] = 8'd0;
      else
        mux4 #(.PRIMITIVE(PRIMITIVE)) mux_i (
            .select(select[1:0]),
            .from(from[i*4+:4]),
            .selected(fours[i])
        );
    end
    if (ZEROS != 0) begin : gen_zeros
      wire _unused = &{1'b0, from[ZEROS*4-1:0]};
    end
    for (genvar i = 0; i < 8; i++) begin : gen_bit
      wire low, high;
      MUXF7 low_i (
          .I0(fours[0][i]),
          .I1(fours[1][i]),
          .S (select[2]),
          .O (low)
      );
      MUXF7 high_i (
          .I0(fours[2][i]),
          .I1(fours[3][i]),
          .S (select[2]),
          .O (high)
      );
      MUXF8 mux_i (
          .I0(low),
          .I1(high),
          .S (select[3]),
          .O (selected[i])
      );
    end
  end else begin : gen_behaviour
    assign selected = from[select];
  end
endmodule

`default_nettype wire
