// SPDX-License-Identifier: Apache-2.0
//! Values in buckets of one cache line.
//!
//! A bucket has as many values as fit with their slots. Longer values have longer buckets of one value each.

use super::columns::Columns;
use super::lines::{LINE, Lines};
use super::pilots::Pilots;
use super::spill::Spill;
use crate::NONE;
use crate::hash::Seed;
use crate::prefetch::prefetch;

/// Number of keys in one pass over a burst.
pub const GROUP: usize = 32;

/// Maximum number of stored words that one pass buffers.
const KEPT: usize = 256;

/// Distinct values to be stored in buckets.
#[derive(Debug)]
pub struct Values<'v> {
    /// Hashes of the values.
    pub hashes: &'v [u64],
    /// Best slot of each value.
    pub slots: &'v [u32],
    /// Number of stored words in a value.
    pub words: usize,
    /// Stored words of every slot, including slots that are not the best of their value.
    pub packed: &'v [u64],
}

/// Values in buckets.
///
/// A bucket has values, then a 32-bit slot for each value. The slots of free places are [`NONE`], and so are
/// the last 32 bits of a line.
#[derive(Debug)]
pub struct Store {
    /// Number of words in a value.
    pub(super) words: usize,
    /// Number of values in a bucket.
    ways: usize,
    /// Number of words in a bucket.
    pub(super) stride: usize,
    pub(super) pilots: Pilots,
    buckets: Lines,
    spill: Spill,
}

/// Byte offset in a line that always holds [`NONE`].
pub const NO_SLOT_AT: u8 = 60;

/// Returns the number of values that fit into a line with their slots and 32 spare bits, at least 1.
pub const fn ways(words: usize) -> usize {
    let ways = (LINE * 8 - 4) / (words * 8 + 4);
    if ways == 0 { 1 } else { ways }
}

impl Store {
    /// Stores values in buckets, with at most `tries` attempts to place each group of values.
    #[must_use]
    pub fn new(values: &Values<'_>, tries: u8) -> Self {
        let (words, ways) = (values.words, ways(values.words));
        let stride = LINE.max(words + 1);
        let (pilots, places) = Pilots::new(values.hashes, ways, tries);
        let mut buckets = Lines::new(pilots.buckets() as usize * stride);
        for bucket in buckets.words_mut().chunks_exact_mut(stride) {
            bucket[ways * words..].fill(u64::MAX);
        }
        let mut spilled = Vec::new();
        for (&place, &slot) in places.iter().zip(values.slots) {
            let packed = &values.packed[slot as usize * words..][..words];
            if place == NONE {
                spilled.push((packed.to_vec(), slot));
                continue;
            }
            let (bucket, way) = (place as usize / ways, place as usize % ways);
            let bucket = &mut buckets.words_mut()[bucket * stride..][..stride];
            bucket[way * words..][..words].copy_from_slice(packed);
            // The slot's bits are all ones, so this XOR stores the slot.
            bucket[ways * words + way / 2] ^= u64::from(!slot) << (way % 2 * 32);
        }
        Self { words, ways, stride, pilots, buckets, spill: Spill::new(words, spilled) }
    }

    /// Returns the words of the buckets.
    #[inline(always)]
    pub(super) fn buckets(&self) -> &[u64] {
        self.buckets.words()
    }

    /// Looks up keys, whose rows `columns` describes. Stores for each key the best slot of its value, or
    /// [`NONE`].
    pub fn lookup(&self, columns: &Columns, seed: Seed, keys: &[u64], slots: &mut [u32]) {
        // Arrays must be cleared before use, so a single key uses small ones.
        match slots.len() {
            0..=1 => self.lookup_groups::<1>(columns, seed, keys, slots),
            _ => self.lookup_groups::<GROUP>(columns, seed, keys, slots),
        }
    }

    /// Looks up keys in groups of `G`.
    #[inline(always)]
    fn lookup_groups<const G: usize>(&self, columns: &Columns, seed: Seed, keys: &[u64], slots: &mut [u32]) {
        match self.words {
            1 => self.lookup_short::<1, G>(columns, seed, keys, slots),
            2 => self.lookup_short::<2, G>(columns, seed, keys, slots),
            3 => self.lookup_short::<3, G>(columns, seed, keys, slots),
            4 => self.lookup_short::<4, G>(columns, seed, keys, slots),
            5 => self.lookup_short::<5, G>(columns, seed, keys, slots),
            6 => self.lookup_short::<6, G>(columns, seed, keys, slots),
            _ => self.lookup_long(columns, seed, keys, slots),
        }
    }

    /// Looks up keys whose values have `W` words, in groups of `G`. A bucket is one line.
    fn lookup_short<const W: usize, const G: usize>(
        &self,
        columns: &Columns,
        seed: Seed,
        keys: &[u64],
        slots: &mut [u32],
    ) {
        const { assert!(W < LINE) };
        let picks = columns.picks::<W>();
        let lines = self.buckets.lines();
        let words = columns.words().max(1);
        for (keys, slots) in keys.chunks(G * words).zip(slots.chunks_mut(G)) {
            let mut kept = [[0; W]; G];
            let mut foreign = 0u32;
            for (((row, packed), slot), at) in
                keys.chunks_exact(words).zip(&mut kept).zip(slots.iter_mut()).zip(0..)
            {
                *packed = picks.map(|(word, mask)| row[word] & mask);
                foreign |= u32::from(!columns.has_common(row)) << at;
                let bucket = self.pilots.bucket(seed.hash_masked(packed));
                prefetch(lines, bucket);
                *slot = bucket as u32;
            }
            for (slot, packed) in slots.iter_mut().zip(&kept) {
                *slot = lines.get(*slot as usize).map_or(NONE, |line| in_line(line, packed));
            }
            if foreign != 0 {
                for (at, slot) in slots.iter_mut().enumerate() {
                    *slot |= 0u32.wrapping_sub(foreign >> at & 1);
                }
            }
            if self.has_spilled() {
                self.find_all_spilled(kept.as_flattened(), seed, foreign, slots);
            }
        }
    }

