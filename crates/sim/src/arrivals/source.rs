// SPDX-License-Identifier: Apache-2.0
//! Generates the arrivals of one traffic class.

use crate::arrivals::{Capture, Class, Draw, Pattern, Popularity};
use fastrand::Rng;
use std::sync::Arc;

/// Number of flows drawn in advance and then repeated, because drawing a flow takes longer than forwarding a
/// packet.
const DRAWN: usize = 1 << 16;

/// A traffic class with its next arrival.
#[derive(Debug)]
pub(super) struct Source {
    pattern: Pattern,
    /// Mean interval between arrivals, or between bursts, in nanoseconds.
    mean_ns: f64,
    order: Box<[u32]>,
    at: usize,
    /// Capture that determines the arrival times, the position in the capture, and the factor by which its
    /// intervals are scaled.
    capture: Option<(Arc<Capture>, usize, f64)>,
    /// Remaining packets of the current burst.
    burst_left: u32,
    end_ns: f64,
    rng: Rng,
    /// Time of the next arrival in nanoseconds, or infinity if there is none.
    pub next_ns: f64,
}

impl Source {
    /// Creates the arrivals of a class until `end_ns`.
    pub fn new(class: &Class, seed: u64, end_ns: f64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let mut draw = Draw::new(class.flows.len(), class.popularity);
        // For round robin, only whole rounds are repeated.
        let captured = class.capture.as_ref().filter(|capture| !capture.order.is_empty());
        let order = match (class.popularity, captured) {
            (Popularity::AsCaptured, Some(capture)) => capture.order.clone(),
            (Popularity::AsCaptured, None) | (Popularity::InTurn, _) => {
                (0..class.flows.len() as u32).collect()
            }
            _ => (0..DRAWN).map(|_| draw.flow(&mut rng) as u32).collect(),
        };
        let capture = captured.filter(|_| class.pattern == Pattern::AsCaptured);
        let capture = capture.map(|capture| (Arc::clone(capture), 0, capture.rate_pps() / class.rate_pps));
        let burst = match class.pattern {
            Pattern::Bursts { packets, .. } => f64::from(packets.max(1)),
            Pattern::Constant | Pattern::Poisson | Pattern::AsCaptured => 1.0,
        };
        let sends = class.rate_pps > 0.0 && !class.flows.is_empty();
        let mean_ns = if sends { burst * 1e9 / class.rate_pps } else { f64::INFINITY };
        let mut source = Self {
            pattern: class.pattern,
            mean_ns,
            order,
            at: 0,
            capture,
            burst_left: 0,
            end_ns,
            rng,
            next_ns: class.begin_ns,
        };
        // The first arrival has a random offset, so that classes with equal rates do not coincide.
        let first_ns = source.rng.f64() * mean_ns;
        source.come_after(first_ns);
        source
    }

    /// Returns the flow of the packet that arrives at `next_ns`, and schedules the next arrival.
    pub fn take(&mut self) -> u32 {
        let flow = self.order[self.at];
        self.at = if self.at + 1 == self.order.len() { 0 } else { self.at + 1 };
        let wait_ns = match self.pattern {
            Pattern::Constant => self.mean_ns,
            Pattern::AsCaptured => self.captured_ns(),
            Pattern::Poisson => self.exponential_ns(self.mean_ns),
            Pattern::Bursts { spacing_ns, .. } if self.burst_left > 0 => {
                self.burst_left -= 1;
                spacing_ns
            }
            Pattern::Bursts { packets, spacing_ns } => {
                self.burst_left = packets.max(1) - 1;
                let within_ns = f64::from(self.burst_left) * spacing_ns;
                self.exponential_ns((self.mean_ns - within_ns).max(0.0))
            }
        };
        self.come_after(wait_ns);
        flow
    }

    fn captured_ns(&mut self) -> f64 {
        let Some((capture, at, slower)) = &mut self.capture else { return self.mean_ns };
        let gap_ns = capture.gaps_ns[*at];
        *at = if *at + 1 == capture.gaps_ns.len() { 0 } else { *at + 1 };
        gap_ns * *slower
    }

    fn exponential_ns(&mut self, mean_ns: f64) -> f64 {
        // The random number is below 1, so the argument of the logarithm is above 0.
        -(1.0 - self.rng.f64()).ln() * mean_ns
    }

    fn come_after(&mut self, wait_ns: f64) {
        self.next_ns += wait_ns;
        if self.next_ns >= self.end_ns {
            self.next_ns = f64::INFINITY;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;

    fn class(pattern: Pattern) -> Class {
        Class {
            name: "x".into(),
            port: PortNo(1),
            flows: vec![vec![0; 60]; 3].into(),
            popularity: Popularity::InTurn,
            pattern,
            rate_pps: 1e6,
            begin_ns: 0.0,
            known: false,
            comes_back: None,
            low_latency: [].into(),
            capture: None,
        }
    }

    fn times(pattern: Pattern) -> Vec<f64> {
        let mut source = Source::new(&class(pattern), 7, 1e9);
        let mut times = Vec::new();
        while source.next_ns.is_finite() {
            times.push(source.next_ns);
            source.take();
        }
        times
    }

    #[test]
    fn every_pattern_has_the_rate_of_its_class() {
        let bursts = Pattern::Bursts { packets: 16, spacing_ns: 67.2 };
        for (pattern, off) in [(Pattern::Constant, 1.0), (Pattern::Poisson, 5e3), (bursts, 4e4)] {
            let found = times(pattern);
            assert!((found.len() as f64 - 1e6).abs() <= off, "{pattern:?}: {}", found.len());
            assert!(found.is_sorted());
            assert_eq!(found, times(pattern));
        }
        let found = times(bursts);
        let close = found.windows(2).filter(|pair| pair[1] - pair[0] < 67.3).count();
        assert!(close as f64 > found.len() as f64 * 0.9);
        assert_eq!(
            times(Pattern::Constant).windows(2).filter(|p| (p[1] - p[0] - 1e3).abs() > 1e-3).count(),
            0
        );
    }

    #[test]
    fn captured_intervals_are_scaled_to_the_rate() {
        let capture = Capture { order: [0, 2, 2].into(), gaps_ns: [100.0, 300.0, 200.0].into() };
        let rate_pps = capture.rate_pps();
        assert!((rate_pps - 5e6).abs() < 1e-3, "{rate_pps}");
        for slower in [1.0, 2.0] {
            let class = Class {
                popularity: Popularity::AsCaptured,
                rate_pps: rate_pps / slower,
                capture: Some(Arc::new(capture.clone())),
                ..class(Pattern::AsCaptured)
            };
            let mut source = Source::new(&class, 7, 1e9);
            let first_ns = source.next_ns;
            let mut next = || ((source.next_ns - first_ns) / slower, source.take());
            let found: Vec<_> = (0..4).map(|_| next()).map(|(ns, flow)| (ns.round() as u64, flow)).collect();
            assert_eq!(found, [(0, 0), (100, 2), (400, 2), (600, 0)]);
        }
    }

    #[test]
    fn a_class_without_flows_or_rate_has_no_arrivals() {
        let none = Class { flows: Vec::new().into(), ..class(Pattern::Poisson) };
        assert!(Source::new(&none, 1, 1e9).next_ns.is_infinite());
        let silent = Class { rate_pps: 0.0, ..class(Pattern::Poisson) };
        assert!(Source::new(&silent, 1, 1e9).next_ns.is_infinite());
    }
}
