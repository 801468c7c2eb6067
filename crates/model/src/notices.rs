// SPDX-License-Identifier: Apache-2.0
//! What controllers are to be told, in a bounded queue.

use crate::ports::Port;
use flow::{FlowEntry, Nanos, PacketInReason};
use frame::Frame;
use std::collections::VecDeque;
use std::sync::Arc;

/// Something a controller is to be told.
#[derive(Debug)]
pub enum Notice {
    /// A packet for the controller.
    PacketIn(PacketIn),
    /// An entry that asked for it went.
    FlowRemoved(FlowRemoved),
    /// A port came, changed or went.
    PortStatus {
        /// Which of these.
        reason: PortReason,
        /// The port as it is now; when it went, as it was.
        port: Port,
    },
}

/// A packet for the controller. Give the frame back with [`crate::Model::recycle`].
#[derive(Debug)]
pub struct PacketIn {
    /// The packet; `meta.in_port` is its ingress port.
    pub frame: Frame,
    /// The table whose entry sent it.
    pub table: u8,
    /// The entry's cookie; all ones if the entry is gone.
    pub cookie: u64,
    /// Why it was sent.
    pub reason: PacketInReason,
    /// Bytes of it that the controller asked for.
    pub max_len: u16,
    /// The metadata register.
    pub metadata: u64,
    /// The tunnel ID.
    pub tunnel_id: u64,
}

/// Why an entry went (OFPRR_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RemovedReason {
    /// No packet for its idle timeout.
    IdleTimeout,
    /// Its hard timeout passed.
    HardTimeout,
    /// Deleted by a request.
    Delete,
    /// A group that it sends to was deleted.
    GroupDelete,
}

/// An entry that went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved {
    /// The entry.
    pub entry: Arc<FlowEntry>,
    /// Why it went.
    pub reason: RemovedReason,
    /// How long it lived.
    pub duration_ns: Nanos,
    /// Packets that hit it; all ones if they are not counted.
    pub packets: u64,
    /// Their bytes; all ones if they are not counted.
    pub bytes: u64,
}

/// What happened to a port (OFPPR_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortReason {
    /// It came.
    Add,
    /// It went.
    Delete,
    /// Its link or configuration changed.
    Modify,
}

/// Notices that found no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoticeDrops {
    /// Packet-ins.
    pub packet_ins: u64,
    /// Port notices.
    pub port_statuses: u64,
}

/// Notices in the order in which they arose.
#[derive(Debug)]
pub(crate) struct Notices {
    queue: VecDeque<Notice>,
    limit: usize,
    drops: NoticeDrops,
}

impl Notices {
    pub fn new(limit: usize) -> Self {
        Self { queue: VecDeque::new(), limit, drops: NoticeDrops::default() }
    }

    /// No room but for port notices.
    pub fn is_full(&self) -> bool {
        self.queue.len() >= self.limit
    }

    /// Queues a packet-in; without room its frame comes back.
    pub fn packet_in(&mut self, packet_in: PacketIn) -> Option<Frame> {
        if self.is_full() {
            self.drops.packet_ins += 1;
            return Some(packet_in.frame);
        }
        self.queue.push_back(Notice::PacketIn(packet_in));
        None
    }

    /// Queues a flow-removed; the caller waits while `is_full`.
    pub fn flow_removed(&mut self, removed: FlowRemoved) {
        self.queue.push_back(Notice::FlowRemoved(removed));
    }

    pub fn port_status(&mut self, reason: PortReason, port: Port) {
        // Packet-ins must not crowd out the news that a port is gone.
        if self.queue.len() >= 2 * self.limit {
            self.drops.port_statuses += 1;
        } else {
            self.queue.push_back(Notice::PortStatus { reason, port });
        }
    }

    pub fn pop(&mut self) -> Option<Notice> {
        self.queue.pop_front()
    }

    pub fn drops(&self) -> NoticeDrops {
        self.drops
    }
}
