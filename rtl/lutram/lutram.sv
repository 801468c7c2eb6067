// SPDX-License-Identifier: Apache-2.0
// Distributed RAM of 32 words with one write port and one independent read port.
//
// Latency: a read takes no cycle; a write is visible in the next cycle. All words are 0 at start.

`default_nettype none

module lutram #(
    // Width of a word in bits, at least 1.
    parameter int unsigned WIDTH = 14,
    // The ports always have the same address, so that a cell has 16 bits instead of 14.
    parameter bit ONE_ADDRESS = 1'b0,
    // 1: cells RAM32M16 of UltraScale+; 0: their behaviour, for simulation and proofs.
    parameter bit PRIMITIVE = 1'b0
) (
    input  wire             clk,
    input  wire             write,
    input  wire [4:0]       write_at,
    input  wire [WIDTH-1:0] write_data,
    input  wire [4:0]       read_at,
    output wire [WIDTH-1:0] read_data
);
  if (WIDTH < 1) $fatal(1, "lutram: WIDTH must be at least 1");

  if (PRIMITIVE) begin : gen_cells
    localparam int unsigned CELL_BITS = ONE_ADDRESS ? 16 : 14;
    localparam int unsigned CELLS = (WIDTH + CELL_BITS - 1) / CELL_BITS;
    wire [CELLS*CELL_BITS-1:0] in_bits = (CELLS * CELL_BITS)'(write_data);
    wire [CELLS*CELL_BITS-1:0] out_bits;
    assign read_data = out_bits[WIDTH-1:0];
    // The last cell can have more bits than the word.
    wire _unused = &{1'b0, out_bits};
    for (genvar i = 0; i < CELLS; i++) begin : gen_cell
      // The write port uses the address of port H, whose data bits stay unused with two addresses.
      wire [1:0] h;
      if (ONE_ADDRESS) assign out_bits[i*CELL_BITS+14+:2] = h;
      RAM32M16 cell_i (
          .WCLK (clk),
          .WE   (write),
          .ADDRA(read_at),
          .ADDRB(read_at),
          .ADDRC(read_at),
          .ADDRD(read_at),
          .ADDRE(read_at),
          .ADDRF(read_at),
          .ADDRG(read_at),
          .ADDRH(write_at),
          .DIA  (in_bits[i*CELL_BITS+0+:2]),
          .DIB  (in_bits[i*CELL_BITS+2+:2]),
          .DIC  (in_bits[i*CELL_BITS+4+:2]),
          .DID  (in_bits[i*CELL_BITS+6+:2]),
          .DIE  (in_bits[i*CELL_BITS+8+:2]),
          .DIF  (in_bits[i*CELL_BITS+10+:2]),
          .DIG  (in_bits[i*CELL_BITS+12+:2]),
          .DIH  (ONE_ADDRESS ? in_bits[(i+1)*CELL_BITS-2+:2] : 2'b00),
          .DOA  (out_bits[i*CELL_BITS+0+:2]),
          .DOB  (out_bits[i*CELL_BITS+2+:2]),
          .DOC  (out_bits[i*CELL_BITS+4+:2]),
          .DOD  (out_bits[i*CELL_BITS+6+:2]),
          .DOE  (out_bits[i*CELL_BITS+8+:2]),
          .DOF  (out_bits[i*CELL_BITS+10+:2]),
          .DOG  (out_bits[i*CELL_BITS+12+:2]),
          .DOH  (h)
      );
      wire _unused_h = &{1'b0, h};
    end
  end else begin : gen_behaviour
    logic [WIDTH-1:0] memory[32];
    initial for (int i = 0; i < 32; i++) memory[i] = '0;
    always_ff @(posedge clk) if (write) memory[write_at] <= write_data;
    assign read_data = memory[read_at];
  end
endmodule

`default_nettype wire
