// SPDX-License-Identifier: Apache-2.0
//! What a worker tells the control thread.

use flow::{EntryId, PacketInReason, PortNo};
use frame::Frame;

/// A report of a worker. When the control thread does not keep up, packets for the controller are counted drops, and
/// what was seen to learn waits for the source's next packet.
#[derive(Debug)]
pub enum Event {
    /// A packet for the controller.
    PacketIn(PacketIn),
    /// NORMAL saw a source that is not learned, or learned at another port.
    Learn(Learn),
}

/// A packet for the controller.
#[derive(Debug)]
pub struct PacketIn {
    /// The packet as it was when it was sent; goes back with `DataPlane::recycle`. `meta.in_port` is its ingress port.
    pub frame: Frame,
    /// The table whose entry sent it.
    pub table: u8,
    /// The entry.
    pub entry: EntryId,
    /// Why.
    pub reason: PacketInReason,
    /// Bytes of it that the controller asked for.
    pub max_len: u16,
    /// The metadata register.
    pub metadata: u64,
    /// The tunnel ID.
    pub tunnel_id: u64,
}

/// A source address at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Learn {
    /// VLAN ID of the outermost tag; 0 without one.
    pub vid: u16,
    /// The address.
    pub mac: [u8; 6],
    /// The port it was seen at.
    pub port: PortNo,
}
