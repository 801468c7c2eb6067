// SPDX-License-Identifier: Apache-2.0
//! Delta of a worker: the rules added to a base since it was compiled.
//!
//! All memory is allocated when the delta is created. [`crate::additions::Additions`] decides the position of
//! each addition. Adding or removing a rule takes a few stores. Slots are numbers of additions in the order
//! of arrival, and are not reused.

pub mod bit_vectors;
mod bloom;
mod parts;
mod simd;

use crate::additions::DeltaLink;
use bit_vectors::{BitVectorFilter, Byte, Ranks};
use bloom::BloomFilter;
use engines::NONE;
use engines::hash::Seed;
use engines::lpm::Piece;
use engines::tuples::{TUPLES_MAX, bucket_hash};
use flow::EntryId;

/// Position of the tag in a word of the directory, which maps hashes to buckets. The tag is the high half of
/// the hash. The low half of the word is the bucket number + 1, or 0 if the place is free.
const TAG_SHIFT: u32 = 32;

/// Number of keys processed in one pass.
pub(crate) const GROUP: usize = 32;

/// Number of bits of the directory filter per addition, at full capacity.
const FILTER_BITS: usize = 8;

/// Data of an addition, by slot.
#[derive(Clone, Copy, Debug)]
struct Place {
    id: EntryId,
    priority: u16,
    /// Number of the bucket, or [`NONE`] after the addition was removed.
    bucket: u32,
    /// Neighbours in the bucket, which is in order of precedence.
    before: u32,
    after: u32,
}

/// Additions, with a fixed capacity.
#[derive(Debug)]
pub struct Delta {
    words: usize,
    capacity: usize,
    seed: Seed,
    directory: Box<[u64]>,
    /// Filter of the directory: a bitmap in which high bits of each hash select a bit. It excludes most keys
    /// that match no addition, and fits into smaller CPU caches than the directory.
    directory_filter: Box<[u64]>,
    /// First addition of each bucket.
    buckets: Vec<u32>,
    places: Vec<Place>,
    /// Values, then masks, of each addition.
    rows: Vec<u64>,
    /// Mask of each tuple.
    masks: Vec<u64>,
    /// Tuples with additions, each with the highest priority ever added to it, by descending priority.
    order: Vec<(u16, u32)>,
    living: usize,
    filter: DeltaFilter,
}

/// Properties of the base's rules that help to filter keys before additions are searched.
#[derive(Clone, Debug, Default)]
pub enum FilterHint {
    /// No property is known.
    #[default]
    None,
    /// The rules are prefixes of a field. This is the position of the field's first bits.
    Field(Piece),
    /// The rules have one mask.
    Mask(Vec<u64>),
    /// These bytes of a key distinguish the rules best. The second value has the rules' priorities.
    Rules(Vec<Byte>, Ranks),
}

/// Filter that excludes most keys that match no addition.
#[derive(Clone, Debug)]
enum DeltaFilter {
    Open,
    Bloom(BloomFilter),
    BitVectors(BitVectorFilter),
}

/// A clone has the same capacity, so that later additions allocate nothing. The directory is used in random
/// order, so all of it is copied.
impl Clone for Delta {
    fn clone(&self) -> Self {
        let mut made = Self {
            words: self.words,
            capacity: self.capacity,
            seed: self.seed,
            directory: self.directory.clone(),
            directory_filter: self.directory_filter.clone(),
            buckets: Vec::with_capacity(self.buckets.capacity()),
            places: Vec::with_capacity(self.places.capacity()),
            rows: Vec::with_capacity(self.rows.capacity()),
            masks: Vec::with_capacity(self.masks.capacity()),
            order: Vec::with_capacity(self.order.capacity()),
            living: self.living,
            filter: self.filter.clone(),
        };
        made.buckets.extend_from_slice(&self.buckets);
        made.places.extend_from_slice(&self.places);
        made.rows.extend_from_slice(&self.rows);
        made.masks.extend_from_slice(&self.masks);
        made.order.extend_from_slice(&self.order);
        made
    }
}

impl Default for Delta {
    fn default() -> Self {
        Self::new(0, 0, std::iter::empty(), &FilterHint::None)
    }
}

