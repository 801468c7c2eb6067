// SPDX-License-Identifier: Apache-2.0
//! Latencies of frames in the switch, as sent over the control socket.

use flow::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use worker::{LaneLatencies, Spread};

/// Latencies of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneLatency {
    /// Latencies of all frames.
    pub raw: LatencyFigures,
    /// Latencies of the frames that were not in the switch while their worker was preempted.
    pub gaps_aside: LatencyFigures,
}

/// Latencies from receive poll to transmit doorbell, in ns. Every value except the maximum may be up to 1/32
/// too high, because frames are counted in buckets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyFigures {
    /// Number of frames, including copies.
    pub frames: u64,
    /// Median in ns.
    pub p50_ns: u64,
    /// 99th percentile in ns.
    pub p99_ns: u64,
    /// 99.9th percentile in ns.
    pub p999_ns: u64,
    /// 99.99th percentile in ns.
    pub p9999_ns: u64,
    /// Maximum in ns.
    pub max_ns: u64,
}

impl LatencyFigures {
    /// Returns the figures of a latency distribution.
    #[must_use]
    pub fn of(spread: &Spread) -> Self {
        Self {
            frames: spread.frames(),
            p50_ns: spread.quantile_ns(0.5).0,
            p99_ns: spread.quantile_ns(0.99).0,
            p999_ns: spread.quantile_ns(0.999).0,
            p9999_ns: spread.quantile_ns(0.999_9).0,
            max_ns: spread.max_ns.0,
        }
    }
}

impl LaneLatency {
    /// Returns the figures of a lane's latencies.
    #[must_use]
    pub fn of(latencies: &LaneLatencies) -> Self {
        let raw = latencies.whole.with(&latencies.in_gaps);
        Self { raw: LatencyFigures::of(&raw), gaps_aside: LatencyFigures::of(&latencies.whole) }
    }
}

/// Formats a time as microseconds with three decimals.
#[must_use]
pub fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

/// Latency distributions of all frames since the start. The difference of two readings covers the time
/// between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBuckets {
    /// Latencies by lane: `low_latency`, `normal`.
    pub lanes: BTreeMap<String, LaneBuckets>,
    /// Number of times that a worker was preempted.
    pub gaps: u64,
    /// Total time for which workers were preempted, in ns.
    pub stolen_ns: u64,
}

/// Latency distributions of the frames of a lane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneBuckets {
    /// Frames that were not in the switch while their worker was preempted.
    pub whole: Buckets,
    /// Frames that were in the switch while their worker was preempted.
    pub in_gaps: Buckets,
}

/// A latency distribution, as a histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buckets {
    /// For each non-empty bucket, its upper bound in ns and its number of frames, in ascending order.
    pub buckets: Vec<(Nanos, u64)>,
    /// Maximum latency in ns.
    pub max_ns: Nanos,
}

impl LaneBuckets {
    /// Converts the histograms to the worker's type.
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
