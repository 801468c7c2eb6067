// SPDX-License-Identifier: Apache-2.0
// Selects one of four bytes. The logic optimisation of Yosys shares parts of neighbouring multiplexers of a
// shifter, which takes two LUTs per bit instead of one; cells prevent this.
//
// Latency: none.

`default_nettype none

module mux4 #(
    // 1: cells LUT6_2 of UltraScale+; 0: their behaviour, for simulation and proofs.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire [1:0]      select,
    // The last element is the one of `select` 0.
    input  wire [3:0][7:0] from,
    output wire [7:0]      selected
);
  if (PRIMITIVE) begin : gen_cells
    for (genvar i = 0; i < 8; i++) begin : gen_bit
      LUT6_2 #(
          .INIT(64'hff00_f0f0_cccc_aaaa)
      ) cell_i (
          .I0(from[0][i]),
          .I1(from[1][i]),
          .I2(from[2][i]),
          .I3(from[3][i]),
          .I4(select[0]),
          .I5(select[1]),
          .O5(),
          .O6(selected[i])
      );
    end
  end else begin : gen_behaviour
    assign selected = from[select];
  end
endmodule

`default_nettype wire
