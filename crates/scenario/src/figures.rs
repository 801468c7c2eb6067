// SPDX-License-Identifier: Apache-2.0
//! Figures in the results of switches and of networks.

use serde::Serialize;
use sim::arrivals::ArrivalTimes;

/// Latencies of delivered packets, in ns. All values are 0 if no packet was delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// 99.99th percentile.
    pub p99_99: f64,
    /// Maximum.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

impl From<&ArrivalTimes> for Latency {
    fn from(latency: &ArrivalTimes) -> Self {
        Self {
            p50: latency.quantile_ns(0.5),
            p99: latency.quantile_ns(0.99),
            p99_9: latency.quantile_ns(0.999),
            p99_99: latency.quantile_ns(0.9999),
            max: latency.max_ns(),
            mean: thousandths(latency.mean_ns()),
            deviation: thousandths(latency.deviation_ns()),
        }
    }
}

/// Rounds to three decimals.
pub fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
