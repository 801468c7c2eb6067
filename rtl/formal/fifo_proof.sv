// SPDX-License-Identifier: Apache-2.0
// Proof of `fifo`: an arbitrary accepted word leaves once, unchanged and behind the words that were before it;
// nothing else leaves; the memory never overflows. Proved by induction for any number of cycles.

`default_nettype none

module fifo_proof #(
    parameter int unsigned WIDTH = 4,
    parameter int unsigned DEPTH = 4
) (
    input wire             clk,
    input wire             in_valid,
    input wire [WIDTH-1:0] in_data,
    input wire             out_ready,
    // The solver chooses the word that is tracked.
    input wire             choose
);
  logic started = 1'b0;
  always_ff @(posedge clk) started <= 1'b1;

  wire in_ready, out_valid;
  wire [WIDTH-1:0] out_data;
  wire [$clog2(DEPTH):0] used;
  fifo #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) fifo_i (
      .clk(clk),
      .rst(!started),
      .in_valid(in_valid),
      .in_ready(in_ready),
      .in_data(in_data),
      .out_valid(out_valid),
      .out_ready(out_ready),
      .out_data(out_data),
      .used(used)
  );
  wire enters = in_valid && in_ready;
  wire leaves = out_valid && out_ready;

  // Words stored, and the tracked one: how many words are before it, and its value.
  logic [$clog2(DEPTH):0] stored, ahead;
  logic tracking;
  logic [WIDTH-1:0] tracked;
  always_ff @(posedge clk) begin
    if (!started) begin
      stored <= '0;
      tracking <= 1'b0;
    end else begin
      if (enters != leaves) stored <= enters ? stored + 1'b1 : stored - 1'b1;
      if (tracking && leaves) begin
        ahead <= ahead - 1'b1;
        if (ahead == 0) tracking <= 1'b0;
      end else if (!tracking && enters && choose) begin
        tracking <= 1'b1;
        tracked <= in_data;
        ahead <= leaves ? stored - 1'b1 : stored;
      end
    end
  end

  // Place of the tracked word in the memory, if it is not in the output register.
  wire [$clog2(DEPTH)-1:0] place = fifo_i.read_at + ahead[$clog2(DEPTH)-1:0] - {{($clog2(DEPTH)-1){1'b0}}, out_valid};
  always_comb begin
    if (started) begin
      // Nothing is lost or made.
      assert (used <= DEPTH);
      assert (stored == used + {{$clog2(DEPTH){1'b0}}, out_valid});
      assert (fifo_i.write_at == $clog2(DEPTH)'(fifo_i.read_at + used));
      assert (!tracking || ahead < stored);
      // The tracked word is where it must be, and leaves unchanged.
      if (tracking && out_valid && ahead == 0) assert (out_data == tracked);
      else if (tracking) assert (fifo_i.memory[place] == tracked);
    end
  end
endmodule

`default_nettype wire
