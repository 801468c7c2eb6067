// SPDX-License-Identifier: Apache-2.0
//! The instrument in a worker: charges real time to steps, or counts steps and lets virtual time pass.

use crate::cost::slots::{Course, STEPS};
use flow::Nanos;
use pipeline::{Probe, Step};
use std::time::Instant;

/// Virtual time begins here as a worker sees it: 0 is no time.
const VIRTUAL_START_NS: Nanos = 1;

/// One step as it happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub slot: u16,
    pub units: u32,
    pub ns: u32,
}

/// What was counted, by places of steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// How often each step happened.
    pub marks: Box<[u64]>,
    /// How many units it had in all.
    pub units: Box<[u64]>,
}

impl Counts {
    fn none() -> Self {
        let none = vec![0; STEPS].into_boxed_slice();
        Self { marks: none.clone(), units: none }
    }

    #[inline]
    fn add(&mut self, slot: usize, units: u32) {
        self.marks[slot] += 1;
        self.units[slot] += u64::from(units);
    }
}

/// What steps cost, by their places: so much each time, and so much a unit, ns.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    pub mark_ns: Box<[f64]>,
    pub unit_ns: Box<[f64]>,
}

impl Rates {
    /// By which nothing costs anything.
    pub fn none() -> Self {
        let none = vec![0.0; STEPS].into_boxed_slice();
        Self { mark_ns: none.clone(), unit_ns: none }
    }

    /// What was counted costs so much, ns.
    pub fn total_ns(&self, counts: &Counts) -> f64 {
        let sum = |counts: &[u64], costs: &[f64]| -> f64 {
            counts.iter().zip(costs).map(|(count, cost)| *count as f64 * cost).sum()
        };
        sum(&counts.marks, &self.mark_ns) + sum(&counts.units, &self.unit_ns)
    }
}

#[derive(Debug)]
enum Mode {
    Off,
    /// Each step's real time.
    Measuring(Vec<Sample>),
    /// How many units of each step.
    Counting(Counts),
    /// Virtual time by these costs.
    Virtual {
        rates: Rates,
        elapsed_ns: f64,
        counts: Counts,
    },
}

/// Listens to one worker. Whoever drives the worker calls [`CostProbe::begin`] before a turn and [`CostProbe::end`]
/// after it, so that time between turns is nobody's.
#[derive(Debug)]
pub struct CostProbe {
    mode: Mode,
    course: Course,
    last: Instant,
    /// Place of the turn's own sample.
    turn_sample: usize,
    packets: u64,
    applied: Option<(u64, u64)>,
    paused: bool,
}

impl Default for CostProbe {
    fn default() -> Self {
        Self {
            mode: Mode::Off,
            course: Course::default(),
            last: Instant::now(),
            turn_sample: 0,
            packets: 0,
            applied: None,
            paused: false,
        }
    }
}

fn ns_between(earlier: Instant, later: Instant) -> u32 {
    u32::try_from(later.saturating_duration_since(earlier).as_nanos()).unwrap_or(u32::MAX)
}

impl CostProbe {
    /// A turn begins, at this time.
    #[inline]
    pub fn begin(&mut self, now: Instant) {
        self.last = now;
    }

    /// The turn has ended: what was not told since the last step is the turn's own.
    #[inline]
    pub fn end(&mut self) {
        if let Mode::Measuring(samples) = &mut self.mode
            && let Some(turn) = samples.get_mut(self.turn_sample)
        {
            turn.ns = turn.ns.saturating_add(ns_between(self.last, Instant::now()));
        }
    }

    /// Packets judged so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The version applied last, and how many packets had been judged before it.
    #[must_use]
    pub fn applied(&self) -> Option<(u64, u64)> {
        self.applied
    }

    /// Does not listen for a while, or does again: between turns the worker does what is not to be measured.
    pub(super) fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Listens no more.
    pub fn off(&mut self) {
        self.mode = Mode::Off;
    }

    pub(super) fn start_measuring(&mut self, samples: usize) {
        self.mode = Mode::Measuring(Vec::with_capacity(samples));
    }

    pub(super) fn take_samples(&mut self) -> Vec<Sample> {
        match std::mem::replace(&mut self.mode, Mode::Off) {
            Mode::Measuring(samples) => samples,
            _ => Vec::new(),
        }
    }

    pub(super) fn start_counting(&mut self) {
        self.mode = Mode::Counting(Counts::none());
    }

    pub(super) fn take_counts(&mut self) -> Counts {
        match std::mem::replace(&mut self.mode, Mode::Off) {
            Mode::Counting(counts) | Mode::Virtual { counts, .. } => counts,
            _ => Counts::none(),
        }
    }

    /// Lets virtual time pass from now on, by these costs.
    pub(super) fn start_virtual(&mut self, rates: Rates) {
        self.mode = Mode::Virtual { rates, elapsed_ns: 0.0, counts: Counts::none() };
    }

    /// Lets virtual time pass in which the worker does nothing, ns.
    pub fn pass(&mut self, span_ns: f64) {
        if let Mode::Virtual { elapsed_ns, .. } = &mut self.mode {
            *elapsed_ns += span_ns;
        }
    }

    /// Virtual time since [`super::CostTable::drive`], ns.
    #[must_use]
    pub fn virtual_ns(&self) -> f64 {
        match &self.mode {
            Mode::Virtual { elapsed_ns, .. } => *elapsed_ns,
            _ => 0.0,
        }
    }
}

impl Probe for CostProbe {
    #[inline]
    fn mark(&mut self, step: Step, units: u32) {
        if matches!(step, Step::Admit | Step::Stateless) {
            self.packets += u64::from(units);
        }
        if self.paused || matches!(self.mode, Mode::Off) {
            return;
        }
        let now = if matches!(self.mode, Mode::Measuring(_)) { Instant::now() } else { self.last };
        let (slot, units) = self.course.follow(step, units);
        match &mut self.mode {
            Mode::Off => {}
            Mode::Measuring(samples) => {
                let ns = ns_between(self.last, now);
                // A full list keeps what it has: nothing is allocated while time is measured.
                if samples.len() < samples.capacity() {
                    if step == Step::Turn {
                        self.turn_sample = samples.len();
                    }
                    samples.push(Sample { slot: slot as u16, units, ns });
                }
                // What was written down is nobody's time.
                self.last = Instant::now();
            }
            Mode::Counting(counts) => counts.add(slot, units),
            Mode::Virtual { rates, elapsed_ns, counts } => {
                counts.add(slot, units);
                *elapsed_ns += rates.mark_ns[slot] + rates.unit_ns[slot] * f64::from(units);
            }
        }
    }

    fn time_ns(&self) -> Option<Nanos> {
        matches!(self.mode, Mode::Virtual { .. }).then(|| VIRTUAL_START_NS + self.virtual_ns() as Nanos)
    }

    fn applied(&mut self, version: u64) {
        self.applied = Some((version, self.packets));
    }
}
