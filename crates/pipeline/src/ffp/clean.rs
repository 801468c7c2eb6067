// SPDX-License-Identifier: Apache-2.0
//! Coherence of LUT records with changing rules.
//!
//! A record holds one exact value. A new rule concerns it only if the value matches the rule and the rule
//! takes precedence over the record's entry. The records that a change concerns are therefore known exactly,
//! and are removed before the change is active ([`Coherence::Eager`]). Alternatively, each record is verified
//! at its next hit against the change ([`Coherence::Lazy`], in [`super::lazy`]) or against the table
//! ([`Coherence::Generation`]).

use super::change::{Clean, Coherence, SLICE};
use super::lut::Lut;
use flow::EntryId;
use std::ops::Range;

/// Number of records sampled to choose the word that excludes most records.
const ASKED: usize = 16;

impl Lut {
    /// Adjusts the records to a change of the rules. Leaves replaced parts in `clean`.
    pub(crate) fn clean(&mut self, coherence: Coherence, clean: &mut Clean) {
        // Records of the previous LUT are always verified lazily. An eager cleanup would need a second copy
        // of the change while it is in progress.
        if let Some(previous) = &mut self.previous {
            previous.lut.remember(clean);
        }
        if let Clean::Removed(id) = clean {
            self.forget_added(*id);
        }
        match coherence {
            Coherence::Auto | Coherence::Eager if self.clean_eagerly(clean) => {}
            Coherence::Auto => self.remember(clean),
            Coherence::Eager => self.suspect_all(),
            Coherence::Lazy => self.remember(clean),
            Coherence::Generation => self.suspect_all(),
        }
    }

    /// Removes the addition of a rule from the changes, because the rule itself was removed.
    fn forget_added(&mut self, removed: EntryId) {
        self.recent.forget(removed);
        for slot in self.cleaning.slots.iter_mut().filter(|slot| slot.active) {
            if matches!(&slot.clean, Clean::Added { id, .. } if *id == removed) {
                slot.active = false;
                self.cleaning.active -= 1;
            }
        }
    }

    /// Removes the records that a change concerns. If the budget allows, they are removed immediately,
    /// otherwise step by step in [`Lut::work`]. Until the change is complete, hits are checked against it.
    /// Returns false if too many changes are in progress.
    fn clean_eagerly(&mut self, clean: &mut Clean) -> bool {
        if self.clean_at_once(clean) {
            return true;
        }
        let Some(slot) = self.cleaning.slots.iter_mut().find(|slot| !slot.active) else { return false };
        std::mem::swap(&mut slot.clean, clean);
        (slot.next, slot.active) = (0, true);
        self.cleaning.active += 1;
        true
    }

    /// Applies a change completely if the budget allows. Returns whether it did.
    fn clean_at_once(&mut self, clean: &Clean) -> bool {
        match clean {
            Clean::All => self.suspect_all(),
            _ if self.records.len() <= self.cleaning.budget => {
                self.cleaning.budget -= self.records.len();
                self.clean_slice(clean, 0);
            }
            _ => return false,
        }
        true
    }

    /// Continues the cleanup of a change by one slice. Returns the number of records in a slice, or 0 if no
    /// cleanup is in progress. Called before each batch of lookups.
    #[inline]
    pub(crate) fn work(&mut self) -> u32 {
        self.cleaning.budget = SLICE;
        if self.cleaning.active == 0 {
            return 0;
        }
        self.work_slice();
        SLICE as u32
    }

    #[inline(never)]
    fn work_slice(&mut self) {
        let Some(at) = self.cleaning.slots.iter().position(|slot| slot.active) else { return };
        let next = self.cleaning.slots[at].next;
        let clean = std::mem::take(&mut self.cleaning.slots[at].clean);
        self.clean_slice(&clean, next);
        let slot = &mut self.cleaning.slots[at];
        slot.clean = clean;
        slot.next = next + SLICE;
        if slot.next >= self.records.len() {
            slot.active = false;
            self.cleaning.active -= 1;
        }
    }

