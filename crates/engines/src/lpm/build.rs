// SPDX-License-Identifier: Apache-2.0
//! Control side: compiles prefixes into intervals, in one pass over the sorted prefixes. A stack has the open
//! prefixes, which contain the current value.

use super::chains::Chains;
use super::forest::Forest;
use super::keys::Keys;
use super::simd::Kernel;
use super::trie::Trie;
use super::{Lpm, Piece, Prefixes, Search};
use crate::exact::Exact;
use crate::simd::Level;
use crate::{BitSet, NONE};
use std::collections::HashMap;

/// Maximum length of prefixes that a trie can hold.
const TRIE_BITS: u32 = 32;

/// A rule as a prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Prefix {
    group: u32,
    /// First value, left-aligned in 128 bits.
    start: u128,
    length: u32,
    slot: u32,
}

impl Prefix {
    fn end(self) -> u128 {
        self.start | u128::MAX.checked_shr(self.length).unwrap_or(0)
    }
}

/// Rules as prefixes, and the other bits that all of them examine.
struct Rules {
    words: usize,
    field: Vec<Piece>,
    /// Mask of the bits outside the field that all rules examine. `present` is the mask of the presence bits
    /// that only rules with the field examine.
    others: Vec<u64>,
    present: u64,
    /// Prefixes, sorted.
    prefixes: Vec<Prefix>,
    /// Values of the other fields, by group.
    numbers: Numbers,
    catch_alls: Vec<u32>,
}

impl Rules {
    fn new(words: usize, field: &[Piece], len: usize, values: &[u64], masks: &[u64]) -> Self {
        let field_bits: u32 = field.iter().map(|piece| piece.bits).sum();
        let (others, present) = other_bits(words, field, masks);
        let mut numbers = Numbers::default();
        let mut prefixes = Vec::with_capacity(len);
        let mut catch_alls = Vec::new();
        let rows = values.chunks_exact(words).zip(masks.chunks_exact(words));
        for (slot, (value, mask)) in rows.enumerate().take(len) {
            if mask.iter().all(|word| *word == 0) {
                catch_alls.push(slot as u32);
                continue;
            }
            let group = numbers.of(value, &others);
            let start = joined(field, value) << (128 - field_bits);
            prefixes.push(Prefix {
                group,
                start,
                length: joined(field, mask).count_ones(),
                slot: slot as u32,
            });
        }
        // The best of equal prefixes comes first, because it has the lowest slot.
        prefixes.sort_unstable();
        Self { words, field: field.to_vec(), others, present, prefixes, numbers, catch_alls }
    }

    /// Builds the structure that finds the interval of a key and returns its number.
    fn find(self, level: Level, intervals: &Intervals, wholes: Vec<u32>) -> Prefixes {
        let longest = self.prefixes.iter().map(|prefix| prefix.length).max().unwrap_or(0);
        let groups = wholes.len();
        let (mask, value, others) = if groups == 1 {
            (self.others, self.numbers.values, None)
        } else {
            // `Exact` compares the other fields, and returns the group.
            let exact = Exact::new(self.words, &self.others, self.numbers.values, groups, groups);
            (vec![0; self.words], vec![0; self.words], Some(exact))
        };
        Prefixes {
            keys: Keys::new(self.words, &self.field, self.present, &mask, &value),
            others,
            no_tombstones: BitSet::default(),
            wholes,
            low: self.field.get(1).copied(),
            search: intervals.search(longest),
            kernel: Kernel::new(level),
        }
    }
}

