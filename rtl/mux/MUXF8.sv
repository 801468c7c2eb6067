// SPDX-License-Identifier: Apache-2.0
// Model of the cell MUXF8 of UltraScale+, which selects one of two MUXF7. Synthesis replaces the model
// by the cell of this name.

`default_nettype none

(* blackbox *)
module MUXF8 (
    input  wire I0,
    input  wire I1,
    input  wire S,
    output wire O
);
`ifndef SYNTHESIS
  assign O = S ? I1 : I0;
`endif
endmodule

`default_nettype wire