impl Delta {
    /// Creates a delta for `capacity` additions, with the masks of its first tuples.
    #[must_use]
    pub fn new<'m>(
        words: usize,
        capacity: usize,
        masks: impl Iterator<Item = &'m [u64]>,
        hint: &FilterHint,
    ) -> Self {
        let tuples = if capacity == 0 { 0 } else { TUPLES_MAX };
        let mut all_masks = Vec::with_capacity(tuples * words);
        for mask in masks {
            all_masks.extend_from_slice(mask);
        }
        let seed = Seed::of_process();
        Self {
            words,
            capacity,
            seed,
            directory: vec![0; (2 * capacity).next_power_of_two().max(2)].into_boxed_slice(),
            directory_filter: vec![0; (FILTER_BITS * capacity / 64).next_power_of_two()].into_boxed_slice(),
            buckets: Vec::with_capacity(capacity),
            places: Vec::with_capacity(capacity),
            rows: Vec::with_capacity(capacity * 2 * words),
            masks: all_masks,
            order: Vec::with_capacity(tuples),
            living: 0,
            filter: match hint {
                // A key without words cannot be filtered.
                _ if words == 0 => DeltaFilter::Open,
                FilterHint::None => DeltaFilter::Open,
                FilterHint::Field(piece) => {
                    DeltaFilter::Bloom(BloomFilter::of_field(seed, words, capacity, *piece))
                }
                FilterHint::Mask(mask) => {
                    DeltaFilter::Bloom(BloomFilter::of_mask(seed, words, capacity, mask))
                }
                FilterHint::Rules(bytes, ranks) => {
                    DeltaFilter::BitVectors(BitVectorFilter::new(bytes, ranks))
                }
            },
        }
    }

    /// Adds a rule. `row` has its values and masks, then the tuple's mask if the tuple is new. A rule in
    /// excess of the capacity is ignored, but the control side sends none.
    pub fn add(&mut self, id: EntryId, priority: u16, row: &[u64], link: &DeltaLink) {
        if self.places.len() == self.capacity {
            debug_assert!(false, "the control side sends at most as many additions as the capacity");
            return;
        }
        let (rule, fresh_mask) = row.split_at(2 * self.words);
        self.rows.extend_from_slice(rule);
        let slot = self.places.len() as u32;
        let (value, mask) = rule.split_at(self.words);
        match &mut self.filter {
            DeltaFilter::Open => {}
            DeltaFilter::Bloom(bloom) => bloom.add(value, mask),
            DeltaFilter::BitVectors(bit_vectors) => bit_vectors.add(priority, value, mask),
        }
        self.masks.extend_from_slice(fresh_mask);
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
        let (word, bit) = self.filter_place(hash);
        self.directory_filter[word] |= bit;
    }

    /// Records the priority of an addition to a tuple. Tuples stay sorted by their highest priority.
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

    /// Removes an addition.
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

    /// Returns the position of a hash in the directory filter: index of the word, and bit in the word.
    #[inline]
    fn filter_place(&self, hash: u64) -> (usize, u64) {
        // The lowest bits select the place in the directory.
        ((hash >> 32) as usize & (self.directory_filter.len() - 1), 1 << (hash >> 58))
    }

    /// Returns a bitmap with one bit for each of up to [`GROUP`] keys, set if the key may match an addition
    /// that beats the base's result in `slots`.
    #[inline]
    pub fn may_match(&self, keys: &[u64], slots: &[u32]) -> u32 {
        match &self.filter {
            DeltaFilter::Open => u32::MAX,
            DeltaFilter::Bloom(bloom) => bloom.marks(keys),
            DeltaFilter::BitVectors(bit_vectors) => bit_vectors.marks(keys, self.words, slots),
        }
    }

    #[inline]
    fn mask(&self, tuple: u32) -> &[u64] {
        &self.masks[tuple as usize * self.words..][..self.words]
    }

    /// Looks up at most [`GROUP`] keys. Only keys with a bit in `wanted` are looked up.
    ///
    /// Stores in `found` the best active addition that matches a key and has at least the priority in
    /// `least`. Without one, `found` stays unchanged. `least` is overwritten.
    pub fn lookup(&self, keys: &[u64], mut wanted: u32, least: &mut [u32], found: &mut [u32]) {
        let row = |at: usize| &keys[at * self.words..][..self.words];
        let mut places = [0; GROUP];
        let mut count = 0;
        while wanted != 0 {
            places[count] = wanted.trailing_zeros() as usize;
            count += 1;
            wanted &= wanted - 1;
        }
        let mut hashes = [0u64; GROUP];
        for &(highest, tuple) in &self.order {
            // A key is done if its result beats this tuple, because later tuples have lower priorities. At
            // equal priority, the tuple may hold an older addition.
            let mut left = 0;
            for at in 0..count {
                let place = places[at];
                places[left] = place;
                left += usize::from(least[place] <= u32::from(highest));
            }
            count = left;
            if count == 0 {
                break;
            }
            let mask = self.mask(tuple);
            // All keys are hashed and filtered before the first is searched, so that cache misses overlap.
            let mut maybe = 0u32;
            for &at in &places[..count] {
                hashes[at] = bucket_hash(self.seed, tuple, row(at), mask);
                let (word, bit) = self.filter_place(hashes[at]);
                maybe |= u32::from(self.directory_filter[word] & bit != 0) << at;
            }
            while maybe != 0 {
                let at = maybe.trailing_zeros() as usize;
                maybe &= maybe - 1;
                found[at] = self.find(row(at), hashes[at], &mut least[at], found[at]);
            }
        }
    }

    /// Returns the best addition in the buckets of a hash if it beats `best`, else `best`. Raises `least` to
    /// the result's priority.
    #[inline(never)]
    fn find(&self, key: &[u64], hash: u64, least: &mut u32, mut best: u32) -> u32 {
        let mut at = hash as usize & (self.directory.len() - 1);
        while self.directory[at] != 0 {
            let word = self.directory[at];
            if (word ^ hash) >> TAG_SHIFT == 0 {
                best = self.find_in_bucket(word as u32 - 1, key, *least, best);
                *least =
                    (*least).max(self.places.get(best as usize).map_or(0, |place| place.priority.into()));
            }
            at = (at + 1) & (self.directory.len() - 1);
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

    /// Returns the entry of a slot.
    #[must_use]
    pub fn id(&self, slot: u32) -> EntryId {
        self.places[slot as usize].id
    }

    /// Returns whether there is no active addition.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.living == 0
    }
}
