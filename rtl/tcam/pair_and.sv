// SPDX-License-Identifier: Apache-2.0
// Two ANDs of up to 24 bits in one DSP cell: if all bits are 1, adding 1 gives a carry.
//
// Latency: 1 cycle. Throughput: one result per cycle.

`default_nettype none

module pair_and #(
    // Number of bits of each AND, 1 to 24.
    parameter int unsigned WIDTH = 24
) (
    input  wire                  clk,
    input  wire [1:0][WIDTH-1:0] bits,
    output wire [1:0]            all
);
  if (WIDTH < 1 || WIDTH > 24) $fatal(1, "pair_and: WIDTH must be 1 to 24");

  // Missing bits are 1.
  wire [23:0] low = {{(24 - WIDTH) {1'b1}}, bits[0]};
  wire [23:0] high = {{(24 - WIDTH) {1'b1}}, bits[1]};
  wire [3:0] carries;
  assign all = {carries[3], carries[1]};
  DSP48E2 #(
      .USE_SIMD("TWO24"),
      .USE_MULT("NONE"),
      .ACASCREG(0),
      .ADREG(0),
      .ALUMODEREG(0),
      .AREG(0),
      .BCASCREG(0),
      .BREG(0),
      .CARRYINREG(0),
      .CARRYINSELREG(0),
      .CREG(0),
      .DREG(0),
      .INMODEREG(0),
      .MREG(0),
      .OPMODEREG(0),
      .PREG(1)
  ) cell_i (
      .CLK(clk),
      .CEP(1'b1),
      .A({high, low[23:18]}),
      .B(low[17:0]),
      .C({24'd1, 24'd1}),
      // A:B plus C.
      .OPMODE(9'b00_011_00_11),
      .ALUMODE(4'd0),
      .CARRYOUT(carries)
  );
  wire _unused = &{1'b0, carries};
endmodule

`default_nettype wire
