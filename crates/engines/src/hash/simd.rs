// SPDX-License-Identifier: Apache-2.0
//! Hash of keys of up to eight words, computed with AES rounds on four blocks of two words in parallel.
//!
//! Each block is combined with a secret and passes two rounds. The XOR of the blocks passes two more, so that
//! every bit of a key passes four secret rounds. Keys that differ in only one block have different XORs. For
//! other pairs of keys chosen without the secrets, the probability of equal XORs is at most 2^-30: two rounds
//! have at least five active S-boxes, each with a differential probability of at most 2^-6.
#![allow(unsafe_code)]

use super::Seed;

/// Number of words in a block.
const BLOCK: usize = 2;

/// Number of blocks in a key.
const BLOCKS: usize = 4;

/// Maximum number of words in a key.
pub const WORDS_MAX: usize = BLOCK * BLOCKS;

/// Secrets of the hash. They exist only on a core that has the instructions.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Aes {
    blocks: [[u64; BLOCK]; BLOCKS],
    rounds: [[u64; BLOCK]; 4],
}

impl Aes {
    /// Derives the secrets from a seed. Returns `None` if the core lacks the instructions.
    #[cfg(target_arch = "x86_64")]
    #[must_use]
    pub fn new(seed: Seed) -> Option<Self> {
        let found = is_x86_feature_detected!("vaes")
            && is_x86_feature_detected!("aes")
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq");
        let block = |number: u64| [seed.derive(2 * number), seed.derive(2 * number + 1)];
        found.then(|| Self { blocks: [0, 1, 2, 3].map(block), rounds: [4, 5, 6, 7].map(block) })
    }

    /// Returns `None`, because only x86-64 has the instructions.
    #[cfg(not(target_arch = "x86_64"))]
    #[must_use]
    pub fn new(_: Seed) -> Option<Self> {
        None
    }

    /// Returns the hash of a key of at most [`WORDS_MAX`] words. Only keys of equal length may be compared.
    #[must_use]
    pub fn hash(&self, key: &[u64]) -> u64 {
        let mut words = [0; WORDS_MAX];
        for (word, key) in words.iter_mut().zip(key) {
            *word = *key;
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: only `new` creates an `Aes`, and it has checked that the core has these instructions.
        unsafe {
            self.hash_words(&words, key.len())
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            let _ = (&self.blocks, &self.rounds);
            0
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Aes, BLOCK, WORDS_MAX};
    use std::arch::x86_64::{
        __m128i, __m512i, _mm_aesenc_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_xor_si128,
        _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_xor_si256, _mm512_aesenc_epi128,
        _mm512_broadcast_i64x2, _mm512_castsi512_si128, _mm512_castsi512_si256, _mm512_extracti64x4_epi64,
        _mm512_loadu_si512, _mm512_xor_si512,
    };

    /// Secrets in vector registers.
    #[derive(Clone, Copy, Debug)]
    pub struct Rounds {
        blocks: __m512i,
        first: __m512i,
        rounds: [__m512i; 4],
    }

    impl Aes {
        /// Loads the secrets.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,aes,vaes")]
        pub(crate) fn rounds(&self) -> Rounds {
            let wide = |[low, high]: [u64; BLOCK]| {
                _mm512_broadcast_i64x2(_mm_set_epi64x(high.cast_signed(), low.cast_signed()))
            };
            let [a, b, c, d] = self.rounds;
            Rounds {
                // SAFETY: `blocks` is an array of 64 bytes, the length of the load.
                blocks: unsafe { _mm512_loadu_si512(self.blocks.as_ptr().cast()) },
                first: wide(self.blocks[0]),
                rounds: [wide(a), wide(b), wide(c), wide(d)],
            }
        }

        #[target_feature(enable = "avx512f,avx512dq,aes,vaes")]
        pub(super) fn hash_words(&self, words: &[u64; WORDS_MAX], len: usize) -> u64 {
            // SAFETY: `words` is an array of 64 bytes, the length of the load.
            let words = unsafe { _mm512_loadu_si512(words.as_ptr().cast()) };
            let rounds = self.rounds();
            if len <= BLOCK { rounds.one_block(words) } else { rounds.one(words) }
        }
    }

    impl Rounds {
        /// Returns the hashes of four keys of one or two words, in the lower half of each block. A missing
        /// word must be 0.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,aes,vaes")]
        #[must_use]
        pub(crate) fn each(&self, keys: __m512i) -> __m512i {
            let [a, b, c, d] = self.rounds;
            let keys = _mm512_aesenc_epi128(_mm512_xor_si512(keys, self.first), a);
            _mm512_aesenc_epi128(_mm512_aesenc_epi128(_mm512_aesenc_epi128(keys, b), c), d)
        }

        /// Returns the hash of one key of one or two words.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,aes,vaes")]
        #[must_use]
        pub(crate) fn one_block(&self, key: __m512i) -> u64 {
            let [a, b, c, d] = self.rounds.map(|round| _mm512_castsi512_si128(round));
            let key = _mm_xor_si128(_mm512_castsi512_si128(key), _mm512_castsi512_si128(self.first));
            let key = _mm_aesenc_si128(_mm_aesenc_si128(key, a), b);
            _mm_cvtsi128_si64(_mm_aesenc_si128(_mm_aesenc_si128(key, c), d)).cast_unsigned()
        }

        /// Returns the hash of one key of three to eight words. Missing words must be 0.
        #[inline]
        #[target_feature(enable = "avx512f,avx512dq,aes,vaes")]
        #[must_use]
        pub(crate) fn one(&self, key: __m512i) -> u64 {
            let [a, b, c, d] = self.rounds;
            let key = _mm512_aesenc_epi128(_mm512_xor_si512(key, self.blocks), a);
            let key = _mm512_aesenc_epi128(key, b);
            let half = _mm256_xor_si256(_mm512_castsi512_si256(key), _mm512_extracti64x4_epi64::<1>(key));
            let sum: __m128i =
                _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
            let sum = _mm_aesenc_si128(sum, _mm512_castsi512_si128(c));
            _mm_cvtsi128_si64(_mm_aesenc_si128(sum, _mm512_castsi512_si128(d))).cast_unsigned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_a_key_affects_the_hash() {
        let Some(aes) = Aes::new(Seed::of_process()) else { return };
        for words in [1, 2, 3, 5, 8] {
            let mut hashes = vec![aes.hash(&vec![0; words])];
            for bit in 0..words * 64 {
                let mut key = vec![0; words];
                key[bit / 64] |= 1 << (bit % 64);
                hashes.push(aes.hash(&key));
            }
            for half in [0, 32] {
                let mut halves: Vec<u32> = hashes.iter().map(|hash| (hash >> half) as u32).collect();
                halves.sort_unstable();
                halves.dedup();
                assert!(halves.len() > words * 64 - 2);
            }
            assert_eq!(aes.hash(&vec![7; words]), aes.hash(&vec![7; words]));
        }
    }
}
