// SPDX-License-Identifier: Apache-2.0
//! Engine `exact`: one mask for all rules.
//!
//! A hash table over the words of the masked values that distinguish rules. Rules may have the same value and
//! different priorities. Rules that match everything (the table-miss entry) come last.
//!
//! A lookup hashes a key, then reads one byte ([`pilots`]) and one cache line ([`store`]), whether the value
//! is found or not. The cache misses of a group of keys overlap (docs/adr/0023).

pub mod chains;
pub mod columns;
pub mod lines;
pub mod pilots;
pub mod simd;
pub mod spill;
pub mod store;

use crate::hash::Seed;
use crate::simd::Level;
use crate::{BitSet, NONE};
use chains::Chains;
use columns::Columns;
use pilots::PILOTS;
use simd::Wide;
use store::{GROUP, Store, Values};

/// Rules that share one mask.
#[derive(Debug)]
pub struct Exact {
    columns: Box<Columns>,
    seed: Seed,
    wide: Option<Box<Wide>>,
    store: Box<Store>,
    /// For each slot, the next slot whose rule has the same value, or [`NONE`]. Empty if all values differ.
    later: Box<[u32]>,
    /// First slot of the rules that match everything.
    catch_all_from: u32,
    len: u32,
}

impl Exact {
    /// Compiles rules given in order of precedence. `values` has `words` masked words for each of the first
    /// `keyed` rules. Rules `keyed` to `len` - 1 match everything.
    #[must_use]
    pub fn new(words: usize, mask: &[u64], values: Vec<u64>, keyed: usize, len: usize) -> Self {
        Self::with_level(Level::found(), words, mask, values, keyed, len)
    }

    /// Compiles like [`Exact::new`], with instructions of at most `level`, which the core must support.
    #[must_use]
    pub fn with_level(
        level: Level,
        words: usize,
        mask: &[u64],
        values: Vec<u64>,
        keyed: usize,
        len: usize,
    ) -> Self {
        Self::with_tries(PILOTS, level, (words, mask), values, keyed, len)
    }

    /// Compiles like [`Exact::with_level`], with at most `tries` attempts to place each group of values.
    fn with_tries(
        tries: u8,
        level: Level,
        (words, mask): (usize, &[u64]),
        values: Vec<u64>,
        keyed: usize,
        len: usize,
    ) -> Self {
        let columns = Columns::new(mask, &values);
        let wide = Wide::new(level.min(Level::found()), &columns);
        let seed = Seed::of_process();
        // Tables with rows of 0 words use other engines.
        let stored = columns.stored().len();
        let mut packed = vec![0; keyed * stored];
        for (row, packed) in values.chunks_exact(words.max(1)).zip(packed.chunks_exact_mut(stored.max(1))) {
            columns.pack(row, packed);
        }
        drop(values);
        let hash = |packed: &[u64]| match &wide {
            Some(wide) => wide.aes.hash(packed),
            None => seed.hash_masked(packed),
        };
        let mut hashes: Vec<u64> = packed.chunks_exact(stored.max(1)).map(hash).collect();
        let value = |slot: u32| &packed[slot as usize * stored..][..stored];
        let Chains { firsts: mut slots, later } = Chains::new(&hashes, |a, b| value(a).cmp(value(b)));
        slots.sort_unstable();
        if !later.is_empty() {
            hashes = slots.iter().map(|&slot| hashes[slot as usize]).collect();
        }
        let values = Values { hashes: &hashes, slots: &slots, words: stored, packed: &packed };
        let store = Box::new(Store::new(&values, tries));
        let columns = Box::new(columns);
        Self { columns, seed, wide, store, later, catch_all_from: keyed as u32, len: len as u32 }
    }

    /// Looks up `slots.len()` keys, one row of words each. Stores for each key the slot of the best matching
    /// rule that is not in `tombstones`, or [`NONE`].
    pub fn lookup(&self, keys: &[u64], tombstones: &BitSet, slots: &mut [u32]) {
        let catch_all =
            (self.catch_all_from..self.len).find(|&slot| !tombstones.contains(slot)).unwrap_or(NONE);
        let words = self.columns.words().max(1) * GROUP;
        for (keys, slots) in keys.chunks(words).zip(slots.chunks_mut(GROUP)) {
            match &self.wide {
                Some(wide) => wide.lookup(&self.store, keys, slots),
                None => self.store.lookup(&self.columns, self.seed, keys, slots),
            }
            if !tombstones.is_empty() {
                for slot in slots.iter_mut().filter(|slot| tombstones.contains(**slot)) {
                    *slot = self.living(*slot, tombstones);
                }
            }
            if catch_all != NONE {
                for slot in slots.iter_mut() {
                    *slot = (*slot).min(catch_all);
                }
            }
        }
    }

    /// Returns the next active rule with the same value as a deleted rule, or [`NONE`].
    fn living(&self, dead_slot: u32, tombstones: &BitSet) -> u32 {
        let next = |slot: u32| self.later.get(slot as usize).copied().unwrap_or(NONE);
        let mut slot = next(dead_slot);
        while slot != NONE && tombstones.contains(slot) {
            slot = next(slot);
        }
        slot
    }

    /// Returns the masked values of the slots before the rules that match everything, one row each.
    #[must_use]
    pub fn rows(&self) -> Vec<u64> {
        let words = self.columns.words();
        let mut rows = vec![0; words * self.catch_all_from as usize];
        let mut each = |packed: &[u64], first: u32| {
            let mut slot = first;
            while let Some(row) = rows.get_mut(slot as usize * words..(slot as usize + 1) * words) {
                self.columns.unpack(packed, row);
                slot = self.later.get(slot as usize).copied().unwrap_or(NONE);
                if slot == NONE {
                    break;
                }
            }
        };
        self.store.for_each(&mut each);
        rows
    }

    /// Returns the mask of all rules except those that match everything.
    #[must_use]
    pub fn mask(&self) -> &[u64] {
        self.columns.mask()
    }

    /// Returns the number of values that found no place in the hash table. It is 0 unless the hash function
    /// distributes values badly.
    #[must_use]
    pub fn spilled(&self) -> usize {
        self.store.spilled()
    }

    /// Returns the memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.store.bytes() + self.columns.bytes() + self.later.len() * 4
    }
}

#[cfg(test)]
mod tests;
