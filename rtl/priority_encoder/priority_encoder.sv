// SPDX-License-Identifier: Apache-2.0
// Finds the lowest line that is 1: the first group of 16 lines that has one, then the first line of this group.
//
// Latency: 3 cycles. Throughput: one search per cycle.

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
  localparam int unsigned GROUP_BITS = GROUPS > 1 ? $clog2(GROUPS) : 1;
  localparam int unsigned INDEX_BITS = $clog2(LINES);

  logic [GROUPS-1:0] any_q;
  logic [GROUPS-1:0][GROUP-1:0] lines_q, waited_q;
  logic [GROUP_BITS-1:0] first, group_q;
  logic hit_q;
  always_comb begin
    first = '0;
    for (int g = GROUPS - 1; g >= 0; g--) if (any_q[g]) first = GROUP_BITS'(g);
  end
  always_ff @(posedge clk) begin
    for (int g = 0; g < GROUPS; g++) any_q[g] <= |lines[g*GROUP+:GROUP];
    lines_q <= lines;
    group_q <= first;
    hit_q <= |any_q;
    waited_q <= lines_q;
  end

  // Lines of the group, by a tree of multiplexers.
  logic [(1 << GROUP_BITS)-1:0][GROUP-1:0] from;
  logic [3:0] low;
  always_comb begin
    for (int g = 0; g < 1 << GROUP_BITS; g++) from[g] = waited_q[g < GROUPS ? g : 0];
    for (int level = 0; level < GROUP_BITS; level++)
      for (int g = 0; g < (1 << GROUP_BITS) >> (level + 1); g++)
        from[g] = group_q[level] ? from[2*g+1] : from[2*g];
    low = '0;
    for (int i = GROUP - 1; i >= 0; i--) if (from[0][i]) low = 4'(i);
  end
  always_ff @(posedge clk) begin
    hit   <= hit_q;
    index <= INDEX_BITS'({group_q, low});
  end
endmodule

`default_nettype wire
