// SPDX-License-Identifier: Apache-2.0
//! Probe of a worker, which assigns real time to steps, or counts steps and advances virtual time.

use crate::cost::slots::{Course, STEPS};
use flow::{Nanos, RuleVersion};
use pipeline::{Probe, ProbeStep};
use std::time::Instant;

/// Start of virtual time as the worker sees it, in nanoseconds; 0 would mean that no time is set.
const VIRTUAL_START_NS: Nanos = Nanos(1);

/// A measured occurrence of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub slot: u16,
    pub units: u32,
    pub ns: u32,
}

/// Counts of each step, indexed by slot.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Number of occurrences of each step.
    pub marks: Box<[u64]>,
    /// Sum of the units of each step.
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

/// Costs of each step, indexed by slot: per occurrence and per unit, in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    pub mark_ns: Box<[f64]>,
    pub unit_ns: Box<[f64]>,
}

impl Rates {
    /// Returns rates of 0 for all steps.
    pub fn none() -> Self {
        let none = vec![0.0; STEPS].into_boxed_slice();
        Self { mark_ns: none.clone(), unit_ns: none }
    }

    /// Returns the total cost of the counted steps in nanoseconds.
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
    /// Records the real time of each step.
    Measuring(Vec<Sample>),
    /// Counts the units of each step.
    Counting(Counts),
    /// Advances virtual time by these costs.
    Virtual {
        rates: Rates,
        elapsed_ns: f64,
        counts: Counts,
    },
}

/// Probe of one worker. The code that drives the worker calls [`CostProbe::begin`] before and
/// [`CostProbe::end`] after each poll iteration; time outside is not assigned to any step.
#[derive(Debug)]
pub struct CostProbe {
    mode: Mode,
    course: Course,
    last: Instant,
    /// Index of the sample of the poll iteration itself.
    turn_sample: usize,
    packets: u64,
    applied: Option<(RuleVersion, u64)>,
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
    /// Starts a poll iteration at time `now`.
    #[inline]
    pub fn begin(&mut self, now: Instant) {
        self.last = now;
    }

    /// Ends a poll iteration. The time since the last step is assigned to the iteration itself.
    #[inline]
    pub fn end(&mut self) {
        if let Mode::Measuring(samples) = &mut self.mode
            && let Some(turn) = samples.get_mut(self.turn_sample)
        {
            turn.ns = turn.ns.saturating_add(ns_between(self.last, Instant::now()));
        }
    }

    /// Returns the number of packets processed so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the version applied last, and the number of packets processed before it was applied.
    #[must_use]
    pub fn applied(&self) -> Option<(RuleVersion, u64)> {
        self.applied
    }

    /// Pauses or resumes measurement. Work between poll iterations is not measured.
    pub(super) fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Stops measurement.
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

    /// Starts virtual time with these costs.
    pub(super) fn start_virtual(&mut self, rates: Rates) {
        self.mode = Mode::Virtual { rates, elapsed_ns: 0.0, counts: Counts::none() };
    }

    /// Advances virtual time by `span_ns` nanoseconds during which the worker does nothing.
    pub fn pass(&mut self, span_ns: f64) {
        if let Mode::Virtual { elapsed_ns, .. } = &mut self.mode {
            *elapsed_ns += span_ns;
        }
    }

    /// Returns the virtual time since the call of [`super::CostTable::drive`], in nanoseconds.
    #[must_use]
    pub fn virtual_ns(&self) -> f64 {
        match &self.mode {
            Mode::Virtual { elapsed_ns, .. } => *elapsed_ns,
            _ => 0.0,
        }
    }
}

impl Probe for CostProbe {
    /// In production, no instrument listens. If this one did, sending packets with a path record would cost
    /// more while it is measured, because the path's entries are read for instruments.
    const LISTENS: bool = false;

    #[inline]
    fn mark(&mut self, step: ProbeStep, units: u32) {
        if matches!(step, ProbeStep::Admit | ProbeStep::Stateless | ProbeStep::Leave) {
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
                // If the list is full, no more samples are taken, because nothing may be allocated while time
                // is measured.
                if samples.len() < samples.capacity() {
                    if step == ProbeStep::Turn {
                        self.turn_sample = samples.len();
                    }
                    samples.push(Sample { slot: slot as u16, units, ns });
                }
                // The time for recording the sample is not assigned to any step.
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
        matches!(self.mode, Mode::Virtual { .. }).then(|| VIRTUAL_START_NS + Nanos(self.virtual_ns() as u64))
    }

    fn applied(&mut self, version: RuleVersion) {
        self.applied = Some((version, self.packets));
    }
}
