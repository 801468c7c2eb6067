// SPDX-License-Identifier: Apache-2.0
//! Filter for tables whose base has prefixes of one field, or one mask: selects the keys that may match an
//! addition.
//!
//! Parts of a key (the first bits of the field at a few depths, or all bits under the mask) are hashed to one
//! bit each. An addition sets the bits of all values that it matches. The filter of a new base starts empty.

use super::parts::{Bits, Part, Term};
use super::simd::Kernel;
use engines::hash::Seed;
use engines::hash::simd::WORDS_MAX;
use engines::lpm::Piece;
use engines::simd::Level;

/// Depths in bits at which prefixes are recorded, for fields of up to 32 bits. [`DEPTHS_LONG`] is for longer
/// fields. A prefix is recorded at the first depth that is at least its length, else at the last depth.
const DEPTHS: &[u32] = &[16, 24];
const DEPTHS_LONG: &[u32] = &[24, 32, 40, 48];

/// Filter bits for each addition, at full capacity. The number of bits is a power of two with an exponent
/// within [`BITS`] (512 B to 128 KiB).
const BITS_EACH: usize = 32;
const BITS: std::ops::RangeInclusive<u32> = 12..=20;

/// Maximum number of values of a part that are recorded for an addition. With more, the filter accepts all
/// keys.
const VALUES_MAX: u32 = 256;

/// Number from which the secrets are derived.
const SECRET: u64 = 0x0073_6965_7665;

/// Filter for prefixes or one mask; see the module documentation.
#[derive(Clone, Debug)]
pub(super) struct BloomFilter {
    /// Number of words in a key.
    words: usize,
    kernel: Kernel,
    /// Parts in order. Each part contains the previous one.
    parts: Vec<Part>,
    /// Bitmap of the parts with an addition.
    used: u32,
    bits: Bits,
    /// Whether the filter accepts all keys, because an addition may match any.
    all: bool,
}

impl BloomFilter {
    /// Creates a filter for `capacity` additions to a base of prefixes. `piece` has the first bits of the
    /// prefixes' field.
    pub fn of_field(seed: Seed, words: usize, capacity: usize, piece: Piece) -> Self {
        let depths = if piece.bits > 32 { DEPTHS_LONG } else { DEPTHS };
        let mask = |depth: &u32| piece.mask() & piece.mask() << (piece.bits - (*depth).min(piece.bits));
        Self::new(seed, words, capacity, depths.iter().map(|depth| vec![(piece.word, mask(depth))]))
    }

    /// Creates a filter for `capacity` additions to a base whose rules have this mask.
    pub fn of_mask(seed: Seed, words: usize, capacity: usize, mask: &[u64]) -> Self {
        let terms = mask.iter().copied().enumerate().filter(|(_, mask)| *mask != 0);
        Self::new(seed, words, capacity, [terms.collect()].into_iter())
    }

    fn new(
        seed: Seed,
        words: usize,
        capacity: usize,
        parts: impl Iterator<Item = Vec<(usize, u64)>>,
    ) -> Self {
        let seed = seed.derive(SECRET);
        let secret = |at: usize, word: usize| {
            Seed::of_number(seed).derive((at * WORDS_MAX.max(words + 1) + word) as u64)
        };
        let parts: Vec<Part> = parts
            .enumerate()
            .map(|(at, masks)| {
                let term = |(word, mask)| Term { word, mask, factor: secret(at, word) | 1 };
                Part { terms: masks.into_iter().map(term).collect(), salt: secret(at, words) }
            })
            .collect();
        let bits = (capacity * BITS_EACH).next_power_of_two().ilog2().clamp(*BITS.start(), *BITS.end());
        Self { words, kernel: Kernel::new(Level::found()), used: 0, parts, bits: Bits::new(bits), all: false }
    }

