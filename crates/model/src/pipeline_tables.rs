// SPDX-License-Identifier: Apache-2.0
//! The set of tables in the pipeline. A controller sets it by TABLE_FEATURES; tables that the request does
//! not name are removed (OpenFlow 1.3.5, 7.3.5.5). Entries of removed tables are deleted without flow-removed
//! messages, and none can be added.

use crate::ModelError;
use crate::model::Model;
use crate::stage::Staged;
use crate::store::{Life, Slot};
use dataplane::DataPlane;
use flow::operation::MAC_TABLE;
use flow::{EntryId, FlowEntry, FlowMod, FlowModCommand, Instructions, Next};

/// A set of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSet([u64; 4]);

impl TableSet {
    /// The empty set.
    pub const NONE: Self = Self([0; 4]);
    /// The set of all tables.
    pub const ALL: Self = Self([u64::MAX; 4]);

    /// Returns whether the set contains the table.
    #[must_use]
    pub fn contains(&self, table: u8) -> bool {
        self.0[usize::from(table / 64)] >> (table % 64) & 1 == 1
    }

    /// Adds a table to the set.
    pub fn insert(&mut self, table: u8) {
        self.0[usize::from(table / 64)] |= 1 << (table % 64);
    }
}

impl<D: DataPlane> Model<D> {
    /// Returns the tables of the pipeline.
    #[must_use]
    pub fn pipeline_tables(&self) -> &TableSet {
        &self.pipeline_tables
    }

    /// Replaces the set of pipeline tables. Removes the entries of other tables and the entries that lead to
    /// them.
    pub(crate) fn stage_tables(&mut self, tables: TableSet, staged: &mut Staged) {
        let before = std::mem::replace(&mut self.pipeline_tables, tables);
        staged.tables.get_or_insert(before);
        for table in (0..MAC_TABLE).filter(|table| !tables.contains(*table)) {
            if self.store.table(table).len() > 0 {
                self.stage_delete_table(table, None, staged);
            }
        }
        let leads_out = |entry: &FlowEntry| {
            entry.table != MAC_TABLE
                && next_of(&entry.instructions).is_some_and(|next| !tables.contains(next))
        };
        let wanted = |slot: &Slot| {
            matches!(slot.life, Life::Fresh | Life::Live) && slot.entry.as_ref().is_some_and(|e| leads_out(e))
        };
        let slots = self.store.slots().iter().enumerate();
        let ids: Vec<EntryId> = slots.filter(|(_, slot)| wanted(slot)).map(|(id, _)| id as EntryId).collect();
        for id in ids {
            self.stage_remove(id, None, staged);
        }
    }

    /// Refuses a flow-mod if its table or its next table was removed from the pipeline.
    pub(crate) fn check_tables(&self, m: &FlowMod) -> Result<(), ModelError> {
        if let Some(table) = m.table.filter(|table| !self.pipeline_tables.contains(*table)) {
            return Err(ModelError::RemovedTable(table));
        }
        let next = match m.command {
            FlowModCommand::Add | FlowModCommand::Modify | FlowModCommand::ModifyStrict => {
                next_of(&m.instructions)
            }
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => None,
        };
        match next.filter(|next| !self.pipeline_tables.contains(*next)) {
            Some(next) => Err(ModelError::RemovedNextTable(next)),
            None => Ok(()),
        }
    }
}

fn next_of(instructions: &Instructions) -> Option<u8> {
    match instructions.next? {
        Next::Table(table) | Next::Direct { table, .. } => Some(table),
    }
}
