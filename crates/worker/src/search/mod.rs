// SPDX-License-Identifier: Apache-2.0
//! Searches of the port cache on another core.
//!
//! A worker sends the first packet of each unknown flow to the search worker, by value
//! (`link.rs`). The search worker has tables of its own, which the control thread updates like those of any
//! worker (`worker.rs`). It finds the packet's path through the tables and returns the path with the version
//! of the rules. If the first worker has the same version, it makes a path record; the packet itself is
//! forwarded only there. Otherwise the packet is looked up in the first worker's own tables.
//!
//! While the search worker does not answer, the first worker looks up packets itself.

mod delay;
mod link;
mod worker;

pub(crate) use link::{SearchLink, links};
pub use worker::{SearchTurn, SearchWorker};

use flow::{Nanos, RuleVersion};
use keys::FoundPath;
use port_cache::Ticket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Answer to a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub ticket: Ticket,
    /// Version of the rules under which the path was found.
    pub version: RuleVersion,
    /// The path, or `None` if the packet reaches no table.
    pub found: Option<FoundPath>,
}

/// State that the search worker shares with other threads.
#[derive(Debug, Default)]
pub(crate) struct SearchState {
    /// Number of times that the search worker has held searches back, which it does in virtual time only.
    pauses: AtomicU64,
    /// Whether the search worker must not answer any longer, because it lacks updates.
    is_closed: AtomicBool,
}

impl SearchState {
    pub fn pauses(&self) -> u64 {
        self.pauses.load(Relaxed)
    }

    /// Notes that searches are held back. Only the search worker calls this.
    pub fn pause(&self) {
        self.pauses.store(self.pauses.load(Relaxed).wrapping_add(1), Relaxed);
    }

    pub fn close(&self) {
        self.is_closed.store(true, Relaxed);
    }

    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }
}

/// Measures for how long another thread has not advanced although work waits for it.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// The last number by which the thread shows that it advances.
    seen: u64,
    last: Nanos,
    silent_ns: Nanos,
}

impl Watch {
    /// Returns the time for which `seen` has not changed while work waits. At most `step_ns` of it passes
    /// between two calls, so that a stop of the whole process does not count.
    pub fn silent_ns(&mut self, seen: u64, is_waiting: bool, now: Nanos, step_ns: Nanos) -> Nanos {
        let step_ns = now.saturating_sub(self.last).min(step_ns);
        let advances = std::mem::replace(&mut self.seen, seen) != seen;
        self.last = now;
        self.silent_ns = if advances || !is_waiting { Nanos(0) } else { self.silent_ns + step_ns };
        self.silent_ns
    }
}

/// Closes the search worker when it is dropped, so that the end of its thread is noticed at once.
#[derive(Debug)]
pub struct SearchEnd(Arc<SearchState>);

impl Drop for SearchEnd {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_thread_with_work_that_does_not_advance_is_silent() {
        let mut watch = Watch::default();
        let mut silent = |seen, is_waiting, now| watch.silent_ns(seen, is_waiting, Nanos(now), Nanos(10)).0;
        assert_eq!([silent(3, true, 100), silent(3, true, 101), silent(3, true, 105)], [0, 1, 5]);
        assert_eq!(silent(3, true, 1_000_000), 15, "the process may have been stopped");
        assert_eq!([silent(3, false, 1_000_001), silent(3, true, 1_000_003)], [0, 2]);
        assert_eq!([silent(4, true, 1_000_004), silent(4, true, 1_000_004)], [0, 0]);
    }
}