    fn clean_slice(&mut self, clean: &Clean, from: usize) {
        let to = (from + SLICE).min(self.records.len());
        let words = self.mask.len();
        let Clean::Added { row, .. } = clean else {
            (from..to).for_each(|place| self.clean_place(clean, place));
            return;
        };
        let row = clean.row_for(self.role, row);
        let Some(word) = self.telling_word(row, from..to) else {
            (from..to).for_each(|place| self.clean_place(clean, place));
            return;
        };
        let (value, mask) = (row[word], row[words + word] & self.mask[word]);
        for place in from..to {
            if (self.keys[place * words + word] ^ value) & mask == 0 {
                self.clean_place(clean, place);
            }
        }
    }

    /// Returns the word of a rule by which most records can be excluded, judged by the first records of the
    /// slice. For example, all records may have the rule's port, but only a few have its address.
    fn telling_word(&self, row: &[u64], places: Range<usize>) -> Option<usize> {
        let words = self.mask.len();
        let matching = |word: usize| {
            let (value, mask) = (row[word], row[words + word] & self.mask[word]);
            let asked = places.clone().take(ASKED);
            asked.filter(|place| (self.keys[place * words + word] ^ value) & mask == 0).count()
        };
        (0..words).filter(|_| row.len() == 2 * words).min_by_key(|word| matching(*word))
    }

    #[inline]
    fn clean_place(&mut self, clean: &Clean, place: usize) {
        if self.is_concerned(clean, place) && self.is_used(place) {
            self.free(place);
            self.counters.cleaned(1);
        }
    }

    /// Moves the changes in progress to the list for lazy verification.
    pub(super) fn put_off(&mut self) {
        let mut cleaning = std::mem::take(&mut self.cleaning);
        let under_way = || cleaning.slots.iter().filter(|slot| slot.active).map(|slot| &slot.clean);
        if under_way().any(|clean| matches!(clean, Clean::Removed(_))) {
            // The order of the changes is not known here, and the id of a removed entry may have been used
            // again. All records must therefore be verified.
            self.suspect_all();
        } else {
            under_way().for_each(|clean| self.remember(clean));
        }
        cleaning.active = 0;
        cleaning.slots.iter_mut().for_each(|slot| slot.active = false);
        self.cleaning = cleaning;
    }

    /// Returns whether changes are in progress.
    #[inline]
    pub(super) fn is_cleaning(&self) -> bool {
        self.cleaning.active > 0
    }

    /// Removes a record if a change in progress concerns it. Returns whether it was removed.
    #[inline]
    pub(crate) fn is_outdated(&mut self, place: u32) -> bool {
        self.cleaning.active > 0 && self.check(place as usize)
    }

    #[inline(never)]
    fn check(&mut self, place: usize) -> bool {
        let slots = self.cleaning.slots.iter();
        let outdated = slots
            .filter(|slot| slot.active && slot.next <= place)
            .any(|slot| self.is_concerned(&slot.clean, place));
        if outdated {
            self.free(place);
            self.counters.cleaned(1);
        }
        outdated
    }

    /// Returns whether a change concerns a record.
    fn is_concerned(&self, clean: &Clean, place: usize) -> bool {
        let record = &self.records[place];
        match clean {
            Clean::Added { priority, row, .. } => {
                let row = clean.row_for(self.role, row);
                let (value, mask) = row.split_at(row.len() / 2);
                record.priority < *priority && self.meets(place, value, mask)
            }
            Clean::Removed(id) => record.id == *id,
            Clean::Marked(id, low_latency) => record.id == *id && record.low_latency != *low_latency,
            Clean::All => true,
        }
    }

