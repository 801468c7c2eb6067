// SPDX-License-Identifier: Apache-2.0
//! What rows of words tell: whether a row has what all rules examine beside the field, whether it has the field at all,
//! and the field's first bits. Each word of a row that matters is read once.

use super::Piece;

/// Rows that are looked up together.
pub(super) const BURST: usize = 32;

/// A word of a row that matters, and what it is for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Column {
    /// The word.
    pub word: usize,
    /// What all rules examine in it beside the field, and under it their only value.
    pub mask: u64,
    pub value: u64,
    /// Bits that must be set for a prefix longer than 0: without them the field is absent, not zero.
    pub present: u64,
    /// The field's first bits in it, if it has them: so far to the left, and then under this mask.
    pub left: u32,
    pub field: u64,
}

/// What matters in rows of so many words.
#[derive(Debug)]
pub(super) struct Keys {
    pub words: usize,
    pub columns: Box<[Column]>,
}

/// What a row told.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// It has the only value of what all rules examine beside the field.
    pub ours: bool,
    /// It has the field.
    pub present: bool,
    /// The field's first bits, left-aligned.
    pub high: u64,
}

impl Keys {
    /// `others` is the mask and the only value of what all rules examine beside the field; a mask of zeros where they
    /// have several values.
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

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.columns)
    }
}
