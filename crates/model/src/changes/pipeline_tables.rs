// SPDX-License-Identifier: Apache-2.0
//! The set of tables in the pipeline, which a controller sets by TABLE_FEATURES. Tables that the request does
//! not name are removed, and their entries are deleted without flow-removed messages (OpenFlow 1.3.5, section
//! 7.3.5.5).

use super::transaction::Transaction;
use crate::error::ModelError;
use crate::rules::{Rules, TableSet};
use flow::operation::MAC_TABLE;
use flow::{FlowEntry, FlowMod, FlowModCommand, Instructions, Next, TableId};

/// Replaces the set of pipeline tables. Removes the entries of other tables, and entries that send packets to
/// other tables.
pub(super) fn apply(transaction: &mut Transaction<'_>, tables: TableSet) {
    transaction.set_pipeline_tables(tables);
    for table in TableId::of_controllers().filter(|table| !tables.contains(*table)) {
        if transaction.rules().store.table(table).len() > 0 {
            transaction.empty_table(table, None);
        }
    }
    let leads_out = |entry: &FlowEntry| {
        entry.table != MAC_TABLE && next_of(&entry.instructions).is_some_and(|next| !tables.contains(next))
    };
    transaction.remove_where(None, leads_out, None);
}

/// Refuses a flow-mod if its table or its next table was removed from the pipeline.
pub(super) fn check(rules: &Rules, m: &FlowMod) -> Result<(), ModelError> {
    if let Some(table) = m.table {
        check_table(rules, table)?;
    }
    match m.command {
        FlowModCommand::Add | FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
            check_next(rules, &m.instructions)
        }
        FlowModCommand::Delete | FlowModCommand::DeleteStrict => Ok(()),
    }
}

/// Refuses a table that is not in the pipeline.
pub(super) fn check_table(rules: &Rules, table: TableId) -> Result<(), ModelError> {
    if rules.pipeline_tables.contains(table) { Ok(()) } else { Err(ModelError::RemovedTable(table)) }
}

/// Refuses instructions whose next table is not in the pipeline.
pub(super) fn check_next(rules: &Rules, instructions: &Instructions) -> Result<(), ModelError> {
    match next_of(instructions).filter(|next| !rules.pipeline_tables.contains(*next)) {
        Some(next) => Err(ModelError::RemovedNextTable(next)),
        None => Ok(()),
    }
}

fn next_of(instructions: &Instructions) -> Option<TableId> {
    match instructions.next? {
        Next::Table(table) | Next::Direct { table, .. } => Some(table),
    }
}
