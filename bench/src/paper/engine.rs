// SPDX-License-Identifier: Apache-2.0
//! Tries as engines of a switch's tables.
//!
//! Conditions that all rules of a table share, such as an EtherType, are compared once, outside the trie.

use engines::base::Lookup;
use engines::lpm::Piece;
use engines::{BitSet, KeyPlan};
use tables::choice::Choice;

use super::{AclTrie, LpmTrie, NONE, Route, TernaryRows};

/// Number of keys looked up together, and maximum number of words per key.
const KEYS: usize = 32;
const WORDS_MAX: usize = 8;

/// Creates tries for tables that are not hashed. A table with prefixes of one field gets a trie for prefixes;
/// other tables get a trie for ternary rules. Returns `None` for rules that a trie cannot represent.
#[must_use]
pub fn maker(choice: Choice, plan: &KeyPlan, values: &[u64], masks: &[u64]) -> Option<Box<dyn Lookup>> {
    let rows = Rows { words: plan.words(), values: values.into(), masks: masks.into() };
    match choice {
        Choice::Exact => None,
        Choice::Lpm(field) => Some(Box::new(Prefixes::new(rows, Piece::of_field(plan, field))?)),
        Choice::Scan | Choice::Mask => Some(Box::new(List::new(rows)?)),
    }
}

/// Rules of a table, best first.
#[derive(Debug)]
struct Rows {
    words: usize,
    values: Box<[u64]>,
    masks: Box<[u64]>,
}

impl Rows {
    fn len(&self) -> usize {
        self.values.len() / self.words.max(1)
    }

    fn row(&self, at: usize) -> (&[u64], &[u64]) {
        let row = at * self.words..(at + 1) * self.words;
        (&self.values[row.clone()], &self.masks[row])
    }

    /// Finds the best active rule by linear search, for keys whose best rule was deleted after the trie was
    /// built.
    fn walk(&self, key: &[u64], dead: &BitSet) -> u32 {
        let fits = |at: &u32| {
            let (values, masks) = self.row(*at as usize);
            !dead.contains(*at) && key.iter().zip(values).zip(masks).all(|((k, v), m)| k & m == *v)
        };
        (0..self.len() as u32).find(fits).unwrap_or(NONE)
    }

    /// Returns the conditions that these rows have in common, as masks and values.
    fn common(&self, rows: impl Iterator<Item = usize>) -> (Vec<u64>, Vec<u64>) {
        let mut common: Option<(Vec<u64>, Vec<u64>)> = None;
        for at in rows {
            let (values, masks) = self.row(at);
            let (mask, value) = common.get_or_insert_with(|| (masks.to_vec(), values.to_vec()));
            for word in 0..self.words {
                mask[word] &= masks[word] & !(value[word] ^ values[word]);
                value[word] &= mask[word];
            }
        }
        common.unwrap_or_else(|| (vec![0; self.words], vec![0; self.words]))
    }

    /// Replaces each result that is a deleted rule by the best active rule.
    fn bury(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        for (key, slot) in keys.chunks_exact(self.words).zip(slots) {
            if *slot != NONE && dead.contains(*slot) {
                *slot = self.walk(key, dead);
            }
        }
    }
}

/// Engine for a table of arbitrary rules.
#[derive(Debug)]
struct List {
    rows: Rows,
    mask: Vec<u64>,
    value: Vec<u64>,
    /// Indices of the words in which rules differ.
    words: Vec<usize>,
    trie: AclTrie,
}

impl List {
    fn new(rows: Rows) -> Option<Self> {
        let (mask, value) = rows.common(0..rows.len());
        let differs = |word: &usize| (0..rows.len()).any(|at| rows.row(at).1[*word] & !mask[*word] != 0);
        let words: Vec<usize> = (0..rows.words).filter(differs).collect();
        let of = |side: &dyn Fn(usize) -> u64| -> Vec<u64> {
            let places = (0..rows.len()).flat_map(|at| words.iter().map(move |word| (at, *word)));
            places.map(|(at, word)| side(at * rows.words + word) & !mask[word]).collect()
        };
        let (values, masks) = (of(&|at| rows.values[at]), of(&|at| rows.masks[at]));
        let ids: Vec<u32> = (0..rows.len() as u32).collect();
        let ternary = TernaryRows { words: words.len(), values: &values, masks: &masks, ids: &ids };
        let trie = AclTrie::new(&ternary)?;
        Some(Self { rows, mask, value, words, trie })
    }
}

