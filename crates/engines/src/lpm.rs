// SPDX-License-Identifier: Apache-2.0
//! Engine `lpm`: rules that are prefixes of one field of up to 128 bits, and that examine other fields under
//! one mask. An example is a routing table with its EtherType, or several such tables distinguished by a
//! VLAN.
//!
//! Prefixes divide the values of a field into intervals, at most two per prefix. All values of an interval
//! have the same longest prefix. If no prefix has more than 32 bits, a compressed trie of 64-way nodes finds
//! the interval (`trie.rs`), else a search tree of nine-way nodes (`forest.rs`). From the longest prefix a
//! chain leads through all rules that match (`chains.rs`). If a shorter prefix has precedence over a longer
//! one, the best rule of each chain is stored too.
//!
//! Memory is linear in the number of rules. A lookup takes at most seven steps in a trie. In a tree it takes
//! at most 2 + log9(2 x rules) steps, or twice that for prefixes longer than 64 bits. Each deleted rule that
//! a lookup visits costs one more step. Up to 32 keys are processed step by step together (docs/adr/0024).

mod build;
mod chains;
mod forest;
mod keys;
mod simd;
mod trie;

use crate::exact::Exact;
use crate::simd::Level;
use crate::{BitSet, KeyPart, KeyPlan, NONE};
use chains::Chains;
use flow::Field;
use forest::{Forest, Node};
use keys::{BURST, Keys};
use simd::Kernel;
use trie::Trie;

/// Position in the key of the field, or of up to 64 bits of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the word in the key.
    pub word: usize,
    /// Position of the last bit in the word, counted from the least significant bit.
    pub shift: u32,
    /// Number of bits, 1 to 64.
    pub bits: u32,
}

impl Piece {
    /// Returns the pieces of a field in a plan's keys, the first bits first.
    #[must_use]
    pub fn of_field(plan: &KeyPlan, field: Field) -> Vec<Self> {
        let mut parts: Vec<_> = plan.parts().iter().filter(|part| part.field == field).collect();
        parts.sort_unstable_by_key(|part| part.from_bit);
        let piece = |part: &KeyPart| Self {
            word: part.word.into(),
            shift: part.shift.into(),
            bits: part.bits.into(),
        };
        parts.into_iter().map(piece).collect()
    }

    /// Returns the piece's bits of a row, right-aligned.
    #[must_use]
    #[inline]
    pub fn of(self, row: &[u64]) -> u64 {
        row[self.word] >> self.shift & u64::MAX >> (64 - self.bits)
    }

    #[inline]
    fn left_aligned(self, row: &[u64]) -> u64 {
        row[self.word] << (64 - self.bits - self.shift) & u64::MAX << (64 - self.bits)
    }

    /// Returns the mask of the piece's bits in their word.
    #[must_use]
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits) << self.shift
    }
}

/// Search structure for all groups of rules with equal other fields. Maps a group and a value of the field to
/// the number of the value's longest prefix.
#[derive(Debug)]
enum Search {
    Trie(Trie),
    Forest(Forest),
}

/// Prefixes of one field, each with a number.
#[derive(Debug)]
pub struct Prefixes {
    keys: Keys,
    /// Maps the values of the other fields to groups. `None` if there is only one group.
    others: Option<Exact>,
    no_tombstones: BitSet,
    /// Number of the prefix of length 0 in each group, or [`NONE`].
    wholes: Vec<u32>,
    /// Bits of the field after the first 64.
    low: Option<Piece>,
    search: Search,
    kernel: Kernel,
}

impl Prefixes {
    /// Looks up `numbers.len()` keys, one row of words each. Stores the number of each key's longest prefix,
    /// or [`NONE`].
    pub fn lookup(&self, keys: &[u64], numbers: &mut [u32]) {
        for (rows, numbers) in keys.chunks(BURST * self.keys.words).zip(numbers.chunks_mut(BURST)) {
            if let Some(others) = &self.others {
                others.lookup(rows, &self.no_tombstones, numbers);
            }
            self.kernel.look_up(self, rows, numbers);
        }
    }

    /// Looks up at most [`BURST`] keys one by one. If there are several groups, `numbers` has the groups of
    /// the keys on entry.
    #[inline(always)]
    fn each(&self, rows: &[u64], numbers: &mut [u32], count: impl Fn(&Node, u64) -> u32 + Copy) {
        for (row, number) in rows.chunks_exact(self.keys.words).zip(numbers) {
            let group = if self.others.is_some() { *number } else { 0 };
            *number = self.one(row, group, count);
        }
    }

    #[inline(always)]
    fn one(&self, row: &[u64], group: u32, count: impl Fn(&Node, u64) -> u32 + Copy) -> u32 {
        let seen = self.keys.read(row);
        if !seen.ours || group == NONE {
            return NONE;
        }
        if !seen.present {
            return self.wholes[group as usize];
        }
        match &self.search {
            Search::Trie(trie) => trie.find(group, seen.high),
            Search::Forest(forest) => {
                let number = forest.find(forest.tree_of(group), seen.high, count);
                self.second(forest, number, row, count)
            }
        }
    }

