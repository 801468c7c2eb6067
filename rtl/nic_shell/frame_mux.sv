// SPDX-License-Identifier: Apache-2.0
// Merges streams of frames round robin. Frames are not interleaved. If all inputs offer the beats of a frame
// without gaps, no cycle without a beat separates two frames.
//
// Latency: 1 cycle. Throughput: one beat per cycle. Fair: an input that offers a frame waits for at most one
// frame of each other input, including the frame that is being sent.

`default_nettype none

module frame_mux
  import pipeline_pkg::*;
#(
    // Number of inputs, 2 to 32.
    parameter int unsigned INPUTS = 2,
    // Bits of information that travels with a frame, at least 1.
    parameter int unsigned INFO_BITS = 1,
    // Multiplexer cells, as in `mux4`, for data and keep bits of up to 5 inputs.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                               clk,
    input  wire                               rst,
    // AXI4-Stream of each input.
    input  wire  [INPUTS-1:0]                 in_valid,
    output logic [INPUTS-1:0]                 in_ready,
    input  wire  [INPUTS-1:0][BUS_BITS-1:0]   in_data,
    input  wire  [INPUTS-1:0][BUS_BYTES-1:0]  in_keep,
    input  wire  [INPUTS-1:0]                 in_last,
    input  wire  [INPUTS-1:0]                 in_bad,
    input  wire  [INPUTS-1:0][INFO_BITS-1:0]  in_info,
    // AXI4-Stream.
    output logic                              out_valid,
    input  wire                               out_ready,
    output logic [BUS_BITS-1:0]               out_data,
    output logic [BUS_BYTES-1:0]              out_keep,
    output logic                              out_last,
    output logic                              out_bad,
    output logic [INFO_BITS-1:0]              out_info
);
  if (INPUTS < 2 || INPUTS > 32) $fatal(1, "frame_mux: INPUTS must be 2 to 32");
  if (INFO_BITS < 1) $fatal(1, "frame_mux: INFO_BITS must be at least 1");

  localparam int unsigned INPUT_BITS = $clog2(INPUTS);

  // The input whose frame is being sent (in_frame), or was sent last.
  logic in_frame;
  logic [INPUT_BITS-1:0] current, first_above, first, chosen;

  // The first input above the last one, or else the first of all.
  logic found_above;
  always_comb begin
    found_above = 1'b0;
    first_above = '0;
    first = '0;
    for (int i = INPUTS - 1; i >= 0; i--) begin
      if (in_valid[i]) first = INPUT_BITS'(i);
      if (in_valid[i] && INPUT_BITS'(i) > current) begin
        found_above = 1'b1;
        first_above = INPUT_BITS'(i);
      end
    end
    chosen = in_frame ? current : found_above ? first_above : first;
  end

  wire go = !out_valid || out_ready;
  wire take = go && in_valid[chosen];
  always_comb begin
    in_ready = '0;
    in_ready[chosen] = go;
  end

  wire [BUS_BYTES+BUS_BITS-1:0] selected;
  if (PRIMITIVE && INPUTS <= 5) begin : gen_cells
    wire [4:0][BUS_BYTES+BUS_BITS-1:0] words;
    for (genvar i = 0; i < 5; i++)
      assign words[i] = i < INPUTS ? {in_keep[i%INPUTS], in_data[i%INPUTS]} : {in_keep[0], in_data[0]};
    for (genvar b = 0; b < BUS_BYTES + BUS_BITS; b += 8) begin : gen_byte
      if (INPUTS == 2)
        mux2 #(.PRIMITIVE(1'b1)) mux_i (
            .select(chosen[0]),
            .from({words[1][b+:8], words[0][b+:8]}),
            .selected(selected[b+:8])
        );
      else begin : gen_four
        wire [7:0] first_four;
        mux4 #(.PRIMITIVE(1'b1)) mux_i (
            .select(chosen[1:0]),
            .from({words[3][b+:8], words[2][b+:8], words[1][b+:8], words[0][b+:8]}),
            .selected(first_four)
        );
        if (INPUTS <= 4) assign selected[b+:8] = first_four;
        else
          mux2 #(.PRIMITIVE(1'b1)) last_i (
              .select(chosen[INPUT_BITS-1]),
              .from({words[4][b+:8], first_four}),
              .selected(selected[b+:8])
          );
      end
    end
    wire _unused = &{1'b0, words};
  end else begin : gen_behaviour
    assign selected = {in_keep[chosen], in_data[chosen]};
  end

  always_ff @(posedge clk) begin
    if (go) begin
      {out_keep, out_data} <= selected;
      out_last <= in_last[chosen];
      out_bad <= in_bad[chosen];
      out_info <= in_info[chosen];
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      in_frame <= 1'b0;
      current <= '0;
    end else begin
      if (go) out_valid <= in_valid[chosen];
      if (take) begin
        in_frame <= !in_last[chosen];
        current <= chosen;
      end
    end
  end
endmodule

`default_nettype wire