impl Lookup for List {
    fn lookup(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        let mut short = [0; KEYS * WORDS_MAX];
        let width = self.words.len();
        for (keys, slots) in keys.chunks(KEYS * self.rows.words).zip(slots.chunks_mut(KEYS)) {
            for (key, short) in keys.chunks_exact(self.rows.words).zip(short.chunks_exact_mut(width)) {
                short.iter_mut().zip(&self.words).for_each(|(short, word)| *short = key[*word]);
            }
            self.trie.lookup(&short[..slots.len() * width], slots);
            for (key, slot) in keys.chunks_exact(self.rows.words).zip(&mut *slots) {
                if key.iter().zip(&self.mask).zip(&self.value).any(|((k, m), v)| k & m != *v) {
                    *slot = NONE;
                }
            }
            if !dead.is_empty() {
                self.rows.bury(keys, dead, slots);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.trie.bytes()
    }
}

/// Engine for a table of prefixes of one field.
#[derive(Debug)]
struct Prefixes {
    rows: Rows,
    pieces: Vec<Piece>,
    mask: Vec<u64>,
    value: Vec<u64>,
    trie: LpmTrie,
    /// Rules that do not examine the field, best first.
    others: Vec<u32>,
}

/// Returns the field's bits, left-aligned.
fn field(pieces: &[Piece], row: &[u64]) -> u128 {
    let bits: u32 = pieces.iter().map(|piece| piece.bits).sum();
    let value = pieces.iter().fold(0_u128, |value, piece| value << piece.bits | u128::from(piece.of(row)));
    value << (128 - bits)
}

impl Prefixes {
    fn new(rows: Rows, pieces: Vec<Piece>) -> Option<Self> {
        let length = |at: usize| field(&pieces, rows.row(at).1).leading_ones() as u8;
        let (prefixes, others): (Vec<usize>, Vec<usize>) = (0..rows.len()).partition(|at| length(*at) > 0);
        // Longer prefixes must have precedence, and rules without a prefix must come last.
        let ordered = prefixes.is_sorted_by(|a, b| length(*a) >= length(*b));
        let last = others.first().is_none_or(|other| *other == prefixes.len());
        let (mut mask, mut value) = rows.common(prefixes.iter().copied());
        for piece in &pieces {
            mask[piece.word] &= !piece.mask();
            value[piece.word] &= mask[piece.word];
        }
        let alike = prefixes.iter().all(|at| {
            let mut rest = rows.row(*at).1.to_vec();
            pieces.iter().for_each(|piece| rest[piece.word] &= !piece.mask());
            rest == mask
        });
        if !(ordered && last && alike) {
            return None;
        }
        let route = |at: &usize| Route {
            value: field(&pieces, rows.row(*at).0),
            length: length(*at),
            id: *at as u32,
        };
        // Among equal prefixes, a trie keeps the last one. The order is reversed, so this is the best prefix.
        let routes: Vec<Route> = prefixes.iter().rev().map(route).collect();
        let trie = LpmTrie::new(2, &routes)?;
        let others = others.into_iter().map(|at| at as u32).collect();
        Some(Self { rows, pieces, mask, value, trie, others })
    }
}

impl Lookup for Prefixes {
    fn lookup(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        let mut short = [0; KEYS * 2];
        for (keys, slots) in keys.chunks(KEYS * self.rows.words).zip(slots.chunks_mut(KEYS)) {
            for (key, short) in keys.chunks_exact(self.rows.words).zip(short.chunks_exact_mut(2)) {
                if let [high, low] = self.pieces[..]
                    && (high.bits, low.bits) == (64, 64)
                {
                    (short[0], short[1]) = (key[high.word], key[low.word]);
                } else {
                    let value = field(&self.pieces, key);
                    (short[0], short[1]) = ((value >> 64) as u64, value as u64);
                }
            }
            self.trie.lookup(&short[..slots.len() * 2], slots);
            for (key, slot) in keys.chunks_exact(self.rows.words).zip(&mut *slots) {
                if key.iter().zip(&self.mask).zip(&self.value).any(|((k, m), v)| k & m != *v) {
                    *slot = NONE;
                }
                if *slot == NONE && !self.others.is_empty() {
                    let fits = |at: &&u32| {
                        let (values, masks) = self.rows.row(**at as usize);
                        key.iter().zip(values).zip(masks).all(|((k, v), m)| k & m == *v)
                    };
                    *slot = self.others.iter().find(fits).copied().unwrap_or(NONE);
                }
            }
            if !dead.is_empty() {
                self.rows.bury(keys, dead, slots);
            }
        }
    }

    fn bytes(&self) -> usize {
        self.trie.bytes()
    }
}
