// SPDX-License-Identifier: Apache-2.0
// Joins header and payload into a frame without gaps, or discards both.
//
// A header gives one or two chunks: the first one has up to 80 bytes, all others have up to 64. Each beat of
// payload gives one. Chunks are packed into full beats. The tail of a frame may leave while the first chunk of
// the next frame arrives.
//
// Latency: 3 cycles. Throughput: one chunk per cycle, but a frame takes at least as many cycles as it has beats.
// So it takes more cycles than it had beats on arrival only if it leaves with more beats.

`default_nettype none

module deparser
  import device_pkg::*;
  import pipeline_pkg::*;
#(
    // Multiplexer cells, as in `mux4`.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire                  clk,
    input  wire                  rst,
    // OUTPUT_* of packets for which no PPU set an output.
    input  wire [1:0]            miss_output,
    input  wire                  record_valid,
    output wire                  record_ready,
    input  record_t              record,
    input  wire                  payload_valid,
    output wire                  payload_ready,
    input  wire [BUS_BITS-1:0]   payload_data,
    // AXI4-Stream; byte 0 of a beat is `out_data[7:0]`. `out_egress` is constant during a frame.
    output logic                 out_valid,
    input  wire                  out_ready,
    output logic [BUS_BITS-1:0]  out_data,
    output logic [BUS_BYTES-1:0] out_keep,
    output logic                 out_last,
    output egress_t              out_egress,
    // One pulse for each record, of its outcome.
    output logic                 to_port,
    output logic                 to_controller,
    output logic                 discarded,
    output logic                 bad_edit,
    output logic                 ttl_expired
);
  localparam int unsigned FRAME_BITS = FRAME_BYTES * 8;
  // The first chunk of a header, and its bytes behind the first 64.
  localparam int unsigned FIRST_BYTES = FRAME_BYTES - BUS_BYTES, FIRST_BITS = FIRST_BYTES * 8;
  localparam int unsigned TAIL_BYTES = FIRST_BYTES - BUS_BYTES, TAIL_BITS = TAIL_BYTES * 8;

  // Stage 1: chunks. `payload_left` counts the payload's bytes while `in_payload`.
  logic in_payload, second;
  logic [15:0] payload_left;
  logic chunk_valid, chunk_last;
  logic [BUS_BITS-1:0] chunk_data;
  logic [TAIL_BITS-1:0] chunk_tail;
  logic [6:0] chunk_bytes;
  egress_t chunk_egress;
  wire chunk_taken;

  // The setting is read once for each record, so that a change concerns a frame wholly or not at all.
  logic [1:0] miss_q;
  wire [1:0] miss = !in_payload && !second ? miss_output : miss_q;
  always_ff @(posedge clk) miss_q <= miss;
  wire [1:0] kind = record.output_kind == 2'(OUTPUT_KEEP) ? miss : record.output_kind;
  wire sends = record.drop == DROP_NONE && (kind == 2'(OUTPUT_PORT) || kind == 2'(OUTPUT_CONTROLLER))
      && record.copied != 0;
  wire room = !chunk_valid || chunk_taken;
  // Bytes of the header from this chunk on.
  wire [7:0] header_left = second ? record.copied - 8'(FIRST_BYTES) : record.copied;
  wire header_ends = second || header_left <= 8'(FIRST_BYTES) || !sends;
  wire has_payload = record.payload_bytes != 0;
  wire header_step = record_valid && !in_payload && (room || !sends);
  wire payload_step = record_valid && in_payload && payload_valid && (room || !sends);
  wire payload_ends = payload_left <= 16'd64;
  assign payload_ready = payload_step;
  assign record_ready = header_step ? header_ends && !has_payload : payload_step && payload_ends;

  always_ff @(posedge clk) begin
    if (room) begin
      chunk_data <= in_payload ? payload_data : second ? record.frame[BUS_BITS-1:0] : record.frame[FRAME_BITS-1-:BUS_BITS];
      chunk_tail <= record.frame[FRAME_BITS-1-BUS_BITS-:TAIL_BITS];
      chunk_bytes <= in_payload ? (payload_ends ? payload_left[6:0] : 7'd64)
                                : (header_ends ? header_left[6:0] : 7'(FIRST_BYTES));
      chunk_last <= in_payload ? payload_ends : header_ends && !has_payload;
      chunk_egress <= '{output_kind: kind, port: record.port, in_port: record.in_port, ppu: record.ppu};
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      in_payload <= 1'b0;
      second <= 1'b0;
      chunk_valid <= 1'b0;
      payload_left <= '0;
    end else begin
      if (room) chunk_valid <= (header_step || payload_step) && sends;
      if (header_step) begin
        second <= !header_ends;
        in_payload <= header_ends && has_payload;
        payload_left <= record.payload_bytes;
      end else if (payload_step) begin
        in_payload <= !payload_ends;
        payload_left <= payload_left - 16'd64;
      end
    end
  end

  // Outcome of each record, when its header ends.
  wire counts = header_step && header_ends;
  always_ff @(posedge clk) begin
    to_port <= !rst && counts && sends && kind == 2'(OUTPUT_PORT);
    to_controller <= !rst && counts && sends && kind == 2'(OUTPUT_CONTROLLER);
    bad_edit <= !rst && counts && record.drop == DROP_BAD_EDIT;
    ttl_expired <= !rst && counts && record.drop == DROP_TTL;
    discarded <= !rst && counts && record.drop == DROP_NONE && !sends;
  end

  // Stage 2: rest of the frame that did not fill a beat (0 to 80 bytes), then the output register.
  logic [FIRST_BITS-1:0] rest_data;
  logic [6:0] rest_bytes;
  logic rest_last;
  egress_t rest_egress;
  wire go = !out_valid || out_ready;
  wire wide = rest_bytes > 7'd64;
  // The rest of a frame whose chunks have all arrived leaves. If it is wide, it needs two beats.
  wire flush = rest_last && !wide;
  wire flush_wide = rest_last && wide;
  assign chunk_taken = chunk_valid && go && !flush_wide;
  // The first chunk of a frame.
  wire fresh = flush || rest_bytes == 0;
  wire [7:0] total = 8'(rest_bytes) + 8'(chunk_bytes);
  wire full = total > 8'd64;

  // The chunk, rotated to the place behind the rest: by lines of 16 bytes, then by bytes.
  wire [BUS_BITS-1:0] turned, rotated;
  for (genvar i = 0; i < BUS_BYTES; i++) begin : gen_turned
    wire [3:0][7:0] from;
    for (genvar l = 0; l < 4; l++)
      assign from[l] = chunk_data[BUS_BITS-1-((i+BUS_BYTES-l*16)%BUS_BYTES)*8-:8];
    mux4 #(.PRIMITIVE(PRIMITIVE)) mux_i (
        .select(rest_bytes[5:4]),
        .from(from),
        .selected(turned[BUS_BITS-1-i*8-:8])
    );
  end
  byte_shift #(
      .BYTES(BUS_BYTES),
      .PRIMITIVE(PRIMITIVE)
  ) shift_i (
      .by(~rest_bytes[3:0]),
      .from({turned[119:0], turned}),
      .shifted(rotated)
  );

  // The beat that leaves: the rest, then the chunk. `kept` are the bytes of the rest.
  wire [BUS_BITS-1:0] beat;
  logic [BUS_BYTES-1:0] kept, beat_keep;
  logic [FIRST_BITS-1:0] next_rest;
  localparam logic [1:0] NEW = 2'd0, ROTATED = 2'd1, SAME = 2'd2, TAIL = 2'd3;
  logic [BUS_BYTES-1:0][1:0] source;
  always_comb begin
    for (int i = 0; i < BUS_BYTES; i++) begin
      kept[i] = 7'(i) < rest_bytes;
      beat_keep[i] = !flush || kept[i];
      source[i] = fresh ? NEW : kept[i] && !full && !flush_wide ? SAME : ROTATED;
      if (i < TAIL_BYTES && (flush_wide || (!fresh && 7'(i) + 7'd64 < rest_bytes))) source[i] = TAIL;
    end
  end
  for (genvar i = 0; i < BUS_BYTES; i++) begin : gen_beat
    mux2 #(.PRIMITIVE(PRIMITIVE)) beat_i (
        .select(flush || kept[i]),
        .from({rest_data[FIRST_BITS-1-i*8-:8], rotated[BUS_BITS-1-i*8-:8]}),
        .selected(beat[BUS_BITS-1-i*8-:8])
    );
    wire [3:0][7:0] from;
    assign from[NEW] = chunk_data[BUS_BITS-1-i*8-:8];
    assign from[ROTATED] = rotated[BUS_BITS-1-i*8-:8];
    assign from[SAME] = rest_data[FIRST_BITS-1-i*8-:8];
    assign from[TAIL] = i < TAIL_BYTES ? rest_data[TAIL_BITS-1-(i%TAIL_BYTES)*8-:8] : 8'd0;
    mux4 #(.PRIMITIVE(PRIMITIVE)) rest_i (
        .select(source[i]),
        .from(from),
        .selected(next_rest[FIRST_BITS-1-i*8-:8])
    );
  end
  for (genvar i = 0; i < TAIL_BYTES; i++) begin : gen_tail
    mux2 #(.PRIMITIVE(PRIMITIVE)) mux_i (
        .select(fresh),
        .from({chunk_tail[TAIL_BITS-1-i*8-:8], rotated[BUS_BITS-1-i*8-:8]}),
        .selected(next_rest[TAIL_BITS-1-i*8-:8])
    );
  end

  always_ff @(posedge clk) begin
    if (go) begin
      for (int i = 0; i < BUS_BYTES; i++) out_data[i*8+:8] <= beat[BUS_BITS-1-i*8-:8];
      out_keep <= beat_keep;
      out_last <= flush;
      out_egress <= rest_egress;
      if (chunk_valid && !flush_wide) rest_egress <= chunk_egress;
      if (chunk_valid || flush_wide) rest_data <= next_rest;
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      rest_bytes <= '0;
      rest_last <= 1'b0;
    end else if (go) begin
      out_valid <= rest_last || (chunk_valid && !fresh && full);
      if (flush_wide) rest_bytes <= rest_bytes - 7'd64;
      else if (chunk_valid) begin
        rest_bytes <= fresh ? chunk_bytes : full ? 7'(total - 8'd64) : total[6:0];
        rest_last <= chunk_last;
      end else if (flush) begin
        rest_bytes <= '0;
        rest_last <= 1'b0;
      end
    end
  end

  wire _unused = &{1'b0, header_left[7]};
endmodule

`default_nettype wire