    /// Records an addition. Bits of a word below a bit that is not examined count as not examined.
    pub fn add(&mut self, value: &[u64], mask: &[u64]) {
        let Some(last) = self.parts.last() else { return };
        let suits = |part: &Part| {
            let pairs = part.terms.iter().zip(&last.terms);
            pairs.fold(0, |behind, (own, last)| behind | mask[own.word] & last.mask & !own.mask) == 0
        };
        let at = self.parts.iter().position(suits).unwrap_or(self.parts.len() - 1);
        let part = &self.parts[at];
        let open = |term: &Term| {
            let highest = u64::MAX.checked_shr((term.mask & !mask[term.word]).leading_zeros()).unwrap_or(0);
            term.mask & highest
        };
        // At most one word may be examined in part. All matching values of this word are recorded, each
        // combined with the hash of the other words.
        let mut opened = part.terms.iter().filter(|term| open(term) != 0);
        let (first, more) = (opened.next(), opened.next());
        let (left, factor) = first.map_or((0, 0), |term| (open(term), term.factor));
        self.all |= more.is_some() || left.count_ones() > VALUES_MAX.ilog2();
        if self.all {
            return;
        }
        let whole = |sum: u64, term: &Term| {
            sum.wrapping_add((value[term.word] & term.mask & !open(term)).wrapping_mul(term.factor))
        };
        let hash = part.terms.iter().fold(part.salt, whole);
        let mut bits = left;
        loop {
            self.bits.insert(hash.wrapping_add(bits.wrapping_mul(factor)));
            if bits == 0 {
                break;
            }
            bits = (bits - 1) & left;
        }
        self.used |= 1 << at;
    }

