// SPDX-License-Identifier: Apache-2.0
//! GROUP_MOD, in both forms.

use crate::counters::PofCounts;
use crate::refusal::PofRefusal;
use crate::shared::Shared;
use crate::slot;
use crate::translate::{self, COUNTER_GROUPS};
use crate::work::{Asked, Then};
use dataplane::DataPlane;
use flow::group::{Bucket, Group, GroupType};
use flow::{Action, GroupId, Nanos, PortNo};
use model::agent::Context;
use model::{Change, GroupCommand, Model};
use pof::action::PofAction;
use pof::message::resource::{PofBucket, PofBucketGroupMod, PofGroupCommand, PofGroupMod, PofGroupType};
use pof::value::PofCounterId;
use pof::{PofDialect, error};

/// A GROUP_MOD of either form.
pub struct AnyGroupMod<'a> {
    command: PofGroupCommand,
    kind: PofGroupType,
    group: GroupId,
    counter: PofCounterId,
    slot: u16,
    content: Content<'a>,
}

enum Content<'a> {
    Actions(&'a [PofAction]),
    Buckets(&'a [PofBucket]),
}

impl<'a> From<&'a PofGroupMod> for AnyGroupMod<'a> {
    fn from(m: &'a PofGroupMod) -> Self {
        let (command, kind, group, counter, slot) = (m.command, m.group_type, m.group, m.counter, m.slot);
        Self { command, kind, group, counter, slot, content: Content::Actions(&m.actions) }
    }
}

impl<'a> From<&'a PofBucketGroupMod> for AnyGroupMod<'a> {
    fn from(m: &'a PofBucketGroupMod) -> Self {
        let (command, kind, group, counter, slot) = (m.command, m.group_type, m.group, m.counter, m.slot);
        Self { command, kind, group, counter, slot, content: Content::Buckets(&m.buckets) }
    }
}

/// Checks a GROUP_MOD and returns its changes.
pub fn group_mod<D: DataPlane>(
    m: &AnyGroupMod<'_>,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<Asked, PofRefusal> {
    slot::check(m.slot)?;
    if m.group.0 >= COUNTER_GROUPS {
        let problem =
            format!("group {} is reserved for counters; use one below {COUNTER_GROUPS:#x}", m.group);
        return Err(PofRefusal::new(error::GROUP_INVALID, problem));
    }
    let command = match m.command {
        PofGroupCommand::Add => GroupCommand::Add,
        PofGroupCommand::Modify => GroupCommand::Modify,
        PofGroupCommand::Delete => {
            if context.model.group_numbered(m.group).is_none() {
                return Err(model::ModelError::UnknownGroup(m.group).into());
            }
            let group = Group { id: m.group, kind: GroupType::All, buckets: Vec::new() };
            (context.refresh)();
            let counts = group_counts(context.model, context.now, m.group);
            return Ok((vec![Change::Group(GroupCommand::Delete, group)], Then::EndGroup(m.group, counts)));
        }
    };
    let group = Group { id: m.group, kind: kind(m.kind), buckets: buckets(m, shared.config.dialect)? };
    shared.counters.check_room(m.counter)?;
    (context.refresh)();
    let counts = group_counts(context.model, context.now, m.group);
    context.model.group_mod(context.now, command, group)?;
    // The counts of the group begin again at 0. Those so far belong to its counter before.
    if shared.group_counters.get(&m.group) == Some(&m.counter) {
        shared.counters.group_restarts(m.counter, m.group, counts);
        return Ok((Vec::new(), Then::Nothing));
    }
    end(m.group, counts, shared);
    if m.counter.0 != 0 {
        shared.group_counters.insert(m.group, m.counter);
        shared.counters.group_begins(m.counter, m.group);
    }
    Ok((Vec::new(), Then::Nothing))
}

/// Ends the use of a counter by a group with these counts.
pub fn end(group: GroupId, counts: PofCounts, shared: &mut Shared) {
    if let Some(counter) = shared.group_counters.remove(&group) {
        shared.counters.group_ends(counter, group, counts);
    }
}

/// Returns the counts of a group, or 0 if it does not exist.
pub fn group_counts<D: DataPlane>(model: &mut Model<D>, now: Nanos, group: GroupId) -> PofCounts {
    let total = model.group(now, group).map(|stats| stats.counters.total);
    total.map_or(PofCounts::default(), |total| PofCounts { packets: total.packets, bytes: total.bytes })
}

fn kind(kind: PofGroupType) -> GroupType {
    match kind {
        PofGroupType::All => GroupType::All,
        PofGroupType::Select => GroupType::Select,
        PofGroupType::Indirect => GroupType::Indirect,
        PofGroupType::FastFailover => GroupType::FastFailover,
    }
}

fn buckets(m: &AnyGroupMod<'_>, dialect: PofDialect) -> Result<Vec<Bucket>, PofRefusal> {
    match m.content {
        Content::Buckets(list) => list.iter().map(|bucket| made(bucket, m.kind, dialect)).collect(),
        Content::Actions(list) => {
            let actions = bucket_actions(list, dialect)?;
            let weight = u16::from(m.kind == PofGroupType::Select);
            let split =
                if m.kind == PofGroupType::All { per_output(actions) } else { vec![only_one(actions)?] };
            Ok(split.into_iter().map(|actions| Bucket { weight, actions, ..Bucket::default() }).collect())
        }
    }
}

fn made(bucket: &PofBucket, kind: PofGroupType, dialect: PofDialect) -> Result<Bucket, PofRefusal> {
    slot::check(bucket.watch_slot)?;
    let watches = kind == PofGroupType::FastFailover;
    let watched = |number: u32| (watches && number != 0).then_some(number);
    Ok(Bucket {
        weight: if kind == PofGroupType::Select { bucket.weight } else { 0 },
        watch_port: watched(bucket.watch_port.into()).map(PortNo),
        watch_group: watched(bucket.watch_group.0).map(GroupId),
        actions: only_one(bucket_actions(&bucket.actions, dialect)?)?,
    })
}

/// Translates the actions of a bucket, which has no counters of its own.
fn bucket_actions(actions: &[PofAction], dialect: PofDialect) -> Result<Vec<Action>, PofRefusal> {
    let (actions, counters) = translate::actions(actions, dialect)?;
    if counters.is_empty() {
        return Ok(actions);
    }
    let problem = "the action COUNTER cannot be in a group; name the counter in GROUP_MOD";
    Err(PofRefusal::new(error::ACTION_BAD_ARGUMENT, problem))
}

fn sends(action: &Action) -> bool {
    matches!(action, Action::Output { .. } | Action::Group(_))
}

/// Checks that the actions send at most one packet, after all other actions. A bucket is an action set, which
/// has one output.
fn only_one(actions: Vec<Action>) -> Result<Vec<Action>, PofRefusal> {
    let first = actions.iter().position(sends).unwrap_or(actions.len());
    if first + 1 >= actions.len() {
        return Ok(actions);
    }
    let problem = "a bucket of a group sends one packet, by its last action; use one bucket for each output";
    Err(PofRefusal::new(error::ACTION_UNSUPPORTED_ORDER, problem))
}

/// Splits actions into one list for each output, with the other actions before it.
fn per_output(actions: Vec<Action>) -> Vec<Vec<Action>> {
    let mut lists = Vec::new();
    let mut before: Vec<Action> = Vec::new();
    for action in actions {
        if sends(&action) {
            let mut list = before.clone();
            list.push(action);
            lists.push(list);
        } else {
            before.push(action);
        }
    }
    lists
}
