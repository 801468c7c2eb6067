// SPDX-License-Identifier: Apache-2.0
//! Result of a simulated switch, as text and as JSON.

use crate::costs::{Costs, StepCost};
use crate::figures::{Latency, thousandths};
use port_cache::MissFigures;
use serde::Serialize;
use sim::arrivals::{ClassReport, Load, Report};
use sim::cost::{ProbeStep, step_name};
use std::collections::BTreeMap;
use std::path::Path;

/// Name under which the simulation's report counts packets that were sent only to the controller.
const CONSUMED: &str = "consumed";

/// Result of a simulated switch. Rates are in packets per second. Times are virtual, in ns, unless the name
/// says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioOutcome {
    /// Path of the scenario file.
    pub scenario: String,
    /// Seed of the random generator.
    pub seed: u64,
    /// Name of the switch, if the scenario gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// Source of the costs.
    pub costs: &'static str,
    /// Ratio of virtual time to real time while the costs were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreement: Option<f64>,
    /// Costs of each step. The list is empty if the scenario gives the same cost for all units of all steps.
    pub steps: Vec<StepCost>,
    /// Steps that occurred in the run and were not measured, so that they cost nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmeasured: Vec<String>,
    /// Total offered load.
    pub offered_pps: f64,
    /// Capacity: the maximum rate of this traffic mix with almost no loss, if the run determined it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity_pps: Option<f64>,
    /// Warm-up time. Packets that arrived during this time are not counted.
    pub warm_up_ns: f64,
    /// Time during which counted packets arrived.
    pub span_ns: f64,
    /// Time at which all counted packets had left or were lost.
    pub end_ns: f64,
    /// Share of the time in which the worker had packets, in percent.
    pub busy_percent: f64,
    /// Number of poll iterations of the worker.
    pub turns: u64,
    /// Counters of the port cache with the warm-up, unless it is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_cache: Option<CacheUse>,
    /// Results by lane. One lane has the flows whose entries are all low-latency, the other lane all other
    /// flows.
    pub lanes: Vec<TrafficShare>,
    /// Results by traffic class.
    pub traffic: Vec<TrafficShare>,
}

/// Counters of the port cache. `packets` equals `hits` + `new` + `merged` + `passed` + `uncached` +
/// `dropped`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CacheUse {
    /// Packets that reached the port cache.
    pub packets: u64,
    /// Packets with a path record.
    pub hits: u64,
    /// Packets that started a search.
    pub new: u64,
    /// Packets that joined the queue of their flow.
    pub merged: u64,
    /// Packets of flows that cannot have a path record.
    pub passed: u64,
    /// Packets that were not queued because their port has too many pending flows.
    pub uncached: u64,
    /// Packets that were dropped because there was no space for them.
    pub dropped: u64,
    /// Packets that were dropped because no answer came in time.
    pub timed_out: u64,
}

impl From<MissFigures> for CacheUse {
    fn from(figures: MissFigures) -> Self {
        let MissFigures { hits, searched, merged, passed, uncached, dropped, timed_out, .. } = figures;
        let packets = figures.arrived();
        Self { packets, hits, new: searched, merged, passed, uncached, dropped, timed_out }
    }
}

/// Results for a part of the packets. `offered` equals `delivered` + `consumed` + the sum of `dropped`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficShare {
    /// Name of the lane or of the traffic class.
    pub name: String,
    /// Number of packets that arrived.
    pub offered: u64,
    /// Number of packets of which at least one copy was sent to a port. A packet that returns to the switch
    /// is counted when it is sent for the second time.
    pub delivered: u64,
    /// Number of packets that were sent to the controller only.
    pub consumed: u64,
    /// Drops by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Number of times that a packet stayed on the fast-forwarding path until it left.
    pub fast: u64,
    /// Number of times that a path record forwarded a packet.
    pub express: u64,
    /// Number of packets that left after a later packet of their flow.
    pub overtaken: u64,
    /// Latency from arrival to the end of transmission, plus the fixed time of input and output.
    pub latency_ns: Latency,
    /// How many flows began to use the fast-forwarding path or a path record, and after what time.
    pub learned: LearnedFlows,
}

/// Flows that began to use the fast-forwarding path or a path record during the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LearnedFlows {
    /// Number of flows.
    pub flows: u64,
    /// Longest time in ns from the arrival of a flow's first packet until a packet of the flow first used the
    /// fast-forwarding path or a path record.
    pub longest_ns: f64,
}

/// Offered load, and the capacity from which it was derived.
pub struct Offered<'a> {
    pub switch: Option<String>,
    pub load: &'a Load,
    pub capacity_pps: Option<f64>,
    pub has_port_cache: bool,
}

/// Converts the report of the simulation.
pub fn outcome(path: &Path, offered: Offered<'_>, costs: Costs, report: &Report) -> ScenarioOutcome {
    let Offered { switch, load, capacity_pps, has_port_cache } = offered;
    let Costs { from, steps, agreement, .. } = costs;
    let unmeasured = report.free_steps.iter().filter(|_| agreement.is_some());
    ScenarioOutcome {
        scenario: path.display().to_string(),
        seed: load.seed,
        switch,
        costs: from,
        agreement: agreement.map(thousandths),
        steps,
        unmeasured: unmeasured.map(|(step, again)| named(*step, *again)).collect(),
        offered_pps: thousandths(load.classes.iter().map(|class| class.rate_pps).sum()),
        capacity_pps: capacity_pps.map(thousandths),
        warm_up_ns: load.warm_up_ns,
        span_ns: thousandths(load.span_ns),
        end_ns: thousandths(report.end_ns),
        busy_percent: thousandths(100.0 * report.busy_ns / report.end_ns.max(1.0)),
        turns: report.turns,
        port_cache: has_port_cache.then(|| report.misses.into()),
        lanes: report.lanes.iter().map(part).collect(),
        traffic: report.classes.iter().map(part).collect(),
    }
}

/// Returns the name of a step, with its table.
fn named(step: ProbeStep, again: bool) -> String {
    let again = if again { " again" } else { "" };
    match step_name(step) {
        (name, Some(table)) => format!("{name} of table {table}{again}"),
        (name, None) => name.to_owned(),
    }
}

fn part(found: &ClassReport) -> TrafficShare {
    let mut dropped = found.lost.clone();
    let consumed = dropped.remove(CONSUMED).unwrap_or(0);
    TrafficShare {
        name: found.name.clone(),
        offered: found.offered,
        delivered: found.delivered,
        consumed,
        dropped,
        fast: found.fast,
        express: found.express,
        overtaken: found.overtaken,
        latency_ns: (&found.latency).into(),
        learned: LearnedFlows { flows: found.learning.count(), longest_ns: found.learning.max_ns() },
    }
}
