// SPDX-License-Identifier: Apache-2.0
//! Round trips of low-latency packets (table 3 of the paper), and losses among a very large number of them. A
//! fifth of the traffic is low-latency. Traffic arrives in bursts at nearly the worker's capacity.

use flow::PortNo;
use std::error::Error;
use std::io::{self, Write};
use std::thread;
use std::time::Instant;

use shunt_bench::pin_to;
use shunt_bench::scenario::Kind;
use sim::arrivals::{Case, Class, Harness, Load, Pattern, Pressure, Report, Switch, capacity_pps, measure};
use sim::cost::{CostTable, MeasurePlan};

use crate::overload::FLOOD_PPS;
use crate::report::tell;
use crate::traffic::{BACK, KNOWN, NORMAL, Normal, Traffic, load, suffix};

/// Number of low-latency flows, small enough for each to have a record.
const FLOWS: usize = 1_000;

/// Low-latency share of the packets that the worker receives, in both directions.
const SHARE: f64 = 0.2;

/// Offered load as a share of the worker's capacity.
const LOAD: f64 = 0.95;

/// Bursts of packets at the rate of 64-byte packets on a 10 Gbit/s link.
const BURSTS: Pattern = Pattern::Bursts { packets: 16, spacing_ns: 67.2 };

/// Maximum number of low-latency packets per run. Each run has a different seed.
const RUN_PACKETS: u64 = 1_000_000;

/// Duration of the arrivals when the capacity with one lane is measured, in nanoseconds of virtual time.
const FULL_NS: f64 = 2e7;

/// Size of a run.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub rules: usize,
    /// Whether the express path is on.
    pub express: bool,
    /// Number of low-latency packets.
    pub packets: u64,
}

/// Measures one scenario with one thread per CPU.
pub fn run(
    kind: Kind,
    size: Size,
    cpus: &[usize],
    plan: MeasurePlan,
    verbose: bool,
) -> Result<(), Box<dyn Error>> {
    let Size { rules, express, packets } = size;
    let traffic = Traffic::new(kind, rules, FLOWS)?;
    // While costs are measured, no packet returns.
    let one_way = |class: Class| match class.comes_back {
        Some(_) => Class { comes_back: None, rate_pps: class.rate_pps * 2.0, ..class },
        None => class,
    };
    let full = load(classes(&traffic, FLOOD_PPS).into_iter().map(one_way).collect(), FULL_NS, 1);
    let switches = [traffic.ours(express), traffic.one_lane(express)];
    let measured =
        measure(&switches.map(|switch| Case { switch, load: &full, pressure: Pressure::KeepsUp }), plan)?;
    let [costs, one_lane_costs] = &measured[..] else {
        return Err("the costs of exactly two switches must be measured".into());
    };
    // With one lane, every received packet is processed.
    let one_lane_pps = Harness::new(&traffic.one_lane(express), &full)?.run(one_lane_costs).received_pps();
    // A returning packet is received a second time.
    let capacity_pps =
        capacity_pps(&traffic.ours(express), &load(classes(&traffic, FLOOD_PPS), FULL_NS, 1), costs)?
            / (1.0 - SHARE / 2.0);
    let pps = capacity_pps * LOAD;
    let case = format!(
        "{}, {rules} rules, {:.0} % low-latency, {:.0} % load in bursts of 16{}",
        kind.name(),
        SHARE * 100.0,
        LOAD * 100.0,
        suffix(express),
    );
    if verbose {
        writeln!(io::stdout(), "in one lane:\n{one_lane_costs}in two:\n{costs}")?;
    }
    tell("packets received a second, nothing lost", &case, "Mpps", &[capacity_pps / 1e6], None)?;
    tell("packets received a second in one lane", &case, "Mpps", &[one_lane_pps / 1e6], None)?;
    tell("virtual time by real time", &case, "ratio", &[costs.agreement.sized_ratio()], None)?;
    let classes = classes(&traffic, pps);
    let runs = packets.div_ceil(RUN_PACKETS).max(1);
    // The number of bursts of 16 is random. Five standard deviations make too few packets very unlikely.
    let asked = packets as f64 + 5.0 * (16.0 * packets as f64).sqrt();
    let span_ns = asked / runs as f64 * 2e9 / (pps * SHARE);
    let begin = Instant::now();
    let loads: Vec<Load> = (1..=runs).map(|seed| load(classes.clone(), span_ns, seed)).collect();
    let found = all(&traffic.ours(express), &loads, costs, cpus)?;
    report(&case, &found, begin.elapsed().as_secs_f64())
}

