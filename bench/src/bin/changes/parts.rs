// SPDX-License-Identifier: Apache-2.0
//! The parts of the benchmark, and their figures.

use std::cell::RefCell;
use std::error::Error;
use std::io::{self, Write};
use std::path::Path;

use fastrand::Rng;
use shunt_bench::{Alone, Bar, Comparison, Figure, Measure, Plan, Window, compare, median, median_interval};

use crate::Arguments;
use crate::control::{Job, Work};
use crate::rules::Sizes;
use crate::side::{Measured, Pair, WARM_UP_NS};

/// Length of a window at full speed, in nanoseconds on the worker's clock.
const WINDOW_NS: u64 = 100_000_000;

/// Number of windows in which each side's capacity is measured.
const CAPACITY_WINDOWS: usize = 5;

/// Minimum share of packets that must hit a path record, in percent.
const HITS_PERCENT: f64 = 90.0;

/// Maximum permitted delay of a packet, in microseconds.
const DELAY_US: f64 = 20.0;

/// Maximum ratio of the p99.9 delay with dumps to the p99.9 delay without them.
const DUMP_RATIO: f64 = 1.05;

/// Minimum ratio of the packet rate with statistics requests to the packet rate without them.
const STATISTICS_RATIO: f64 = 0.95;

const REPORT: &str = "target/report";

/// Results of both sides, one element for each round.
type Rounds = Vec<[Measured; 2]>;

/// Compares packets during rule changes with packets without rule changes.
pub fn changes(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut part = Running::new(arguments, arguments.routes)?;
    let job = Job { changes: arguments.rate, ..Job::default() };
    let rounds = part.rounds([job, Job::default()])?;
    let (speed, work) = part.speed([job, Job::default()])?;
    part.pair.end()?;
    let case = format!(
        "{} flows {}, {} routes, {} changes/s, 1 in {} on a new field",
        arguments.flows,
        arguments.popularity.words(),
        arguments.routes,
        arguments.rate,
        arguments.share
    );
    let paced = format!("{case}, {:.0} % load", arguments.load * 100.0);
    let hits = |work: &Work| 100.0 * work.hits as f64 / work.packets.max(1) as f64;
    let shares: Vec<f64> = rounds.iter().map(|[ours, _]| hits(&ours.work)).collect();
    let name = "packets that hit a path record";
    tell(&Figure::at_least(name, &paced, "%", &alone(&shares)?, HITS_PERCENT))?;
    let shares: Vec<f64> = work.iter().map(hits).collect();
    tell(&Figure::at_least(name, &format!("{case}, full speed"), "%", &alone(&shares)?, HITS_PERCENT))?;
    delays(&rounds, &paced, "changes")?;
    tell(&Figure::beside("packets/s with changes, by without", &case, "Mpps/CPU-s", &speed))?;
    per_change(&rounds, &paced)
}

/// Compares packets during rule changes and dumps with packets during rule changes alone.
pub fn dump(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut part = Running::new(arguments, arguments.entries)?;
    let job = Job { changes: arguments.rate, ..Job::default() };
    let rounds = part.rounds([Job { dump: true, ..job }, job])?;
    part.pair.end()?;
    let case = format!(
        "{} flows {}, {} changes/s, 1 in {} on a new field, a dump of {} entries every {} s, {:.0} % load",
        arguments.flows,
        arguments.popularity.words(),
        arguments.rate,
        arguments.share,
        arguments.entries,
        arguments.seconds,
        arguments.load * 100.0
    );
    let lost: Vec<f64> = rounds.iter().map(|[ours, _]| ours.lost as f64).collect();
    tell_limited("packets lost with dumps", &case, "packets", &lost, Some(0.0))?;
    let p999 = |measured: &Measured| measured.delays.quantile_ns(0.999);
    let pairs: Vec<_> = rounds.iter().map(|[ours, peer]| (p999(ours), p999(peer))).collect();
    let figure =
        Figure::of_rounds("p99.9 with dumps, by without", &case, "ns", &pairs, Some(Bar::AtMost(DUMP_RATIO)));
    tell(&figure.ok_or("there are no rounds")?)?;
    let longest: Vec<f64> = rounds.iter().map(|[ours, _]| ours.delays.max_ns() as f64 / 1e3).collect();
    tell_limited("longest delay with dumps", &case, "us", &longest, None)?;
    if rounds.iter().any(|[ours, _]| ours.work.dumped < arguments.entries as u64) {
        return Err("a dump did not end within its window: use a longer one (--seconds)".into());
    }
    let cpu_ms: Vec<f64> = rounds.iter().map(|[ours, _]| ours.work.dump_ns as f64 / 1e6).collect();
    tell_limited("CPU time of the control thread per dump", &case, "ms", &cpu_ms, None)
}

