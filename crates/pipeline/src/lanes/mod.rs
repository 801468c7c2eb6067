// SPDX-License-Identifier: Apache-2.0
//! Two lanes: what gets all the way over the fast-forwarding path leaves at once, everything else waits for its turn.
//!
//! ```text
//! burst ──► walk ──► all hit: leaves                                      (burst by burst, as received)
//!            │  └──► hit, but earlier packets of its value wait ──► hold ──┐ released in order, walks on
//!            ▼                                                             │
//!          backlog: one queue in the order of arrival ──► tables ──► leaves│  (quantum by quantum)
//!            └ no room: dropped by name                     └ learns ──► a record with a fence
//! ```
//!
//! Known normal and unknown packets wait in one queue, so they cannot overtake one another; each kind has a share of it
//! ([`shares`]). A packet on the fast-forwarding path could overtake an earlier one of its flow that waits: by a record that
//! was made meanwhile. Such a record has a *fence*: the position of the backlog's end when it was made. Packets that hit it
//! before all up to there have left are held back ([`hold`]), and so are the next ones, so that the fence is passed after one
//! length of the backlog, whatever arrives.

pub(crate) mod hold;
mod shares;

use crate::burst::BURST;
use crate::level::Level;
use crate::packet::Packet;
use crate::slab::Burst;
use hold::Hold;
pub(crate) use shares::Kind;
use shares::Shares;
use std::collections::VecDeque;

/// Limits of a worker's lanes, packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneLimits {
    /// Packets known to be normal in the backlog.
    pub normal: u16,
    /// Packets of unknown values in the backlog. With neither, nothing waits: each burst is finished before the next.
    pub unknown: u16,
    /// Low-latency packets that are held back for earlier ones of their flow. If there are more, the backlog is worked off
    /// before the next burst: they are never dropped.
    pub hold: u16,
}

impl LaneLimits {
    /// Nothing waits.
    pub const NONE: Self = Self { normal: 0, unknown: 0, hold: 0 };

    /// What a daemon has unless it is told otherwise. At 60 ns a packet that is 0.2 ms of work; under overload, in small quanta
    /// between bursts, the last one waits for some milliseconds.
    pub const USUAL: Self = Self { normal: 2_048, unknown: 1_024, hold: 256 };

    /// Most packets of each kind.
    pub const MAX: u16 = 16_384;

    /// Whether packets may wait.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.normal > 0 || self.unknown > 0
    }

    /// Packets that may be in the pipeline at once: each list may be exceeded by the burst that is under way.
    pub(crate) fn packets(&self) -> usize {
        if self.is_on() { self.backlog() + usize::from(self.hold) + 3 * BURST } else { BURST }
    }

    fn backlog(&self) -> usize {
        usize::from(self.normal) + usize::from(self.unknown) + BURST
    }
}

/// The part of the order of arrival that waits: positions count packets that have joined the backlog.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Window {
    head: u32,
    len: u32,
}

impl Window {
    /// Whether a packet before a fence still waits. A fence of long ago may be taken for one of now when positions have come
    /// round: then a packet is held back for nothing, for one length of the backlog.
    #[inline]
    pub fn waits(self, fence: u32) -> bool {
        fence.wrapping_sub(self.head).wrapping_sub(1) < self.len
    }

    /// Packets that leave before a fence is passed.
    #[inline]
    pub fn distance(self, fence: u32) -> u32 {
        fence.wrapping_sub(self.head)
    }

