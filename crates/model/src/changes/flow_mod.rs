// SPDX-License-Identifier: Apache-2.0
//! Flow-mods (OpenFlow 1.3, section 6.4).

use super::pipeline_tables;
use super::transaction::{Counts, NewEntry, Transaction};
use crate::async_messages::RemovedReason;
use crate::config::ModelConfig;
use crate::error::ModelError;
use crate::rules::{EntryOrigin, Rules};
use crate::select::Qualities;
use flow::operation::MAC_TABLE;
use flow::validate::{ValidateError, validate};
use flow::{EntryId, FlowEntry, FlowMod, FlowModCommand, Instructions, Limits, TableId};
use std::sync::Arc;

pub(super) fn apply(transaction: &mut Transaction<'_>, m: FlowMod) -> Result<(), ModelError> {
    validate(&m)?;
    pipeline_tables::check(transaction.rules(), &m)?;
    if matches!(m.command, FlowModCommand::Add | FlowModCommand::Modify | FlowModCommand::ModifyStrict) {
        transaction.rules().check_references(&m.instructions)?;
    }
    match m.command {
        FlowModCommand::Add => {
            let explicit = m.low_latency;
            let entry = m.into_entry(Arc::new).ok_or(ValidateError::Table)?;
            add(transaction, entry, explicit, None)
        }
        FlowModCommand::Modify | FlowModCommand::ModifyStrict => modify(transaction, m),
        FlowModCommand::Delete | FlowModCommand::DeleteStrict => {
            delete(transaction, &m);
            Ok(())
        }
    }
}

/// Checks instructions of entries that an earlier process had added. Returns their shared copy.
pub(crate) fn check_restored(
    transaction: &mut Transaction<'_>,
    instructions: &Arc<Instructions>,
) -> Result<Arc<Instructions>, ModelError> {
    pipeline_tables::check_next(transaction.rules(), instructions)?;
    transaction.rules().check_references(instructions)?;
    Ok(transaction.adopt(instructions))
}

/// Adds an entry that an earlier process had added. It may overlap entries that were added later. Its
/// instructions must come from [`check_restored`].
pub(crate) fn restore(
    transaction: &mut Transaction<'_>,
    entry: FlowEntry,
    explicit: Option<bool>,
    origin: EntryOrigin,
) -> Result<(), ModelError> {
    pipeline_tables::check_table(transaction.rules(), entry.table)?;
    add(transaction, entry, explicit, Some(origin))
}

/// Returns how many entries must be examined to apply the flow-mod.
pub(super) fn cost(rules: &Rules, m: &FlowMod) -> usize {
    let table = m.table.map(|table| rules.store.table(table));
    match (m.command, table) {
        (FlowModCommand::Modify | FlowModCommand::Delete, _) => {
            let tables = tables_of(m.table);
            tables.map(|table| rules.store.table(table).covered_cost(&m.matching)).sum()
        }
        // Each index of a linear table has at most one entry, of any priority.
        (FlowModCommand::Add, Some(table)) if m.matching.index().is_some() => table.covered_cost(&m.matching),
        (FlowModCommand::Add, Some(table)) if m.flags.check_overlap => {
            table.overlap_cost(m.priority, &m.matching)
        }
        _ => 0,
    }
}

/// Returns the tables to which a flow-mod applies: one table, or all tables of controllers.
fn tables_of(table: Option<TableId>) -> impl Iterator<Item = TableId> {
    let numbers = table.map_or(0..=TableId::LAST.0, |table| table.0..=table.0);
    numbers.map(TableId)
}

