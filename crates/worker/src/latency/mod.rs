// SPDX-License-Identifier: Apache-2.0
//! How long frames are in the switch, from the poll that received them to the doorbell that gave them to a device.
//!
//! A worker reads its clock once before it polls a queue, and stamps the burst; and once when a device has taken
//! frames, each of which it then counts in its lane by its age ([`watch`]). Time that something else had the core for is
//! told apart ([`gaps`]).

mod cells;
mod gaps;
mod watch;

pub(crate) use cells::LatencyCells;
pub(crate) use watch::Watch;

use crate::clock::Clock;
use cells::{BUCKETS, highest};
use flow::Nanos;
use frame::Lane;

/// How long frames took: counts by latency, exact to 1/32 upwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// Highest latency of a bucket in ns, and frames in it, from the shortest on; buckets without frames are left out.
    pub buckets: Vec<(Nanos, u64)>,
    /// The longest latency of all in ns, to the unit of the clock.
    pub max_ns: Nanos,
}

impl Spread {
    /// Frames.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.buckets.iter().map(|(_, frames)| frames).sum()
    }

    /// The latency that `share` of the frames (0 to 1) do not exceed, ns: at most 1/32 more than it was. 0 without frames.
    #[must_use]
    pub fn quantile_ns(&self, share: f64) -> Nanos {
        let frames = self.frames();
        let rank = ((frames as f64 * share).ceil() as u64).clamp(1, frames.max(1));
        let mut before = 0;
        let reached = self.buckets.iter().find(|(_, frames)| {
            before += frames;
            before >= rank
        });
        reached.map_or(0, |(ns, _)| *ns).min(self.max_ns)
    }

    /// Both together.
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

    /// What came since an earlier reading. Of the longest latency only its bucket is known, unless it is the longest ever.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |ns: Nanos| {
            let at = earlier.buckets.binary_search_by_key(&ns, |(ns, _)| *ns);
            at.map_or(0, |at| earlier.buckets[at].1)
        };
        let new = self.buckets.iter().map(|(ns, frames)| (*ns, frames.saturating_sub(before(*ns))));
        let buckets: Vec<_> = new.filter(|(_, frames)| *frames > 0).collect();
        let last_ns = buckets.last().map_or(0, |(ns, _)| *ns);
        Self { max_ns: last_ns.min(self.max_ns), buckets }
    }
}

/// A lane's latencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneLatencies {
    /// Frames that no gap fell on.
    pub whole: Spread,
    /// Frames that were in the switch while something else had their worker's core.
    pub in_gaps: Spread,
}

/// The latencies of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// Frames that left by the low-latency lane.
    pub low_latency: LaneLatencies,
    /// Other frames.
    pub normal: LaneLatencies,
    /// Times that something else had a worker's core.
    pub gaps: u64,
    /// How long that was, ns.
    pub stolen_ns: Nanos,
}

impl Latencies {
    /// Of these workers together.
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
