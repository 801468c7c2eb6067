// SPDX-License-Identifier: Apache-2.0
//! Filter for tables of rules with arbitrary masks: selects the keys that may match an addition that beats
//! the base's result.
//!
//! Additions are divided into 64 sets, by the position of their priorities among the base's priorities. For
//! some bytes of the key there is a table of 256 words, one for each value of the byte. A word has one bit
//! per set: whether an addition of the set matches the value. The AND of the words of a key's bytes gives the
//! sets that may hold a match. Sets of lower priority than the base's result are ignored. Bits of removed
//! additions stay set until there is a new base.

use engines::NONE;
use std::ops::Range;

/// Maximum number of key bytes used, which are those that distinguish the base's rules best.
const BYTES: usize = 8;

/// Number of bytes checked first, which exclude most keys.
const FIRST: usize = 4;

/// Number of sets of additions.
const SETS: usize = 64;

/// Number of rules in the sample by which the bytes are chosen. The sample is spread evenly over all rules.
const SAMPLE: usize = 512;

/// A byte of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Byte {
    word: u8,
    shift: u8,
}

impl Byte {
    #[inline]
    fn of(self, row: &[u64]) -> usize {
        usize::from((row[usize::from(self.word)] >> self.shift) as u8)
    }

    /// Returns the bytes of a key that distinguish rules best. The rules have `words` words each in `values`
    /// and `masks`.
    #[must_use]
    pub fn best(words: usize, values: &[u64], masks: &[u64]) -> Vec<Self> {
        let step = (values.len() / words.max(1)).div_ceil(SAMPLE).max(1);
        let each = |rows: &'_ [u64]| -> Vec<u64> {
            rows.chunks_exact(words.max(1)).step_by(step).flatten().copied().collect()
        };
        let (values, masks) = (each(values), each(masks));
        let bytes = (0..words as u8).flat_map(|word| (0..8).map(move |at| Self { word, shift: 8 * at }));
        let mut ranked: Vec<(u64, Self)> =
            bytes.map(|byte| (byte.alike(words, &values, &masks), byte)).collect();
        // A byte in which all rules match each other is useless.
        let len = (values.len() / words.max(1)) as u64;
        ranked.retain(|(alike, _)| *alike < len * len);
        ranked.sort_by_key(|(alike, _)| *alike);
        ranked.into_iter().map(|(_, byte)| byte).take(BYTES).collect()
    }

    /// Returns the number of pairs of rules in which one rule matches the other rule's value in this byte.
    fn alike(self, words: usize, values: &[u64], masks: &[u64]) -> u64 {
        let rules = || values.chunks_exact(words).zip(masks.chunks_exact(words));
        let rules = || rules().map(|(value, mask)| (self.of(value), self.of(mask)));
        let (mut suiting, mut open) = ([0u64; 256], 0);
        for (value, mask) in rules() {
            match mask {
                0 => open += 1,
                _ => suited(value, mask).for_each(|value| suiting[value] += 1),
            }
        }
        rules().map(|(value, mask)| open + suiting[value & mask]).sum()
    }
}

/// Returns the values of a byte that match `value` under `mask`.
fn suited(value: usize, mask: usize) -> impl Iterator<Item = usize> {
    let open = !mask & 0xff;
    let others = std::iter::successors(Some(open), move |others| (*others != 0).then(|| (others - 1) & open));
    others.map(move |others| value & mask | others)
}

/// Maps priorities to their positions among the priorities of a base.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// Priority at which each set begins, except the first set.
    bounds: Vec<u16>,
    /// Number of sets per rule of the base, times 2^32, rounded up.
    scale: u64,
}

impl Ranks {
    /// Computes the positions from priorities in descending order.
    #[must_use]
    pub fn new(priorities: &[u16]) -> Self {
        let len = priorities.len();
        let bound = |set: usize| priorities.get((set * len).div_ceil(SETS)).copied().unwrap_or(0);
        Self {
            bounds: if len == 0 { Vec::new() } else { (1..SETS).map(bound).collect() },
            scale: ((SETS as u64) << 32).div_ceil(len.max(1) as u64),
        }
    }

    /// Returns the set of additions of a priority.
    fn set_of(&self, priority: u16) -> u32 {
        self.bounds.partition_point(|bound| *bound >= priority) as u32
    }

    /// Returns the sets with all additions that beat the base's rule at a slot, or all sets for [`NONE`].
    #[inline(always)]
    fn sets_before(&self, slot: u32) -> u64 {
        // The product overflows only for [`NONE`], and is then unused.
        let last = (u64::from(slot).wrapping_mul(self.scale) >> 32).min(SETS as u64 - 1);
        if slot == NONE { u64::MAX } else { u64::MAX >> (SETS as u64 - 1 - last) }
    }
}

