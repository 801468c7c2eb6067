// SPDX-License-Identifier: Apache-2.0
//! Hash index from keys to slot numbers, with open addressing and linear probing. A removal moves later
//! elements back, so no tombstones remain.

/// Content of a free place.
const FREE: u32 = u32::MAX;

/// Hash index with a fixed number of places, of which at most half are used.
#[derive(Debug)]
pub(crate) struct Index {
    /// Slot number in each place, or [`FREE`].
    places: Box<[u32]>,
    used: usize,
}

impl Index {
    /// Creates an empty index for at most `slots` slots.
    pub fn new(slots: usize) -> Self {
        let places = (2 * slots.max(1)).next_power_of_two();
        Self { places: vec![FREE; places].into_boxed_slice(), used: 0 }
    }

    fn mask(&self) -> usize {
        self.places.len() - 1
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.places.fill(FREE);
        self.used = 0;
    }

    /// Returns the slot with this hash for which `is_right` returns true.
    pub fn find(&self, hash: u64, is_right: impl Fn(u32) -> bool) -> Option<u32> {
        let mut at = hash as usize & self.mask();
        loop {
            match self.places[at] {
                FREE => return None,
                slot if is_right(slot) => return Some(slot),
                _ => at = (at + 1) & self.mask(),
            }
        }
    }

    /// Adds a slot, which must not be in the index.
    pub fn insert(&mut self, hash: u64, slot: u32) {
        debug_assert!(2 * self.used < self.places.len(), "the index has two places for each slot");
        let mut at = hash as usize & self.mask();
        while self.places[at] != FREE {
            at = (at + 1) & self.mask();
        }
        self.places[at] = slot;
        self.used += 1;
    }

    /// Removes a slot, if it is in the index. `hash_of` returns the hash of any slot in the index.
    pub fn remove(&mut self, hash: u64, slot: u32, hash_of: impl Fn(u32) -> u64) {
        let mask = self.mask();
        let mut at = hash as usize & mask;
        while self.places[at] != slot {
            if self.places[at] == FREE {
                return;
            }
            at = (at + 1) & mask;
        }
        self.used -= 1;
        let mut next = (at + 1) & mask;
        while self.places[next] != FREE {
            // An element may move back to the free place unless its search begins after this place.
            let home = hash_of(self.places[next]) as usize & mask;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(at) & mask {
                self.places[at] = self.places[next];
                at = next;
            }
            next = (next + 1) & mask;
        }
        self.places[at] = FREE;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn elements_are_found_whatever_was_removed_before() {
        let mut rng = fastrand::Rng::with_seed(7);
        for round in 0..200 {
            let mut index = Index::new(16);
            let mut model: BTreeMap<u32, u64> = BTreeMap::new();
            // Few distinct hashes, the highest of which make probing wrap around.
            let hashes: Vec<u64> =
                (0..32).map(|_| rng.u64(0..8) * if round % 2 == 0 { 1 } else { 31 }).collect();
            for _ in 0..300 {
                let slot = rng.u32(0..32);
                let hash = hashes[slot as usize];
                if model.remove(&slot).is_some() {
                    index.remove(hash, slot, |slot| hashes[slot as usize]);
                } else if model.len() < 16 {
                    model.insert(slot, hash);
                    index.insert(hash, slot);
                }
                for slot in 0..32 {
                    let found = index.find(hashes[slot as usize], |other| other == slot);
                    assert_eq!(found, model.contains_key(&slot).then_some(slot));
                }
            }
            index.clear();
            assert!((0..32).all(|slot| index.find(hashes[slot as usize], |other| other == slot).is_none()));
        }
    }
}
