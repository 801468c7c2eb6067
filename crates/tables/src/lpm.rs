// SPDX-License-Identifier: Apache-2.0
//! Engine `lpm`: rules that are prefixes of one field of up to 128 bits, beside other fields under one mask (a routing
//! table with its EtherType, or several, told apart by a VLAN).
//!
//! Prefixes cut a field's values into intervals, at most two for each prefix, and all values of an interval have the
//! same longest prefix. Where no prefix has more than 32 bits, a compressed trie of 64-way nodes leads to the interval
//! (`trie.rs`), else a search tree of nine-way nodes (`forest.rs`). From the longest prefix a chain leads through all
//! rules that match (`chains.rs`). Priorities may contradict lengths: then the best rule of each chain is kept beside
//! it. Memory is linear in the rules whatever the prefixes are; a lookup takes at most seven steps in a trie, at most
//! 2 + log9(2 x rules) in a tree (twice that for prefixes beyond 64 bits), and one more for each dead rule that it
//! meets. Up to 32 keys go from step to step together (docs/adr/0024).

mod build;
mod chains;
mod forest;
mod keys;
mod simd;
mod trie;

use crate::exact::Exact;
use crate::simd::Level;
use crate::{BitSet, KeyPlan, NONE, Part};
use chains::Chains;
use flow::Field;
use forest::{Forest, Node};
use keys::{BURST, Keys};
use simd::Kernel;
use trie::Trie;

/// Where the prefixes' field stands in the key: the word, the position of its last bit there, and its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Word of the key.
    pub word: usize,
    /// Position of the last of these bits, from the least significant.
    pub shift: u32,
    /// How many, 1 to 64.
    pub bits: u32,
}

impl Piece {
    /// The pieces of a field in a plan's keys, its first bits first.
    #[must_use]
    pub fn of_field(plan: &KeyPlan, field: Field) -> Vec<Self> {
        let mut parts: Vec<_> = plan.parts().iter().filter(|part| part.field == field).collect();
        parts.sort_unstable_by_key(|part| part.from_bit);
        let piece =
            |part: &Part| Self { word: part.word.into(), shift: part.shift.into(), bits: part.bits.into() };
        parts.into_iter().map(piece).collect()
    }

    /// The piece's bits of a row, right-aligned.
    #[must_use]
    #[inline]
    pub fn of(self, row: &[u64]) -> u64 {
        row[self.word] >> self.shift & u64::MAX >> (64 - self.bits)
    }

    #[inline]
    fn left_aligned(self, row: &[u64]) -> u64 {
        row[self.word] << (64 - self.bits - self.shift) & u64::MAX << (64 - self.bits)
    }

    /// The piece's bits in its word.
    #[must_use]
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits) << self.shift
    }
}

/// From a value to the number of its longest prefix, in each group.
#[derive(Debug)]
enum Search {
    Trie(Trie),
    Forest(Forest),
}

/// Prefixes of one field that lead to numbers.
#[derive(Debug)]
pub struct Prefixes {
    keys: Keys,
    /// From the other fields' value to a group, if they have several values.
    others: Option<Exact>,
    none_dead: BitSet,
    /// For each group the number of the prefix of length 0, or none.
    wholes: Vec<u32>,
    /// The field's bits behind the first 64.
    low: Option<Piece>,
    search: Search,
    kernel: Kernel,
}

impl Prefixes {
    /// Looks up `numbers.len()` keys, one row of words each: for each the number of the longest prefix, or [`NONE`].
    pub fn lookup(&self, keys: &[u64], numbers: &mut [u32]) {
        for (rows, numbers) in keys.chunks(BURST * self.keys.words).zip(numbers.chunks_mut(BURST)) {
            if let Some(others) = &self.others {
                others.lookup(rows, &self.none_dead, numbers);
            }
            self.kernel.look_up(self, rows, numbers);
        }
    }

    /// Up to [`BURST`] keys, one by one. `numbers` hold their groups, where there are several.
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

    /// Goes on with what intervals of the first 64 bits do not tell.
    #[inline(always)]
    fn second(&self, forest: &Forest, number: u32, row: &[u64], count: impl Fn(&Node, u64) -> u32) -> u32 {
        match (forest.second(number), self.low) {
            (Some(tree), Some(low)) => forest.find(tree, low.left_aligned(row), count),
            _ => number,
        }
    }

    /// Bytes held.
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
    /// They lead to the first rule of the longest prefix.
    prefixes: Box<Prefixes>,
    chains: Chains,
    /// Rules that match everything, best first.
    catch_alls: Vec<u32>,
}

impl Lpm {
    /// Compiles `len` rules given in order of precedence, `words` words each in `values` and `masks`, that are prefixes
    /// of the field in `field` (one piece or two, the first bits first), or match everything; whatever else they
    /// examine they examine under one mask.
    #[must_use]
    pub fn new(words: usize, field: &[Piece], len: usize, values: &[u64], masks: &[u64]) -> Self {
        Self::with_level(Level::found(), words, field, len, values, masks)
    }

    /// Looks up `slots.len()` keys, one row of words each; a slot is the best matching rule that is not dead.
    pub fn lookup(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        let catch_all = self.catch_alls.iter().copied().find(|&slot| !dead.contains(slot)).unwrap_or(NONE);
        self.prefixes.lookup(keys, slots);
        if !self.chains.are_plain(dead) {
            slots.iter_mut().for_each(|slot| *slot = self.chains.living(*slot, dead));
        }
        if catch_all != NONE {
            slots.iter_mut().for_each(|slot| *slot = catch_all.min(*slot));
        }
    }

    /// Rules that match everything.
    #[must_use]
    pub fn catch_alls(&self) -> usize {
        self.catch_alls.len()
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.prefixes.bytes() + self.chains.bytes() + self.catch_alls.len() * 4
    }
}
