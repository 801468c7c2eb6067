// SPDX-License-Identifier: Apache-2.0
//! Keeping records right while rules change. A record holds one exact value; a new rule concerns it only if the value
//! matches the rule and the rule beats the record's entry. So the records that a change concerns can be told exactly, and
//! go before the change is in force ([`Manner::Eager`]). Or each record is held against the change at its next hit
//! ([`Manner::Lazy`], in [`super::lazy`]), or against the table ([`Manner::Generation`]).

use super::lut::Lut;
use flow::EntryId;
use std::ops::Range;

/// Records looked at in one go: a slice takes a few microseconds.
const SLICE: usize = 512;

/// Records of a slice that are asked which word of theirs tells them from a rule.
const ASKED: usize = 16;

/// Changes that may be under way in a LUT at once.
const UNDER_WAY: usize = 16;

/// How the records of a LUT are kept right when a rule changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// Eager, but lazy while more changes are under way than can be worked off.
    #[default]
    Auto,
    /// Those that the change concerns go: found by looking at all, in bounded slices. A hit carries no check, but for what
    /// is under way; more than that goes by generation.
    Eager,
    /// At its next hit each record is held against the changes since it was last known to be right.
    Lazy,
    /// At its next hit each record is held against the table.
    Generation,
}

/// What a change of a table's rules means for the records of its LUT.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Clean {
    /// A rule was added.
    Added {
        /// Its priority.
        priority: u16,
        /// Its row in the LUT's layout: values, then masks.
        row: Box<[u64]>,
        /// The same in the layout of the LUT before, as far as that goes, where that is another one.
        before: Option<Box<[u64]>>,
        /// The entry.
        id: EntryId,
        /// It is low-latency and has only one value: it gets its record at once.
        single: bool,
    },
    /// An entry went.
    Removed(EntryId),
    /// An entry became low-latency, or ceased to be. Its records of the other kind go: they have rights in the LUT that
    /// they should not have any more, or lack those that they should.
    Marked(EntryId, bool),
    /// Much changed: every record is held against the table before it is used again.
    #[default]
    All,
}

/// Changes under way: the records from `next` on may still tell what was right before.
#[derive(Debug)]
pub(super) struct Cleaning {
    slots: [Slot; UNDER_WAY],
    active: usize,
    /// Records that may still be looked at before the next burst.
    budget: usize,
}

impl Default for Cleaning {
    fn default() -> Self {
        Self { slots: Default::default(), active: 0, budget: SLICE }
    }
}

#[derive(Debug, Default)]
struct Slot {
    clean: Clean,
    next: usize,
    active: bool,
}

impl Clean {
    /// The added rule's row in a LUT's layout.
    pub(super) fn row_for<'a>(&'a self, lut: &Lut, row: &'a [u64]) -> &'a [u64] {
        match self {
            Self::Added { before: Some(before), .. } if lut.is_previous => before,
            _ => row,
        }
    }

    /// Whether the change concerns a record.
    fn concerns(&self, lut: &Lut, place: usize) -> bool {
        let record = &lut.records[place];
        match self {
            Self::Added { priority, row, .. } => {
                let row = self.row_for(lut, row);
                let (value, mask) = row.split_at(row.len() / 2);
                record.priority < *priority && lut.meets(place, value, mask)
            }
            Self::Removed(id) => record.id == *id,
            Self::Marked(id, low_latency) => record.id == *id && record.low_latency != *low_latency,
            Self::All => true,
        }
    }
}

impl Lut {
    /// Keeps the records right when the rules change. Leaves in `clean` what is no longer used.
    pub(crate) fn clean(&mut self, manner: Manner, clean: &mut Clean) {
        // A change under way would need a second copy of itself: the LUT before only remembers it.
        if let Some(previous) = &mut self.previous {
            previous.lut.remember(clean);
        }
        if let Clean::Removed(id) = clean {
            self.recent.forget(*id);
        }
        match manner {
            Manner::Auto | Manner::Eager if self.clean_eagerly(clean) => {}
            Manner::Auto => self.remember(clean),
            Manner::Eager => self.suspect_all(),
            Manner::Lazy => self.remember(clean),
            Manner::Generation => self.suspect_all(),
        }
    }

    /// Takes away the records that a change concerns: now, if there is time for it, else with [`Lut::work`]; what is hit
    /// before is checked by then. False if too much is under way.
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

    /// True if that was all there is to do.
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

    /// Goes on with a change under way; tells how many records were looked at. Called before each burst.
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
        let row = clean.row_for(self, row);
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

