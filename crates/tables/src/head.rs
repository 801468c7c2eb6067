// SPDX-License-Identifier: Apache-2.0
//! A worker's additions to a base since it was compiled. All room is there from the start. The control side's
//! [`crate::additions::Additions`] decides where an addition stands; adding and taking away are a few stores each,
//! however many rules there are. Slots count additions, dead ones included.

use crate::NONE;
use crate::additions::Link;
use crate::hash::Seed;
use crate::tuples::{TUPLES_MAX, bucket_hash};
use flow::EntryId;

/// Directory word: high half a tag of the hash, low half number of the bucket + 1; 0 is free.
const TAG_SHIFT: u32 = 32;

/// What hangs off an addition's slot.
#[derive(Clone, Copy, Debug)]
struct Place {
    id: EntryId,
    priority: u16,
    /// [`NONE`] once it is dead.
    bucket: u32,
    /// Neighbours in the bucket, which stands in order of precedence.
    before: u32,
    after: u32,
}

/// Additions, with room for a fixed number of them.
#[derive(Debug)]
pub struct Head {
    words: usize,
    capacity: usize,
    seed: Seed,
    directory: Box<[u64]>,
    /// For each bucket its first addition.
    buckets: Vec<u32>,
    places: Vec<Place>,
    /// For each addition values, then masks.
    rows: Vec<u64>,
    /// For each tuple its mask.
    masks: Vec<u64>,
    /// Tuples with additions, and the highest priority that each has had; highest first.
    order: Vec<(u16, u32)>,
    living: usize,
}

/// With the same room: nothing is allocated when additions follow. The directory, whose places are taken in no order, is
/// in memory for good afterwards; the rest is touched page by page as additions come.
impl Clone for Head {
    fn clone(&self) -> Self {
        let mut made = Self {
            words: self.words,
            capacity: self.capacity,
            seed: self.seed,
            directory: self.directory.clone(),
            buckets: Vec::with_capacity(self.buckets.capacity()),
            places: Vec::with_capacity(self.places.capacity()),
            rows: Vec::with_capacity(self.rows.capacity()),
            masks: Vec::with_capacity(self.masks.capacity()),
            order: Vec::with_capacity(self.order.capacity()),
            living: self.living,
        };
        made.buckets.extend_from_slice(&self.buckets);
        made.places.extend_from_slice(&self.places);
        made.rows.extend_from_slice(&self.rows);
        made.masks.extend_from_slice(&self.masks);
        made.order.extend_from_slice(&self.order);
        made
    }
}

impl Default for Head {
    fn default() -> Self {
        Self::new(0, 0, std::iter::empty())
    }
}

