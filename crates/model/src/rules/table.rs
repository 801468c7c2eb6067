// SPDX-License-Identifier: Apache-2.0
//! Control-side index of one table: entries by priority and match, by order of addition, and by shape.
//!
//! A shape is the set of fields and masks of a match, without its values. Real tables have few shapes, so
//! overlap checks and non-strict commands can skip most entries.

mod search;

use super::order::Order;
use super::slot::Slot;
use flow::{EntryId, Field, FlowEntry, Match};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher};

/// Entries of one shape and one priority.
#[derive(Debug)]
struct Group {
    /// A match of this shape.
    example: Match,
    /// IDs of the entries, unordered. `Slot::place` is the index of each entry.
    members: Vec<EntryId>,
}

impl Group {
    /// Returns whether `matching` may cover any match of this shape.
    fn may_be_covered_by(&self, matching: &Match) -> bool {
        if matching.index().is_some() {
            return self.example.index().is_some();
        }
        matching.fields().all(|c| self.example.get(c.field).is_some_and(|mine| c.mask & !mine.mask == 0))
    }
}

/// Entries of one priority.
#[derive(Debug, Default)]
struct Level {
    groups: HashTable<Group>,
    entries: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    hasher: DefaultHashBuilder,
    /// Entries with the hashes of their priorities and matches. The index can grow without reading entries.
    index: HashTable<(u32, EntryId)>,
    order: Order,
    levels: BTreeMap<u16, Level>,
    /// Total number of groups. A group holds the entries of one shape and one priority.
    groups: usize,
    /// Number of groups that use each slice.
    slices: BTreeMap<Field, usize>,
}

/// Widens a 32-bit hash, because the hash table uses the low and the high bits of a hash.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

fn entry_of(slots: &[Slot], id: EntryId) -> Option<&FlowEntry> {
    slots.get(id.0 as usize)?.entry.as_deref()
}

fn shape_hash(hasher: &DefaultHashBuilder, matching: &Match) -> u64 {
    let mut state = hasher.build_hasher();
    matching.hash_shape(&mut state);
    state.finish()
}

impl Table {
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the upper half of the 64-bit hash.
    pub fn hash(&self, priority: u16, matching: &Match) -> u32 {
        (self.hasher.hash_one((priority, matching)) >> 32) as u32
    }

    pub fn find(&self, slots: &[Slot], priority: u16, matching: &Match) -> Option<EntryId> {
        if self.index.is_empty() {
            return None;
        }
        self.find_hashed(slots, self.hash(priority, matching), priority, matching)
    }

    /// Like [`Table::find`], with the hash of priority and match.
    pub fn find_hashed(&self, slots: &[Slot], hash: u32, priority: u16, matching: &Match) -> Option<EntryId> {
        let same = |(other, id): &(u32, EntryId)| {
            *other == hash
                && entry_of(slots, *id).is_some_and(|e| e.priority == priority && e.matching == *matching)
        };
        self.index.find(spread(hash), same).map(|(_, id)| *id)
    }

    pub fn insert(&mut self, slots: &mut [Slot], id: EntryId) {
        let slot = &slots[id.0 as usize];
        self.index.insert_unique(spread(slot.hash), (slot.hash, id), |(hash, _)| spread(*hash));
        self.order.insert(slot.serial, id);
        if let Some(entry) = &slot.entry {
            let place = self.join_group(entry, id);
            slots[id.0 as usize].place = place;
        }
    }

    pub fn remove(&mut self, slots: &mut [Slot], id: EntryId) {
        let slot = &slots[id.0 as usize];
        if let Ok(found) = self.index.find_entry(spread(slot.hash), |(_, other)| *other == id) {
            found.remove();
        }
        self.order.remove(slot.serial);
        let place = slot.place;
        if let Some(entry) = &slot.entry
            && let Some(moved) = self.leave_group(entry, place)
        {
            slots[moved.0 as usize].place = place;
        }
    }

    /// Returns whether [`Table::tidy`] would free enough memory to be worthwhile.
    pub fn is_untidy(&self) -> bool {
        self.order.is_untidy()
    }

