// SPDX-License-Identifier: Apache-2.0
//! Recording of packets' ways, for traces of real packets: arms the workers, and takes what they recorded.

use crate::set::WorkerSet;
use flow::Match;
use pipeline::{Filter, Record, Recorder, Update, Updates};
use rtrb::{Consumer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Records on their way from a worker.
const RECORDS: usize = 256;

/// The control thread's ends of a recording.
#[derive(Debug)]
pub(crate) struct Recording {
    workers: Vec<(Consumer<Record>, Arc<AtomicU64>)>,
    next: usize,
}

impl WorkerSet {
    /// Makes every worker record the next `count` packets that match when they come in. False, and nothing is changed, if
    /// a recording is under way: there is one at a time.
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
        self.tend();
        true
    }

    /// Ends the recording, if there is one; what was not taken is forgotten.
    pub fn stop_recording(&mut self) {
        if self.recording.take().is_some() {
            (0..self.links.len()).for_each(|worker| self.arm(worker, None));
            self.tend();
        }
    }

    /// Whether a recording is under way.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        self.recording.is_some()
    }

    /// The next record.
    pub fn next_record(&mut self) -> Option<Record> {
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

    /// Packets of the recording that found no room for their record.
    #[must_use]
    pub fn records_lost(&self) -> u64 {
        let workers = self.recording.iter().flat_map(|recording| &recording.workers);
        workers.map(|(_, lost)| lost.load(Relaxed)).sum()
    }

    /// Gives a worker a recorder, or takes it from it. It is no change of the rules: it has no version of its own.
    fn arm(&mut self, worker: usize, recorder: Option<Box<Recorder>>) {
        let updates = Updates { version: self.version, parts: vec![Update::Record(recorder)] };
        self.links[worker].parked.push_back(Box::new(updates));
    }
}
