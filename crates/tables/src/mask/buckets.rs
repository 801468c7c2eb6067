// SPDX-License-Identifier: Apache-2.0
//! Rules hashed under few coarse masks (see [`crate::tuples`]): for what trees and labels do not take.
//!
//! A lookup probes the tuples in the order of their best rules and stops when what it found beats all that are left.
//! In a bucket the rules are compared one by one, best first. Rules of tuples that hold next to nothing are walked
//! in blocks, last.
//!
//! At worst a lookup probes [`crate::tuples::TUPLES_MAX`] tuples, compares [`crate::tuples::BUCKET_MAX`] rules in each
//! with what is dead beside them, and walks, eight at a time, the rules that no tuple took: none unless the rules have
//! hundreds of masks that share no leading bits of any field.

use crate::hash::Seed;
use crate::scan::Scan;
use crate::tuples::{Tuples, WALKED, bucket_hash};
use crate::{BitSet, KeyPlan, NONE};

/// Keys in one pass.
const GROUP: usize = 32;

/// Directory word: high half a tag of the hash, low half place of the bucket's first rule + 1; 0 is free.
const TAG_SHIFT: u32 = 32;

/// Set in the slot of a bucket's last rule.
const LAST: u32 = 1 << 31;

/// Tuples of no more rules than this are walked: a probe costs as much as comparing a few rules in blocks.
const SPARSE: usize = 2;

/// But not more rules than this.
const SPARSE_TOTAL: usize = 64;

/// Rules hashed under one mask.
#[derive(Debug)]
struct Tuple {
    mask: Box<[u64]>,
    number: u32,
    /// Its best rule.
    first: u32,
    directory: Box<[u64]>,
}

/// Rules of any masks.
#[derive(Debug)]
pub(super) struct Buckets {
    words: usize,
    seed: Seed,
    /// Best first.
    tuples: Vec<Tuple>,
    /// Bucket by bucket, best first: values, then masks.
    rows: Vec<u64>,
    slots: Vec<u32>,
    walked: Scan,
    walked_slots: Vec<u32>,
}

impl Buckets {
    /// Compiles rules of these slots, in order of precedence; rows of the plan's words of all slots are in `values` and
    /// `masks`.
    pub fn new(plan: &KeyPlan, chosen: &[u32], values: &[u64], masks: &[u64]) -> Self {
        let len = chosen.len();
        let words = plan.words();
        let row = |slot: u32| slot as usize * words..(slot as usize + 1) * words;
        let mut tuples = Tuples::new(plan, [], u32::MAX);
        let mut members: Vec<(u32, u32)> = Vec::with_capacity(len);
        for &slot in chosen {
            if let Some(spot) = tuples.place(&values[row(slot)], &masks[row(slot)]) {
                members.push((spot.bucket, slot));
            }
        }
        members.sort_unstable();
        let buckets: Vec<(u32, u64)> = tuples.buckets().collect();
        let mut sizes = vec![0usize; tuples.len()];
        for (bucket, _) in &members {
            sizes[buckets[*bucket as usize].0 as usize] += 1;
        }
        let sparse = sparse(&sizes);
        let mut bucket_counts = vec![0usize; tuples.len()];
        for (tuple, _) in &buckets {
            bucket_counts[*tuple as usize] += 1;
        }
        let mut made: Vec<Tuple> = (0..tuples.len() as u32)
            .map(|number| Tuple {
                mask: tuples.mask(number).into(),
                number,
                first: NONE,
                directory: vec![0; (2 * bucket_counts[number as usize]).next_power_of_two().max(2)].into(),
            })
            .collect();
        let (mut rows, mut slots) = (Vec::with_capacity(2 * words * len), Vec::with_capacity(len));
        let mut walked_slots = Vec::new();
        for bucket in members.chunk_by(|a, b| a.0 == b.0) {
            let (number, hash) = buckets[bucket[0].0 as usize];
            if sparse[number as usize] {
                walked_slots.extend(bucket.iter().map(|(_, slot)| *slot));
                continue;
            }
            let tuple = &mut made[number as usize];
            tuple.first = tuple.first.min(bucket[0].1);
            enter(&mut tuple.directory, hash, slots.len());
            for (_, slot) in bucket {
                rows.extend_from_slice(&values[row(*slot)]);
                rows.extend_from_slice(&masks[row(*slot)]);
                slots.push(*slot);
            }
            if let Some(last) = slots.last_mut() {
                *last |= LAST;
            }
        }
        made.retain(|tuple| tuple.first != NONE);
        made.sort_unstable_by_key(|tuple| tuple.first);
        walked_slots.sort_unstable();
        let gather = |from: &[u64]| -> Vec<u64> {
            walked_slots.iter().flat_map(|slot| &from[row(*slot)]).copied().collect()
        };
        let walked = Scan::new(words, walked_slots.len(), &gather(values), &gather(masks));
        Self { words, seed: Seed::of_process(), tuples: made, rows, slots, walked, walked_slots }
    }

