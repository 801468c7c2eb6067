// SPDX-License-Identifier: Apache-2.0
//! What listens to single bursts, beside the worker's own probe: a burst that nothing here wants to hear is forwarded by
//! code that knows nothing of it.

use crate::stopwatch::Stopwatch;
use flow::{EntryId, Outcome};
use frame::Frame;
use pipeline::{By, Leaving, Level, Probe, RECORDER, Recorder, Step, Tally};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A worker's instruments for single bursts.
#[derive(Debug)]
pub(crate) struct Aside {
    stopwatch: Option<Stopwatch>,
    /// Whether the burst is timed.
    times: bool,
    /// For traces of real packets.
    pub recorder: Option<Box<Recorder>>,
    /// Whether the burst is recorded.
    records: bool,
}

impl Aside {
    pub fn new(stopwatch: Option<Stopwatch>) -> Self {
        Self { stopwatch, times: false, recorder: None, records: false }
    }

    /// Whether something listens to the burst that is forwarded next, judged by the version that `applied` tells. Asked
    /// once a burst.
    #[inline]
    pub fn listens(&mut self, applied: &AtomicU64) -> bool {
        let times = self.stopwatch.as_mut().is_some_and(Stopwatch::is_due);
        self.records_next(applied);
        self.times = times;
        times || self.records
    }

    /// The same for packets that have waited, which are not timed: were they counted with received bursts, it could be
    /// always the turn of one kind.
    #[inline]
    pub fn records_next(&mut self, applied: &AtomicU64) -> bool {
        self.times = false;
        self.records = self.recorder.is_some() && self.records(applied);
        self.records
    }

    #[inline(never)]
    fn records(&mut self, applied: &AtomicU64) -> bool {
        self.recorder.as_mut().is_some_and(|recorder| recorder.listens(applied.load(Relaxed)))
    }

    /// Packets that are recorded now, and how many may be.
    pub fn level(&self) -> Level {
        self.recorder.as_ref().map_or(Level::of(RECORDER, 0, 0), |recorder| recorder.level())
    }

    /// The recorder, if it listens to this burst.
    fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut().filter(|_| self.records)
    }
}

impl Probe for Aside {
    fn compares(&self) -> bool {
        // A burst that is only recorded would be looked up twice for nothing.
        self.times && !self.records && self.stopwatch.as_ref().is_some_and(Stopwatch::compares)
    }

    fn mark(&mut self, step: Step, units: u32) {
        // What a recorder takes is no step of the worker's.
        if let Some(stopwatch) = self.stopwatch.as_mut().filter(|_| self.times && !self.records) {
            stopwatch.mark(step, units);
        }
    }

    fn arrives(&mut self, slot: usize, frame: &Frame) {
        if let Some(recorder) = self.recorder() {
            recorder.arrives(slot, frame);
        }
    }

    fn looked_up(&mut self, slot: usize, table: u8, by: By, entry: EntryId, bytes: usize) {
        if let Some(recorder) = self.recorder() {
            recorder.looked_up(slot, table, by, entry, bytes);
        }
    }

    fn lut_missed(&mut self, slot: usize, table: u8) {
        if let Some(recorder) = self.recorder() {
            recorder.lut_missed(slot, table);
        }
    }

    fn leaving(&mut self, slot: usize, leaving: &Leaving<'_>) {
        if let Some(recorder) = self.recorder() {
            recorder.leaving(slot, leaving);
        }
    }

    fn left(&mut self, slot: usize, outcome: Outcome, fast: bool, tally: &Tally) {
        if let Some(recorder) = self.recorder() {
            recorder.left(slot, outcome, fast, tally);
        }
    }
}
