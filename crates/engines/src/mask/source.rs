// SPDX-License-Identifier: Apache-2.0
//! Source of a key's labels: a word of the dense key that is divided into chunks or hashed. See
//! [`super::labels`].

use super::layout::Group;
use super::simd::{Cut, DENSE_MAX, Kernel, Paged};
use super::whole::Whole;

/// Source of a label: a dense word and the method that derives a label from it.
#[derive(Debug)]
pub(super) struct Source {
    pub word: u8,
    pub kind: Kind,
}

/// Method that derives a label from a dense word.
#[derive(Debug)]
pub(super) enum Kind {
    /// A table lookup of some bits of the word.
    Chunk { cut: Cut, labels: Paged },
    /// A hash table lookup of the whole word.
    Whole(Whole),
}

impl Source {
    /// Stores the labels of `len` keys.
    #[inline(always)]
    pub fn labels<K: Kernel, const G: usize>(
        &self,
        kernel: K,
        keys: &Group<G>,
        len: usize,
        labels: &mut [u32; G],
    ) {
        let words = &keys[usize::from(self.word) % DENSE_MAX];
        match &self.kind {
            Kind::Chunk { cut, labels: table } => kernel.label(table, words, *cut, labels),
            Kind::Whole(whole) => {
                let each = labels.iter_mut().zip(words).take(len);
                each.for_each(|(label, word)| *label = whole.label(*word));
            }
        }
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        match &self.kind {
            Kind::Chunk { labels, .. } => labels.bytes(),
            Kind::Whole(whole) => whole.bytes(),
        }
    }
}