    /// Looks up `slots.len()` keys, one row of words each; a slot is the best matching rule that is not dead.
    pub fn lookup(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        for (keys, slots) in keys.chunks(GROUP * self.words).zip(slots.chunks_mut(GROUP)) {
            // Short keys, of a length known to the compiler, are compared without loops.
            match self.words {
                2 => self.lookup_group::<2>(keys, dead, slots),
                3 => self.lookup_group::<3>(keys, dead, slots),
                4 => self.lookup_group::<4>(keys, dead, slots),
                5 => self.lookup_group::<5>(keys, dead, slots),
                _ => self.lookup_group::<0>(keys, dead, slots),
            }
        }
    }

    /// `WORDS` is the length of a key, or 0 for any.
    #[inline(always)]
    fn lookup_group<const WORDS: usize>(&self, keys: &[u64], dead: &BitSet, slots: &mut [u32]) {
        let words = if WORDS == 0 { self.words } else { WORDS };
        let row = |at: u8| &keys[usize::from(at) * words..][..words];
        slots.fill(NONE);
        let mut waiting: [u8; GROUP] = std::array::from_fn(|at| at as u8);
        let mut count = slots.len();
        let mut places = [(0u64, 0u64); GROUP];
        for tuple in &self.tuples {
            // What a key has found beats this tuple and all after it.
            let mut left = 0;
            for at in 0..count {
                let key = waiting[at];
                waiting[left] = key;
                left += usize::from(slots[usize::from(key)] > tuple.first);
            }
            count = left;
            if count == 0 {
                break;
            }
            // All directory words of the group are asked for before the first is used.
            for (place, key) in places.iter_mut().zip(&waiting[..count]) {
                let hash = bucket_hash(self.seed, tuple.number, row(*key), &tuple.mask[..words]);
                *place = (hash, tuple.directory[hash as usize & (tuple.directory.len() - 1)]);
            }
            for ((hash, word), at) in places.iter().zip(&waiting[..count]) {
                if *word != 0 {
                    let slot = &mut slots[usize::from(*at)];
                    *slot = self.find(tuple, row(*at), *hash, *word, dead, *slot);
                }
            }
        }
        if !self.walked_slots.is_empty() {
            for (at, slot) in slots.iter_mut().enumerate() {
                *slot = self.walk(row(at as u8), dead, *slot);
            }
        }
    }

    /// The best living rule that a tuple has for the key, if it beats `found`; else `found`.
    #[inline(always)]
    fn find(&self, tuple: &Tuple, key: &[u64], hash: u64, word: u64, dead: &BitSet, mut found: u32) -> u32 {
        let (mut at, mut word) = (hash as usize, word);
        while word != 0 {
            if (word ^ hash) >> TAG_SHIFT == 0 {
                found = self.find_in_bucket(word as u32 as usize - 1, key, dead, found);
            }
            at += 1;
            word = tuple.directory[at & (tuple.directory.len() - 1)];
        }
        found
    }

