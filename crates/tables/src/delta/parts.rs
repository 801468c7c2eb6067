// SPDX-License-Identifier: Apache-2.0
//! Data structures of the filter in [`super::bloom`]: the parts of a key, and the array of bits in which
//! their hashes are recorded.

/// Contribution of one word to a part's hash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    pub word: usize,
    pub mask: u64,
    /// Odd number by which the masked word is multiplied.
    pub factor: u64,
}

/// Bits of a key that are hashed together.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub terms: Vec<Term>,
    pub salt: u64,
}

/// A bit array whose size is a power of two.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    words: Box<[u64]>,
    /// Number of bits by which a hash is shifted right to give its position in the array.
    pub down: u32,
}

impl Part {
    /// Returns the hash of a row.
    #[inline(always)]
    pub fn hash(&self, row: &[u64]) -> u64 {
        let term = |term: &Term| (row[term.word] & term.mask).wrapping_mul(term.factor);
        self.terms.iter().fold(self.salt, |sum, one| sum.wrapping_add(term(one)))
    }
}

impl Bits {
    /// Creates an array of `1 << size_log2` bits, at least 64. All bits are 0.
    pub fn new(size_log2: u32) -> Self {
        Self { words: vec![0; 1 << (size_log2 - 6)].into(), down: u64::BITS - size_log2 }
    }

    /// Returns the word and the bit for a hash.
    #[inline(always)]
    fn place(&self, hash: u64) -> (usize, u64) {
        let place = hash >> self.down;
        ((place / 64) as usize & (self.words.len() - 1), 1 << (place % 64))
    }

    /// Sets the bit for a hash.
    pub fn insert(&mut self, hash: u64) {
        let (word, bit) = self.place(hash);
        self.words[word] |= bit;
    }

    /// Returns whether the bit for a hash is set.
    #[inline(always)]
    pub fn has(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.words[word] & bit != 0
    }

    /// Returns the words of the array. Their number is a power of two.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }
}
