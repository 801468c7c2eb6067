// SPDX-License-Identifier: Apache-2.0
//! Tables as plain lists of entries, in the order in which the entries are tried.

use crate::fields::matches;
use crate::packet::ReferencePacket;
use flow::operation::MAC_TABLE;
use flow::{Action, EntryChange, EntryId, Field, FlowEntry, Instructions, PortNo, TableId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Tables {
    /// Entries by descending priority. Entries of equal priority are in the order in which they were added.
    tables: BTreeMap<TableId, Vec<Arc<FlowEntry>>>,
    living: BTreeSet<EntryId>,
}

impl Tables {
    /// Returns a table's entries in the order in which they are tried.
    pub fn entries(&self, table: TableId) -> &[Arc<FlowEntry>] {
        self.tables.get(&table).map_or(&[], Vec::as_slice)
    }

    /// Returns the first entry that matches the packet.
    pub fn lookup(&self, table: TableId, packet: &ReferencePacket) -> Option<Arc<FlowEntry>> {
        self.entries(table).iter().find(|entry| matches(packet, &entry.matching)).cloned()
    }

    /// Returns the entry at this index of a linear table.
    pub fn at_index(&self, table: TableId, index: u32) -> Option<Arc<FlowEntry>> {
        self.entries(table).iter().find(|entry| entry.matching.index() == Some(index)).cloned()
    }

    /// Returns the port on which a MAC address was learned, and the entry that records it.
    pub fn learned(&self, vid: u16, mac: u64) -> Option<(EntryId, PortNo)> {
        let is_for = |entry: &&Arc<FlowEntry>| {
            entry.matching.get(Field::VlanVid).is_some_and(|c| c.value == u128::from(vid))
                && entry.matching.get(Field::EthDst).is_some_and(|c| c.value == u128::from(mac))
        };
        let entry = self.entries(MAC_TABLE).iter().find(is_for)?;
        Some((entry.id, the_output(&entry.instructions)?))
    }

    /// Returns the number of MAC addresses that are learned on a port.
    pub fn learned_at(&self, port: PortNo) -> usize {
        let outputs = self.entries(MAC_TABLE).iter().map(|entry| the_output(&entry.instructions));
        outputs.filter(|output| *output == Some(port)).count()
    }

    pub fn change(&mut self, change: &EntryChange) -> Result<(), String> {
        match change {
            EntryChange::Add(entry) => self.add(entry),
            EntryChange::Modify { id, table, instructions, low_latency, .. } => {
                let old = self.find(*id, *table)?;
                let new = FlowEntry {
                    instructions: Arc::clone(instructions),
                    low_latency: *low_latency,
                    ..FlowEntry::clone(old)
                };
                check(&new)?;
                *old = Arc::new(new);
                Ok(())
            }
            EntryChange::Remove { id, table } => {
                self.find(*id, *table)?;
                self.tables.entry(*table).or_default().retain(|entry| entry.id != *id);
                self.living.remove(id);
                Ok(())
            }
        }
    }

    fn find(&mut self, id: EntryId, table: TableId) -> Result<&mut Arc<FlowEntry>, String> {
        let entries = self.tables.entry(table).or_default();
        entries
            .iter_mut()
            .find(|entry| entry.id == id)
            .ok_or_else(|| format!("there is no entry {id} in table {table}; add it first"))
    }

    fn add(&mut self, new: &Arc<FlowEntry>) -> Result<(), String> {
        check(new)?;
        let id = new.id;
        if self.living.contains(&id) {
            return Err(format!("entry {id} exists already; remove it before reusing its ID"));
        }
        let entries = self.tables.entry(new.table).or_default();
        let twin = |e: &&Arc<FlowEntry>| e.priority == new.priority && e.matching == new.matching;
        if let Some(twin) = entries.iter().find(twin) {
            return Err(format!(
                "entry {} of table {} has the priority and match of entry {id}; modify or remove it instead",
                twin.id, new.table
            ));
        }
        let place = entries.iter().position(|e| e.priority < new.priority).unwrap_or(entries.len());
        entries.insert(place, Arc::clone(new));
        self.living.insert(id);
        Ok(())
    }
}

/// Checks the interpreter's preconditions. A goto must lead to a higher table. Entries of learned MAC
/// addresses must have the form that NORMAL reads, and no goto may lead to their table.
fn check(entry: &FlowEntry) -> Result<(), String> {
    let FlowEntry { id, table, .. } = entry;
    if let Some(next) = entry.instructions.next {
        let next = next.table();
        if next <= *table || next == MAC_TABLE {
            return Err(format!(
                "entry {id} of table {table} goes to table {next}; it must go to a higher one, up to {}",
                TableId::LAST
            ));
        }
    }
    if *table != MAC_TABLE {
        return Ok(());
    }
    let masks: Vec<_> = entry.matching.fields().map(|c| (c.field, c.mask)).collect();
    if masks != [(Field::EthDst, 0xffff_ffff_ffff), (Field::VlanVid, 0xfff)] {
        return Err(format!(
            "entry {id} of table {MAC_TABLE} must match dl_dst and vlan_vid/0xfff, and nothing else"
        ));
    }
    if the_output(&entry.instructions).is_none() {
        return Err(format!("entry {id} of table {MAC_TABLE} must apply one output, and nothing else"));
    }
    Ok(())
}

/// Returns the output port if the instructions consist of one apply-actions instruction with one output.
fn the_output(instructions: &Instructions) -> Option<PortNo> {
    match instructions.apply.as_slice() {
        [action @ Action::Output { port, .. }] => {
            (*instructions == Instructions::apply(vec![action.clone()])).then_some(*port)
        }
        _ => None,
    }
}
