// SPDX-License-Identifier: Apache-2.0
//! Counters. A counter adds up the hits of the entries that name it, the packets of the groups that name it,
//! and the packets of the action COUNTER, for which it has a group of its own.

use crate::config::COUNTERS_MAX;
use crate::refusal::PofRefusal;
use flow::{GroupId, TableId};
use pof::error;
use pof::value::PofCounterId;
use std::collections::{BTreeSet, HashMap};

/// Numbers of packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PofCounts {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl PofCounts {
    /// Returns the sum.
    pub fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }

    /// Returns the difference, or 0 if it would be negative.
    pub fn minus(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(other.packets),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// An entry that names a counter: its table and index.
pub type Place = (TableId, u32);

/// A counter.
#[derive(Debug, Default)]
pub struct Counter {
    /// Entries that name the counter.
    pub places: BTreeSet<Place>,
    /// Groups that name the counter, and the counter's own group.
    pub groups: BTreeSet<GroupId>,
    /// Whether COUNTER_MOD or the action COUNTER created the counter. It then outlives its entries.
    pub is_kept: bool,
    /// Counts of removed entries.
    pub retired: PofCounts,
    /// Counts when the counter was cleared.
    pub cleared: PofCounts,
}

/// All counters.
#[derive(Debug, Default)]
pub struct PofCounters(HashMap<PofCounterId, Counter>);

impl PofCounters {
    /// Returns a counter.
    pub fn get(&self, id: PofCounterId) -> Option<&Counter> {
        self.0.get(&id)
    }

    /// Returns a counter for changes.
    pub fn get_mut(&mut self, id: PofCounterId) -> Option<&mut Counter> {
        self.0.get_mut(&id)
    }

    /// Checks that there is space for a counter if it does not exist.
    ///
    /// # Errors
    /// Returns a refusal if there are too many counters.
    pub fn check_room(&self, id: PofCounterId) -> Result<(), PofRefusal> {
        if self.0.len() < COUNTERS_MAX || self.0.contains_key(&id) {
            return Ok(());
        }
        let problem = format!("there are {COUNTERS_MAX} counters, which is the maximum; delete some first");
        Err(PofRefusal::new(error::FLOW_MOD_BAD_COUNTER_ID, problem))
    }

    /// Returns a counter, and creates it if it does not exist.
    pub fn or_create(&mut self, id: PofCounterId) -> &mut Counter {
        self.0.entry(id).or_default()
    }

    /// Removes a counter.
    pub fn remove(&mut self, id: PofCounterId) -> Option<Counter> {
        self.0.remove(&id)
    }

    /// Ends the use of a counter by an entry with these counts. The counter is removed with its last user.
    pub fn entry_ends(&mut self, id: PofCounterId, place: Place, counts: PofCounts) {
        let Some(counter) = self.0.get_mut(&id) else { return };
        if counter.places.remove(&place) {
            counter.retired = counter.retired.plus(counts);
        }
        self.remove_if_unused(id);
    }

    /// Ends the use of a counter by a group.
    pub fn group_ends(&mut self, id: PofCounterId, group: GroupId) {
        if let Some(counter) = self.0.get_mut(&id) {
            counter.groups.remove(&group);
        }
        self.remove_if_unused(id);
    }

    fn remove_if_unused(&mut self, id: PofCounterId) {
        let is_unused = |c: &Counter| !c.is_kept && c.places.is_empty() && c.groups.is_empty();
        if self.0.get(&id).is_some_and(is_unused) {
            self.0.remove(&id);
        }
    }
}

/// Returns the refusal of a request for a counter that does not exist.
pub fn missing(id: PofCounterId) -> PofRefusal {
    PofRefusal::new(error::COUNTER_UNEXIST, format!("counter {} does not exist", id.0))
}
