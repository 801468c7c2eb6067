// SPDX-License-Identifier: Apache-2.0
//! Entries of a table in the order in which they were added.

use flow::EntryId;

/// Number of removed entries up to which [`Order::tidy`] is never worthwhile.
const REMOVED_MIN: usize = 64;

/// Entries by ascending serial number. Most entries are added at the end. The place of a removed entry stays
/// until [`Order::tidy`], so that a removal can be undone without moving others.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Serial number and entry of each place. A removed entry is [`EntryId::NONE`].
    places: Vec<(u64, EntryId)>,
    /// All places before this one are those of removed entries.
    begin: usize,
    removed: usize,
}

impl Order {
    pub fn len(&self) -> usize {
        self.places.len() - self.removed
    }

    /// Adds an entry, or undoes the removal of the entry with this serial number.
    pub fn insert(&mut self, serial: u64, id: EntryId) {
        if self.places.last().is_none_or(|(last, _)| *last < serial) {
            return self.places.push((serial, id));
        }
        let place = self.places.binary_search_by_key(&serial, |(serial, _)| *serial);
        match place {
            Ok(at) => {
                self.removed -= usize::from(self.places[at].1 == EntryId::NONE);
                self.places[at].1 = id;
            }
            Err(at) => self.places.insert(at, (serial, id)),
        }
        self.begin = self.begin.min(place.unwrap_or_else(|at| at));
    }

    /// Removes the entry with this serial number.
    pub fn remove(&mut self, serial: u64) {
        if let Ok(at) = self.places.binary_search_by_key(&serial, |(serial, _)| *serial) {
            self.removed += usize::from(self.places[at].1 != EntryId::NONE);
            self.places[at].1 = EntryId::NONE;
            if self.begin == at {
                let others = self.places[at..].iter();
                self.begin += others.take_while(|(_, id)| *id == EntryId::NONE).count();
            }
        }
    }

    /// Removes all entries. Returns them in order.
    pub fn remove_all(&mut self) -> Vec<EntryId> {
        let ids = self.places[self.begin..].iter_mut().map(|(_, id)| std::mem::replace(id, EntryId::NONE));
        let ids = ids.filter(|id| *id != EntryId::NONE).collect();
        self.removed = self.places.len();
        self.begin = self.places.len();
        ids
    }

    /// Returns the entries whose serial numbers are at least `serial`.
    pub fn range_from(&self, serial: u64) -> impl Iterator<Item = (u64, EntryId)> {
        let from = self.places.partition_point(|(other, _)| *other < serial).max(self.begin);
        self.places[from..].iter().filter(|(_, id)| *id != EntryId::NONE).copied()
    }

    /// Returns all entries.
    pub fn entries(&self) -> impl Iterator<Item = EntryId> {
        self.range_from(0).map(|(_, id)| id)
    }

    /// Returns whether most places are those of removed entries.
    pub fn is_untidy(&self) -> bool {
        self.removed > REMOVED_MIN.max(self.places.len() / 2)
    }

    /// Gives up the places of removed entries. Should not be called between a removal and its undoing, which
    /// would then move other entries.
    pub fn tidy(&mut self) {
        self.places.retain(|(_, id)| *id != EntryId::NONE);
        self.places.shrink_to(self.places.len() * 2);
        (self.begin, self.removed) = (0, 0);
    }

    /// Returns the number of places.
    #[cfg(test)]
    pub fn places(&self) -> usize {
        self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn any_changes_leave_the_entries_of_a_map() {
        let mut rng = fastrand::Rng::with_seed(1);
        for case in 0..50 {
            let (mut order, mut right) = (Order::default(), BTreeMap::new());
            let (mut next, mut gone) = (0, Vec::new());
            for _ in 0..2_000 {
                match rng.u32(..10) {
                    0..5 => {
                        next += rng.u64(1..3);
                        order.insert(next, EntryId(next as u32));
                        right.insert(next, EntryId(next as u32));
                    }
                    5..8 => {
                        let serial = rng.u64(..=next);
                        order.remove(serial);
                        gone.extend(right.remove(&serial).map(|id| (serial, id)));
                    }
                    8 if rng.u32(..100) == 0 => {
                        assert!(order.remove_all().into_iter().eq(right.values().copied()));
                        gone.extend(std::mem::take(&mut right));
                    }
                    8 => {
                        if let Some((serial, id)) = gone.pop() {
                            order.insert(serial, id);
                            right.insert(serial, id);
                        }
                    }
                    _ if rng.u32(..50) == 0 => order.tidy(),
                    _ => {}
                }
                assert_eq!(order.len(), right.len(), "case {case}");
                assert!(order.places[..order.begin].iter().all(|(_, id)| *id == EntryId::NONE));
            }
            assert!(order.entries().eq(right.values().copied()), "case {case}");
            let from = rng.u64(..=next);
            assert!(order.range_from(from).eq(right.range(from..).map(|(serial, id)| (*serial, *id))));
        }
    }

    #[test]
    fn removed_entries_at_the_begin_are_not_visited_again() {
        let mut order = Order::default();
        (0..1_000).for_each(|serial| order.insert(serial, EntryId(7)));
        order.remove_all();
        assert_eq!(order.begin, 1_000);
        order.insert(1_000, EntryId(7));
        order.insert(1_001, EntryId(7));
        order.remove(1_000);
        assert_eq!((order.begin, order.len()), (1_001, 1));
        order.insert(5, EntryId(5));
        assert_eq!((order.begin, order.len()), (5, 2));
        assert!(order.entries().eq([EntryId(5), EntryId(7)]));
        order.remove(5);
        assert_eq!(order.begin, 1_001);
    }

    #[test]
    fn the_places_of_removed_entries_are_given_up_when_they_are_more_than_half() {
        let mut order = Order::default();
        (0..1_000).for_each(|serial| order.insert(serial, EntryId(7)));
        (0..500).for_each(|serial| order.remove(serial));
        assert!(!order.is_untidy());
        order.remove(500);
        order.remove(500);
        assert!(order.is_untidy());
        order.tidy();
        assert_eq!((order.len(), order.places.len(), order.is_untidy()), (499, 499, false));
        let mut few = Order::default();
        (0..REMOVED_MIN as u64).for_each(|serial| few.insert(serial, EntryId(7)));
        (0..REMOVED_MIN as u64).for_each(|serial| few.remove(serial));
        assert!(!few.is_untidy());
    }
}
