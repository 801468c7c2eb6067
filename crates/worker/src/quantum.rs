// SPDX-License-Identifier: Apache-2.0
//! How much of the backlog is worked off before the next receive. A low-latency packet that arrives meanwhile waits for as
//! long, so quanta are small while such packets are about, and large, which is cheaper a packet, while there are none.

use flow::Nanos;
use pipeline::BURST;

/// Turns in a row at most in which only receiving is done, because queues hand out full bursts: what is unknown must be
/// learned also while more arrives than can be looked at.
const RECEIVING_TURNS: u32 = 3;

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
    receiving: u32,
}

impl Quantum {
    pub fn new(sizes: Quanta) -> Self {
        Self { sizes, until_ns: 0, receiving: 0 }
    }

    /// So many low-latency packets came.
    #[inline]
    pub fn saw(&mut self, low_latency: usize, now: Nanos) {
        if low_latency > 0 {
            self.until_ns = now.saturating_add(self.sizes.quiet_ns);
        }
    }

    /// Packets to be worked off in this turn. `more`: a queue handed out a full burst, and may have another.
    pub fn size(&mut self, more: bool, now: Nanos) -> usize {
        if more && self.receiving < RECEIVING_TURNS {
            self.receiving += 1;
            return 0;
        }
        self.receiving = 0;
        if now < self.until_ns { self.sizes.small } else { self.sizes.large }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_while_low_latency_packets_are_about_and_none_while_more_is_to_be_received() {
        let mut quantum = Quantum::new(Quanta { small: 8, large: 32, quiet_ns: 100 });
        assert_eq!(quantum.size(false, 5), 32);
        quantum.saw(0, 10);
        assert_eq!(quantum.size(false, 10), 32);
        quantum.saw(1, 10);
        assert_eq!([quantum.size(false, 109), quantum.size(false, 110)], [8, 32]);
        let sizes: Vec<usize> = (0..8).map(|_| quantum.size(true, 110)).collect();
        assert_eq!(sizes, [0, 0, 0, 32, 0, 0, 0, 32]);
    }
}
