// SPDX-License-Identifier: Apache-2.0
//! How long frames were in the switch, as it goes over the control socket.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use worker::{LaneLatencies, Spread};

/// A lane in a few figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Of all its frames.
    pub raw: Figures,
    /// Of those that were not in the switch while something else had their worker's core.
    pub gaps_aside: Figures,
}

/// Latencies from receive poll to transmit doorbell, ns; each but the longest may be told up to 1/32 too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Frames, copies included.
    pub frames: u64,
    /// Half of them took no longer than this.
    pub p50_ns: u64,
    /// 99 % of them.
    pub p99_ns: u64,
    /// 99.9 % of them.
    pub p999_ns: u64,
    /// 99.99 % of them.
    pub p9999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Figures {
    /// Of these frames.
    #[must_use]
    pub fn of(spread: &Spread) -> Self {
        Self {
            frames: spread.frames(),
            p50_ns: spread.quantile_ns(0.5),
            p99_ns: spread.quantile_ns(0.99),
            p999_ns: spread.quantile_ns(0.999),
            p9999_ns: spread.quantile_ns(0.999_9),
            max_ns: spread.max_ns,
        }
    }
}

impl Lane {
    /// Of these latencies.
    #[must_use]
    pub fn of(latencies: &LaneLatencies) -> Self {
        let raw = latencies.whole.with(&latencies.in_gaps);
        Self { raw: Figures::of(&raw), gaps_aside: Figures::of(&latencies.whole) }
    }
}

/// A time in microseconds with three decimals.
#[must_use]
pub fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

/// All latencies, to take differences of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latencies {
    /// By lane: `low_latency`, `normal`.
    pub lanes: BTreeMap<String, LaneBuckets>,
    /// Times that something else had a worker's core.
    pub gaps: u64,
    /// How long that was, ns.
    pub stolen_ns: u64,
}

/// A lane's frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneBuckets {
    /// Those that no gap fell on.
    pub whole: Buckets,
    /// Those that one did.
    pub in_gaps: Buckets,
}

/// Frames by latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buckets {
    /// Longest latency of a bucket in ns and frames in it, ascending; without those that are empty.
    pub buckets: Vec<(u64, u64)>,
    /// The longest of all, ns.
    pub max_ns: u64,
}

impl LaneBuckets {
    /// As latencies.
    #[must_use]
    pub fn latencies(&self) -> LaneLatencies {
        let spread = |of: &Buckets| Spread { buckets: of.buckets.clone(), max_ns: of.max_ns };
        LaneLatencies { whole: spread(&self.whole), in_gaps: spread(&self.in_gaps) }
    }
}

impl From<LaneLatencies> for LaneBuckets {
    fn from(latencies: LaneLatencies) -> Self {
        let buckets = |spread: Spread| Buckets { buckets: spread.buckets, max_ns: spread.max_ns };
        Self { whole: buckets(latencies.whole), in_gaps: buckets(latencies.in_gaps) }
    }
}
