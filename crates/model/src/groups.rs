// SPDX-License-Identifier: Apache-2.0
//! Groups as a controller sees them: checked, so that the data plane only gets groups whose chains end.

use crate::flow_mod::executable;
use crate::store::Life;
use crate::{DataPlane, GroupCounters, Model, ModelError};
use flow::group::{Group, GroupType};
use flow::validate::{GROUP_MAX, validate_actions};
use flow::{Action, Command, FlowMod, Instructions, Limits, Nanos, Operation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a group-mod does (OFPGC_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupCommand {
    /// Add a group.
    Add,
    /// Replace a group by another of its number; it counts from 0.
    Modify,
    /// Delete a group, the entries that send to it with it. No error if there is none.
    Delete,
    /// Delete all groups and the entries that send to any.
    DeleteAll,
}

/// A group and when it was added.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub group: Arc<Group>,
    pub since: Nanos,
}

/// All groups by number.
pub(crate) type Groups = BTreeMap<u32, Record>;

/// A group with what it has counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupStats {
    /// The group.
    pub group: Arc<Group>,
    /// How long it is there.
    pub duration_ns: Nanos,
    /// Entries and groups that send to it.
    pub references: usize,
    /// What it has counted.
    pub counters: GroupCounters,
}

impl<D: DataPlane> Model<D> {
    /// Does one group-mod. For deletes only the number of `group` counts.
    ///
    /// # Errors
    /// What OpenFlow 1.3 refuses (OFPET_GROUP_MOD_FAILED); nothing is changed then.
    pub fn group_mod(&mut self, now: Nanos, command: GroupCommand, group: Group) -> Result<(), ModelError> {
        match command {
            GroupCommand::Add if self.groups.contains_key(&group.id) => {
                Err(ModelError::GroupExists(group.id))
            }
            GroupCommand::Modify if !self.groups.contains_key(&group.id) => {
                Err(ModelError::UnknownGroup(group.id))
            }
            GroupCommand::Add | GroupCommand::Modify => self.set_group(now, group),
            GroupCommand::Delete => self.delete_group(now, group.id),
            GroupCommand::DeleteAll => {
                // Those that nothing sends to first: chains end, so that all go.
                while let Some(id) = self.groups.keys().copied().find(|id| self.senders(*id).next().is_none())
                {
                    self.delete_group(now, id)?;
                }
                Ok(())
            }
        }
    }

    fn set_group(&mut self, now: Nanos, group: Group) -> Result<(), ModelError> {
        self.check_group(&group)?;
        let since = self.groups.get(&group.id).map_or(now, |old| old.since);
        let group = Arc::new(group);
        self.groups.insert(group.id, Record { group: Arc::clone(&group), since });
        self.version = self.plane.submit(Operation::Group(group));
        Ok(())
    }

    fn delete_group(&mut self, now: Nanos, id: u32) -> Result<(), ModelError> {
        if !self.groups.contains_key(&id) {
            return Ok(());
        }
        if let Some(sender) = self.senders(id).next() {
            return Err(ModelError::ChainedGroup { group: id, sender });
        }
        let entries =
            FlowMod { command: Command::Delete, table: None, out_group: Some(id), ..FlowMod::default() };
        self.flow_mod(now, entries)?;
        self.groups.remove(&id);
        self.version = self.plane.submit(Operation::RemoveGroup(id));
        Ok(())
    }

    /// Groups that send to this one or watch it.
    fn senders(&self, id: u32) -> impl Iterator<Item = u32> + '_ {
        let to_it = move |record: &&Record| record.group.references().any(|other| other == id);
        self.groups.values().filter(to_it).map(|record| record.group.id)
    }

    fn check_group(&self, group: &Group) -> Result<(), ModelError> {
        let id = group.id;
        if id > GROUP_MAX {
            return Err(ModelError::InvalidGroup {
                group: id,
                why: "its number is reserved; take one below 0xffffff00",
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
        for other in group.references() {
            if other != id && !self.groups.contains_key(&other) {
                return Err(ModelError::NoSuchGroup(other));
            }
        }
        if self.reaches(group, id) {
            return Err(ModelError::GroupLoop(id));
        }
        // Every chain through this group must stay short enough, also those that come to it.
        let behind = 1 + group.references().map(|other| self.chain(other)).max().unwrap_or(0);
        if self.before(id) + behind > Limits::GROUP_CHAIN {
            return Err(ModelError::GroupChain(id));
        }
        Ok(())
    }

    /// Whether a chain leads from the group to the one of this number. The groups that are there have no loops.
    fn reaches(&self, group: &Group, id: u32) -> bool {
        group.references().any(|other| {
            other == id || self.groups.get(&other).is_some_and(|next| self.reaches(&next.group, id))
        })
    }

    /// Groups in the longest chain that begins with this one.
    fn chain(&self, id: u32) -> usize {
        let next =
            |record: &Record| record.group.references().map(|other| self.chain(other)).max().unwrap_or(0);
        self.groups.get(&id).map_or(0, |record| 1 + next(record))
    }

    /// Groups in the longest chain that leads to this one.
    fn before(&self, id: u32) -> usize {
        self.senders(id).map(|sender| 1 + self.before(sender)).max().unwrap_or(0)
    }

    /// A group's numbers and counters.
    pub fn group(&mut self, now: Nanos, id: u32) -> Option<GroupStats> {
        let record = self.groups.get(&id)?.clone();
        let to_it = |action: &Action| *action == Action::Group(id);
        let entries = self
            .store
            .slots()
            .iter()
            .filter(|slot| slot.life == Life::Live)
            .filter_map(|slot| slot.entry.as_ref())
            .filter(|entry| entry.instructions.apply.iter().chain(&entry.instructions.write).any(to_it));
        Some(GroupStats {
            references: entries.count() + self.senders(id).count(),
            duration_ns: now.saturating_sub(record.since),
            counters: self.plane.group_counters(id).unwrap_or_default(),
            group: record.group,
        })
    }

    /// The numbers of all groups.
    #[must_use]
    pub fn group_ids(&self) -> Vec<u32> {
        self.groups.keys().copied().collect()
    }
}
