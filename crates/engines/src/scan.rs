// SPDX-License-Identifier: Apache-2.0
//! Engine `scan`: compares a key with all rules and returns the first that matches.
//!
//! It serves small tables of any kind, and rules that all match everything. Rules are stored in blocks of
//! eight, word by word. 64 rules are compared without a branch.

mod simd;

use crate::simd::Level;
use crate::{BitSet, NONE};
use simd::Kernel;

/// Number of rules in a block.
const BLOCK: usize = 8;

/// Number of blocks compared before the result is evaluated.
const BLOCKS: usize = 8;

/// Number of keys that are compared with a block at the same time.
const KEYS: usize = 4;

/// Rules in order of precedence. A slot is a rule's index in this order.
#[derive(Debug, Default)]
pub struct Scan {
    words: usize,
    len: usize,
    /// Eight values, then eight masks, for each word of each block.
    rows: Vec<u64>,
    kernel: Kernel,
}

impl Scan {
    /// Compiles `len` rules given in order of precedence. Each rule has `words` words in `values` and in
    /// `masks`.
    #[must_use]
    pub fn new(words: usize, len: usize, values: &[u64], masks: &[u64]) -> Self {
        Self::with_level(Level::found(), words, len, values, masks)
    }

    /// Compiles like [`Scan::new`], with instructions of at most `level`, which the core must support.
    #[must_use]
    pub fn with_level(level: Level, words: usize, len: usize, values: &[u64], masks: &[u64]) -> Self {
        let blocks = len.div_ceil(BLOCK);
        let mut rows = vec![0; blocks * words * 2 * BLOCK];
        for slot in 0..blocks * BLOCK {
            for word in 0..words {
                let at = (slot / BLOCK * words + word) * 2 * BLOCK + slot % BLOCK;
                if slot < len {
                    rows[at] = values[slot * words + word];
                    rows[at + BLOCK] = masks[slot * words + word];
                } else {
                    // Unused slots of the last block match no key.
                    rows[at] = u64::MAX;
                }
            }
        }
        Self { words, len, rows, kernel: Kernel::new(level) }
    }

    /// Looks up `slots.len()` keys, one row of words each. Stores for each key the slot of the first matching
    /// rule that is not in `tombstones`, or [`NONE`].
    pub fn lookup(&self, keys: &[u64], tombstones: &BitSet, slots: &mut [u32]) {
        let wanted = |slot: u32| !tombstones.contains(slot);
        if self.words == 0 {
            slots.fill((0..self.len as u32).find(|&slot| wanted(slot)).unwrap_or(NONE));
            return;
        }
        let first = &self.rows[..self.rows.len().min(self.group())];
        let (quads, left) = slots.as_chunks_mut::<KEYS>();
        let each_quad = keys.chunks_exact(KEYS * self.words).zip(&mut *quads);
        for (keys, slots) in each_quad {
            let hits = self.kernel.hits::<KEYS>(first, keys, self.words);
            for ((key, slot), hits) in keys.chunks_exact(self.words).zip(slots).zip(hits) {
                *slot = pick(hits, 0, wanted);
                if *slot == NONE && self.rows.len() > first.len() {
                    *slot = self.find_from(1, key, self.len, wanted);
                }
            }
        }
        let rest = keys.chunks_exact(self.words).skip(KEYS * quads.len());
        for (key, slot) in rest.zip(left) {
            *slot = self.find_if(key, self.len, wanted);
        }
    }

    /// Returns the first rule before `end` that matches the key and is wanted, or [`NONE`].
    #[inline]
    pub fn find_if(&self, key: &[u64], end: usize, wanted: impl Fn(u32) -> bool) -> u32 {
        self.find_from(0, key, end, wanted)
    }

    /// Searches like [`Scan::find_if`], from group number `group` of [`BLOCKS`] blocks on.
    #[inline]
    fn find_from(&self, group: usize, key: &[u64], end: usize, wanted: impl Fn(u32) -> bool) -> u32 {
        let groups = self.rows.chunks(self.group()).enumerate().skip(group);
        for (number, blocks) in groups.take(end.div_ceil(BLOCK * BLOCKS).saturating_sub(group)) {
            let [hits] = self.kernel.hits::<1>(blocks, key, self.words);
            let slot = pick(hits, (number * BLOCK * BLOCKS) as u32, &wanted);
            if slot != NONE {
                return if (slot as usize) < end { slot } else { NONE };
            }
        }
        NONE
    }

