// SPDX-License-Identifier: Apache-2.0
// Selects one of two bytes. A cell LUT6_2 has two bits; Yosys by itself takes a LUT for each bit.
//
// Latency: none.

`default_nettype none

module mux2 #(
    // As in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire            select,
    // The last element is the one of `select` 0.
    input  wire [1:0][7:0] from,
    output wire [7:0]      selected
);
  if (PRIMITIVE) begin : gen_cells
    for (genvar i = 0; i < 8; i += 2) begin : gen_pair
      LUT6_2 #(
          .INIT(64'hff00_f0f0_cccc_aaaa)
      ) cell_i (
          .I0(from[0][i]),
          .I1(from[1][i]),
          .I2(from[0][i+1]),
          .I3(from[1][i+1]),
          .I4(select),
          .I5(1'b1),
          .O5(selected[i]),
          .O6(selected[i+1])
      );
    end
  end else begin : gen_behaviour
    assign selected = from[select];
  end
endmodule

`default_nettype wire
