// SPDX-License-Identifier: Apache-2.0
// Model of the cell CARRY8 of UltraScale+. Synthesis replaces the model by the cell of this name.

`default_nettype none

(* blackbox *)
module CARRY8 #(
    parameter CARRY_TYPE = "SINGLE_CY8"
) (
    input  wire        CI,
    input  wire        CI_TOP,
    input  wire  [7:0] DI,
    input  wire  [7:0] S,
    output logic [7:0] CO,
    output logic [7:0] O
);
`ifndef SYNTHESIS
  logic carry;
  always_comb begin
    carry = CI;
    for (int i = 0; i < 8; i++) begin
      O[i] = S[i] ^ carry;
      carry = S[i] ? carry : DI[i];
      CO[i] = carry;
    end
  end
  wire _unused = &{1'b0, carry, CI_TOP, CARRY_TYPE == "SINGLE_CY8"};
`endif
endmodule

`default_nettype wire