    /// Returns the size of [`BLOCKS`] blocks in words.
    #[inline]
    fn group(&self) -> usize {
        BLOCKS * self.words * 2 * BLOCK
    }

    /// Returns the memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.len() * 8
    }
}

/// Returns the first rule, counted from `first`, that has a bit in `hits` and is wanted, or [`NONE`].
#[inline(always)]
fn pick(mut hits: u64, first: u32, wanted: impl Fn(u32) -> bool) -> u32 {
    while hits != 0 {
        let slot = first + hits.trailing_zeros();
        if wanted(slot) {
            return slot;
        }
        hits &= hits - 1;
    }
    NONE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_living_match_wins() {
        let values: Vec<u64> = (0..20).map(|i| i % 5).collect();
        let masks = vec![7; 20];
        let scan = Scan::new(1, 20, &values, &masks);
        let mut tombstones = BitSet::new(20);
        let mut slots = [0; 3];
        scan.lookup(&[3, 0, 7], &tombstones, &mut slots);
        assert_eq!(slots, [3, 0, NONE]);
        tombstones.insert(3);
        tombstones.insert(0);
        tombstones.insert(5);
        scan.lookup(&[3, 0, 12], &tombstones, &mut slots);
        assert_eq!(slots, [8, 10, 4]);
    }

    #[test]
    fn empty_keys_and_empty_tables() {
        let mut slots = [0; 2];
        Scan::new(0, 3, &[], &[]).lookup(&[], &BitSet::new(3), &mut slots);
        assert_eq!(slots, [0, 0]);
        Scan::new(2, 0, &[], &[]).lookup(&[0; 4], &BitSet::new(0), &mut slots);
        assert_eq!(slots, [NONE, NONE]);
        // Unused slots of a block do not match a key of all ones.
        Scan::new(1, 1, &[1], &[u64::MAX]).lookup(&[u64::MAX, 0], &BitSet::new(1), &mut slots);
        assert_eq!(slots, [NONE, NONE]);
    }

    #[test]
    fn every_level_finds_the_same() {
        let mut rng = fastrand::Rng::with_seed(1);
        for len in [1, 7, 8, 63, 64, 65, 96, 200] {
            for words in 1..5 {
                let masks: Vec<u64> = (0..len * words).map(|_| rng.u64(..) & rng.u64(..) & 0x0707).collect();
                let values: Vec<u64> = masks.iter().map(|mask| rng.u64(..) & mask & 0x0101).collect();
                let keys: Vec<u64> =
                    (0..37 * words).map(|_| rng.u64(..) & rng.u64(..) & rng.u64(..)).collect();
                let mut tombstones = BitSet::new(len);
                (0..len as u32 / 4).for_each(|_| tombstones.insert(rng.u32(..len as u32)));
                let matches = |key: &[u64], slot: usize| {
                    let at = slot * words;
                    (0..words).all(|word| key[word] & masks[at + word] == values[at + word])
                };
                let first = |key: &[u64]| {
                    let mut living = (0..len).filter(|&slot| !tombstones.contains(slot as u32));
                    living.find(|&slot| matches(key, slot)).map_or(NONE, |slot| slot as u32)
                };
                let right: Vec<u32> = keys.chunks_exact(words).map(first).collect();
                for level in Level::ALL {
                    let scan = Scan::with_level(level, words, len, &values, &masks);
                    let mut slots = [0; 37];
                    scan.lookup(&keys, &tombstones, &mut slots);
                    assert_eq!(slots[..], right, "{level:?}: {len} rules of {words} words");
                }
            }
        }
    }

    #[test]
    fn the_memory_size_is_reported() {
        // Nine rules take two blocks of eight, with a value and a mask for each word of a rule.
        assert_eq!(Scan::new(3, 9, &[1; 27], &[1; 27]).bytes(), 16 * 3 * 16);
    }
}
