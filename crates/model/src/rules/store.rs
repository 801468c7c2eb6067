// SPDX-License-Identifier: Apache-2.0
//! All entries by ID, and the tables that index them.

use super::slot::{Life, Mark, Slot};
use super::table::Table;
use flow::operation::MAC_TABLE;
use flow::{EntryId, FlowEntry, Match, Nanos, TableId};
use std::sync::Arc;

#[derive(Debug)]
pub(crate) struct Store {
    slots: Vec<Slot>,
    free: Vec<EntryId>,
    tables: Vec<Table>,
    /// Tables to be tidied after the transaction.
    untidy: Vec<TableId>,
    next_serial: u64,
    live: usize,
    used: usize,
}

impl Store {
    pub fn new() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            tables: TableId::all().map(|_| Table::default()).collect(),
            untidy: Vec::new(),
            next_serial: 0,
            live: 0,
            used: 0,
        }
    }

    pub fn table(&self, table: TableId) -> &Table {
        &self.tables[table.index()]
    }

    /// Returns the number of entries in the controller's tables.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Returns the number of IDs in use: entries in tables, learned MACs, and entries waiting for their
    /// release.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Reserves space for `count` more entries in one allocation.
    pub fn reserve(&mut self, count: usize) {
        self.slots.reserve(count.saturating_sub(self.free.len()));
    }

    pub fn slot(&self, id: EntryId) -> Option<&Slot> {
        self.slots.get(id.0 as usize).filter(|s| s.life != Life::Free)
    }

    pub fn slot_mut(&mut self, id: EntryId) -> Option<&mut Slot> {
        self.slots.get_mut(id.0 as usize).filter(|s| s.life != Life::Free)
    }

    /// Returns the entry with this ID, even if it waits for its release.
    pub fn entry(&self, id: EntryId) -> Option<&Arc<FlowEntry>> {
        self.slot(id)?.entry.as_ref()
    }

    pub fn is_listed(&self, id: EntryId, serial: u64) -> bool {
        self.slot(id).is_some_and(|s| s.serial == serial && s.life != Life::Dying)
    }

    /// Returns the entry of a table with this priority and match.
    pub fn find(&self, table: TableId, priority: u16, matching: &Match) -> Option<EntryId> {
        self.table(table).find(&self.slots, priority, matching)
    }

    /// Returns the hash of an entry's priority and match in its table.
    pub fn hash(&self, entry: &FlowEntry) -> u32 {
        self.table(entry.table).hash(entry.priority, &entry.matching)
    }

    /// Returns the entry with the table, priority and match of `entry`, whose hash is given.
    pub fn find_like(&self, entry: &FlowEntry, hash: u32) -> Option<EntryId> {
        self.table(entry.table).find_hashed(&self.slots, hash, entry.priority, &entry.matching)
    }

    /// Puts an entry with its hash into its table under a new ID. An entry of an earlier process has a serial
    /// number; it must be higher than those of all entries that are in tables.
    pub fn insert(
        &mut self,
        mut entry: FlowEntry,
        hash: u32,
        mark: Mark,
        created_ns: Nanos,
        serial: Option<u64>,
    ) -> EntryId {
        let serial = serial.unwrap_or(self.next_serial);
        let free = self.free.pop();
        let id = free.unwrap_or(EntryId(self.slots.len() as u32));
        debug_assert_eq!(hash, self.hash(&entry), "the hash is that of the entry in its table");
        entry.id = id;
        let table = entry.table;
        let slot = Slot {
            entry: Some(Arc::new(entry)),
            serial,
            created_ns,
            hash,
            place: 0,
            life: Life::Fresh,
            mark,
        };
        match free {
            Some(id) => self.slots[id.0 as usize] = slot,
            None => self.slots.push(slot),
        }
        self.next_serial = self.next_serial.max(serial.saturating_add(1));
        self.used += 1;
        self.live += usize::from(table != MAC_TABLE);
        self.tables[table.index()].insert(&mut self.slots, id);
        id
    }

    /// Removes an entry from its table. Its ID stays in use until `release`.
    pub fn unlink(&mut self, id: EntryId) {
        let Some(table) = self.entry(id).map(|e| e.table) else { return };
        self.tables[table.index()].remove(&mut self.slots, id);
        self.note_removals(table);
        self.live -= usize::from(table != MAC_TABLE);
        self.slots[id.0 as usize].life = Life::Dying;
    }

    fn note_removals(&mut self, table: TableId) {
        if self.tables[table.index()].is_untidy() && !self.untidy.contains(&table) {
            self.untidy.push(table);
        }
    }

    /// Frees memory of tables that only undone removals would need. Is called when no transaction is in
    /// progress.
    pub fn tidy(&mut self) {
        for table in self.untidy.drain(..) {
            self.tables[table.index()].tidy();
        }
    }

    /// Removes all entries from a table. Returns their IDs and previous states.
    pub fn unlink_all(&mut self, table: TableId) -> Vec<(EntryId, Life)> {
        let ids = self.tables[table.index()].take_all();
        self.note_removals(table);
        self.live -= if table == MAC_TABLE { 0 } else { ids.len() };
        let slots = &mut self.slots;
        ids.into_iter()
            .map(|id| (id, std::mem::replace(&mut slots[id.0 as usize].life, Life::Dying)))
            .collect()
    }

    /// Undoes `unlink`.
    pub fn relink(&mut self, id: EntryId, life: Life) {
        let Some(table) = self.entry(id).map(|e| e.table) else { return };
        self.slots[id.0 as usize].life = life;
        self.tables[table.index()].insert(&mut self.slots, id);
        self.live += usize::from(table != MAC_TABLE);
    }

    /// Replaces an entry's contents. Table, priority and match must not change.
    pub fn set_entry(&mut self, id: EntryId, entry: Arc<FlowEntry>, mark: Mark) {
        if let Some(slot) = self.slot_mut(id) {
            slot.entry = Some(entry);
            slot.mark = mark;
        }
    }

    /// Releases the ID of an unlinked entry for reuse.
    pub fn release(&mut self, id: EntryId) {
        if let Some(slot) = self.slot_mut(id) {
            slot.life = Life::Free;
            slot.entry = None;
            self.free.push(id);
            self.used -= 1;
        }
    }

    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }
}