/// Filter for rules with arbitrary masks; see the module documentation.
#[derive(Clone, Debug)]
pub(super) struct BitVectorFilter {
    ranks: Ranks,
    bytes: Vec<Byte>,
    /// For each byte, the sets with an addition that does not examine the byte.
    open: Vec<u64>,
    /// For each byte and each of its values, the sets with an addition that matches the value.
    sets: Vec<[u64; 256]>,
}

impl BitVectorFilter {
    /// Creates a filter on these bytes of a key, without additions.
    pub fn new(bytes: &[Byte], ranks: &Ranks) -> Self {
        Self {
            ranks: ranks.clone(),
            bytes: bytes.into(),
            open: vec![0; bytes.len()],
            sets: vec![[0; 256]; bytes.len()],
        }
    }

    /// Adds a rule to the filter.
    pub fn add(&mut self, priority: u16, value: &[u64], mask: &[u64]) {
        let set = 1 << self.ranks.set_of(priority);
        for ((byte, open), sets) in self.bytes.iter().zip(&mut self.open).zip(&mut self.sets) {
            let (mask, value) = (byte.of(mask), byte.of(value));
            match mask {
                0 => *open |= set,
                _ => suited(value, mask).for_each(|value| sets[value] |= set),
            }
        }
    }

    /// Returns a bitmap with one bit for each of the first 32 keys, set if the key may match an addition that
    /// beats the base's result in `slots`. Each key has `words` words.
    #[inline]
    pub fn marks(&self, keys: &[u64], words: usize, slots: &[u32]) -> u32 {
        let first = self.bytes.len().min(FIRST);
        let passes = |(row, slot): (&[u64], &u32)| {
            let sets = self.ranks.sets_before(*slot) & self.sets(row, 0..first);
            sets != 0 && sets & self.sets(row, first..self.bytes.len()) != 0
        };
        let count = slots.len().min(32).min(keys.len() / words);
        let rows = keys[..count * words].chunks_exact(words).zip(&slots[..count]);
        rows.rev().fold(0, |marks, row| marks << 1 | u32::from(passes(row)))
    }

