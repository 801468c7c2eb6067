// SPDX-License-Identifier: Apache-2.0
//! Normal traffic above the worker's capacity, together with low-latency traffic at a tenth of the capacity.

use std::error::Error;
use std::io::{self, Write};

use shunt_bench::scenario::Kind;
use sim::arrivals::{Case, ClassReport, Harness, Pressure, Report, Switch, measure};
use sim::cost::{CostTable, MeasurePlan};

use crate::report::tell;
use crate::traffic::{KNOWN, NEW, NORMAL, Normal, SINGLE, SLOW, SLOW_FLOWS, Traffic, load, suffix};

/// Number of low-latency flows, small enough for each to have a record.
const FLOWS: usize = 1_000;

/// Rate of the known low-latency flows, as a share of the worker's capacity.
const LOW_SHARE: f64 = 0.1;

/// Rate of each further flow, as a share of the worker's capacity.
const FLOW_SHARE: f64 = 0.005;

/// Multiple of the normal-traffic capacity for which a verdict is given.
const FACTOR: f64 = 2.0;

/// Loads from which the highest sustained load is selected, in multiples of the normal-traffic capacity.
const FACTORS: [f64; 11] = [0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0];

/// Rate of each new, slow flow in packets/s.
const SLOW_PPS: f64 = 1e3;

/// Duration of the arrivals in nanoseconds of virtual time.
const SPAN_NS: f64 = 1e8;

/// Rate above any worker's capacity, in packets/s.
pub const FLOOD_PPS: f64 = 2e7;

/// Maximum ratio of the low-latency p99.9 under overload, less the time of one quantum and one burst, to the
/// p99.9 without normal traffic.
const RATIO_MAX: f64 = 1.5;

/// Maximum time until new flows are learned, in milliseconds.
const NEW_MAX_MS: f64 = 10.0;

/// Results of all rounds, one element for each round.
#[derive(Default)]
struct Found {
    capacity_mpps: Vec<f64>,
    unloaded_us: Vec<f64>,
    loaded_us: Vec<f64>,
    ratio: Vec<f64>,
    ratio_beyond: Vec<f64>,
    added_us: Vec<f64>,
    quantum_us: Vec<f64>,
    burst_us: Vec<f64>,
    /// Added latency, relative to the time of one quantum and one burst.
    of_bound: Vec<f64>,
    lost: [Vec<f64>; 2],
    new_ms: Vec<f64>,
    slow_ms: Vec<f64>,
    normal_lost_percent: Vec<f64>,
    normal_mpps: Vec<f64>,
    highest: Vec<f64>,
    one_lane_us: Vec<f64>,
    one_lane_lost_percent: Vec<f64>,
    agreement: Vec<f64>,
}

struct Round<'a> {
    traffic: &'a Traffic,
    which: Normal,
    costs: CostTable,
    capacity_pps: f64,
    seed: u64,
}

impl Round<'_> {
    /// Runs low-latency traffic, and normal traffic at `factor` times the capacity.
    fn run(&self, switch: &Switch<'_>, factor: f64) -> Result<Report, Box<dyn Error>> {
        let Self { traffic, which, costs, capacity_pps, seed } = self;
        let classes = vec![
            traffic.low(capacity_pps * LOW_SHARE),
            traffic.single(capacity_pps * FLOW_SHARE, SPAN_NS * 0.2),
            traffic.new_flow(capacity_pps * FLOW_SHARE, SPAN_NS * 0.3),
            traffic.slow_flows(SLOW_PPS, SPAN_NS * 0.4),
            traffic.normal(*which, capacity_pps * factor),
        ];
        let load = load(classes, SPAN_NS, *seed);
        Ok(Harness::new(switch, &load)?.run(costs))
    }
}

/// Measures one scenario.
pub fn run(
    kind: Kind,
    rules: usize,
    express: bool,
    rounds: usize,
    plan: MeasurePlan,
    verbose: bool,
) -> Result<(), Box<dyn Error>> {
    let traffic = Traffic::new(kind, rules, FLOWS)?;
    for which in Normal::ALL {
        let mut found = Found::default();
        for seed in 1..=rounds as u64 {
            round(&traffic, which, express, seed, plan, verbose, &mut found)?;
        }
        let case = format!("{}, {rules} rules, {}{}", kind.name(), which.name(), suffix(express));
        report(&case, &found)?;
    }
    Ok(())
}

