// SPDX-License-Identifier: Apache-2.0
//! Measuring: windows that charge real time to steps, and in turn with them windows that are timed as a whole.

use crate::cost::CostProbe;
use crate::cost::probe::{Counts, Sample};
use crate::cost::slots::{STEPS, step};
use crate::cost::table::{Agreement, CostTable, Row};
use flow::Nanos;
use pipeline::Step;
use std::time::Instant;
use worker::Worker;

/// More than this above the usual time of a turn was stolen: a whole burst takes as long.
const STOLEN_NS: u32 = 2_000;
/// The same for turns that take long themselves: more than this part of their usual time.
const STOLEN_PART: u32 = 2;
/// What is usual is told from this many windows before and after.
const NEAR: usize = 4;
/// Samples that a turn gives at most, on average of a window.
const SAMPLES_PER_TURN: usize = 256;

/// What a worker does while it is measured.
pub trait Workload {
    /// Called before each turn, and not measured: lets packets arrive, submits operations. Says what kind of turn comes
    /// (0 to 255): turns of one kind take about as long as one another.
    fn prepare(&mut self, turn: u64) -> u8;

    /// The worker, and the time to tell it.
    fn worker(&mut self) -> (&mut Worker<CostProbe>, Nanos);
}

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Windows of each of the two sorts.
    pub windows: usize,
    /// Turns of a window.
    pub turns: usize,
    /// Windows run first and thrown away.
    pub warm_up: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self { windows: 400, turns: 64, warm_up: 20 }
    }
}

/// Where costs are from.
#[derive(Clone, Copy, Debug)]
pub enum Costs {
    /// Measured first, over the same tables and sizes.
    Measured(Plan),
    /// The same for a unit of every step, ns.
    Even(f64),
}

impl Costs {
    /// The costs of a workload, which is run to measure them if they are to be measured.
    pub fn of(self, workload: &mut impl Workload) -> CostTable {
        match self {
            Self::Measured(plan) => measure(workload, plan),
            Self::Even(unit_ns) => CostTable::even(unit_ns),
        }
    }
}

/// A turn's kind and time, ns.
type TurnTime = (u8, u32);

struct Window<T> {
    turns: Vec<TurnTime>,
    found: T,
}

/// Measures the steps of a workload, and holds their sum against real time.
pub fn measure(workload: &mut impl Workload, plan: Plan) -> CostTable {
    let clock_ns = clock_cost_ns();
    let mut found = Found::default();
    for window in 0..plan.warm_up + plan.windows {
        found.take(workload, plan, window);
    }
    found.table(clock_ns)
}

/// The same of several workloads whose windows take turns: what the machine does to one, it does to all.
pub fn measure_all(workloads: &mut [impl Workload], plan: Plan) -> Vec<CostTable> {
    let clock_ns = clock_cost_ns();
    let mut all: Vec<Found> = workloads.iter().map(|_| Found::default()).collect();
    for window in 0..plan.warm_up + plan.windows {
        for (workload, found) in workloads.iter_mut().zip(&mut all) {
            found.take(workload, plan, window);
        }
    }
    all.into_iter().map(|found| found.table(clock_ns)).collect()
}

/// What windows of one workload found.
#[derive(Default)]
struct Found {
    turn: u64,
    charged: Vec<Window<Vec<Sample>>>,
    timed: Vec<Window<Counts>>,
}

impl Found {
    /// One window of each sort.
    fn take(&mut self, workload: &mut impl Workload, plan: Plan, window: usize) {
        workload.worker().0.probe().start_measuring(plan.turns * SAMPLES_PER_TURN);
        let turns = run(workload, plan.turns, &mut self.turn);
        let mut samples = workload.worker().0.probe().take_samples();
        samples.shrink_to_fit();
        workload.worker().0.probe().start_counting();
        let counted_turns = run(workload, plan.turns, &mut self.turn);
        let counts = workload.worker().0.probe().take_counts();
        if window >= plan.warm_up {
            self.charged.push(Window { turns, found: samples });
            self.timed.push(Window { turns: counted_turns, found: counts });
        }
    }

