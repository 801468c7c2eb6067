// SPDX-License-Identifier: Apache-2.0
//! One table's ways to its entries: by priority and match, in order of adding, and how many there are of each shape.
//! A shape is the fields and masks of a match without its values; real tables have few, which keeps overlap checks and
//! non-strict commands from walking all entries.

use crate::store::Slot;
use flow::{EntryId, Field, FlowEntry, Match};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hash, Hasher};

/// Entries of one priority and shape.
#[derive(Debug)]
struct Group {
    priority: u16,
    linear: bool,
    fields: Box<[(Field, u128)]>,
    count: usize,
}

impl Group {
    fn has_shape_of(&self, matching: &Match) -> bool {
        self.linear == matching.index().is_some()
            && self.fields.iter().copied().eq(matching.fields().map(|c| (c.field, c.mask)))
    }

    /// Whether `matching` may cover some match of this shape.
    fn may_be_covered_by(&self, matching: &Match) -> bool {
        if matching.index().is_some() {
            return self.linear;
        }
        matching.fields().all(|c| {
            let at = self.fields.binary_search_by_key(&c.field, |f| f.0);
            at.is_ok_and(|at| c.mask & !self.fields[at].1 == 0)
        })
    }
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    hasher: DefaultHashBuilder,
    index: HashTable<EntryId>,
    order: BTreeMap<u64, EntryId>,
    groups: HashTable<Group>,
    /// Groups that use each slice.
    slices: BTreeMap<Field, usize>,
}

/// The table takes places from a hash's low bits and tags from its high ones.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

fn entry_of(slots: &[Slot], id: EntryId) -> Option<&FlowEntry> {
    slots.get(id as usize)?.entry.as_deref()
}

fn shape_hash(
    hasher: &DefaultHashBuilder,
    priority: u16,
    linear: bool,
    fields: impl Iterator<Item = (Field, u128)>,
) -> u64 {
    let mut state = hasher.build_hasher();
    (priority, linear).hash(&mut state);
    for field in fields {
        field.hash(&mut state);
    }
    state.finish()
}

impl Table {
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Half of a hash is kept beside each entry: enough to tell so many apart.
    pub fn hash(&self, priority: u16, matching: &Match) -> u32 {
        (self.hasher.hash_one((priority, matching)) >> 32) as u32
    }

    pub fn find(&self, slots: &[Slot], priority: u16, matching: &Match) -> Option<EntryId> {
        if self.index.is_empty() {
            return None;
        }
        let same = |id: &EntryId| {
            entry_of(slots, *id).is_some_and(|e| e.priority == priority && e.matching == *matching)
        };
        self.index.find(spread(self.hash(priority, matching)), same).copied()
    }

    pub fn insert(&mut self, slots: &[Slot], id: EntryId) {
        let slot = &slots[id as usize];
        self.index.insert_unique(spread(slot.hash), id, |&other| spread(slots[other as usize].hash));
        self.order.insert(slot.serial, id);
        if let Some(entry) = &slot.entry {
            self.count_shape(entry);
        }
    }

    pub fn remove(&mut self, slots: &[Slot], id: EntryId) {
        let slot = &slots[id as usize];
        if let Ok(found) = self.index.find_entry(spread(slot.hash), |&other| other == id) {
            found.remove();
        }
        self.order.remove(&slot.serial);
        if let Some(entry) = &slot.entry {
            self.uncount_shape(entry);
        }
    }

    /// Empties the table; gives its entries in order of adding.
    pub fn take_all(&mut self) -> Vec<EntryId> {
        self.index = HashTable::new();
        self.groups.clear();
        self.slices.clear();
        std::mem::take(&mut self.order).into_values().collect()
    }

    pub fn range_from(&self, serial: u64) -> impl Iterator<Item = (u64, EntryId)> {
        self.order.range(serial..).map(|(&serial, &id)| (serial, id))
    }

