// SPDX-License-Identifier: Apache-2.0
//! Groups. Each used bucket is executed as an action set on a copy of the packet. A failure in a bucket ends
//! only that copy; the packet continues unchanged.

use crate::action_set::ActionSet;
use crate::choice::{chosen, hash_of, is_live};
use crate::run::Run;
use flow::group::{Bucket, Group, GroupType};
use flow::{DropReason, FlowEntry, GroupId};

impl Run<'_> {
    /// Processes the packet by a group. Records the drop reason if the group cannot process it.
    pub(crate) fn group(&mut self, id: GroupId, entry: &FlowEntry) {
        let Some(group) = self.rules.group(id) else {
            self.reasons.push(DropReason::NoSuchGroup);
            return;
        };
        let used = self.used(&group);
        self.group_hits.push((id, used.clone(), self.packet.bytes.len()));
        if used.is_empty() {
            self.reasons.push(DropReason::NoLiveBucket);
        }
        for number in used {
            let packet = self.packet.clone();
            if let Err(reason) = self.bucket(&group.buckets[number], entry) {
                self.reasons.push(reason);
            }
            self.packet = packet;
        }
    }

    fn bucket(&mut self, bucket: &Bucket, entry: &FlowEntry) -> Result<(), DropReason> {
        let mut set = ActionSet::default();
        for action in &bucket.actions {
            set.write(action)?;
        }
        set.in_order().iter().try_for_each(|action| self.execute(action, entry))
    }

    /// Returns the indices of the buckets that the packet uses.
    fn used(&self, group: &Group) -> Vec<usize> {
        match group.kind {
            GroupType::All => (0..group.buckets.len()).collect(),
            GroupType::Indirect => (0..group.buckets.len().min(1)).collect(),
            GroupType::FastFailover => {
                group.buckets.iter().position(|bucket| is_live(self.rules, bucket)).into_iter().collect()
            }
            GroupType::Select => chosen(self.rules, group, hash_of(&self.packet)).into_iter().collect(),
        }
    }
}