impl Prefixes {
    /// Compiles rules like [`Lpm::new`]. A lookup returns the rule's number from `numbers`, which is below
    /// 2^31, instead of its slot.
    ///
    /// Rules with the same number take less memory. Rules that match everything are ignored.
    #[must_use]
    pub fn new(
        level: Level,
        words: usize,
        field: &[Piece],
        values: &[u64],
        masks: &[u64],
        numbers: &[u32],
    ) -> Self {
        let rules = Rules::new(words, field, numbers.len(), values, masks);
        let mut intervals = Intervals::new(numbers.len());
        let mut wholes = intervals.add_all(&rules.prefixes);
        intervals.renumber(numbers);
        wholes.iter_mut().for_each(|slot| *slot = number_of(numbers, *slot));
        rules.find(level, &intervals, wholes)
    }
}

impl Lpm {
    /// Compiles like [`Self::new`], with instructions of at most `level`.
    #[must_use]
    pub fn with_level(
        level: Level,
        words: usize,
        field: &[Piece],
        len: usize,
        values: &[u64],
        masks: &[u64],
    ) -> Self {
        let mut rules = Rules::new(words, field, len, values, masks);
        let mut intervals = Intervals::new(len);
        let wholes = intervals.add_all(&rules.prefixes);
        let up = std::mem::take(&mut intervals.up);
        let contradicted = up.iter().enumerate().any(|(slot, above)| (*above as usize) < slot);
        let best = if contradicted { best_of_chains(&rules.prefixes, &up) } else { Vec::new() };
        let equal = std::mem::take(&mut intervals.equal);
        let equal = if intervals.repeats { equal } else { Vec::new() };
        let catch_alls = std::mem::take(&mut rules.catch_alls);
        let prefixes = rules.find(level, &intervals, wholes);
        Self { prefixes: Box::new(prefixes), chains: Chains { up, equal, best }, catch_alls }
    }
}

fn number_of(numbers: &[u32], slot: u32) -> u32 {
    numbers.get(slot as usize).copied().unwrap_or(NONE)
}

/// Returns the best rule of each prefix's chain.
fn best_of_chains(prefixes: &[Prefix], up: &[u32]) -> Vec<u32> {
    let mut best: Vec<u32> = (0..up.len() as u32).collect();
    // Each prefix comes after the prefixes that contain it.
    for prefix in prefixes {
        if let Some(above) = best.get(up[prefix.slot as usize] as usize) {
            best[prefix.slot as usize] = prefix.slot.min(*above);
        }
    }
    best
}

/// Returns the mask of the bits outside the field that every rule examines, and the mask of the presence bits
/// that only rules with the field examine.
fn other_bits(words: usize, field: &[Piece], masks: &[u64]) -> (Vec<u64>, u64) {
    let mut all = vec![u64::MAX; words];
    let mut any = 0;
    for mask in masks.chunks_exact(words).filter(|mask| mask.iter().any(|word| *word != 0)) {
        for (all, word) in all.iter_mut().zip(mask) {
            *all &= word;
        }
        any |= mask[0];
    }
    for piece in field {
        all[piece.word] &= !piece.mask();
        if piece.word == 0 {
            any &= !piece.mask();
        }
    }
    let present = any & !all[0];
    (all, present)
}

fn joined(field: &[Piece], row: &[u64]) -> u128 {
    field.iter().fold(0, |value, piece| value << piece.bits | u128::from(piece.of(row)))
}

/// Assigns numbers to the values of the other fields.
#[derive(Default)]
struct Numbers {
    known: HashMap<Box<[u64]>, u32>,
    values: Vec<u64>,
    last: Option<(Box<[u64]>, u32)>,
}

impl Numbers {
    fn of(&mut self, value: &[u64], mask: &[u64]) -> u32 {
        // Most tables have a single value.
        if let Some((last, number)) = &self.last
            && last.iter().zip(value).zip(mask).all(|((last, value), mask)| value & mask == *last)
        {
            return *number;
        }
        let masked: Box<[u64]> = value.iter().zip(mask).map(|(value, mask)| value & mask).collect();
        let next = self.known.len() as u32;
        let number = *self.known.entry(masked.clone()).or_insert_with(|| {
            self.values.extend_from_slice(&masked);
            next
        });
        self.last = Some((masked, number));
        number
    }
}

