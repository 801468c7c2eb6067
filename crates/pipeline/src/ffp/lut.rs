// SPDX-License-Identifier: Apache-2.0
//! The lookup table (LUT) of a flow table: an exact-match cache from values of the bits that the table
//! examines to entries. It belongs to one worker, has a fixed size, and is allocated by the control thread.
//!
//! Eight records form a set. A value may be stored in either of two sets, so a low-latency value is not
//! refused while either set has space. The tags of a set (one byte per record) are compared at once.
//!
//! Records of low-latency entries may fill the whole LUT and displace other records. Records of normal
//! entries use at most half of a set and never displace a low-latency record. [`admission`](super::admission)
//! decides which record is displaced in a full LUT.

use super::change::{Cleaning, LutRole};
use super::recent::Recent;
use crate::slab::BURST;
use dataplane::LutCounters;
use engines::NONE;
use engines::hash::Seed;
use engines::pages::zeros;
use engines::recency::{Seen, Use};
use engines::simd::{RowCompare, equal_bytes};
use flow::{EntryId, Nanos};
use frame::prefetch;
use keys::Extractor;
use std::sync::Arc;

/// Number of records in a set.
pub(super) const WAYS: usize = 8;

/// Length of a period in nanoseconds. The use of records is counted in periods.
const PERIOD_NS: Nanos = Nanos(1_000_000_000);

/// Data of a record besides its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Entry to which the value resolves.
    pub id: EntryId,
    /// Priority of the entry.
    pub priority: u16,
    /// Period of the last hit and number of periods with hits.
    pub(super) used: Use,
    /// Whether the entry is low-latency.
    pub low_latency: bool,
    /// Generation of the LUT when the record was last known to be right.
    pub generation: u32,
    /// Packets that hit this record may leave when the backlog has drained up to this position. 0 if they
    /// need not wait.
    pub(crate) fence: u32,
}

/// Exact-match cache of one table.
#[derive(Debug)]
#[repr(align(128))]
pub struct Lut {
    pub(super) mask: Box<[u64]>,
    pub(super) keys: Box<[u64]>,
    pub(super) tags: Box<[u64]>,
    pub(super) records: Box<[Record]>,
    pub(super) generation: u32,
    pub(super) seen: Seen,
    pub(super) period: u64,
    seed: Seed,
    compare: Option<RowCompare>,
    /// The previous LUT, which stays in use while this LUT is new.
    pub(super) previous: Option<Previous>,
    pub(super) inheritance: Option<Inheritance>,
    /// Set while packets that missed without a lookup in the previous LUT still wait. No record is inherited
    /// until these packets have left.
    pub(super) barred: bool,
    pub(super) role: LutRole,
    pub(super) cleaning: Cleaning,
    pub(super) recent: Recent,
    pub(super) counters: Arc<LutCounters>,
}

/// The previous LUT.
#[derive(Debug)]
pub(super) struct Previous {
    pub lut: Box<Lut>,
    /// Builds the previous LUT's rows, or `None` if both layouts are equal.
    pub extractor: Option<Box<Extractor>>,
    /// Time until which the previous LUT is used, in ns, or 0 before its first use.
    pub until_ns: Nanos,
}

/// Data that a LUT needs to use the records of its predecessor.
#[derive(Debug)]
pub struct Inheritance {
    /// Builds the previous LUT's rows; `None` if both layouts are equal.
    pub extractor: Option<Box<Extractor>>,
}

impl Lut {
    /// Creates an empty LUT of at least `entries` records. Rows have `mask.len()` words, of which the bits of
    /// `mask` are examined.
    #[must_use]
    pub fn new(mask: &[u64], entries: usize, counters: Arc<LutCounters>) -> Self {
        let sets = entries.div_ceil(WAYS).next_power_of_two();
        Self {
            mask: mask.into(),
            keys: zeros(sets * WAYS * mask.len()),
            tags: vec![0; sets].into_boxed_slice(),
            records: vec![Record::default(); sets * WAYS].into_boxed_slice(),
            generation: 0,
            seen: Seen::new(sets * WAYS),
            period: 0,
            seed: Seed::of_process(),
            compare: RowCompare::new(),
            previous: None,
            inheritance: None,
            barred: false,
            role: LutRole::Current,
            cleaning: Cleaning::default(),
            recent: Recent::new(mask.len()),
            counters,
        }
    }

