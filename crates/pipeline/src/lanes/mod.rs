// SPDX-License-Identifier: Apache-2.0
//! The two lanes: packets that pass the whole fast-forwarding path leave immediately, and all other packets
//! are queued.
//!
//! ```text
//! burst ──► path record or walk ──► all hit: leaves                       (burst by burst, as received)
//!            │  └──► hit, but earlier packets of its flow wait ───► hold ──┐ released in order, walks on
//!            ▼                                                             │
//!          backlog: one queue in the order of arrival ──► tables ──► leaves│  (quantum by quantum)
//!            └ no space: dropped and counted                └ learns ──► a record with a fence
//! ```
//!
//! A normal packet with a record of its whole path ([`crate::express`]) joins the backlog with the record's
//! entries and needs no table lookup. If a short burst finds nothing waiting, such packets with a direct path
//! leave at once. Known normal and unknown packets share one queue, so they cannot
//! overtake one another. Each kind has a share of it ([`Shares`]).
//!
//! A packet on the fast-forwarding path could overtake an earlier packet of its flow that waits in the
//! backlog, if a record was made meanwhile. Such a record therefore has a *fence* (an order barrier, not a
//! memory fence): the position of the backlog's end when the record was made. Packets that hit the record
//! before the backlog has drained up to the fence are held ([`hold`]). Later packets of the flow are held,
//! too, and do not join the backlog. A held packet therefore waits for at most one full backlog.

mod hold;

use crate::packet::Packet;
use crate::slab::{BURST, Burst, PacketSlot};
use backlog::{BacklogShare, LaneLimits, Shares, Window};
use dataplane::Usage;
use flow::PortNo;
use hold::Hold;
use std::collections::VecDeque;

/// Maximum number of packets in a short burst. If a short burst finds nothing waiting, its normal packets
/// with a direct path leave at once. In the backlog, they would delay later packets for about as long.
const SHORT_BURST: usize = 8;

/// Usage of the lanes. Each value may exceed its limit by a burst or two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneUsage {
    /// Known normal packets in the backlog.
    pub backlog_normal: Usage,
    /// Packets in the backlog whose value has no LUT record.
    pub backlog_unknown: Usage,
    /// Held low-latency packets.
    pub hold: Usage,
}

/// Which packets wait when a burst arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    Nothing,
    /// Packets in the backlog.
    Backlog,
    /// Packets in the hold queue, and perhaps in the backlog.
    Held,
}

/// What the waiting packets mean for a burst that arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneState {
    pub queued: Queued,
    /// Whether all normal packets of the burst wait, although some have a direct path.
    pub normal_waits: bool,
    /// Number of known normal packets for which the backlog has room.
    pub normal_room: usize,
}

/// Packets that stay in the pipeline between two bursts.
#[derive(Debug)]
pub(crate) struct Lanes {
    limits: LaneLimits,
    /// Packets of the last burst that did not leave, if the backlog was empty when the burst arrived.
    pub last_burst: Burst,
    backlog: VecDeque<PacketSlot>,
    shares: Shares,
    pub hold: Hold,
    head: u32,
}

impl Lanes {
    pub fn new(limits: LaneLimits) -> Self {
        Self {
            limits,
            last_burst: Burst::new(),
            backlog: VecDeque::with_capacity(if limits.is_on() { limits.backlog() } else { 0 }),
            shares: Shares::new(limits),
            hold: Hold::new(if limits.is_on() { usize::from(limits.hold) + 2 * BURST } else { 0 }),
            head: 0,
        }
    }