    /// The fence for a record made now; 0: it needs none. None at all where its number would be that.
    pub fn fence(self) -> Option<u32> {
        match self.head.wrapping_add(self.len) {
            _ if self.len == 0 => Some(0),
            0 => None,
            fence => Some(fence),
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// What waits between two bursts.
#[derive(Debug)]
pub(crate) struct Lanes {
    limits: LaneLimits,
    /// What is left of the last burst, if it found nothing that waits: nearly always the next to be worked off, and then as
    /// it stands.
    pub last_burst: Burst,
    backlog: VecDeque<u16>,
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

    /// Whether packets may wait.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.limits.is_on()
    }

    /// The packets in the backlog.
    pub fn window(&self) -> Window {
        Window { head: self.head, len: self.backlogged() as u32 }
    }

    /// Packets in the backlog.
    pub fn backlogged(&self) -> usize {
        self.backlog.len() + self.last_burst.len()
    }

    /// All packets that wait.
    pub fn held(&self) -> usize {
        self.backlogged() + self.hold.len()
    }

    /// What is in use of the backlog's shares and of the hold. Each may be exceeded by a burst or two.
    pub fn levels(&self, packets: &[Packet]) -> [Level; 3] {
        let (mut normal, mut unknown) = self.shares.used();
        for slot in &self.last_burst {
            match Kind::of(&packets[usize::from(*slot)]) {
                Kind::Normal => normal += 1,
                Kind::Unknown => unknown += 1,
            }
        }
        [
            Level::of("backlog_normal", normal, self.limits.normal.into()),
            Level::of("backlog_unknown", unknown, self.limits.unknown.into()),
            Level::of("hold", self.hold.len(), self.limits.hold.into()),
        ]
    }

    /// Takes out a burst of what waits, whatever it waits for; none is left when it is empty.
    pub fn take_any(&mut self, packets: &[Packet]) -> Burst {
        let held = self.hold.take_any();
        if held.is_empty() { self.quantum(BURST, packets) } else { held }
    }

    /// Whether another burst may be held back, all of it.
    pub fn holds_more(&self) -> bool {
        self.hold.len() <= usize::from(self.limits.hold)
    }

    /// Puts what is left of the last burst where others can join it.
    pub fn queue_last_burst(&mut self, packets: &[Packet]) {
        for slot in self.last_burst.take() {
            // There is room for a burst beyond all shares.
            self.shares.enter(&packets[usize::from(slot)]);
            self.backlog.push_back(slot);
        }
    }

    /// Takes a packet into the backlog; false without room.
    pub fn admit(&mut self, slot: u16, packet: &Packet) -> bool {
        if self.backlog.len() == self.backlog.capacity() || !self.shares.has_room(packet) {
            return false;
        }
        self.shares.enter(packet);
        self.backlog.push_back(slot);
        true
    }

    /// The next packets to be worked off, `most` at most: none beyond the first fence that a packet is held back for.
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
            self.shares.leave(&packets[usize::from(*slot)]);
        }
        self.head = self.head.wrapping_add(count as u32);
        quantum
    }

    /// Whether held packets may walk on.
    pub fn releases(&self) -> bool {
        self.hold.may_release(self.window())
    }

    /// Held packets that may walk on, in order: a burst at most.
    pub fn released(&mut self) -> Burst {
        let window = self.window();
        self.hold.release(window)
    }

    /// An operation waits for the backlog to be empty: a turn has begun in which it still is not.
    pub fn close(&mut self) {
        self.shares.close();
    }

    /// An operation is in force and the next one waits.
    pub fn reopen_between(&mut self) {
        self.shares.reopen_between();
    }

    /// No operation waits any more.
    pub fn reopen(&mut self) {
        self.shares.reopen();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fences_hold_while_what_stood_before_them_waits() {
        let window = Window { head: 10, len: 3 };
        let waits: Vec<u32> = (8..16).filter(|fence| window.waits(*fence)).collect();
        assert_eq!(waits, [11, 12, 13], "what would stand beyond the end is of long ago");
        assert_eq!(window.fence(), Some(13));
        assert_eq!(Window { head: 10, len: 0 }.fence(), Some(0));
        assert!((0..99).all(|fence| !Window { head: 10, len: 0 }.waits(fence)));
        let round = Window { head: u32::MAX - 1, len: 4 };
        assert!(round.waits(u32::MAX) && round.waits(1) && round.waits(2) && !round.waits(3));
        assert_eq!(Window { head: u32::MAX - 1, len: 2 }.fence(), None);
    }

    #[test]
    fn a_quantum_ends_at_the_first_fence_that_a_packet_is_held_back_for() {
        let mut lanes = Lanes::new(LaneLimits { normal: 64, unknown: 64, hold: 8 });
        let packets: Vec<Packet> = (0..20).map(|_| Packet::empty()).collect();
        (0..19).for_each(|slot| assert!(lanes.admit(slot, &packets[usize::from(slot)])));
        // Held back for the first five, of the nineteen that joined.
        lanes.hold.push(19, 5, lanes.window());
        assert_eq!((lanes.quantum(3, &packets).len(), lanes.releases()), (3, false));
        assert_eq!((lanes.quantum(BURST, &packets).len(), lanes.releases()), (2, true));
        assert_eq!((lanes.released().as_slice(), lanes.releases()), (&[19][..], false));
        assert_eq!(lanes.quantum(BURST, &packets).len(), 14);
    }
}
