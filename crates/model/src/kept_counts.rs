// SPDX-License-Identifier: Apache-2.0
//! Counts of entries beyond their removal. An agent that adds up the counts of several entries needs the
//! final counts of each: packets may hit an entry until all workers have applied its removal.

use dataplane::TrafficCount;
use flow::EntryId;
use std::collections::{BTreeMap, HashSet};

/// Reference to one entry, which is never valid for another entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryRef {
    pub(crate) id: EntryId,
    pub(crate) serial: u64,
}

/// Entries whose final counts are kept.
#[derive(Debug, Default)]
pub(crate) struct KeptCounts {
    /// Entries whose final counts are requested and that are not released yet.
    requested: HashSet<EntryId>,
    /// Final counts of released entries that no agent has taken yet.
    released: BTreeMap<EntryRef, TrafficCount>,
}

impl KeptCounts {
    /// Requests the final counts of an entry that is in its table.
    pub fn request(&mut self, id: EntryId) {
        self.requested.insert(id);
    }

    /// Returns whether the final counts of an entry are requested.
    pub fn is_requested(&self, id: EntryId) -> bool {
        self.requested.contains(&id)
    }

    /// Keeps the final counts of an entry that is being released, if they are requested.
    pub fn release(&mut self, entry: EntryRef, last: TrafficCount) {
        if self.requested.remove(&entry.id) {
            self.released.insert(entry, last);
        }
    }

    /// Returns the final counts of a released entry, if they are kept.
    pub fn of_released(&self, entry: EntryRef) -> Option<TrafficCount> {
        self.released.get(&entry).copied()
    }

    /// Takes the final counts of a released entry, if any are kept.
    pub fn take(&mut self) -> Option<(EntryRef, TrafficCount)> {
        self.released.pop_first()
    }
}