    fn lookup_long(&self, columns: &Columns, seed: Seed, keys: &[u64], slots: &mut [u32]) {
        // Long keys are processed in smaller groups.
        let at_once = (KEPT / self.words.max(1)).clamp(1, GROUP);
        let words = columns.words().max(1);
        for (keys, slots) in keys.chunks(at_once * words).zip(slots.chunks_mut(at_once)) {
            self.lookup_group(columns, seed, keys, slots);
        }
    }

    fn lookup_group(&self, columns: &Columns, seed: Seed, keys: &[u64], slots: &mut [u32]) {
        let (words, ways) = (self.words, self.ways);
        let mut kept = [0; KEPT];
        let mut foreign = 0u32;
        let buckets = self.buckets();
        let rows = keys.chunks_exact(columns.words()).take(slots.len().min(GROUP));
        for (at, (row, packed)) in rows.zip(kept.chunks_exact_mut(words)).enumerate() {
            foreign |= u32::from(!columns.pack(row, packed)) << at;
            let bucket = self.pilots.bucket(seed.hash_masked(packed));
            prefetch(buckets, bucket * self.stride);
            if self.stride > LINE {
                prefetch(buckets, bucket * self.stride + LINE);
            }
            if let Some(slot) = slots.get_mut(at) {
                *slot = bucket as u32;
            }
        }
        for ((at, slot), packed) in slots.iter_mut().enumerate().zip(kept.chunks_exact(words)) {
            let bucket = &buckets[*slot as usize * self.stride..][..self.stride];
            *slot = in_bucket(bucket, ways, packed) | 0u32.wrapping_sub(foreign >> at & 1);
        }
        if self.has_spilled() {
            self.find_all_spilled(&kept, seed, foreign, slots);
        }
    }

    #[cold]
    fn find_all_spilled(&self, kept: &[u64], seed: Seed, foreign: u32, slots: &mut [u32]) {
        for (at, slot) in slots.iter_mut().enumerate() {
            if *slot == NONE && foreign >> at & 1 == 0 {
                let packed = &kept[at * self.words..][..self.words];
                *slot = self.find_spilled(packed, seed.hash_masked(packed));
            }
        }
    }

    /// Returns whether any value is spilled.
    #[inline(always)]
    pub(super) fn has_spilled(&self) -> bool {
        !self.spill.is_empty()
    }

    /// Returns the slot of a spilled value, or [`NONE`].
    #[cold]
    pub(super) fn find_spilled(&self, packed: &[u64], hash: u64) -> u32 {
        if self.pilots.is_spilled(hash) { self.spill.find(packed).unwrap_or(NONE) } else { NONE }
    }

    /// Returns the number of spilled values.
    #[must_use]
    pub fn spilled(&self) -> usize {
        self.spill.len()
    }

    /// Calls `each` with every value and its slot.
    pub fn for_each(&self, mut each: impl FnMut(&[u64], u32)) {
        for bucket in self.buckets().chunks_exact(self.stride).take(self.pilots.buckets() as usize) {
            for way in 0..self.ways {
                let slot = slot_in(bucket, self.ways * self.words, way);
                if slot != NONE {
                    each(&bucket[way * self.words..][..self.words], slot);
                }
            }
        }
        self.spill.iter().for_each(|(packed, slot)| each(packed, slot));
    }

    /// Returns the memory size in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.pilots.bytes() + self.buckets.bytes() + self.spill.bytes()
    }
}

#[inline(always)]
fn slot_in(bucket: &[u64], slots_at: usize, way: usize) -> u32 {
    (bucket[slots_at + way / 2] >> (way % 2 * 32)) as u32
}

/// Returns the slot of a value in a bucket, or [`NONE`].
#[inline(always)]
fn in_bucket(bucket: &[u64], ways: usize, packed: &[u64]) -> u32 {
    let mut found = NONE;
    for way in 0..ways {
        let values = bucket[way * packed.len()..].iter().zip(packed);
        let differing = values.fold(0, |differing, (a, b)| differing | a ^ b);
        let slot = slot_in(bucket, ways * packed.len(), way);
        // Free places have [`NONE`], which `min` ignores.
        found = if differing == 0 { slot.min(found) } else { found };
    }
    found
}

/// Returns the slot of a value of `W` words in a bucket of one line, or [`NONE`].
#[inline(always)]
fn in_line<const W: usize>(line: &[u64; LINE], packed: &[u64; W]) -> u32 {
    let mut found = NONE;
    for way in 0..const { ways(W) } {
        let differing = (0..W).fold(0, |differing, at| differing | line[way * W + at] ^ packed[at]);
        let slot = slot_in(line, const { ways(W) * W }, way);
        // Values are distinct and free places have [`NONE`], so at most one slot is not all ones.
        found &= if differing == 0 { slot } else { NONE };
    }
    found
}
