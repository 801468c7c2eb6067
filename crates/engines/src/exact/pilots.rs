// SPDX-License-Identifier: Apache-2.0
//! Assignment of values to buckets by perfect hashing with pilots.
//!
//! A hash maps a value to a group of a few values. The group's pilot, one byte, maps all of them to buckets
//! with free places, so that a lookup reads exactly one bucket. A bucket may hold several values.
//!
//! Source: pilots: Pibiri and Trani, PTHash, SIGIR 2021; pilots of one byte: Groot Koerkamp, PtrHash,
//! SEA 2025.

use crate::NONE;

/// Number of pilots (bytes that place a group of values) to try for each group.
pub const PILOTS: u8 = u8::MAX;

/// Marks a group for which no pilot was found. Its values are spilled.
const SPILLED: u8 = PILOTS;

/// Bytes after the last pilot, so that an 8-byte load can read any pilot.
pub const PADDING: usize = 8;

/// Odd multiplier that spreads pilots over the buckets.
pub const SPREAD: u32 = 0x9e37_79b1;
/// Odd multiplier that mixes spread pilots with hashes.
pub const MIX: u32 = 0x85eb_ca6b;

/// Right shift that keeps the 32 best-mixed bits of the product.
pub const MIX_SHIFT: u32 = 16;

/// Maximum number of values in a group. Larger groups, which a sound hash does not produce, are spilled.
const GROUP_MAX: usize = 64;

/// Number of buckets, and the pilot of each group.
#[derive(Debug)]
pub struct Pilots {
    pilots: Box<[u8]>,
    groups: u32,
    buckets: u32,
}

impl Pilots {
    /// Finds pilots for values with these hashes, in buckets of `ways` places, with at most `tries` pilots
    /// per group.
    ///
    /// Also returns the place of each value: its bucket times `ways` plus its index in the bucket, or
    /// [`NONE`] if the value is spilled.
    #[must_use]
    pub fn new(hashes: &[u64], ways: usize, tries: u8) -> (Self, Vec<u32>) {
        // `load` is the percentage of occupied places, and `in_group` the average number of values per group,
        // in tenths. Smaller buckets need more free places.
        let (load, in_group) = match ways {
            1 => (80, 25),
            2 => (84, 30),
            _ => (88, 35),
        };
        let buckets = (hashes.len() * 100).div_ceil(ways * load).max(1) as u32;
        let groups = (hashes.len() * 10).div_ceil(in_group).max(1);
        let pilots = vec![0; groups + PADDING].into();
        let mut made = Self { pilots, groups: groups as u32, buckets };
        let (order, ends) = made.sorted(hashes);
        let mut lens = vec![0u8; buckets as usize];
        let mut places = vec![NONE; hashes.len()];
        for group in by_size(&ends) {
            let values = &order[ends[group] as usize..ends[group + 1] as usize];
            made.pilots[group] = if values.len() > GROUP_MAX {
                SPILLED
            } else {
                let room = Room { ways, tries, lens: &mut lens };
                made.pilot(hashes, values, room).unwrap_or(SPILLED)
            };
            if made.pilots[group] == SPILLED {
                continue;
            }
            for &value in values {
                let bucket = made.bucket(hashes[value as usize]);
                // First place of the bucket, to which `number_ways` adds the index within the bucket.
                places[value as usize] = (bucket * ways) as u32;
            }
        }
        number_ways(&mut places, ways, &mut lens);
        (made, places)
    }

    /// Returns values sorted by group, and the index at which each group begins.
    fn sorted(&self, hashes: &[u64]) -> (Vec<u32>, Vec<u32>) {
        let mut ends = vec![0u32; self.groups as usize + 2];
        for &hash in hashes {
            ends[self.group(hash) + 2] += 1;
        }
        for at in 2..ends.len() {
            ends[at] += ends[at - 1];
        }
        let mut order = vec![0; hashes.len()];
        // `ends` has the start of each group, which the loop advances to the group's end.
        for (value, &hash) in (0..).zip(hashes) {
            let next = &mut ends[self.group(hash) + 1];
            order[*next as usize] = value;
            *next += 1;
        }
        ends.pop();
        (order, ends)
    }