impl Head {
    /// A head for so many additions, with the masks of its first tuples.
    #[must_use]
    pub fn new<'m>(words: usize, capacity: usize, masks: impl Iterator<Item = &'m [u64]>) -> Self {
        let tuples = if capacity == 0 { 0 } else { TUPLES_MAX };
        let mut all_masks = Vec::with_capacity(tuples * words);
        for mask in masks {
            all_masks.extend_from_slice(mask);
        }
        Self {
            words,
            capacity,
            seed: Seed::of_process(),
            directory: vec![0; (2 * capacity).next_power_of_two().max(2)].into_boxed_slice(),
            buckets: Vec::with_capacity(capacity),
            places: Vec::with_capacity(capacity),
            rows: Vec::with_capacity(capacity * 2 * words),
            masks: all_masks,
            order: Vec::with_capacity(tuples),
            living: 0,
        }
    }

    /// Adds a rule: `row` holds its values and masks, and behind them, if its tuple is new, the tuple's mask. The
    /// control side never sends more than the head has room for; one too many is not taken.
    pub fn add(&mut self, id: EntryId, priority: u16, row: &[u64], link: &Link) {
        if self.places.len() == self.capacity {
            debug_assert!(false, "the control side counts the head's additions");
            return;
        }
        let (rule, fresh_mask) = row.split_at(2 * self.words);
        self.rows.extend_from_slice(rule);
        self.masks.extend_from_slice(fresh_mask);
        let slot = self.places.len() as u32;
        if link.bucket as usize == self.buckets.len() {
            self.buckets.push(NONE);
            self.enter(link.hash, link.bucket);
        }
        let after = match link.before {
            NONE => std::mem::replace(&mut self.buckets[link.bucket as usize], slot),
            before => std::mem::replace(&mut self.places[before as usize].after, slot),
        };
        if after != NONE {
            self.places[after as usize].before = slot;
        }
        self.places.push(Place { id, priority, bucket: link.bucket, before: link.before, after });
        self.living += 1;
        self.rank(link.tuple, priority);
    }

    fn enter(&mut self, hash: u64, bucket: u32) {
        let mut at = hash as usize & (self.directory.len() - 1);
        while self.directory[at] != 0 {
            at = (at + 1) & (self.directory.len() - 1);
        }
        self.directory[at] = hash >> TAG_SHIFT << TAG_SHIFT | (u64::from(bucket) + 1);
    }

    /// Keeps the tuples in order of their highest priority.
    fn rank(&mut self, tuple: u32, priority: u16) {
        let known = self.order.iter().position(|(_, other)| *other == tuple);
        if known.is_some_and(|at| self.order[at].0 >= priority) {
            return;
        }
        if let Some(at) = known {
            self.order.remove(at);
        }
        let at = self.order.partition_point(|(highest, _)| *highest >= priority);
        self.order.insert(at, (priority, tuple));
    }

    /// Takes an addition away.
    pub fn kill(&mut self, slot: u32) {
        let Some(place) = self.places.get_mut(slot as usize) else { return };
        let bucket = std::mem::replace(&mut place.bucket, NONE);
        if bucket == NONE {
            return;
        }
        let Place { before, after, .. } = *place;
        match before {
            NONE => self.buckets[bucket as usize] = after,
            before => self.places[before as usize].after = after,
        }
        if after != NONE {
            self.places[after as usize].before = before;
        }
        self.living -= 1;
    }

    /// The best living addition that matches the key and has a priority above `floor`, or [`NONE`].
    #[must_use]
    pub fn find(&self, key: &[u64], floor: Option<u16>) -> u32 {
        let mut best = NONE;
        let mut least = floor.map_or(0, |floor| u32::from(floor) + 1);
        for &(highest, tuple) in &self.order {
            // Of equal priority this tuple may have one that was added earlier.
            if u32::from(highest) < least {
                break;
            }
            let mask = &self.masks[tuple as usize * self.words..][..self.words];
            let hash = bucket_hash(self.seed, tuple, key, mask);
            let mut at = hash as usize & (self.directory.len() - 1);
            while self.directory[at] != 0 {
                let word = self.directory[at];
                if (word ^ hash) >> TAG_SHIFT == 0 {
                    best = self.find_in_bucket(word as u32 - 1, key, least, best);
                    least =
                        least.max(self.places.get(best as usize).map_or(0, |place| place.priority.into()));
                }
                at = (at + 1) & (self.directory.len() - 1);
            }
        }
        best
    }

    fn find_in_bucket(&self, bucket: u32, key: &[u64], least: u32, best: u32) -> u32 {
        let mut slot = self.buckets[bucket as usize];
        while let Some(place) = self.places.get(slot as usize) {
            let priority = u32::from(place.priority);
            if priority < least || (priority == least && slot > best) {
                break;
            }
            if self.matches(key, slot) {
                return slot;
            }
            slot = place.after;
        }
        best
    }

    #[inline]
    fn matches(&self, key: &[u64], slot: u32) -> bool {
        let (values, masks) =
            self.rows[slot as usize * 2 * self.words..][..2 * self.words].split_at(self.words);
        key.iter().zip(values).zip(masks).all(|((key, value), mask)| key & mask == *value)
    }

    /// The entry of a slot.
    #[must_use]
    pub fn id(&self, slot: u32) -> EntryId {
        self.places[slot as usize].id
    }

    /// True without a living addition.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.living == 0
    }
}