    fn table(self, clock_ns: f64) -> CostTable {
        let mut agreement = Agreement::default();
        let charged = without_gaps(self.charged, &mut agreement);
        let timed = without_gaps(self.timed, &mut agreement);
        let samples = charged.iter().flat_map(|window| window.found.iter().copied());
        let mut table = CostTable::new(rows(samples, clock_ns));
        for window in &timed {
            agreement.virtual_ns += table.total_ns(&window.found);
            agreement.sized_ns += table.sized_ns(&window.found);
            agreement.real_ns += window.turns.iter().map(|(_, ns)| f64::from(*ns) - clock_ns).sum::<f64>();
            agreement.windows += 1;
        }
        table.agreement = agreement;
        table
    }
}

/// One window's turns.
fn run(workload: &mut impl Workload, turns: usize, turn: &mut u64) -> Vec<TurnTime> {
    let mut times = Vec::with_capacity(turns);
    for _ in 0..turns {
        let kind = workload.prepare(*turn);
        *turn += 1;
        let (worker, now) = workload.worker();
        let start = Instant::now();
        worker.probe().begin(start);
        worker.turn(now);
        let ns = start.elapsed().as_nanos();
        worker.probe().end();
        times.push((kind, u32::try_from(ns).unwrap_or(u32::MAX)));
    }
    times
}

/// What reading the clock costs by itself: the median of many readings, ns.
fn clock_cost_ns() -> f64 {
    let mut spans: Vec<f64> = (0..20_001)
        .map(|_| {
            let start = Instant::now();
            Instant::now().saturating_duration_since(start).as_nanos() as f64
        })
        .collect();
    // The mean of the middle half: the clock's own steps are too coarse for a median.
    spans.sort_by(f64::total_cmp);
    let middle = &spans[spans.len() / 4..spans.len() * 3 / 4];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// Leaves the windows in which no turn took much longer than is usual for its kind about that time: what a workload does
/// may change slowly. If there is none, the one with the least stolen time is left: costs are then told too high, not
/// as nothing.
fn without_gaps<T>(windows: Vec<Window<T>>, agreement: &mut Agreement) -> Vec<Window<T>> {
    let stolen_ns: Vec<u64> = (0..windows.len())
        .map(|at| {
            let near = &windows[at.saturating_sub(NEAR)..windows.len().min(at + NEAR + 1)];
            let usual_ns = usual_ns(near);
            let stolen = |(kind, ns): &TurnTime| {
                let usual_ns = usual_ns[usize::from(*kind)];
                let over_ns = ns.saturating_sub(usual_ns);
                (over_ns > STOLEN_NS.max(usual_ns / STOLEN_PART)).then_some(u64::from(over_ns))
            };
            windows[at].turns.iter().filter_map(stolen).sum()
        })
        .collect();
    let all = windows.len();
    let least_ns = stolen_ns.iter().copied().min().unwrap_or(0);
    let whole = windows.into_iter().zip(&stolen_ns).filter(|(_, ns)| **ns == least_ns);
    let kept: Vec<Window<T>> = whole.map(|(window, _)| window).collect();
    agreement.stolen_ns += stolen_ns.iter().sum::<u64>();
    agreement.set_aside += all - kept.len();
    kept
}

/// Median time of each kind of turn; 0 for a kind that there is not.
fn usual_ns<T>(windows: &[Window<T>]) -> Vec<u32> {
    let mut of_kind: Vec<Vec<u32>> = vec![Vec::new(); 256];
    for (kind, ns) in windows.iter().flat_map(|window| &window.turns) {
        of_kind[usize::from(*kind)].push(*ns);
    }
    let median = |mut times: Vec<u32>| {
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or(0)
    };
    of_kind.into_iter().map(median).collect()
}

/// What a step took, ns, without the clock's own time.
struct Net {
    units: u64,
    ns: f64,
}

/// A row for each step that happened.
fn rows(samples: impl Iterator<Item = Sample>, clock_ns: f64) -> Vec<Row> {
    let mut by_slot: Vec<Vec<Net>> = (0..STEPS).map(|_| Vec::new()).collect();
    let mut last = None;
    for sample in samples {
        let (at, units, ns) =
            (usize::from(sample.slot), u64::from(sample.units), f64::from(sample.ns) - clock_ns);
        // An operation's changes are one sample, as a burst's packets are: the first of them finds a cold cache.
        let goes_on = last == Some(at) && step(at).0 == Step::Change;
        match by_slot[at].last_mut().filter(|_| goes_on) {
            Some(net) => {
                net.units += units;
                net.ns += ns;
            }
            None => by_slot[at].push(Net { units, ns }),
        }
        last = Some(at);
    }
    by_slot.iter().enumerate().filter_map(|(slot, samples)| row(slot, samples)).collect()
}

fn row(slot: usize, samples: &[Net]) -> Option<Row> {
    let units: u64 = samples.iter().map(|sample| sample.units).sum();
    if units == 0 {
        return None;
    }
    let total_ns: f64 = samples.iter().map(|sample| sample.ns).sum();
    let mut each: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.units != 0)
        .map(|sample| sample.ns.max(0.0) / sample.units as f64)
        .collect();
    each.sort_by(f64::total_cmp);
    let at = |share: f64| each[((each.len() - 1) as f64 * share).ceil() as usize];
    let (mark_ns, each_ns) = by_size(samples);
    let (step, again) = step(slot);
    Some(Row {
        step,
        again,
        mark_ns,
        each_ns,
        samples: samples.len(),
        units,
        mean_ns: (total_ns / units as f64).max(0.0),
        p50_ns: at(0.5),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
    })
}