    #[inline(always)]
    fn find_in_bucket(&self, from: usize, key: &[u64], dead: &BitSet, found: u32) -> u32 {
        let mut rows = self.rows[from * 2 * key.len()..].chunks_exact(2 * key.len());
        for marked in &self.slots[from..] {
            let slot = marked & !LAST;
            let Some((value, mask)) = rows.next().and_then(|row| row.split_at_checked(key.len())) else {
                break;
            };
            if slot >= found {
                break;
            }
            let differing = key
                .iter()
                .zip(value)
                .zip(mask)
                .fold(0, |differing, ((key, value), mask)| differing | (key & mask ^ value));
            if differing == 0 && (dead.is_empty() || !dead.contains(slot)) {
                return slot;
            }
            if marked & LAST != 0 {
                break;
            }
        }
        found
    }

    /// The best living rule among the walked, if it beats `found`; else `found`.
    fn walk(&self, key: &[u64], dead: &BitSet, found: u32) -> u32 {
        let below = self.walked_slots.partition_point(|slot| *slot < found);
        match self.walked.find_if(key, below, |place| !dead.contains(self.walked_slots[place as usize])) {
            NONE => found,
            place => self.walked_slots[place as usize],
        }
    }

    /// Masks of the tuples that are probed.
    pub fn masks(&self) -> impl Iterator<Item = &[u64]> {
        self.tuples.iter().map(|tuple| &*tuple.mask)
    }

    /// Rules that are walked.
    pub fn walked(&self) -> usize {
        self.walked_slots.len()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let tuples: usize = self
            .tuples
            .iter()
            .map(|tuple| size_of::<Tuple>() + (tuple.mask.len() + tuple.directory.len()) * 8)
            .sum();
        tuples + self.rows.len() * 8 + (self.slots.len() + self.walked_slots.len()) * 4 + self.walked.bytes()
    }
}

fn enter(directory: &mut [u64], hash: u64, place: usize) {
    let mut at = hash as usize & (directory.len() - 1);
    while directory[at] != 0 {
        at = (at + 1) & (directory.len() - 1);
    }
    directory[at] = hash >> TAG_SHIFT << TAG_SHIFT | (place as u64 + 1);
}

/// Which tuples' rules are walked: the walked one's, and those of next to no rules.
fn sparse(sizes: &[usize]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..sizes.len()).filter(|tuple| *tuple != WALKED as usize).collect();
    order.sort_unstable_by_key(|tuple| sizes[*tuple]);
    let mut sparse = vec![false; sizes.len()];
    sparse[WALKED as usize] = true;
    let mut total = 0;
    for tuple in order {
        total += sizes[tuple];
        if sizes[tuple] > SPARSE || total > SPARSE_TOTAL {
            break;
        }
        sparse[tuple] = true;
    }
    sparse
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_of_up_to_two_rules_are_walked_as_long_as_these_are_up_to_64() {
        // The first is the tuple that is walked anyway, however many rules it has.
        let walked =
            |sizes: &[usize]| sparse(&[&[1_000], sizes].concat()).into_iter().filter(|is| *is).count();
        assert_eq!(walked(&[]), 1);
        assert_eq!(walked(&[3, 4, 100]), 1);
        assert_eq!(sparse(&[0, 3, 2, 1, 5, 2]), [true, false, true, true, false, true]);
        assert_eq!(walked(&[2; 32]), 1 + 32);
        assert_eq!(walked(&[2; 40]), 1 + 32);
        assert_eq!(walked(&[1; 80]), 1 + 64);
        assert_eq!(walked(&[[2; 40], [1; 40]].concat()), 1 + 40 + 12, "the smallest first");
    }
}
