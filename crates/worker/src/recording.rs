// SPDX-License-Identifier: Apache-2.0
//! Recording of real packets for traces: arms the workers and collects their records.

use crate::set::WorkerSet;
use dataplane::TraceRecord;
use flow::Match;
use pipeline::{Filter, Recorder, Update, Updates};
use rtrb::{Consumer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Capacity of the ring for records from each worker.
const RECORDS: usize = 256;

/// The control thread's side of a recording.
#[derive(Debug)]
pub(crate) struct Recording {
    workers: Vec<(Consumer<TraceRecord>, Arc<AtomicU64>)>,
    next: usize,
}

impl WorkerSet {
    /// Makes every worker record the next `count` packets that match on receive. Returns false, and changes
    /// nothing, if a recording is active already.
    pub fn record(&mut self, matching: &Match, count: u64) -> bool {
        if self.recording.is_some() {
            return false;
        }
        let filter = Filter::compile(matching);
        let mut workers = Vec::with_capacity(self.links.len());
        for worker in 0..self.links.len() {
            let (ring, records) = RingBuffer::new(RECORDS);
            let lost = Arc::new(AtomicU64::new(0));
            workers.push((records, Arc::clone(&lost)));
            let recorder = Recorder::new(worker as u16, filter.clone(), count, ring, lost, self.clock);
            self.arm(worker, Some(Box::new(recorder)));
        }
        self.recording = Some(Recording { workers, next: 0 });
        self.reclaim_and_flush();
        true
    }

    /// Ends the recording, if there is one, and discards the records not taken.
    pub fn stop_recording(&mut self) {
        if self.recording.take().is_some() {
            (0..self.links.len()).for_each(|worker| self.arm(worker, None));
            self.reclaim_and_flush();
        }
    }

    /// Returns whether a recording is active.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// Takes the next record.
    pub fn next_record(&mut self) -> Option<TraceRecord> {
        let recording = self.recording.as_mut()?;
        for _ in 0..recording.workers.len() {
            let at = recording.next;
            recording.next = (at + 1) % recording.workers.len();
            if let Ok(record) = recording.workers[at].0.pop() {
                return Some(record);
            }
        }
        None
    }

    /// Returns the number of recorded packets whose record was lost because the ring was full.
    #[must_use]
    pub fn records_lost(&self) -> u64 {
        let workers = self.recording.iter().flat_map(|recording| &recording.workers);
        workers.map(|(_, lost)| lost.load(Relaxed)).sum()
    }

    /// Installs or removes a worker's recorder. The version does not change, because the rules do not.
    fn arm(&mut self, worker: usize, recorder: Option<Box<Recorder>>) {
        let updates = Updates { version: self.version, parts: vec![Update::Record(recorder)] };
        self.links[worker].parked.push_back(Box::new(updates));
    }
}
