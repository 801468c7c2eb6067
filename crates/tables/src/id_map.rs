// SPDX-License-Identifier: Apache-2.0
//! Maps by entry ID.
//!
//! Control side: rule tables find the rule of an entry in these maps.

use flow::EntryId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by entry ID.
pub(crate) type IdMap<V> = HashMap<EntryId, V, BuildHasherDefault<IdHasher>>;

/// Number of consecutive IDs that have neighbouring places, so that they are in the same cache lines.
const NEIGHBOURS: u32 = 8;

/// Hasher of entry IDs. The switch chooses the IDs, and they are consecutive apart from gaps. Blocks of
/// [`NEIGHBOURS`] IDs are spread by one multiplication.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        let nth = u64::from(number % NEIGHBOURS);
        let block = self.0 ^ u64::from(number / NEIGHBOURS);
        // A hash table takes a place from the low bits, which get the high half of the product, and a tag
        // from the seven highest bits.
        let spread = block.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(35);
        self.0 = (spread & !u64::from(NEIGHBOURS - 1) | nth) ^ nth << 57;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::hash::BuildHasher;

    /// Number of places that a hash table examines at once.
    const GROUP: u64 = 16;

    fn hash(id: u32) -> u64 {
        BuildHasherDefault::<IdHasher>::default().hash_one(EntryId(id))
    }

    #[test]
    fn ids_at_equal_distances_are_spread_over_places_and_tags() {
        for distance in [1, 2, 3, 8, 64, 4_096, 65_536, 1 << 20] {
            let hashes: Vec<u64> = (0..4_096).map(|n: u32| hash(n.wrapping_mul(distance))).collect();
            let mut groups = [0usize; 8_192 / GROUP as usize];
            hashes.iter().for_each(|hash| groups[(hash % 8_192 / GROUP) as usize] += 1);
            let over: usize = groups.iter().map(|ids| ids.saturating_sub(GROUP as usize)).sum();
            let tags: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            // Half of the places are used. If blocks of eight IDs are in random places, about 10 % of the IDs
            // do not fit into their group.
            assert!(over < 4_096 / 6, "distance {distance}: {over} IDs do not fit into their group");
            assert!(tags.len() > 100, "distance {distance}: {} tags", tags.len());
        }
    }

    #[test]
    fn eight_consecutive_ids_have_neighbouring_places_and_different_tags() {
        for first in [0, 8, 80_000, 0x1234_5678] {
            let hashes: Vec<u64> = (first..first + 8).map(hash).collect();
            let places: Vec<u64> = hashes.iter().map(|hash| hash % (1 << 20)).collect();
            assert!(places.is_sorted_by(|a, b| a + 1 == *b), "{places:?}");
            assert_eq!(places[0] % 8, 0);
            assert_eq!(hashes.iter().map(|hash| hash >> 57).collect::<BTreeSet<_>>().len(), 8);
        }
    }
}
