// SPDX-License-Identifier: Apache-2.0
//! Recording of real packets for traces: installs the workers' recorders and collects their records.

use crate::link::Links;
use dataplane::TraceRecord;
use flow::{Match, Nanos, PacketFilter};
use pipeline::{Recorder, Update};
use rtrb::{Consumer, RingBuffer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Capacity of the ring for records from each worker.
const RECORDS: usize = 256;

/// The control thread's end of one worker's recorder.
#[derive(Debug)]
struct WorkerRecords {
    ring: Consumer<TraceRecord>,
    /// Number of records lost because the ring was full.
    lost: Arc<AtomicU64>,
}

/// The control thread's side of recordings. At most one is active.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Receiving ends of all workers' recorders. The list is empty if no recording is active.
    workers: Vec<WorkerRecords>,
    /// Worker whose records are taken next.
    next: usize,
    /// Clock for the timestamps of recorded packets.
    clock: Option<fn() -> Nanos>,
}

impl Recording {
    pub fn new(clock: Option<fn() -> Nanos>) -> Self {
        Self { workers: Vec::new(), next: 0, clock }
    }

    /// Returns whether a recording is active.
    pub fn is_active(&self) -> bool {
        !self.workers.is_empty()
    }

    /// Makes every worker record the next `count` packets that match on receive. Returns false and changes
    /// nothing if a recording is already active.
    pub fn start(&mut self, matching: &Match, count: u64, links: &mut Links) -> bool {
        if self.is_active() {
            return false;
        }
        let filter = PacketFilter::compile(matching);
        for worker in 0..links.len() {
            let (ring, records) = RingBuffer::new(RECORDS);
            let lost = Arc::new(AtomicU64::new(0));
            self.workers.push(WorkerRecords { ring: records, lost: Arc::clone(&lost) });
            let recorder = Recorder::new(worker as u16, filter.clone(), count, ring, lost, self.clock);
            arm(links, worker, Some(Box::new(recorder)));
        }
        self.next = 0;
        true
    }

    /// Ends the active recording, if any, and discards records that were not taken. Returns whether a
    /// recording was active.
    pub fn stop(&mut self, links: &mut Links) -> bool {
        let was_active = self.is_active();
        (0..self.workers.len()).for_each(|worker| arm(links, worker, None));
        self.workers.clear();
        was_active
    }

    /// Takes the next record of the active recording, or `None` if there is none.
    pub fn next_record(&mut self) -> Option<TraceRecord> {
        for _ in 0..self.workers.len() {
            let at = self.next;
            self.next = (at + 1) % self.workers.len();
            if let Ok(record) = self.workers[at].ring.pop() {
                return Some(record);
            }
        }
        None
    }

    /// Returns the number of records lost because a ring was full.
    pub fn lost(&self) -> u64 {
        self.workers.iter().map(|worker| worker.lost.load(Relaxed)).sum()
    }
}

/// Installs or removes a worker's recorder. The version does not change, because the rules do not change.
fn arm(links: &mut Links, worker: usize, recorder: Option<Box<Recorder>>) {
    links.park(worker, vec![Update::Record(recorder)]);
}
