// SPDX-License-Identifier: Apache-2.0
//! Lazy coherence, as in the paper by Ling, Chen and Song (2023): adding a rule touches no record. The rule
//! becomes an *extra rule* of all records, and a record is verified against its extra rules before it is used
//! again. The hit that verifies a record uses the cheaper of two methods: it walks the list of extra rules,
//! or looks up the value in the table.
//!
//! The extra rules of a record are found among the last [`REMEMBERED`] changes of its LUT: changes made after
//! the record was last verified, whose rules match the record's value and take precedence over its entry. The
//! LUT stores the rows of the changes once for all records. A record stores only where its list begins
//! ([`Record::generation`]).

use super::change::Clean;
use super::lut::{Lut, Record};
use super::recent::{Change, ChangeKind, REMEMBERED};
use flow::EntryId;

/// Result of checking a record against its extra rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recheck {
    /// The record is right.
    Right,
    /// This entry applies to the record's value instead.
    Other(EntryId),
    /// A lookup in the table is needed.
    Unknown,
}

impl Lut {
    /// Sets the maximum length of a list that is walked. Walking a list of this length takes less time than a
    /// table lookup.
    pub fn set_list_max(&mut self, rules: u32) {
        self.recent.list_max = rules.min(REMEMBERED as u32);
    }

    /// Requires every record to be verified against the table before it is used again.
    pub(super) fn suspect_all(&mut self) {
        // This makes every list longer than the maximum.
        self.advance(REMEMBERED as u32 + 1);
    }

    /// Advances the generation. Each call also examines one record and removes it if its generation is very
    /// old, because generation numbers wrap around.
    fn advance(&mut self, by: u32) {
        self.generation = self.generation.wrapping_add(by);
        let place = self.recent.aging;
        self.recent.aging = (place + 1) % self.records.len();
        if self.generation.wrapping_sub(self.records[place].generation) > u32::MAX / 2 {
            self.free(place);
        }
    }

    /// Appends a change to the lists of all records.
    pub(super) fn remember(&mut self, clean: &Clean) {
        let at = self.generation.wrapping_add(1) as usize % REMEMBERED;
        let words = 2 * self.mask.len();
        self.recent.changes[at] = match clean {
            Clean::Added { id, priority, row, .. } => {
                let row = clean.row_for(self.role, row);
                if row.len() != words {
                    return self.suspect_all();
                }
                let kept = &mut self.recent.rows[at * words..][..words];
                kept.copy_from_slice(row);
                // Records of a previous LUT are compared only with the bits that this LUT examines.
                kept[words / 2..].iter_mut().zip(&self.mask).for_each(|(mask, own)| *mask &= own);
                Change { id: *id, priority: *priority, kind: ChangeKind::Added }
            }
            Clean::Removed(id) => {
                self.recent.forget(*id);
                Change { id: *id, priority: 0, kind: ChangeKind::Removed }
            }
            // Records that name this entry are looked up and corrected.
            Clean::Marked(id, _) => Change { id: *id, priority: 0, kind: ChangeKind::Removed },
            Clean::All => return self.suspect_all(),
        };
        self.advance(1);
    }

    /// Returns whether a record's list of extra rules shows that the record is right.
    pub(super) fn stands(&self, place: u32, key: &[u64]) -> bool {
        self.record(place).is_some_and(|record| self.walk_list(record, key) == Recheck::Right)
    }

    /// Checks a record against its extra rules. `key` is the record's value.
    fn walk_list(&self, record: &Record, key: &[u64]) -> Recheck {
        let length = self.generation.wrapping_sub(record.generation);
        if length > self.recent.list_max {
            return Recheck::Unknown;
        }
        let words = key.len();
        let (mut best, mut recheck) = ((record.id, record.priority), Recheck::Right);
        for back in (0..length).rev() {
            let at = self.generation.wrapping_sub(back) as usize % REMEMBERED;
            let change = self.recent.changes[at];
            match change.kind {
                // Changes are walked in their order, so among rules of equal priority the first one wins.
                ChangeKind::Added if change.priority > best.1 => {
                    let (value, mask) = self.recent.rows[at * 2 * words..][..2 * words].split_at(words);
                    if matches(key, value, mask) {
                        best = (change.id, change.priority);
                        // If this id equals the record's id, the id was reused and names another entry.
                        recheck = Recheck::Other(change.id);
                    }
                }
                ChangeKind::Removed if change.id == best.0 => return Recheck::Unknown,
                _ => {}
            }
        }
        recheck
    }