/// Adds an entry. Its ID and whether it is low-latency are set here. `explicit` is the mark of the flow-mod.
fn add(
    transaction: &mut Transaction<'_>,
    mut entry: FlowEntry,
    explicit: Option<bool>,
    origin: Option<EntryOrigin>,
) -> Result<(), ModelError> {
    let table = entry.table;
    let store = &transaction.rules().store;
    if entry.flags.check_overlap
        && origin.is_none()
        && store.table(table).overlaps(store.slots(), entry.priority, &entry.matching)
    {
        return Err(ModelError::Overlap { table, priority: entry.priority });
    }
    if let Some(index) = entry.matching.index() {
        check_index(transaction, &entry, index)?;
    }
    let slices = store.table(table).slices_with(&entry.matching);
    if slices > Limits::SLICES_PER_TABLE {
        return Err(ModelError::TooManySlices { table, slices });
    }
    let hash = store.hash(&entry);
    let replaced = store.find_like(&entry, hash);
    check_room(transaction.rules(), transaction.config, replaced)?;
    let by_cookie = transaction.config.is_marked_by_cookie(entry.cookie);
    let may_learn = transaction.config.learning.is_some() && explicit.is_none() && !by_cookie;
    let origin = origin.map(|origin| EntryOrigin { learned: origin.learned && may_learn, ..origin });
    let learned = origin.is_some_and(|origin| origin.learned);
    entry.low_latency = explicit.unwrap_or(by_cookie || learned);
    if origin.is_none() {
        // Instructions of a refused entry are not kept. Those of a restored entry are shared already.
        entry.instructions = transaction.adopt(&entry.instructions);
    }
    let counts = Counts::by_flag(entry.flags.reset_counts);
    transaction.add_entry(NewEntry { entry, explicit, replaced, hash, counts, origin });
    Ok(())
}

fn modify(transaction: &mut Transaction<'_>, m: FlowMod) -> Result<(), ModelError> {
    let table = m.table.ok_or(ValidateError::Table)?;
    let ids = selected(transaction.rules(), table, &m, Qualities::of_modify(&m));
    let instructions = transaction.share(m.instructions);
    let counts = Counts::by_flag(m.flags.reset_counts);
    for id in ids {
        transaction.modify_entry(id, &instructions, m.low_latency, counts);
    }
    Ok(())
}

fn delete(transaction: &mut Transaction<'_>, m: &FlowMod) {
    let qualities = Qualities::of_delete(m);
    for table in tables_of(m.table) {
        if transaction.rules().store.table(table).len() == 0 {
            continue;
        }
        if m.command == FlowModCommand::Delete && m.matching.is_any() && qualities.none_asked() {
            transaction.empty_table(table, Some(RemovedReason::Delete));
            continue;
        }
        for id in selected(transaction.rules(), table, m, qualities) {
            transaction.remove_entry(id, Some(RemovedReason::Delete));
        }
    }
}

/// Returns the entries of a table to which a modify or delete command applies.
fn selected(rules: &Rules, table: TableId, m: &FlowMod, qualities: Qualities) -> Vec<EntryId> {
    let store = &rules.store;
    let strict = matches!(m.command, FlowModCommand::ModifyStrict | FlowModCommand::DeleteStrict);
    let mut ids = if strict {
        store.find(table, m.priority, &m.matching).into_iter().collect()
    } else {
        store.table(table).covered(store.slots(), &m.matching)
    };
    if !qualities.none_asked() {
        ids.retain(|&id| store.entry(id).is_some_and(|e| qualities.accept(e)));
    }
    ids
}

/// Checks the index of an entry in a linear table, which is an array with at most one entry per index.
fn check_index(transaction: &Transaction<'_>, entry: &FlowEntry, index: u32) -> Result<(), ModelError> {
    let table = entry.table;
    let limit = transaction.config.limits.entries;
    if index as usize >= limit {
        return Err(ModelError::IndexTooLarge { index, limit });
    }
    let store = &transaction.rules().store;
    let there = store.table(table).covered(store.slots(), &entry.matching);
    match there.first().and_then(|&id| store.entry(id)).filter(|e| e.priority != entry.priority) {
        Some(other) => Err(ModelError::IndexTaken { table, index, priority: other.priority }),
        None => Ok(()),
    }
}

/// Checks that there is space for one more entry. An entry that the new entry replaces does not count.
fn check_room(rules: &Rules, config: &ModelConfig, replaced: Option<EntryId>) -> Result<(), ModelError> {
    let limit = config.limits.entries;
    let live = rules.store.live() - usize::from(replaced.is_some());
    let in_use = rules.store.used() - rules.store.table(MAC_TABLE).len();
    if live >= limit {
        return Err(ModelError::TableFull { in_use: live, limit });
    }
    // Removed entries keep their memory until their release, so their number is bounded, too.
    if in_use >= 2 * limit {
        return Err(ModelError::TableFull { in_use, limit: 2 * limit });
    }
    Ok(())
}
