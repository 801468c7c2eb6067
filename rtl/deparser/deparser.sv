// SPDX-License-Identifier: Apache-2.0
// Joins header and payload into a frame without gaps, or discards both.
//
// A header gives one to three chunks of up to 64 bytes, each beat of payload gives one. Chunks are packed
// into full beats. The tail of a frame may leave while the first chunk of the next frame arrives.
//
// Latency: 3 cycles. Throughput: one chunk per cycle, so a frame whose header does not grow above 128 bytes
// takes no more cycles than it had beats on arrival.

`default_nettype none

module deparser
  import device_pkg::*;
  import pipeline_pkg::*;
(
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

  // Stage 1: chunks. `payload_left` counts the payload's bytes while `in_payload`.
  logic in_payload;
  logic [1:0] part;
  logic [15:0] payload_left;
  logic chunk_valid, chunk_last;
  logic [BUS_BITS-1:0] chunk_data;
  logic [6:0] chunk_bytes;
  egress_t chunk_egress;
  wire chunk_taken;

  // The setting is read once for each record, so that a change concerns a frame wholly or not at all.
  logic [1:0] miss_q;
  wire [1:0] miss = !in_payload && part == 0 ? miss_output : miss_q;
  always_ff @(posedge clk) miss_q <= miss;
  wire [1:0] kind = record.output_kind == 2'(OUTPUT_KEEP) ? miss : record.output_kind;
  wire sends = record.drop == DROP_NONE && (kind == 2'(OUTPUT_PORT) || kind == 2'(OUTPUT_CONTROLLER))
      && record.copied != 0;
  wire room = !chunk_valid || chunk_taken;
  // Bytes of the header from this part on.
  wire [7:0] header_left = record.copied - {part, 6'd0};
  wire header_ends = header_left <= 8'd64 || !sends;
  wire has_payload = record.payload_bytes != 0;
  wire header_step = record_valid && !in_payload && (room || !sends);
  wire payload_step = record_valid && in_payload && payload_valid && (room || !sends);
  wire payload_ends = payload_left <= 16'd64;
  assign payload_ready = payload_step;
  assign record_ready = header_step ? header_ends && !has_payload : payload_step && payload_ends;

  logic [BUS_BITS-1:0] header_part;
  always_comb begin
    case (part)
      2'd0: header_part = record.frame[FRAME_BITS-1-:BUS_BITS];
      2'd1: header_part = record.frame[FRAME_BITS-1-BUS_BITS-:BUS_BITS];
      default: header_part = {record.frame[FRAME_BITS-1-2*BUS_BITS:0], {(3*BUS_BITS-FRAME_BITS){1'b0}}};
    endcase
  end

  always_ff @(posedge clk) begin
    if (room) begin
      chunk_data <= in_payload ? payload_data : header_part;
      chunk_bytes <= in_payload ? (payload_ends ? payload_left[6:0] : 7'd64)
                                : (header_ends ? header_left[6:0] : 7'd64);
      chunk_last <= in_payload ? payload_ends : header_ends && !has_payload;
      chunk_egress <= '{output_kind: kind, port: record.port, in_port: record.in_port, ppu: record.ppu};
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      in_payload <= 1'b0;
      part <= '0;
      chunk_valid <= 1'b0;
      payload_left <= '0;
    end else begin
      if (room) chunk_valid <= (header_step || payload_step) && sends;
      if (header_step) begin
        part <= header_ends ? 2'd0 : part + 1'b1;
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

  // Stage 2: rest of the frame that did not fill a beat (0 to 64 bytes), then the output register.
  logic [BUS_BITS-1:0] rest_data;
  logic [6:0] rest_bytes;
  logic rest_last;
  egress_t rest_egress;
  wire go = !out_valid || out_ready;
  wire flush = rest_last;
  assign chunk_taken = chunk_valid && go;

  // The chunk, rotated to the place behind the rest.
  wire [2*BUS_BITS-1:0] doubled = {chunk_data, chunk_data} >> {rest_bytes[5:0], 3'b000};
  wire [BUS_BITS-1:0] rotated = doubled[BUS_BITS-1:0];
  logic [BUS_BITS-1:0] joined;
  wire [7:0] total = 8'(rest_bytes) + 8'(chunk_bytes);
  wire full = total > 8'd64;
  logic [BUS_BITS-1:0] beat;
  logic [6:0] beat_bytes;
  always_comb begin
    for (int i = 0; i < BUS_BYTES; i++)
      joined[BUS_BITS-1-i*8-:8] = 7'(i) < rest_bytes ? rest_data[BUS_BITS-1-i*8-:8] : rotated[BUS_BITS-1-i*8-:8];
    beat = flush ? rest_data : joined;
    beat_bytes = flush ? rest_bytes : 7'd64;
  end

  always_ff @(posedge clk) begin
    if (go) begin
      for (int i = 0; i < BUS_BYTES; i++) begin
        out_data[i*8+:8] <= beat[BUS_BITS-1-i*8-:8];
        out_keep[i] <= 7'(i) < beat_bytes;
      end
      out_last <= flush;
      out_egress <= rest_bytes != 0 ? rest_egress : chunk_egress;
      if (chunk_valid) rest_egress <= chunk_egress;
      if (chunk_valid) rest_data <= flush ? chunk_data : full ? rotated : joined;
    end
  end
  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      rest_bytes <= '0;
      rest_last <= 1'b0;
    end else if (go) begin
      out_valid <= flush || (chunk_valid && full);
      if (chunk_valid) begin
        rest_bytes <= flush ? chunk_bytes : full ? 7'(total - 8'd64) : total[6:0];
        rest_last <= chunk_last;
      end else if (flush) begin
        rest_bytes <= '0;
        rest_last <= 1'b0;
      end
    end
  end

  wire _unused = &{1'b0, doubled, header_left[7]};
endmodule

`default_nettype wire
