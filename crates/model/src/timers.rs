// SPDX-License-Identifier: Apache-2.0
//! Timers of entries. Each entry has at most one timer. A timer whose entry was removed is stale and is
//! skipped.

use flow::{EntryId, Nanos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of stale timers that are always tolerated. Above this number, at most half of all timers may be
/// stale.
const STALE_ALLOWED: usize = 1_024;

/// A deadline of the entry that had this ID and serial number when the timer was armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Timer {
    pub at: Nanos,
    pub serial: u64,
    pub id: EntryId,
}

/// A queue of timers, earliest deadline first.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Timer>>,
    stale: usize,
}

impl Timers {
    pub fn arm(&mut self, timer: Timer) {
        self.heap.push(Reverse(timer));
    }

    /// Returns the earliest deadline. The timer may be stale.
    pub fn next(&self) -> Option<Nanos> {
        self.heap.peek().map(|t| t.0.at)
    }

    /// Removes and returns the earliest timer if it is due.
    pub fn pop_due(&mut self, now: Nanos) -> Option<Timer> {
        if self.next()? > now {
            return None;
        }
        self.heap.pop().map(|t| t.0)
    }

    /// Records that a timer returned by `pop_due` belonged to a removed entry.
    pub fn was_stale(&mut self) {
        self.stale = self.stale.saturating_sub(1);
    }

    /// Records that an entry with an armed timer was removed.
    pub fn entry_gone(&mut self) {
        self.stale += 1;
    }

    /// Discards stale timers if there are too many.
    pub fn compact(&mut self, lives: impl Fn(&Timer) -> bool) {
        if self.stale > STALE_ALLOWED.max(self.heap.len() / 2) {
            self.heap.retain(|t| lives(&t.0));
            self.stale = 0;
        }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn due_timers_come_in_order_and_stale_timers_do_not_accumulate() {
        let mut timers = Timers::default();
        for n in 0..10_000_u64 {
            timers.arm(Timer { at: Nanos(20_000 - n), serial: n, id: EntryId(n as u32) });
        }
        assert_eq!(timers.pop_due(Nanos(10_000)), None);
        assert_eq!(timers.pop_due(Nanos(10_002)).map(|t| t.serial), Some(9_999));
        assert_eq!(timers.next(), Some(Nanos(10_002)));
        for _ in 0..6_000 {
            timers.entry_gone();
        }
        timers.compact(|t| t.serial < 4_000);
        assert_eq!(timers.len(), 4_000);
        assert_eq!(timers.next(), Some(Nanos(20_000 - 3_999)));
    }
}
