// SPDX-License-Identifier: Apache-2.0
//! A bounded queue of asynchronous messages to controllers.

use crate::kept_counts::EntryRef;
use crate::port::Port;
use dataplane::Question;
use flow::{FlowEntry, HeldFlow, Nanos, PacketInReason, TableId};
use frame::Frame;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of flows whose packets are to be released because their packet-in was lost.
const UNASKED_MAX: usize = 16_384;

/// An asynchronous message for controllers.
#[derive(Debug)]
pub enum AsyncMessage {
    /// A packet for the controller.
    PacketIn(PacketIn),
    /// An entry with the flag "send flow-removed" was removed.
    FlowRemoved(FlowRemoved),
    /// A port was added, changed or removed.
    PortStatus {
        /// Kind of change.
        reason: PortReason,
        /// The port after the change. For a removed port, its last state.
        port: Port,
    },
}

/// A packet for the controller. Return the frame with [`crate::Model::recycle`].
#[derive(Debug)]
pub struct PacketIn {
    /// The packet; `meta.in_port` is its ingress port.
    pub frame: Frame,
    /// Table of the entry that sent the packet.
    pub table: TableId,
    /// The entry, unless it no longer exists or a controller sent the packet.
    pub entry: Option<EntryRef>,
    /// Cookie of that entry, or all ones if the entry no longer exists.
    pub cookie: u64,
    /// Reason of the packet-in.
    pub reason: PacketInReason,
    /// Maximum number of bytes to send to the controller.
    pub max_len: u16,
    /// Metadata register of the packet.
    pub metadata: u64,
    /// Tunnel ID of the packet.
    pub tunnel_id: u64,
    /// Later packets of the flow, if they wait for the controller's answer.
    pub question: Option<Question>,
}

/// Reason why an entry was removed (OFPRR_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RemovedReason {
    /// No packet hit the entry during its idle timeout.
    IdleTimeout,
    /// The entry's hard timeout passed.
    HardTimeout,
    /// A request deleted the entry.
    Delete,
    /// A group that the entry sends to was deleted.
    GroupDelete,
}

/// An entry that was removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowRemoved {
    /// The removed entry.
    pub entry: Arc<FlowEntry>,
    /// Reason of the removal.
    pub reason: RemovedReason,
    /// Time from the entry's creation to its removal, in nanoseconds.
    pub duration_ns: Nanos,
    /// Number of packets that hit the entry, or all ones if its packets are not counted.
    pub packets: u64,
    /// Number of bytes of these packets, or all ones if bytes are not counted.
    pub bytes: u64,
}

/// Kind of a port's change (OFPPR_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PortReason {
    /// The port was added.
    Add,
    /// The port was removed.
    Delete,
    /// The port's link, description or configuration changed.
    Modify,
}

/// Numbers of asynchronous messages dropped because the queue was full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AsyncMessageDrops {
    /// Dropped packet-ins.
    pub packet_ins: u64,
    /// Dropped port-status messages.
    pub port_statuses: u64,
}

/// Queue of asynchronous messages, in the order of the events that caused them.
#[derive(Debug)]
pub(crate) struct AsyncQueue {
    queue: VecDeque<AsyncMessage>,
    limit: usize,
    drops: AsyncMessageDrops,
    /// Flows whose packets wait for the answer to a lost packet-in.
    unasked: VecDeque<HeldFlow>,
}

impl AsyncQueue {
    pub fn new(limit: usize) -> Self {
        Self { queue: VecDeque::new(), limit, drops: AsyncMessageDrops::default(), unasked: VecDeque::new() }
    }

    /// Returns whether the queue has space for port-status messages only.
    pub fn is_full(&self) -> bool {
        self.queue.len() >= self.limit
    }

    /// Queues a packet-in. Returns its frame if the queue is full.
    pub fn packet_in(&mut self, packet_in: PacketIn) -> Option<Frame> {
        if self.is_full() {
            self.drops.packet_ins += 1;
            packet_in.question.into_iter().for_each(|question| self.lose(question.flow));
            return Some(packet_in.frame);
        }
        self.queue.push_back(AsyncMessage::PacketIn(packet_in));
        None
    }

    /// Notes that a packet-in was lost, so that the packets that wait for its answer can be released. If the
    /// list of such flows is full, these packets wait until the question times out.
    pub fn lose(&mut self, flow: HeldFlow) {
        if self.unasked.len() < UNASKED_MAX {
            self.unasked.push_back(flow);
        }
    }

    /// Returns whether packets of any flow wait for the answer to a lost packet-in.
    pub fn has_unasked(&self) -> bool {
        !self.unasked.is_empty()
    }

    /// Takes up to `most` flows whose packets wait for the answer to a lost packet-in.
    pub fn take_unasked(&mut self, most: usize) -> Vec<HeldFlow> {
        self.unasked.drain(..self.unasked.len().min(most)).collect()
    }

    /// Queues a flow-removed message. The caller must wait while `is_full` returns true.
    pub fn flow_removed(&mut self, removed: FlowRemoved) {
        self.queue.push_back(AsyncMessage::FlowRemoved(removed));
    }

    pub fn port_status(&mut self, reason: PortReason, port: Port) {
        // The space above the limit is reserved for port-status messages, which packet-ins must not displace.
        if self.queue.len() >= 2 * self.limit {
            self.drops.port_statuses += 1;
        } else {
            self.queue.push_back(AsyncMessage::PortStatus { reason, port });
        }
    }

    pub fn pop(&mut self) -> Option<AsyncMessage> {
        self.queue.pop_front()
    }

    pub fn drops(&self) -> AsyncMessageDrops {
        self.drops
    }
}
