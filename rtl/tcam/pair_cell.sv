// SPDX-License-Identifier: Apache-2.0
// One memory cell of the TCAM for seven chunks of two entries. The carry chain of the cell's slice takes the
// accept bits of entry 1, so they need no further LUTs.
//
// Latency: none; a write is visible in the next cycle.

`default_nettype none

module pair_cell
  import pipeline_pkg::*;
(
    input  wire                        clk,
    input  wire                        write,
    input  wire  [CHUNK_BITS-1:0]      write_at,
    // Whether the two entries accept this value of each chunk.
    input  wire  [6:0][1:0]            write_data,
    input  wire  [6:0][CHUNK_BITS-1:0] chunks,
    // Chunks that entry 0 accepts.
    output wire  [6:0]                 accepts,
    // Whether entry 1 accepts the seven chunks of this cell and all chunks of the cells before it.
    input  wire                        in_match,
    output wire                        out_match
);
  wire [7:0] entry_1;
  wire [7:0] carry;
  wire unused_bit;
  assign out_match = carry[7];
  // Port H has the write address. Its bits are 1 from the start and in each write, so they change nothing.
  RAM32M16 #(
      .INIT_H('1)
  ) memory_i (
      .WCLK (clk),
      .WE   (write),
      .ADDRA(chunks[0]),
      .ADDRB(chunks[1]),
      .ADDRC(chunks[2]),
      .ADDRD(chunks[3]),
      .ADDRE(chunks[4]),
      .ADDRF(chunks[5]),
      .ADDRG(chunks[6]),
      .ADDRH(write_at),
      .DIA  (write_data[0]),
      .DIB  (write_data[1]),
      .DIC  (write_data[2]),
      .DID  (write_data[3]),
      .DIE  (write_data[4]),
      .DIF  (write_data[5]),
      .DIG  (write_data[6]),
      .DIH  (2'b11),
      .DOA  ({entry_1[0], accepts[0]}),
      .DOB  ({entry_1[1], accepts[1]}),
      .DOC  ({entry_1[2], accepts[2]}),
      .DOD  ({entry_1[3], accepts[3]}),
      .DOE  ({entry_1[4], accepts[4]}),
      .DOF  ({entry_1[5], accepts[5]}),
      .DOG  ({entry_1[6], accepts[6]}),
      .DOH  ({entry_1[7], unused_bit})
  );
  CARRY8 #(
      .CARRY_TYPE("SINGLE_CY8")
  ) carry_i (
      .CI(in_match),
      .CI_TOP(1'b0),
      .DI(8'd0),
      .S(entry_1),
      .CO(carry),
      .O()
  );
  wire _unused = &{1'b0, carry[6:0], unused_bit};
endmodule

`default_nettype wire
