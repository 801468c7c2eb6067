// SPDX-License-Identifier: Apache-2.0
//! All groups, and the graph of the groups that send to one another.

use super::records::{Record, Records};
use crate::error::ModelError;
use flow::group::{Group, GroupType};
use flow::{GroupId, Limits};
use std::collections::{BTreeMap, BTreeSet};

/// All groups by number.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    records: Records<GroupId, Group>,
    /// For each group, the groups that send to it or watch it.
    senders: BTreeMap<GroupId, BTreeSet<GroupId>>,
    /// Number of groups of each group type.
    of_type: [usize; 4],
    buckets: usize,
}

/// Results computed so far, by group number.
type Memo = BTreeMap<GroupId, usize>;

impl Groups {
    pub fn records(&self) -> &Records<GroupId, Group> {
        &self.records
    }

    pub fn get(&self, id: GroupId) -> Option<&Record<Group>> {
        self.records.get(&id)
    }

    pub fn get_mut(&mut self, id: GroupId) -> Option<&mut Record<Group>> {
        self.records.get_mut(&id)
    }

    /// Sets or removes the group with this number. Returns the previous group.
    pub fn set(&mut self, id: GroupId, record: Option<Record<Group>>) -> Option<Record<Group>> {
        let old = self.records.remove(&id);
        if let Some(old) = &old {
            self.of_type[old.what.kind as usize] -= 1;
            self.buckets -= old.what.buckets.len();
            for other in old.what.references() {
                if let Some(senders) = self.senders.get_mut(&other) {
                    senders.remove(&id);
                    if senders.is_empty() {
                        self.senders.remove(&other);
                    }
                }
            }
        }
        if let Some(new) = record {
            self.of_type[new.what.kind as usize] += 1;
            self.buckets += new.what.buckets.len();
            for other in new.what.references() {
                self.senders.entry(other).or_default().insert(id);
            }
            self.records.insert(id, new);
        }
        old
    }

    /// Returns the groups that send to this one or watch it.
    pub fn senders(&self, id: GroupId) -> impl Iterator<Item = GroupId> + '_ {
        self.senders.get(&id).into_iter().flatten().copied()
    }

    /// Returns all group numbers, each after the groups that send to it or watch it.
    pub fn senders_first(&self) -> Vec<GroupId> {
        let mut before = Memo::new();
        let mut ids: Vec<GroupId> = self.records.keys().copied().collect();
        ids.sort_by_cached_key(|id| self.longest_to(*id, &mut before));
        ids
    }

    /// Checks a group that was just set, together with all groups in its chains.
    pub fn check(&self, id: GroupId) -> Result<(), ModelError> {
        if self.of_type.iter().any(|count| *count > Limits::GROUPS_PER_TYPE) {
            return Err(ModelError::TooManyGroups);
        }
        if self.buckets > Limits::BUCKETS {
            return Err(ModelError::NoRoomForBuckets { group: id, buckets: self.buckets });
        }
        if self.leads_back(id) {
            return Err(ModelError::GroupLoop(id));
        }
        // Chains through this group also contain the groups that send to it.
        let through = self.longest_to(id, &mut Memo::new()) + self.longest_from(id, &mut Memo::new()) - 1;
        if through > Limits::GROUP_CHAIN {
            return Err(ModelError::GroupChain(id));
        }
        let mut passed = Memo::new();
        for other in self.those_before(id) {
            if self.passed(other, &mut passed) > Limits::GROUP_PASSES {
                return Err(ModelError::TooManyPasses { group: other });
            }
        }
        Ok(())
    }

    fn next(&self, id: GroupId) -> BTreeSet<GroupId> {
        self.get(id).into_iter().flat_map(|record| record.what.references()).collect()
    }

    fn leads_back(&self, id: GroupId) -> bool {
        let mut seen = BTreeSet::new();
        let mut open = self.next(id);
        while let Some(next) = open.pop_first() {
            if next == id {
                return true;
            }
            if seen.insert(next) {
                open.extend(self.next(next));
            }
        }
        false
    }

    /// Returns the number of groups in the longest chain that starts with this one.
    fn longest_from(&self, id: GroupId, memo: &mut Memo) -> usize {
        if let Some(known) = memo.get(&id) {
            return *known;
        }
        let behind = self.next(id).into_iter().map(|next| self.longest_from(next, memo)).max();
        let longest = 1 + behind.unwrap_or(0);
        memo.insert(id, longest);
        longest
    }

    /// Returns the number of groups in the longest chain that ends with this one.
    fn longest_to(&self, id: GroupId, memo: &mut Memo) -> usize {
        if let Some(known) = memo.get(&id) {
            return *known;
        }
        let before = self.senders(id).map(|sender| self.longest_to(sender, memo)).max();
        let longest = 1 + before.unwrap_or(0);
        memo.insert(id, longest);
        longest
    }

    /// Returns this group and all groups from which chains lead to it.
    fn those_before(&self, id: GroupId) -> BTreeSet<GroupId> {
        let mut seen = BTreeSet::new();
        let mut open = vec![id];
        while let Some(next) = open.pop() {
            if seen.insert(next) {
                open.extend(self.senders(next));
            }
        }
        seen
    }

    /// Returns the maximum number of buckets that one packet passes when it reaches this group.
    fn passed(&self, id: GroupId, memo: &mut Memo) -> usize {
        if let Some(known) = memo.get(&id) {
            return *known;
        }
        let Some(group) = self.get(id).map(|record| &record.what) else { return 0 };
        let mut sum = 0usize;
        let mut most = 0;
        for bucket in &group.buckets {
            let behind =
                bucket.groups().fold(0usize, |sum, other| sum.saturating_add(self.passed(other, memo)));
            sum = sum.saturating_add(1).saturating_add(behind);
            most = most.max(behind.saturating_add(1));
        }
        let passed = if group.kind == GroupType::All { sum } else { most };
        memo.insert(id, passed);
        passed
    }
}
