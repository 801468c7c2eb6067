// SPDX-License-Identifier: Apache-2.0
//! Flow-mods (OpenFlow 1.3, section 6.4).

use crate::async_messages::RemovedReason;
use crate::change::Change;
use crate::error::ModelError;
use crate::groups::Groups;
use crate::meters::Meters;
use crate::model::Model;
use crate::records::{Use, note_use};
use crate::select::Qualities;
use crate::stage::{Before, Staged, Step};
use crate::store::{Life, Slot};
use dataplane::DataPlane;
use flow::operation::MAC_TABLE;
use flow::validate::{ValidateError, validate};
use flow::{
    Action, EntryChange, EntryId, FlowEntry, FlowMod, FlowModCommand, Instructions, Limits, Match, Nanos,
};
use std::sync::Arc;

/// Numbers of entries that a request changed. An entry that replaces another counts as added, the replaced
/// one as removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Entries added.
    pub added: usize,
    /// Entries whose instructions changed.
    pub modified: usize,
    /// Entries removed.
    pub removed: usize,
}

impl<D: DataPlane> Model<D> {
    /// Applies one flow-mod. It is active once the version that [`Model::barrier`] returns afterwards is
    /// applied.
    ///
    /// # Errors
    /// Returns the error by which OpenFlow 1.3 refuses the flow-mod. Nothing is changed then.
    pub fn flow_mod(&mut self, now: Nanos, m: FlowMod) -> Result<Changed, ModelError> {
        self.change(now, Change::Flow(m))
    }

    /// Deletes all entries of the controller's tables and restores the standalone default entry, in one
    /// operation.
    pub fn clear(&mut self, now: Nanos) -> Changed {
        let all = FlowMod { command: FlowModCommand::Delete, table: None, ..FlowMod::default() };
        let mods = std::iter::once(all).chain(self.default_entries());
        self.bundle(now, mods).unwrap_or_default()
    }

    /// Switches between fail-secure and fail-standalone mode, when a datapath has found or lost its
    /// controllers. Standalone mode deletes all entries of controllers and forwards by learned MACs. Secure
    /// mode deletes the standalone default entry if it is unchanged.
    pub fn set_standalone(&mut self, now: Nanos, standalone: bool) -> Changed {
        let default = self.default_entries().pop();
        self.config.standalone = standalone;
        if standalone {
            return self.clear(now);
        }
        let Some(mut default) = default else { return Changed::default() };
        let there = self.store.find(0, default.priority, &default.matching);
        if !there.and_then(|id| self.store.entry(id)).is_some_and(|e| *e.instructions == default.instructions)
        {
            return Changed::default();
        }
        default.command = FlowModCommand::DeleteStrict;
        self.flow_mod(now, default).unwrap_or_default()
    }

    pub(crate) fn stage_flow_mod(
        &mut self,
        now: Nanos,
        m: FlowMod,
        staged: &mut Staged,
    ) -> Result<(), ModelError> {
        validate(&m)?;
        self.check_tables(&m)?;
        if matches!(m.command, FlowModCommand::Add | FlowModCommand::Modify | FlowModCommand::ModifyStrict) {
            executable(&m.instructions, &self.groups, &self.meters)?;
        }
        match m.command {
            FlowModCommand::Add => self.stage_flow(now, m, staged),
            FlowModCommand::Modify | FlowModCommand::ModifyStrict => self.stage_modify(m, staged),
            FlowModCommand::Delete | FlowModCommand::DeleteStrict => {
                self.stage_delete(&m, staged);
                Ok(())
            }
        }
    }

    fn stage_flow(&mut self, now: Nanos, m: FlowMod, staged: &mut Staged) -> Result<(), ModelError> {
        let table = m.table.ok_or(ValidateError::Table)?;
        if m.flags.check_overlap
            && self.store.table(table).overlaps(self.store.slots(), m.priority, &m.matching)
        {
            return Err(ModelError::Overlap { table, priority: m.priority });
        }
        if let Some(index) = m.matching.index() {
            self.check_index(table, index, m.priority, &m.matching)?;
        }
        let slices = self.store.table(table).slices_with(&m.matching);
        if slices > Limits::SLICES_PER_TABLE {
            return Err(ModelError::TooManySlices { table, slices });
        }
        let replaced = self.store.find(table, m.priority, &m.matching);
        self.check_room(replaced.is_some())?;
        let reset = m.flags.reset_counts;
        let entry = FlowEntry {
            id: 0,
            table,
            priority: m.priority,
            matching: m.matching,
            instructions: self.sharing.share(m.instructions),
            idle_timeout_s: m.idle_timeout_s,
            hard_timeout_s: m.hard_timeout_s,
            cookie: m.cookie,
            flags: m.flags,
            low_latency: m.low_latency.unwrap_or(self.config.is_marked_by_cookie(m.cookie)),
        };
        self.stage_add(now, entry, m.low_latency, replaced, !reset, staged);
        Ok(())
    }

