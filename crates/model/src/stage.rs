// SPDX-License-Identifier: Apache-2.0
//! Staging of requests: a request changes the tables at once and logs how to undo each step. When all of it
//! is valid, it is submitted to the data plane as one operation; otherwise it is rolled back.

use crate::async_messages::RemovedReason;
use crate::flow_mod::Changed;
use crate::marking::Mark;
use crate::model::{Carried, Dying, Model, timers_of};
use crate::pipeline_tables::TableSet;
use crate::ports::Port;
use crate::records::{Record, Use, note_use};
use crate::store::Life;
use dataplane::DataPlane;
use flow::group::Group;
use flow::meter::Meter;
use flow::operation::MAC_TABLE;
use flow::stateless::StatelessConfig;
use flow::{EntryChange, EntryId, FlowEntry, Nanos, Operation};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One step of a request that can be undone.
#[derive(Debug)]
pub(crate) enum Step {
    Added(EntryId),
    Removed {
        id: EntryId,
        was: Life,
        reason: Option<RemovedReason>,
        heir: Option<EntryId>,
    },
    Modified(Box<Before>),
    /// Number of the group, and the previous group of this number.
    Group(u32, Option<Record<Group>>),
    Meter(u32, Option<Record<Meter>>),
    /// The port before the change.
    Port(Box<Port>),
}

/// An entry before it was modified.
#[derive(Debug)]
pub(crate) struct Before {
    pub id: EntryId,
    pub entry: Arc<FlowEntry>,
    pub mark: Mark,
    pub carried: Option<Carried>,
}

/// A request that is not committed yet.
#[derive(Debug, Default)]
pub(crate) struct Staged {
    pub changes: Vec<EntryChange>,
    /// Operations on groups, meters and ports, in order.
    pub others: Vec<Operation>,
    pub log: Vec<Step>,
    /// The previous configuration of the stateless forwarder, if the request may have changed it.
    pub stateless_config: Option<Option<Arc<StatelessConfig>>>,
    /// The previous set of pipeline tables, if the request may have changed it.
    pub tables: Option<TableSet>,
    pub changed: Changed,
}

impl<D: DataPlane> Model<D> {
    /// Adds an entry, which replaces an identical one if `replaced` is set. The new entry continues the old
    /// one's counts if `kept` is true. `said` is the explicit low-latency mark of the flow-mod.
    pub(crate) fn stage_add(
        &mut self,
        now: Nanos,
        entry: FlowEntry,
        said: Option<bool>,
        replaced: Option<EntryId>,
        kept: bool,
        staged: &mut Staged,
    ) -> EntryId {
        if let Some(old) = replaced {
            self.stage_remove(old, None, staged);
        }
        note_use(&mut self.groups, &mut self.meters, &entry.instructions, Use::Begins);
        let id = self.store.insert(entry, Mark { said, learned: false }, now);
        if let Some(old) = replaced.filter(|_| kept) {
            if let Some(Step::Removed { heir, .. }) = staged.log.last_mut() {
                *heir = Some(id);
            }
            self.carried.insert(id, Carried { from: Some(old), ..Carried::default() });
        }
        if let Some(entry) = self.store.entry(id) {
            staged.changes.push(EntryChange::Add(Arc::clone(entry)));
        }
        staged.log.push(Step::Added(id));
        staged.changed.added += 1;
        id
    }

    /// Removes an entry from its table.
    pub(crate) fn stage_remove(&mut self, id: EntryId, reason: Option<RemovedReason>, staged: &mut Staged) {
        let Some(was) = self.store.slot(id).map(|s| s.life) else { return };
        self.store.unlink(id);
        self.log_removal(id, was, reason, staged);
    }

    pub(crate) fn log_removal(
        &mut self,
        id: EntryId,
        was: Life,
        reason: Option<RemovedReason>,
        staged: &mut Staged,
    ) {
        let Some(entry) = self.store.entry(id) else { return };
        note_use(&mut self.groups, &mut self.meters, &entry.instructions, Use::Ends);
        let table = entry.table;
        staged.changes.push(EntryChange::Remove { id, table });
        staged.log.push(Step::Removed { id, was, reason, heir: None });
        staged.changed.removed += 1;
    }

