// SPDX-License-Identifier: Apache-2.0
//! Rules hashed under few coarse masks (see [`crate::tuples`]), for rules that trees and labels do not take.
//!
//! A lookup probes the tuples in the order of their best rules, and stops when its result beats all remaining
//! rules. Rules of a bucket are compared one by one, best first. Finally it compares the rules of very small
//! tuples, eight at a time. In the worst case a lookup probes [`crate::tuples::TUPLES_MAX`] tuples and
//! compares [`crate::tuples::BUCKET_MAX`] rules in each, plus deleted rules. It also compares all rules that
//! no tuple took. Such rules exist only if the rules have hundreds of masks that share no leading bits of any
//! field.

use crate::hash::Seed;
use crate::scan::Scan;
use crate::tuples::{Tuples, WALKED, bucket_hash};
use crate::{BitSet, KeyPlan, NONE};

/// Number of keys in one pass.
const GROUP: usize = 32;

/// Position of the hash's tag in a directory word. The low half is the index of the bucket's first rule,
/// plus 1. A word of 0 is free.
const TAG_SHIFT: u32 = 32;

/// Flag in the slot of a bucket's last rule.
const LAST: u32 = 1 << 31;

/// Maximum number of rules in a tuple that is walked: its rules are compared one by one. A probe costs as
/// much as a few comparisons.
const SPARSE: usize = 2;

/// Maximum number of rules walked because their tuples have at most [`SPARSE`] rules.
const SPARSE_TOTAL: usize = 64;

/// Rules hashed under one mask.
#[derive(Debug)]
struct Tuple {
    mask: Box<[u64]>,
    number: u32,
    /// Best rule of the tuple.
    first: u32,
    directory: Box<[u64]>,
}

/// Rules of arbitrary masks.
#[derive(Debug)]
pub(super) struct Buckets {
    words: usize,
    seed: Seed,
    /// Tuples, beginning with the tuple of the best rule.
    tuples: Vec<Tuple>,
    /// Values, then masks, of each rule, bucket by bucket and best first.
    rows: Vec<u64>,
    slots: Vec<u32>,
    walked: Scan,
    walked_slots: Vec<u32>,
}

impl Buckets {
    /// Compiles the rules of the slots in `chosen`, in order of precedence. `values` and `masks` have the
    /// rows of all slots, in the plan's layout.
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

    /// Looks up `slots.len()` keys, one row of words each. Stores for each key the slot of the best matching
    /// rule that is not in `tombstones`, or [`NONE`].
    pub fn lookup(&self, keys: &[u64], tombstones: &BitSet, slots: &mut [u32]) {
        for (keys, slots) in keys.chunks(GROUP * self.words).zip(slots.chunks_mut(GROUP)) {
            // A constant length lets the compiler unroll comparisons.
            match self.words {
                2 => self.lookup_group::<2>(keys, tombstones, slots),
                3 => self.lookup_group::<3>(keys, tombstones, slots),
                4 => self.lookup_group::<4>(keys, tombstones, slots),
                5 => self.lookup_group::<5>(keys, tombstones, slots),
                _ => self.lookup_group::<0>(keys, tombstones, slots),
            }
        }
    }

    /// Looks up at most [`GROUP`] keys of `WORDS` words. If `WORDS` is 0, the length is known only at run
    /// time.
    #[inline(always)]
    fn lookup_group<const WORDS: usize>(&self, keys: &[u64], tombstones: &BitSet, slots: &mut [u32]) {
        let words = if WORDS == 0 { self.words } else { WORDS };
        let row = |at: u8| &keys[usize::from(at) * words..][..words];
        slots.fill(NONE);
        let mut waiting: [u8; GROUP] = std::array::from_fn(|at| at as u8);
        let mut count = slots.len();
        let mut places = [(0u64, 0u64); GROUP];
        for tuple in &self.tuples {
            // A key is done if its result beats this tuple's rules, because later tuples are worse.
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
            // Directory words are loaded before the first is used, so that cache misses overlap.
            for (place, key) in places.iter_mut().zip(&waiting[..count]) {
                let hash = bucket_hash(self.seed, tuple.number, row(*key), &tuple.mask[..words]);
                *place = (hash, tuple.directory[hash as usize & (tuple.directory.len() - 1)]);
            }
            for ((hash, word), at) in places.iter().zip(&waiting[..count]) {
                if *word != 0 {
                    let slot = &mut slots[usize::from(*at)];
                    *slot = self.find(tuple, row(*at), *hash, *word, tombstones, *slot);
                }
            }
        }
        if !self.walked_slots.is_empty() {
            for (at, slot) in slots.iter_mut().enumerate() {
                *slot = self.walk(row(at as u8), tombstones, *slot);
            }
        }
    }

