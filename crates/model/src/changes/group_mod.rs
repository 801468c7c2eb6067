// SPDX-License-Identifier: Apache-2.0
//! Group-mods. Groups that form a loop are refused here.

use super::transaction::Transaction;
use crate::async_messages::RemovedReason;
use crate::error::ModelError;
use crate::rules::Rules;
use crate::rules::users::groups_of;
use flow::group::{Group, GroupType};
use flow::validate::{GROUP_MAX, validate_action_set};
use flow::{Action, FlowEntry, GroupId, Instructions, Limits};
use std::sync::Arc;

/// Command of a group-mod (OFPGC_*).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupCommand {
    /// Add a group.
    Add,
    /// Replace the group with this number. Its counters start at 0.
    Modify,
    /// Add a group, or replace the group with this number.
    AddOrModify,
    /// Delete a group and the entries that send to it. A missing group is not an error.
    Delete,
    /// Delete all groups and the entries that send to any of them.
    DeleteAll,
}

pub(super) fn apply(
    transaction: &mut Transaction<'_>,
    command: GroupCommand,
    group: Group,
) -> Result<(), ModelError> {
    let groups = &transaction.rules().groups;
    let there = groups.get(group.id).is_some();
    match command {
        GroupCommand::Add if there => Err(ModelError::GroupExists(group.id)),
        GroupCommand::Modify if !there => Err(ModelError::UnknownGroup(group.id)),
        GroupCommand::Add | GroupCommand::AddOrModify | GroupCommand::Modify => set(transaction, group),
        GroupCommand::Delete => delete(transaction, group.id),
        GroupCommand::DeleteAll => {
            // One scan removes the entries of all groups, instead of one scan per group.
            let users = groups.records().values().map(|record| record.users).sum();
            let uses = |entry: &FlowEntry| groups_of(&entry.instructions).next().is_some();
            transaction.remove_where(Some(users), uses, Some(RemovedReason::GroupDelete));
            // A group can be deleted only after the groups that send to it or watch it.
            for id in transaction.rules().groups.senders_first() {
                delete(transaction, id)?;
            }
            Ok(())
        }
    }
}

fn set(transaction: &mut Transaction<'_>, group: Group) -> Result<(), ModelError> {
    check(transaction.rules(), &group)?;
    let group = Arc::new(group);
    transaction.set_group(&group);
    // If this check fails, the change of the group is rolled back with the whole request.
    transaction.rules().groups.check(group.id)
}

fn delete(transaction: &mut Transaction<'_>, id: GroupId) -> Result<(), ModelError> {
    let groups = &transaction.rules().groups;
    let Some(users) = groups.get(id).map(|record| record.users) else { return Ok(()) };
    if let Some(sender) = groups.senders(id).next() {
        return Err(ModelError::ChainedGroup { group: id, sender });
    }
    let uses = |entry: &FlowEntry| groups_of(&entry.instructions).any(|group| group == id);
    transaction.remove_where(Some(users), uses, Some(RemovedReason::GroupDelete));
    transaction.remove_group(id);
    Ok(())
}

/// Checks a group on its own, without the chains of other groups.
fn check(rules: &Rules, group: &Group) -> Result<(), ModelError> {
    let id = group.id;
    if id > GROUP_MAX {
        return Err(ModelError::InvalidGroup {
            group: id,
            why: "its number is reserved; use one up to 0xffffff00",
        });
    }
    if group.buckets.len() > Limits::GROUP_BUCKETS {
        return Err(ModelError::TooManyBuckets { group: id, buckets: group.buckets.len() });
    }
    if group.kind == GroupType::Indirect && group.buckets.len() != 1 {
        return Err(ModelError::InvalidGroup { group: id, why: "an indirect group has exactly one bucket" });
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
            why: "only the buckets of a select group have weights; set the weights of this group to 0",
        });
    }
    for bucket in &group.buckets {
        validate_action_set(&bucket.actions)?;
        let actions = bucket.actions.iter().filter(|a| !matches!(a, Action::Group(_))).cloned().collect();
        rules.check_references(&Instructions::apply(actions))?;
    }
    if actions::CompiledGroup::compile(group).is_err() {
        return Err(ModelError::InvalidGroup {
            group: id,
            why: "a bucket sets more fields than an action set holds",
        });
    }
    match group.references().find(|other| *other != id && rules.groups.get(*other).is_none()) {
        Some(missing) => Err(ModelError::NoSuchGroup(missing)),
        None => Ok(()),
    }
}
