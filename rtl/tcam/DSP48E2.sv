// SPDX-License-Identifier: Apache-2.0
// Model of the cell DSP48E2 of UltraScale+, as far as `pair_and` uses it: two sums of 24 bits, whose carries are
// registered. Synthesis replaces the model by the cell of this name; ports that are left out are 0 there.

`default_nettype none

(* blackbox *)
module DSP48E2 #(
    parameter USE_SIMD = "ONE48",
    parameter USE_MULT = "MULTIPLY",
    parameter integer ACASCREG = 1,
    parameter integer ADREG = 1,
    parameter integer ALUMODEREG = 1,
    parameter integer AREG = 1,
    parameter integer BCASCREG = 1,
    parameter integer BREG = 1,
    parameter integer CARRYINREG = 1,
    parameter integer CARRYINSELREG = 1,
    parameter integer CREG = 1,
    parameter integer DREG = 1,
    parameter integer INMODEREG = 1,
    parameter integer MREG = 1,
    parameter integer OPMODEREG = 1,
    parameter integer PREG = 1
) (
    input  wire        CLK,
    input  wire        CEP,
    input  wire [29:0] A,
    input  wire [17:0] B,
    input  wire [47:0] C,
    input  wire [ 8:0] OPMODE,
    input  wire [ 3:0] ALUMODE,
    output wire [ 3:0] CARRYOUT
);
`ifndef SYNTHESIS
  // The sum of A:B and C.
  if (USE_SIMD != "TWO24" || USE_MULT != "NONE" || AREG != 0 || BREG != 0 || CREG != 0 || MREG != 0 || PREG != 1
      || OPMODEREG != 0 || ALUMODEREG != 0)
    $fatal(1, "DSP48E2: the model has no such configuration");
  wire [24:0] low = 25'({A[5:0], B}) + 25'(C[23:0]);
  wire [24:0] high = 25'(A[29:6]) + 25'(C[47:24]);
  logic [1:0] carries;
  always_ff @(posedge CLK) if (CEP) carries <= {high[24], low[24]};
  assign CARRYOUT = {carries[1], 1'b0, carries[0], 1'b0};
  wire _unused = &{1'b0, OPMODE == 9'b00_011_00_11, ALUMODE == 4'd0, low, high, ACASCREG == 0, ADREG == 0,
                   BCASCREG == 0, CARRYINREG == 0, CARRYINSELREG == 0, DREG == 0, INMODEREG == 0};
`endif
endmodule

`default_nettype wire
