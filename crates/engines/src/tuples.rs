// SPDX-License-Identifier: Apache-2.0
//! Control side: assignment of rules to hash tables (tuples). The mask of a tuple is a subset of the mask of
//! each of its rules. Rules that are equal under the tuple's mask share a bucket.
//!
//! One tuple for each mask that occurs (tuple space search, Srinivasan et al., SIGCOMM 1999) means hundreds
//! of probes per packet for real access lists. As in TupleMerge (Daly et al., ToN 2019), a tuple therefore
//! leaves bits out, and serves rules of similar masks. A rule whose bucket is full goes to a tuple with more
//! bits.

use crate::KeyPlan;
use crate::hash::{Hashed, Seed};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Maximum number of rules in a bucket. Rules with exactly the tuple's mask do not count, because they are
/// equal.
pub const BUCKET_MAX: u32 = 32;

/// Maximum number of tuples that a lookup probes, including the tuple without bits.
pub const TUPLES_MAX: usize = 128;

/// Tuple without bits, whose rules share one bucket. It takes rules that no other tuple takes.
pub const WALKED: u32 = 0;

/// Minimum length in bits of a long piece of a field. Long pieces are addresses, which distinguish rules
/// best.
const LONG_BITS: u8 = 32;

/// Coarse masks of a rule, in the order in which they are tried before the rule's own mask. A coarse mask
/// keeps only pieces of at least the first number of bits, and rounds prefix lengths down to a multiple of
/// the second number.
const STEPS: [(u8, u32); 4] = [(LONG_BITS, 16), (1, 16), (LONG_BITS, 8), (1, 4)];

/// A set of rules that are hashed under one mask.
#[derive(Debug)]
struct Tuple {
    mask: Box<[u64]>,
    ones: u32,
}

/// A bucket: the rules of a tuple that are equal under its mask.
#[derive(Debug)]
struct Bucket {
    tuple: u32,
    hash: u64,
    len: u32,
}

/// Position of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Number of the rule's tuple.
    pub tuple: u32,
    /// Hash under which a lookup finds the bucket.
    pub hash: u64,
    /// Number of the rule's bucket, counted from 0 in order of creation.
    pub bucket: u32,
}

/// Rules spread over tuples.
#[derive(Debug)]
pub struct Tuples {
    seed: Seed,
    /// Word, shift and number of bits of each piece of a field.
    pieces: Vec<(usize, u8, u8)>,
    tuples: Vec<Tuple>,
    /// Tuples in descending order of their number of bits, without the walked tuple.
    finest_first: Vec<u32>,
    buckets: Vec<Bucket>,
    by_hash: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    walked: u32,
    walked_max: u32,
}

