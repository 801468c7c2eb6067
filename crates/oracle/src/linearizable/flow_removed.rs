// SPDX-License-Identifier: Apache-2.0
//! Checks that each removed entry that requested a flow-removed message caused one, with the reference's
//! counters of the entry's lifetime.

use super::expiry;
use super::lives::Life;
use crate::log::{Origin, Record};
use flow::operation::MAC_TABLE;
use flow::{Action, EntryId, FlowEntry, GroupId, Operation};
use model::{FlowRemoved, RemovedReason};
use std::collections::BTreeMap;

/// Compares all messages. Returns their number.
pub(super) fn check_all(record: &Record, lives: &[Life]) -> Result<usize, String> {
    let mut messages: BTreeMap<EntryId, Vec<&FlowRemoved>> = BTreeMap::new();
    for message in record.removed.iter().rev() {
        messages.entry(message.entry.id).or_default().push(message);
    }
    let mut ended: Vec<(usize, &Life)> =
        lives.iter().filter_map(|life| Some((life.removed?, life))).collect();
    ended.sort_by_key(|(version, _)| *version);
    for (version, life) in ended {
        if !life.entry.flags.send_flow_removed || life.entry.table == MAC_TABLE {
            continue;
        }
        let next = messages.get_mut(&life.entry.id).and_then(|of_id| of_id.last().copied());
        let message = next.filter(|message| is_of(message, &life.entry));
        if life.replaced && !is_deleted_apart(record, version, message) {
            continue;
        }
        let message = message
            .ok_or_else(|| format!("operation {version} removed without a flow-removed message: {life:?}"))?;
        match check(record, version, life, message) {
            // This entry was overwritten, so the message belongs to a later entry with the same ID and match.
            Err(_) if life.replaced => continue,
            result => result?,
        }
        messages.get_mut(&life.entry.id).and_then(Vec::pop);
    }
    match messages.values().flatten().next() {
        Some(message) => Err(format!("a flow-removed message of an entry that was not removed: {message:?}")),
        None => Ok(record.removed.len()),
    }
}

/// Returns whether an operation deleted the entry and added an equal one, as a bundle can do. Only a deleted
/// entry causes a message; an overwritten entry does not.
fn is_deleted_apart(record: &Record, version: usize, message: Option<&FlowRemoved>) -> bool {
    let removals = record.operations[version - 1].parts().iter().filter_map(|part| match part {
        Operation::Entries(changes) => {
            Some(changes.iter().filter(|change| matches!(change, flow::EntryChange::Remove { .. })).count())
        }
        _ => None,
    });
    message.is_some() && removals.sum::<usize>() > 1
}

fn is_of(message: &FlowRemoved, entry: &FlowEntry) -> bool {
    let key = |entry: &FlowEntry| (entry.table, entry.priority, entry.cookie, entry.matching.clone());
    key(&message.entry) == key(entry)
}

fn check(record: &Record, version: usize, life: &Life, message: &FlowRemoved) -> Result<(), String> {
    let [added, removed] = [life.added, version].map(|version| &record.submitted[version - 1]);
    let flags = life.entry.flags;
    let visible = |(packets, bytes): (u64, u64)| {
        (
            removed.moment.at - added.moment.at,
            if flags.no_packet_counts { u64::MAX } else { packets },
            if flags.no_byte_counts { u64::MAX } else { bytes },
        )
    };
    let more = (life.counts.0 + life.perhaps.0, life.counts.1 + life.perhaps.1);
    let expected = [visible(life.counts), visible(more)];
    if !expected.contains(&(message.duration_ns, message.packets, message.bytes)) {
        return Err(format!("{message:?}\n  expected {expected:?} (duration, packets, bytes)"));
    }
    let reasons = match removed.origin {
        Origin::Poll => vec![expiry::reason(life, record)],
        Origin::Request => requested(&record.operations[version - 1], &life.entry),
    };
    if !reasons.contains(&Some(message.reason)) {
        return Err(format!("{message:?}\n  expected one of {reasons:?} as the reason\n  {life:?}"));
    }
    Ok(())
}

/// Returns the possible reasons for a removal by a request: a delete, or the deletion of a group that the
/// entry uses.
fn requested(operation: &Operation, entry: &FlowEntry) -> Vec<Option<RemovedReason>> {
    let instructions = &entry.instructions;
    let sends_to = |id: &GroupId| {
        instructions.apply.iter().chain(&instructions.write).any(|action| *action == Action::Group(*id))
    };
    let parts = operation.parts();
    let group_went = parts.iter().any(|part| matches!(part, Operation::RemoveGroup(id) if sends_to(id)));
    match (group_went, parts) {
        (true, [Operation::Entries(changes), Operation::RemoveGroup(_)]) if changes.len() == 1 => {
            vec![Some(RemovedReason::GroupDelete)]
        }
        (true, _) => vec![Some(RemovedReason::GroupDelete), Some(RemovedReason::Delete)],
        (false, _) => vec![Some(RemovedReason::Delete)],
    }
}
