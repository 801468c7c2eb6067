// SPDX-License-Identifier: Apache-2.0
//! Engine `exact`: one mask for all rules, a hash table on the masked value. Rules of the same value and different
//! priority may stand beside each other; behind them come rules that match everything (the table-miss entry).

use crate::hash::Seed;
use crate::{BitSet, NONE};

/// Directory word: high half a tag of the hash, low half slot + 1; 0 is free.
const TAG_SHIFT: u32 = 32;

/// Keys in one pass over a burst.
const GROUP: usize = 32;

/// Rules that share one mask.
#[derive(Debug)]
pub struct Exact {
    words: usize,
    mask: Box<[u64]>,
    directory: Box<[u64]>,
    keys: Vec<u64>,
    /// For each slot the next one of the same value; empty if all values differ.
    later: Box<[u32]>,
    /// Slots at and above this one match everything.
    catch_all_from: u32,
    len: u32,
    seed: Seed,
}

impl Exact {
    /// Compiles rules given in order of precedence. `values` holds `words` masked words for each of the first
    /// `keyed` rules; those from `keyed` to `len` match everything.
    #[must_use]
    pub fn new(words: usize, mask: &[u64], values: Vec<u64>, keyed: usize, len: usize) -> Self {
        let size = (2 * keyed).next_power_of_two().max(2);
        let mut made = Self {
            words,
            mask: mask.into(),
            directory: vec![0; size].into_boxed_slice(),
            keys: values,
            later: Box::default(),
            catch_all_from: keyed as u32,
            len: len as u32,
            seed: Seed::of_process(),
        };
        // The last slot of each value that has several, at its first.
        let mut lasts: Vec<u32> = Vec::new();
        for slot in 0..keyed as u32 {
            let hash = made.seed.hash(made.row(slot), mask);
            let mut at = made.home(hash);
            while made.directory[at] != 0 && !made.is_value_of(slot, made.directory[at], hash) {
                at = (at + 1) & (made.directory.len() - 1);
            }
            if made.directory[at] == 0 {
                made.directory[at] = tag(hash) | (u64::from(slot) + 1);
                continue;
            }
            // Rules of one value are chained in the order they come: the best first.
            if made.later.is_empty() {
                made.later = vec![NONE; keyed].into_boxed_slice();
                lasts = vec![NONE; keyed];
            }
            let first = made.directory[at] as u32 - 1;
            let last = std::mem::replace(&mut lasts[first as usize], slot);
            made.later[if last == NONE { first } else { last } as usize] = slot;
        }
        made
    }

    /// The masked value of a slot.
    pub(crate) fn row(&self, slot: u32) -> &[u64] {
        &self.keys[slot as usize * self.words..][..self.words]
    }

    fn is_value_of(&self, slot: u32, word: u64, hash: u64) -> bool {
        (word ^ tag(hash)) >> TAG_SHIFT == 0 && self.row(slot) == self.row(word as u32 - 1)
    }

    /// Looks up `slots.len()` keys, one row of words each; a slot is the best matching rule that is not dead.
    pub fn lookup(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        // Short keys, of a length known to the compiler, are compared without loops.
        match self.words {
            1 => self.lookup_short::<1>(keys, dead, slots),
            2 => self.lookup_short::<2>(keys, dead, slots),
            3 => self.lookup_short::<3>(keys, dead, slots),
            4 => self.lookup_short::<4>(keys, dead, slots),
            words => self.lookup_rows(keys.chunks_exact(words), &self.mask, dead, slots),
        }
    }

    fn lookup_short<const WORDS: usize>(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        if let Some(mask) = self.mask.first_chunk::<WORDS>() {
            self.lookup_rows(keys.as_chunks::<WORDS>().0.iter(), mask, dead, slots);
        }
    }

    #[inline(always)]
    fn lookup_rows<'k, K: AsRef<[u64]> + ?Sized + 'k>(
        &self,
        mut keys: impl Iterator<Item = &'k K> + Clone,
        mask: &[u64],
        dead: &BitSet,
        slots: &mut [u32],
    ) {
        for slots in slots.chunks_mut(GROUP) {
            // All directory words of the group are asked for before the first is used.
            let mut hashes = [0u64; GROUP];
            let mut found = [0u64; GROUP];
            for ((key, hash), word) in keys.clone().zip(&mut hashes).zip(&mut found) {
                *hash = self.seed.hash(key.as_ref(), mask);
                *word = self.directory[self.home(*hash)];
            }
            for ((slot, hash), word) in slots.iter_mut().zip(hashes).zip(found) {
                let Some(key) = keys.next() else { return };
                *slot = self.find(key.as_ref(), mask, hash, word, dead);
            }
        }
    }

