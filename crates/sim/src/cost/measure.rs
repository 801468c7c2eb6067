// SPDX-License-Identifier: Apache-2.0
//! Measurement of costs. Windows that assign real time to steps alternate with windows that are timed as a
//! whole.

use crate::cost::CostProbe;
use crate::cost::probe::{Counts, Sample};
use crate::cost::slots::{STEPS, step};
use crate::cost::table::{Agreement, CostTable, Row};
use flow::Nanos;
use pipeline::ProbeStep;
use std::time::Instant;
use worker::Worker;

/// Time in nanoseconds by which a poll iteration must exceed the usual time to count as preempted.
const STOLEN_NS: u32 = 2_000;
/// For long poll iterations, the excess that indicates preemption is the usual time divided by this number.
const STOLEN_PART: u32 = 2;
/// Number of windows before and after a window that determine its usual time.
const NEAR: usize = 4;
/// Maximum number of samples per poll iteration, averaged over a window.
const SAMPLES_PER_TURN: usize = 256;

/// Work of a worker while it is measured.
pub trait Workload {
    /// Lets packets arrive or submits operations before a poll iteration, which is not measured. Returns the
    /// kind of the iteration (0 to 255). Iterations of one kind take similar time.
    fn prepare(&mut self, turn: u64) -> u8;

    /// Returns the worker, and the current time for its next poll iteration.
    fn worker(&mut self) -> (&mut Worker<CostProbe>, Nanos);
}

/// Duration of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasurePlan {
    /// Number of windows that assign time to steps. The number of windows timed as a whole is the same.
    pub windows: usize,
    /// Poll iterations per window.
    pub turns: usize,
    /// Poll iterations before each window that are not measured. They bring the data of the workload back
    /// into the CPU caches, from which other workloads and the recording of samples have displaced it.
    pub lead: usize,
    /// Number of windows that are run first and not counted.
    pub warm_up: usize,
}

impl Default for MeasurePlan {
    fn default() -> Self {
        Self { windows: 400, turns: 64, lead: 0, warm_up: 20 }
    }
}

/// Source of the costs.
#[derive(Clone, Copy, Debug)]
pub enum CostSource {
    /// Costs measured before the run, with the same tables and sizes.
    Measured(MeasurePlan),
    /// The same cost for one unit of every step, in nanoseconds.
    Even(f64),
}

impl CostSource {
    /// Returns the costs of a workload. If they must be measured, runs the workload.
    pub fn of(self, workload: &mut impl Workload) -> CostTable {
        match self {
            Self::Measured(plan) => measure(workload, plan),
            Self::Even(unit_ns) => CostTable::even(unit_ns),
        }
    }
}

/// Kind of a poll iteration and its time in nanoseconds.
type TurnTime = (u8, u32);

struct Window<T> {
    turns: Vec<TurnTime>,
    found: T,
}

/// Measures the steps of a workload, and compares their sum with real time.
pub fn measure(workload: &mut impl Workload, plan: MeasurePlan) -> CostTable {
    let clock_ns = clock_cost_ns();
    let mut found = Found::default();
    for window in 0..plan.warm_up + plan.windows {
        found.take(workload, plan, window);
    }
    found.table(clock_ns)
}

/// Like [`measure`], for several workloads. Their windows alternate, so that disturbances affect all
/// workloads equally.
pub fn measure_all(workloads: &mut [impl Workload], plan: MeasurePlan) -> Vec<CostTable> {
    let clock_ns = clock_cost_ns();
    let mut all: Vec<Found> = workloads.iter().map(|_| Found::default()).collect();
    for window in 0..plan.warm_up + plan.windows {
        for (workload, found) in workloads.iter_mut().zip(&mut all) {
            found.take(workload, plan, window);
        }
    }
    all.into_iter().map(|found| found.table(clock_ns)).collect()
}

/// Windows collected for one workload.
#[derive(Default)]
struct Found {
    turn: u64,
    charged: Vec<Window<Vec<Sample>>>,
    timed: Vec<Window<Counts>>,
}

impl Found {
    /// Runs one window that assigns time to steps, and one window that is timed as a whole.
    fn take(&mut self, workload: &mut impl Workload, plan: MeasurePlan, window: usize) {
        run(workload, plan.lead, &mut self.turn);
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

/// Runs the poll iterations of one window.
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

/// Returns the cost of reading the clock in nanoseconds, from many readings.
fn clock_cost_ns() -> f64 {
    let mut spans: Vec<f64> = (0..20_001)
        .map(|_| {
            let start = Instant::now();
            Instant::now().saturating_duration_since(start).as_nanos() as f64
        })
        .collect();
    // Uses the mean of the middle half, because the resolution of the clock is too coarse for a median.
    spans.sort_by(f64::total_cmp);
    let middle = &spans[spans.len() / 4..spans.len() * 3 / 4];
    middle.iter().sum::<f64>() / middle.len() as f64
}

/// Keeps the windows in which no poll iteration took much longer than usual. The usual time is the time of
/// the same kind of iteration in nearby windows, because a workload may change slowly. If no window remains,
/// keeps the one with the least preemption.
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

/// Returns the median time of each kind of poll iteration, or 0 for a kind that did not occur.
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

/// A sample of a step in nanoseconds, without the time for reading the clock.
struct Net {
    units: u64,
    ns: f64,
}

/// Returns a row for each step that occurred.
fn rows(samples: impl Iterator<Item = Sample>, clock_ns: f64) -> Vec<Row> {
    let mut by_slot: Vec<Vec<Net>> = (0..STEPS).map(|_| Vec::new()).collect();
    let mut last = None;
    for sample in samples {
        let (at, units, ns) =
            (usize::from(sample.slot), u64::from(sample.units), f64::from(sample.ns) - clock_ns);
        // All changes of an operation form one sample, because only the first change finds a cold CPU cache.
        let goes_on = last == Some(at) && step(at).0 == ProbeStep::Change;
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

/// Fits a line through the samples of a step: a fixed cost per occurrence and a cost per unit. The error of a
/// sample grows with its units, so larger samples have less weight. If the fit makes a cost negative, that
/// cost is set to 0 and the other cost accounts for the whole time.
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
    // All samples have the same size, so the line is not determined.
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
    fn fixed_and_per_unit_times_are_separated() {
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
