// SPDX-License-Identifier: Apache-2.0
//! Measuring: windows that charge real time to steps, and in turn with them windows that are timed as a whole.

use crate::cost::CostProbe;
use crate::cost::probe::Sample;
use crate::cost::slots::{STEPS, step};
use crate::cost::table::{Agreement, CostTable, Row};
use flow::Nanos;
use std::time::Instant;
use worker::Worker;

/// More than this above the usual time of a turn was stolen: a whole burst takes as long.
const STOLEN_NS: u32 = 2_000;
/// Samples that a turn gives at most, on average of a window.
const SAMPLES_PER_TURN: usize = 64;

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

/// A turn's kind and time, ns.
type TurnTime = (u8, u32);

struct Window<T> {
    turns: Vec<TurnTime>,
    found: T,
}

/// Measures the steps of a workload, and holds their sum against real time.
pub fn measure(workload: &mut impl Workload, plan: Plan) -> CostTable {
    let clock_ns = clock_cost_ns();
    let mut turn = 0;
    let (mut charged, mut timed) = (Vec::new(), Vec::new());
    for window in 0..plan.warm_up + plan.windows {
        workload.worker().0.probe().start_measuring(plan.turns * SAMPLES_PER_TURN);
        let turns = run(workload, plan.turns, &mut turn);
        let samples = workload.worker().0.probe().take_samples();
        workload.worker().0.probe().start_counting();
        let counted_turns = run(workload, plan.turns, &mut turn);
        let units = workload.worker().0.probe().take_units();
        if window >= plan.warm_up {
            charged.push(Window { turns, found: samples });
            timed.push(Window { turns: counted_turns, found: units });
        }
    }
    let mut agreement = Agreement::default();
    let charged = without_gaps(charged, &mut agreement);
    let timed = without_gaps(timed, &mut agreement);
    let samples = charged.iter().flat_map(|window| window.found.iter().copied());
    let mut table = CostTable::new(rows(samples, clock_ns));
    for window in &timed {
        agreement.virtual_ns += table.total_ns(&window.found);
        agreement.real_ns += window.turns.iter().map(|(_, ns)| f64::from(*ns) - clock_ns).sum::<f64>();
        agreement.windows += 1;
    }
    table.agreement = agreement;
    table
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

/// Leaves the windows in which no turn took much longer than is usual for its kind.
fn without_gaps<T>(windows: Vec<Window<T>>, agreement: &mut Agreement) -> Vec<Window<T>> {
    let mut of_kind: Vec<Vec<u32>> = vec![Vec::new(); 256];
    for (kind, ns) in windows.iter().flat_map(|window| &window.turns) {
        of_kind[usize::from(*kind)].push(*ns);
    }
    let usual_ns: Vec<u32> = of_kind
        .into_iter()
        .map(|mut times| {
            times.sort_unstable();
            times.get(times.len() / 2).copied().unwrap_or(0)
        })
        .collect();
    let all = windows.len();
    let kept: Vec<Window<T>> = windows
        .into_iter()
        .filter(|window| {
            let over = window.turns.iter().map(|(kind, ns)| ns.saturating_sub(usual_ns[usize::from(*kind)]));
            let stolen: u64 = over.filter(|ns| *ns > STOLEN_NS).map(u64::from).sum();
            agreement.stolen_ns += stolen;
            stolen == 0
        })
        .collect();
    agreement.set_aside += all - kept.len();
    kept
}

/// A row for each step that happened.
fn rows(samples: impl Iterator<Item = Sample>, clock_ns: f64) -> Vec<Row> {
    let mut by_slot: Vec<Vec<Sample>> = vec![Vec::new(); STEPS];
    for sample in samples {
        by_slot[usize::from(sample.slot)].push(sample);
    }
    by_slot.iter().enumerate().filter_map(|(slot, samples)| row(slot, samples, clock_ns)).collect()
}

fn row(slot: usize, samples: &[Sample], clock_ns: f64) -> Option<Row> {
    let units: u64 = samples.iter().map(|sample| u64::from(sample.units)).sum();
    if units == 0 {
        return None;
    }
    let total_ns: f64 = samples.iter().map(|sample| f64::from(sample.ns) - clock_ns).sum();
    let mut each: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.units != 0)
        .map(|sample| (f64::from(sample.ns) - clock_ns).max(0.0) / f64::from(sample.units))
        .collect();
    each.sort_by(f64::total_cmp);
    let at = |share: f64| each[((each.len() - 1) as f64 * share) as usize];
    Some(Row {
        step: step(slot),
        samples: samples.len(),
        units,
        mean_ns: (total_ns / units as f64).max(0.0),
        p50_ns: at(0.5),
        p99_ns: at(0.99),
    })
}