    #[inline(always)]
    fn find(&self, key: &[u64], mask: &[u64], hash: u64, mut word: u64, dead: &BitSet) -> u32 {
        let mut at = self.home(hash);
        while word != 0 {
            if (word ^ tag(hash)) >> TAG_SHIFT == 0 {
                let slot = word as u32 - 1;
                if self.equals(key, mask, slot) {
                    if dead.is_empty() || !dead.contains(slot) {
                        return slot;
                    }
                    match self.living(slot, dead) {
                        NONE => break,
                        slot => return slot,
                    }
                }
            }
            at = (at + 1) & (self.directory.len() - 1);
            word = self.directory[at];
        }
        (self.catch_all_from..self.len).find(|&slot| !dead.contains(slot)).unwrap_or(NONE)
    }

    /// The first living rule of a value behind a dead one.
    fn living(&self, dead_slot: u32, dead: &BitSet) -> u32 {
        let next = |slot: u32| self.later.get(slot as usize).copied().unwrap_or(NONE);
        let mut slot = next(dead_slot);
        while slot != NONE && dead.contains(slot) {
            slot = next(slot);
        }
        slot
    }

    #[inline(always)]
    fn equals(&self, key: &[u64], mask: &[u64], slot: u32) -> bool {
        let row = &self.keys[slot as usize * key.len()..][..key.len()];
        // All words at once: a branch a word costs more than comparing the rest.
        row.iter()
            .zip(key)
            .zip(mask)
            .fold(0, |differing, ((rule, key), mask)| differing | (key & mask ^ rule))
            == 0
    }

    #[inline]
    fn home(&self, hash: u64) -> usize {
        hash as usize & (self.directory.len() - 1)
    }

    /// The mask of all rules but those that match everything.
    #[must_use]
    pub fn mask(&self) -> &[u64] {
        &self.mask
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        (self.directory.len() + self.keys.len() + self.mask.len()) * 8 + self.later.len() * 4
    }
}

#[inline]
fn tag(hash: u64) -> u64 {
    hash >> TAG_SHIFT << TAG_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_catch_all_and_the_dead() {
        // Two rules of value 5 (the first is better), one of 6, a miss entry.
        let exact = Exact::new(1, &[0xff], vec![5, 6, 5], 3, 4);
        let mut dead = BitSet::new(4);
        let mut slots = [0; 3];
        exact.lookup(&[0x105, 6, 9], &dead, &mut slots);
        assert_eq!(slots, [0, 1, 3]);
        dead.insert(0);
        dead.insert(1);
        exact.lookup(&[5, 6, 9], &dead, &mut slots);
        assert_eq!(slots, [2, 3, 3]);
        dead.insert(3);
        exact.lookup(&[5, 6, 9], &dead, &mut slots);
        assert_eq!(slots, [2, NONE, NONE]);
    }

    #[test]
    fn many_keys_in_many_groups() {
        let values: Vec<u64> = (0..5_000u64).flat_map(|i| [i, i * 7]).collect();
        let exact = Exact::new(2, &[u64::MAX; 2], values.clone(), 5_000, 5_000);
        let mut slots = vec![0; 5_000];
        exact.lookup(&values, &BitSet::new(5_000), &mut slots);
        assert!(slots.iter().enumerate().all(|(at, slot)| *slot == at as u32));
        let wrong: Vec<u64> = (0..70u64).flat_map(|i| [i, i * 7 + 1]).collect();
        exact.lookup(&wrong, &BitSet::new(5_000), &mut slots[..70]);
        assert!(slots[..70].iter().all(|slot| *slot == NONE));
    }

    #[test]
    fn many_rules_of_one_value_cost_no_more_to_build_than_others() {
        let exact = Exact::new(1, &[u64::MAX], vec![7; 200_000], 200_000, 200_000);
        let mut dead = BitSet::new(200_000);
        for slot in (0..199_999).rev() {
            dead.insert(slot);
        }
        let mut slots = [0; 2];
        exact.lookup(&[7, 8], &dead, &mut slots);
        assert_eq!(slots, [199_999, NONE]);
    }
}
