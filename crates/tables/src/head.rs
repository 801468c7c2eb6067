// SPDX-License-Identifier: Apache-2.0
//! A worker's additions to a base since it was compiled. All room is there from the start. The control side's
//! [`crate::additions::Additions`] decides where an addition stands; adding and taking away are a few stores each,
//! however many rules there are. Slots count additions, dead ones included.

pub mod screen;
mod sieve;
mod simd;

use crate::NONE;
use crate::additions::Link;
use crate::hash::Seed;
use crate::lpm::Piece;
use crate::tuples::{TUPLES_MAX, bucket_hash};
use flow::EntryId;
use screen::{Byte, Ranks, Screen};
use sieve::Sieve;

/// Directory word: high half a tag of the hash, low half number of the bucket + 1; 0 is free.
const TAG_SHIFT: u32 = 32;

/// Keys in one pass.
pub(crate) const GROUP: usize = 32;

/// Bits of the filter for each bucket there is room for.
const FILTER_BITS: usize = 8;

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
    /// One bit for each hash that is in the directory, at its highest bits: most keys have no addition, and the filter stays in
    /// caches that the directory does not fit.
    filter: Box<[u64]>,
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
    gate: Gate,
}

/// What the base's rules tell about where to look for additions.
#[derive(Clone, Debug, Default)]
pub enum Hint {
    /// Nothing.
    #[default]
    None,
    /// They are prefixes of a field, whose first bits stand here.
    Field(Piece),
    /// They have one mask.
    Mask(Vec<u64>),
    /// They are told apart best by these bytes of a key, and have these priorities.
    Rules(Vec<Byte>, Ranks),
}

/// Keeps keys away that match no addition, as most do.
#[derive(Clone, Debug)]
enum Gate {
    Open,
    Sieve(Sieve),
    Screen(Screen),
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
            filter: self.filter.clone(),
            buckets: Vec::with_capacity(self.buckets.capacity()),
            places: Vec::with_capacity(self.places.capacity()),
            rows: Vec::with_capacity(self.rows.capacity()),
            masks: Vec::with_capacity(self.masks.capacity()),
            order: Vec::with_capacity(self.order.capacity()),
            living: self.living,
            gate: self.gate.clone(),
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
        Self::new(0, 0, std::iter::empty(), &Hint::None)
    }
}

impl Head {
    /// A head for so many additions, with the masks of its first tuples.
    #[must_use]
    pub fn new<'m>(
        words: usize,
        capacity: usize,
        masks: impl Iterator<Item = &'m [u64]>,
        hint: &Hint,
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
            filter: vec![0; (FILTER_BITS * capacity / 64).next_power_of_two()].into_boxed_slice(),
            buckets: Vec::with_capacity(capacity),
            places: Vec::with_capacity(capacity),
            rows: Vec::with_capacity(capacity * 2 * words),
            masks: all_masks,
            order: Vec::with_capacity(tuples),
            living: 0,
            gate: match hint {
                // Keys without words are the only ones that there are.
                _ if words == 0 => Gate::Open,
                Hint::None => Gate::Open,
                Hint::Field(piece) => Gate::Sieve(Sieve::of_field(seed, words, capacity, *piece)),
                Hint::Mask(mask) => Gate::Sieve(Sieve::of_mask(seed, words, capacity, mask)),
                Hint::Rules(bytes, ranks) => Gate::Screen(Screen::new(bytes, ranks)),
            },
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
        let slot = self.places.len() as u32;
        let (value, mask) = rule.split_at(self.words);
        match &mut self.gate {
            Gate::Open => {}
            Gate::Sieve(sieve) => sieve.add(value, mask),
            Gate::Screen(screen) => screen.add(priority, value, mask),
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
        self.filter[word] |= bit;
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

    /// Where a hash stands in the filter: word and bit.
    #[inline]
    fn filter_place(&self, hash: u64) -> (usize, u64) {
        // The lowest bits place it in the directory.
        ((hash >> 32) as usize & (self.filter.len() - 1), 1 << (hash >> 58))
    }

    /// Which of up to [`GROUP`] keys, one row of words each, may match an addition that beats what the base holds for them, at
    /// `slots`: one bit each.
    #[inline]
    pub fn may_match(&self, keys: &[u64], slots: &[u32]) -> u32 {
        match &self.gate {
            Gate::Open => u32::MAX,
            Gate::Sieve(sieve) => sieve.marks(keys),
            Gate::Screen(screen) => screen.marks(keys, self.words, slots),
        }
    }

    #[inline]
    fn mask(&self, tuple: u32) -> &[u64] {
        &self.masks[tuple as usize * self.words..][..self.words]
    }

    /// For each of up to [`GROUP`] keys, one row of words each, that `wanted` has a bit for, the best living addition that
    /// matches and has at least the priority in `least`, or what is in `found`. `least` is used up.
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
            // What a key has beats this tuple and all after it; of equal priority it may hold one that was added earlier.
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
            // Of all keys before the first is sought: then no load waits for another.
            let mut maybe = 0u32;
            for &at in &places[..count] {
                hashes[at] = bucket_hash(self.seed, tuple, row(at), mask);
                let (word, bit) = self.filter_place(hashes[at]);
                maybe |= u32::from(self.filter[word] & bit != 0) << at;
            }
            while maybe != 0 {
                let at = maybe.trailing_zeros() as usize;
                maybe &= maybe - 1;
                found[at] = self.find(row(at), hashes[at], &mut least[at], found[at]);
            }
        }
    }

    /// The best addition of the buckets of a hash in a tuple, if it is better than `best`; else that. `least` follows.
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
