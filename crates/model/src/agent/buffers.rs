// SPDX-License-Identifier: Apache-2.0
//! Packets that are kept because their packet-ins carry only the first bytes. Their number and age are
//! bounded.

use dataplane::Question;
use flow::{HeldFlow, Nanos, PortNo};
use std::collections::VecDeque;

/// Maximum number of buffered packets.
pub const BUFFERS: usize = 256;
/// Lifetime of a buffered packet in nanoseconds.
const HELD_NS: Nanos = Nanos(10_000_000_000);
/// Buffer ID of a packet that is not buffered (OFP_NO_BUFFER).
const NO_BUFFER: u32 = u32::MAX;

#[derive(Debug)]
struct Held {
    id: u32,
    until_ns: Nanos,
    packet: Buffered,
}

/// A buffered packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffered {
    /// Ingress port of the packet.
    pub in_port: PortNo,
    /// Bytes of the packet.
    pub bytes: Vec<u8>,
    /// Packets that wait until this one is sent.
    pub releases: Option<HeldFlow>,
}

/// The buffered packets of a datapath.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Packets in the order of their IDs.
    held: VecDeque<Held>,
    next: u32,
    /// A time before which no packet must be removed, if any packet is buffered.
    expires: Nanos,
    /// Number of packets that were removed because their time was over.
    expired: u64,
}

impl Buffers {
    /// Buffers a packet and returns its buffer ID, or `None` if all buffers are in use. If later packets of
    /// its flow wait for the controller's answer (`question`), the packet is kept as long as they wait. If
    /// more than half of this time is over, because the control thread was busy, the packet is not buffered:
    /// the controller then gets the whole packet, and can answer at any time.
    pub fn hold(
        &mut self,
        now: Nanos,
        in_port: PortNo,
        bytes: &[u8],
        question: Option<Question>,
    ) -> Option<u32> {
        self.expire(now);
        if self.held.len() >= BUFFERS || question.is_some_and(|question| question.is_late(now)) {
            return None;
        }
        let id = self.next;
        self.next = (self.next + 1) % NO_BUFFER;
        let until_ns = question.map_or(now.saturating_add(HELD_NS), |question| question.ends);
        let releases = question.map(|question| question.flow);
        let packet = Buffered { in_port, bytes: bytes.to_vec(), releases };
        self.expires = if self.held.is_empty() { until_ns } else { self.expires.min(until_ns) };
        self.held.push_back(Held { id, until_ns, packet });
        Some(id)
    }

    /// Returns the packet with this buffer ID.
    pub fn get(&mut self, now: Nanos, id: u32) -> Option<&Buffered> {
        self.expire(now);
        self.held.iter().find(|held| held.id == id).map(|held| &held.packet)
    }

    /// Removes and returns the packet with this buffer ID.
    pub fn take(&mut self, now: Nanos, id: u32) -> Option<Buffered> {
        self.expire(now);
        let at = self.held.iter().position(|held| held.id == id)?;
        self.held.remove(at).map(|held| held.packet)
    }

    /// Returns whether a packet is buffered under this ID.
    pub fn holds(&mut self, now: Nanos, id: u32) -> bool {
        self.expire(now);
        self.held.iter().any(|held| held.id == id)
    }

    /// Returns the number of packets that no controller has sent in time.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Removes the packets whose time is over.
    pub fn expire(&mut self, now: Nanos) {
        if self.held.is_empty() || now < self.expires {
            return;
        }
        let before = self.held.len();
        self.held.retain(|held| held.until_ns > now);
        self.expired += (before - self.held.len()) as u64;
        self.expires = self.held.iter().map(|held| held.until_ns).min().unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_returned_once_and_within_their_lifetime() {
        let mut buffers = Buffers { next: NO_BUFFER - 1, ..Buffers::default() };
        assert_eq!(buffers.hold(Nanos(0), PortNo(3), &[1], None), Some(NO_BUFFER - 1));
        assert_eq!(
            buffers.hold(Nanos(1), PortNo(4), &[2], None),
            Some(0),
            "the ID that means no buffer is skipped"
        );
        assert!(buffers.holds(Nanos(2), 0));
        assert_eq!(
            buffers.take(Nanos(2), 0),
            Some(Buffered { in_port: PortNo(4), bytes: vec![2], releases: None })
        );
        assert_eq!(buffers.take(Nanos(2), 0), None);
        // A packet is kept for ten seconds.
        assert!(buffers.holds(Nanos(9_999_999_999), NO_BUFFER - 1));
        assert_eq!(buffers.take(Nanos(10_000_000_000), NO_BUFFER - 1), None);
    }

    #[test]
    fn buffers_are_limited_and_can_be_reused() {
        let mut buffers = Buffers::default();
        for _ in 0..256 {
            assert!(buffers.hold(Nanos(5), PortNo(1), &[], None).is_some());
        }
        assert_eq!(buffers.hold(Nanos(5), PortNo(1), &[], None), None);
        assert_eq!(buffers.hold(Nanos(10_000_000_004), PortNo(1), &[], None), None);
        assert!(buffers.hold(Nanos(10_000_000_005), PortNo(1), &[], None).is_some());
    }

    #[test]
    fn a_packet_is_kept_as_long_as_later_packets_of_its_flow_wait() {
        let mut buffers = Buffers::default();
        let flow = HeldFlow { worker: 1, slot: 2, generation: 3 };
        let question = Question { flow, asked: Nanos(0), ends: Nanos(50) };
        let usual = buffers.hold(Nanos(0), PortNo(1), &[1], None).unwrap();
        let ids = [0, 1].map(|_| buffers.hold(Nanos(0), PortNo(1), &[2], Some(question)).unwrap());
        let taken = buffers.take(Nanos(49), ids[0]).unwrap();
        assert_eq!((taken.bytes, taken.releases), (vec![2], Some(flow)));
        assert_eq!(buffers.take(Nanos(50), ids[1]), None);
        assert!(buffers.holds(Nanos(50), usual));
        assert_eq!(buffers.expired(), 1);
        // A question that comes late gets no buffer whose time is nearly over.
        assert!(buffers.hold(Nanos(25), PortNo(1), &[3], Some(question)).is_some());
        assert_eq!(buffers.hold(Nanos(26), PortNo(1), &[3], Some(question)), None);
    }

    #[test]
    fn each_packet_is_removed_at_its_own_time_and_counted() {
        let mut buffers = Buffers::default();
        let flow = HeldFlow { worker: 1, slot: 2, generation: 3 };
        let ends = [70, 30, 50, 30];
        let ids = ends.map(|ends| {
            let question = Question { flow, asked: Nanos(0), ends: Nanos(ends) };
            buffers.hold(Nanos(0), PortNo(1), &[1], Some(question)).unwrap()
        });
        for now in 0..80 {
            let held = ids.map(|id| buffers.holds(Nanos(now), id));
            assert_eq!(held, ends.map(|ends| now < ends), "at {now}");
            assert_eq!(buffers.expired(), ends.iter().filter(|ends| **ends <= now).count() as u64);
        }
    }
}
