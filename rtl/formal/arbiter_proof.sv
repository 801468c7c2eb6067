// SPDX-License-Identifier: Apache-2.0
// Proof of `frame_mux`: every accepted beat leaves once, unchanged and in order; frames are not interleaved; no
// cycle is wasted; an input that offers a frame waits for at most one frame of each other input, including the
// frame that is being sent. Proved by induction for any number of cycles and any length of frames.

`default_nettype none

module arbiter_proof
  import pipeline_pkg::*;
#(
    parameter int unsigned INPUTS = 5
) (
    input wire                               clk,
    input wire [INPUTS-1:0]                  in_valid,
    input wire [INPUTS-1:0][BUS_BITS-1:0]    in_data,
    input wire [INPUTS-1:0][BUS_BYTES-1:0]   in_keep,
    input wire [INPUTS-1:0]                  in_last,
    input wire [INPUTS-1:0]                  in_bad,
    input wire                               out_ready,
    // The input that is observed.
    input wire [$clog2(INPUTS)-1:0]          chosen_input
);
  localparam int unsigned INPUT_BITS = $clog2(INPUTS);
  localparam logic [INPUT_BITS:0] COUNT = (INPUT_BITS + 1)'(INPUTS);

  logic started = 1'b0;
  always_ff @(posedge clk) started <= 1'b1;

  // A constant that the solver chooses in the first cycle.
  logic [INPUT_BITS-1:0] watched_q;
  wire [INPUT_BITS-1:0] watched = started ? watched_q : chosen_input;
  always_ff @(posedge clk) watched_q <= watched;

  // The information of a frame is its input.
  wire [INPUTS-1:0][INPUT_BITS-1:0] numbers;
  for (genvar i = 0; i < INPUTS; i++) begin : gen_number
    assign numbers[i] = INPUT_BITS'(i);
  end
  wire [INPUTS-1:0] in_ready;
  wire out_valid, out_last, out_bad;
  wire [BUS_BITS-1:0] out_data;
  wire [BUS_BYTES-1:0] out_keep;
  wire [INPUT_BITS-1:0] out_info;
  frame_mux #(
      .INPUTS(INPUTS),
      .INFO_BITS(INPUT_BITS)
  ) mux_i (
      .clk(clk),
      .rst(!started),
      .in_valid(in_valid),
      .in_ready(in_ready),
      .in_data(in_data),
      .in_keep(in_keep),
      .in_last(in_last),
      .in_bad(in_bad),
      .in_info(numbers),
      .out_valid(out_valid),
      .out_ready(out_ready),
      .out_data(out_data),
      .out_keep(out_keep),
      .out_last(out_last),
      .out_bad(out_bad),
      .out_info(out_info)
  );

  // The accepted beat.
  wire [INPUTS-1:0] accepted = in_valid & in_ready;
  logic [INPUT_BITS-1:0] from;
  always_comb begin
    from = '0;
    for (int i = 0; i < INPUTS; i++) if (accepted[i]) from = INPUT_BITS'(i);
  end

  // What the output must hold, and the frame of which the last accepted beat was a part.
  logic holds, expected_last, expected_bad, in_frame;
  logic [BUS_BITS-1:0] expected_data;
  logic [BUS_BYTES-1:0] expected_keep;
  logic [INPUT_BITS-1:0] expected_from;
  // A beat of the output is inside a frame of this input.
  logic out_in_frame;
  logic [INPUT_BITS-1:0] out_from;
  always_ff @(posedge clk) begin
    if (!started) begin
      holds <= 1'b0;
      in_frame <= 1'b0;
      out_in_frame <= 1'b0;
    end else begin
      if (accepted != 0) begin
        holds <= 1'b1;
        expected_data <= in_data[from];
        expected_keep <= in_keep[from];
        expected_last <= in_last[from];
        expected_bad <= in_bad[from];
        expected_from <= from;
        in_frame <= !in_last[from];
      end else if (out_ready) holds <= 1'b0;
      if (out_valid && out_ready) begin
        out_in_frame <= !out_last;
        out_from <= out_info;
      end
    end
  end

  // The observed input waits: it offers the first beat of a frame that is not accepted. `served` are the inputs
  // whose frames have been sent, or are being sent, since it began to wait.
  wire in_service = in_frame && expected_from == watched;
  wire waits = started && in_valid[watched] && !accepted[watched] && !in_service;
  logic waited;
  logic [INPUTS-1:0] served;
  wire [INPUTS-1:0] in_sending = in_frame ? INPUTS'(1) << expected_from : '0;
  wire [INPUTS-1:0] starting = in_frame ? '0 : accepted;
  wire [INPUTS-1:0] earlier = waited ? served : in_sending;
  always_ff @(posedge clk) begin
    waited <= waits;
    served <= earlier | starting;
  end

  // How many inputs after the observed one an input is, in turns.
  function automatic logic [INPUT_BITS:0] distance(input logic [INPUT_BITS-1:0] other, input logic [INPUT_BITS-1:0] one);
    return other >= one ? {1'b0, other} - {1'b0, one} : {1'b0, other} + COUNT - {1'b0, one};
  endfunction

  always_comb begin
    if (!started) assume ({1'b0, chosen_input} < COUNT);
    if (started) begin
      assert ({1'b0, watched} < COUNT);
      // At most one input is served in a cycle, and only when the output has room.
      assert ((in_ready & (in_ready - 1'b1)) == 0);
      assert (in_ready == 0 || !holds || out_ready);
      // Nothing is lost, made or changed.
      assert (out_valid == holds);
      if (holds) assert (out_data == expected_data && out_keep == expected_keep && out_last == expected_last
          && out_bad == expected_bad && out_info == expected_from);
      // No frame is interleaved with another one.
      if (in_frame) assert (accepted == 0 || from == expected_from);
      if (out_valid && out_in_frame) assert (out_info == out_from);
      // The output never waits for a beat that is offered.
      if ((!holds || out_ready) && (in_frame ? in_valid[expected_from] : in_valid != 0)) assert (accepted != 0);
      // Fairness: no input is served twice.
      if (waits) assert ((starting & earlier) == 0);

      // State of the module, for the induction.
      assert ({1'b0, mux_i.current} < COUNT);
      assert (mux_i.in_frame == in_frame);
      if (in_frame) assert (mux_i.current == expected_from);
      if (holds) assert (in_frame == !expected_last && mux_i.current == expected_from);
      if (holds && out_in_frame) assert (expected_from == out_from);
      if (!holds) assert (out_in_frame == in_frame && (!in_frame || out_from == expected_from));
      if (waited) begin
        assert (!in_frame || served[expected_from]);
        for (int i = 0; i < INPUTS; i++)
          if (served[i]) assert (distance(INPUT_BITS'(i), watched) <= distance(mux_i.current, watched));
        assert (!served[watched]);
      end
    end
  end
endmodule

`default_nettype wire
