// SPDX-License-Identifier: Apache-2.0
//! How much of the backlog is worked off before the next receive. A low-latency packet that arrives meanwhile waits for as
//! long, so quanta are small while such packets are about, and large, which is cheaper a packet, while there are none.

use flow::Nanos;
use pipeline::BURST;

/// Packets received, from whatever queues, before a quantum is due although queues hand out full bursts: what is unknown must
/// be learned also while more arrives than can be looked at. So the share of normal traffic does not depend on how many ports
/// are flooded.
const RECEIVED_PER_QUANTUM: usize = 4 * BURST;

/// Sizes of quanta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quanta {
    /// Packets worked off at once while low-latency packets are about.
    pub small: usize,
    /// While there are none.
    pub large: usize,
    /// For how long none must have come, ns.
    pub quiet_ns: Nanos,
}

impl Quanta {
    /// A few packets while low-latency ones are about, a burst when none came for 100 us.
    pub const DEFAULT: Self = Self { small: 8, large: BURST, quiet_ns: 100_000 };
}

impl Default for Quanta {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What a worker remembers for it.
#[derive(Debug)]
pub(crate) struct Quantum {
    sizes: Quanta,
    /// Until when low-latency packets are about.
    until_ns: Nanos,
    /// Packets received since the last quantum.
    received: usize,
    /// In this turn a queue handed out a full burst, and may have another.
    more: bool,
}

impl Quantum {
    pub fn new(sizes: Quanta) -> Self {
        Self { sizes, until_ns: 0, received: 0, more: false }
    }

    /// A turn begins.
    pub fn begin(&mut self) {
        self.more = false;
    }

    /// A queue handed out a burst of so many packets, of which so many are low-latency.
    #[inline]
    pub fn saw(&mut self, received: usize, low_latency: usize, now: Nanos) {
        self.received += received;
        self.more |= received == BURST;
        if low_latency > 0 {
            self.until_ns = now.saturating_add(self.sizes.quiet_ns);
        }
    }

    /// Whether a quantum is due before the next queue is looked at.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.received >= RECEIVED_PER_QUANTUM
    }

    /// Whether queues may have more to be received, which comes first.
    pub fn is_more(&self) -> bool {
        self.more
    }

    /// A quantum begins, or nothing waits for one.
    pub fn taken(&mut self) {
        self.received = 0;
    }

    /// Packets of a quantum now.
    pub fn size(&self, now: Nanos) -> usize {
        if now < self.until_ns { self.sizes.small } else { self.sizes.large }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_while_low_latency_packets_are_about() {
        let mut quantum = Quantum::new(Quanta { small: 8, large: 32, quiet_ns: 100 });
        assert_eq!(quantum.size(5), 32);
        quantum.saw(1, 0, 10);
        assert_eq!(quantum.size(10), 32);
        quantum.saw(1, 1, 10);
        assert_eq!([quantum.size(109), quantum.size(110)], [8, 32]);
    }

    #[test]
    fn due_after_so_many_packets_whatever_queues_they_came_from() {
        let mut quantum = Quantum::new(Quanta::DEFAULT);
        let due: Vec<bool> = (0..9)
            .map(|_| {
                quantum.saw(BURST, 0, 1);
                let due = quantum.is_due();
                if due {
                    quantum.taken();
                }
                due
            })
            .collect();
        assert_eq!(due, [false, false, false, true, false, false, false, true, false]);
        assert!(quantum.is_more());
        quantum.begin();
        quantum.saw(BURST - 1, 0, 1);
        assert!(!quantum.is_more());
    }
}