#[derive(Default)]
struct Intervals {
    /// First values of the intervals, left-aligned. `longest` has the first rule of each interval's longest
    /// prefix. Both are ordered by group.
    starts: Vec<u128>,
    longest: Vec<u32>,
    /// End index of each group.
    ends: Vec<usize>,
    up: Vec<u32>,
    equal: Vec<u32>,
    /// Whether some prefixes are equal.
    repeats: bool,
}

impl Intervals {
    fn new(len: usize) -> Self {
        Self { up: vec![NONE; len], equal: vec![NONE; len], ..Self::default() }
    }

    /// Adds the sorted prefixes of all groups. Returns each group's first prefix of length 0, or [`NONE`].
    fn add_all(&mut self, prefixes: &[Prefix]) -> Vec<u32> {
        prefixes.chunk_by(|a, b| a.group == b.group).map(|group| self.add(group)).collect()
    }

    /// Replaces rules by numbers, and merges neighbouring intervals with equal numbers.
    fn renumber(&mut self, numbers: &[u32]) {
        let old = std::mem::take(self);
        let mut from = 0;
        for end in old.ends {
            let group = self.starts.len();
            for at in from..end {
                self.begin(group, old.starts[at], number_of(numbers, old.longest[at]));
            }
            self.ends.push(self.starts.len());
            from = end;
        }
    }

    /// Adds the sorted prefixes of a group. Returns its first prefix of length 0, or [`NONE`].
    fn add(&mut self, prefixes: &[Prefix]) -> u32 {
        let from = self.starts.len();
        self.begin(from, 0, NONE);
        let mut open: Vec<Prefix> = Vec::new();
        let mut whole = NONE;
        for equal in prefixes.chunk_by(|a, b| (a.start, a.length) == (b.start, b.length)) {
            let first = equal[0];
            while open.last().is_some_and(|top| top.end() < first.start) {
                self.close(from, &mut open);
            }
            for pair in equal.windows(2) {
                self.equal[pair[0].slot as usize] = pair[1].slot;
                self.repeats = true;
            }
            let above = open.last().map_or(NONE, |top| top.slot);
            equal.iter().for_each(|prefix| self.up[prefix.slot as usize] = above);
            self.begin(from, first.start, first.slot);
            if first.length == 0 {
                whole = first.slot;
            }
            open.push(first);
        }
        while !open.is_empty() {
            self.close(from, &mut open);
        }
        self.ends.push(self.starts.len());
        whole
    }

    /// Closes the innermost prefix. The prefix that contains it continues after its end.
    fn close(&mut self, from: usize, open: &mut Vec<Prefix>) {
        let Some(ended) = open.pop() else { return };
        if ended.end() != u128::MAX {
            self.begin(from, ended.end() + 1, open.last().map_or(NONE, |top| top.slot));
        }
    }

    fn begin(&mut self, from: usize, start: u128, longest: u32) {
        if self.starts.len() > from && self.starts.last() == Some(&start) {
            self.starts.pop();
            self.longest.pop();
        }
        if self.starts.len() > from && self.longest.last() == Some(&longest) {
            return;
        }
        self.starts.push(start);
        self.longest.push(longest);
    }

    /// Builds the structure that finds the interval of a value. The longest prefix has `longest` bits.
    fn search(&self, longest: u32) -> Search {
        let ranges = self.ends.iter().scan(0, |from, &end| Some(std::mem::replace(from, end)..end));
        if longest <= TRIE_BITS {
            let starts: Vec<u64> = self.starts.iter().map(|start| (start >> 64) as u64).collect();
            let groups = ranges.clone().map(|range| (&starts[range.clone()], &self.longest[range]));
            if let Some(trie) = Trie::new(groups) {
                return Search::Trie(trie);
            }
        }
        Search::Forest(Forest::new(ranges.map(|range| (&self.starts[range.clone()], &self.longest[range]))))
    }
}