    /// Verifies a record against its extra rules, or against the table if these are too many or do not
    /// suffice.
    ///
    /// Makes the record name the entry found, and empties its list. Removes the record if no entry is found,
    /// or if a low-latency record would name a normal entry. `search` looks up the record's value in the
    /// table. `entry` returns an entry's priority and whether it is low-latency.
    pub(crate) fn verify(
        &mut self,
        place: u32,
        key: &[u64],
        search: impl FnOnce() -> Option<EntryId>,
        entry: impl Fn(EntryId) -> Option<(u16, bool)>,
    ) -> Option<Record> {
        self.counters.verified(1);
        let record = *self.record(place)?;
        let found = match self.walk_list(&record, key) {
            Recheck::Right => {
                self.counters.walked(1);
                let right = self.records.get_mut(place as usize)?;
                right.generation = self.generation;
                return Some(*right);
            }
            Recheck::Other(id) => {
                self.counters.walked(1);
                Some(id)
            }
            Recheck::Unknown => search(),
        };
        let found = found.and_then(|id| Some((id, entry(id)?)));
        let Some((id, (priority, low_latency))) = found else {
            self.free(place as usize);
            return None;
        };
        let right = Record { id, priority, low_latency, generation: self.generation, ..record };
        if record.low_latency && !low_latency {
            self.free(place as usize);
        } else {
            self.records[place as usize] = right;
        }
        Some(right)
    }
}

/// Returns whether a value matches a rule. Bits of the value that no rule examines must be 0.
#[inline]
fn matches(key: &[u64], value: &[u64], mask: &[u64]) -> bool {
    let rule = value.iter().zip(mask);
    key.iter().zip(rule).fold(0, |differing, (key, (value, mask))| differing | (key ^ value) & mask) == 0
}

#[cfg(test)]
mod tests {
    use super::super::change::Coherence;
    use super::*;
    use engines::NONE;
    use std::sync::Arc;

    /// Entries with lower ids are low-latency.
    const NORMAL: u32 = 1_000;

    /// Returns a LUT with values 0 to 7, each resolved to entry 1 of priority 10.
    fn lut() -> Lut {
        let mut lut = Lut::new(&[0xffff], 1_024, Arc::default());
        (0..8).for_each(|value| lut.learn(&mut [value], EntryId(1), 10, true));
        lut
    }

    fn change(lut: &mut Lut, mut clean: Clean) {
        lut.clean(Coherence::Lazy, &mut clean);
    }

    fn add(lut: &mut Lut, id: u32, priority: u16, row: [u64; 2]) {
        let id = EntryId(id);
        change(lut, Clean::Added { priority, row: row.into(), before: None, id, single: false });
    }

    /// Returns the entry that a packet of this value gets. A table lookup would return entry 77.
    fn hit(lut: &mut Lut, value: u64) -> Option<u32> {
        let place = lut.find(&[value], lut.hash(&[value]));
        let record = *lut.record(place)?;
        if record.generation == lut.generation() {
            return Some(record.id.0);
        }
        let entry = |id: EntryId| Some((20, id.0 < NORMAL));
        lut.verify(place, &[value], || Some(EntryId(77)), entry).map(|record| record.id.0)
    }

    fn counts(lut: &Lut) -> (u64, u64) {
        let figures = lut.counters.read();
        (figures.verified, figures.walked)
    }

    #[test]
    fn a_record_is_held_against_the_changes_since_and_no_other_is_taken_for_verified() {
        let mut lut = lut();
        add(&mut lut, 2, 20, [3, 0xffff]);
        assert_eq!((hit(&mut lut, 1), counts(&lut)), (Some(1), (1, 1)), "the rule does not match it");
        assert_eq!((hit(&mut lut, 1), counts(&lut)), (Some(1), (1, 1)), "its list is empty now");
        assert_eq!((hit(&mut lut, 3), counts(&lut)), (Some(2), (2, 2)), "each record has a list");
        assert_eq!((hit(&mut lut, 3), counts(&lut)), (Some(2), (2, 2)));
        // First a rule of lower priority, then a rule of equal priority. The entry added first wins.
        add(&mut lut, 3, 9, [0, 0]);
        add(&mut lut, 4, 10, [0, 0]);
        assert_eq!(hit(&mut lut, 2), Some(1));
        // Several rules match. The highest priority wins; among equal priorities, the first added wins.
        add(&mut lut, 5, 30, [0, 0]);
        add(&mut lut, 6, 40, [0, 0xfffe]);
        add(&mut lut, 7, 40, [0, 0]);
        assert_eq!((hit(&mut lut, 0), hit(&mut lut, 6)), (Some(6), Some(7)));
        assert_eq!(lut.counters.read().walked, lut.counters.read().verified);
    }

