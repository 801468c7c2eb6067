// SPDX-License-Identifier: Apache-2.0
//! TABLE_MOD: creates and deletes tables.

use crate::config::Miss;
use crate::refusal::PofRefusal;
use crate::shared::Shared;
use crate::slot;
use crate::tables::PofTable;
use crate::translate::field::slice;
use dataplane::DataPlane;
use flow::{Action, FlowMod, FlowModCommand, Instructions, TableId, port_no};
use model::Model;
use model::agent::Context;
use pof::error;
use pof::message::table::{PofTableMod, PofTableType, TableCommand};

/// Executes a TABLE_MOD. Returns the answer to a query.
pub fn table_mod<D: DataPlane>(
    m: &PofTableMod,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<Option<PofTableMod>, PofRefusal> {
    slot::check(m.slot)?;
    let table = shared.config.layout.global(m.table_type, m.table).ok_or_else(|| {
        let count = shared.config.layout.count(m.table_type);
        let problem = format!(
            "table {} of type {:?} does not exist; this switch has {count} tables of this type, numbered from 0",
            m.table, m.table_type
        );
        PofRefusal::new(error::TABLE_MOD_BAD_TABLE_ID, problem)
    })?;
    match m.command {
        TableCommand::Add => add(m, table, shared, context).map(|()| None),
        TableCommand::Delete => delete(table, shared, context).map(|()| None),
        TableCommand::Query => {
            let found = shared.tables.get(&table).ok_or_else(|| missing(table))?;
            let command = TableCommand::QueryResult;
            Ok(Some(PofTableMod { command, ..(*found.definition).clone() }))
        }
        TableCommand::Modify | TableCommand::QueryResult => {
            let problem = "TABLE_MOD can add, delete and query tables; to change a table, delete and add it";
            Err(PofRefusal::new(error::TABLE_MOD_BAD_COMMAND, problem))
        }
    }
}

fn missing(table: TableId) -> PofRefusal {
    let problem = format!("table {table} was not created; add it by TABLE_MOD first");
    PofRefusal::new(error::TABLE_MOD_TABLE_UNEXIST, problem)
}

fn add<D: DataPlane>(
    m: &PofTableMod,
    table: TableId,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<(), PofRefusal> {
    if shared.tables.contains_key(&table) {
        let problem = format!("table {table} exists already; delete it first");
        return Err(PofRefusal::new(error::TABLE_MOD_TABLE_EXIST, problem));
    }
    let most = context.model.config().limits.entries;
    if !(1..=most).contains(&(m.entries as usize)) {
        let problem = format!("the size is {} entries; it can be 1 to {most}", m.entries);
        return Err(PofRefusal::new(error::TABLE_MOD_BAD_TABLE_SIZE, problem));
    }
    check_fields(m)?;
    if let Some(entry) = miss_entry(table, m.table_type, shared.config.miss) {
        context.model.flow_mod(context.now, entry)?;
    }
    shared.tables.insert(table, PofTable::new(m.clone()));
    Ok(())
}

/// Checks the fields of a table, and that they have the length of the key.
fn check_fields(m: &PofTableMod) -> Result<(), PofRefusal> {
    let wrong = |problem: String| PofRefusal::new(error::TABLE_MOD_BAD_KEY_LEN, problem);
    if m.table_type == PofTableType::Linear {
        let problem = "a linear (DT) table has no key; give it no match fields";
        return if m.fields.is_empty() { Ok(()) } else { Err(wrong(problem.into())) };
    }
    let mut slices = Vec::with_capacity(m.fields.len());
    let mut bits = 0u32;
    for (n, field) in m.fields.iter().enumerate() {
        let slice = slice(*field).map_err(|problem| wrong(format!("match field {n}: {problem}")))?;
        if slices.contains(&slice) {
            return Err(wrong(format!("match field {n} is given twice; give each field once")));
        }
        slices.push(slice);
        bits += u32::from(field.length_bits);
    }
    if bits != u32::from(m.key_bits) {
        let claimed = m.key_bits;
        return Err(wrong(format!("the key has {claimed} bits, but its fields have {bits} bits together")));
    }
    Ok(())
}

fn delete<D: DataPlane>(
    table: TableId,
    shared: &mut Shared,
    context: &mut Context<'_, D>,
) -> Result<(), PofRefusal> {
    let found = shared.tables.get(&table).ok_or_else(|| missing(table))?;
    let miss = miss_entry(table, found.definition.table_type, shared.config.miss);
    let is_there = |m: &FlowMod| has_miss_entry(context.model, table, m);
    let own = usize::from(miss.as_ref().is_some_and(is_there));
    let entries = context.model.entries_in(table) - own;
    if entries > 0 {
        let problem = format!("table {table} has {entries} entries; delete them first");
        return Err(PofRefusal::new(error::TABLE_MOD_TABLE_UNEMPTY, problem));
    }
    if let Some(miss) = miss {
        let command = FlowModCommand::DeleteStrict;
        context.model.flow_mod(context.now, FlowMod { command, ..miss })?;
    }
    // Entries that have expired may still name counters.
    let gone = shared.tables.remove(&table);
    for (_, record) in gone.iter().flat_map(|table| table.from(0)) {
        if let Some(counter) = record.counter() {
            shared.counters.entry_removed(counter, record.entry);
        }
    }
    Ok(())
}

/// Returns the flow-mod that adds the table-miss entry of a table, if it has one.
pub fn miss_entry(table: TableId, kind: PofTableType, miss: Miss) -> Option<FlowMod> {
    let has_one = miss == Miss::Controller && kind != PofTableType::Linear;
    has_one.then(|| FlowMod {
        table: Some(table),
        priority: 0,
        instructions: Instructions::apply(vec![Action::output(port_no::CONTROLLER)]),
        cookie: MISS_COOKIE,
        ..FlowMod::default()
    })
}

/// Cookie of table-miss entries.
const MISS_COOKIE: u64 = u64::MAX;

/// Returns whether the table-miss entry of the agent is in the table.
fn has_miss_entry<D: DataPlane>(model: &Model<D>, table: TableId, miss: &FlowMod) -> bool {
    let found = model.find(table, miss.priority, &miss.matching);
    found.and_then(|found| model.entry_of(found)).is_some_and(|entry| entry.cookie == MISS_COOKIE)
}
