// SPDX-License-Identifier: Apache-2.0
//! Flow-mods, and bundles of flow-mods.

use super::{Driver, LIVE_TRIES, Subject};
use crate::rules::Scope;
use flow::{Action, EntryFlags, FlowMod, FlowModCommand, GroupId, Instructions, QueueId, TableId};
use model::{Change, GroupCommand};

impl Driver {
    /// Makes one flow-mod that affects an entry that the packet hits, or a table in which the packet misses.
    pub(super) fn change_entry(&mut self, subject: &Subject) -> Result<(), String> {
        for _ in 0..LIVE_TRIES {
            let m = self.change(subject);
            let operations = self.model.plane_mut().operations.len();
            let done = self.model.flow_mod(self.now, m);
            if done.is_ok() && self.model.plane_mut().operations.len() > operations {
                return self.account(subject);
            }
        }
        Ok(())
    }

    /// Returns a flow-mod that affects an entry that the packet hits, or a table in which the packet misses.
    fn change(&mut self, subject: &Subject) -> FlowMod {
        let hits = &subject.before.hits;
        let (table, entry) = match hits.len() {
            0 => (TableId(0), None),
            n => hits[self.rng.usize(0..n)],
        };
        let hit = entry.and_then(|id| self.shadow.entries(table).iter().find(|e| e.id == id).cloned());
        let template = &self.templates[subject.template];
        let Some(hit) = hit else {
            return if self.rng.u8(0..4) > 0 {
                self.style.last_resort(&mut self.rng, table, template, subject.port)
            } else {
                self.style.entry(&mut self.rng, table, template, subject.port)
            };
        };
        let same = FlowMod {
            flags: EntryFlags { reset_counts: self.rng.u8(0..4) == 0, ..EntryFlags::default() },
            table: Some(table),
            priority: hit.priority,
            matching: hit.matching.clone(),
            cookie: 0,
            ..FlowMod::default()
        };
        let entry = self.style.entry(&mut self.rng, table, template, subject.port);
        let scope = Scope::of(template, subject.port).matching(&mut self.rng, &hit.matching);
        let instructions = self.style.instructions(&mut self.rng, table, scope);
        // If the hit entry has the highest priority, no other entry can precede it.
        let above = hit.priority.checked_add(self.rng.u16(1..4));
        match (self.rng.u8(0..10), above) {
            (0..2, _) => FlowMod { command: FlowModCommand::DeleteStrict, ..same },
            (2, _) if !hit.matching.is_any() || self.rng.u8(0..4) == 0 => {
                FlowMod { command: FlowModCommand::Delete, ..same }
            }
            (3 | 4, _) => FlowMod { command: FlowModCommand::ModifyStrict, instructions, ..same },
            (5, _) => FlowMod { command: FlowModCommand::Modify, instructions, ..same },
            (2 | 6, _) | (_, None) => FlowMod { instructions, low_latency: entry.low_latency, ..same },
            // An earlier table may have changed the packet, so the new match is derived from the match of the
            // hit entry.
            (_, Some(priority)) if table > TableId(0) && self.rng.u8(0..4) > 0 => {
                FlowMod { priority, matching: hit.matching.clone(), instructions, ..entry }
            }
            (_, Some(priority)) => FlowMod { priority, ..entry },
        }
    }

    /// Deletes entries by an output port or group of a test packet, in one table or in all tables.
    pub(super) fn delete_senders(&mut self) -> Result<(), String> {
        let subject = self.subject(|processed| !processed.groups.is_empty());
        let group = subject.before.groups.first().map(|(id, _)| *id);
        let out_group = group.filter(|_| self.rng.u8(0..4) > 0);
        let out_port = match out_group {
            Some(_) => None,
            None => subject.before.sent.first().map(|copy| copy.port),
        };
        if out_group.is_none() && out_port.is_none() {
            return Ok(());
        }
        let table = subject.before.hits.last().map(|(table, _)| *table).filter(|_| self.rng.u8(0..4) > 0);
        let delete =
            FlowMod { command: FlowModCommand::Delete, table, out_port, out_group, ..FlowMod::default() };
        let operations = self.model.plane_mut().operations.len();
        if self.model.flow_mod(self.now, delete).is_ok()
            && self.model.plane_mut().operations.len() > operations
        {
            let changes = &mut self.record.changes;
            *if out_group.is_some() {
                &mut changes.deletes_by_group
            } else {
                &mut changes.deletes_by_port
            } += 1;
        }
        // A delete filtered by port does not select entries that send by NORMAL, a flood or a group.
        self.account_if_live(&subject)
    }

    /// Moves a flow to another egress queue of its output port, by adding an entry that is not low-latency.
    pub(super) fn requeue(&mut self, subject: &Subject) -> Result<(), String> {
        let egress = subject.before.sent.first().map_or(subject.port, |copy| copy.port);
        let (table, hit) = subject.before.hits.first().copied().unwrap_or_default();
        let hit = self.shadow.entries(table).iter().find(|entry| Some(entry.id) == hit);
        let priority = hit.map_or(1, |entry| entry.priority.saturating_add(1));
        let apply = vec![Action::SetQueue(QueueId(self.rng.u32(0..3))), Action::output(egress)];
        let entry = self.style.entry(&mut self.rng, table, &self.templates[subject.template], subject.port);
        let requeues =
            FlowMod { priority, instructions: Instructions::apply(apply), low_latency: Some(false), ..entry };
        drop(self.model.flow_mod(self.now, requeues));
        self.follow()
    }

    /// Makes many changes at once, which workers apply as a swap: replaces the entries of a table, or those
    /// with one cookie, or modifies all entries.
    pub(super) fn swap_table(&mut self, subject: &Subject) -> Result<(), String> {
        let table = subject.before.hits.first().map_or(TableId(0), |(table, _)| *table);
        let mut mods = if self.rng.u8(0..4) == 0 { self.modify_all(table) } else { self.replace_all(table) };
        if self.rng.u8(0..8) > 0 {
            mods.push(self.random_resort(table));
        }
        let mut changes: Vec<Change> = mods.into_iter().map(Change::Flow).collect();
        if self.style.groups > 0 && self.rng.bool() {
            let id = GroupId(self.rng.u32(1..=self.style.groups));
            let group = self.random_group(id);
            changes.insert(self.rng.usize(0..=changes.len()), Change::Group(GroupCommand::Modify, group));
        }
        drop(self.model.bundle(self.now, changes));
        self.account(subject)
    }

    fn replace_all(&mut self, table: TableId) -> Vec<FlowMod> {
        let mut delete =
            FlowMod { command: FlowModCommand::Delete, table: Some(table), ..FlowMod::default() };
        if self.rng.u8(0..4) == 0 {
            delete.cookie = self.rng.u64(0..4);
            delete.cookie_mask = 3;
        }
        let mut mods = vec![delete];
        for _ in 0..self.rng.usize(0..80) {
            mods.push(self.random_entry(table));
        }
        mods
    }

    fn modify_all(&mut self, table: TableId) -> Vec<FlowMod> {
        let instructions = self.random_resort(table).instructions;
        let flags = EntryFlags { reset_counts: self.rng.bool(), ..EntryFlags::default() };
        let command = FlowModCommand::Modify;
        vec![FlowMod { command, table: Some(table), instructions, flags, ..FlowMod::default() }]
    }
}
