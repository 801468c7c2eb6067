// SPDX-License-Identifier: Apache-2.0
//! Events that the data plane reports to the control thread.

use flow::bridge::FloodKind;
use flow::{EntryId, HeldFlow, Nanos, PacketInReason, PortNo, TableId};
use frame::Frame;

/// An event of the data plane.
///
/// If the control thread does not keep up, packet-ins are dropped and counted. A lost learning report is
/// repeated by the next packet from the same source.
#[derive(Debug)]
pub enum Event {
    /// A packet for the controller.
    PacketIn(PacketInEvent),
    /// NORMAL saw a source that is not learned, or that was learned at another port.
    Learn(MacSeen),
    /// NORMAL saw a source that is not learned at this port, because the port has reached its limit of
    /// learned addresses. Each port reports at most one such packet per second.
    MacRefused(PortNo),
    /// A packet exceeded a storm limit that closes its ingress port. Each such packet is reported.
    Storm(StormEvent),
    /// The search worker began or ceased to answer the searches of a port cache.
    Searcher(SearcherEvent),
}

/// Whether the search worker answers the searches of a worker's port cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearcherEvent {
    /// Number of the worker.
    pub worker: u16,
    /// Whether the search worker answers. If not, the worker looks up packets in its own tables.
    pub is_answering: bool,
}

/// A packet for the controller.
#[derive(Debug)]
pub struct PacketInEvent {
    /// Copy of the packet in the state in which it was sent. `meta.in_port` is its ingress port. The control
    /// thread returns the frame with `DataPlane::recycle`.
    pub frame: Frame,
    /// Table of the entry that sent the packet.
    pub table: TableId,
    /// ID of the entry that sent the packet.
    pub entry: EntryId,
    /// Reason of the packet-in.
    pub reason: PacketInReason,
    /// Maximum number of bytes that the controller requested.
    pub max_len: u16,
    /// Value of the metadata register.
    pub metadata: u64,
    /// Value of the tunnel ID.
    pub tunnel_id: u64,
    /// Later packets of the flow, if they wait for the controller's answer.
    pub question: Option<Question>,
}

/// A packet-in for whose answer later packets of the flow wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// The waiting packets.
    pub flow: HeldFlow,
    /// Time of the packet-in.
    pub asked: Nanos,
    /// Time at which the packets no longer wait.
    pub ends: Nanos,
}

impl Question {
    /// Returns whether more than half of the time for an answer is over.
    #[must_use]
    pub fn is_late(&self, now: Nanos) -> bool {
        now.saturating_sub(self.asked) > self.ends.saturating_sub(now)
    }
}

/// A packet that exceeded a storm limit of its ingress port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StormEvent {
    /// The ingress port.
    pub port: PortNo,
    /// Kind of packet whose limit was exceeded.
    pub kind: FloodKind,
}

/// A source address seen at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MacSeen {
    /// VLAN ID of the outermost tag, or 0 without a tag.
    pub vid: u16,
    /// Source MAC address.
    pub mac: [u8; 6],
    /// Port at which the address was seen.
    pub port: PortNo,
}
