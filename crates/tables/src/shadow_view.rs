// SPDX-License-Identifier: Apache-2.0
//! Control side: a copy of the workers' view of a table, which turns rule changes into updates. While a new
//! base catches up, there are two copies.

use crate::additions::Additions;
use crate::compile::{Compiled, Row};
use crate::delta::Delta;
use crate::id_map::IdMap;
use crate::{RulePlace, Table, TableUpdate};
use engines::NONE;
use engines::index::Index;
use flow::{EntryId, FlowEntry, Match};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// Maximum number of deleted rules with the same match in a base, all of which a lookup may visit. The
/// structure of the engines bounds the number of other deleted rules.
const EQUAL_TOMBSTONES_MAX: u32 = 64;

/// An active rule.
#[derive(Debug)]
pub(crate) struct Rule {
    pub entry: Arc<FlowEntry>,
    /// Sequence number of the rule's addition to its table. Among rules of equal priority, the lowest number
    /// wins.
    pub sequence: u64,
}

/// A base, and the changes applied to it since it was compiled.
#[derive(Debug, Default)]
pub(crate) struct ShadowView {
    pub view: Table,
    /// Rules of the base, including deleted ones, and the slot of each rule, by entry ID.
    pub rows: Arc<Vec<Row>>,
    slots: IdMap<u32>,
    /// Sequence number of the last rule in the base.
    base_sequence: u64,
    /// Content of the deltas. `None` before the first base, or if no rule can be added.
    additions: Option<Additions>,
    /// Slot in the deltas of each rule added after the base was compiled, in order of addition. [`NONE`] for
    /// rules that are not in the deltas.
    delta_slots: Vec<u32>,
    /// Number of deleted rules in the base for each match, by the hash of the match.
    equal_tombstones: HashMap<u64, u32>,
    hasher: RandomState,
}

/// Data that is not used any more. Freeing it takes a long time, so the caller decides where.
#[derive(Debug)]
pub struct Retired {
    _shadow: ShadowView,
    _added: Arc<Vec<Row>>,
}

impl ShadowView {
    /// Starts with a new base and empty deltas.
    pub fn new(compiled: Compiled, index: Index) -> Self {
        let Compiled { base, rows, slots, additions, hint, sequence, .. } = compiled;
        let (words, room) = (base.plan().words(), additions.capacity());
        let delta = Delta::new(words, room, additions.masks(), &hint);
        Self {
            view: Table::new(base, delta, index),
            rows,
            slots,
            base_sequence: sequence,
            additions: Some(additions),
            ..Self::default()
        }
    }

    /// Returns the number of rules added since the base was compiled, including removed ones.
    pub fn added(&self) -> usize {
        self.delta_slots.len()
    }

    /// Returns the sequence number of the last rule added or skipped.
    pub fn sequence(&self) -> u64 {
        self.base_sequence + self.delta_slots.len() as u64
    }

    /// Adds the table's next rule. Returns the update for workers, or `None` if the rule needs another base.
    pub fn add(&mut self, entry: &FlowEntry) -> Option<TableUpdate> {
        let linked = self.link(entry);
        self.delta_slots.push(linked.as_ref().map_or(NONE, |(_, slot)| *slot));
        let (mut update, _) = linked?;
        self.view.apply(&mut update);
        Some(update)
    }

    fn link(&mut self, entry: &FlowEntry) -> Option<(TableUpdate, u32)> {
        let plan = self.view.plan();
        let additions = self.additions.as_mut().filter(|_| plan.covers(&entry.matching))?;
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        plan.encode(&entry.matching, &mut values, &mut masks);
        let (row, link, slot) = additions.add(entry.priority, &values, &masks)?;
        Some((TableUpdate::Add { id: entry.id, priority: entry.priority, row, link }, slot))
    }

    /// Skips the table's next rule, which was removed or is looked up by an index.
    pub fn pass_over(&mut self) {
        self.delta_slots.push(NONE);
    }

    /// Refuses further additions, so that the next rule needs another base.
    pub fn close(&mut self) {
        self.additions = None;
    }

    /// Removes a rule from the view. Returns the update for workers, and whether the base has too many
    /// deleted rules with one match.
    pub fn remove(&mut self, id: EntryId, rule: &Rule) -> (TableUpdate, bool) {
        let mut many = false;
        let place = if let Some(index) = rule.entry.matching.index() {
            RulePlace::Index(index)
        } else if let Some(addition) = rule.sequence.checked_sub(self.base_sequence + 1) {
            let slot = self.delta_slots.get(addition as usize).copied().unwrap_or(NONE);
            self.additions.iter_mut().for_each(|additions| additions.remove(slot));
            RulePlace::Delta(slot)
        } else {
            many = self.bury(&rule.entry.matching);
            RulePlace::Base(self.slots.get(&id).copied().unwrap_or(NONE))
        };
        self.view.apply(&mut TableUpdate::Remove(place));
        (TableUpdate::Remove(place), many)
    }

    /// Removes a rule of the base by the entry ID that it had when the base was compiled.
    pub fn remove_from_base(&mut self, id: EntryId) {
        let slot = self.slots.get(&id).copied().unwrap_or(NONE);
        let Some(row) = self.rows.get(slot as usize) else { return };
        let entry = Arc::clone(&row.entry);
        self.bury(&entry.matching);
        self.view.apply(&mut TableUpdate::Remove(RulePlace::Base(slot)));
    }

    /// Counts a deleted rule of the base. Returns whether the base has too many deleted rules with the same
    /// match.
    fn bury(&mut self, matching: &Match) -> bool {
        let tombstones = self.equal_tombstones.entry(self.hasher.hash_one(matching)).or_default();
        *tombstones += 1;
        *tombstones > EQUAL_TOMBSTONES_MAX
    }
}

impl Retired {
    /// Retires a base, and the additions kept for its successor.
    pub(crate) fn new(shadow: ShadowView, added: Arc<Vec<Row>>) -> Self {
        Self { _shadow: shadow, _added: added }
    }
}
