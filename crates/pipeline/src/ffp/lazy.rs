// SPDX-License-Identifier: Apache-2.0
//! Lazy consistency, after the paper: a rule that is added touches no record. It joins the *extra rules* that each record
//! has to be held against before it is used again, and a hit does so by what takes less time: walking them, or a lookup in
//! the table.
//!
//! A record's extra rules are those of its LUT's last [`REMEMBERED`] changes that came after the record was last known to
//! be right, beat its entry and match its value. So the rows stand once in the LUT, side by side; what belongs to the
//! record is where its own list begins ([`Record::generation`]), hence also its length. Verifying one record clears its
//! list and no other's.

use super::clean::Clean;
use super::lut::{Lut, Record};
use flow::EntryId;

/// Changes that a LUT remembers: no list is longer.
pub(super) const REMEMBERED: usize = 64;

/// What became of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// It was added, and went again; or there is nothing.
    #[default]
    Gone,
    Added,
    Removed,
}

#[derive(Clone, Copy, Debug, Default)]
struct Change {
    id: EntryId,
    priority: u16,
    kind: Kind,
}

/// The last changes of a table's rules. The one that made generation `g` stands at `g % REMEMBERED`.
#[derive(Debug)]
pub(super) struct Recent {
    changes: [Change; REMEMBERED],
    /// For each change the rule's values and masks.
    rows: Box<[u64]>,
    /// Longer lists are not walked.
    list_max: u32,
    /// The record that is looked at next for its age.
    aging: usize,
}

/// What a record's extra rules say of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It is right.
    Right,
    /// This entry serves its value instead.
    Other(EntryId),
    /// Only the table can tell.
    Unknown,
}

impl Recent {
    pub fn new(words: usize) -> Self {
        Self {
            changes: [Change::default(); REMEMBERED],
            rows: vec![0; REMEMBERED * 2 * words].into_boxed_slice(),
            list_max: REMEMBERED as u32,
            aging: 0,
        }
    }

    /// Bytes that it holds.
    pub fn bytes(words: usize) -> usize {
        REMEMBERED * (size_of::<Change>() + 2 * words * 8)
    }

    /// A deleted rule leaves all lists.
    pub fn forget(&mut self, id: EntryId) {
        for change in &mut self.changes {
            if change.id == id && change.kind == Kind::Added {
                change.kind = Kind::Gone;
            }
        }
    }
}

impl Lut {
    /// Sets how long a list is still walked: where that takes less time than a lookup in the table.
    pub fn set_list_max(&mut self, rules: u32) {
        self.recent.list_max = rules.min(REMEMBERED as u32);
    }

    /// Every record is held against the table before it is used again.
    pub(super) fn suspect_all(&mut self) {
        // No list reaches back that far.
        self.advance(REMEMBERED as u32 + 1);
    }

    /// Goes on to a later generation. With each step one record is looked at, and goes if nothing has hit it for half of all
    /// generations: so none is there still when its own comes again.
    fn advance(&mut self, by: u32) {
        self.generation = self.generation.wrapping_add(by);
        let place = self.recent.aging;
        self.recent.aging = (place + 1) % self.records.len();
        if self.generation.wrapping_sub(self.records[place].generation) > u32::MAX / 2 {
            self.free(place);
        }
    }

    /// Lets a change join the lists of all records.
    pub(super) fn remember(&mut self, clean: &Clean) {
        let at = self.generation.wrapping_add(1) as usize % REMEMBERED;
        let words = 2 * self.mask.len();
        self.recent.changes[at] = match clean {
            Clean::Added { id, priority, row, .. } => {
                let row = clean.row_for(self, row);
                if row.len() != words {
                    return self.suspect_all();
                }
                let kept = &mut self.recent.rows[at * words..][..words];
                kept.copy_from_slice(row);
                // A LUT that serves beside a wider one does not know all bits: the rule may match all the same.
                kept[words / 2..].iter_mut().zip(&self.mask).for_each(|(mask, own)| *mask &= own);
                Change { id: *id, priority: *priority, kind: Kind::Added }
            }
            Clean::Removed(id) => {
                self.recent.forget(*id);
                Change { id: *id, priority: 0, kind: Kind::Removed }
            }
            // Records of that entry are looked up and corrected. It may itself be among the extra rules, and stays there.
            Clean::Marked(id, _) => Change { id: *id, priority: 0, kind: Kind::Removed },
            Clean::All => return self.suspect_all(),
        };
        self.advance(1);
    }

    /// Whether a record is right as it stands, as far as its list tells.
    pub(super) fn stands(&self, place: u32, key: &[u64]) -> bool {
        self.record(place).is_some_and(|record| self.walk_list(record, key) == Verdict::Right)
    }

    /// Walks a record's extra rules. `key` is its value.
    fn walk_list(&self, record: &Record, key: &[u64]) -> Verdict {
        let length = self.generation.wrapping_sub(record.generation);
        if length > self.recent.list_max {
            return Verdict::Unknown;
        }
        let words = key.len();
        let (mut best, mut verdict) = ((record.id, record.priority), Verdict::Right);
        for back in (0..length).rev() {
            let at = self.generation.wrapping_sub(back) as usize % REMEMBERED;
            let change = self.recent.changes[at];
            match change.kind {
                // In the order in which they came: of equal priority the first stays.
                Kind::Added if change.priority > best.1 => {
                    let (value, mask) = self.recent.rows[at * 2 * words..][..2 * words].split_at(words);
                    if matches(key, value, mask) {
                        best = (change.id, change.priority);
                        // Even if the number is the record's: then it is used again.
                        verdict = Verdict::Other(change.id);
                    }
                }
                Kind::Removed if change.id == best.0 => return Verdict::Unknown,
                _ => {}
            }
        }
        verdict
    }

