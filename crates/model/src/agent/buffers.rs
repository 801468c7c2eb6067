// SPDX-License-Identifier: Apache-2.0
//! Packets that are kept because their packet-ins carry only the first bytes. Their number and age are
//! bounded.

use flow::{Nanos, PortNo};
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
    in_port: PortNo,
    bytes: Vec<u8>,
}

/// The buffered packets of a datapath.
#[derive(Debug, Default)]
pub struct Buffers {
    /// Packets, oldest first.
    held: VecDeque<Held>,
    next: u32,
}

impl Buffers {
    /// Buffers a packet and returns its buffer ID, or `None` if all buffers are in use.
    pub fn hold(&mut self, now: Nanos, in_port: PortNo, bytes: &[u8]) -> Option<u32> {
        self.expire(now);
        if self.held.len() >= BUFFERS {
            return None;
        }
        let id = self.next;
        self.next = (self.next + 1) % NO_BUFFER;
        let until_ns = now.saturating_add(HELD_NS);
        self.held.push_back(Held { id, until_ns, in_port, bytes: bytes.to_vec() });
        Some(id)
    }

    /// Removes the packet with this buffer ID. Returns its ingress port and bytes.
    pub fn take(&mut self, now: Nanos, id: u32) -> Option<(PortNo, Vec<u8>)> {
        self.expire(now);
        let at = self.held.iter().position(|held| held.id == id)?;
        self.held.remove(at).map(|held| (held.in_port, held.bytes))
    }

    /// Returns whether a packet is buffered under this ID.
    pub fn holds(&mut self, now: Nanos, id: u32) -> bool {
        self.expire(now);
        self.held.iter().any(|held| held.id == id)
    }

    fn expire(&mut self, now: Nanos) {
        while self.held.front().is_some_and(|held| held.until_ns <= now) {
            self.held.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_returned_once_and_within_their_lifetime() {
        let mut buffers = Buffers { next: NO_BUFFER - 1, ..Buffers::default() };
        assert_eq!(buffers.hold(Nanos(0), PortNo(3), &[1]), Some(NO_BUFFER - 1));
        assert_eq!(
            buffers.hold(Nanos(1), PortNo(4), &[2]),
            Some(0),
            "the ID that means no buffer is skipped"
        );
        assert!(buffers.holds(Nanos(2), 0));
        assert_eq!(buffers.take(Nanos(2), 0), Some((PortNo(4), vec![2])));
        assert_eq!(buffers.take(Nanos(2), 0), None);
        // A packet is kept for ten seconds.
        assert!(buffers.holds(Nanos(9_999_999_999), NO_BUFFER - 1));
        assert_eq!(buffers.take(Nanos(10_000_000_000), NO_BUFFER - 1), None);
    }

    #[test]
    fn buffers_are_limited_and_can_be_reused() {
        let mut buffers = Buffers::default();
        for _ in 0..256 {
            assert!(buffers.hold(Nanos(5), PortNo(1), &[]).is_some());
        }
        assert_eq!(buffers.hold(Nanos(5), PortNo(1), &[]), None);
        assert_eq!(buffers.hold(Nanos(10_000_000_004), PortNo(1), &[]), None);
        assert!(buffers.hold(Nanos(10_000_000_005), PortNo(1), &[]).is_some());
    }
}
