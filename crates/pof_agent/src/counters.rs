// SPDX-License-Identifier: Apache-2.0
//! Counters. A counter adds up the hits of the entries that name it, the packets of the groups that name it,
//! and the packets of the action COUNTER.
//!
//! The packets of the action COUNTER are those of a group that the switch has for the counter. A removed
//! entry counts until the data plane has released it. Only then are its final counts known.

use crate::config::COUNTERS_MAX;
use crate::refusal::PofRefusal;
use dataplane::TrafficCount;
use flow::GroupId;
use model::EntryRef;
use pof::error;
use pof::value::PofCounterId;
use std::collections::{BTreeMap, HashMap};

/// Numbers of packets and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PofCounts {
    /// Number of packets.
    pub packets: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl From<TrafficCount> for PofCounts {
    fn from(TrafficCount { packets, bytes }: TrafficCount) -> Self {
        Self { packets, bytes }
    }
}

impl PofCounts {
    /// Returns the sum.
    pub fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }

    /// Returns what was counted since the counts were `base`. If the counts have begun again at 0 meanwhile,
    /// these are all counts.
    pub fn since(self, base: Self) -> Self {
        match (self.packets.checked_sub(base.packets), self.bytes.checked_sub(base.bytes)) {
            (Some(packets), Some(bytes)) => Self { packets, bytes },
            _ => self,
        }
    }
}

/// A counter. Its value is the sum of `retired` and of what its users have counted since their base. The base
/// of a user is its counts when the counter was cleared, or 0.
#[derive(Debug, Default)]
pub struct Counter {
    /// Entries that name the counter, each with its base.
    pub entries: BTreeMap<EntryRef, PofCounts>,
    /// Removed entries that named the counter and whose final counts are not known yet, each with its base.
    pub removed: BTreeMap<EntryRef, PofCounts>,
    /// Groups that name the counter, and the counter's own group, each with its base.
    pub groups: BTreeMap<GroupId, PofCounts>,
    /// Whether COUNTER_MOD or the action COUNTER created the counter. It then outlives its entries.
    pub is_kept: bool,
    /// What earlier users have counted since the counter was cleared.
    pub retired: PofCounts,
}

/// All counters.
#[derive(Debug, Default)]
pub struct PofCounters {
    counters: HashMap<PofCounterId, Counter>,
    /// Counter of each entry in `entries` or `removed` of a counter.
    by_entry: HashMap<EntryRef, PofCounterId>,
}

impl PofCounters {
    /// Returns a counter.
    pub fn get(&self, id: PofCounterId) -> Option<&Counter> {
        self.counters.get(&id)
    }

    /// Returns a counter for changes of its values.
    pub fn get_mut(&mut self, id: PofCounterId) -> Option<&mut Counter> {
        self.counters.get_mut(&id)
    }

    /// Checks that there is space for a counter if it does not exist. Number 0 stands for no counter.
    ///
    /// # Errors
    /// Returns a refusal if there are too many counters.
    pub fn check_room(&self, id: PofCounterId) -> Result<(), PofRefusal> {
        if id.0 == 0 || self.counters.len() < COUNTERS_MAX || self.counters.contains_key(&id) {
            return Ok(());
        }
        let problem = format!("there are {COUNTERS_MAX} counters, which is the maximum; delete some first");
        Err(PofRefusal::new(error::FLOW_MOD_BAD_COUNTER_ID, problem))
    }

    /// Returns a counter, and creates it if it does not exist.
    pub fn or_create(&mut self, id: PofCounterId) -> &mut Counter {
        self.counters.entry(id).or_default()
    }

    /// Removes a counter.
    pub fn remove(&mut self, id: PofCounterId) {
        let Some(counter) = self.counters.remove(&id) else { return };
        for entry in counter.entries.keys().chain(counter.removed.keys()) {
            self.by_entry.remove(entry);
        }
    }