    /// Returns whether packets of the record's value may match the rule: the record's value and the rule are
    /// equal in all bits that both the LUT and the rule examine.
    fn meets(&self, place: usize, value: &[u64], mask: &[u64]) -> bool {
        self.row(place)
            .iter()
            .zip(&self.mask)
            .zip(value.iter().zip(mask))
            .fold(0, |differing, ((row, own), (value, mask))| differing | (row ^ value) & own & mask)
            == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engines::NONE;
    use std::sync::Arc;

    fn lut() -> Lut {
        let mut lut = Lut::new(&[0xffff], 128, Arc::default());
        for value in 0..40 {
            lut.learn(&mut [value], EntryId(value as u32 % 4), 10, true);
        }
        lut
    }

    fn added(priority: u16, row: [u64; 2]) -> Clean {
        Clean::Added { priority, row: row.into(), before: None, id: EntryId(99), single: false }
    }

    fn clean(lut: &mut Lut, mut change: Clean) {
        lut.clean(Coherence::Eager, &mut change);
    }

    fn known(lut: &Lut) -> Vec<u64> {
        (0..40).filter(|value| lut.find(&[*value], lut.hash(&[*value])) != NONE).collect()
    }

    #[test]
    fn a_new_rule_takes_the_records_that_it_beats_and_matches() {
        let mut lut = lut();
        clean(&mut lut, added(10, [0, 0]));
        assert_eq!(known(&lut).len(), 40, "among equal priorities, the first added wins");
        clean(&mut lut, added(11, [8, 0xff8]));
        assert_eq!(known(&lut), (0..8).chain(16..40).collect::<Vec<_>>());
        // The rule examines bits that the LUT does not, so the LUT's records may match it.
        clean(&mut lut, added(11, [0x1_0010, 0x1_fff8]));
        assert_eq!(known(&lut), (0..8).chain(24..40).collect::<Vec<_>>());
        assert_eq!(lut.counters.read().cleaned, 16);
    }

    #[test]
    fn a_large_lut_is_cleaned_in_slices_and_what_is_hit_before_is_checked() {
        let mut lut = Lut::new(&[0xffff], 8 * SLICE, Arc::default());
        for value in 0..10_000 {
            lut.learn(&mut [value], EntryId(value as u32 % 4), 10, true);
        }
        for _ in 0..3 {
            clean(&mut lut, added(11, [0, 1]));
        }
        let place = |lut: &Lut, value: u64| lut.find(&[value], lut.hash(&[value]));
        let (even, odd) = (place(&lut, 2_000), place(&lut, 2_001));
        assert_ne!((even, odd), (NONE, NONE), "nothing was cleaned yet");
        assert!(lut.is_outdated(even) && !lut.is_outdated(odd));
        for _ in 0..3 * 8 {
            lut.work();
        }
        assert_eq!(lut.cleaning.active, 0);
        let even = (0..10_000).filter(|value| place(&lut, *value) != NONE && value % 2 == 0).count();
        assert_eq!(even, 0);
        // If more than the maximum number of changes are in progress, all records are verified.
        (0..16).for_each(|_| clean(&mut lut, added(11, [0, 1])));
        assert_eq!(lut.generation(), 0);
        clean(&mut lut, Clean::Removed(EntryId(1)));
        assert_ne!(lut.generation(), 0);
    }

    #[test]
    fn a_rule_that_is_removed_again_concerns_no_record() {
        let mut lut = Lut::new(&[0xffff], 8 * SLICE, Arc::default());
        lut.learn(&mut [1], EntryId(1), 10, true);
        let place = lut.find(&[1], lut.hash(&[1]));
        clean(&mut lut, added(11, [0, 0]));
        clean(&mut lut, Clean::Removed(EntryId(99)));
        assert!(!lut.is_outdated(place), "it is right again");
        assert_eq!(lut.cleaning.active, 1, "only the removal is in progress");
        for _ in 0..8 {
            lut.work();
        }
        assert_eq!((lut.cleaning.active, lut.find(&[1], lut.hash(&[1]))), (0, place));
    }

    #[test]
    fn an_entry_takes_its_records_with_it() {
        let mut lut = lut();
        clean(&mut lut, Clean::Removed(EntryId(1)));
        assert_eq!(known(&lut), (0..40).filter(|v| v % 4 != 1).collect::<Vec<_>>());
        clean(&mut lut, Clean::Removed(EntryId(77)));
        assert_eq!(known(&lut).len(), 30);
    }

    #[test]
    fn an_entry_of_another_mark_keeps_records_of_that_kind_only() {
        let mut lut = lut();
        lut.learn(&mut [1], EntryId(1), 10, false);
        clean(&mut lut, Clean::Marked(EntryId(1), false));
        assert_eq!(known(&lut), (0..40).filter(|v| v % 4 != 1 || *v == 1).collect::<Vec<_>>());
        clean(&mut lut, Clean::Marked(EntryId(1), true));
        assert_eq!(known(&lut), (0..40).filter(|v| v % 4 != 1).collect::<Vec<_>>());
    }
}
