// SPDX-License-Identifier: Apache-2.0
//! Maps by entry ID.
//!
//! Control side: rule tables find the rule of an entry in these maps.

use flow::EntryId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by entry ID.
pub(crate) type IdMap<V> = HashMap<EntryId, V, BuildHasherDefault<IdHasher>>;

/// Hasher of entry IDs. The switch chooses the IDs, and they are consecutive apart from gaps, so that one
/// multiplication spreads them.
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
        self.0 = (self.0.rotate_left(32) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // A hash table takes a place from the low bits.
        self.0 ^= self.0 >> 32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::hash::BuildHasher;

    #[test]
    fn ids_at_equal_distances_get_different_places_and_tags() {
        let hash = |id: u32| BuildHasherDefault::<IdHasher>::default().hash_one(EntryId(id));
        for distance in [1, 2, 3, 64, 4_096, 65_536, 1 << 20] {
            let hashes: Vec<u64> = (0..4_096).map(|n: u32| hash(n.wrapping_mul(distance))).collect();
            let places: BTreeSet<u64> = hashes.iter().map(|hash| hash % 8_192).collect();
            let tags: BTreeSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            // Random places are expected to take 3,224 of them.
            assert!(places.len() > 2_500, "distance {distance}: {} places", places.len());
            assert!(tags.len() > 100, "distance {distance}: {} tags", tags.len());
        }
    }
}
