// SPDX-License-Identifier: Apache-2.0
//! Control side of the workers' deltas: their content, and the position of each new addition.

use engines::tuples::Tuples;
use engines::{KeyPlan, NONE};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A lookup in a delta may always compare this many rules one by one. The limit grows with the number of
/// rules that the base compares one by one.
const WALKED_MIN: usize = 64;

/// Position of an addition in a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeltaLink {
    /// Number of the addition's tuple.
    pub tuple: u32,
    /// Number of the addition's bucket, in order of creation.
    pub bucket: u32,
    /// Hash under which the bucket is found.
    pub hash: u64,
    /// Slot of the preceding addition in the bucket, or [`NONE`].
    pub before: u32,
}

/// Additions in the deltas. All workers' deltas have the same content.
#[derive(Debug)]
pub struct Additions {
    capacity: usize,
    tuples: Tuples,
    /// Active additions of each bucket, best first.
    buckets: Vec<BTreeSet<(Reverse<u16>, u32)>>,
    /// Bucket and priority of each addition.
    places: Vec<(u32, u16)>,
}

impl Additions {
    /// Creates bookkeeping for at most `capacity` additions, with the masks of the first tuples. Each lookup
    /// in the base compares `base_walked` rules one by one.
    #[must_use]
    pub fn new<'m>(
        plan: &KeyPlan,
        capacity: usize,
        masks: impl IntoIterator<Item = &'m [u64]>,
        base_walked: usize,
    ) -> Self {
        let walked_max = (base_walked / 4).max(WALKED_MIN) as u32;
        Self {
            capacity,
            tuples: Tuples::new(plan, masks, walked_max),
            buckets: Vec::new(),
            places: Vec::with_capacity(capacity),
        }
    }

    /// Adds a rule after all others of its priority. Returns the row for the deltas, its position and its
    /// slot, or `None` if the deltas have no space.
    pub fn add(
        &mut self,
        priority: u16,
        value: &[u64],
        mask: &[u64],
    ) -> Option<(Box<[u64]>, DeltaLink, u32)> {
        if self.places.len() == self.capacity {
            return None;
        }
        let known = self.tuples.len();
        let spot = self.tuples.place(value, mask)?;
        let slot = self.places.len() as u32;
        self.places.push((spot.bucket, priority));
        if spot.bucket as usize == self.buckets.len() {
            self.buckets.push(BTreeSet::new());
        }
        let bucket = &mut self.buckets[spot.bucket as usize];
        let place = (Reverse(priority), slot);
        let before = bucket.range(..place).next_back().map_or(NONE, |(_, slot)| *slot);
        bucket.insert(place);
        let fresh_mask = if self.tuples.len() > known { self.tuples.mask(spot.tuple) } else { &[] };
        let row = [value, mask, fresh_mask].concat().into();
        Some((row, DeltaLink { tuple: spot.tuple, bucket: spot.bucket, hash: spot.hash, before }, slot))
    }

    /// Removes an addition.
    pub fn remove(&mut self, slot: u32) {
        let Some(&(bucket, priority)) = self.places.get(slot as usize) else { return };
        if self.buckets[bucket as usize].remove(&(Reverse(priority), slot)) {
            self.tuples.leave(bucket);
        }
    }

    /// Returns the maximum number of additions.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Returns the masks of the tuples.
    pub fn masks(&self) -> impl Iterator<Item = &[u64]> {
        (0..self.tuples.len() as u32).map(|tuple| self.tuples.mask(tuple))
    }
}
