// SPDX-License-Identifier: Apache-2.0
//! Instructions: slots with a type (2 bytes), a length (2 bytes), 4 unused bytes and a record. Public
//! switches do not examine the length, so any length is accepted. An entry's instructions run in order.

use flow::{MeterId, TableId};

use crate::action::PofAction;
use crate::error;
use crate::layout::{self, choice, record, union};
use crate::value::PofField;

record! {
    /// Continues in another table.
    pub struct GotoTable: "GOTO_TABLE" [72 72] {
        /// Number of the table among the tables of all types.
        table: TableId = (0 1) (0 1),
        /// Number of bytes to add to the base offset. In dialect 1.4.0.015, it is a signed number.
        packet_offset_bytes: u16 = (2 2) (2 2),
    }
    lists {
        /// Fields of the next table.
        fields: PofField = count (1 1) (1 1), slots (8 64) (8 64), else error::INSTRUCTION_BAD_LEN,
    }
}

record! {
    /// Writes a value to the metadata.
    pub struct WriteMetadata: "WRITE_METADATA" [8 24] {
        /// Offset in bits.
        offset_bits: u16 = (0 2) (0 2),
        /// Length in bits.
        length_bits: u16 = (2 2) (2 2),
        /// Value as in the message. [`left_aligned`](crate::value::left_aligned) removes the difference
        /// between the dialects.
        value: u128 = (4 4) (4 16),
    }
}

record! {
    /// Runs actions.
    pub struct ApplyActions: "APPLY_ACTIONS" [200 296] {}
    lists {
        /// The actions, in order.
        actions: PofAction = count (0 1) (0 1), slots (8 192) (8 288), else error::INSTRUCTION_TOO_MANY_ACTIONS,
    }
}

record! {
    /// Sends the packet through a meter.
    pub struct MeterInstruction: "METER" [8 8] {
        /// Number of the meter.
        meter: MeterId = (0 4) (0 4),
    }
}

record! {
    /// Copies bits of the packet to the metadata.
    pub struct WriteMetadataFromPacket: "WRITE_METADATA_FROM_PACKET" [8 8] {
        /// Offset in the metadata in bits.
        metadata_offset_bits: u16 = (0 2) (0 2),
        /// Offset in the packet in bits.
        packet_offset_bits: u16 = (2 2) (2 2),
        /// Length in bits.
        length_bits: u16 = (4 2) (4 2),
    }
}

record! {
    /// Continues with a given entry of a linear table.
    pub struct GotoDirectTable: "GOTO_DIRECT_TABLE" [8 16] {
        /// Number of the table among the tables of all types.
        table: TableId = (0 1) (0 1),
        /// Number of bytes to add to the base offset. In dialect 1.4.0.015, it is a signed number.
        packet_offset_bytes: u16 = (2 2) (2 2),
    }
    operands error::INSTRUCTION_UNSUPPORTED {
        /// Index of the entry.
        index = kind (-) (1 1), value (4 4) (8 8),
    }
}

choice! {
    /// Direction of a jump or a move.
    pub enum PofDirection: "direction", else error::INSTRUCTION_BAD_JUMP {
        /// To later instructions or bytes.
        Forward = 0,
        /// To earlier instructions or bytes.
        Backward = 1,
    }
}

record! {
    /// Compares a field with an operand and jumps over instructions.
    pub struct ConditionalJump: "CONDITIONAL_JMP" [- 48] {
        /// Direction if the field is smaller.
        less_direction: PofDirection = (-) (1 1),
        /// Direction if both are equal.
        equal_direction: PofDirection = (-) (3 1),
        /// Direction if the field is greater.
        greater_direction: PofDirection = (-) (5 1),
        /// Field to compare.
        field: PofField = (-) (8 8),
    }
    operands error::INSTRUCTION_UNSUPPORTED {
        /// Operand to compare with.
        operand = kind (-) (0 1), value (-) (16 8),
        /// Number of instructions to jump over if the field is smaller.
        less = kind (-) (2 1), value (-) (24 8),
        /// Number of instructions to jump over if both are equal.
        equal = kind (-) (4 1), value (-) (32 8),
        /// Number of instructions to jump over if the field is greater.
        greater = kind (-) (6 1), value (-) (40 8),
    }
}

choice! {
    /// Calculation on numbers of at most 32 bits.
    pub enum PofCalculation: "calculation", else error::INSTRUCTION_UNSUPPORTED {
        /// Sum.
        Add = 0,
        /// Difference.
        Subtract = 1,
        /// Shift to the left.
        ShiftLeft = 2,
        /// Shift to the right.
        ShiftRight = 3,
        /// Bitwise and.
        And = 4,
        /// Bitwise or.
        Or = 5,
        /// Bitwise exclusive or.
        Xor = 6,
        /// Bitwise not-or.
        Nor = 7,
    }
}

record! {
    /// Replaces a field by the result of a calculation with this field and an operand.
    pub struct CalculateField: "CALCULATE_FIELD" [- 24] {
        /// Calculation.
        calculation: PofCalculation = (-) (0 2),
        /// First operand and result.
        field: PofField = (-) (8 8),
    }
    operands error::INSTRUCTION_UNSUPPORTED {
        /// Second operand.
        operand = kind (-) (2 1), value (-) (16 8),
    }
}

record! {
    /// Moves the base offset.
    pub struct MovePacketOffset: "MOVE_PACKET_OFFSET" [- 16] {
        /// Direction of the move.
        direction: PofDirection = (-) (0 1) else error::INSTRUCTION_BAD_OFFSET,
    }
    operands error::INSTRUCTION_UNSUPPORTED {
        /// Number of bytes.
        bytes = kind (-) (1 1), value (-) (8 8),
    }
}

union! {
    /// An instruction.
    pub enum PofInstruction: "instruction", strides [208 304], header 8,
        unknown error::INSTRUCTION_UNKNOWN, unsupported error::INSTRUCTION_UNSUPPORTED,
        reserved [3 5 12 13 14 15 0xffff] {
        /// GOTO_TABLE.
        GotoTable(GotoTable) = 1,
        /// WRITE_METADATA.
        WriteMetadata(WriteMetadata) = 2,
        /// APPLY_ACTIONS.
        ApplyActions(ApplyActions) = 4,
        /// METER.
        Meter(MeterInstruction) = 6,
        /// WRITE_METADATA_FROM_PACKET.
        WriteMetadataFromPacket(WriteMetadataFromPacket) = 7,
        /// GOTO_DIRECT_TABLE.
        GotoDirectTable(GotoDirectTable) = 8,
        /// CONDITIONAL_JMP.
        ConditionalJump(ConditionalJump) = 9,
        /// CALCULATE_FIELD.
        CalculateField(CalculateField) = 10,
        /// MOVE_PACKET_OFFSET.
        MovePacketOffset(MovePacketOffset) = 11,
    }
}
