// SPDX-License-Identifier: Apache-2.0
//! Latency of low-latency and normal packets in mixed traffic below saturation. The two peers have one lane
//! and no path: one has tables of the paper's kind (figures 13 to 15 of the paper), the other has Shunt's own
//! tables.

use std::error::Error;
use std::io::{self, Write};

use shunt_bench::scenario::Kind;
use shunt_bench::{Cached, paper};
use sim::arrivals::{Case, Class, Harness, Load, Pressure, Report, Switch, WARM_UP, measure};
use sim::cost::{CostTable, MeasurePlan};

use crate::overload::{FLOOD_PPS, print_classes};
use crate::report::against;
use crate::traffic::{KNOWN, NORMAL, Normal, Traffic, load};

/// Number of low-latency flows. Packets are drawn from them by Zipf's law.
const FLOWS: usize = 10_000;

/// Low-latency shares of the packets, in percent.
const SHARES: [u32; 3] = [10, 50, 90];

/// Offered load as a share of the capacity of the slowest of the compared switches.
const LOAD: f64 = 0.6;

/// Duration of the arrivals in nanoseconds of virtual time.
const SPAN_NS: f64 = 5e7;

/// Returns the upper limits of the latency ratio to the peer, for low-latency and for normal packets.
fn bars(kind: Kind, cached: Cached) -> [f64; 2] {
    match (cached, kind) {
        (Cached::Express, _) => [0.5, 0.95],
        (_, Kind::Vehicles) => [1.02; 2],
        (_, Kind::Server | Kind::Video) => [0.4, 0.9],
    }
}

const PARTS: [&str; 2] = [KNOWN, NORMAL];
const PEERS: [&str; 2] = ["paper-kind tables", "own tables"];

/// Returns the mean latencies of low-latency and of normal packets.
pub fn means(report: &Report) -> Result<[f64; 2], Box<dyn Error>> {
    let mut means = [0.0; 2];
    for (mean, name) in means.iter_mut().zip(PARTS) {
        let class = report.class(name).ok_or("a class is missing")?;
        if class.lost() > 0 {
            return Err(format!("{name}: {:?} lost below saturation", class.lost).into());
        }
        *mean = class.latency.mean_ns();
    }
    Ok(means)
}

/// Measures one scenario. The switch with lanes has the fast-forwarding path, with or without path records.
pub fn run(
    kind: Kind,
    rules: usize,
    ways: &[Cached],
    rounds: usize,
    plan: MeasurePlan,
    verbose: bool,
) -> Result<(), Box<dyn Error>> {
    let traffic = Traffic::new(kind, rules, FLOWS)?;
    for which in Normal::ALL {
        for percent in SHARES {
            let case = format!(
                "{}, {rules} rules, {percent} % low-latency, {}, {:.0} % load",
                kind.name(),
                which.name(),
                LOAD * 100.0
            );
            let rounds = (1..=rounds as u64).map(|seed| {
                let mix = Mix { traffic: &traffic, which, percent };
                round(mix, ways, seed, plan, verbose)
            });
            let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
            for (way, cached) in ways.iter().enumerate() {
                report(kind, &case, *cached, way, ways.len(), &rounds)?;
            }
        }
    }
    Ok(())
}

/// Reports the mean latencies with one kind of records, and their ratios to those of each peer.
fn report(
    kind: Kind,
    case: &str,
    cached: Cached,
    way: usize,
    ways: usize,
    rounds: &[Vec<[f64; 2]>],
) -> Result<(), Box<dyn Error>> {
    let with = if cached == Cached::Express { " with path records" } else { "" };
    for (part, name) in PARTS.iter().enumerate() {
        for (peer, tables) in PEERS.iter().enumerate() {
            let pairs: Vec<_> =
                rounds.iter().map(|round| (round[way][part], round[ways + peer][part])).collect();
            let bar = (peer == 0).then(|| bars(kind, cached)[part]);
            let figure =
                format!("mean latency of {name} packets{with} against {tables} (paper: fig 13 to 15)");
            against(&figure, case, "ns", &pairs, bar)?;
        }
    }
    Ok(())
}

/// Share of low-latency packets, and kind of the normal packets.
#[derive(Clone, Copy)]
struct Mix<'a> {
    traffic: &'a Traffic,
    which: Normal,
    percent: u32,
}

/// Returns the mean latencies with each kind of records, with tables of the paper's kind, and with Shunt's
/// own tables.
fn round(
    Mix { traffic, which, percent }: Mix<'_>,
    ways: &[Cached],
    seed: u64,
    plan: MeasurePlan,
    verbose: bool,
) -> Result<Vec<[f64; 2]>, Box<dyn Error>> {
    let share = f64::from(percent) / 100.0;
    let classes = |pps: f64| -> Vec<Class> {
        vec![traffic.low(pps * share), traffic.normal(which, pps * (1.0 - share))]
    };
    let flood = load(classes(FLOOD_PPS), SPAN_NS / 5.0, seed);
    let mut switches: Vec<Switch<'_>> =
        ways.iter().map(|cached| traffic.ours(*cached == Cached::Express)).collect();
    switches.extend([traffic.tables(Some(paper::maker)), traffic.tables(None)]);
    let costs = costs(&switches, &flood, plan)?;
    let capacity_pps = least_capacity(&switches, &flood, &costs)?;
    let mut below = load(classes(capacity_pps * LOAD), SPAN_NS, seed);
    below.warm_up_ns = WARM_UP * 1e9 / (capacity_pps * LOAD);
    // Only the latency inside the switch is measured.
    below.io_ns = 0.0;
    let mut found = Vec::new();
    for (number, (switch, costs)) in switches.iter().zip(&costs).enumerate() {
        let report = Harness::new(switch, &below)?.run(costs);
        if verbose {
            write!(io::stdout(), "{percent} % low-latency, {}, switch {number}:\n{costs}", which.name())?;
            print_classes("below saturation", &report)?;
        }
        found.push(means(&report)?);
    }
    Ok(found)
}

/// Measures the costs of all switches under a flood.
pub fn costs(
    switches: &[Switch<'_>],
    flood: &Load,
    plan: MeasurePlan,
) -> Result<Vec<CostTable>, Box<dyn Error>> {
    let pressure = Pressure::KeepsUp;
    let cases = switches.iter().map(|switch| Case { switch: *switch, load: flood, pressure });
    let cases: Vec<Case<'_>> = cases.collect();
    Ok(measure(&cases, plan)?)
}

/// Returns the capacity of the slowest switch in packets/s.
pub fn least_capacity(
    switches: &[Switch<'_>],
    flood: &Load,
    costs: &[CostTable],
) -> Result<f64, Box<dyn Error>> {
    let mut capacity_pps = f64::INFINITY;
    for (switch, costs) in switches.iter().zip(costs) {
        // With one lane, every packet received during a flood is processed. With two lanes, normal packets
        // are dropped, so a search determines the capacity.
        let carried_pps = match switch.config.lanes.is_on() {
            true => sim::arrivals::capacity_pps(switch, flood, costs)?,
            false => Harness::new(switch, flood)?.run(costs).received_pps(),
        };
        capacity_pps = capacity_pps.min(carried_pps);
    }
    Ok(capacity_pps)
}
