// SPDX-License-Identifier: Apache-2.0
// Model of the cell LUT6_2 of UltraScale+: a table of 64 bits with two outputs. Synthesis replaces the model by
// the cell of this name.

`default_nettype none

(* blackbox *)
module LUT6_2 #(
    // Values of O6 by {I5, ..., I0}. O5 has the lower half, by {I4, ..., I0}.
    parameter logic [63:0] INIT = '0
) (
    input  wire I0,
    input  wire I1,
    input  wire I2,
    input  wire I3,
    input  wire I4,
    input  wire I5,
    output wire O5,
    output wire O6
);
`ifndef SYNTHESIS
  assign O5 = INIT[{1'b0, I4, I3, I2, I1, I0}];
  assign O6 = INIT[{I5, I4, I3, I2, I1, I0}];
`endif
endmodule

`default_nettype wire
