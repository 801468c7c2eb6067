// SPDX-License-Identifier: Apache-2.0
//! Which entry a packet hits, found by what the table keeps for commands: of each priority and shape there is at most one
//! entry that a packet's values name.

use super::{Table, entry_of};
use crate::store::Slot;
use flow::{EntryId, Field, FieldMatch, FlowEntry, Match};

impl Table {
    /// The entry that a packet hits whose fields `value` tells: of those that match the one of highest priority, of these
    /// the one added first.
    pub fn lookup(&self, slots: &[Slot], value: &mut dyn FnMut(Field) -> Option<u128>) -> Option<EntryId> {
        self.levels.iter().rev().find_map(|(&priority, level)| {
            let hits = level.groups.iter().filter(|group| !group.linear).filter_map(|group| {
                let conditions = group
                    .fields
                    .iter()
                    .map(|&(field, mask)| Some(FieldMatch { field, value: value(field)? & mask, mask }));
                let conditions: Vec<FieldMatch> = conditions.collect::<Option<_>>()?;
                let matching = Match::unchecked_prerequisites(conditions).ok()?;
                self.find(slots, priority, &matching)
            });
            hits.min_by_key(|id| slots[*id as usize].serial)
        })
    }

    /// The entry with this index.
    pub fn at_index(&self, slots: &[Slot], index: u32) -> Option<EntryId> {
        let matching = Match::at_index(index);
        self.levels.keys().rev().find_map(|&priority| self.find(slots, priority, &matching))
    }

    /// Of the `most` entries of highest priority those that are tried before `hit`, highest priority first; without a hit
    /// all of them. Those of the hit's own priority that were added later count among the `most`, so that passing them over
    /// is bounded, too.
    pub fn tried_before<'a>(
        &'a self,
        slots: &'a [Slot],
        hit: Option<EntryId>,
        most: usize,
    ) -> impl Iterator<Item = &'a FlowEntry> + 'a {
        let hit = hit.and_then(|id| Some((entry_of(slots, id)?.priority, slots[id as usize].serial)));
        let is_before = move |priority: u16, id: EntryId| {
            hit.is_none_or(|(of, serial)| priority > of || slots[id as usize].serial < serial)
        };
        let levels = self.levels.range(hit.map_or(0, |(priority, _)| priority)..).rev();
        let members = levels.flat_map(|(&priority, level)| {
            let groups = level.groups.iter().filter(|group| !group.linear);
            groups.flat_map(|group| &group.members).map(move |id| (priority, *id))
        });
        members
            .take(most)
            .filter(move |(priority, id)| is_before(*priority, *id))
            .filter_map(|(_, id)| entry_of(slots, id))
    }
}
