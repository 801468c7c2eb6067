// SPDX-License-Identifier: Apache-2.0
//! Groups as controllers see them. They are checked here, so the data plane only gets groups whose chains
//! end.

mod graph;

use crate::async_messages::RemovedReason;
use crate::change::Change;
use crate::flow_mod::executable;
use crate::records::{Record, groups_of};
use crate::stage::{Staged, Step};
use crate::{Model, ModelError};
use dataplane::{DataPlane, GroupCounters};
use flow::group::{Group, GroupType};
use flow::validate::{GROUP_MAX, validate_actions};
use flow::{Action, Instructions, Limits, Nanos, Operation};
use std::sync::Arc;

pub(crate) use graph::Groups;

/// Command of a group-mod (OFPGC_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupCommand {
    /// Add a group.
    Add,
    /// Replace the group of this number; its counters start at 0.
    Modify,
    /// Add a group, or replace the group of this number.
    AddOrModify,
    /// Delete a group and the entries that send to it. Not an error if there is no such group.
    Delete,
    /// Delete all groups and the entries that send to any of them.
    DeleteAll,
}

/// A group with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStats {
    /// Definition of the group.
    pub group: Arc<Group>,
    /// Time since the group was added, in nanoseconds.
    pub duration_ns: Nanos,
    /// Number of entries and groups that send to the group.
    pub references: usize,
    /// Counters of the group.
    pub counters: GroupCounters,
}

impl<D: DataPlane> Model<D> {
    /// Applies one group-mod. A delete uses only the number of `group`.
    ///
    /// # Errors
    /// Returns the error by which OpenFlow 1.3 refuses the group-mod (OFPET_GROUP_MOD_FAILED). Nothing is
    /// changed then.
    pub fn group_mod(&mut self, now: Nanos, command: GroupCommand, group: Group) -> Result<(), ModelError> {
        self.change(now, Change::Group(command, group)).map(|_| ())
    }

    pub(crate) fn stage_group_mod(
        &mut self,
        now: Nanos,
        command: GroupCommand,
        group: Group,
        staged: &mut Staged,
    ) -> Result<(), ModelError> {
        let there = self.groups.get(group.id).is_some();
        match command {
            GroupCommand::Add if there => Err(ModelError::GroupExists(group.id)),
            GroupCommand::Modify if !there => Err(ModelError::UnknownGroup(group.id)),
            GroupCommand::Add | GroupCommand::AddOrModify | GroupCommand::Modify => {
                self.stage_group(now, group, staged)
            }
            GroupCommand::Delete => self.stage_group_delete(group.id, staged),
            GroupCommand::DeleteAll => {
                // One scan removes the entries of all groups, because a scan visits every entry of the
                // switch.
                let users = self.groups.records().values().map(|record| record.users).sum();
                let uses = |entry: &flow::FlowEntry| groups_of(&entry.instructions).next().is_some();
                self.stage_remove_users(users, uses, RemovedReason::GroupDelete, staged);
                // A group can be deleted only after the groups that send to it.
                for id in self.groups.senders_first() {
                    self.stage_group_delete(id, staged)?;
                }
                Ok(())
            }
        }
    }

    fn stage_group(&mut self, now: Nanos, group: Group, staged: &mut Staged) -> Result<(), ModelError> {
        self.check_group(&group)?;
        let id = group.id;
        let what = Arc::new(group);
        let (since, users) = self.groups.get(id).map_or((now, 0), |old| (old.since, old.users));
        let old = self.groups.set(id, Some(Record { what: Arc::clone(&what), since, users }));
        // From here on the log has the group, so an error below is rolled back with the whole request.
        staged.log.push(Step::Group(id, old));
        self.groups.check(id)?;
        staged.others.push(Operation::Group(what));
        Ok(())
    }

    fn stage_group_delete(&mut self, id: u32, staged: &mut Staged) -> Result<(), ModelError> {
        let Some(users) = self.groups.get(id).map(|record| record.users) else { return Ok(()) };
        if let Some(sender) = self.groups.senders(id).next() {
            return Err(ModelError::ChainedGroup { group: id, sender });
        }
        let uses = |entry: &flow::FlowEntry| groups_of(&entry.instructions).any(|group| group == id);
        self.stage_remove_users(users, uses, RemovedReason::GroupDelete, staged);
        staged.log.push(Step::Group(id, self.groups.set(id, None)));
        staged.others.push(Operation::RemoveGroup(id));
        Ok(())
    }

    /// Checks a group by itself, without the chains of other groups.
    fn check_group(&self, group: &Group) -> Result<(), ModelError> {
        let id = group.id;
        if id > GROUP_MAX {
            return Err(ModelError::InvalidGroup {
                group: id,
                why: "its number is reserved; take one up to 0xffffff00",
            });
        }
        if group.buckets.len() > Limits::GROUP_BUCKETS {
            return Err(ModelError::TooManyBuckets { group: id, buckets: group.buckets.len() });
        }
        if group.kind == GroupType::Indirect && group.buckets.len() != 1 {
            return Err(ModelError::InvalidGroup {
                group: id,
                why: "an indirect group has exactly one bucket",
            });
        }
        if group.kind == GroupType::Select && group.buckets.iter().any(|bucket| bucket.weight == 0) {
            return Err(ModelError::InvalidGroup {
                group: id,
                why: "the buckets of a select group have weights above 0",
            });
        }
        if group.kind != GroupType::Select && group.buckets.iter().any(|bucket| bucket.weight != 0) {
            return Err(ModelError::InvalidGroup {
                group: id,
                why: "only the buckets of a select group have weights; give these the weight 0",
            });
        }
        for bucket in &group.buckets {
            validate_actions(&bucket.actions)?;
            let actions = bucket.actions.iter().filter(|a| !matches!(a, Action::Group(_))).cloned().collect();
            executable(&Instructions::apply(actions), &self.groups, &self.meters)?;
        }
        if pipeline::CompiledGroup::compile(group).is_err() {
            return Err(ModelError::InvalidGroup {
                group: id,
                why: "a bucket sets more fields than an action set holds",
            });
        }
        match group.references().find(|other| *other != id && self.groups.get(*other).is_none()) {
            Some(missing) => Err(ModelError::NoSuchGroup(missing)),
            None => Ok(()),
        }
    }

    /// Returns a group with its counters.
    pub fn group(&mut self, now: Nanos, id: u32) -> Option<GroupStats> {
        let record = self.groups.get(id)?;
        Some(GroupStats {
            references: record.users + self.groups.senders(id).count(),
            duration_ns: now.saturating_sub(record.since),
            counters: self.plane.group_counters(id).unwrap_or_default(),
            group: Arc::clone(&record.what),
        })
    }

    /// Returns the numbers of all groups.
    #[must_use]
    pub fn group_ids(&self) -> Vec<u32> {
        self.groups.records().keys().copied().collect()
    }

    /// Returns the numbers of all groups, each after the groups that it sends to or watches. In this order
    /// they can be added.
    #[must_use]
    pub fn groups_in_order(&self) -> Vec<u32> {
        let mut ids = self.groups.senders_first();
        ids.reverse();
        ids
    }
}
