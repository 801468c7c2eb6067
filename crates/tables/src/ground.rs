// SPDX-License-Identifier: Apache-2.0
//! Control side: a base with what has changed since, as each worker sees it. While the next base is caught up with, there are
//! two of them.

use crate::additions::Additions;
use crate::compile::{Compiled, Row};
use crate::head::Head;
use crate::index::Index;
use crate::{NONE, Place, Table, TableUpdate};
use flow::{EntryId, FlowEntry, Match};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// More dead rules of one match than this are not kept in a base: a lookup may meet them all, one by one. What else it
/// meets of the dead is bounded by how rules of different matches stand together.
const DEAD_EQUAL_MAX: u32 = 64;

/// A living rule.
#[derive(Debug)]
pub(crate) struct Rule {
    pub entry: Arc<FlowEntry>,
    /// When it was added, among all rules of the table.
    pub sequence: u64,
}

/// A base and what stands beside it.
#[derive(Debug, Default)]
pub(crate) struct Ground {
    pub view: Table,
    /// The base's rules, dead ones too, and for each entry's number its slot.
    pub rows: Arc<Vec<Row>>,
    slots: HashMap<EntryId, u32>,
    /// Of the last rule that went into the base.
    base_sequence: u64,
    /// What the heads hold; none before the first base.
    additions: Option<Additions>,
    /// Where each rule behind the base's last one stands in the heads, in the order of adding; none if it is not there.
    heads: Vec<u32>,
    /// For the hash of each match how many rules of the base are dead.
    dead_equal: HashMap<u64, u32>,
    hasher: RandomState,
}

/// What nobody needs any more: to free it takes long.
#[derive(Debug)]
pub struct Spent {
    _ground: Ground,
    _added: Arc<Vec<Row>>,
}

impl Ground {
    /// A base as it was made; heads are empty.
    pub fn new(compiled: Compiled, index: Index) -> Self {
        let Compiled { base, rows, slots, additions, hint, sequence, .. } = compiled;
        let (words, room) = (base.plan().words(), additions.capacity());
        let head = Head::new(words, room, additions.masks(), &hint);
        Self {
            view: Table::new(base, head, index),
            rows,
            slots,
            base_sequence: sequence,
            additions: Some(additions),
            ..Self::default()
        }
    }

    /// Additions beside the base, whether they live or not.
    pub fn added(&self) -> usize {
        self.heads.len()
    }

    /// Of the last rule that it knows of.
    pub fn sequence(&self) -> u64 {
        self.base_sequence + self.heads.len() as u64
    }

    /// Takes in the next rule of the table: what workers are told. Nothing if it takes another base.
    pub fn add(&mut self, entry: &FlowEntry) -> Option<TableUpdate> {
        let linked = self.link(entry);
        self.heads.push(linked.as_ref().map_or(NONE, |(_, slot)| *slot));
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

    /// The next rule of the table is gone already, or is none that is looked up by a key.
    pub fn pass_over(&mut self) {
        self.heads.push(NONE);
    }

    /// Nothing can be added any more: the next rule takes another base.
    pub fn close(&mut self) {
        self.additions = None;
    }

    /// Takes a rule away that it knows of: what workers are told. True if a base with so many dead rules of one match should
    /// not go on.
    pub fn remove(&mut self, id: EntryId, rule: &Rule) -> (TableUpdate, bool) {
        let mut many = false;
        let place = if let Some(index) = rule.entry.matching.index() {
            Place::Index(index)
        } else if let Some(addition) = rule.sequence.checked_sub(self.base_sequence + 1) {
            let slot = self.heads.get(addition as usize).copied().unwrap_or(NONE);
            self.additions.iter_mut().for_each(|additions| additions.remove(slot));
            Place::Head(slot)
        } else {
            many = self.bury(&rule.entry.matching);
            Place::Base(self.slots.get(&id).copied().unwrap_or(NONE))
        };
        self.view.apply(&mut TableUpdate::Remove(place));
        (TableUpdate::Remove(place), many)
    }

    /// Takes a rule of the base away, by its entry's number when it was made.
    pub fn remove_from_base(&mut self, id: EntryId) {
        let slot = self.slots.get(&id).copied().unwrap_or(NONE);
        let Some(row) = self.rows.get(slot as usize) else { return };
        let entry = Arc::clone(&row.entry);
        self.bury(&entry.matching);
        self.view.apply(&mut TableUpdate::Remove(Place::Base(slot)));
    }

    /// Notes that a rule of the base is dead. True if there are too many of its match.
    fn bury(&mut self, matching: &Match) -> bool {
        let dead = self.dead_equal.entry(self.hasher.hash_one(matching)).or_default();
        *dead += 1;
        *dead > DEAD_EQUAL_MAX
    }
}

impl Spent {
    /// A base of no use any more, and additions that were kept for the one after it.
    pub(crate) fn new(ground: Ground, added: Arc<Vec<Row>>) -> Self {
        Self { _ground: ground, _added: added }
    }
}
