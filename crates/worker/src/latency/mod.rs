// SPDX-License-Identifier: Apache-2.0
//! Latency of frames inside the switch, from the receive poll to the transmit doorbell of the device.
//!
//! A worker reads its clock once before it polls a queue and stamps the burst. It reads the clock again when
//! a device has taken frames, and counts each frame in its lane by its age ([`monitor`]). Time in which the
//! worker was preempted is reported separately ([`gaps`]).

mod cells;
mod gaps;
mod monitor;
mod runs;

pub(crate) use cells::LatencyCells;
pub(crate) use monitor::LatencyMonitor;
pub(crate) use runs::StampRuns;

use crate::clock::Clock;
use cells::{BUCKETS, highest};
use flow::Nanos;
use frame::Lane;

/// Distribution of latencies: frame counts by latency, rounded up by at most 1/32.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Pairs of a bucket's highest latency in nanoseconds and its number of frames, ascending, without empty
    /// buckets.
    pub buckets: Vec<(Nanos, u64)>,
    /// Maximum latency in nanoseconds, with the clock's resolution.
    pub max_ns: Nanos,
}

impl Spread {
    /// Returns the number of frames.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.buckets.iter().map(|(_, frames)| frames).sum()
    }

    /// Returns the latency in nanoseconds that a `share` (0 to 1) of the frames does not exceed, rounded up
    /// by at most 1/32. Returns 0 if there are no frames.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Nanos {
        let frames = self.frames();
        let rank = ((frames as f64 * share).ceil() as u64).clamp(1, frames.max(1));
        let mut before = 0;
        let reached = self.buckets.iter().find(|(_, frames)| {
            before += frames;
            before >= rank
        });
        reached.map_or(Nanos::ZERO, |(ns, _)| *ns).min(self.max_ns)
    }

    /// Returns the sum of both distributions.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut buckets = self.buckets.clone();
        for (ns, frames) in &other.buckets {
            match buckets.binary_search_by_key(ns, |(ns, _)| *ns) {
                Ok(at) => buckets[at].1 += frames,
                Err(at) => buckets.insert(at, (*ns, *frames)),
            }
        }
        Self { buckets, max_ns: self.max_ns.max(other.max_ns) }
    }

    /// Returns the frames counted since an earlier reading. Their maximum is exact only if it is also the
    /// maximum since the start; otherwise it is the highest latency of its bucket.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |ns: Nanos| {
            let at = earlier.buckets.binary_search_by_key(&ns, |(ns, _)| *ns);
            at.map_or(0, |at| earlier.buckets[at].1)
        };
        let new = self.buckets.iter().map(|(ns, frames)| (*ns, frames.saturating_sub(before(*ns))));
        let buckets: Vec<_> = new.filter(|(_, frames)| *frames > 0).collect();
        let last_ns = buckets.last().map_or(Nanos::ZERO, |(ns, _)| *ns);
        Self { max_ns: last_ns.min(self.max_ns), buckets }
    }
}

/// Latencies of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneLatencies {
    /// Latencies of frames whose worker was not preempted while they were in the switch.
    pub whole: Spread,
    /// Latencies of frames whose worker was preempted while they were in the switch.
    pub in_gaps: Spread,
}

/// Latencies of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Frames sent in the low-latency lane.
    pub low_latency: LaneLatencies,
    /// Frames sent in the normal lane.
    pub normal: LaneLatencies,
    /// Number of times that a worker was preempted.
    pub gaps: u64,
    /// Total time for which workers were preempted, in nanoseconds.
    pub stolen_ns: Nanos,
}

impl Latencies {
    /// Sums up the latencies of these workers.
    pub(crate) fn over<'a>(clock: &Clock, cells: impl Iterator<Item = &'a LatencyCells> + Clone) -> Self {
        let spread = |lane: Lane, in_gap: bool| {
            let mut sums = [0; BUCKETS];
            let max = cells.clone().map(|cells| cells.ages(lane, in_gap).add_to(&mut sums)).max();
            let used = sums.iter().enumerate().filter(|(_, frames)| **frames > 0);
            Spread {
                buckets: used.map(|(at, frames)| (clock.ns(highest(at).into()), *frames)).collect(),
                max_ns: clock.ns(max.unwrap_or(0)),
            }
        };
        let lane = |lane| LaneLatencies { whole: spread(lane, false), in_gaps: spread(lane, true) };
        let (gaps, stolen) =
            cells.clone().map(LatencyCells::gaps).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Self {
            low_latency: lane(Lane::LowLatency),
            normal: lane(Lane::Normal),
            gaps,
            stolen_ns: clock.ns(stolen),
        }
    }
}

#[cfg(test)]
mod tests;
