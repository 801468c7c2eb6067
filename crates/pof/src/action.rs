// SPDX-License-Identifier: Apache-2.0
//! Actions: slots of 48 bytes with a type (2 bytes), a length (2 bytes) and a record. Public switches do not
//! examine the length, so any length is accepted.

use flow::GroupId;

use crate::error;
use crate::layout::{self, choice, record, union};
use crate::value::{PofCounterId, PofField, PofMatch};

record! {
    /// Sends the packet to a port. Metadata may be put before it.
    pub struct OutputAction: "OUTPUT" [16 16] {
        /// Offset in bits of the metadata to put before the packet.
        metadata_offset_bits: u16 = (4 2) (2 2),
        /// Length in bits of this metadata. 0 puts none.
        metadata_length_bits: u16 = (6 2) (4 2),
        /// Offset in bytes at which the sent packet begins.
        packet_offset_bytes: u16 = (8 2) (6 2),
    }
    operands error::ACTION_BAD_ARGUMENT {
        /// Port number. In dialect 1.4.0.015, the high 16 bits are the slot.
        port = kind (-) (0 1), value (0 4) (8 8),
    }
}

record! {
    /// Sets a field of the packet to bits of the metadata.
    pub struct SetFieldFromMetadataAction: "SET_FIELD_FROM_METADATA" [16 16] {
        /// Field to set.
        field: PofField = (0 8) (0 8),
        /// Offset of the metadata in bits.
        metadata_offset_bits: u16 = (8 2) (8 2),
    }
}

record! {
    /// Adds a number to a field of at most 32 bits.
    pub struct ModifyFieldAction: "MODIFY_FIELD" [16 16] {
        /// Field to change.
        field: PofField = (0 8) (0 8),
        /// Number to add. The field wraps.
        increment: i32 = (8 4) (8 4),
    }
}

record! {
    /// Inserts a field into the packet.
    pub struct AddFieldAction: "ADD_FIELD" [16 24] {
        /// Name of the field, without effect.
        id: u16 = (0 2) (0 2),
        /// Offset in bits at which the field is inserted.
        offset_bits: u16 = (2 2) (2 2),
        /// Length in bits: at most 64 in dialect 1.2, and at most 128 in 1.4.0.015.
        length_bits: u32 = (4 4) (4 4),
        /// Value as in the message. [`left_aligned`](crate::value::left_aligned) removes the difference
        /// between the dialects.
        value: u128 = (8 8) (8 16),
    }
}

record! {
    /// Removes bits from the packet.
    pub struct DeleteFieldAction: "DELETE_FIELD" [8 16] {
        /// Offset in bits of the first removed bit.
        offset_bits: u16 = (0 2) (0 2),
    }
    operands error::ACTION_BAD_ARGUMENT {
        /// Number of removed bits.
        length_bits = kind (-) (2 1), value (4 4) (8 8),
    }
}

choice! {
    /// Where the bits of a checksum are.
    pub enum PofLocation: "location", else error::ACTION_BAD_ARGUMENT {
        /// In the packet.
        Packet = 0,
        /// In the metadata.
        Metadata = 1,
    }
}

record! {
    /// Writes the ones' complement sum of bits. The checksum itself counts as 0.
    pub struct ChecksumAction: "CALCULATE_CHECKSUM" [8 16] {
        /// Where the checksum is written.
        checksum_location: PofLocation = (-) (0 1),
        /// Where the summed bits are.
        sum_location: PofLocation = (-) (1 1),
        /// Offset of the checksum in bits.
        checksum_offset_bits: u16 = (0 2) (2 2),
        /// Length of the checksum in bits, and of the words that are summed.
        checksum_length_bits: u16 = (2 2) (4 2),
        /// Offset of the summed bits.
        sum_offset_bits: u16 = (4 2) (6 2),
        /// Number of summed bits.
        sum_length_bits: u16 = (6 2) (8 2),
    }
}

record! {
    /// Runs a group.
    pub struct GroupAction: "GROUP" [8 8] {
        /// Number of the group.
        group: GroupId = (0 4) (0 4),
    }
}

record! {
    /// Drops the packet.
    pub struct DropAction: "DROP" [8 8] {
        /// Reason, without effect.
        reason: u32 = (0 4) (0 4),
    }
}

record! {
    /// Sends the whole packet to the controller.
    pub struct PacketInAction: "PACKET_IN action" [8 8] {
        /// Reason in the packet-in, as a number of [`PofPacketInReason`](crate::message::packet::PofPacketInReason).
        reason: u32 = (0 4) (0 4),
    }
}

record! {
    /// Counts the packet.
    pub struct CounterAction: "COUNTER" [8 8] {
        /// Number of the counter.
        counter: PofCounterId = (0 4) (0 4),
    }
}

union! {
    /// An action.
    pub enum PofAction: "action", strides [48 48], header 4,
        unknown error::ACTION_BAD_TYPE, unsupported error::ACTION_BAD_TYPE,
        reserved [101 102 103 104 0xffff] {
        /// OUTPUT.
        Output(OutputAction) = 0,
        /// SET_FIELD. The written bits are value and mask; bits outside the mask become 0.
        SetField(PofMatch) = 1,
        /// SET_FIELD_FROM_METADATA.
        SetFieldFromMetadata(SetFieldFromMetadataAction) = 2,
        /// MODIFY_FIELD.
        ModifyField(ModifyFieldAction) = 3,
        /// ADD_FIELD.
        AddField(AddFieldAction) = 4,
        /// DELETE_FIELD.
        DeleteField(DeleteFieldAction) = 5,
        /// CALCULATE_CHECKSUM.
        Checksum(ChecksumAction) = 6,
        /// GROUP.
        Group(GroupAction) = 7,
        /// DROP.
        Drop(DropAction) = 8,
        /// PACKET_IN.
        PacketIn(PacketInAction) = 9,
        /// COUNTER.
        Counter(CounterAction) = 10,
    }
}