/// Returns the classes for a total receive rate of `pps` packets/s. Each low-latency packet is received
/// twice.
fn classes(traffic: &Traffic, pps: f64) -> Vec<Class> {
    let low = Class { comes_back: Some(PortNo(BACK)), ..traffic.low(pps * SHARE / 2.0) };
    let normal = traffic.normal(Normal::Repeating, pps * (1.0 - SHARE));
    [low, normal].map(|class| Class { pattern: BURSTS, ..class }).to_vec()
}

/// Runs all loads, divided among the threads.
fn all(
    switch: &Switch<'_>,
    loads: &[Load],
    costs: &CostTable,
    cpus: &[usize],
) -> Result<Report, Box<dyn Error>> {
    let share = |(thread, cpu): (usize, usize)| -> Result<Option<Report>, String> {
        pin_to(cpu).map_err(|error| error.to_string())?;
        let mut sum: Option<Report> = None;
        for load in loads.iter().skip(thread).step_by(cpus.len()) {
            let report = Harness::new(switch, load);
            let report = report.map_err(|error| error.to_string())?.run(costs);
            match &mut sum {
                Some(sum) => sum.merge(&report),
                None => sum = Some(report),
            }
        }
        Ok(sum)
    };
    let reports = thread::scope(|scope| {
        let started: Vec<_> =
            cpus.iter().copied().enumerate().map(|at| scope.spawn(move || share(at))).collect();
        started.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    let mut sum: Option<Report> = None;
    for report in reports {
        let report = report.map_err(|_| "a thread of the simulation has failed")??;
        match (&mut sum, report) {
            (Some(sum), Some(report)) => sum.merge(&report),
            (sum, report) => *sum = sum.take().or(report),
        }
    }
    sum.ok_or_else(|| "nothing was run".into())
}

fn report(case: &str, found: &Report, took_s: f64) -> Result<(), Box<dyn Error>> {
    let low = found.class(KNOWN).ok_or("a class is missing")?;
    let normal = found.class(NORMAL).ok_or("a class is missing")?;
    let normal_lost = normal.lost() as f64 * 100.0 / normal.offered.max(1) as f64;
    let figures = [
        ("round trips begun by low-latency packets", "packets", low.offered as f64, None),
        (
            "low-latency packets lost of them (paper: table 3, 1 of 10^7)",
            "packets",
            low.lost() as f64,
            Some(0.0),
        ),
        ("low-latency packets overtaken in their flow", "packets", low.overtaken as f64, Some(0.0)),
        ("round trip of two passes, mean (paper: table 3)", "us", low.latency.mean_ns() / 1e3, None),
        ("round trip of two passes, standard deviation", "us", low.latency.deviation_ns() / 1e3, None),
        ("round trip of two passes, p99.9", "us", low.latency.quantile_ns(0.999) / 1e3, None),
        ("round trip of two passes, longest", "us", low.latency.max_ns() / 1e3, None),
        ("normal packets lost", "%", normal_lost, None),
    ];
    for (figure, unit, value, most) in figures {
        tell(figure, case, unit, &[value], most)?;
    }
    let all: u64 = found.classes.iter().map(|class| class.offered).sum();
    writeln!(
        io::stdout(),
        "{case}: simulated {:.3} s in {took_s:.1} s, {:.2} million packets a second; lost {:?}",
        found.end_ns / 1e9,
        (all + low.delivered) as f64 / took_s / 1e6,
        low.lost
    )?;
    Ok(())
}
