// SPDX-License-Identifier: Apache-2.0
//! Adds, modifies and deletes groups while packets use them.

use super::Driver;
use flow::GroupId;
use flow::group::{Group, GroupType};
use model::GroupCommand;

impl Driver {
    /// Usually adds a missing group, if there is one. Otherwise changes or deletes a group that a test packet
    /// uses, or else a random group.
    pub(super) fn change_group(&mut self) -> Result<(), String> {
        let subject = self.subject(|processed| !processed.groups.is_empty());
        let used = subject.before.groups.first().map(|(id, _)| *id);
        let missing =
            (1..=self.style.groups).map(GroupId).find(|id| self.model.group(self.now, *id).is_none());
        let missing = missing.filter(|_| self.rng.u8(0..4) > 0);
        let id = missing.or(used).unwrap_or_else(|| GroupId(self.rng.u32(1..=self.style.groups)));
        let there = self.model.group(self.now, id).map(|stats| stats.group);
        let kind = self.rng.u8(0..8);
        let (command, group) = match (there, kind) {
            (None, _) => (GroupCommand::Add, self.random_group(id)),
            (Some(_), 0 | 1) => {
                (GroupCommand::Delete, Group { id, kind: GroupType::All, buckets: Vec::new() })
            }
            (Some(group), 2..5) => (GroupCommand::Modify, self.style.reweighed(&mut self.rng, &group)),
            (Some(_), _) => (GroupCommand::Modify, self.random_group(id)),
        };
        // The change is refused if it would break a reference between groups.
        if self.model.group_mod(self.now, command, group).is_ok() {
            let changes = &mut self.record.changes;
            *match command {
                GroupCommand::Add | GroupCommand::AddOrModify => &mut changes.groups_added,
                GroupCommand::Modify if kind < 5 => &mut changes.groups_reweighed,
                GroupCommand::Modify => &mut changes.groups_replaced,
                GroupCommand::Delete | GroupCommand::DeleteAll => &mut changes.groups_deleted,
            } += 1;
        }
        self.account_if_live(&subject)
    }
}
