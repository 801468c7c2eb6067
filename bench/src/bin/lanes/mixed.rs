// SPDX-License-Identifier: Apache-2.0
//! Latency of low-latency and normal packets in mixed traffic below saturation. The peers are the same worker
//! with one lane and without the path, with tables of the paper's kind (figures 13 to 15 of the paper) and
//! with Shunt's own tables.

use std::error::Error;

use shunt_bench::paper;
use shunt_bench::scenario::Kind;
use sim::arrivals::{Case, Class, Harness, Pressure, Report, measure};
use sim::cost::MeasurePlan;

use crate::overload::FLOOD_PPS;
use crate::report::against;
use crate::traffic::{KNOWN, NORMAL, Normal, Traffic, load};

/// Number of low-latency flows, which follow Zipf's law.
const FLOWS: usize = 10_000;

/// Low-latency shares of the packets, in percent.
const SHARES: [u32; 3] = [10, 50, 90];

/// Offered load as a share of the capacity of the slowest of the three switches.
const LOAD: f64 = 0.6;

/// Duration of the arrivals in nanoseconds of virtual time.
const SPAN_NS: f64 = 5e7;

/// Returns the upper limits of the latency ratio to the peer, for low-latency and for normal packets.
fn bars(kind: Kind) -> [f64; 2] {
    match kind {
        Kind::Vehicles => [1.02; 2],
        Kind::Server | Kind::Video => [0.4, 0.9],
    }
}

const PARTS: [&str; 2] = [KNOWN, NORMAL];
const PEERS: [&str; 2] = ["paper-kind tables", "own tables"];

/// Returns the mean latencies of low-latency and of normal packets.
fn means(report: &Report) -> Result<[f64; 2], Box<dyn Error>> {
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

/// Measures one scenario.
pub fn run(kind: Kind, rules: usize, rounds: usize, plan: MeasurePlan) -> Result<(), Box<dyn Error>> {
    let traffic = Traffic::new(kind, rules, FLOWS)?;
    for which in Normal::ALL {
        for percent in SHARES {
            let case = format!(
                "{}, {rules} rules, {percent} % low-latency, {}, {:.0} % load",
                kind.name(),
                which.name(),
                LOAD * 100.0
            );
            let rounds = (1..=rounds as u64).map(|seed| round(&traffic, which, percent, seed, plan));
            let rounds = rounds.collect::<Result<Vec<_>, _>>()?;
            for (part, name) in PARTS.iter().enumerate() {
                for (peer, tables) in PEERS.iter().enumerate() {
                    let pairs: Vec<_> =
                        rounds.iter().map(|round| (round[0][part], round[peer + 1][part])).collect();
                    let bar = (peer == 0).then(|| bars(kind)[part]);
                    let figure =
                        format!("mean latency of {name} packets against {tables} (paper: fig 13 to 15)");
                    against(&figure, &case, "ns", &pairs, bar)?;
                }
            }
        }
    }
    Ok(())
}

/// Returns latencies with the path, with tables of the paper's kind, and with Shunt's own tables.
fn round(
    traffic: &Traffic,
    which: Normal,
    percent: u32,
    seed: u64,
    plan: MeasurePlan,
) -> Result<[[f64; 2]; 3], Box<dyn Error>> {
    let share = f64::from(percent) / 100.0;
    let classes = |pps: f64| -> Vec<Class> {
        vec![traffic.low(pps * share), traffic.normal(which, pps * (1.0 - share))]
    };
    let flood = load(classes(FLOOD_PPS), SPAN_NS / 5.0, seed);
    let switches = [traffic.ours(), traffic.tables(Some(paper::maker)), traffic.tables(None)];
    let costs =
        measure(&switches.map(|switch| Case { switch, load: &flood, pressure: Pressure::KeepsUp }), plan)?;
    let mut capacity_pps = f64::INFINITY;
    for (switch, costs) in switches.iter().zip(&costs) {
        // With one lane, every packet received during a flood is processed. With two lanes, normal packets
        // are dropped, so the capacity must be searched for.
        let carried_pps = match switch.config.lanes.is_on() {
            true => sim::arrivals::capacity_pps(switch, &flood, costs)?,
            false => Harness::new(switch, &flood)?.run(costs).received_pps(),
        };
        capacity_pps = capacity_pps.min(carried_pps);
    }
    let mut below = load(classes(capacity_pps * LOAD), SPAN_NS, seed);
    // Only the latency inside the switch is measured.
    below.io_ns = 0.0;
    let mut found = [[0.0; 2]; 3];
    for ((found, switch), costs) in found.iter_mut().zip(&switches).zip(&costs) {
        *found = means(&Harness::new(switch, &below)?.run(costs))?;
    }
    Ok(found)
}