fn two(costs: Vec<CostTable>) -> Result<[CostTable; 2], Box<dyn Error>> {
    costs.try_into().map_err(|_| "the costs of exactly two switches must be measured".into())
}

fn class<'r>(report: &'r Report, name: &str) -> Result<&'r ClassReport, Box<dyn Error>> {
    report.class(name).ok_or_else(|| format!("there is no class `{name}`").into())
}

/// Returns the numbers of packets lost of the known low-latency flows, and of the flow with separate rules.
fn losses(report: &Report) -> Result<[u64; 2], Box<dyn Error>> {
    Ok([class(report, KNOWN)?.lost(), class(report, SINGLE)?.lost()])
}

fn round(
    traffic: &Traffic,
    which: Normal,
    express: bool,
    seed: u64,
    plan: MeasurePlan,
    verbose: bool,
    found: &mut Found,
) -> Result<(), Box<dyn Error>> {
    let flood = load(vec![traffic.normal(which, FLOOD_PPS)], SPAN_NS / 10.0, seed);
    let plain = traffic.tables(None);
    let mixed = vec![traffic.low(FLOOD_PPS * LOW_SHARE / FACTOR), traffic.normal(which, FLOOD_PPS)];
    let mixed = load(mixed, SPAN_NS, seed);
    let cases = [(plain, &flood), (traffic.ours(express), &mixed)];
    let cases = cases.map(|(switch, load)| Case { switch, load, pressure: Pressure::Overloaded });
    let [plain_costs, costs] = two(measure(&cases, plan)?)?;
    let full = Harness::new(&plain, &flood)?.run(&plain_costs);
    let capacity_pps = full.received_pps();
    if verbose {
        writeln!(io::stdout(), "without the path:\n{plain_costs}with it:\n{costs}")?;
    }
    found.agreement.push(costs.agreement.sized_ratio());
    let round = Round { traffic, which, costs, capacity_pps, seed };
    let ours = traffic.ours(express);
    let quiet = round.run(&ours, 0.0)?;
    let busy = round.run(&ours, FACTOR)?;
    let one_lane = round.run(&traffic.one_lane(express), FACTOR)?;
    let p999 = |report: &Report| Ok::<_, Box<dyn Error>>(class(report, KNOWN)?.latency.quantile_ns(0.999));
    let (quiet_ns, busy_ns) = (p999(&quiet)?, p999(&busy)?);
    let (burst_ns, quantum_ns) = longest_ns(&busy);
    found.one_lane_us.push(p999(&one_lane)? / 1e3);
    found.one_lane_lost_percent.push(lost_percent(class(&one_lane, KNOWN)?));
    found.capacity_mpps.push(capacity_pps / 1e6);
    found.unloaded_us.push(quiet_ns / 1e3);
    found.loaded_us.push(busy_ns / 1e3);
    found.ratio.push(busy_ns / quiet_ns);
    found.ratio_beyond.push((busy_ns - burst_ns - quantum_ns) / quiet_ns);
    found.added_us.push((busy_ns - quiet_ns) / 1e3);
    found.quantum_us.push(quantum_ns / 1e3);
    found.burst_us.push(burst_ns / 1e3);
    found.of_bound.push((busy_ns - quiet_ns) / (burst_ns + quantum_ns));
    for (all, lost) in found.lost.iter_mut().zip(losses(&busy)?) {
        all.push(lost as f64);
    }
    found.new_ms.push(learned_ms(class(&busy, NEW)?, 1));
    found.slow_ms.push(learned_ms(class(&busy, SLOW)?, SLOW_FLOWS));
    let normal = class(&busy, NORMAL)?;
    found.normal_lost_percent.push(lost_percent(normal));
    found.normal_mpps.push(normal.delivered as f64 * 1e3 / SPAN_NS);
    if verbose {
        for (name, report) in [("unloaded", &quiet), ("loaded", &busy)] {
            print_classes(name, report)?;
        }
    }
    let mut highest = 0.0;
    for factor in FACTORS {
        let busy = round.run(&ours, factor)?;
        let (burst_ns, quantum_ns) = longest_ns(&busy);
        if losses(&busy)? != [0; 2] || p999(&busy)? - burst_ns - quantum_ns > RATIO_MAX * quiet_ns {
            break;
        }
        highest = factor;
    }
    found.highest.push(highest);
    Ok(())
}

