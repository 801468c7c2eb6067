// SPDX-License-Identifier: Apache-2.0
// Finds the lowest line that is 1.
//
// Latency: 2 cycles. Throughput: one search per cycle.

`default_nettype none

module priority_encoder #(
    // Number of lines, a power of two, 16 to 4096.
    parameter int unsigned LINES = 512
) (
    input  wire                      clk,
    input  wire  [LINES-1:0]         lines,
    output logic                     hit,
    output logic [$clog2(LINES)-1:0] index
);
  if (LINES < 16 || LINES > 4096 || (LINES & (LINES - 1)) != 0)
    $fatal(1, "priority_encoder: LINES must be a power of two, 16 to 4096");

  localparam int unsigned GROUP = 16;
  localparam int unsigned GROUPS = LINES / GROUP;
  localparam int unsigned INDEX_BITS = $clog2(LINES);

  logic [GROUPS-1:0] any_q;
  logic [3:0] low_q[GROUPS];

  always_ff @(posedge clk) begin
    for (int g = 0; g < GROUPS; g++) begin
      any_q[g] <= |lines[g*GROUP+:GROUP];
      low_q[g] <= '0;
      for (int i = GROUP - 1; i >= 0; i--) if (lines[g*GROUP+i]) low_q[g] <= 4'(i);
    end
  end

  logic [INDEX_BITS-1:0] first;
  always_comb begin
    first = '0;
    for (int g = GROUPS - 1; g >= 0; g--) if (any_q[g]) first = INDEX_BITS'({g[11:0], low_q[g]});
  end

  always_ff @(posedge clk) begin
    hit   <= |any_q;
    index <= first;
  end
endmodule

`default_nettype wire