impl Tuples {
    /// Creates tuples of the given masks, without rules. `walked_max` limits the number of rules that no
    /// tuple takes and that lookups compare one by one (the walked tuple).
    #[must_use]
    pub fn new<'m>(plan: &KeyPlan, masks: impl IntoIterator<Item = &'m [u64]>, walked_max: u32) -> Self {
        let pieces =
            plan.parts().iter().map(|part| (usize::from(part.word), part.shift, part.bits)).collect();
        let walked = Tuple { mask: vec![0; plan.words()].into(), ones: 0 };
        let mut made = Self {
            seed: Seed::of_process(),
            pieces,
            tuples: vec![walked],
            finest_first: Vec::new(),
            buckets: Vec::new(),
            by_hash: HashMap::default(),
            walked: 0,
            walked_max,
        };
        for mask in masks {
            made.add_tuple(mask.into());
        }
        made
    }

    /// Returns the mask of a tuple.
    #[must_use]
    pub fn mask(&self, tuple: u32) -> &[u64] {
        &self.tuples[tuple as usize].mask
    }

    /// Returns the number of tuples, including [`WALKED`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.tuples.len()
    }

    /// Returns whether there is no tuple except [`WALKED`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.finest_first.is_empty()
    }

    /// Finds a position for a rule. Returns `None` if only [`WALKED`] could take the rule, and it is full.
    pub fn place(&mut self, value: &[u64], mask: &[u64]) -> Option<Spot> {
        for at in 0..self.finest_first.len() {
            let number = self.finest_first[at];
            let tuple = &self.tuples[number as usize];
            if !is_part(&tuple.mask, mask) {
                continue;
            }
            let hash = bucket_hash(self.seed, number, value, &tuple.mask);
            let own = *tuple.mask == *mask;
            match self.by_hash.get(&hash) {
                None => return Some(self.open(number, hash)),
                Some(&bucket) if own || self.buckets[bucket as usize].len < BUCKET_MAX => {
                    self.buckets[bucket as usize].len += 1;
                    return Some(Spot { tuple: number, hash, bucket });
                }
                Some(_) => {}
            }
        }
        if let Some(fresh) = self.fresh_mask(mask) {
            let number = self.add_tuple(fresh);
            return Some(self.open(number, bucket_hash(self.seed, number, value, self.mask(number))));
        }
        if self.walked == self.walked_max {
            return None;
        }
        self.walked += 1;
        let hash = bucket_hash(self.seed, WALKED, value, self.mask(WALKED));
        match self.by_hash.get(&hash) {
            Some(&bucket) => Some(Spot { tuple: WALKED, hash, bucket }),
            None => Some(self.open(WALKED, hash)),
        }
    }

    /// Removes a rule from its bucket.
    pub fn leave(&mut self, bucket: u32) {
        let bucket = &mut self.buckets[bucket as usize];
        bucket.len = bucket.len.saturating_sub(1);
        if bucket.tuple == WALKED {
            self.walked -= 1;
        }
    }

    fn open(&mut self, tuple: u32, hash: u64) -> Spot {
        let bucket = self.buckets.len() as u32;
        self.buckets.push(Bucket { tuple, hash, len: 1 });
        self.by_hash.insert(hash, bucket);
        Spot { tuple, hash, bucket }
    }

    /// Returns tuple and hash of each bucket.
    pub fn buckets(&self) -> impl Iterator<Item = (u32, u64)> {
        self.buckets.iter().map(|bucket| (bucket.tuple, bucket.hash))
    }

    /// Returns the coarsest mask of a rule that no tuple has yet. Returns `None` if there is no such mask, or
    /// if there are too many tuples.
    fn fresh_mask(&self, mask: &[u64]) -> Option<Box<[u64]>> {
        if self.tuples.len() == TUPLES_MAX {
            return None;
        }
        let coarse = STEPS.iter().map(|&(long, step)| self.rounded(mask, long, step));
        let mut candidates = coarse.chain([mask.into()]);
        candidates.find(|fresh| self.tuples.iter().all(|tuple| tuple.mask != *fresh))
    }

    /// Returns the leading bits of each piece of at least `long` bits, rounded down to a multiple of `step`.
    fn rounded(&self, mask: &[u64], long: u8, step: u32) -> Box<[u64]> {
        let mut coarse = vec![0; mask.len()];
        for &(word, shift, bits) in self.pieces.iter().filter(|(_, _, bits)| *bits >= long) {
            let left = mask[word] >> shift << (64 - bits);
            let ones = left.leading_ones().min(bits.into());
            let kept = if ones == u32::from(bits) { ones } else { ones / step * step };
            if kept > 0 {
                coarse[word] |= u64::MAX << (64 - kept) >> (64 - bits) << shift;
            }
        }
        coarse.into()
    }

    fn add_tuple(&mut self, mask: Box<[u64]>) -> u32 {
        let number = self.tuples.len() as u32;
        let ones = mask.iter().map(|word| word.count_ones()).sum();
        let at = self.finest_first.partition_point(|&other| self.tuples[other as usize].ones >= ones);
        self.finest_first.insert(at, number);
        self.tuples.push(Tuple { mask, ones });
        number
    }
}

