// SPDX-License-Identifier: Apache-2.0
//! Interpretation of a row: whether the bits outside the field match, whether the field is present, and the
//! field's first bits.

use super::Piece;

/// Number of rows that are looked up together.
pub(super) const BURST: usize = 32;

/// A relevant word of a row, and its use.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Column {
    /// Index of the word.
    pub word: usize,
    /// Mask of the bits in this word that lie outside the field and that all rules examine. `value` is their
    /// required value.
    pub mask: u64,
    pub value: u64,
    /// Presence bits that a prefix of at least one bit requires. If one of them is 0, the row lacks the
    /// field.
    pub present: u64,
    /// Left shift that moves this word's part of the field to the bits in `field`. `field` is 0 if the word
    /// has none of the field's first bits.
    pub left: u32,
    pub field: u64,
}

/// Relevant words of rows of `words` words.
#[derive(Debug)]
pub(super) struct Keys {
    pub words: usize,
    pub columns: Box<[Column]>,
}

/// Result of reading a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Whether the bits outside the field match.
    pub ours: bool,
    /// Whether the row has the field.
    pub present: bool,
    /// First bits of the field, left-aligned.
    pub high: u64,
}

impl Keys {
    /// Creates the description of rows. `mask` and `value` are the bits outside the field that all rules
    /// examine. `mask` is 0 if the rules have several values there.
    pub fn new(words: usize, field: &[Piece], present: u64, mask: &[u64], value: &[u64]) -> Self {
        let columns = (0..words).map(|word| {
            let first = field.first().filter(|piece| piece.word == word);
            Column {
                word,
                mask: mask[word],
                value: value[word] & mask[word],
                present: if word == 0 { present } else { 0 },
                left: first.map_or(0, |piece| 64 - piece.bits - piece.shift),
                field: first.map_or(0, |piece| u64::MAX << (64 - piece.bits)),
            }
        });
        let columns = columns.filter(|column| column.mask | column.present | column.field != 0);
        Self { words, columns: columns.collect() }
    }

    /// Reads a row.
    #[inline(always)]
    pub fn read(&self, row: &[u64]) -> Seen {
        let (mut differing, mut missing, mut high) = (0, 0, 0);
        for column in &self.columns {
            let word = row[column.word];
            differing |= word & column.mask ^ column.value;
            missing |= !word & column.present;
            high |= word << column.left & column.field;
        }
        Seen { ours: differing == 0, present: missing == 0, high }
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.columns)
    }
}