    /// Continues with the second piece if the first 64 bits do not determine the result.
    #[inline(always)]
    fn second(&self, forest: &Forest, number: u32, row: &[u64], count: impl Fn(&Node, u64) -> u32) -> u32 {
        match (forest.second(number), self.low) {
            (Some(tree), Some(low)) => forest.find(tree, low.left_aligned(row), count),
            _ => number,
        }
    }

    /// Returns the memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let search = match &self.search {
            Search::Trie(trie) => trie.bytes(),
            Search::Forest(forest) => forest.bytes(),
        };
        let others = self.others.as_ref().map_or(0, Exact::bytes);
        size_of::<Self>() + self.wholes.len() * 4 + self.keys.bytes() + search + others
    }
}

/// Rules that are prefixes of one field.
#[derive(Debug)]
pub struct Lpm {
    /// Maps a key to the first rule of its longest prefix.
    prefixes: Box<Prefixes>,
    chains: Chains,
    /// Rules that match everything, best first.
    catch_alls: Vec<u32>,
}

impl Lpm {
    /// Compiles `len` rules given in order of precedence. Each rule has `words` words in `values` and in
    /// `masks`.
    ///
    /// Each rule is a prefix of the field in `field` (one or two pieces, the first bits first) or matches
    /// everything. Other bits must be examined under one mask.
    #[must_use]
    pub fn new(words: usize, field: &[Piece], len: usize, values: &[u64], masks: &[u64]) -> Self {
        Self::with_level(Level::found(), words, field, len, values, masks)
    }

    /// Looks up `slots.len()` keys, one row of words each. Stores for each key the slot of the best matching
    /// rule that is not in `tombstones`, or [`NONE`].
    pub fn lookup(&self, keys: &[u64], tombstones: &BitSet, slots: &mut [u32]) {
        let catch_all =
            self.catch_alls.iter().copied().find(|&slot| !tombstones.contains(slot)).unwrap_or(NONE);
        self.prefixes.lookup(keys, slots);
        if !self.chains.are_plain(tombstones) {
            slots.iter_mut().for_each(|slot| *slot = self.chains.living(*slot, tombstones));
        }
        if catch_all != NONE {
            slots.iter_mut().for_each(|slot| *slot = catch_all.min(*slot));
        }
    }

    /// Returns the number of rules that match everything.
    #[must_use]
    pub fn catch_alls(&self) -> usize {
        self.catch_alls.len()
    }

    /// Returns the memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.prefixes.bytes() + self.chains.bytes() + self.catch_alls.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compiles prefixes given as (bits, length). A prefix of length 0 matches everything.
    fn compiled(prefixes: impl IntoIterator<Item = (u64, u32)>) -> Lpm {
        let field = [Piece { word: 0, shift: 0, bits: 64 }];
        let mask = |length: u32| u64::MAX.checked_shl(64 - length).unwrap_or(0);
        let rows = prefixes.into_iter().map(|(value, length)| (value & mask(length), mask(length)));
        let (values, masks): (Vec<u64>, Vec<u64>) = rows.unzip();
        Lpm::new(1, &field, values.len(), &values, &masks)
    }

    #[test]
    fn prefixes_of_up_to_32_bits_are_found_by_a_trie_and_longer_ones_by_a_tree() {
        let is_trie = |longest: u32| {
            let lpm = compiled((1..=longest).map(|length| (u64::MAX, length)));
            matches!(lpm.prefixes.search, Search::Trie(_))
        };
        assert_eq!([1, 24, 32, 33, 64].map(is_trie), [true, true, true, false, false]);
    }

    #[test]
    fn prefixes_report_their_memory_size() {
        let different = || (0..100).map(|at| (at << 50, 20));
        let repeated = || (0..100).map(|at| ((at & !1) << 50, 20));
        // The shorter prefix has precedence over a longer prefix inside it.
        let contradicting = || [(0, 3)].into_iter().chain((0..99).map(|at| (at << 50, 20)));
        let cases: [(Lpm, usize, usize); 4] = [
            (compiled(different()), 100, 0),
            (compiled(repeated()), 200, 0),
            (compiled(contradicting()), 200, 0),
            (compiled(different().chain([(0, 0), (0, 0)])), 102, 2),
        ];
        for (lpm, chained, catch_alls) in cases {
            let Search::Trie(trie) = &lpm.prefixes.search else { panic!("short prefixes use a trie") };
            // There is one group, and rules examine only one word.
            let prefixes = size_of::<Prefixes>() + 4 + size_of::<keys::Column>() + trie.bytes();
            assert_eq!(lpm.prefixes.bytes(), prefixes);
            assert_eq!(lpm.bytes(), prefixes + (chained + catch_alls) * 4);
            assert_eq!(lpm.catch_alls(), catch_alls);
        }
    }
}
