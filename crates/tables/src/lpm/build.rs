// SPDX-License-Identifier: Apache-2.0
//! Control side: compiles prefixes into intervals, in one walk over them in order with a stack of those that are open.

use super::{Bound, Group, Lpm, Piece, Starts};
use crate::exact::Exact;
use crate::{BitSet, NONE};
use std::collections::HashMap;

/// Most first bits that pick an interval: a quarter of a million places.
const ROOT_BITS_MAX: u32 = 18;

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

impl Lpm {
    /// Compiles `len` rules given in order of precedence, `words` words each in `values` and `masks`, that are prefixes
    /// of the field in `field` (one piece or two, the first bits first), or match everything; whatever else they
    /// examine they examine under one mask.
    #[must_use]
    pub fn new(words: usize, field: &[Piece], len: usize, values: &[u64], masks: &[u64]) -> Self {
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
        // Of equal prefixes the first slot is the best.
        prefixes.sort_unstable();
        let mut intervals = Intervals { up: vec![NONE; len], equal: vec![NONE; len], ..Intervals::default() };
        let groups = numbers.count() as usize;
        let mut made = Vec::with_capacity(groups);
        let mut roots = Vec::new();
        for group in prefixes.chunk_by(|a, b| a.group == b.group) {
            made.push(intervals.add(group, field_bits, &mut roots));
        }
        let contradicted = intervals.up.iter().enumerate().any(|(slot, above)| (*above as usize) < slot);
        let best = if contradicted { best_of_chains(&prefixes, &intervals.up) } else { Vec::new() };
        let equal = if intervals.repeats { intervals.equal } else { Vec::new() };
        let starts = match prefixes.iter().map(|prefix| prefix.length).max().unwrap_or(0) {
            ..=32 => Starts::Bits32(narrowed(&intervals.starts)),
            33..=64 => Starts::Bits64(narrowed(&intervals.starts)),
            _ => Starts::Bits128(intervals.starts),
        };
        Self {
            words,
            field: field.into(),
            present,
            others: Exact::new(words, &others, numbers.values, groups, groups),
            groups: made,
            roots,
            starts,
            longest: intervals.longest,
            up: intervals.up,
            equal,
            best,
            catch_alls,
            none_dead: BitSet::default(),
        }
    }
}

/// The best of each prefix's chain, for rules whose priorities contradict their lengths.
fn best_of_chains(prefixes: &[Prefix], up: &[u32]) -> Vec<u32> {
    let mut best: Vec<u32> = (0..up.len() as u32).collect();
    // What contains a prefix stands before it.
    for prefix in prefixes {
        if let Some(above) = best.get(up[prefix.slot as usize] as usize) {
            best[prefix.slot as usize] = prefix.slot.min(*above);
        }
    }
    best
}

/// The mask of what all rules examine beside the field, and the presence bits that only rules with the field examine.
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

fn narrowed<B: Bound>(starts: &[u128]) -> Vec<B> {
    starts.iter().map(|start| B::first((start >> 64) as u64, *start as u64)).collect()
}

/// Numbers for the values of the other fields.
#[derive(Default)]
struct Numbers {
    known: HashMap<Box<[u64]>, u32>,
    values: Vec<u64>,
    last: Option<(Box<[u64]>, u32)>,
}

impl Numbers {
    fn of(&mut self, value: &[u64], mask: &[u64]) -> u32 {
        // Most tables have but one value.
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

    fn count(&self) -> u32 {
        self.known.len() as u32
    }
}

#[derive(Default)]
struct Intervals {
    starts: Vec<u128>,
    longest: Vec<u32>,
    up: Vec<u32>,
    equal: Vec<u32>,
    /// Some prefixes are equal.
    repeats: bool,
}

impl Intervals {
    /// Adds a group's prefixes, sorted, and its places among the roots.
    fn add(&mut self, prefixes: &[Prefix], field_bits: u32, roots: &mut Vec<u32>) -> Group {
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
        let starts = &self.starts[from..];
        let bits = starts.len().ilog2().clamp(1, ROOT_BITS_MAX).min(field_bits);
        let root = roots.len() as u32;
        let mut at = 0;
        for place in 0..1u128 << bits {
            let smallest = place << (128 - bits);
            at += starts[at..].partition_point(|start| *start <= smallest) - 1;
            roots.push((from + at) as u32);
        }
        roots.push((self.starts.len() - 1) as u32);
        Group { root, bits, whole }
    }

    /// Ends the innermost prefix: what contains it goes on behind it.
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
}
