// SPDX-License-Identifier: Apache-2.0
//! Tables that TABLE_MOD created, and their entries by index.
//!
//! The model knows entries by priority and match. The agent adds the index by which POF names an entry. The
//! index of an entry is free again as soon as the model has removed the entry, for instance after a timeout.
//! The record of such an entry is removed later: see [`PofTable::sweep`].

use dataplane::DataPlane;
use flow::{Match, TableId};
use model::{EntryRef, Model};
use pof::message::packet::PofPacketInReason;
use pof::message::table::{PofFlowMod, PofTableMod};
use pof::value::PofCounterId;
use std::collections::{BTreeMap, HashMap};

/// Number of records examined for each added entry.
const SWEPT: usize = 4;

/// An entry that a controller added.
#[derive(Debug)]
pub struct EntryRecord {
    /// The entry in the model.
    pub entry: EntryRef,
    /// FLOW_MOD that added the entry, for queries.
    pub message: Box<PofFlowMod>,
    /// Reason of the packet-ins of the entry.
    pub packet_in_reason: PofPacketInReason,
}

impl EntryRecord {
    /// Returns the counter of the entry, or `None` if it has none.
    pub fn counter(&self) -> Option<PofCounterId> {
        Some(self.message.counter).filter(|counter| counter.0 != 0)
    }
}

/// A table that TABLE_MOD created.
#[derive(Debug)]
pub struct PofTable {
    /// TABLE_MOD that created the table.
    pub definition: Box<PofTableMod>,
    records: BTreeMap<u32, EntryRecord>,
    /// Index at which the search for records without an entry continues.
    sweep_from: u32,
    /// Index of each record's entry.
    indexes: HashMap<EntryRef, u32>,
}

impl PofTable {
    /// Creates an empty table.
    pub fn new(definition: PofTableMod) -> Self {
        Self {
            definition: Box::new(definition),
            records: BTreeMap::new(),
            sweep_from: 0,
            indexes: HashMap::new(),
        }
    }

    /// Returns the record at an index, if its entry still exists.
    pub fn record<D: DataPlane>(&self, index: u32, model: &Model<D>) -> Option<&EntryRecord> {
        self.records.get(&index).filter(|record| model.is_present(record.entry))
    }

    /// Returns the index of the entry with this priority and match, if a record has it.
    pub fn index_of<D: DataPlane>(
        &self,
        table: TableId,
        priority: u16,
        matching: &Match,
        model: &Model<D>,
    ) -> Option<u32> {
        self.indexes.get(&model.find(table, priority, matching)?).copied()
    }

    /// Returns the reason of the packet-ins of an entry, if a record has it.
    pub fn packet_in_reason(&self, entry: EntryRef) -> Option<PofPacketInReason> {
        let record = self.records.get(self.indexes.get(&entry)?)?;
        (record.entry == entry).then_some(record.packet_in_reason)
    }

    /// Sets the record at an index. Returns the record that it replaces.
    pub fn set(&mut self, index: u32, record: EntryRecord) -> Option<EntryRecord> {
        self.indexes.insert(record.entry, index);
        let before = self.records.insert(index, record);
        if let Some(before) = &before {
            self.forget(before.entry, index);
        }
        before
    }

    /// Removes the record at an index.
    pub fn remove(&mut self, index: u32) -> Option<EntryRecord> {
        let before = self.records.remove(&index)?;
        self.forget(before.entry, index);
        Some(before)
    }

    /// Removes an entry from the map of indexes, unless a newer record has the same entry.
    fn forget(&mut self, entry: EntryRef, index: u32) {
        let is_newer = self.records.get(&index).is_some_and(|record| record.entry == entry);
        if !is_newer {
            self.indexes.remove(&entry);
        }
    }

    /// Removes the record at an index if its entry no longer exists.
    fn remove_dead<D: DataPlane>(&mut self, index: u32, model: &Model<D>) -> Option<EntryRecord> {
        let is_dead = self.records.get(&index).is_some_and(|record| !model.is_present(record.entry));
        if is_dead { self.remove(index) } else { None }
    }

    /// Examines the next [`SWEPT`] records, and removes those whose entries no longer exist. Called for each
    /// added entry, it bounds the records by a small multiple of the entries.
    pub fn sweep<D: DataPlane>(&mut self, model: &Model<D>) -> Vec<EntryRecord> {
        let indexes: Vec<u32> =
            self.records.range(self.sweep_from..).take(SWEPT).map(|(&index, _)| index).collect();
        self.sweep_from = match indexes.last() {
            Some(last) if indexes.len() == SWEPT => last.saturating_add(1),
            _ => 0,
        };
        indexes.into_iter().filter_map(|index| self.remove_dead(index, model)).collect()
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the records from an index on, in the order of their indexes.
    pub fn from(&self, index: u32) -> impl Iterator<Item = (u32, &EntryRecord)> {
        self.records.range(index..).map(|(&index, record)| (index, record))
    }
}

/// All tables by their global number.
pub type PofTables = BTreeMap<TableId, PofTable>;