    /// Begins the use of a counter by an entry whose counts are 0.
    pub fn entry_begins(&mut self, id: PofCounterId, entry: EntryRef) {
        self.or_create(id).entries.insert(entry, PofCounts::default());
        self.by_entry.insert(entry, id);
    }

    /// Records that an entry was replaced by one that continues its counts.
    pub fn entry_continues(&mut self, id: PofCounterId, old: EntryRef, new: EntryRef) {
        let counter = self.or_create(id);
        let base = counter.entries.remove(&old).unwrap_or_default();
        counter.entries.insert(new, base);
        self.by_entry.remove(&old);
        self.by_entry.insert(new, id);
    }

    /// Ends the use of a counter by an entry that was removed from its table. Packets may still hit it, so
    /// [`PofCounters::entry_released`] adds its counts. The counter is removed with its last user.
    pub fn entry_removed(&mut self, id: PofCounterId, entry: EntryRef) {
        let Some(counter) = self.counters.get_mut(&id) else { return };
        if let Some(base) = counter.entries.remove(&entry) {
            counter.removed.insert(entry, base);
        }
        self.remove_if_unused(id);
    }

    /// Adds the final counts of an entry to its counter, if it had one.
    pub fn entry_released(&mut self, entry: EntryRef, last: PofCounts) {
        let Some(id) = self.by_entry.remove(&entry) else { return };
        let Some(counter) = self.counters.get_mut(&id) else { return };
        if let Some(base) = counter.removed.remove(&entry).or_else(|| counter.entries.remove(&entry)) {
            counter.retired = counter.retired.plus(last.since(base));
        }
        self.remove_if_unused(id);
    }

    /// Begins the use of a counter by a group whose counts are 0.
    pub fn group_begins(&mut self, id: PofCounterId, group: GroupId) {
        self.or_create(id).groups.insert(group, PofCounts::default());
    }

    /// Adds the counts of a group, which then begin again at 0.
    pub fn group_restarts(&mut self, id: PofCounterId, group: GroupId, counts: PofCounts) {
        let counter = self.or_create(id);
        let base = counter.groups.insert(group, PofCounts::default()).unwrap_or_default();
        counter.retired = counter.retired.plus(counts.since(base));
    }

    /// Ends the use of a counter by a group with these counts.
    pub fn group_ends(&mut self, id: PofCounterId, group: GroupId, counts: PofCounts) {
        let Some(counter) = self.counters.get_mut(&id) else { return };
        if let Some(base) = counter.groups.remove(&group) {
            counter.retired = counter.retired.plus(counts.since(base));
        }
        self.remove_if_unused(id);
    }

    fn remove_if_unused(&mut self, id: PofCounterId) {
        let is_unused = |c: &Counter| !c.is_kept && c.entries.is_empty() && c.groups.is_empty();
        if self.counters.get(&id).is_some_and(is_unused) {
            self.remove(id);
        }
    }
}

/// Returns the refusal of a request for a counter that does not exist.
pub fn missing(id: PofCounterId) -> PofRefusal {
    PofRefusal::new(error::COUNTER_UNEXIST, format!("counter {} does not exist", id.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(packets: u64) -> PofCounts {
        PofCounts { packets, bytes: 100 * packets }
    }

    #[test]
    fn counts_since_a_base_are_the_difference_or_begin_again() {
        assert_eq!(counts(7).since(counts(3)), counts(4));
        assert_eq!(counts(3).since(counts(3)), counts(0));
        assert_eq!(counts(2).since(counts(3)), counts(2));
    }

    #[test]
    fn entries_without_a_counter_need_no_room() {
        let mut counters = PofCounters::default();
        for number in 1..=COUNTERS_MAX as u32 {
            counters.or_create(PofCounterId(number));
        }
        assert_eq!(counters.check_room(PofCounterId(0)), Ok(()));
        assert_eq!(counters.check_room(PofCounterId(9)), Ok(()));
        assert!(counters.check_room(PofCounterId(COUNTERS_MAX as u32 + 1)).is_err());
    }
}
