// SPDX-License-Identifier: Apache-2.0
//! Lifetimes of entries in the serial order: their counters, uses and ends.

use crate::log::{Lookup, Moment, Record, Walker};
use flow::operation::MAC_TABLE;
use flow::{EntryChange, EntryId, FlowEntry, Nanos, Operation};
use reference::{Processed, Reference};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Use of an entry by a packet, between two moments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub first: Moment,
    pub last: Moment,
}

/// Packets and bytes.
type Count = (u64, u64);

fn sum(one: Count, other: Count) -> Count {
    (one.0 + other.0, one.1 + other.1)
}

/// Lifetime of one entry, from its addition to its removal.
#[derive(Debug)]
pub(super) struct Life {
    pub entry: Arc<FlowEntry>,
    /// Version that added the entry.
    pub added: usize,
    /// Version that removed the entry, if any.
    pub removed: Option<usize>,
    /// Whether another entry with the same match replaced the entry.
    pub replaced: bool,
    /// Counters inherited from replaced entries, plus the entry's own counters once its lifetime has ended.
    pub counts: Count,
    /// Counters that the entry may have inherited. A bundle that deletes an entry and adds an equal one looks
    /// like a replacement, but the new counters start at 0.
    pub perhaps: Count,
    /// Uses by packets, recorded only for entries with an idle timeout.
    pub uses: Vec<Use>,
}

impl Life {
    fn is_aged(&self) -> bool {
        self.entry.idle_timeout_s > 0 || self.entry.table == MAC_TABLE
    }
}

/// Lifetimes of all entries.
#[derive(Debug, Default)]
pub(super) struct Lives {
    pub living: BTreeMap<EntryId, Life>,
    pub ended: Vec<Life>,
}

impl Lives {
    /// Records an operation that the reference has executed.
    pub fn apply(&mut self, version: usize, operation: &Operation, reference: &Reference) {
        for part in operation.parts() {
            let Operation::Entries(changes) = part else { continue };
            for (at, change) in changes.iter().enumerate() {
                match change {
                    EntryChange::Add(entry) => {
                        let before = at.checked_sub(1).and_then(|at| changes.get(at));
                        let inherited = self.inherited(entry, before).filter(|_| !entry.flags.reset_counts);
                        let (counts, perhaps) = inherited.unwrap_or_default();
                        let replaces = changes.len() == 2;
                        let life = Life {
                            entry: Arc::clone(entry),
                            added: version,
                            removed: None,
                            replaced: false,
                            counts: if replaces { counts } else { (0, 0) },
                            perhaps: if replaces { perhaps } else { sum(counts, perhaps) },
                            uses: Vec::new(),
                        };
                        self.living.insert(entry.id, life);
                    }
                    EntryChange::Modify { id, instructions, reset_counts, .. } => {
                        let Some(life) = self.living.get_mut(id) else { continue };
                        let instructions = Arc::clone(instructions);
                        life.entry = Arc::new(FlowEntry { instructions, ..FlowEntry::clone(&life.entry) });
                        if *reset_counts {
                            (life.counts, life.perhaps) = Default::default();
                        }
                    }
                    EntryChange::Remove { id, .. } => {
                        let Some(mut life) = self.living.remove(id) else { continue };
                        let own = reference.entry_counters(*id).unwrap_or_default();
                        life.counts = sum(life.counts, own);
                        life.removed = Some(version);
                        life.replaced = matches!(changes.get(at + 1), Some(EntryChange::Add(heir))
                            if is_heir(heir, &life.entry));
                        self.ended.push(life);
                    }
                }
            }
        }
    }

    /// Returns the counters that an entry certainly inherits from the entry removed by the preceding change,
    /// and the counters that it may inherit.
    fn inherited(&self, heir: &FlowEntry, before: Option<&EntryChange>) -> Option<(Count, Count)> {
        let Some(EntryChange::Remove { id, .. }) = before else { return None };
        let last = self.ended.last().filter(|life| life.entry.id == *id && life.replaced)?;
        is_heir(heir, &last.entry).then_some((last.counts, last.perhaps))
    }

    /// Records which entries a packet used, and when.
    ///
    /// # Errors
    /// Returns an error if the worker did not make a lookup that the reference made.
    pub fn used(
        &mut self,
        processed: &Processed,
        lookups: &[Lookup],
        otherwise: Moment,
        lacks_frames: bool,
    ) -> Result<(), String> {
        for (table, id) in &processed.hits {
            let lookup = lookups.iter().find(|lookup| lookup.table == *table);
            let moment = lookup
                .ok_or_else(|| format!("a packet was never looked up in table {table}: {processed:?}"))?
                .moment;
            self.note(*id, Use { first: moment, last: moment });
        }
        let mut first = lookups.first().map_or(otherwise, |lookup| lookup.moment);
        if lacks_frames && !processed.groups.is_empty() {
            // If no frame was free for a bucket, its NORMAL action did not process the packet.
            first.at = Nanos(0);
        }
        let last = lookups.last().map_or(otherwise, |lookup| lookup.moment);
        processed.refreshed.iter().for_each(|id| self.note(Some(*id), Use { first, last }));
        Ok(())
    }

    fn note(&mut self, id: Option<EntryId>, seen: Use) {
        if let Some(life) = id.and_then(|id| self.living.get_mut(&id))
            && life.is_aged()
        {
            life.uses.push(seen);
        }
    }

    /// Returns all lifetimes. The counters of existing entries are their current values.
    pub fn finish(mut self, reference: &Reference) -> Vec<Life> {
        for (id, mut life) in self.living {
            let own = reference.entry_counters(id).unwrap_or_default();
            life.counts = sum(life.counts, own);
            self.ended.push(life);
        }
        for life in &mut self.ended {
            life.uses.sort_unstable_by_key(|seen| seen.first.place);
        }
        self.ended
    }
}

fn is_heir(heir: &FlowEntry, entry: &FlowEntry) -> bool {
    (heir.table, heir.priority, &heir.matching) == (entry.table, entry.priority, &entry.matching)
}

/// Lookups of each packet of each worker, in order.
pub(super) type Lookups = BTreeMap<(usize, Walker), Vec<Lookup>>;

/// Groups the workers' logged lookups by packet.
pub(super) fn by_packet(record: &Record) -> Lookups {
    let mut lookups = Lookups::new();
    for (worker, log) in record.hits.iter().enumerate() {
        for lookup in log {
            lookups.entry((worker, lookup.walker)).or_default().push(*lookup);
        }
    }
    lookups
}