    /// Holds a record against its extra rules, or against the table where these do not tell or are too many, and corrects
    /// it: it points to the low-latency entry found, goes if that is a normal one, and its list is empty again. `search`
    /// looks its value up in the table; `entry` tells an entry's priority and whether it is low-latency.
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
            Verdict::Right => {
                self.counters.walked(1);
                let right = self.records.get_mut(place as usize)?;
                right.generation = self.generation;
                return Some(*right);
            }
            Verdict::Other(id) => {
                self.counters.walked(1);
                Some(id)
            }
            Verdict::Unknown => search(),
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

/// Whether a value, cleared of the bits that no rule examines, matches a rule.
#[inline]
fn matches(key: &[u64], value: &[u64], mask: &[u64]) -> bool {
    let rule = value.iter().zip(mask);
    key.iter().zip(rule).fold(0, |differing, (key, (value, mask))| differing | (key ^ value) & mask) == 0
}

#[cfg(test)]
mod tests {
    use super::super::clean::Manner;
    use super::*;
    use std::sync::Arc;
    use tables::NONE;

    /// Ids below this are low-latency.
    const NORMAL: EntryId = 1_000;

    /// Values 0 to 7, each by entry 1 of priority 10.
    fn lut() -> Lut {
        let mut lut = Lut::new(&[0xffff], 1_024, Arc::default());
        (0..8).for_each(|value| lut.learn(&mut [value], 1, 10, true));
        lut
    }

    fn change(lut: &mut Lut, mut clean: Clean) {
        lut.clean(Manner::Lazy, &mut clean);
    }

    fn add(lut: &mut Lut, id: EntryId, priority: u16, row: [u64; 2]) {
        change(lut, Clean::Added { priority, row: row.into(), before: None, id, single: false });
    }

    /// What a packet of a value is told; the table would say entry 77.
    fn hit(lut: &mut Lut, value: u64) -> Option<EntryId> {
        let place = lut.find(&[value], lut.hash(&[value]));
        let record = *lut.record(place)?;
        if record.generation == lut.generation() {
            return Some(record.id);
        }
        lut.verify(place, &[value], || Some(77), |id| Some((20, id < NORMAL))).map(|record| record.id)
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
        assert_eq!((hit(&mut lut, 3), counts(&lut)), (Some(2), (2, 2)), "of the same entry, its own list");
        assert_eq!((hit(&mut lut, 3), counts(&lut)), (Some(2), (2, 2)));
        // Beaten, and of equal priority: the one added first wins.
        add(&mut lut, 3, 9, [0, 0]);
        add(&mut lut, 4, 10, [0, 0]);
        assert_eq!(hit(&mut lut, 2), Some(1));
        // Several match: the best, and of the best the first.
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
        change(&mut lut, Clean::Removed(2));
        assert_eq!((hit(&mut lut, 1), counts(&lut)), (Some(1), (1, 1)));
        change(&mut lut, Clean::Removed(1));
        assert_eq!((hit(&mut lut, 1), counts(&lut)), (Some(77), (2, 1)), "only the table can tell");
        // The number is used again: what the record says is another entry's.
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
        change(&mut lut, Clean::Marked(2, false));
        assert_eq!((hit(&mut lut, 3), counts(&lut)), (Some(77), (1, 0)), "it beats the record still");
        assert_eq!((hit(&mut lut, 4), counts(&lut)), (Some(1), (2, 1)));
        change(&mut lut, Clean::Marked(1, false));
        assert_eq!((hit(&mut lut, 4), counts(&lut)), (Some(77), (3, 1)));
    }

    #[test]
    fn long_lists_and_what_is_no_longer_remembered_are_looked_up() {
        let mut lut = lut();
        lut.set_list_max(2);
        (0..2).for_each(|id| add(&mut lut, 10 + id, 20, [0x100, 0xffff]));
        assert_eq!((hit(&mut lut, 1), counts(&lut)), (Some(1), (1, 1)));
        add(&mut lut, 12, 20, [0x100, 0xffff]);
        assert_eq!((hit(&mut lut, 1), counts(&lut)), (Some(1), (2, 2)), "the list is its own");
        assert_eq!((hit(&mut lut, 2), counts(&lut)), (Some(77), (3, 2)));
        lut.set_list_max(1_000);
        (0..REMEMBERED as u32).for_each(|id| add(&mut lut, 20 + id, 1, [0, 0]));
        assert_eq!(hit(&mut lut, 1), Some(1));
        add(&mut lut, 99, 1, [0, 0]);
        assert_eq!(hit(&mut lut, 3), Some(77));
        // A change in another manner between two of them.
        lut.clean(Manner::Generation, &mut Clean::All);
        add(&mut lut, 100, 1, [0, 0]);
        assert_eq!(hit(&mut lut, 4), Some(77));
    }

    #[test]
    fn no_record_is_there_still_when_its_generation_comes_again() {
        let mut lut = lut();
        let places = lut.records.len();
        lut.generation = u32::MAX / 2 + 1;
        assert_eq!(hit(&mut lut, 5), Some(77), "in use");
        (0..places).for_each(|_| add(&mut lut, 2, 1, [0, 0]));
        lut.generation = 0;
        assert_eq!((hit(&mut lut, 1), lut.counters.read().records), (None, 1));
    }
}