    #[test]
    fn a_record_that_a_normal_rule_beats_goes() {
        let mut lut = lut();
        add(&mut lut, NORMAL, 20, [3, 0xffff]);
        assert_eq!((hit(&mut lut, 3), hit(&mut lut, 3)), (Some(NORMAL), None));
        assert_eq!((hit(&mut lut, 4), lut.counters.read().records), (Some(1), 7));
    }

    #[test]
    fn deleted_rules_leave_all_lists_and_deleted_entries_lose_their_records() {
        let mut lut = lut();
        add(&mut lut, 2, 20, [0, 0]);
        change(&mut lut, Clean::Removed(EntryId(2)));
        assert_eq!((hit(&mut lut, 1), counts(&lut)), (Some(1), (1, 1)));
        change(&mut lut, Clean::Removed(EntryId(1)));
        assert_eq!((hit(&mut lut, 1), counts(&lut)), (Some(77), (2, 1)), "only the table can tell");
        // The id is reused, so the record now names another entry.
        add(&mut lut, 1, 5, [0, 0]);
        assert_eq!((hit(&mut lut, 2), counts(&lut)), (Some(77), (3, 1)));
        let place = lut.find(&[3], lut.hash(&[3]));
        assert_eq!(lut.verify(place, &[3], || None, |_| Some((1, true))), None);
        assert_eq!(lut.find(&[3], lut.hash(&[3])), NONE, "no entry, no record");
    }

    #[test]
    fn an_entry_of_another_mark_is_looked_up_and_stays_an_extra_rule() {
        let mut lut = lut();
        add(&mut lut, 2, 20, [3, 0xffff]);
        change(&mut lut, Clean::Marked(EntryId(2), false));
        assert_eq!((hit(&mut lut, 3), counts(&lut)), (Some(77), (1, 0)), "it still beats the record");
        assert_eq!((hit(&mut lut, 4), counts(&lut)), (Some(1), (2, 1)));
        change(&mut lut, Clean::Marked(EntryId(1), false));
        assert_eq!((hit(&mut lut, 4), counts(&lut)), (Some(77), (3, 1)));
    }

    #[test]
    fn long_lists_and_what_is_no_longer_remembered_are_looked_up() {
        let mut lut = lut();
        lut.set_list_max(2);
        (0..2).for_each(|id| add(&mut lut, 10 + id, 20, [0x100, 0xffff]));
        assert_eq!((hit(&mut lut, 1), counts(&lut)), (Some(1), (1, 1)));
        add(&mut lut, 12, 20, [0x100, 0xffff]);
        assert_eq!((hit(&mut lut, 1), counts(&lut)), (Some(1), (2, 2)), "one change since it was verified");
        assert_eq!((hit(&mut lut, 2), counts(&lut)), (Some(77), (3, 2)));
        lut.set_list_max(1_000);
        (0..REMEMBERED as u32).for_each(|id| add(&mut lut, 20 + id, 1, [0, 0]));
        assert_eq!(hit(&mut lut, 1), Some(1));
        add(&mut lut, 99, 1, [0, 0]);
        assert_eq!(hit(&mut lut, 3), Some(77));
        // A change in another mode happens in between.
        lut.clean(Coherence::Generation, &mut Clean::All);
        add(&mut lut, 100, 1, [0, 0]);
        assert_eq!(hit(&mut lut, 4), Some(77));
    }

    #[test]
    fn no_record_is_there_still_when_its_generation_comes_again() {
        let mut lut = lut();
        let places = lut.records.len();
        lut.generation = u32::MAX / 2 + 1;
        assert_eq!(hit(&mut lut, 5), Some(77), "its list is too long");
        (0..places).for_each(|_| add(&mut lut, 2, 1, [0, 0]));
        lut.generation = 0;
        assert_eq!((hit(&mut lut, 1), lut.counters.read().records), (None, 1));
    }
}