    /// Returns this LUT, set up to use the records of the LUT that it replaces.
    #[must_use]
    pub fn inheriting(self, inheritance: Inheritance) -> Self {
        Self { inheritance: Some(inheritance), ..self }
    }

    /// Returns the size in bytes of a LUT of at least `entries` records with rows of `words` words.
    #[must_use]
    pub fn bytes(words: usize, entries: usize) -> usize {
        let sets = entries.div_ceil(WAYS).next_power_of_two();
        let records = sets * 8 + sets * WAYS * (words * 8 + size_of::<Record>());
        records + Seen::bytes(sets * WAYS) + Recent::bytes(words)
    }

    /// Returns the mask of the bits examined in rows.
    #[inline]
    pub(crate) fn mask(&self) -> &[u64] {
        &self.mask
    }

    /// Looks up the rows of `keys`, at most a burst. Bits that the table does not examine must be 0.
    ///
    /// Stores the place of each value in `places`, or [`NONE`]. Calls `found` with the index of each row that
    /// has a record, and with the record.
    #[inline]
    pub(crate) fn probe(
        &mut self,
        keys: &[u64],
        now: Nanos,
        places: &mut [u32],
        found: impl FnMut(usize, &Record),
    ) {
        self.period = now / PERIOD_NS;
        let words = self.mask.len();
        // A table that examines no bits has no LUT, because all its packets have the same value.
        debug_assert!(words > 0);
        if words == 0 {
            return places.fill(NONE);
        }
        debug_assert!(places.len() <= BURST);
        match words {
            1 => self.probe_burst::<1>(keys, places, found),
            2 => self.probe_burst::<2>(keys, places, found),
            3 => self.probe_burst::<3>(keys, places, found),
            4 => self.probe_burst::<4>(keys, places, found),
            5 => self.probe_burst::<5>(keys, places, found),
            6 => self.probe_burst::<6>(keys, places, found),
            _ => self.probe_burst::<0>(keys, places, found),
        }
    }

    /// Looks up a burst in two passes: first hashes and tags, then rows. The first pass prefetches the rows,
    /// so that the cache misses of the burst overlap.
    ///
    /// `WORDS` is the length of a row in words if it is known at compile time, else 0.
    fn probe_burst<const WORDS: usize>(
        &mut self,
        keys: &[u64],
        places: &mut [u32],
        mut found: impl FnMut(usize, &Record),
    ) {
        let words = if WORDS == 0 { self.mask.len() } else { WORDS };
        let count = places.len().min(keys.len() / words).min(BURST);
        let places = &mut places[..count];
        // Indices are faster here than zipped iterators.
        for at in 0..count {
            let place = self.candidate(self.seed.hash_masked(&keys[at * words..][..words]));
            places[at] = place;
            // A row may extend over two cache lines.
            prefetch::element(&self.keys, place as usize * words);
            prefetch::element(&self.keys, place as usize * words + words - 1);
            prefetch::element(&self.records, place as usize);
        }
        let mut differing = match self.compare {
            Some(compare) if WORDS != 0 => compare.differing(keys, words, &self.keys, places),
            _ => u32::MAX,
        };
        for at in 0..count {
            if differing & 1 != 0 && places[at] != NONE {
                places[at] = self.find_again(&keys[at * words..][..words], places[at]);
            }
            differing >>= 1;
            if let Some(record) = self.records.get_mut(places[at] as usize) {
                record.used.hit(self.period);
                found(at, record);
            }
        }
    }

    /// Returns the place of a value's record, or [`NONE`]. `place` was the first place with the right tag.
    #[inline(never)]
    fn find_again(&self, key: &[u64], place: u32) -> u32 {
        if self.holds(place as usize, key) { place } else { self.find(key, self.seed.hash_masked(key)) }
    }