    /// Returns the sets with an addition that matches the row in these bytes.
    #[inline(always)]
    fn sets(&self, row: &[u64], bytes: Range<usize>) -> u64 {
        let of = |at: usize| self.sets[at][self.bytes[at].of(row)] | self.open[at];
        bytes.fold(u64::MAX, |sets, at| sets & of(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn all_matching_keys_pass_and_most_others_do_not() {
        let mut rng = Rng::with_seed(1);
        let prefix = |rng: &mut Rng| u32::MAX.checked_shl(rng.u32(0..=20)).unwrap_or(0);
        let rules: Vec<([u64; 2], [u64; 2])> = (0..1_000)
            .map(|_| {
                let addresses = u64::from(prefix(&mut rng)) << 32 | u64::from(prefix(&mut rng));
                let masks = [addresses, if rng.bool() { 0xffff } else { 0 }];
                ([rng.u64(..) & masks[0], u64::from(rng.u16(..4)) & masks[1]], masks)
            })
            .collect();
        let values: Vec<u64> = rules.iter().flat_map(|(value, _)| *value).collect();
        let masks: Vec<u64> = rules.iter().flat_map(|(_, mask)| *mask).collect();
        let bytes = Byte::best(2, &values, &masks);
        assert_eq!(bytes.len(), BYTES, "eight of the ten examined bytes are used");
        assert!(bytes.iter().all(|byte| byte.word == 0 || byte.shift == 0), "{bytes:?}");
        let ranks = Ranks::new(&(0..1_000).rev().map(|at| at / 3).collect::<Vec<u16>>());
        let mut bit_vectors = BitVectorFilter::new(&bytes, &ranks);
        assert_eq!(bit_vectors.marks(&[0, 0], 2, &[NONE]), 0);
        for (at, (value, mask)) in (0..).zip(&rules[..200]) {
            bit_vectors.add(at, value, mask);
        }
        for (at, (value, mask)) in (0..).zip(&rules[..200]) {
            for _ in 0..20 {
                let key = [value[0] | rng.u64(..) & !mask[0], value[1] | rng.u64(..) & !mask[1]];
                // The base's rule at slot `slot` has the priority (999 - slot) / 3.
                let beaten = 1_000 - 3 * at;
                let slot = if rng.bool() { NONE } else { rng.u32(beaten..=1_000) };
                assert_eq!(bit_vectors.marks(&key, 2, &[slot]), 1, "{at} beats {slot}");
            }
        }
        let keys: Vec<u64> = (0..32).flat_map(|_| [rng.u64(..), u64::from(rng.u16(..4))]).collect();
        assert!(bit_vectors.marks(&keys, 2, &[NONE; 32]).count_ones() < 10);
        assert_eq!(
            bit_vectors.marks(&keys, 2, &[10; 32]),
            0,
            "no addition beats the first rules of the base"
        );
    }

    /// Returns rules of `words` words that differ only in `bytes`. `at` returns the value of a rule's byte.
    fn rules(words: usize, bytes: &[usize], at: impl Fn(usize, usize) -> u8) -> (Vec<u64>, Vec<u64>) {
        let (mut values, mut masks) = (vec![0; 256 * words], vec![0; 256 * words]);
        for rule in 0..256 {
            for &byte in bytes {
                values[rule * words + byte / 8] |= u64::from(at(rule, byte)) << (8 * (byte % 8));
                masks[rule * words + byte / 8] |= 0xff << (8 * (byte % 8));
            }
        }
        (values, masks)
    }

    #[test]
    fn the_bytes_that_distinguish_rules_are_found_best_first() {
        let byte = |at: usize| Byte { word: (at / 8) as u8, shift: 8 * (at % 8) as u8 };
        for words in [1, 2, 3] {
            for own in 0..8 * words {
                let (values, masks) = rules(words, &[own], |rule, _| rule as u8);
                assert_eq!(Byte::best(words, &values, &masks), [byte(own)], "byte {own} of {words} words");
                // Each byte takes more values than the one before.
                let bytes: Vec<usize> = (0..=own).collect();
                let kinds = |byte: usize| if byte == 0 { 1 } else { 1 + byte };
                let (values, masks) = rules(words, &bytes, |rule, byte| (rule % kinds(byte)) as u8);
                let right: Vec<Byte> = (1..=own).rev().take(8).map(byte).collect();
                assert_eq!(Byte::best(words, &values, &masks), right, "{own} bytes of {words} words");
            }
        }
    }

    #[test]
    fn bytes_are_chosen_from_a_sample_spread_over_all_rules() {
        // Rules whose numbers are multiples of `step` differ in the second byte, and others in the first.
        for (len, step, seen) in [(512, 2, 2), (513, 2, 1), (1_024, 2, 1), (1_025, 2, 2), (1_025, 3, 1)] {
            let value = |rule: u64| (rule & 0xff) << if rule.is_multiple_of(step) { 8 } else { 0 };
            let values: Vec<u64> = (0..len).map(value).collect();
            let best = Byte::best(1, &values, &vec![0xffff; values.len()]);
            assert!(best.contains(&Byte { word: 0, shift: 8 }), "{len} rules: {best:?}");
            assert_eq!(best.len(), seen, "{len} rules, multiples of {step}");
        }
    }

    /// If all rules of a base have different priorities, each set covers one 64th of the rules. An addition
    /// that does not beat a rule may be reported only if its priority is at most one set's width lower.
    #[test]
    fn the_sets_before_a_slot_have_all_additions_that_beat_it() {
        for each in [1, 3, 16] {
            let len = 64 * each;
            // Slot `s` has the priority 2 * (len - s). Additions also have the odd priorities in between.
            let priorities: Vec<u16> = (0..len).map(|slot| 2 * (len - slot) as u16).collect();
            let ranks = Ranks::new(&priorities);
            for priority in 0..=2 * len as u16 + 1 {
                let set = ranks.set_of(priority);
                assert_eq!(
                    ranks.sets_before(NONE) >> set & 1,
                    1,
                    "a key without a rule of the base may match any addition"
                );
                for (slot, of_slot) in (0..).zip(&priorities) {
                    let may_beat = ranks.sets_before(slot) >> set & 1 != 0;
                    if priority > *of_slot {
                        assert!(may_beat, "{priority} beats {of_slot}, {len} rules");
                    } else if priority + 2 * (each as u16) < *of_slot {
                        assert!(!may_beat, "{priority} does not beat {of_slot}, {len} rules");
                    }
                }
            }
        }
    }

    #[test]
    fn keys_without_a_byte_that_distinguishes_rules() {
        assert!(Byte::best(0, &[], &[]).is_empty());
        assert!(Byte::best(1, &[5, 5], &[7, 7]).is_empty());
        assert_eq!(BitVectorFilter::new(&[], &Ranks::new(&[])).marks(&[3], 1, &[0]), 1);
    }
}
