// SPDX-License-Identifier: Apache-2.0
//! Mean round trips of low-latency and of normal packets through switches of different kinds, at the same
//! load (figure 16 and table 4 of the paper). A round trip passes the switch twice.
//!
//! All switches run on one machine; the paper quotes results of several machines.

use std::error::Error;

use flow::PortNo;
use shunt_bench::paper;
use shunt_bench::scenario::Kind;
use sim::arrivals::{Class, Harness, Switch};
use sim::cost::MeasurePlan;

use crate::mixed::{costs, least_capacity, means};
use crate::overload::FLOOD_PPS;
use crate::report::against;
use crate::traffic::{BACK, KNOWN, NORMAL, Normal, Traffic, load};

/// Number of low-latency flows, small enough for each to have a record.
const FLOWS: usize = 1_000;

/// Low-latency share of the packets, as in the paper's tables 3 and 4.
const SHARE: f64 = 0.2;

/// Offered load as a share of the capacity of the slowest switch.
const LOAD: f64 = 0.6;

/// Duration of the arrivals in nanoseconds of virtual time.
const SPAN_NS: f64 = 5e7;

/// Names of the switches. All are compared with the first, the native switch of the paper.
const NAMES: [&str; 6] = [
    "tables of the paper's kind",
    "own tables",
    "one cache for all packets",
    "FFP in one lane",
    "FFP and lanes",
    "FFP, lanes and path records",
];

const PARTS: [&str; 2] = [KNOWN, NORMAL];

fn switches(traffic: &Traffic) -> [Switch<'_>; 6] {
    [
        traffic.tables(Some(paper::maker)),
        traffic.tables(None),
        traffic.one_cache(),
        traffic.one_lane(false),
        traffic.ours(false),
        traffic.ours(true),
    ]
}

/// Measures one scenario.
pub fn run(kind: Kind, rules: usize, rounds: usize, plan: MeasurePlan) -> Result<(), Box<dyn Error>> {
    let traffic = Traffic::new(kind, rules, FLOWS)?;
    let case = format!(
        "{}, {rules} rules, {:.0} % low-latency, {:.0} % load",
        kind.name(),
        SHARE * 100.0,
        LOAD * 100.0
    );
    let rounds = (1..=rounds as u64).map(|seed| round(&traffic, seed, plan));
    let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
    for (at, name) in NAMES.iter().enumerate() {
        for (part, packets) in PARTS.iter().enumerate() {
            let pairs: Vec<_> = rounds.iter().map(|round| (round[at][part], round[0][part])).collect();
            let figure = format!("round trip of {packets} packets, {name} (paper: fig 16 and table 4)");
            against(&figure, &case, "ns", &pairs, None)?;
        }
    }
    Ok(())
}

/// Returns the mean round trips through each switch.
fn round(traffic: &Traffic, seed: u64, plan: MeasurePlan) -> Result<Vec<[f64; 2]>, Box<dyn Error>> {
    let classes = |pps: f64| -> Vec<Class> {
        vec![traffic.low(pps * SHARE), traffic.normal(Normal::Repeating, pps * (1.0 - SHARE))]
    };
    let flood = load(classes(FLOOD_PPS), SPAN_NS / 5.0, seed);
    let switches = switches(traffic);
    let costs = costs(&switches, &flood, plan)?;
    let capacity_pps = least_capacity(&switches, &flood, &costs)?;
    // The switch receives each packet twice.
    let once = classes(capacity_pps * LOAD / 2.0).into_iter();
    let twice = once.map(|class| Class { comes_back: Some(PortNo(BACK)), ..class });
    let mut below = load(twice.collect(), SPAN_NS, seed);
    // Only the time inside the switch is measured.
    below.io_ns = 0.0;
    let found = switches.iter().zip(&costs);
    found.map(|(switch, costs)| means(&Harness::new(switch, &below)?.run(costs))).collect()
}