    /// The word of a row by which most records are told not to match a rule. Which that is depends on the records: all may
    /// have the port that a rule names, and few its address. So the first of them are asked.
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
        if clean.concerns(self, place) && self.is_used(place) {
            self.free(place);
            self.counters.cleaned(1);
        }
    }

    /// Remembers the changes under way instead of working them off.
    pub(super) fn put_off(&mut self) {
        let mut cleaning = std::mem::take(&mut self.cleaning);
        let under_way = || cleaning.slots.iter().filter(|slot| slot.active).map(|slot| &slot.clean);
        if under_way().any(|clean| matches!(clean, Clean::Removed(_))) {
            // In which order they came is not known: an entry's number may be used again.
            self.suspect_all();
        } else {
            under_way().for_each(|clean| self.remember(clean));
        }
        cleaning.active = 0;
        cleaning.slots.iter_mut().for_each(|slot| slot.active = false);
        self.cleaning = cleaning;
    }

    /// Whether changes are under way.
    #[inline]
    pub(super) fn is_cleaning(&self) -> bool {
        self.cleaning.active > 0
    }

    /// Takes a record away that a change under way concerns; true if it did.
    #[inline]
    pub(crate) fn is_outdated(&mut self, place: u32) -> bool {
        self.cleaning.active > 0 && self.check(place as usize)
    }

    #[inline(never)]
    fn check(&mut self, place: usize) -> bool {
        let slots = self.cleaning.slots.iter();
        let outdated = slots
            .filter(|slot| slot.active && slot.next <= place)
            .any(|slot| slot.clean.concerns(self, place));
        if outdated {
            self.free(place);
            self.counters.cleaned(1);
        }
        outdated
    }

    /// Whether packets of the record's value may match the rule: both agree where both look.
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
    use std::sync::Arc;
    use tables::NONE;

    fn lut() -> Lut {
        let mut lut = Lut::new(&[0xffff], 128, Arc::default());
        for value in 0..40 {
            lut.learn(&mut [value], value as u32 % 4, 10, true);
        }
        lut
    }

    fn added(priority: u16, row: [u64; 2]) -> Clean {
        Clean::Added { priority, row: row.into(), before: None, id: 99, single: false }
    }

    fn clean(lut: &mut Lut, mut change: Clean) {
        lut.clean(Manner::Eager, &mut change);
    }

    fn known(lut: &Lut) -> Vec<u64> {
        (0..40).filter(|value| lut.find(&[*value], lut.hash(&[*value])) != NONE).collect()
    }

    #[test]
    fn a_new_rule_takes_the_records_that_it_beats_and_matches() {
        let mut lut = lut();
        clean(&mut lut, added(10, [0, 0]));
        assert_eq!(known(&lut).len(), 40, "of equal priority the first added wins");
        clean(&mut lut, added(11, [8, 0xff8]));
        assert_eq!(known(&lut), (0..8).chain(16..40).collect::<Vec<_>>());
        // A rule that looks at bits which the LUT does not: its records may match it.
        clean(&mut lut, added(11, [0x1_0010, 0x1_fff8]));
        assert_eq!(known(&lut), (0..8).chain(24..40).collect::<Vec<_>>());
        assert_eq!(lut.counters.read().cleaned, 16);
    }

    #[test]
    fn a_large_lut_is_cleaned_in_slices_and_what_is_hit_before_is_checked() {
        let mut lut = Lut::new(&[0xffff], 8 * SLICE, Arc::default());
        for value in 0..10_000 {
            lut.learn(&mut [value], value as u32 % 4, 10, true);
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
        // More changes than can be under way: all records are verified.
        (0..16).for_each(|_| clean(&mut lut, added(11, [0, 1])));
        assert_eq!(lut.generation(), 0);
        clean(&mut lut, Clean::Removed(1));
        assert_ne!(lut.generation(), 0);
    }

    #[test]
    fn an_entry_takes_its_records_with_it() {
        let mut lut = lut();
        clean(&mut lut, Clean::Removed(1));
        assert_eq!(known(&lut), (0..40).filter(|v| v % 4 != 1).collect::<Vec<_>>());
        clean(&mut lut, Clean::Removed(77));
        assert_eq!(known(&lut).len(), 30);
    }

    #[test]
    fn an_entry_of_another_mark_keeps_records_of_that_kind_only() {
        let mut lut = lut();
        lut.learn(&mut [1], 1, 10, false);
        clean(&mut lut, Clean::Marked(1, false));
        assert_eq!(known(&lut), (0..40).filter(|v| v % 4 != 1 || *v == 1).collect::<Vec<_>>());
        clean(&mut lut, Clean::Marked(1, true));
        assert_eq!(known(&lut), (0..40).filter(|v| v % 4 != 1).collect::<Vec<_>>());
    }
}
