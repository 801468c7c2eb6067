// SPDX-License-Identifier: Apache-2.0
//! What became of the packets, in rows.

use super::StepCost;
use serde::Serialize;
use sim::arrivals::{ClassReport, Load, Report};
use std::collections::BTreeMap;
use std::path::Path;

/// Packets that only the controller got.
const CONSUMED: &str = "consumed";

/// A run. Rates are packets a second, times ns of virtual time unless their names say otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// The file.
    pub scenario: String,
    /// The seed of all that was drawn.
    pub seed: u64,
    /// Where costs are from.
    pub costs: &'static str,
    /// Virtual time by real time while costs were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// The costs, if they tell steps apart.
    pub steps: Vec<StepCost>,
    /// What arrived, all together.
    pub offered_pps: f64,
    /// The highest rate of the mix at which next to nothing was lost, if it was sought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_pps: Option<f64>,
    /// Packets that arrived before this time do not count.
    pub warm_up_ns: f64,
    /// So long packets arrived that count.
    pub span_ns: f64,
    /// When the last of them had left or was lost.
    pub end_ns: f64,
    /// For how much of that the worker had packets, %.
    pub busy_percent: f64,
    /// Turns of the worker.
    pub turns: u64,
    /// By lanes: flows all of whose entries are low-latency, and the others.
    pub lanes: Vec<Part>,
    /// By sorts of traffic.
    pub traffic: Vec<Part>,
}

/// Some of the packets: offered = delivered + consumed + dropped.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// The lane's name, or the traffic's.
    pub name: String,
    /// Packets that arrived.
    pub offered: u64,
    /// Packets of which one copy or more left by a port; if they come back, for the second time.
    pub delivered: u64,
    /// Packets that only the controller got.
    pub consumed: u64,
    /// Packets dropped, by reasons.
    pub dropped: BTreeMap<&'static str, u64>,
    /// How often packets left that went all the way over the fast-forwarding path.
    pub fast: u64,
    /// Packets that left behind a later one of their flow.
    pub overtaken: u64,
    /// From arrival to the end of the transmission, and the fixed time of input and output.
    pub latency_ns: Latency,
    /// How flows came onto the fast-forwarding path.
    pub learned: Learned,
}

/// Latencies of the packets delivered, ns; 0 of none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th.
    pub p99_9: f64,
    /// 99.99th.
    pub p99_99: f64,
    /// The longest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

/// Flows that came onto the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Learned {
    /// How many.
    pub flows: u64,
    /// From the arrival of a flow's first packet to the departure of its first one that took the path: the longest, ns.
    pub longest_ns: f64,
}

/// What was offered.
pub struct Times<'a> {
    pub load: &'a Load,
    pub capacity_pps: Option<f64>,
}

/// Puts a run into rows.
pub fn outcome(
    path: &Path,
    report: &Report,
    times: &Times<'_>,
    costs: &'static str,
    steps: Vec<StepCost>,
    agreement: Option<f64>,
) -> Outcome {
    let Times { load, capacity_pps } = times;
    Outcome {
        scenario: path.display().to_string(),
        seed: load.seed,
        costs,
        agreement: agreement.map(thousandths),
        steps,
        offered_pps: thousandths(load.classes.iter().map(|class| class.rate_pps).sum()),
        capacity_pps: capacity_pps.map(thousandths),
        warm_up_ns: load.warm_up_ns,
        span_ns: thousandths(load.span_ns),
        end_ns: thousandths(report.end_ns),
        busy_percent: thousandths(100.0 * report.busy_ns / report.end_ns.max(1.0)),
        turns: report.turns,
        lanes: report.lanes.iter().map(part).collect(),
        traffic: report.classes.iter().map(part).collect(),
    }
}

fn part(found: &ClassReport) -> Part {
    let mut dropped = found.lost.clone();
    let consumed = dropped.remove(CONSUMED).unwrap_or(0);
    let latency = &found.latency;
    Part {
        name: found.name.clone(),
        offered: found.offered,
        delivered: found.delivered,
        consumed,
        dropped,
        fast: found.fast,
        overtaken: found.overtaken,
        latency_ns: Latency {
            p50: latency.quantile_ns(0.5),
            p99: latency.quantile_ns(0.99),
            p99_9: latency.quantile_ns(0.999),
            p99_99: latency.quantile_ns(0.9999),
            max: latency.max_ns(),
            mean: thousandths(latency.mean_ns()),
            deviation: thousandths(latency.deviation_ns()),
        },
        learned: Learned { flows: found.learning.count(), longest_ns: found.learning.max_ns() },
    }
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
