// SPDX-License-Identifier: Apache-2.0
// Model of the cell RAM32M16 of UltraScale+: eight LUTs of 32 x 2 bits. Port H has the write address. Synthesis
// replaces the model by the cell of this name.

`default_nettype none

(* blackbox *)
module RAM32M16 #(
    // Contents of port H at start: bits 2 x i and 2 x i + 1 are at address i. Other ports begin with 0.
    parameter [63:0] INIT_H = 64'd0
) (
    input  wire       WCLK,
    input  wire       WE,
    input  wire [4:0] ADDRA,
    input  wire [4:0] ADDRB,
    input  wire [4:0] ADDRC,
    input  wire [4:0] ADDRD,
    input  wire [4:0] ADDRE,
    input  wire [4:0] ADDRF,
    input  wire [4:0] ADDRG,
    input  wire [4:0] ADDRH,
    input  wire [1:0] DIA,
    input  wire [1:0] DIB,
    input  wire [1:0] DIC,
    input  wire [1:0] DID,
    input  wire [1:0] DIE,
    input  wire [1:0] DIF,
    input  wire [1:0] DIG,
    input  wire [1:0] DIH,
    output wire [1:0] DOA,
    output wire [1:0] DOB,
    output wire [1:0] DOC,
    output wire [1:0] DOD,
    output wire [1:0] DOE,
    output wire [1:0] DOF,
    output wire [1:0] DOG,
    output wire [1:0] DOH
);
`ifndef SYNTHESIS
  logic [15:0] memory[32];
  initial for (int i = 0; i < 32; i++) memory[i] = {INIT_H[2*i+:2], 14'd0};
  always_ff @(posedge WCLK) begin
    if (WE) memory[ADDRH] <= {DIH, DIG, DIF, DIE, DID, DIC, DIB, DIA};
  end
  assign DOA = memory[ADDRA][1:0];
  assign DOB = memory[ADDRB][3:2];
  assign DOC = memory[ADDRC][5:4];
  assign DOD = memory[ADDRD][7:6];
  assign DOE = memory[ADDRE][9:8];
  assign DOF = memory[ADDRF][11:10];
  assign DOG = memory[ADDRG][13:12];
  assign DOH = memory[ADDRH][15:14];
`endif
endmodule

`default_nettype wire