/// Compares packets during statistics requests with packets without such requests.
pub fn statistics(arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let mut part = Running::new(arguments, arguments.routes)?;
    let job = Job { statistics: arguments.requests, ..Job::default() };
    let (speed, work) = part.speed([job, Job::default()])?;
    part.pair.end()?;
    let case = format!(
        "{} flows {}, {} routes, {} requests/s for one flow",
        arguments.flows,
        arguments.popularity.words(),
        arguments.routes,
        arguments.requests
    );
    let name = "packets/s with statistics requests, by without";
    tell(&Figure::new(name, &case, "Mpps/CPU-s", &speed, Bar::AtLeast(STATISTICS_RATIO)))?;
    let due = arguments.requests as f64 * (WINDOW_NS + WARM_UP_NS) as f64 / 1e9;
    let answered: Vec<f64> = work.iter().map(|work| 100.0 * work.statistics as f64 / due).collect();
    tell(&Figure::alone("requests answered within the window", &case, "%", &alone(&answered)?))?;
    let per = |work: &Work| work.statistics_ns as f64 / 1e3 / work.statistics.max(1) as f64;
    let cpu_us: Vec<f64> = work.iter().map(per).collect();
    tell(&Figure::alone("CPU time of the control thread per request", &case, "us", &alone(&cpu_us)?))
}

/// A part that is being measured.
struct Running<'a> {
    arguments: &'a Arguments,
    pair: Pair,
    rng: Rng,
}

impl<'a> Running<'a> {
    fn new(arguments: &'a Arguments, routes: usize) -> Result<Self, Box<dyn Error>> {
        let sizes = Sizes { flows: arguments.flows, routes };
        let pair = Pair::new(sizes, arguments.share, arguments.popularity.popularity())?;
        Ok(Self { arguments, pair, rng: Rng::with_seed(1) })
    }

    /// Returns the interval between two packets at the selected share of the slower side's capacity.
    fn interval_ns(&mut self, jobs: [Job; 2]) -> Result<f64, Box<dyn Error>> {
        let mut least_mpps = f64::INFINITY;
        for (side, job) in self.pair.sides.iter_mut().zip(jobs) {
            let mut speeds = Vec::new();
            for _ in 0..CAPACITY_WINDOWS {
                let (window, _) = side.full_speed(job, WINDOW_NS)?;
                speeds.push(Measure::MegaPerCpuSecond.of(&window));
            }
            let capacity_mpps = median(&speeds).ok_or("the capacity was not measured")?;
            least_mpps = least_mpps.min(capacity_mpps);
            if self.arguments.verbose {
                writeln!(io::stdout(), "capacity {capacity_mpps:.2} Mpps")?;
            }
        }
        Ok(1e3 / (least_mpps * self.arguments.load))
    }

    /// Measures delays. The order of the sides is random in each round.
    fn rounds(&mut self, jobs: [Job; 2]) -> Result<Rounds, Box<dyn Error>> {
        let interval_ns = self.interval_ns(jobs)?;
        let span_ns = (self.arguments.seconds * 1e9) as u64;
        let mut rounds = Vec::new();
        for _ in 0..self.arguments.rounds {
            let order = if self.rng.bool() { [0, 1] } else { [1, 0] };
            let mut round = [None, None];
            for at in order {
                let measured = self.pair.sides[at].paced(jobs[at], interval_ns, span_ns)?;
                if self.arguments.verbose {
                    print(at, &measured)?;
                }
                round[at] = Some(measured);
            }
            let [Some(ours), Some(peer)] = round else { return Err("a side was not measured".into()) };
            rounds.push([ours, peer]);
        }
        Ok(rounds)
    }

    /// Compares the packets per second of both sides. Also returns the work of the control thread in each
    /// window of our side.
    fn speed(&mut self, jobs: [Job; 2]) -> Result<(Comparison, Vec<Work>), Box<dyn Error>> {
        let [ours, peer] = &mut self.pair.sides;
        let work = RefCell::new(Vec::new());
        let keep = |result: Result<(Window, Work), Box<dyn Error>>| {
            result.map_err(|error| shunt_bench::Error::Contender(error.to_string()))
        };
        let mut one = || {
            let (window, done) = keep(ours.full_speed(jobs[0], WINDOW_NS))?;
            work.borrow_mut().push(done);
            Ok(window)
        };
        let mut other = || Ok(keep(peer.full_speed(jobs[1], WINDOW_NS))?.0);
        let found = compare(&Plan::new(self.arguments.windows), &mut one, &mut other)?;
        Ok((found, work.into_inner()))
    }
}