    /// Returns the first pilot that maps all values of a group to free places, and occupies these places.
    fn pilot(&self, hashes: &[u64], values: &[u32], room: Room<'_>) -> Option<u8> {
        let Room { ways, tries, lens } = room;
        (0..tries).find(|&pilot| {
            for (at, &value) in values.iter().enumerate() {
                let len = &mut lens[self.bucket_by(hashes[value as usize], pilot)];
                if usize::from(*len) < ways {
                    *len += 1;
                    continue;
                }
                for &value in &values[..at] {
                    lens[self.bucket_by(hashes[value as usize], pilot)] -= 1;
                }
                return false;
            }
            true
        })
    }

    /// Returns the number of buckets.
    #[must_use]
    #[inline(always)]
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    /// Returns the number of groups.
    #[must_use]
    #[inline(always)]
    pub fn groups(&self) -> u32 {
        self.groups
    }

    /// Returns the pilots, followed by [`PADDING`] bytes.
    #[must_use]
    #[inline(always)]
    pub fn pilots(&self) -> &[u8] {
        &self.pilots
    }

    /// Returns the group of a hash, from its lower half.
    #[must_use]
    #[inline(always)]
    pub fn group(&self, hash: u64) -> usize {
        (((hash & 0xffff_ffff) * u64::from(self.groups)) >> 32) as usize
    }

    /// Returns the bucket of a hash, from its upper half and its group's pilot.
    #[must_use]
    #[inline(always)]
    pub fn bucket(&self, hash: u64) -> usize {
        self.bucket_by(hash, self.pilots[self.group(hash)])
    }

    /// Returns the bucket of a hash, from its upper half and a given pilot.
    #[must_use]
    #[inline(always)]
    pub fn bucket_by(&self, hash: u64, pilot: u8) -> usize {
        let spread = (hash >> 32) as u32 ^ u32::from(pilot).wrapping_mul(SPREAD);
        let mixed = (u64::from(spread) * u64::from(MIX)) >> MIX_SHIFT & 0xffff_ffff;
        ((mixed * u64::from(self.buckets)) >> 32) as usize
    }

    /// Returns whether a value with this hash would be spilled.
    #[must_use]
    #[inline]
    pub fn is_spilled(&self, hash: u64) -> bool {
        self.pilots[self.group(hash)] == SPILLED
    }

    /// Returns the memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pilots.len()
    }
}

/// Occupancy of the buckets during construction.
struct Room<'l> {
    ways: usize,
    tries: u8,
    lens: &'l mut [u8],
}

/// Adds a different index within the bucket to the place of each value. `lens` has the number of values in
/// each bucket.
fn number_ways(places: &mut [u32], ways: usize, lens: &mut [u8]) {
    for place in places.iter_mut().filter(|place| **place != NONE) {
        let len = &mut lens[*place as usize / ways];
        *len -= 1;
        *place += u32::from(*len);
    }
}

