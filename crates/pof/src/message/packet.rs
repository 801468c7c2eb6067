// SPDX-License-Identifier: Apache-2.0
//! PACKET_IN and PACKET_OUT.

use flow::TableId;

use crate::action::PofAction;
use crate::error::{self, Fault};
use crate::layout::{self, choice, record};

/// Buffer number of a packet that is not buffered.
pub const NO_BUFFER: u32 = 0xffff_ffff;

/// Maximum number of bytes of a packet in PACKET_IN and PACKET_OUT.
pub const PACKET_BYTES_MAX: usize = 2048;

choice! {
    /// Reason for a packet-in.
    pub enum PofPacketInReason: "packet-in reason", else error::BAD_TYPE {
        /// No entry matched.
        NoMatch = 0,
        /// An action sent the packet.
        Action = 1,
        /// The TTL was invalid.
        InvalidTtl = 2,
    }
}

record! {
    /// Body of PACKET_IN.
    pub struct PofPacketIn: "PACKET_IN" [24 24] {
        /// Buffer of the packet, or [`NO_BUFFER`].
        buffer_id: u32 = (0 4) (0 4),
        /// Length of the packet in bytes, which may exceed the length of `data`.
        total_length_bytes: u16 = (4 2) (4 2),
        /// Reason for the packet-in.
        reason: PofPacketInReason = (6 1) (6 1),
        /// Number of the table among the tables of all types.
        table: TableId = (7 1) (7 1),
        /// Cookie of the entry.
        cookie: u64 = (8 8) (8 8),
        /// Number that the controller knows the switch by.
        device_id: u32 = (16 4) (16 4),
        /// Slot of the ingress port.
        slot: u16 = (-) (20 2),
        /// Ingress port.
        port: u16 = (-) (22 2),
    }
    tail {
        /// Packet, possibly truncated.
        data: PACKET_BYTES_MAX
    }
    check check_packet_in;
}

fn check_packet_in(packet: &PofPacketIn) -> Result<(), Fault> {
    if packet.data.len() <= usize::from(packet.total_length_bytes) {
        return Ok(());
    }
    let (length, total) = (packet.data.len(), packet.total_length_bytes);
    Err(error::BAD_LEN.at(4, format!("the packet has {length} bytes, more than its length of {total} bytes")))
}

record! {
    /// Body of PACKET_OUT.
    pub struct PofPacketOut: "PACKET_OUT" [- 304] {
        /// Buffer of the packet, or [`NO_BUFFER`].
        buffer_id: u32 = (-) (0 4),
        /// Ingress port that the actions assume.
        in_port: u32 = (-) (4 4),
        /// Length of the packet in bytes, which equals the length of `data`.
        packet_length_bytes: u32 = (-) (12 4),
    }
    lists {
        /// Actions, in order.
        actions: PofAction = count (-) (8 1), slots (-) (16 288), else error::ACTION_TOO_MANY,
    }
    tail {
        /// Packet.
        data: PACKET_BYTES_MAX
    }
    trim trim_packet_out;
    check check_packet_out;
}

/// Removes padding after the packet. The public structure has space for the longest packet.
fn trim_packet_out(packet: &mut PofPacketOut) {
    packet.data.truncate(packet.packet_length_bytes as usize);
}

fn check_packet_out(packet: &PofPacketOut) -> Result<(), Fault> {
    if packet.data.len() as u64 == u64::from(packet.packet_length_bytes) {
        return Ok(());
    }
    let (claimed, length) = (packet.packet_length_bytes, packet.data.len());
    Err(error::BAD_PACKET.at(12, format!("the packet claims {claimed} bytes, but {length} bytes follow")))
}
