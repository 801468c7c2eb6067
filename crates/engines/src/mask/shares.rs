// SPDX-License-Identifier: Apache-2.0
//! Control side: finds the rules that can no longer win. It compares the rest of each rule, which the joined
//! sources do not examine.

use super::layout::Dense;
use super::simd::Line;
use std::collections::HashMap;

/// Maximum number of different rests of rules (the bits that the joined sources do not examine). With more,
/// no rules are removed, because comparing them costs too much.
const SHARES_MAX: usize = 512;

/// Rules in order of precedence. `rows` has `dense` words of values and `dense` words of masks for each slot.
#[derive(Clone, Copy)]
pub(super) struct Ranked<'r> {
    pub slots: &'r [u32],
    pub rows: &'r [u64],
    pub dense: usize,
}

impl<'r> Ranked<'r> {
    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    fn row(&self, bit: usize) -> (&'r [u64], &'r [u64]) {
        self.rows[self.slots[bit] as usize * 2 * self.dense..][..2 * self.dense].split_at(self.dense)
    }

    /// Returns whether every key that matches the rest of rule `other` also matches the rest of rule `bit`.
    fn hides(&self, bit: usize, other: usize, covered: &Dense) -> bool {
        let ((values, masks), (others, other_masks)) = (self.row(bit), self.row(other));
        (0..self.dense).all(|word| {
            let left = masks[word] & !covered[word];
            left & !other_masks[word] == 0 && (values[word] ^ others[word]) & left == 0
        })
    }
}

/// Rests of rules (the bits not yet covered), and which rests hide other rests.
pub(super) struct Shares {
    /// For each rule, the number of its rest.
    numbers: Vec<u32>,
    /// For each rest, a bitmap of the rests that hide it.
    hiding: Vec<u64>,
    words: usize,
}

impl Shares {
    /// Computes the rests. Returns `None` if there are too many of them.
    pub fn new(rules: Ranked, covered: &Dense) -> Option<Self> {
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        let mut firsts = Vec::new();
        let mut numbers = Vec::new();
        for bit in 0..rules.len() {
            let (values, masks) = rules.row(bit);
            let left = masks.iter().zip(covered).map(|(mask, covered)| mask & !covered);
            let share = left.clone().zip(values).map(|(mask, value)| mask & value).chain(left).collect();
            let next = firsts.len() as u32;
            let number = *known.entry(share).or_insert(next);
            if number == next {
                firsts.push(bit);
            }
            if firsts.len() > SHARES_MAX {
                return None;
            }
            numbers.push(number);
        }
        let words = firsts.len().div_ceil(64);
        let mut hiding = vec![0u64; firsts.len() * words];
        for (share, bit) in firsts.iter().enumerate() {
            let hides = |first: &usize| rules.hides(*first, *bit, covered);
            for (other, _) in firsts.iter().enumerate().filter(|(_, first)| hides(first)) {
                hiding[share * words + other / 64] |= 1 << (other % 64);
            }
        }
        Some(Self { numbers, hiding, words })
    }

    /// Removes from a vector the rules that can never win. Returns the number of rules examined.
    pub fn hide(&self, vector: &mut [Line]) -> usize {
        let mut seen = vec![0u64; self.words];
        let mut count = 0;
        let words = vector.iter_mut().flat_map(|line| &mut line.0);
        for (word, rules) in words.zip(self.numbers.chunks(64)) {
            let mut left = *word;
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                count += 1;
                let share = rules[bit as usize] as usize;
                let hiding = &self.hiding[share * self.words..][..self.words];
                if seen.iter().zip(hiding).any(|(seen, hiding)| seen & hiding != 0) {
                    *word &= !(1 << bit);
                } else {
                    seen[share / 64] |= 1 << (share % 64);
                }
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn only_rules_hidden_by_an_earlier_rule_are_removed() {
        let mut rng = Rng::with_seed(1);
        let mut taken = [0, 0];
        for _ in 0..100 {
            // Draws 150 rules of a few bits each, in every second slot, and the part of the key already
            // covered.
            let draw = |rng: &mut Rng| {
                let masks = [rng.u64(..) & rng.u64(..) & 0xff, rng.u64(..) & rng.u64(..) & 0xff];
                [rng.u64(..) & masks[0], rng.u64(..) & masks[1], masks[0], masks[1]]
            };
            let rows: Vec<u64> = (0..300).flat_map(|_| draw(&mut rng)).collect();
            let slots: Vec<u32> = (0..150).map(|at| 2 * at + 1).collect();
            let row = |bit: usize| &rows[slots[bit] as usize * 4..][..4];
            let mut covered = [0; 8];
            covered[0] = rng.u64(..) & 0x3f;
            covered[1] = rng.u64(..) & 0x3f;
            let hides = |first: usize, bit: usize| {
                (0..2).all(|word| {
                    let left = |bit: usize| row(bit)[2 + word] & !covered[word];
                    left(first) & !left(bit) == 0 && (row(first)[word] ^ row(bit)[word]) & left(first) == 0
                })
            };
            let shares = Shares::new(Ranked { slots: &slots, rows: &rows, dense: 2 }, &covered).unwrap();
            let before: [u64; 3] = [rng.u64(..), rng.u64(..), rng.u64(..) & ((1 << 22) - 1)];
            let mut vector = [Line([0; 8])];
            vector[0].0[..3].copy_from_slice(&before);
            let looked_at = shares.hide(&mut vector);
            assert_eq!(looked_at as u32, before.iter().map(|word| word.count_ones()).sum::<u32>());
            let has = |words: &[u64], bit: usize| words[bit / 64] >> (bit % 64) & 1 != 0;
            for bit in 0..150 {
                let hidden = (0..bit).any(|first| has(&before, first) && hides(first, bit));
                let expected = has(&before, bit) && !hidden;
                assert_eq!(has(&vector[0].0, bit), expected, "rule {bit}");
                taken[usize::from(hidden)] += 1;
            }
        }
        assert!(taken.iter().all(|count| *count > 1_000), "{taken:?}");
    }

    #[test]
    fn there_are_at_most_512_different_rests() {
        for (kinds, some) in [(512, true), (513, false)] {
            let slots: Vec<u32> = (0..600).collect();
            let rows: Vec<u64> = slots.iter().flat_map(|slot| [u64::from(slot % kinds), 0xffff]).collect();
            let ranked = Ranked { slots: &slots, rows: &rows, dense: 1 };
            assert_eq!(Shares::new(ranked, &[0; 8]).is_some(), some, "{kinds} rests");
            let mut covered = [0; 8];
            covered[0] = 0xff00;
            assert!(Shares::new(ranked, &covered).is_some(), "covered bits do not distinguish rests");
        }
    }
}
