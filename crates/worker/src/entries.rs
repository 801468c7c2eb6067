// SPDX-License-Identifier: Apache-2.0
//! The control side of entries: the program, the statistics cell and the lane of each entry that is not
//! released yet.

use crate::cell_store::CellStore;
use crate::programs::{ProgramKind, Programs};
use crate::requeues::{Choice, Requeues};
use actions::{Program, ProgramId};
use dataplane::EntryCounters;
use flow::operation::MAC_TABLE;
use flow::{EntryChange, EntryId, FlowEntry, RuleVersion, TableId};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry::{Occupied, Vacant};
use pipeline::Update;
use std::collections::BTreeMap;
use std::sync::Arc;
use tables::rule_table::RuleChange;

/// If an operation modifies more entries than this, their cells are replaced page by page instead of one by
/// one.
const MODIFIES_SINGLY: usize = 64;

/// The compiled state of one entry.
#[derive(Clone, Copy, Debug)]
struct Running {
    program: ProgramId,
    kind: ProgramKind,
    /// The ways in which the entry's instructions may choose an egress queue.
    choice: Choice,
}

/// Effect of entry changes on one table.
#[derive(Debug, Default)]
pub(crate) struct TableChanges {
    /// Rules that are added to the table and removed from it.
    pub rules: Vec<RuleChange>,
    /// Entries that a modify command made low-latency (true) or normal (false).
    pub marks: Vec<(EntryId, bool)>,
    /// Change of the number of low-latency entries in the table.
    pub low_latency: isize,
}

/// Effect of entry changes.
#[derive(Debug, Default)]
pub(crate) struct Applied {
    /// Effect on each table that changes.
    pub tables: BTreeMap<TableId, TableChanges>,
    pub modified: Modified,
    /// `Some` if flows may move to another lane: whether they may also become low-latency. Changes of the MAC
    /// table do not count.
    pub lanes: Option<bool>,
}

impl Applied {
    /// Notes that flows of an entry may move to another lane.
    fn note_lanes(&mut self, table: TableId, promotes: bool) {
        if table != MAC_TABLE {
            self.lanes = Some(promotes || self.lanes.unwrap_or_default());
        }
    }
}

/// Entries that an operation modifies.
#[derive(Debug, Default)]
pub(crate) struct Modified {
    programs: Vec<(EntryId, ProgramId)>,
    /// Entries whose counters restart at 0.
    reset: Vec<EntryId>,
}

impl Modified {
    /// Returns whether so many entries are modified that their cells must be replaced.
    fn is_big(&self) -> bool {
        self.programs.len() > MODIFIES_SINGLY
    }

    /// Appends the modified entries to each worker's updates, unless their cells were replaced.
    pub fn updates(&self, parts: &mut [Vec<Update>]) {
        if self.is_big() {
            // A new page of cells has the new programs, and its counters start at 0.
            return;
        }
        for parts in parts {
            parts.extend(self.programs.iter().map(|(id, program)| Update::Entry(*id, *program)));
            parts.extend(self.reset.iter().map(|id| Update::ResetCounts(*id)));
        }
    }
}

/// All entries that are not released yet.
#[derive(Debug)]
pub(crate) struct Entries {
    programs: Programs,
    cells: CellStore,
    /// Compiled state by entry ID.
    running: Vec<Option<Running>>,
}

impl Entries {
    /// Creates no entries for `workers` workers. `views` is their number with search workers, whose hits do
    /// not count.
    pub fn new(workers: usize, views: usize) -> Self {
        Self { programs: Programs::default(), cells: CellStore::new(workers, views), running: Vec::new() }
    }

    /// Returns the program that an entry runs.
    pub fn program(&self, id: EntryId) -> Option<&Program> {
        let running = self.running.get(id.0 as usize)?.as_ref()?;
        self.programs.get(running.program)
    }

    /// Applies changes that become active with `version`. Returns their effect.
    ///
    /// With `defer_programs`, added entries get no program and no cell. No entry may then be modified, and
    /// the caller must call [`Entries::prepare_all`] before any other method.
    pub fn apply(
        &mut self,
        changes: &[EntryChange],
        version: RuleVersion,
        defer_programs: bool,
        requeues: &mut Requeues,
    ) -> Applied {
        let mut applied = Applied::default();
        for change in changes {
            match change {
                EntryChange::Add(entry) => {
                    self.admit(entry, requeues, &mut applied);
                    if !defer_programs {
                        self.prepare(entry);
                    }
                }
                EntryChange::Modify { id, table, instructions, low_latency, reset_counts } => {
                    applied.note_lanes(*table, *low_latency);
                    let Some(Some(running)) = self.running.get_mut(id.0 as usize) else { continue };
                    let low_latency = *low_latency && instructions.may_be_low_latency();
                    let kind = ProgramKind { low_latency, ..running.kind };
                    let choice = Choice::of(instructions);
                    let program = self.programs.acquire(instructions, kind);
                    let before = std::mem::replace(running, Running { program, kind, choice });
                    self.programs.release(before.program);
                    requeues.remove(*table, before.choice);
                    requeues.add(*table, choice);
                    if before.kind.low_latency != low_latency {
                        let table = applied.tables.entry(*table).or_default();
                        table.low_latency += if low_latency { 1 } else { -1 };
                        table.marks.push((*id, low_latency));
                    }
                    applied.modified.programs.push((*id, program));
                    applied.modified.reset.extend(reset_counts.then_some(*id));
                }
                EntryChange::Remove { id, table } => {
                    // After the removal, packets of this entry may match another entry.
                    applied.note_lanes(*table, true);
                    let changed = applied.tables.entry(*table).or_default();
                    if let Some(Some(running)) = self.running.get(id.0 as usize) {
                        requeues.remove(*table, running.choice);
                        changed.low_latency -= isize::from(running.kind.low_latency);
                    }
                    changed.rules.push(RuleChange::Remove(*id));
                }
            }
        }
        let modified = &applied.modified;
        if modified.is_big() {
            let ids: Vec<EntryId> = modified.programs.iter().map(|(id, _)| *id).collect();
            let running = &self.running;
            let program = |id: EntryId| Some((*running.get(id.0 as usize)?)?.program);
            self.cells.replace(&ids, program, version);
        }
        self.cells.reset(&modified.reset, version);
        applied
    }

