// SPDX-License-Identifier: Apache-2.0
//! A worker's view of a table: shared base, tombstones, private delta of additions, and entries by index.

use crate::additions::DeltaLink;
use crate::delta::{Delta, GROUP};
use engines::index::Index;
use engines::{Base, BitSet, KeyPlan, NONE};
use flow::EntryId;
use std::sync::Arc;

/// Position of an active rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RulePlace {
    /// Slot of the base.
    Base(u32),
    /// Slot of the delta.
    Delta(u32),
    /// Index in a linear table.
    Index(u32),
}

/// A change of one worker's view. Applying it leaves the replaced parts in it, for the control thread to
/// free.
#[derive(Debug)]
pub enum TableUpdate {
    /// Adds a rule to the delta.
    Add {
        /// ID of the rule's entry.
        id: EntryId,
        /// Priority of the rule.
        priority: u16,
        /// Row of the rule: values, then masks, then the mask of its tuple if the tuple is new.
        row: Box<[u64]>,
        /// Position of the rule in the delta.
        link: DeltaLink,
    },
    /// Sets the entry of an index.
    AddIndex {
        /// Index in the linear table.
        index: u32,
        /// ID of the entry.
        id: EntryId,
    },
    /// Removes a rule.
    Remove(RulePlace),
    /// Replaces the whole view.
    Swap(Box<Table>),
}

/// A worker's view of a table. A clone shares the base.
#[derive(Clone, Debug, Default)]
pub struct Table {
    base: Arc<Base>,
    tombstones: BitSet,
    delta: Delta,
    index: Index,
}

impl Table {
    /// Creates a view of a base without tombstones.
    #[must_use]
    pub fn new(base: Arc<Base>, delta: Delta, index: Index) -> Self {
        let tombstones = BitSet::new(base.len());
        Self { base, tombstones, delta, index }
    }

    /// Returns the base.
    pub(crate) fn base(&self) -> &Arc<Base> {
        &self.base
    }

    /// Returns the tombstones: deleted rules of the base.
    pub(crate) fn tombstones(&self) -> &BitSet {
        &self.tombstones
    }

    /// Returns the number of indices for which the linear table has space.
    pub(crate) fn index_capacity(&self) -> usize {
        self.index.capacity()
    }

    /// Extends a linear table to include `index` and at least `least` indices. Returns false if it had to be
    /// extended.
    pub(crate) fn make_room(&mut self, index: u32, least: usize) -> bool {
        let fits = (index as usize) < self.index.capacity();
        if !fits {
            self.index = self.index.longer((index as usize + 1).next_power_of_two().max(least));
        }
        fits
    }

    /// Takes the entries of a linear table for another view.
    pub(crate) fn take_index(&mut self) -> Index {
        std::mem::take(&mut self.index)
    }

    /// Sets the entries of a linear table.
    pub(crate) fn put_index(&mut self, index: Index) {
        self.index = index;
    }

    /// Returns the layout of the keys.
    #[must_use]
    #[inline]
    pub fn plan(&self) -> &KeyPlan {
        self.base.plan()
    }

    /// Looks up `ids.len()` keys, each a row of words in `keys`. Stores for each key the matching entry of
    /// highest priority, or [`EntryId::NONE`]. Among equal priorities, the first entry added is stored.
    pub fn lookup(&self, keys: &[u64], ids: &mut [EntryId]) {
        let words = self.plan().words();
        let mut slots = [NONE; GROUP];
        for (number, ids) in ids.chunks_mut(GROUP).enumerate() {
            let keys = &keys[number * GROUP * words..][..ids.len() * words];
            let slots = &mut slots[..ids.len()];
            self.base.lookup(keys, &self.tombstones, slots);
            if self.delta.is_empty() {
                self.base.entries(slots, ids);
                continue;
            }
            // The filter tests the keys meanwhile.
            self.base.prefetch_ids(slots);
            let mut wanted = self.delta.may_match(keys, slots) & u32::MAX >> (GROUP - slots.len());
            if wanted == 0 {
                self.base.entries(slots, ids);
                continue;
            }
            let mut found = [NONE; GROUP];
            self.look_in_delta(keys, wanted, slots, &mut found);
            self.base.entries(slots, ids);
            while wanted != 0 {
                let at = wanted.trailing_zeros() as usize;
                if found[at] != NONE {
                    ids[at] = self.delta.id(found[at]);
                }
                wanted &= wanted - 1;
            }
        }
    }

    /// Searches additions that beat the base's results, for the keys with a bit in `wanted`.
    #[inline(never)]
    fn look_in_delta(&self, keys: &[u64], wanted: u32, slots: &[u32], found: &mut [u32; GROUP]) {
        let mut least = [0; GROUP];
        for (at, least) in least.iter_mut().enumerate().take(slots.len()) {
            if wanted >> at & 1 != 0 && slots[at] != NONE {
                // At equal priority, rules of the base come first, because they are older.
                *least = u32::from(self.base.priority(slots[at])) + 1;
            }
        }
        self.delta.lookup(keys, wanted, &mut least, found);
    }

    /// Returns the entry of an index of a linear table, or [`EntryId::NONE`].
    #[must_use]
    #[inline]
    pub fn at_index(&self, index: u32) -> EntryId {
        self.index.get(index)
    }

    /// Applies a change, and leaves the replaced parts in it.
    pub fn apply(&mut self, update: &mut TableUpdate) {
        match update {
            TableUpdate::Add { id, priority, row, link } => self.delta.add(*id, *priority, row, link),
            TableUpdate::AddIndex { index, id } => self.index.set(*index, *id),
            TableUpdate::Remove(RulePlace::Base(slot)) => self.tombstones.insert(*slot),
            TableUpdate::Remove(RulePlace::Delta(slot)) => self.delta.kill(*slot),
            TableUpdate::Remove(RulePlace::Index(index)) => self.index.set(*index, EntryId::NONE),
            TableUpdate::Swap(table) => std::mem::swap(self, table),
        }
    }

    /// Returns the name of the engine.
    #[must_use]
    pub fn engine_name(&self) -> &'static str {
        self.base.engine_name()
    }
}