    /// Returns the first place whose tag matches a hash. If the value has a record, this is nearly always its
    /// place.
    #[inline(always)]
    fn candidate(&self, hash: u64) -> u32 {
        let [first, second] = self.sets(hash);
        let fits = equal_bytes(self.tags[first], self.tags[second], tag(hash));
        // Conditional moves are used instead of a branch, because the core cannot predict which set holds a
        // value.
        let way = fits.trailing_zeros() as usize;
        let place = if way < WAYS { first * WAYS + way } else { second * WAYS + way - WAYS };
        if fits == 0 { NONE } else { place as u32 }
    }

    /// Returns whether the row at a place equals `key`.
    #[inline(always)]
    fn holds(&self, place: usize, key: &[u64]) -> bool {
        let row = &self.keys[place * key.len()..][..key.len()];
        row.iter().zip(key).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
    }

    #[inline(always)]
    pub(super) fn hash(&self, key: &[u64]) -> u64 {
        self.seed.hash(key, &self.mask)
    }

    /// Returns the two sets in which a key with this hash may be.
    #[inline(always)]
    pub(super) fn sets(&self, hash: u64) -> [usize; 2] {
        let last = self.tags.len() - 1;
        let first = hash as usize & last;
        [first, (first ^ (hash >> 32) as usize) & last]
    }

    /// Returns the place of a value's record, or [`NONE`].
    #[inline(always)]
    pub(super) fn find(&self, key: &[u64], hash: u64) -> u32 {
        let sets = self.sets(hash);
        let mut fits = equal_bytes(self.tags[sets[0]], self.tags[sets[1]], tag(hash));
        while fits != 0 {
            let way = fits.trailing_zeros() as usize;
            let place = sets[way / WAYS] * WAYS + way % WAYS;
            if self.holds(place, key) {
                return place as u32;
            }
            fits &= fits - 1;
        }
        NONE
    }

    /// Returns whether there is a record at `place` with this value.
    pub(super) fn has(&self, place: u32, key: &[u64]) -> bool {
        self.is_used(place as usize) && self.holds(place as usize, key)
    }

    /// Returns the length of a row, in words.
    #[inline]
    pub(crate) fn words(&self) -> usize {
        self.mask.len()
    }

    /// Returns the current generation. Records of this generation need no verification.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// Counts the results of lookups.
    #[inline]
    pub(crate) fn count(&self, hits: u64, normal: u64, misses: u64) {
        self.counters.hits(hits);
        self.counters.normal_hits(normal);
        self.counters.misses(misses);
    }

    /// Clears a record's fence, because the backlog has drained up to it.
    #[inline]
    pub(super) fn lift_fence(&mut self, place: u32) {
        if let Some(record) = self.records.get_mut(place as usize) {
            record.fence = 0;
        }
    }

    /// Returns the record at a place.
    #[inline]
    pub fn record(&self, place: u32) -> Option<&Record> {
        self.records.get(place as usize)
    }

    /// Returns the row of the record at a place.
    pub(super) fn row(&self, place: usize) -> &[u64] {
        &self.keys[place * self.mask.len()..][..self.mask.len()]
    }

    /// Returns whether there is a record at a place.
    #[inline]
    pub(super) fn is_used(&self, place: usize) -> bool {
        self.tags[place / WAYS] >> (place % WAYS * 8) & 0xff != 0
    }

    /// Returns whether there are no records.
    pub(super) fn is_empty(&self) -> bool {
        self.tags.iter().all(|tags| *tags == 0)
    }

    /// Removes a record.
    pub(super) fn free(&mut self, place: usize) {
        if self.is_used(place) {
            self.tags[place / WAYS] &= !(0xff << (place % WAYS * 8));
            self.counters.records(-1);
        }
    }
}

/// Returns the tag of a hash. It is never 0, which marks a free place.
#[inline(always)]
pub(super) fn tag(hash: u64) -> u8 {
    (hash >> 56) as u8 | 1
}

#[cfg(test)]
mod tests;