    /// Returns whether packets may wait.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.limits.is_on()
    }

    /// Returns the positions of the packets in the backlog.
    pub fn window(&self) -> Window {
        Window::new(self.head, self.backlogged() as u32)
    }

    /// Returns the number of packets in the backlog.
    pub fn backlogged(&self) -> usize {
        self.backlog.len() + self.last_burst.len()
    }

    /// Returns the total number of waiting packets.
    pub fn held(&self) -> usize {
        self.backlogged() + self.hold.len()
    }

    /// Returns which packets wait.
    #[inline]
    pub fn queued(&self) -> Queued {
        match (self.hold.len(), self.backlogged()) {
            (0, 0) => Queued::Nothing,
            (0, _) => Queued::Backlog,
            _ => Queued::Held,
        }
    }

    /// Returns what the waiting packets mean for a burst of `count` packets. If not `lanes_on`, no packet of
    /// the burst waits.
    #[inline]
    pub fn state(&self, queued: Queued, lanes_on: bool, count: usize, packets: &[Packet]) -> LaneState {
        let normal_waits = lanes_on && (count > SHORT_BURST || queued != Queued::Nothing);
        // If the backlog is empty, it accepts a whole burst beyond all shares.
        let is_limited = normal_waits && self.backlogged() > 0;
        let normal_room = if is_limited { self.normal_room(packets) } else { usize::MAX };
        LaneState { queued, normal_waits, normal_room }
    }

    /// Returns the number of known normal packets that may join the backlog behind `last_burst`.
    #[inline(never)]
    fn normal_room(&self, packets: &[Packet]) -> usize {
        let is_normal = |slot: &&PacketSlot| packets[slot.index()].share() == BacklogShare::Normal;
        self.shares.normal_room().saturating_sub(self.last_burst.iter().filter(is_normal).count())
    }

    /// Returns the usage of the backlog's shares and of the hold queue.
    pub fn usage(&self, packets: &[Packet]) -> LaneUsage {
        let (mut normal, mut unknown) = self.shares.used();
        for slot in &self.last_burst {
            match packets[slot.index()].share() {
                BacklogShare::Normal => normal += 1,
                BacklogShare::Unknown => unknown += 1,
            }
        }
        LaneUsage {
            backlog_normal: Usage::of("backlog_normal", normal, usize::from(self.limits.normal)),
            backlog_unknown: Usage::of("backlog_unknown", unknown, usize::from(self.limits.unknown)),
            hold: Usage::of("hold", self.hold.len(), usize::from(self.limits.hold)),
        }
    }

    /// Takes up to a burst of waiting packets without regard to fences. The result is empty if no packet
    /// waits.
    pub fn take_any(&mut self, packets: &[Packet]) -> Burst {
        let held = self.hold.take_any();
        if held.is_empty() { self.quantum(BURST, packets) } else { held }
    }

    /// Returns whether the hold queue has space for another whole burst.
    pub fn holds_more(&self) -> bool {
        self.hold.len() <= usize::from(self.limits.hold)
    }

    /// Moves the packets of `last_burst` into the backlog, so that other packets can join behind them.
    pub fn queue_last_burst(&mut self, packets: &[Packet]) {
        for slot in self.last_burst.take() {
            // The backlog has capacity for a burst beyond all shares.
            let packet = &packets[slot.index()];
            self.shares.enter(packet.share(), packet.data.ext.in_port());
            self.backlog.push_back(slot);
        }
    }

    /// Appends a packet to the backlog. Returns false if the backlog or the packet's share is full.
    pub fn admit(&mut self, slot: PacketSlot, packet: &Packet) -> bool {
        let (share, in_port) = (packet.share(), packet.data.ext.in_port());
        if self.backlog.len() == self.backlog.capacity() || !self.shares.has_room(share, in_port) {
            return false;
        }
        self.shares.enter(share, in_port);
        self.backlog.push_back(slot);
        true
    }

    /// Returns whether the backlog accepts a whole burst from a port.
    pub fn has_room_for_burst(&self, port: PortNo) -> bool {
        self.backlogged() == 0 || self.shares.has_room_for_burst(port, self.last_burst.len())
    }

    /// Takes up to `most` packets from the front of the backlog, but no packet after the first fence of a
    /// held packet.
    pub fn quantum(&mut self, most: usize, packets: &[Packet]) -> Burst {
        let most = most.clamp(1, BURST).min(self.hold.distance(self.window()));
        if !self.last_burst.is_empty() {
            if self.last_burst.len() <= most {
                self.head = self.head.wrapping_add(self.last_burst.len() as u32);
                return std::mem::take(&mut self.last_burst);
            }
            self.queue_last_burst(packets);
        }
        let count = most.min(self.backlog.len());
        let quantum: Burst = self.backlog.drain(..count).collect();
        for slot in &quantum {
            let packet = &packets[slot.index()];
            self.shares.leave(packet.share(), packet.data.ext.in_port());
        }
        self.head = self.head.wrapping_add(count as u32);
        quantum
    }

    /// Returns whether held packets may continue.
    pub fn releases(&self) -> bool {
        self.hold.may_release(self.window())
    }

    /// Takes up to a burst of held packets that may continue, in order.
    pub fn released(&mut self) -> Burst {
        let window = self.window();
        self.hold.release(window)
    }

    /// Notes that a poll iteration begins in which an operation waits until the backlog has drained.
    pub fn close(&mut self) {
        self.shares.close();
    }

    /// Notes that an operation was applied and that the next one already waits.
    pub fn reopen_between(&mut self) {
        self.shares.reopen_between();
    }

    /// Notes that no operation waits any longer.
    pub fn reopen(&mut self) {
        self.shares.reopen();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantum_ends_at_the_first_fence_that_a_packet_is_held_back_for() {
        let mut lanes = Lanes::new(LaneLimits { normal: 64, unknown: 64, hold: 8 });
        let packets: Vec<Packet> = (0..20).map(|_| Packet::empty()).collect();
        (0..19).map(PacketSlot).for_each(|slot| assert!(lanes.admit(slot, &packets[slot.index()])));
        // Nineteen packets have joined the backlog. This packet is held until the first five have left.
        lanes.hold.push(PacketSlot(19), 5, lanes.window());
        assert_eq!((lanes.quantum(3, &packets).len(), lanes.releases()), (3, false));
        assert_eq!((lanes.quantum(BURST, &packets).len(), lanes.releases()), (2, true));
        assert_eq!((lanes.released().as_slice(), lanes.releases()), (&[PacketSlot(19)][..], false));
        assert_eq!(lanes.quantum(BURST, &packets).len(), 14);
    }
}
