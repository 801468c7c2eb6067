// SPDX-License-Identifier: Apache-2.0
//! Hash of lookup keys: one 64 x 64 -> 128 bit multiplication per two words. The seed is random, so
//! that attackers cannot choose packets that collide.

pub mod simd;

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::OnceLock;

/// Seed of the key hash.
#[derive(Clone, Copy, Debug)]
pub struct Seed {
    first: u64,
    second: u64,
}

static SEED: OnceLock<Seed> = OnceLock::new();

impl Seed {
    /// Returns the process's seed, drawn from the operating system's randomness at first use.
    #[must_use]
    pub fn of_process() -> Self {
        *SEED.get_or_init(|| {
            let state = RandomState::new();
            Self { first: state.hash_one(1u64) | 1, second: state.hash_one(2u64) | 1 }
        })
    }

    /// Returns the seed derived from a number. Such a seed is not secret.
    #[must_use]
    pub fn of_number(seed: u64) -> Self {
        Self { first: fold(seed, 0x9e37_79b9_7f4a_7c15) | 1, second: fold(!seed, 0xd1b5_4a32_d192_ed03) | 1 }
    }

    /// Makes the seed derived from `seed` the process's seed, unless a seed has been drawn already. Returns
    /// whether the process uses the derived seed. For reproducible simulations only: such a seed is not
    /// secret.
    pub fn fix(seed: u64) -> bool {
        let known = Self::of_number(seed);
        let fixed = *SEED.get_or_init(|| known);
        (fixed.first, fixed.second) == (known.first, known.second)
    }

    /// Derives another secret from the seed. A secret reveals nothing about the secrets of other numbers.
    #[must_use]
    pub fn derive(self, number: u64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.first, self.second, number).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the hash of a key under a mask.
    #[must_use]
    #[inline]
    pub fn hash(self, key: &[u64], mask: &[u64]) -> u64 {
        self.hash_words(key.len().min(mask.len()), |at| key[at] & mask[at])
    }

    /// Returns the hash of a key whose unexamined bits are 0.
    #[must_use]
    #[inline]
    pub fn hash_masked(self, key: &[u64]) -> u64 {
        self.hash_words(key.len(), |at| key[at])
    }

    /// Hashes two words per multiplication. An odd last word needs no padding mark, because keys of one table
    /// have equal length.
    #[inline(always)]
    fn hash_words(self, words: usize, word: impl Fn(usize) -> u64) -> u64 {
        let mut sum = self.second;
        for pair in 0..words / 2 {
            sum = fold(word(2 * pair) ^ self.first, word(2 * pair + 1) ^ sum);
        }
        if words % 2 == 1 {
            sum = fold(word(words - 1) ^ self.first, sum);
        }
        fold(sum ^ self.first, self.second ^ 0x9e37_79b9_7f4a_7c15)
    }
}

/// Maximum number of words of a key that [`KeyHash`] hashes.
pub const KEY_WORDS: usize = 16;

/// Hash of keys of one length, for caches. Each word has its own secret, so the multiplications of a key do
/// not wait for each other. High and low bits of the hash depend on all bits of the key.
#[derive(Clone, Debug)]
pub struct KeyHash {
    seed: Seed,
    secrets: [u64; KEY_WORDS],
}

impl KeyHash {
    /// Derives the secrets from a seed.
    #[must_use]
    pub fn new(seed: Seed) -> Self {
        Self { seed, secrets: std::array::from_fn(|at| seed.derive(at as u64)) }
    }

    /// Returns the hash of a key of at most [`KEY_WORDS`] words. Unexamined bits of the key must be 0. A key
    /// of one word needs only one multiplication.
    #[must_use]
    #[inline(always)]
    pub fn hash(&self, key: &[u64]) -> u64 {
        let Seed { first, second } = self.seed;
        if let [word] = key {
            return fold(*word ^ first, second);
        }
        let (pairs, odd) = key.as_chunks::<2>();
        let secrets = self.secrets.as_chunks::<2>().0;
        let products =
            pairs.iter().zip(secrets).map(|([a, b], [c, d])| u128::from(a ^ c) * u128::from(b ^ d));
        // The products are added before their halves are mixed, so that all words need only one fold.
        let sum = products.fold(0, u128::wrapping_add);
        let last = odd
            .iter()
            .fold(sum, |sum, word| sum.wrapping_add(u128::from(*word ^ first) * u128::from(second)));
        fold(last as u64 ^ first, (last >> 64) as u64 ^ second)
    }
}