    /// Returns the tuple's best active rule for the key if it beats `found`, else `found`.
    #[inline(always)]
    fn find(
        &self,
        tuple: &Tuple,
        key: &[u64],
        hash: u64,
        word: u64,
        tombstones: &BitSet,
        mut found: u32,
    ) -> u32 {
        let (mut at, mut word) = (hash as usize, word);
        while word != 0 {
            if (word ^ hash) >> TAG_SHIFT == 0 {
                found = self.find_in_bucket(word as u32 as usize - 1, key, tombstones, found);
            }
            at += 1;
            word = tuple.directory[at & (tuple.directory.len() - 1)];
        }
        found
    }

    #[inline(always)]
    fn find_in_bucket(&self, from: usize, key: &[u64], tombstones: &BitSet, found: u32) -> u32 {
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
            if differing == 0 && (tombstones.is_empty() || !tombstones.contains(slot)) {
                return slot;
            }
            if marked & LAST != 0 {
                break;
            }
        }
        found
    }

    /// Returns the best active rule among the walked rules if it beats `found`, else `found`.
    fn walk(&self, key: &[u64], tombstones: &BitSet, found: u32) -> u32 {
        let below = self.walked_slots.partition_point(|slot| *slot < found);
        match self.walked.find_if(key, below, |place| !tombstones.contains(self.walked_slots[place as usize]))
        {
            NONE => found,
            place => self.walked_slots[place as usize],
        }
    }

    /// Returns the masks of the tuples that lookups probe.
    pub fn masks(&self) -> impl Iterator<Item = &[u64]> {
        self.tuples.iter().map(|tuple| &*tuple.mask)
    }

    /// Returns the number of rules that each lookup compares.
    pub fn walked(&self) -> usize {
        self.walked_slots.len()
    }

    /// Returns the memory size in bytes.
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

/// Returns for each tuple whether its rules are compared instead of hashed: tuple [`crate::tuples::WALKED`],
/// and very small tuples.
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
    fn tuples_of_one_or_two_rules_are_walked_up_to_64_rules_in_all() {
        // The first tuple is walked whatever its size.
        let walked =
            |sizes: &[usize]| sparse(&[&[1_000], sizes].concat()).into_iter().filter(|is| *is).count();
        assert_eq!(walked(&[]), 1);
        assert_eq!(walked(&[3, 4, 100]), 1);
        assert_eq!(sparse(&[0, 3, 2, 1, 5, 2]), [true, false, true, true, false, true]);
        assert_eq!(walked(&[2; 32]), 1 + 32);
        assert_eq!(walked(&[2; 40]), 1 + 32);
        assert_eq!(walked(&[1; 80]), 1 + 64);
        assert_eq!(
            walked(&[[2; 40], [1; 40]].concat()),
            1 + 40 + 12,
            "tuples of one rule come before tuples of two"
        );
    }

    #[test]
    fn buckets_report_their_memory_size() {
        let plan = KeyPlan::new(&[flow::Field::EthDst]).unwrap();
        let words = plan.words();
        // 40 rules share a mask, each in its own bucket. One rule has another mask.
        let row = |value: u64| [vec![value], vec![0; words - 1]].concat();
        let values: Vec<u64> = (0..41).flat_map(|at| row(at << 20)).collect();
        let masks: Vec<u64> =
            (0..41).flat_map(|at| row(if at < 40 { 0xffff_fff0_0000 } else { 0xff_fff0_0000 })).collect();
        let buckets = Buckets::new(&plan, &(0..41).collect::<Vec<u32>>(), &values, &masks);
        assert_eq!((buckets.tuples.len(), buckets.slots.len(), buckets.walked()), (1, 40, 1));
        let directory = 8 * buckets.tuples[0].directory.len();
        let tuples = size_of::<Tuple>() + 8 * words + directory;
        let rules = 40 * (2 * words * 8 + 4);
        assert_eq!(buckets.bytes(), tuples + rules + 4 + buckets.walked.bytes());
    }
}