    /// Adds an entry, without its program and its cell.
    fn admit(&mut self, entry: &Arc<FlowEntry>, requeues: &mut Requeues, applied: &mut Applied) {
        let kind = ProgramKind::of(entry);
        let at = entry.id.0 as usize;
        if self.running.len() <= at {
            self.running.resize(at + 1, None);
        }
        let choice = Choice::of(&entry.instructions);
        requeues.add(entry.table, choice);
        self.running[at] = Some(Running { program: 0, kind, choice });
        applied.note_lanes(entry.table, entry.low_latency);
        let table = applied.tables.entry(entry.table).or_default();
        table.low_latency += isize::from(kind.low_latency);
        table.rules.push(RuleChange::Add(Arc::clone(entry)));
    }

    /// Prepares the programs and cells of added entries.
    pub fn prepare_all(&mut self, changes: &[EntryChange]) {
        // Most entries share their instructions, which are found faster by their address than by their
        // content.
        let mut known: HashMap<(usize, ProgramKind), ProgramId> = HashMap::new();
        for change in changes {
            let EntryChange::Add(entry) = change else { continue };
            let Some(Some(running)) = self.running.get_mut(entry.id.0 as usize) else { continue };
            let programs = &mut self.programs;
            running.program = match known.entry((Arc::as_ptr(&entry.instructions).addr(), running.kind)) {
                Occupied(known) => {
                    programs.acquire_again(*known.get());
                    *known.get()
                }
                Vacant(new) => *new.insert(programs.acquire(&entry.instructions, running.kind)),
            };
            self.cells.prepare(entry.id, running.program, entry.priority);
        }
    }

    /// Prepares the program and the cell of an added entry.
    fn prepare(&mut self, entry: &FlowEntry) {
        let Some(Some(running)) = self.running.get_mut(entry.id.0 as usize) else { return };
        running.program = self.programs.acquire(&entry.instructions, running.kind);
        self.cells.prepare(entry.id, running.program, entry.priority);
    }

    /// Appends new programs and cells to each worker's updates.
    pub fn updates(&mut self, parts: &mut [Vec<Update>]) {
        self.programs.updates(parts);
        self.cells.updates(parts);
    }

    /// Adds up the counters of retired pages that workers no longer use, and releases these pages. `applied`
    /// returns the version that a worker has applied.
    pub fn fold(&mut self, applied: impl Fn(usize) -> RuleVersion) {
        self.cells.fold(applied);
    }

    /// Returns an entry's counters, summed over all workers.
    pub fn counters(&self, id: EntryId) -> EntryCounters {
        self.cells.counters(id)
    }

    /// Releases an entry's ID for reuse.
    pub fn release(&mut self, id: EntryId) {
        if let Some(running) = self.running.get_mut(id.0 as usize).and_then(Option::take) {
            self.programs.release(running.program);
        }
        self.cells.release(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::FlowMod;

    #[test]
    fn any_change_outside_the_mac_table_may_move_flows_to_another_lane() {
        let add = |table, low_latency| {
            let flow = FlowMod { table: Some(table), ..FlowMod::default() };
            let entry = flow.into_entry(Arc::new).unwrap();
            EntryChange::Add(Arc::new(FlowEntry { id: EntryId(1), low_latency, ..entry }))
        };
        let remove = |table| EntryChange::Remove { id: EntryId(7), table };
        // No entry has this ID.
        let modify = |table, low_latency| {
            let instructions = Arc::default();
            EntryChange::Modify { id: EntryId(8), table, instructions, low_latency, reset_counts: false }
        };
        let cases = [
            (vec![], None),
            (vec![add(MAC_TABLE, true), remove(MAC_TABLE), modify(MAC_TABLE, true)], None),
            (vec![add(TableId(0), false)], Some(false)),
            (vec![add(TableId(0), true), add(TableId(1), false)], Some(true)),
            (vec![remove(TableId(0)), add(TableId(0), false)], Some(true)),
            (vec![modify(TableId(3), false)], Some(false)),
            (vec![modify(TableId(3), false), modify(TableId(3), true), add(MAC_TABLE, false)], Some(true)),
        ];
        for (changes, lanes) in cases {
            let (mut entries, mut requeues) = (Entries::new(1, 1), Requeues::new(false));
            let applied = entries.apply(&changes, RuleVersion(1), false, &mut requeues);
            assert_eq!(applied.lanes, lanes, "{changes:?}");
        }
    }
}
