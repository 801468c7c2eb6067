// SPDX-License-Identifier: Apache-2.0
//! Control side: what the workers' heads hold, and where the next addition stands in them.

use crate::tuples::Tuples;
use crate::{KeyPlan, NONE};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Fewest rules that a head can walk; more once the base itself walks many.
const WALKED_MIN: usize = 64;

/// Where an addition stands in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its tuple.
    pub tuple: u32,
    /// Its bucket; a new one has the next free number.
    pub bucket: u32,
    /// The hash under which the bucket is found.
    pub hash: u64,
    /// The addition that it comes after in the bucket, or [`NONE`].
    pub before: u32,
}

/// The heads' additions: all workers' heads hold the same.
#[derive(Debug)]
pub struct Additions {
    capacity: usize,
    tuples: Tuples,
    /// For each bucket its living additions, best first.
    buckets: Vec<BTreeSet<(Reverse<u16>, u32)>>,
    /// For each addition its bucket and priority.
    places: Vec<(u32, u16)>,
}

impl Additions {
    /// None, with room for `capacity`, in tuples of these masks to begin with. `base_walked` is how many rules the base
    /// walks.
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

    /// Adds a rule as the last of its priority: the row for the heads, its place there and its slot; none if there is
    /// no room.
    pub fn add(&mut self, priority: u16, value: &[u64], mask: &[u64]) -> Option<(Box<[u64]>, Link, u32)> {
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
        Some((row, Link { tuple: spot.tuple, bucket: spot.bucket, hash: spot.hash, before }, slot))
    }

    /// Takes an addition away.
    pub fn remove(&mut self, slot: u32) {
        let Some(&(bucket, priority)) = self.places.get(slot as usize) else { return };
        if self.buckets[bucket as usize].remove(&(Reverse(priority), slot)) {
            self.tuples.leave(bucket);
        }
    }

    /// Additions there is room for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Masks of the tuples.
    pub fn masks(&self) -> impl Iterator<Item = &[u64]> {
        (0..self.tuples.len() as u32).map(|tuple| self.tuples.mask(tuple))
    }
}
