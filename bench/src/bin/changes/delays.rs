// SPDX-License-Identifier: Apache-2.0
//! Distribution of the delays of packets.

/// Width of a bin in nanoseconds.
const BIN_NS: u64 = 10;

/// Number of bins. Delays longer than 1 ms are counted in the last bin.
const BINS: usize = 100_000;

/// Histogram of packets by delay.
#[derive(Clone, Debug)]
pub struct Delays {
    bins: Vec<u64>,
    packets: u64,
    max_ns: u64,
}

impl Delays {
    pub fn new() -> Self {
        Self { bins: vec![0; BINS], packets: 0, max_ns: 0 }
    }

    pub fn clear(&mut self) {
        self.bins.fill(0);
        (self.packets, self.max_ns) = (0, 0);
    }

    pub fn add(&mut self, ns: u64) {
        self.bins[((ns / BIN_NS) as usize).min(BINS - 1)] += 1;
        self.packets += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the longest delay.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Returns the delay that a `share` (0 to 1) of the packets does not exceed. Packets are assumed to be
    /// spread evenly within a bin.
    pub fn quantile_ns(&self, share: f64) -> f64 {
        let rank = self.packets as f64 * share;
        let mut before = 0;
        for (at, packets) in self.bins.iter().enumerate() {
            if *packets > 0 && (before + packets) as f64 >= rank {
                let part = (rank - before as f64) / *packets as f64;
                return ((at as f64 + part) * BIN_NS as f64).min(self.max_ns as f64);
            }
            before += packets;
        }
        self.max_ns as f64
    }

    /// Returns the number of packets whose delay is at least `ns`, which must be a multiple of 10.
    pub fn beyond(&self, ns: u64) -> u64 {
        self.bins.iter().skip((ns / BIN_NS) as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_longest_delay() {
        let mut delays = Delays::new();
        (0..1_000).for_each(|at| delays.add(at * 10));
        assert!((delays.quantile_ns(0.5) - 5_000.0).abs() < 1e-6);
        assert!((delays.quantile_ns(0.999) - 9_990.0).abs() < 1e-6);
        assert_eq!((delays.packets(), delays.max_ns(), delays.beyond(9_000)), (1_000, 9_990, 100));
        delays.add(5_000_000);
        assert_eq!((delays.max_ns(), delays.beyond(20_000)), (5_000_000, 1));
        assert!((delays.quantile_ns(1.0) - 1_000_000.0).abs() < 1e-6, "long delays are in the last bin");
        delays.clear();
        assert_eq!((delays.packets(), delays.max_ns()), (0, 0));
    }
}
