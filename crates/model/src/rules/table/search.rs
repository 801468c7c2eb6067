// SPDX-License-Identifier: Apache-2.0
//! Lookup of the entry that a packet hits, for traces. It uses the index of `Table`: in each priority and
//! shape, at most one entry matches the packet's values.

use super::{Table, entry_of};
use crate::rules::slot::Slot;
use flow::{EntryId, Field, FieldMatch, FlowEntry, Match};

impl Table {
    /// Returns the entry that a packet hits. `value` returns the packet's field values. Of several matching
    /// entries with the highest priority, the one added first is hit.
    pub fn lookup(&self, slots: &[Slot], value: &mut dyn FnMut(Field) -> Option<u128>) -> Option<EntryId> {
        self.levels.iter().rev().find_map(|(&priority, level)| {
            let groups = level.groups.iter().filter(|group| group.example.index().is_none());
            let hits = groups.filter_map(|group| {
                let conditions = group.example.fields().map(|FieldMatch { field, mask, .. }| {
                    Some(FieldMatch { field, value: value(field)? & mask, mask })
                });
                let conditions: Vec<FieldMatch> = conditions.collect::<Option<_>>()?;
                let matching = Match::unchecked_prerequisites(conditions).ok()?;
                self.find(slots, priority, &matching)
            });
            hits.min_by_key(|id| slots[id.0 as usize].serial)
        })
    }

    /// Returns the entry with this index.
    pub fn at_index(&self, slots: &[Slot], index: u32) -> Option<EntryId> {
        let matching = Match::at_index(index);
        self.levels.keys().rev().find_map(|&priority| self.find(slots, priority, &matching))
    }

    /// Returns the entries that are tried before `hit`, by descending priority, or all entries if there is no
    /// hit. Examines at most `most` entries.
    pub fn tried_before<'a>(
        &'a self,
        slots: &'a [Slot],
        hit: Option<EntryId>,
        most: usize,
    ) -> impl Iterator<Item = &'a FlowEntry> + 'a {
        let hit = hit.and_then(|id| Some((entry_of(slots, id)?.priority, slots[id.0 as usize].serial)));
        let is_before = move |priority: u16, id: EntryId| {
            hit.is_none_or(|(of, serial)| priority > of || slots[id.0 as usize].serial < serial)
        };
        let levels = self.levels.range(hit.map_or(0, |(priority, _)| priority)..).rev();
        let members = levels.flat_map(|(&priority, level)| {
            let groups = level.groups.iter().filter(|group| group.example.index().is_none());
            groups.flat_map(|group| &group.members).map(move |id| (priority, *id))
        });
        members
            .take(most)
            .filter(move |(priority, id)| is_before(*priority, *id))
            .filter_map(|(_, id)| entry_of(slots, id))
    }
}
