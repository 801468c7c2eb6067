// SPDX-License-Identifier: Apache-2.0
//! FLOW_MOD: adds, replaces, deletes and queries entries by index.

use crate::refusal::PofRefusal;
use crate::shared::Shared;
use crate::slot;
use crate::table_mod::miss_entry;
use crate::tables::{EntryRecord, PofTable};
use crate::translate::{self, TableKey, Translated, counter_group};
use dataplane::DataPlane;
use flow::group::{Bucket, Group, GroupType};
use flow::{EntryFlags, FlowEntry, FlowMod, FlowModCommand, TableId};
use model::agent::Context;
use model::{Change, GroupCommand, Model, ModelError};
use pof::error;
use pof::message::table::{FlowCommand, PofFlowMod};
use std::sync::Arc;

/// Executes a FLOW_MOD other than a query.
pub fn flow_mod<D: DataPlane>(
    m: &PofFlowMod,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<(), PofRefusal> {
    let table = find_table(m, shared)?;
    match m.command {
        FlowCommand::Add => add(m, table, shared, context),
        FlowCommand::Modify => modify(m, table, shared, context),
        FlowCommand::Delete => delete(m, table, shared, context),
        FlowCommand::ModifyStrict | FlowCommand::DeleteStrict => {
            let problem =
                "entries are named by their index, so there is no strict command; use MODIFY or DELETE";
            Err(PofRefusal::new(error::FLOW_MOD_BAD_COMMAND, problem))
        }
        FlowCommand::Query | FlowCommand::QueryResult => {
            let problem = "QUERY_RESULT is an answer of the switch";
            Err(PofRefusal::new(error::FLOW_MOD_BAD_COMMAND, problem))
        }
    }
}

/// Returns the answer to a query for one entry.
pub fn query<D: DataPlane>(
    m: &PofFlowMod,
    shared: &Shared,
    context: &mut Context<'_, D>,
) -> Result<PofFlowMod, PofRefusal> {
    let table = find_table(m, shared)?;
    let found = shared.tables.get(&table).and_then(|found| found.record(m.index, context.model));
    found.map(result).ok_or_else(|| missing(table, m.index))
}

/// Returns the QUERY_RESULT for an entry.
pub fn result(record: &EntryRecord) -> PofFlowMod {
    PofFlowMod { command: FlowCommand::QueryResult, ..(*record.message).clone() }
}

fn missing(table: TableId, index: u32) -> PofRefusal {
    let problem = format!("table {table} has no entry with index {index}");
    PofRefusal::new(error::FLOW_MOD_ENTRY_UNEXIST, problem)
}

/// Returns the global number of the table, which TABLE_MOD must have created.
fn find_table(m: &PofFlowMod, shared: &Shared) -> Result<TableId, PofRefusal> {
    slot::check(m.slot)?;
    let table = shared.config.layout.global(m.table_type, m.table);
    let found = table.and_then(|table| Some((table, shared.tables.get(&table)?)));
    let Some((table, found)) = found else {
        let problem = format!(
            "table {} of type {:?} was not created; add it by TABLE_MOD first",
            m.table, m.table_type
        );
        return Err(PofRefusal::new(error::FLOW_MOD_BAD_TABLE_ID, problem));
    };
    let size = found.definition.entries;
    if m.index >= size {
        let problem =
            format!("index {} is too large; table {table} has the indexes 0 to {}", m.index, size - 1);
        return Err(PofRefusal::new(error::FLOW_MOD_BAD_ENTRY_ID, problem));
    }
    Ok(table)
}

fn translate(
    m: &PofFlowMod,
    table: TableId,
    shared: &Shared,
    found: &PofTable,
) -> Result<Translated, PofRefusal> {
    let (kind, fields) = (found.definition.table_type, &found.definition.fields);
    let config = &shared.config;
    translate::entry(m, TableKey { table, kind, fields }, &config.layout, config.dialect)
}

fn add<D: DataPlane>(
    m: &PofFlowMod,
    table: TableId,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<(), PofRefusal> {
    let Some(found) = shared.tables.get(&table) else { return Err(missing(table, m.index)) };
    if found.record(m.index, context.model).is_some() {
        let problem = format!("table {table} has an entry with index {} already; use MODIFY", m.index);
        return Err(PofRefusal::new(error::FLOW_MOD_ENTRY_EXIST, problem));
    }
    let mut translated = translate(m, table, shared, found)?;
    refuse_twin(m.index, table, &translated.flow, found, context.model)?;
    // The entry may take the place of the table-miss entry, or of an entry of another controller.
    if context.model.find(table, translated.flow.priority, &translated.flow.matching).is_some() {
        translated.flow.flags = from_0();
    }
    let before = Before { changes: Vec::new(), keeps_counts: false };
    install(m, table, translated, before, shared, context)?;
    sweep(table, shared, context.model);
    Ok(())
}

fn modify<D: DataPlane>(
    m: &PofFlowMod,
    table: TableId,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<(), PofRefusal> {
    let Some((found, record, entry)) = existing(m.index, table, shared, context.model) else {
        return Err(missing(table, m.index));
    };
    let counter = record.counter();
    let mut translated = translate(m, table, shared, found)?;
    refuse_twin(m.index, table, &translated.flow, found, context.model)?;
    let is_same = entry.priority == translated.flow.priority && entry.matching == translated.flow.matching;
    let keeps_counts = is_same && counter.unwrap_or_default() == m.counter;
    let changes = if is_same { Vec::new() } else { removal(&entry, found, shared) };
    if !keeps_counts {
        translated.flow.flags = from_0();
    }
    install(m, table, translated, Before { changes, keeps_counts }, shared, context)
}

fn delete<D: DataPlane>(
    m: &PofFlowMod,
    table: TableId,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<(), PofRefusal> {
    let Some((found, record, entry)) = existing(m.index, table, shared, context.model) else {
        return Err(missing(table, m.index));
    };
    let (old, counter) = (record.entry, record.counter());
    let changes = removal(&entry, found, shared);
    context.model.bundle(context.now, changes).map_err(|(_, error)| error)?;
    if let Some(found) = shared.tables.get_mut(&table) {
        found.remove(m.index);
    }
    if let Some(counter) = counter {
        shared.counters.entry_removed(counter, old);
    }
    Ok(())
}

/// Returns the table, record and entry at an index, if the entry exists.
fn existing<'a, D: DataPlane>(
    index: u32,
    table: TableId,
    shared: &'a Shared,
    model: &Model<D>,
) -> Option<(&'a PofTable, &'a EntryRecord, Arc<FlowEntry>)> {
    let found = shared.tables.get(&table)?;
    let record = found.record(index, model)?;
    let entry = Arc::clone(model.entry_of(record.entry)?);
    Some((found, record, entry))
}

/// Refuses an entry if another index of the table has its priority and match.
fn refuse_twin<D: DataPlane>(
    index: u32,
    table: TableId,
    flow: &FlowMod,
    found: &PofTable,
    model: &Model<D>,
) -> Result<(), PofRefusal> {
    match found.index_of(table, flow.priority, &flow.matching, model) {
        Some(other) if other != index => {
            let problem = format!(
                "the entry with index {other} of table {table} has the same priority and match; change or \
                 delete it first"
            );
            Err(PofRefusal::new(error::FLOW_MOD_ENTRY_EXIST, problem))
        }
        _ => Ok(()),
    }
}

/// Returns the changes that remove an entry, and restore the table-miss entry that it may have replaced.
fn removal(entry: &FlowEntry, found: &PofTable, shared: &Shared) -> Vec<Change> {
    let command = FlowModCommand::DeleteStrict;
    let (priority, matching) = (entry.priority, entry.matching.clone());
    let table = Some(entry.table);
    let mut changes =
        vec![Change::Flow(FlowMod { command, table, priority, matching, ..FlowMod::default() })];
    if entry.priority == 0 && entry.matching.is_any() {
        let miss = miss_entry(entry.table, found.definition.table_type, shared.config.miss);
        changes.extend(miss.map(Change::Flow));
    }
    changes
}

/// Returns the flags of an entry that does not continue the counts of the entry that it replaces.
fn from_0() -> EntryFlags {
    EntryFlags { reset_counts: true, ..EntryFlags::default() }
}

/// What precedes an entry at its index.
struct Before {
    /// Changes that come first, in the same transaction.
    changes: Vec<Change>,
    /// Whether the entry continues the counts of the entry that it replaces.
    keeps_counts: bool,
}

/// Removes some records whose entries no longer exist.
fn sweep<D: DataPlane>(table: TableId, shared: &mut Shared, model: &Model<D>) {
    let Some(found) = shared.tables.get_mut(&table) else { return };
    for record in found.sweep(model) {
        if let Some(counter) = record.counter() {
            shared.counters.entry_removed(counter, record.entry);
        }
    }
}

/// Adds a translated entry, and records it.
fn install<D: DataPlane>(
    m: &PofFlowMod,
    table: TableId,
    translated: Translated,
    before: Before,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<(), PofRefusal> {
    let Before { mut changes, keeps_counts } = before;
    let Translated { flow, mut counters, packet_in_reason } = translated;
    counters.sort_unstable();
    counters.dedup();
    for counter in counters.iter().chain(Some(&m.counter)) {
        shared.counters.check_room(*counter)?;
    }
    for counter in &counters {
        let id = counter_group(*counter)?;
        if context.model.group_numbered(id).is_none() {
            let group = Group { id, kind: GroupType::Indirect, buckets: vec![Bucket::default()] };
            changes.push(Change::Group(GroupCommand::Add, group));
        }
    }
    let (priority, matching) = (flow.priority, flow.matching.clone());
    changes.push(Change::Flow(flow));
    context.model.bundle(context.now, changes).map_err(|(_, error)| refused(error))?;
    let added = context.model.find(table, priority, &matching);
    let (Some(entry), Some(found)) = (added, shared.tables.get_mut(&table)) else { return Ok(()) };
    let record = EntryRecord { entry, message: Box::new(m.clone()), packet_in_reason };
    let counter = record.counter();
    let before = found.set(m.index, record);
    if counter.is_some() {
        context.model.keep_counts(entry);
    }
    match (counter, &before) {
        (Some(id), Some(before)) if keeps_counts => {
            shared.counters.entry_continues(id, before.entry, entry);
        }
        (Some(id), _) => shared.counters.entry_begins(id, entry),
        (None, _) => {}
    }
    if let Some(before) = before.filter(|_| !keeps_counts)
        && let Some(id) = before.counter()
    {
        shared.counters.entry_removed(id, before.entry);
    }
    for id in counters {
        let counter = shared.counters.or_create(id);
        counter.is_kept = true;
        counter.groups.entry(counter_group(id)?).or_default();
    }
    Ok(())
}

/// Returns the refusal of an entry. If there is no space for a counter's group, the code names the counter.
fn refused(error: ModelError) -> PofRefusal {
    match error {
        ModelError::TooManyGroups | ModelError::NoRoomForBuckets { .. } => {
            let problem = "too many counters are used by the action COUNTER; delete some by COUNTER_MOD";
            PofRefusal::new(error::FLOW_MOD_BAD_COUNTER_ID, problem)
        }
        error => error.into(),
    }
}