    fn stage_modify(&mut self, m: FlowMod, staged: &mut Staged) -> Result<(), ModelError> {
        let table = m.table.ok_or(ValidateError::Table)?;
        let strict = m.command == FlowModCommand::ModifyStrict;
        let ids = self.selected(table, strict, m.priority, &m.matching, Qualities::of_modify(&m));
        let instructions = self.sharing.share(m.instructions);
        for id in ids {
            let Some(slot) = self.store.slot(id) else { continue };
            let (mark, Some(before)) = (slot.mark, slot.entry.clone()) else { continue };
            let mut entry = FlowEntry::clone(&before);
            entry.instructions = Arc::clone(&instructions);
            entry.low_latency = m.low_latency.unwrap_or(before.low_latency);
            staged.changes.push(EntryChange::Modify {
                id,
                table,
                instructions: Arc::clone(&instructions),
                low_latency: entry.low_latency,
                reset_counts: m.flags.reset_counts,
            });
            note_use(&mut self.groups, &mut self.meters, &before.instructions, Use::Ends);
            note_use(&mut self.groups, &mut self.meters, &entry.instructions, Use::Begins);
            self.store.set_entry(id, Arc::new(entry), mark.after(m.low_latency));
            let carried = self.carried.get(&id).copied();
            staged.log.push(Step::Modified(Box::new(Before { id, entry: before, mark, carried })));
            staged.changed.modified += 1;
            if m.flags.reset_counts {
                // The data plane resets its own counters when the change is active; only the carried counts
                // go here.
                self.carried.remove(&id);
            }
        }
        Ok(())
    }

    fn stage_delete(&mut self, m: &FlowMod, staged: &mut Staged) {
        let strict = m.command == FlowModCommand::DeleteStrict;
        let qualities = Qualities::of_delete(m);
        let (first, last) = m.table.map_or((0, MAC_TABLE - 1), |t| (t, t));
        for table in first..=last {
            if self.store.table(table).len() == 0 {
                continue;
            }
            if !strict && m.matching.is_any() && qualities.none_asked() {
                self.stage_delete_table(table, Some(RemovedReason::Delete), staged);
                continue;
            }
            for id in self.selected(table, strict, m.priority, &m.matching, qualities) {
                self.stage_remove(id, Some(RemovedReason::Delete), staged);
            }
        }
    }

    /// Removes the entries that use a group or a meter. `users` is an upper bound of their number, at which
    /// the scan of all entries stops.
    pub(crate) fn stage_remove_users(
        &mut self,
        users: usize,
        uses: impl Fn(&FlowEntry) -> bool,
        reason: RemovedReason,
        staged: &mut Staged,
    ) {
        let wanted = |slot: &Slot| {
            matches!(slot.life, Life::Fresh | Life::Live) && slot.entry.as_ref().is_some_and(|e| uses(e))
        };
        let slots = self.store.slots().iter().enumerate();
        let wanted = slots.filter(|(_, slot)| wanted(slot)).map(|(id, _)| id as EntryId);
        let ids: Vec<EntryId> = wanted.take(users).collect();
        for id in ids {
            self.stage_remove(id, Some(reason), staged);
        }
    }

    /// Empties a table without looking up its entries one by one.
    pub(crate) fn stage_delete_table(
        &mut self,
        table: u8,
        reason: Option<RemovedReason>,
        staged: &mut Staged,
    ) {
        let ids = self.store.unlink_all(table);
        staged.changes.reserve(ids.len());
        staged.log.reserve(ids.len());
        for (id, was) in ids {
            self.log_removal(id, was, reason, staged);
        }
    }

    /// Returns the number of entries that must be examined to find the entries that a match covers.
    pub(crate) fn covered_cost(&self, table: Option<u8>, matching: &Match) -> usize {
        let (first, last) = table.map_or((0, MAC_TABLE - 1), |t| (t, t));
        (first..=last).map(|table| self.store.table(table).covered_cost(matching)).sum()
    }

    fn selected(
        &self,
        table: u8,
        strict: bool,
        priority: u16,
        matching: &Match,
        qualities: Qualities,
    ) -> Vec<EntryId> {
        let mut ids = if strict {
            self.store.find(table, priority, matching).into_iter().collect()
        } else {
            self.store.table(table).covered(self.store.slots(), matching)
        };
        if !qualities.none_asked() {
            ids.retain(|&id| self.store.entry(id).is_some_and(|e| qualities.accept(e)));
        }
        ids
    }

    /// Checks the index of an entry in a linear table. A linear table is an array: its indices are bounded,
    /// and each has at most one entry.
    fn check_index(&self, table: u8, index: u32, priority: u16, matching: &Match) -> Result<(), ModelError> {
        let limit = self.config.limits.entries;
        if index as usize >= limit {
            return Err(ModelError::IndexTooLarge { index, limit });
        }
        let there = self.store.table(table).covered(self.store.slots(), matching);
        match there.first().and_then(|&id| self.store.entry(id)).filter(|e| e.priority != priority) {
            Some(other) => Err(ModelError::IndexTaken { table, index, priority: other.priority }),
            None => Ok(()),
        }
    }

    fn check_room(&self, replaces: bool) -> Result<(), ModelError> {
        let limit = self.config.limits.entries;
        let live = self.store.live() - usize::from(replaces);
        let in_use = self.store.used() - self.store.table(MAC_TABLE).len();
        if live >= limit {
            return Err(ModelError::TableFull { in_use: live, limit });
        }
        // Removed entries keep their memory until their release, so a burst of adds and deletes needs a bound
        // too.
        if in_use >= 2 * limit {
            return Err(ModelError::TableFull { in_use, limit: 2 * limit });
        }
        Ok(())
    }
}

/// Refuses instructions that use a missing group or meter: an error now is better than dropped packets later.
pub(crate) fn executable(
    instructions: &Instructions,
    groups: &Groups,
    meters: &Meters,
) -> Result<(), ModelError> {
    if let Some(meter) = instructions.meter.filter(|meter| !meters.contains_key(meter)) {
        return Err(ModelError::NoSuchMeter(meter));
    }
    for action in instructions.apply.iter().chain(&instructions.write) {
        if let Action::Group(group) = action
            && groups.get(*group).is_none()
        {
            return Err(ModelError::NoSuchGroup(*group));
        }
    }
    Ok(())
}