/// Returns the groups, largest first, because large groups need many free places.
fn by_size(ends: &[u32]) -> Vec<usize> {
    let size = |group: usize| ((ends[group + 1] - ends[group]) as usize).min(GROUP_MAX + 1);
    let groups = ends.len() - 1;
    let mut starts = [0; GROUP_MAX + 3];
    (0..groups).for_each(|group| starts[GROUP_MAX + 2 - size(group)] += 1);
    for at in 1..starts.len() {
        starts[at] += starts[at - 1];
    }
    let mut order = vec![0; groups];
    for group in 0..groups {
        let start = &mut starts[GROUP_MAX + 1 - size(group)];
        order[*start] = group;
        *start += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn spilled(places: &[u32]) -> usize {
        places.iter().filter(|place| **place == NONE).count()
    }

    #[test]
    fn every_value_has_a_separate_place_in_its_bucket() {
        let mut rng = Rng::with_seed(1);
        for len in [0, 1, 2, 3, 7, 30, 1_000, 100_000] {
            for ways in [1, 2, 3, 5] {
                let hashes: Vec<u64> = (0..len).map(|_| rng.u64(..)).collect();
                let (pilots, places) = Pilots::new(&hashes, ways, PILOTS);
                assert!(
                    spilled(&places) * 10_000 <= len,
                    "{} of {len} values spilled, {ways} ways",
                    spilled(&places)
                );
                let mut taken: Vec<u32> = Vec::new();
                for (&place, &hash) in places.iter().zip(&hashes) {
                    assert_eq!(place == NONE, pilots.is_spilled(hash));
                    if place != NONE {
                        assert_eq!(place as usize / ways, pilots.bucket(hash));
                        taken.push(place);
                    }
                }
                taken.sort_unstable();
                assert!(taken.windows(2).all(|pair| pair[0] != pair[1]));
                assert!(taken.last().is_none_or(|last| *last < pilots.buckets() * ways as u32));
            }
        }
    }

    /// The memory figures in docs/engines.md depend on these fractions.
    #[test]
    fn the_number_of_ways_determines_how_many_buckets_and_groups_there_are() {
        for (ways, percent, tenths) in [(1, 80, 25), (2, 84, 30), (3, 88, 35), (5, 88, 35)] {
            for len in [1_000, 20_000, 20_001] {
                let hashes: Vec<u64> =
                    (0..len as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
                let (pilots, _) = Pilots::new(&hashes, ways, 1);
                let (buckets, groups) = (pilots.buckets() as usize, pilots.groups() as usize);
                // The number of buckets is the smallest that keeps occupation at or below `percent`.
                let enough = |buckets: usize| len * 100 <= buckets * ways * percent;
                assert!(enough(buckets) && !enough(buckets - 1), "{buckets} buckets for {len}, {ways} ways");
                // On average, a group has at most `tenths` / 10 values.
                let enough = |groups: usize| len * 10 <= groups * tenths;
                assert!(enough(groups) && !enough(groups - 1), "{groups} groups for {len}, {ways} ways");
                // Eight bytes follow the last pilot for 8-byte loads.
                assert_eq!((pilots.pilots().len(), pilots.bytes()), (groups + 8, groups + 8));
            }
        }
        let (empty, _) = Pilots::new(&[], 3, PILOTS);
        assert_eq!((empty.buckets(), empty.groups()), (1, 1), "a lookup always has a bucket to read");
    }

    #[test]
    fn large_groups_come_first_and_equal_ones_in_their_order() {
        let mut rng = Rng::with_seed(2);
        for most in [3, 64, 66, 200] {
            let sizes: Vec<u32> = (0..500).map(|_| rng.u32(0..=most)).collect();
            let sums = sizes.iter().scan(0, |sum, size| Some(std::mem::replace(sum, *sum + size)));
            let ends: Vec<u32> = sums.chain([sizes.iter().sum()]).collect();
            let mut right: Vec<usize> = (0..sizes.len()).collect();
            // All spilled groups count as the same size.
            right.sort_by_key(|group| std::cmp::Reverse(sizes[*group].min(65)));
            assert_eq!(by_size(&ends), right, "sizes up to {most}");
        }
    }

    #[test]
    fn a_group_of_up_to_64_values_finds_a_pilot_among_many_buckets() {
        let mut rng = Rng::with_seed(3);
        for (len, is_spilled) in [(64, false), (65, true)] {
            // One group has `len` values, whose hashes have equal lower halves.
            let hashes: Vec<u64> = (0..len).map(|_| rng.u64(..) << 32).collect();
            let others: Vec<u64> = (0..20_000).map(|_| rng.u64(..) | 1 << 31).collect();
            let (pilots, places) = Pilots::new(&[&hashes[..], &others[..]].concat(), 5, PILOTS);
            assert!(hashes.iter().all(|hash| pilots.is_spilled(*hash) == is_spilled), "{len} values");
            let expected = if is_spilled { hashes.len() } else { 0 };
            assert_eq!(spilled(&places[..hashes.len()]), expected, "{len} values");
        }
    }

    #[test]
    fn equal_hashes_spill_in_bounded_time() {
        for hashes in [vec![7; 300_000], (0..300_000).collect(), (0..300_000).map(|at| at % 5).collect()] {
            let (pilots, places) = Pilots::new(&hashes, 3, PILOTS);
            assert!(
                hashes.iter().zip(places).all(|(&hash, place)| pilots.is_spilled(hash) == (place == NONE))
            );
        }
    }
}
