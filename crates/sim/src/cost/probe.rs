// SPDX-License-Identifier: Apache-2.0
//! The instrument in a worker: charges real time to steps, or counts steps and lets virtual time pass.

use crate::cost::slots::{STEPS, slot};
use pipeline::{Probe, Step};
use std::sync::Arc;
use std::time::Instant;

/// One step as it happened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub slot: u16,
    pub units: u32,
    pub ns: u32,
}

#[derive(Debug)]
enum Mode {
    Off,
    /// Each step's real time.
    Measuring(Vec<Sample>),
    /// How many units of each step.
    Counting(Box<[u64]>),
    /// Virtual time by these costs of a unit.
    Virtual {
        costs_ns: Arc<[f64]>,
        elapsed_ns: f64,
        units: Box<[u64]>,
    },
}

/// Listens to one worker. Whoever drives the worker calls [`CostProbe::begin`] before a turn and [`CostProbe::end`]
/// after it, so that time between turns is nobody's.
#[derive(Debug)]
pub struct CostProbe {
    mode: Mode,
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
        self.mode = Mode::Counting(vec![0; STEPS].into_boxed_slice());
    }

    pub(super) fn take_units(&mut self) -> Box<[u64]> {
        match std::mem::replace(&mut self.mode, Mode::Off) {
            Mode::Counting(units) | Mode::Virtual { units, .. } => units,
            _ => Box::default(),
        }
    }

    /// Lets virtual time pass from now on, by the cost of a unit of each step in ns.
    pub(super) fn start_virtual(&mut self, costs_ns: Arc<[f64]>) {
        self.mode = Mode::Virtual { costs_ns, elapsed_ns: 0.0, units: vec![0; STEPS].into_boxed_slice() };
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
        if step == Step::Admit {
            self.packets += u64::from(units);
        }
        match &mut self.mode {
            _ if self.paused => {}
            Mode::Off => {}
            Mode::Measuring(samples) => {
                let ns = ns_between(self.last, Instant::now());
                // A full list keeps what it has: nothing is allocated while time is measured.
                if samples.len() < samples.capacity() {
                    if step == Step::Turn {
                        self.turn_sample = samples.len();
                    }
                    samples.push(Sample { slot: slot(step) as u16, units, ns });
                }
                // What was written down is nobody's time.
                self.last = Instant::now();
            }
            Mode::Counting(counts) => counts[slot(step)] += u64::from(units),
            Mode::Virtual { costs_ns, elapsed_ns, units: counts } => {
                counts[slot(step)] += u64::from(units);
                *elapsed_ns += costs_ns[slot(step)] * f64::from(units);
            }
        }
    }

    fn applied(&mut self, version: u64) {
        self.applied = Some((version, self.packets));
    }
}
