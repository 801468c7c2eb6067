// SPDX-License-Identifier: Apache-2.0
//! The control thread's end of the store. It queues changes and never waits for the disk.

use crate::Durability;
use crate::pages::SequencePage;
use crate::status::StoreCounters;
use flow::{Nanos, RuleVersion};
use model::{Journal, KeptChange, StatePart, StateRequest};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// Maximum number of values in the queue. A transaction that alone has more is accepted if the queue is
/// empty.
const QUEUE_MAX: usize = 1 << 20;
/// Number of values in the queue above which no further part of the state is reported.
const STATE_QUEUE_MAX: usize = 32_768;
/// Maximum number of entries in a part of the state.
const PART_ENTRIES: usize = 1_024;

/// A message to the thread that writes the store.
#[derive(Debug)]
pub enum WriterTask {
    /// A transaction.
    Change { sequence: u64, now: Nanos, changes: Vec<KeptChange> },
    /// A part of the state, and the number of the last transaction before the part.
    State { sequence: u64, now: Nanos, part: StatePart },
}

/// The journal of a datapath.
#[derive(Debug)]
pub struct StoreJournal {
    pub(crate) work: Sender<WriterTask>,
    pub(crate) counters: Arc<StoreCounters>,
    pub(crate) page: Option<SequencePage>,
    pub(crate) durability: Durability,
    /// Number of the last transaction.
    pub(crate) sequence: u64,
    /// Versions of transactions that are not kept yet, for barriers that wait for the disk.
    pub(crate) unkept: VecDeque<(RuleVersion, u64)>,
}

impl Journal for StoreJournal {
    fn record(&mut self, now: Nanos, version: RuleVersion, changes: Vec<KeptChange>) {
        self.sequence += 1;
        let sequence = self.sequence;
        if let Some(page) = &mut self.page {
            page.set(sequence);
        }
        self.counters.recorded.store(sequence, Ordering::Release);
        if self.durability == Durability::Barrier {
            self.unkept.push_back((version, sequence));
            self.forget_kept();
        }
        let queued = self.counters.queued.load(Ordering::Relaxed);
        if queued > 0 && queued.saturating_add(changes.len()) > QUEUE_MAX {
            // The writing thread finds the gap in the numbers, and asks for the whole state.
            self.counters.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.counters.queued.fetch_add(changes.len(), Ordering::Relaxed);
        // If the writing thread has ended, the store is no longer written, which its thread has logged.
        let _ = self.work.send(WriterTask::Change { sequence, now, changes });
    }

    fn is_kept(&mut self, version: RuleVersion) -> bool {
        self.forget_kept();
        self.unkept.front().is_none_or(|(unkept, _)| *unkept > version)
    }

    fn state_request(&mut self) -> Option<StateRequest> {
        let number = self.counters.requested.load(Ordering::Acquire);
        let space = STATE_QUEUE_MAX.checked_sub(self.counters.queued.load(Ordering::Relaxed))?;
        (number != 0 && space > 0).then_some(StateRequest { number, entries: space.min(PART_ENTRIES) })
    }

    fn state(&mut self, now: Nanos, part: StatePart) {
        if part.is_last {
            let requested = &self.counters.requested;
            // A newer request stays.
            let _ = requested.compare_exchange(part.number, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
        self.counters.queued.fetch_add(part.changes.len(), Ordering::Relaxed);
        let _ = self.work.send(WriterTask::State { sequence: self.sequence, now, part });
    }
}

impl StoreJournal {
    fn forget_kept(&mut self) {
        let kept = self.counters.kept.load(Ordering::Acquire);
        while self.unkept.front().is_some_and(|(_, sequence)| *sequence <= kept) {
            self.unkept.pop_front();
        }
    }
}