    /// Returns one bit for each of the first 32 keys, set if an addition may match the key.
    #[inline]
    pub fn marks(&self, keys: &[u64]) -> u32 {
        if self.all {
            return u32::MAX;
        }
        let used = self.parts.iter().enumerate().filter(|(at, _)| self.used >> at & 1 != 0);
        used.fold(0, |marks, (_, part)| marks | self.kernel.marks(part, &self.bits, keys, self.words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Checks at each SIMD level that all keys that match an addition are marked. Returns how many of 32
    /// random keys are marked at most.
    fn check(bloom: &BloomFilter, additions: &[(Vec<u64>, Vec<u64>)]) -> u32 {
        let mut most = 0;
        let mut rng = Rng::with_seed(9);
        for level in Level::ALL.into_iter().filter(|level| *level <= Level::found()) {
            let mut bloom = BloomFilter { kernel: Kernel::new(level), ..bloom.clone() };
            additions.iter().for_each(|(value, mask)| bloom.add(value, mask));
            for len in 1..=32 {
                let matching = |(value, mask): &(Vec<u64>, Vec<u64>), rng: &mut Rng| {
                    let pairs = value.iter().zip(mask);
                    pairs.map(|(value, mask)| value & mask | rng.u64(..) & !mask).collect::<Vec<u64>>()
                };
                let keys: Vec<u64> = (0..len)
                    .flat_map(|_| matching(&additions[rng.usize(..additions.len())], &mut rng))
                    .collect();
                assert_eq!(bloom.marks(&keys).count_ones().min(len), len, "{level:?}: {keys:x?}");
                assert_eq!(bloom.marks(&keys) >> (len - 1) & 1, 1);
            }
            let others: Vec<u64> = (0..32 * bloom.words).map(|_| rng.u64(..)).collect();
            most = most.max(bloom.marks(&others).count_ones());
        }
        most
    }

    #[test]
    fn there_are_32_bits_for_each_addition_within_limits() {
        let rooms = [(0, 12), (64, 12), (128, 12), (129, 13), (1_024, 15), (1 << 15, 20), (1 << 20, 20)];
        for (capacity, bits) in rooms {
            let bloom = BloomFilter::of_mask(Seed::of_number(1), 1, capacity, &[0xff]);
            assert_eq!(bloom.bits.words().len() * 64, 1 << bits, "a capacity of {capacity} additions");
            assert_eq!(bloom.bits.down, 64 - bits);
        }
    }

    #[test]
    fn an_addition_that_matches_more_than_256_values_passes_all_keys() {
        let piece = Piece { word: 0, shift: 0, bits: 32 };
        for (length, all) in [(8, false), (7, true), (0, true)] {
            let mask = u64::from(u32::MAX.checked_shl(32 - length).unwrap_or(0));
            let mut bloom = BloomFilter::of_field(Seed::of_number(1), 1, 1_000, piece);
            bloom.add(&[0], &[mask]);
            assert_eq!(bloom.all, all, "a prefix of {length} bits");
        }
    }

    #[test]
    fn prefixes_are_recorded_at_the_first_depth_of_at_least_their_length() {
        let depths = |bits: u32, length: u32| {
            let mut bloom =
                BloomFilter::of_field(Seed::of_number(1), 1, 1_000, Piece { word: 0, shift: 0, bits });
            let mask = u64::MAX << (bits - length) & u64::MAX >> (64 - bits);
            bloom.add(&[mask], &[mask]);
            assert_eq!(bloom.used.count_ones(), 1);
            bloom.parts[bloom.used.trailing_zeros() as usize].terms[0].mask.count_ones()
        };
        for (length, depth) in [(9, 16), (16, 16), (17, 24), (24, 24), (25, 24), (32, 24)] {
            assert_eq!(depths(32, length), depth, "{length} of 32 bits");
        }
        for (length, depth) in
            [(17, 24), (24, 24), (25, 32), (33, 40), (40, 40), (41, 48), (48, 48), (64, 48)]
        {
            assert_eq!(depths(64, length), depth, "{length} of 64 bits");
        }
    }

    #[test]
    fn prefixes_of_a_field() {
        let mut rng = Rng::with_seed(1);
        for bits in [1, 5, 16, 17, 24, 32, 33, 48, 64] {
            for shift in [0, 64 - bits, (64 - bits) / 2] {
                let piece = Piece { word: 1, shift, bits };
                let bloom = BloomFilter::of_field(Seed::of_number(1), 3, 1_000, piece);
                let (mut marked, mut tried) = (0, 0);
                for length in 0..=bits {
                    let mask = piece.mask() & (u128::from(piece.mask()) << (bits - length)) as u64;
                    let additions: Vec<_> = (0..5)
                        .map(|_| (vec![0x0800, rng.u64(..) & mask, 0], vec![0xffff, mask, 0]))
                        .collect();
                    let most = check(&bloom, &additions);
                    // Shorter prefixes match so many values that the filter marks many random keys.
                    if length >= if bits > 32 { 18 } else { 10 } {
                        (marked, tried) = (marked + most, tried + 32);
                    }
                }
                assert!(marked * 16 <= tried, "{bits} bits, shift {shift}: {marked} of {tried}");
                // The mask may have holes.
                let mask = rng.u64(..) & piece.mask();
                check(&bloom, &[(vec![0, rng.u64(..) & mask, 0], vec![0, mask, 0])]);
            }
        }
    }

    #[test]
    fn values_under_one_mask() {
        let mut rng = Rng::with_seed(2);
        let mask = [0xffff_ffff_0000_0000, 0, u64::MAX, 0xff];
        let bloom = BloomFilter::of_mask(Seed::of_number(1), 4, 1_000, &mask);
        let row = |rng: &mut Rng| mask.iter().map(|mask| rng.u64(..) & mask).collect::<Vec<u64>>();
        let mut additions: Vec<_> = (0..100).map(|_| (row(&mut rng), mask.to_vec())).collect();
        assert!(check(&bloom, &additions) < 8);
        additions.push((row(&mut rng), vec![u64::MAX; 4]));
        assert!(check(&bloom, &additions) < 8);
        additions.push((vec![0; 4], vec![0; 4]));
        assert_eq!(check(&bloom, &additions), 32, "one addition may match any key");
        check(&BloomFilter::of_mask(Seed::of_number(1), 1, 1, &[0]), &[(vec![0], vec![0])]);
        // The additions examine some bits of masks with holes.
        for _ in 0..300 {
            let mask: Vec<u64> = (0..2).map(|_| rng.u64(..) & rng.u64(..) & rng.u64(..)).collect();
            let bloom = BloomFilter::of_mask(Seed::of_number(1), 2, 1_000, &mask);
            let mut part = mask.clone();
            part[rng.usize(..2)] &= rng.u64(..) >> rng.u32(0..64) | rng.u64(..) << rng.u32(0..64);
            check(&bloom, &[(part.iter().map(|part| rng.u64(..) & part).collect(), part)]);
        }
    }
}
