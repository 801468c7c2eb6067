// SPDX-License-Identifier: Apache-2.0
//! Hash table for a dense word that every rule examines completely or not at all. Each value has its own
//! place, which is found without a data-dependent branch (perfect hashing).

use crate::hash::{Seed, fold};

/// Number of pilots (numbers that place a bucket's values) to try for each bucket.
const PILOTS: u16 = 1 << 12;

/// Maximum number of values in a bucket. A sound hash does not produce larger buckets.
const MEMBERS_MAX: usize = 24;

/// Number of pairs of secrets to try. About one pair in thirty leaves a bucket without a pilot.
const SECRETS: u64 = 8;

/// Values that rules examine, and their labels.
#[derive(Debug)]
pub(super) struct Whole {
    /// Bits that rules examine.
    mask: u64,
    secrets: [u64; 2],
    /// Pilot of each bucket, which maps the bucket's values to different places.
    pilots: Box<[u16]>,
    /// Value and label of each place. The label is 0 in a free place.
    places: Box<[(u64, u32)]>,
}

impl Whole {
    /// Creates the table for distinct values under a mask, with labels counted from 1. Returns `None` if no
    /// secrets give each value its own place.
    pub fn new(mask: u64, values: &[u64]) -> Option<Self> {
        let secret = |at: u64| Seed::of_process().derive(mask ^ at) | 1;
        (0..SECRETS).find_map(|pair| Self::with([secret(2 * pair + 1), secret(2 * pair + 2)], mask, values))
    }

    fn with(secrets: [u64; 2], mask: u64, values: &[u64]) -> Option<Self> {
        let buckets = (values.len() / 2).next_power_of_two();
        let mut made = Self {
            mask,
            secrets,
            pilots: vec![0; buckets].into(),
            places: vec![(0, 0); (2 * values.len()).next_power_of_two()].into(),
        };
        let mut members: Vec<Vec<(u64, u32)>> = vec![Vec::new(); buckets];
        for (label, value) in (1..).zip(values) {
            members[made.bucket(made.hash(*value))].push((*value, label));
        }
        let mut order: Vec<usize> = (0..buckets).collect();
        order.sort_by_key(|bucket| std::cmp::Reverse(members[*bucket].len()));
        for bucket in order {
            let of = &members[bucket];
            if of.len() > MEMBERS_MAX {
                return None;
            }
            made.pilots[bucket] = (0..PILOTS).find(|pilot| {
                let mut at: Vec<usize> =
                    of.iter().map(|(value, _)| made.place(made.hash(*value), *pilot)).collect();
                at.sort_unstable();
                at.is_sorted_by(|a, b| a < b) && at.iter().all(|at| made.places[*at].1 == 0)
            })?;
            for (value, label) in of {
                let at = made.place(made.hash(*value), made.pilots[bucket]);
                made.places[at] = (*value, *label);
            }
        }
        Some(made)
    }

    fn hash(&self, value: u64) -> u64 {
        fold(value ^ self.secrets[1], self.secrets[0])
    }

    fn bucket(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.pilots.len() - 1)
    }

    fn place(&self, hash: u64, pilot: u16) -> usize {
        let mixed = (hash ^ hash >> 29 ^ u64::from(pilot)).wrapping_mul(self.secrets[1]);
        (mixed >> 32) as usize & (self.places.len() - 1)
    }

    /// Returns the label of a value, or 0 without a label.
    #[inline(always)]
    pub fn label(&self, value: u64) -> u32 {
        let value = value & self.mask;
        let hash = self.hash(value);
        let (known, label) = self.places[self.place(hash, self.pilots[self.bucket(hash)])];
        if known == value { label } else { 0 }
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        self.pilots.len() * 2 + self.places.len() * 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_labels_and_others_none() {
        for count in [1usize, 2, 3, 100, 4_096] {
            let values: Vec<u64> = (0..count as u64).map(|value| value * 0x100 + 7).collect();
            let whole = Whole::new(u64::MAX >> 1, &values).unwrap();
            for (label, value) in (1..).zip(&values) {
                assert_eq!(whole.label(*value | 1 << 63), label);
                assert_eq!(whole.label(value + 1), 0);
            }
            assert_eq!(whole.label(0), 0);
            // The values differ only in their first bits.
            let values: Vec<u64> = (0..count as u64).map(|value| value << 52).collect();
            let whole = Whole::new(u64::MAX, &values).unwrap();
            assert!((1..).zip(&values).all(|(label, value)| whole.label(*value) == label));
        }
    }

    #[test]
    fn there_is_a_bucket_per_two_values_and_at_least_a_place_per_value() {
        for (count, buckets, places) in
            [(1, 1, 2), (4, 2, 8), (100, 64, 256), (128, 64, 256), (130, 128, 512)]
        {
            let whole = Whole::new(u64::MAX, &(0..count).collect::<Vec<u64>>()).unwrap();
            assert_eq!((whole.pilots.len(), whole.places.len()), (buckets, places), "{count} values");
            assert_eq!(whole.bytes(), buckets * 2 + places * 16);
        }
    }
}
