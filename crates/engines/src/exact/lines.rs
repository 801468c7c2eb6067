// SPDX-License-Identifier: Apache-2.0
//! Words aligned to cache lines.

use crate::pages::zeros;

/// Number of words in a cache line.
pub const LINE: usize = 8;

/// Size of a cache line in bytes.
const LINE_BYTES: usize = 64;

/// Cache lines of words, initially 0.
#[derive(Debug)]
pub struct Lines {
    /// Allocated words. The first ones are skipped for alignment.
    words: Box<[u64]>,
    from: usize,
}

impl Lines {
    /// Allocates lines for at least `words` words.
    #[must_use]
    pub fn new(words: usize) -> Self {
        let words = zeros(words.next_multiple_of(LINE) + LINE - 1);
        // Unaligned lines are slower but correct.
        let from = words.as_ptr().align_offset(LINE_BYTES).min(LINE - 1);
        Self { words, from }
    }

    /// Returns the words.
    #[must_use]
    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        &self.words[self.from..]
    }

    /// Returns the words.
    #[must_use]
    pub fn words_mut(&mut self) -> &mut [u64] {
        &mut self.words[self.from..]
    }

    /// Returns the lines.
    #[must_use]
    #[inline(always)]
    pub fn lines(&self) -> &[[u64; LINE]] {
        self.words().as_chunks().0
    }

    /// Returns the memory used, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_begin_where_cache_lines_do() {
        for (words, lines) in [(0, 0), (1, 1), (8, 1), (9, 2), (1_000, 125)] {
            let mut made = Lines::new(words);
            assert_eq!(made.words().as_ptr().addr() % 64, 0, "{words} words");
            assert!(made.words().len() >= words);
            assert_eq!(made.lines().len(), lines);
            // The first cache line begins within the first eight words.
            assert_eq!(made.bytes(), (lines * 8 + 7) * 8);
            made.words_mut().fill(5);
            assert!(made.lines().iter().all(|line| *line == [5; 8]));
        }
    }
}
