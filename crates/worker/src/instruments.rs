// SPDX-License-Identifier: Apache-2.0
//! Instruments for selected bursts: the stopwatch and the trace recorder. Other bursts run a copy of
//! `forward` that is compiled without them.

use crate::stopwatch::Stopwatch;
use dataplane::{BurstCounters, CacheWait, FoundBy, Usage};
use flow::{EntryId, Outcome, RuleVersion, TableId};
use frame::Frame;
use pipeline::{Leaving, PacketSlot, Probe, ProbeStep, RECORDER, Recorder, Via};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A worker's instruments for selected bursts.
#[derive(Debug)]
pub(crate) struct BurstInstruments {
    stopwatch: Option<Stopwatch>,
    /// Whether the current burst is timed.
    times: bool,
    /// Recorder for traces of real packets.
    pub recorder: Option<Box<Recorder>>,
    /// Whether the current burst is recorded.
    records: bool,
}

impl BurstInstruments {
    pub fn new(stopwatch: Option<Stopwatch>) -> Self {
        Self { stopwatch, times: false, recorder: None, records: false }
    }

    /// Returns whether an instrument needs the next burst. `applied` has the version of the rules. Called
    /// once per received burst.
    #[inline]
    pub fn listens(&mut self, applied: &AtomicU64) -> bool {
        let times = self.stopwatch.as_mut().is_some_and(Stopwatch::is_due);
        self.records_next(applied);
        self.times = times;
        times || self.records
    }

    /// Like `listens`, but for bursts from the backlog and from the port cache, which the stopwatch neither
    /// times nor counts.
    #[inline]
    pub fn records_next(&mut self, applied: &AtomicU64) -> bool {
        self.times = false;
        self.records = self.recorder.is_some() && self.records(applied);
        self.records
    }

    #[inline(never)]
    fn records(&mut self, applied: &AtomicU64) -> bool {
        self.recorder.as_mut().is_some_and(|recorder| recorder.listens(RuleVersion(applied.load(Relaxed))))
    }

    /// Returns the number of packets being recorded, and its limit.
    pub fn usage(&self) -> Usage {
        self.recorder.as_ref().map_or(Usage::of(RECORDER, 0, 0), |recorder| recorder.usage())
    }

    /// Returns the recorder if it needs the current burst.
    fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut().filter(|_| self.records)
    }
}

impl Probe for BurstInstruments {
    fn compares(&self) -> bool {
        // The recorder does not need the comparison of table and LUT, which costs a second lookup.
        self.times && !self.records && self.stopwatch.as_ref().is_some_and(Stopwatch::compares)
    }

    fn mark(&mut self, step: ProbeStep, units: u32) {
        // The time that the recorder takes must not count as part of the worker's steps.
        if let Some(stopwatch) = self.stopwatch.as_mut().filter(|_| self.times && !self.records) {
            stopwatch.mark(step, units);
        }
    }

    fn arrives(&mut self, slot: PacketSlot, frame: &Frame) {
        if let Some(recorder) = self.recorder() {
            recorder.arrives(slot, frame);
        }
    }

    fn looked_up(&mut self, slot: PacketSlot, table: TableId, by: FoundBy, entry: EntryId, bytes: usize) {
        if let Some(recorder) = self.recorder() {
            recorder.looked_up(slot, table, by, entry, bytes);
        }
    }

    fn released(&mut self, waited: Option<CacheWait>) {
        if let Some(recorder) = self.recorder() {
            recorder.released(waited);
        }
    }

    fn returned(&mut self, slot: PacketSlot) {
        if let Some(recorder) = self.recorder() {
            recorder.returned(slot);
        }
    }

    fn lut_missed(&mut self, slot: PacketSlot, table: TableId) {
        if let Some(recorder) = self.recorder() {
            recorder.lut_missed(slot, table);
        }
    }

    fn leaving(&mut self, slot: PacketSlot, leaving: &Leaving<'_>) {
        if let Some(recorder) = self.recorder() {
            recorder.leaving(slot, leaving);
        }
    }

    fn left(&mut self, slot: PacketSlot, outcome: Outcome, via: Via, burst_counters: &BurstCounters) {
        if let Some(recorder) = self.recorder() {
            recorder.left(slot, outcome, via, burst_counters);
        }
    }
}