/// Returns the XOR of both halves of the product, so that each bit of the factors affects high and low bits.
#[inline]
pub(crate) fn fold(a: u64, b: u64) -> u64 {
    let wide = u128::from(a) * u128::from(b);
    wide as u64 ^ (wide >> 64) as u64
}

/// Hasher for keys that are already hashes.
#[derive(Default)]
pub(crate) struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only for completeness: all keys are `u64`.
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn only_examined_bits_affect_the_hash() {
        let seed = Seed::of_process();
        assert_eq!(seed.hash(&[1, 0xff], &[!0, 0x0f]), seed.hash(&[1, 0x0f], &[!0, 0x0f]));
        assert_eq!(seed.hash(&[1, 0xff, 7], &[!0, 0x0f, 0]), seed.hash_masked(&[1, 0x0f, 0]));
        let hashes: HashSet<u64> = (0..10_000u64).map(|v| seed.hash(&[v, 3], &[!0, !0])).collect();
        assert!(hashes.len() > 9_990);
        let low: HashSet<u64> = hashes.iter().map(|h| h & 0xff).collect();
        assert_eq!(low.len(), 256);
    }

    #[test]
    fn derived_secrets_depend_on_the_seed_and_on_their_number() {
        let derived: HashSet<u64> = (0..10)
            .flat_map(|seed| (0..10).map(move |number| Seed::of_number(seed).derive(number)))
            .collect();
        assert_eq!(derived.len(), 100);
        assert_eq!(Seed::of_number(3).derive(4), Seed::of_number(3).derive(4));
    }

    #[test]
    fn every_bit_of_a_key_affects_the_hash() {
        for seed in [Seed::of_process(), Seed::of_number(3)] {
            for words in 1..=KEY_WORDS {
                let key: Vec<u64> =
                    (0..words as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
                let mut hashes = vec![seed.hash_masked(&key)];
                let of_key = KeyHash::new(seed);
                let mut of_keys = vec![of_key.hash(&key)];
                for bit in 0..words * 64 {
                    let mut other = key.clone();
                    other[bit / 64] ^= 1 << (bit % 64);
                    hashes.push(seed.hash_masked(&other));
                    of_keys.push(of_key.hash(&other));
                    assert_eq!(seed.hash(&other, &vec![u64::MAX; words]), seed.hash_masked(&other));
                }
                for (half, hashes) in [(0, &hashes), (32, &hashes), (0, &of_keys), (32, &of_keys)] {
                    let halves: HashSet<u32> = hashes.iter().map(|hash| (hash >> half) as u32).collect();
                    assert!(
                        halves.len() + 1 >= hashes.len(),
                        "{words} words: two keys have equal hash halves"
                    );
                }
            }
        }
    }

    #[test]
    fn the_order_of_words_affects_the_hash_of_a_key() {
        let hash = KeyHash::new(Seed::of_number(5));
        for words in 2..=KEY_WORDS {
            let key: Vec<u64> = (1..=words as u64).collect();
            let swaps = (1..words).flat_map(|b| (0..b).map(move |a| (a, b)));
            let hashes = swaps.map(|(a, b)| {
                let mut other = key.clone();
                other.swap(a, b);
                hash.hash(&other)
            });
            let distinct: HashSet<u64> = hashes.chain([hash.hash(&key)]).collect();
            assert_eq!(distinct.len(), words * (words - 1) / 2 + 1, "{words} words");
        }
    }

    #[test]
    fn a_process_has_one_seed() {
        let key = [1, 2, 3];
        let hash = Seed::of_process().hash_masked(&key);
        assert_eq!(Seed::of_process().hash_masked(&key), hash);
        // A seed that has been drawn cannot be fixed.
        let other = (0..).find(|number| Seed::of_number(*number).hash_masked(&key) != hash).unwrap();
        assert!(!Seed::fix(other));
        assert_eq!(Seed::of_process().hash_masked(&key), hash);
    }
}