/// Returns the hash of a value's bucket in a tuple. Values with equal hashes share a bucket.
#[must_use]
#[inline]
pub fn bucket_hash(seed: Seed, tuple: u32, value: &[u64], mask: &[u64]) -> u64 {
    seed.hash(value, mask) ^ u64::from(tuple).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn is_part(part: &[u64], whole: &[u64]) -> bool {
    part.iter().zip(whole).all(|(part, whole)| part & !whole == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Field;

    /// Returns a row in which each field of a plan has a mask of the given number of leading bits.
    fn leading(plan: &KeyPlan, bits: [u32; 2]) -> Vec<u64> {
        let mut row = vec![0; plan.words()];
        for (field, bits) in plan.fields().iter().zip(bits) {
            let part = plan.parts().iter().find(|part| part.field == *field).unwrap();
            let mask = u64::MAX.checked_shl(u32::from(part.bits) - bits).unwrap_or(0);
            let mask = mask & u64::MAX >> (64 - part.bits);
            row[usize::from(part.word)] |= mask << part.shift;
        }
        row
    }

    /// Tuples with fewer bits come first. A rule whose bucket is full goes to a tuple with more bits.
    #[test]
    fn equal_rules_fill_buckets_of_finer_and_finer_masks() {
        let plan = KeyPlan::new(&[Field::Ipv4Src, Field::TcpDst]).unwrap();
        assert_eq!(plan.fields(), [Field::Ipv4Src, Field::TcpDst]);
        let cases: [([u32; 2], &[[u32; 2]]); 5] = [
            ([24, 16], &[[16, 0], [16, 16], [24, 0], [24, 16]]),
            ([32, 13], &[[32, 0], [32, 12], [32, 13]]),
            ([21, 13], &[[16, 0], [20, 12], [21, 13]]),
            ([9, 3], &[[0, 0], [8, 0], [9, 3]]),
            ([0, 16], &[[0, 0], [0, 16]]),
        ];
        for (own, masks) in cases {
            let (mut tuples, rule) = (Tuples::new(&plan, [], u32::MAX), leading(&plan, own));
            // The tuple without bits exists from the start.
            let masks: Vec<[u32; 2]> = masks.iter().copied().filter(|mask| *mask != [0, 0]).collect();
            for (at, mask) in masks.iter().enumerate() {
                let is_own = at + 1 == masks.len();
                // A bucket takes any number of rules with exactly the tuple's mask.
                for taken in 0..if is_own { 100 } else { 32 } {
                    let spot = tuples.place(&rule, &rule).unwrap();
                    assert_eq!(tuples.mask(spot.tuple), leading(&plan, *mask), "{own:?}: {taken} taken");
                    assert_eq!(tuples.len(), 2 + at);
                }
            }
        }
    }

    #[test]
    fn rules_that_128_tuples_do_not_take_are_walked_up_to_the_limit() {
        let plan = KeyPlan::new(&[Field::Metadata]).unwrap();
        // Masks with holes, none of which is a subset of another. Their only common coarse mask has no bits.
        let masks: Vec<Vec<u64>> =
            (0u64..1 << 12).filter(|mask| mask.count_ones() == 4).map(|mask| vec![mask]).collect();
        assert!(masks.len() > 200);
        let mut tuples = Tuples::new(&plan, [], 3);
        for (at, mask) in masks.iter().enumerate() {
            let spot = tuples.place(mask, mask);
            match at {
                ..127 => assert!(spot.is_some_and(|spot| spot.tuple != WALKED), "{at}"),
                127..130 => assert!(spot.is_some_and(|spot| spot.tuple == WALKED), "{at}"),
                _ => assert_eq!(spot, None, "{at}"),
            }
        }
        assert_eq!(tuples.len(), 128);
        // All walked rules share a bucket. Another rule fits if one leaves.
        let walked = tuples.buckets().position(|(tuple, _)| tuple == WALKED).unwrap();
        tuples.leave(walked as u32);
        assert!(tuples.place(&masks[140], &masks[140]).is_some());
        assert_eq!(tuples.place(&masks[141], &masks[141]), None);
        // Removing a rule from another bucket makes no space.
        tuples.leave(0);
        assert_eq!(tuples.place(&masks[141], &masks[141]), None);
    }

    #[test]
    fn buckets_of_different_masks_stay_small() {
        let plan = KeyPlan::new(&[Field::Metadata]).unwrap();
        let mut tuples = Tuples::new(&plan, [], u32::MAX);
        // The first 16 bits are equal in all rules, and each rule has its own mask.
        let mut sizes: HashMap<u32, u32> = HashMap::new();
        let mut probed = 0;
        for rule in 0..4_000u64 {
            let mask = 0xffff << 48 | rule.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 17;
            let value = mask & (7 << 48 | rule.wrapping_mul(0xc2b2_ae3d_27d4_eb4f) >> 17);
            let spot = tuples.place(&[value], &[mask]).unwrap();
            if spot.tuple != WALKED && *tuples.mask(spot.tuple) != [mask] {
                *sizes.entry(spot.bucket).or_default() += 1;
                probed += 1;
            }
        }
        assert!(probed > 20 && sizes.values().all(|size| *size <= 32), "{probed}: {sizes:?}");
        assert!(tuples.len() <= TUPLES_MAX);
    }
}
