// SPDX-License-Identifier: Apache-2.0
//! Engine `scan`: walks the rules in order and takes the first that matches. For small tables of any kind, and for rules
//! that all match everything. Rules stand in blocks of eight, word by word, so that a compiler turns the comparison of a
//! block into vector instructions.

use crate::{BitSet, NONE};

/// Rules in a block.
const BLOCK: usize = 8;

/// Rules in order of precedence; the slot is the place in it.
#[derive(Debug, Default)]
pub struct Scan {
    words: usize,
    len: usize,
    /// For each block, for each word: eight values, then eight masks.
    rows: Vec<u64>,
}

impl Scan {
    /// Compiles rules given in order of precedence, `words` words each in `values` and `masks`.
    #[must_use]
    pub fn new(words: usize, len: usize, values: &[u64], masks: &[u64]) -> Self {
        let blocks = len.div_ceil(BLOCK);
        let mut rows = vec![0; blocks * words * 2 * BLOCK];
        for slot in 0..blocks * BLOCK {
            for word in 0..words {
                let at = (slot / BLOCK * words + word) * 2 * BLOCK + slot % BLOCK;
                if slot < len {
                    rows[at] = values[slot * words + word];
                    rows[at + BLOCK] = masks[slot * words + word];
                } else {
                    // No key has a bit under an empty mask: the slots that fill the last block never match.
                    rows[at] = u64::MAX;
                }
            }
        }
        Self { words, len, rows }
    }

    /// Looks up `slots.len()` keys, one row of words each; a slot is the first matching rule that is not dead.
    pub fn lookup(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        if self.words == 0 {
            let first = (0..self.len as u32).find(|&slot| !dead.contains(slot)).unwrap_or(NONE);
            slots.fill(first);
            return;
        }
        for (key, slot) in keys.chunks_exact(self.words).zip(slots) {
            *slot = self.find(key, dead);
        }
    }

    #[inline]
    fn find(&self, key: &[u64], dead: &BitSet) -> u32 {
        self.find_if(key, self.len, |slot| dead.is_empty() || !dead.contains(slot))
    }

    /// The first of the rules before `end` that matches the key and is wanted, or [`NONE`].
    #[inline]
    pub fn find_if(&self, key: &[u64], end: usize, wanted: impl Fn(u32) -> bool) -> u32 {
        let blocks = self.rows.chunks_exact(self.words * 2 * BLOCK).take(end.div_ceil(BLOCK));
        for (number, block) in blocks.enumerate() {
            let mut differing = [0u64; BLOCK];
            for (row, word) in block.chunks_exact(2 * BLOCK).zip(key) {
                for lane in 0..BLOCK {
                    differing[lane] |= (word & row[BLOCK + lane]) ^ row[lane];
                }
            }
            let mut hits: u32 = 0;
            for (lane, bits) in differing.iter().enumerate() {
                hits |= u32::from(*bits == 0) << lane;
            }
            while hits != 0 {
                let slot = (number * BLOCK) as u32 + hits.trailing_zeros();
                if slot as usize >= end {
                    return NONE;
                }
                if wanted(slot) {
                    return slot;
                }
                hits &= hits - 1;
            }
        }
        NONE
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_living_match_wins() {
        let values: Vec<u64> = (0..20).map(|i| i % 5).collect();
        let masks = vec![7; 20];
        let scan = Scan::new(1, 20, &values, &masks);
        let mut dead = BitSet::new(20);
        let mut slots = [0; 3];
        scan.lookup(&[3, 0, 7], &dead, &mut slots);
        assert_eq!(slots, [3, 0, NONE]);
        dead.insert(3);
        dead.insert(0);
        dead.insert(5);
        scan.lookup(&[3, 0, 12], &dead, &mut slots);
        assert_eq!(slots, [8, 10, 4]);
    }

    #[test]
    fn empty_keys_and_empty_tables() {
        let mut slots = [0; 2];
        Scan::new(0, 3, &[], &[]).lookup(&[], &BitSet::new(3), &mut slots);
        assert_eq!(slots, [0, 0]);
        Scan::new(2, 0, &[], &[]).lookup(&[0; 4], &BitSet::new(0), &mut slots);
        assert_eq!(slots, [NONE, NONE]);
        // The unused slots of a block match nothing, not even a key of all ones.
        Scan::new(1, 1, &[1], &[u64::MAX]).lookup(&[u64::MAX, 0], &BitSet::new(1), &mut slots);
        assert_eq!(slots, [NONE, NONE]);
    }
}