fn lost_percent(class: &ClassReport) -> f64 {
    class.lost() as f64 * 100.0 / class.offered.max(1) as f64
}

/// Returns the p99.9 of the time of one burst and of one quantum, in nanoseconds. A low-latency packet may
/// arrive when the worker has just begun them.
fn longest_ns(report: &Report) -> (f64, f64) {
    (report.spans.burst.quantile_ns(0.999), report.spans.other.quantile_ns(0.999))
}

/// Prints the results of each class of a run.
pub fn print_classes(run: &str, report: &Report) -> io::Result<()> {
    for class in &report.classes {
        writeln!(
            io::stdout(),
            "{run}, {}: {} offered, {} delivered, {} over the path, {} by path records, lost {:?}, {} overtaken, \
             latency p50 {:.2} p99.9 {:.2} max {:.2} us",
            class.name,
            class.offered,
            class.delivered,
            class.fast,
            class.express,
            class.lost,
            class.overtaken,
            class.latency.quantile_ns(0.5) / 1e3,
            class.latency.quantile_ns(0.999) / 1e3,
            class.latency.max_ns() / 1e3
        )?;
    }
    Ok(())
}

/// Returns the time in milliseconds until the last flow was on the path. If a flow never was, returns the
/// duration of the arrivals.
fn learned_ms(class: &ClassReport, flows: usize) -> f64 {
    let all = class.learning.count() == flows as u64;
    if all { class.learning.max_ns() / 1e6 } else { SPAN_NS / 1e6 }
}

fn report(case: &str, found: &Found) -> Result<(), Box<dyn Error>> {
    let two = format!("{case}, {FACTOR} capacities");
    let [learned, single] = &found.lost;
    tell("capacity of the tables", case, "Mpps", &found.capacity_mpps, None)?;
    tell("p99.9 of low-latency packets, no normal traffic", case, "us", &found.unloaded_us, None)?;
    tell("p99.9 of low-latency packets", &two, "us", &found.loaded_us, None)?;
    tell("p99.9 under overload by p99.9 without", &two, "ratio", &found.ratio, None)?;
    let beyond = "p99.9 under overload less a quantum and a burst, by p99.9 without";
    tell(beyond, &two, "ratio", &found.ratio_beyond, Some(RATIO_MAX))?;
    tell("one normal quantum", &two, "us", &found.quantum_us, None)?;
    tell("one triage burst", &two, "us", &found.burst_us, None)?;
    tell("added to p99.9", &two, "us", &found.added_us, None)?;
    tell("added to p99.9, by a quantum and a burst", &two, "ratio", &found.of_bound, None)?;
    tell("lost packets of learned flows", &two, "packets", learned, Some(0.0))?;
    tell("lost packets of single-value flows", &two, "packets", single, Some(0.0))?;
    let new = "a new low-latency flow until its first packet has left by the path";
    tell(new, &two, "ms", &found.new_ms, Some(NEW_MAX_MS))?;
    let slow = format!("{new}, the last of {SLOW_FLOWS} of 1 kpps");
    tell(&slow, &two, "ms", &found.slow_ms, Some(NEW_MAX_MS))?;
    tell("normal packets lost", &two, "%", &found.normal_lost_percent, None)?;
    tell("normal packets delivered", &two, "Mpps", &found.normal_mpps, None)?;
    tell("p99.9 of low-latency packets in one lane", &two, "us", &found.one_lane_us, None)?;
    tell("low-latency packets lost in one lane", &two, "%", &found.one_lane_lost_percent, None)?;
    tell("highest load that holds", case, "capacities", &found.highest, None)?;
    tell("virtual time by real time", case, "ratio", &found.agreement, None)
}