    /// Submits a request to the data plane.
    pub(crate) fn commit(&mut self, now: Nanos, staged: Staged) -> Changed {
        let mut operations = staged.others;
        // The configuration may have changed several times; workers get the last one only.
        if staged.stateless_config.is_some_and(|before| before != self.stateless) {
            operations.push(Operation::Stateless(self.stateless.clone()));
        }
        if !staged.changes.is_empty() {
            operations.push(Operation::Entries(staged.changes));
        }
        let one = if operations.len() > 1 { Some(Operation::All(operations)) } else { operations.pop() };
        if let Some(operation) = one {
            self.version = self.plane.submit(operation);
        }
        let version = self.version;
        let mut ports = BTreeMap::new();
        for step in staged.log {
            match step {
                Step::Added(id) => {
                    let Some(slot) = self.store.slot_mut(id).filter(|s| s.life == Life::Fresh) else {
                        continue;
                    };
                    slot.life = Life::Live;
                    // The timer of a learned MAC was armed when the MAC was learned.
                    if slot.entry.as_ref().is_some_and(|e| e.table != MAC_TABLE) {
                        self.arm(id, 0);
                    }
                }
                Step::Removed { id, was, reason, heir } => {
                    self.dying.push_back(Dying { version, removed_ns: now, id, reason, heir });
                    // The count of stale timers may be too high; then stale timers are only discarded
                    // earlier.
                    if let Some(table) = self.store.entry(id).map(|e| e.table)
                        && (was == Life::Live || table == MAC_TABLE)
                    {
                        self.timers[timers_of(table)].entry_gone();
                    }
                }
                // Intermediate states of a port were never visible, so only the first one is compared.
                Step::Port(before) => drop(ports.entry(before.desc.number).or_insert(before)),
                Step::Modified(_) | Step::Group(..) | Step::Meter(..) => {}
            }
        }
        for before in ports.values() {
            self.port_changed(now, before);
        }
        staged.changed
    }

    /// Restores the state before the request.
    pub(crate) fn roll_back(&mut self, staged: Staged) {
        if let Some(before) = staged.stateless_config {
            self.stateless = before;
        }
        if let Some(before) = staged.tables {
            self.pipeline_tables = before;
        }
        for step in staged.log.into_iter().rev() {
            match step {
                Step::Added(id) => {
                    if let Some(entry) = self.store.entry(id) {
                        note_use(&mut self.groups, &mut self.meters, &entry.instructions, Use::Ends);
                    }
                    self.store.unlink(id);
                    self.store.release(id);
                    self.carried.remove(&id);
                }
                Step::Removed { id, was, .. } => {
                    self.store.relink(id, was);
                    if let Some(entry) = self.store.entry(id) {
                        note_use(&mut self.groups, &mut self.meters, &entry.instructions, Use::Begins);
                    }
                }
                Step::Group(id, before) => drop(self.groups.set(id, before)),
                Step::Meter(id, Some(before)) => drop(self.meters.insert(id, before)),
                Step::Meter(id, None) => drop(self.meters.remove(&id)),
                Step::Port(before) => drop(self.ports.insert(before.desc.number, *before)),
                Step::Modified(before) => {
                    let Before { id, entry, mark, carried } = *before;
                    if let Some(now) = self.store.entry(id) {
                        note_use(&mut self.groups, &mut self.meters, &now.instructions, Use::Ends);
                    }
                    note_use(&mut self.groups, &mut self.meters, &entry.instructions, Use::Begins);
                    self.store.set_entry(id, entry, mark);
                    match carried {
                        Some(carried) => self.carried.insert(id, carried),
                        None => self.carried.remove(&id),
                    };
                }
            }
        }
    }
}