/// What a step costs each time, and each unit of it: the straight line through its samples. The more units a sample has, the
/// more it may be off, so it counts for less. None below 0: then all is a unit's, or all a time's.
fn by_size(samples: &[Net]) -> (f64, f64) {
    let (mut weights, mut weighted_units, mut weighted_squares) = (0.0, 0.0, 0.0);
    let (mut weighted_ns, mut products) = (0.0, 0.0);
    let (mut units, mut ns) = (0.0, 0.0);
    for sample in samples {
        let size = sample.units as f64;
        let weight = 1.0 / size.max(1.0);
        weights += weight;
        weighted_units += weight * size;
        weighted_squares += weight * size * size;
        weighted_ns += weight * sample.ns;
        products += weight * size * sample.ns;
        units += size;
        ns += sample.ns;
    }
    let count = samples.len().max(1) as f64;
    let spread = weights * weighted_squares - weighted_units * weighted_units;
    // All of one size: a line through one point is any.
    if spread <= 1e-9 * weights * weighted_squares {
        return (0.0, (ns / f64::max(units, 1.0)).max(0.0));
    }
    let each_ns = (weights * products - weighted_units * weighted_ns) / spread;
    let mark_ns = (weighted_ns - each_ns * weighted_units) / weights;
    match () {
        () if mark_ns < 0.0 => (0.0, (ns / f64::max(units, 1.0)).max(0.0)),
        () if each_ns < 0.0 => ((ns / count).max(0.0), 0.0),
        () => (mark_ns, each_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_and_a_unit_are_told_apart() {
        let net = |units: u64, ns: f64| Net { units, ns };
        let line: Vec<Net> = (0..64).map(|units| net(units, 20.0 + 3.0 * units as f64)).collect();
        let (mark, each) = by_size(&line);
        assert!((mark - 20.0).abs() < 1e-6 && (each - 3.0).abs() < 1e-6, "{mark} {each}");
        assert_eq!(by_size(&[net(4, 8.0), net(4, 16.0)]), (0.0, 3.0));
        assert_eq!(by_size(&[net(1, 0.0), net(2, 6.0), net(4, 24.0)]), (0.0, 30.0 / 7.0));
        assert_eq!(by_size(&[net(1, 9.0), net(8, 3.0)]), (6.0, 0.0));
        assert_eq!(by_size(&[]), (0.0, 0.0));
    }
}
