// SPDX-License-Identifier: Apache-2.0
//! Words that begin at a cache line.

use crate::pages::zeros;

/// Words of a line.
pub const LINE: usize = 8;

/// Bytes of a line.
const LINE_BYTES: usize = 64;

/// Lines of words, all 0 at first.
#[derive(Debug)]
pub struct Lines {
    /// With as many words in front as it takes.
    words: Box<[u64]>,
    from: usize,
}

impl Lines {
    /// Lines for at least so many words.
    #[must_use]
    pub fn new(words: usize) -> Self {
        let words = zeros(words.next_multiple_of(LINE) + LINE - 1);
        // What cannot be aligned is slower and no less right.
        let from = words.as_ptr().align_offset(LINE_BYTES).min(LINE - 1);
        Self { words, from }
    }

    /// The words.
    #[must_use]
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        &self.words[self.from..]
    }

    /// The words.
    #[must_use]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words[self.from..]
    }

    /// The lines.
    #[must_use]
    #[inline(always)]
    pub fn lines(&self) -> &[[u64; LINE]] {
        self.words().as_chunks().0
    }

    /// Bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}