/// Reports how long packets were delayed, and how many were lost.
fn delays(rounds: &Rounds, case: &str, what: &str) -> Result<(), Box<dyn Error>> {
    let of = |side: usize, value: fn(&Measured) -> f64| -> Vec<f64> {
        rounds.iter().map(|round| value(&round[side])).collect()
    };
    let longest = |measured: &Measured| measured.delays.max_ns() as f64 / 1e3;
    tell_limited(&format!("longest delay with {what}"), case, "us", &of(0, longest), Some(DELAY_US))?;
    tell_limited(&format!("longest delay without {what}"), case, "us", &of(1, longest), None)?;
    for (name, share) in [("p99.9", 0.999), ("p99.99", 0.9999), ("p50", 0.5)] {
        let value = |measured: &Measured| measured.delays.quantile_ns(share);
        let pairs: Vec<_> = rounds.iter().map(|[ours, peer]| (value(ours), value(peer))).collect();
        let name = format!("{name} of the delay with {what}, by without");
        tell(&Figure::of_rounds(&name, case, "ns", &pairs, None).ok_or("there are no rounds")?)?;
    }
    let beyond = |measured: &Measured| {
        1e6 * measured.delays.beyond((DELAY_US * 1e3) as u64) as f64 / measured.delays.packets().max(1) as f64
    };
    tell_limited(&format!("packets delayed by more than {DELAY_US} us"), case, "ppm", &of(0, beyond), None)?;
    let name = format!("packets delayed by more than {DELAY_US} us, without {what}");
    tell_limited(&name, case, "ppm", &of(1, beyond), None)?;
    tell_limited(&format!("packets lost with {what}"), case, "packets", &of(0, |m| m.lost as f64), Some(0.0))
}

/// Reports the cost of changes to the control thread, and how often they changed the list of the bits in
/// keys.
fn per_change(rounds: &Rounds, case: &str) -> Result<(), Box<dyn Error>> {
    let each =
        |value: fn(&Work) -> f64| -> Vec<f64> { rounds.iter().map(|[ours, _]| value(&ours.work)).collect() };
    let cpu_us = each(|work| work.changes_ns as f64 / 1e3 / work.changes.max(1) as f64);
    tell_limited("CPU time of the control thread per change", case, "us", &cpu_us, None)?;
    let made: Vec<f64> = rounds
        .iter()
        .map(|[ours, _]| ours.work.changes as f64 * 1e9 / (ours.span_ns + WARM_UP_NS) as f64)
        .collect();
    tell_limited("changes made", case, "changes/s", &made, None)?;
    let plans = each(|work| work.plans as f64 / work.widened.max(1) as f64);
    tell_limited("plans of keys per rule on a new field", case, "plans", &plans, None)?;
    Ok(())
}

fn print(side: usize, measured: &Measured) -> io::Result<()> {
    let Measured { delays, sent, lost, excluded, span_ns, work } = measured;
    writeln!(
        io::stdout(),
        "{} {:.2} Mpps, {lost} lost, {:.1} % excluded, delay p50 {:.2} p99.9 {:.2} p99.99 {:.2} max {:.2} us, {} beyond 20 us, hits {:.2} %, {} changes in {:.2} s of {:.1} us, {} plans, {} dumped in {:.1} ms",
        ["ours", "peer"][side],
        *sent as f64 * 1e3 / *span_ns as f64,
        *excluded as f64 * 100.0 / (*sent).max(1) as f64,
        delays.quantile_ns(0.5) / 1e3,
        delays.quantile_ns(0.999) / 1e3,
        delays.quantile_ns(0.9999) / 1e3,
        delays.max_ns() as f64 / 1e3,
        delays.beyond(20_000),
        100.0 * work.hits as f64 / work.packets.max(1) as f64,
        work.changes,
        *span_ns as f64 / 1e9,
        work.changes_ns as f64 / 1e3 / work.changes.max(1) as f64,
        work.plans,
        work.dumped,
        work.dump_ns as f64 / 1e6,
    )
}

/// Returns the median of the windows' values, with its confidence interval.
fn alone(values: &[f64]) -> Result<Alone, Box<dyn Error>> {
    let interval = median_interval(values).ok_or("nothing was measured")?;
    let median = median(values).ok_or("nothing was measured")?;
    Ok(Alone { median, low: interval.low, high: interval.high, runs: values.len(), set_aside: 0 })
}

fn tell_limited(
    figure: &str,
    case: &str,
    unit: &str,
    values: &[f64],
    limit: Option<f64>,
) -> Result<(), Box<dyn Error>> {
    tell(&Figure::limited(figure, case, unit, values, limit).ok_or("there are no rounds")?)
}

fn tell(figure: &Figure) -> Result<(), Box<dyn Error>> {
    figure.append(Path::new(REPORT), "changes")?;
    let Figure { figure: name, case, ours, peer, unit, ratio, low, high, bar, verdict, .. } = figure;
    let mut text = format!("{name}, {case}: {ours:.2} {unit}");
    if let (Some(peer), Some(ratio)) = (peer, ratio) {
        text += &format!(" and {peer:.2}, ratio {ratio:.3}");
    }
    text += &format!(" ({low:.3} to {high:.3})");
    if let (Some(bar), Some(verdict)) = (bar, verdict) {
        text += &format!(", target {bar}: {verdict:?}");
    }
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}