    /// All entries that `matching` covers, in order of adding.
    pub fn covered(&self, slots: &[Slot], matching: &Match) -> Vec<EntryId> {
        if matching.is_any() {
            return self.order.values().copied().collect();
        }
        let mut found = Vec::new();
        for group in self.groups.iter().filter(|g| g.may_be_covered_by(matching)) {
            if !group.has_shape_of(matching) {
                let covers =
                    |id: &EntryId| entry_of(slots, *id).is_some_and(|e| matching.covers(&e.matching));
                return self.order.values().copied().filter(covers).collect();
            }
            found.extend(self.find(slots, group.priority, matching));
        }
        found.sort_unstable_by_key(|&id| slots[id as usize].serial);
        found
    }

    /// Entries that [`Table::covered`] looks at.
    pub fn covered_cost(&self, matching: &Match) -> usize {
        let mut shapes = self.groups.iter().filter(|g| g.may_be_covered_by(matching));
        if shapes.all(|g| g.has_shape_of(matching)) { 0 } else { self.len() }
    }

    /// Whether an entry of this priority overlaps `matching`. OpenFlow 1.3 counts an identical one as overlapping.
    pub fn overlaps(&self, slots: &[Slot], priority: u16, matching: &Match) -> bool {
        if self.find(slots, priority, matching).is_some() {
            return true;
        }
        // Of the same shape, only an equal match overlaps; an index and fields never do.
        let mut others =
            self.groups.iter().filter(|g| g.priority == priority && !g.linear && !g.has_shape_of(matching));
        matching.index().is_none()
            && others.next().is_some()
            && self.order.values().any(|&id| {
                entry_of(slots, id).is_some_and(|e| e.priority == priority && e.matching.overlaps(matching))
            })
    }

    /// Different slices that the table's entries and one with this match examine.
    pub fn slices_with(&self, matching: &Match) -> usize {
        let new = slices_of(matching).filter(|f| !self.slices.contains_key(f)).count();
        self.slices.len() + new
    }

    fn hash_shape_of(&self, entry: &FlowEntry) -> u64 {
        let fields = entry.matching.fields().map(|c| (c.field, c.mask));
        shape_hash(&self.hasher, entry.priority, entry.matching.index().is_some(), fields)
    }

    fn count_shape(&mut self, entry: &FlowEntry) {
        let hash = self.hash_shape_of(entry);
        let same = |g: &Group| g.priority == entry.priority && g.has_shape_of(&entry.matching);
        if let Some(group) = self.groups.find_mut(hash, same) {
            group.count += 1;
            return;
        }
        for slice in slices_of(&entry.matching) {
            *self.slices.entry(slice).or_default() += 1;
        }
        let group = Group {
            priority: entry.priority,
            linear: entry.matching.index().is_some(),
            fields: entry.matching.fields().map(|c| (c.field, c.mask)).collect(),
            count: 1,
        };
        let hasher = &self.hasher;
        self.groups.insert_unique(hash, group, |g| {
            shape_hash(hasher, g.priority, g.linear, g.fields.iter().copied())
        });
    }

    fn uncount_shape(&mut self, entry: &FlowEntry) {
        let hash = self.hash_shape_of(entry);
        let same = |g: &Group| g.priority == entry.priority && g.has_shape_of(&entry.matching);
        if let Ok(mut found) = self.groups.find_entry(hash, same) {
            found.get_mut().count -= 1;
            if found.get().count == 0 {
                found.remove();
                for slice in slices_of(&entry.matching) {
                    if let Some(users) = self.slices.get_mut(&slice) {
                        *users -= 1;
                    }
                }
                self.slices.retain(|_, users| *users != 0);
            }
        }
    }
}

fn slices_of(matching: &Match) -> impl Iterator<Item = Field> {
    matching.fields().map(|c| c.field).filter(|f| matches!(f, Field::Slice(_)))
}