    /// Returns the number of entries and of removed entries that use memory.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.order.places()
    }

    /// Frees memory that only an undone removal would need.
    pub fn tidy(&mut self) {
        self.order.tidy();
    }

    /// Empties the table. Returns its entries in the order in which they were added.
    pub fn take_all(&mut self) -> Vec<EntryId> {
        self.index = HashTable::new();
        self.levels.clear();
        self.groups = 0;
        self.slices.clear();
        self.order.remove_all()
    }

    pub fn range_from(&self, serial: u64) -> impl Iterator<Item = (u64, EntryId)> {
        self.order.range_from(serial)
    }

    /// Returns all entries that `matching` covers, in the order in which they were added.
    pub fn covered(&self, slots: &[Slot], matching: &Match) -> Vec<EntryId> {
        if matching.is_any() {
            return self.order.entries().collect();
        }
        let covers = |id: &EntryId| entry_of(slots, *id).is_some_and(|e| matching.covers(&e.matching));
        if self.looked_at(matching) > self.len() / 2 {
            return self.order.entries().filter(covers).collect();
        }
        let mut found = Vec::new();
        for (priority, group) in self.may_be_covered(matching) {
            if group.example.has_shape_of(matching) {
                found.extend(self.find(slots, priority, matching));
            } else {
                found.extend(group.members.iter().copied().filter(covers));
            }
        }
        found.sort_unstable_by_key(|&id| slots[id.0 as usize].serial);
        found
    }

    fn may_be_covered(&self, matching: &Match) -> impl Iterator<Item = (u16, &Group)> {
        let groups =
            self.levels.iter().flat_map(|(&priority, level)| level.groups.iter().map(move |g| (priority, g)));
        groups.filter(|(_, group)| group.may_be_covered_by(matching))
    }

    /// Returns the number of entries that `covered` would compare with `matching`.
    fn looked_at(&self, matching: &Match) -> usize {
        let others = self.may_be_covered(matching).filter(|(_, group)| !group.example.has_shape_of(matching));
        others.map(|(_, group)| group.members.len()).sum()
    }

    /// Returns the number of entries and groups that [`Table::covered`] examines.
    pub fn covered_cost(&self, matching: &Match) -> usize {
        if matching.is_any() { self.len() } else { self.groups + self.looked_at(matching) }
    }

    /// Returns [`Table::covered_cost`] if the index excludes entries and the cost is at most `most`.
    pub fn covered_cost_within(&self, matching: &Match, most: usize) -> Option<usize> {
        if matching.is_any() || self.groups > most {
            return None;
        }
        Some(self.covered_cost(matching)).filter(|cost| *cost <= most)
    }

    /// Returns whether an entry of this priority overlaps `matching`. In OpenFlow 1.3, an identical match
    /// overlaps as well.
    pub fn overlaps(&self, slots: &[Slot], priority: u16, matching: &Match) -> bool {
        if self.find(slots, priority, matching).is_some() {
            return true;
        }
        let Some(level) = self.levels.get(&priority).filter(|_| matching.index().is_none()) else {
            return false;
        };
        // Among entries of one shape, only an equal match overlaps. An index match never overlaps a field
        // match.
        let mut others =
            level.groups.iter().filter(|g| g.example.index().is_none() && !g.example.has_shape_of(matching));
        others.any(|group| {
            let mut members = group.members.iter();
            members.any(|&id| entry_of(slots, id).is_some_and(|e| e.matching.overlaps(matching)))
        })
    }

    /// Returns the number of entries that [`Table::overlaps`] examines.
    pub fn overlap_cost(&self, priority: u16, matching: &Match) -> usize {
        let Some(level) = self.levels.get(&priority).filter(|_| matching.index().is_none()) else { return 0 };
        let hash = shape_hash(&self.hasher, matching);
        let same = level.groups.find(hash, |g| g.example.has_shape_of(matching));
        level.entries - same.map_or(0, |group| group.members.len())
    }

    /// Returns the number of different slices in the table's entries and this match together.
    pub fn slices_with(&self, matching: &Match) -> usize {
        if !matching.has_slices() {
            return self.slices.len();
        }
        let new = slices_of(matching).filter(|f| !self.slices.contains_key(f)).count();
        self.slices.len() + new
    }

    /// Adds an entry to the group of its priority and shape. Returns its index in this group.
    fn join_group(&mut self, entry: &FlowEntry, id: EntryId) -> u32 {
        let hash = shape_hash(&self.hasher, &entry.matching);
        let level = self.levels.entry(entry.priority).or_default();
        level.entries += 1;
        if let Some(group) = level.groups.find_mut(hash, |g| g.example.has_shape_of(&entry.matching)) {
            group.members.push(id);
            return (group.members.len() - 1) as u32;
        }
        self.groups += 1;
        for slice in slices_of(&entry.matching) {
            *self.slices.entry(slice).or_default() += 1;
        }
        let group = Group { example: entry.matching.clone(), members: vec![id] };
        let hasher = &self.hasher;
        level.groups.insert_unique(hash, group, |g| shape_hash(hasher, &g.example));
        0
    }

    /// Removes an entry from the group of its priority and shape. Returns the entry that was moved to its
    /// index, if any.
    fn leave_group(&mut self, entry: &FlowEntry, place: u32) -> Option<EntryId> {
        let hash = shape_hash(&self.hasher, &entry.matching);
        let level = self.levels.get_mut(&entry.priority)?;
        let mut found = level.groups.find_entry(hash, |g| g.example.has_shape_of(&entry.matching)).ok()?;
        let members = &mut found.get_mut().members;
        if (place as usize) < members.len() {
            members.swap_remove(place as usize);
        }
        let moved = members.get(place as usize).copied();
        level.entries -= 1;
        if members.is_empty() {
            found.remove();
            self.groups -= 1;
            for slice in slices_of(&entry.matching) {
                if let Some(users) = self.slices.get_mut(&slice) {
                    *users -= 1;
                }
            }
            self.slices.retain(|_, users| *users != 0);
            if level.entries == 0 {
                self.levels.remove(&entry.priority);
            }
        }
        moved
    }
}

fn slices_of(matching: &Match) -> impl Iterator<Item = Field> {
    matching.fields().map(|c| c.field).filter(|f| matches!(f, Field::Slice(_)))
}
