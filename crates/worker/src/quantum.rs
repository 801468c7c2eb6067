// SPDX-License-Identifier: Apache-2.0
//! A quantum is the number of packets that are taken from the backlog before the next receive. A low-latency
//! packet that arrives meanwhile has to wait for the whole quantum. Quanta are therefore small while such
//! packets arrive. Otherwise they are large, which costs less per packet.

use flow::Nanos;
use pipeline::BURST;

/// Number of packets received from all queues after which a quantum is due, even if the queues return full
/// bursts. Under overload, unknown packets must still be looked up, so that their flows are learned.
const RECEIVED_PER_QUANTUM: usize = 4 * BURST;

/// Sizes of quanta in packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quanta {
    /// Packets per quantum while low-latency packets arrive.
    pub small: usize,
    /// Packets per quantum otherwise.
    pub large: usize,
    /// Time in nanoseconds without low-latency packets after which quanta are large.
    pub quiet_ns: Nanos,
}

impl Quanta {
    /// The usual sizes: eight packets while low-latency packets arrive, and a burst if none has arrived for
    /// 100 us.
    pub const DEFAULT: Self = Self { small: 8, large: BURST, quiet_ns: Nanos(100_000) };
}

impl Default for Quanta {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// State of a worker's budget.
#[derive(Debug)]
pub(crate) struct Quantum {
    sizes: Quanta,
    /// Time until which quanta are small.
    until_ns: Nanos,
    /// Packets received since the last quantum.
    received: usize,
    /// Whether a queue returned a full burst in this poll iteration, so that more packets may wait in it.
    more: bool,
}

impl Quantum {
    pub fn new(sizes: Quanta) -> Self {
        Self { sizes, until_ns: Nanos(0), received: 0, more: false }
    }

    /// Starts a poll iteration.
    pub fn begin(&mut self) {
        self.more = false;
    }

    /// Records a burst of `received` packets, of which `low_latency` are low-latency.
    #[inline]
    pub fn saw(&mut self, received: usize, low_latency: usize, now: Nanos) {
        self.received += received;
        self.more |= received == BURST;
        if low_latency > 0 {
            self.until_ns = now.saturating_add(self.sizes.quiet_ns);
        }
    }

    /// Returns whether a quantum is due before the next queue is polled.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.received >= RECEIVED_PER_QUANTUM
    }

    /// Returns whether queues may have more packets. These are received before the next quantum.
    pub fn is_more(&self) -> bool {
        self.more
    }

    /// Records that a quantum starts, or that no packets wait in the backlog.
    pub fn taken(&mut self) {
        self.received = 0;
    }

    /// Returns the current size of a quantum in packets.
    pub fn size(&self, now: Nanos) -> usize {
        if now < self.until_ns { self.sizes.small } else { self.sizes.large }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quanta_are_small_while_low_latency_packets_arrive() {
        let mut quantum = Quantum::new(Quanta { small: 8, large: 32, quiet_ns: Nanos(100) });
        assert_eq!(quantum.size(Nanos(5)), 32);
        quantum.saw(1, 0, Nanos(10));
        assert_eq!(quantum.size(Nanos(10)), 32);
        quantum.saw(1, 1, Nanos(10));
        assert_eq!([quantum.size(Nanos(109)), quantum.size(Nanos(110))], [8, 32]);
    }

    #[test]
    fn a_quantum_is_due_after_a_number_of_packets_from_all_queues() {
        let mut quantum = Quantum::new(Quanta::DEFAULT);
        let due: Vec<bool> = (0..9)
            .map(|_| {
                quantum.saw(BURST, 0, Nanos(1));
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
        quantum.saw(BURST - 1, 0, Nanos(1));
        assert!(!quantum.is_more());
    }
}
