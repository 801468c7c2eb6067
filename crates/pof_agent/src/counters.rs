// SPDX-License-Identifier: Apache-2.0
//! Counters. A counter adds up the hits of the entries that name it, the packets of the groups that name it,
//! and the packets of the action COUNTER, for which it has a group of its own.

use crate::config::COUNTERS_MAX;
use crate::refusal::PofRefusal;
use flow::{GroupId, TableId};
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

/// An entry that names a counter: its table and index.
pub type Place = (TableId, u32);

/// A counter. Its value is the sum of `retired` and of what its users have counted since their base.
#[derive(Debug, Default)]
pub struct Counter {
    /// Entries that name the counter, each with its counts when the counter was cleared.
    pub places: BTreeMap<Place, PofCounts>,
    /// Groups that name the counter, and the counter's own group, each with its counts when the counter was
    /// cleared.
    pub groups: BTreeMap<GroupId, PofCounts>,
    /// Whether COUNTER_MOD or the action COUNTER created the counter. It then outlives its entries.
    pub is_kept: bool,
    /// What removed users have counted since the counter was cleared.
    pub retired: PofCounts,
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

    /// Checks that there is space for a counter if it does not exist. Number 0 stands for no counter.
    ///
    /// # Errors
    /// Returns a refusal if there are too many counters.
    pub fn check_room(&self, id: PofCounterId) -> Result<(), PofRefusal> {
        if id.0 == 0 || self.0.len() < COUNTERS_MAX || self.0.contains_key(&id) {
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

    /// Begins the use of a counter by an entry whose counts are 0.
    pub fn entry_begins(&mut self, id: PofCounterId, place: Place) {
        self.or_create(id).places.insert(place, PofCounts::default());
    }

    /// Adds the counts of an entry, which then begin again at 0.
    pub fn entry_restarts(&mut self, id: PofCounterId, place: Place, counts: PofCounts) {
        let counter = self.or_create(id);
        let base = counter.places.insert(place, PofCounts::default()).unwrap_or_default();
        counter.retired = counter.retired.plus(counts.since(base));
    }

    /// Ends the use of a counter by an entry with these counts. The counter is removed with its last user.
    pub fn entry_ends(&mut self, id: PofCounterId, place: Place, counts: PofCounts) {
        let Some(counter) = self.0.get_mut(&id) else { return };
        if let Some(base) = counter.places.remove(&place) {
            counter.retired = counter.retired.plus(counts.since(base));
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
        let Some(counter) = self.0.get_mut(&id) else { return };
        if let Some(base) = counter.groups.remove(&group) {
            counter.retired = counter.retired.plus(counts.since(base));
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

#[cfg(test)]
mod tests {
    use super::*;

    const ID: PofCounterId = PofCounterId(5);
    const PLACE: Place = (TableId(0), 1);

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
    fn a_counter_ends_with_its_last_user_unless_it_is_kept() {
        let mut counters = PofCounters::default();
        let group = GroupId(2);
        counters.entry_begins(ID, PLACE);
        counters.group_begins(ID, group);
        counters.group_restarts(ID, group, counts(3));
        counters.entry_restarts(ID, PLACE, counts(4));
        counters.entry_ends(ID, PLACE, counts(10));
        // An entry that has ended adds nothing.
        counters.entry_ends(ID, PLACE, counts(10));
        assert_eq!(counters.get(ID).map(|counter| counter.retired), Some(counts(17)));
        counters.group_ends(ID, group, counts(5));
        assert!(counters.get(ID).is_none());
        counters.or_create(ID).is_kept = true;
        counters.group_begins(ID, group);
        counters.group_ends(ID, group, counts(5));
        assert_eq!(counters.get(ID).map(|counter| counter.retired), Some(counts(5)));
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
