// SPDX-License-Identifier: Apache-2.0
//! Control side: chains of rules with the same value. Only the best rule of a value is hashed; the chain
//! leads to the others.

use crate::NONE;
use std::cmp::Ordering;

/// Average number of rules in the parts that are sorted separately.
const PART: usize = 4;

/// Best rule of each value, and the rules chained after it.
#[derive(Debug)]
pub struct Chains {
    /// Slots of the best rule of each value, in no particular order.
    pub firsts: Vec<u32>,
    /// For each slot, the next slot whose rule has the same value, or [`NONE`]. Empty if all values differ.
    pub later: Box<[u32]>,
}

impl Chains {
    /// Groups slots by value. `hashes` has the hash of each slot's value. `compare` is any total order of the
    /// values. Takes O(n log n) time for any hashes and values.
    #[must_use]
    pub fn new(hashes: &[u64], compare: impl Fn(u32, u32) -> Ordering) -> Self {
        let len = hashes.len();
        let bits = (len / PART).max(1).ilog2();
        let part = |hash: u64| (hash >> 32 << bits >> 32) as usize;
        let mut ends = vec![0u32; (1 << bits) + 1];
        for &hash in hashes {
            ends[part(hash) + 1] += 1;
        }
        for at in 1..ends.len() {
            ends[at] += ends[at - 1];
        }
        let mut order = vec![0u32; len];
        // `ends` has the start of each part, which the loop advances to the part's end.
        for (slot, &hash) in hashes.iter().enumerate() {
            let end = &mut ends[part(hash)];
            order[*end as usize] = slot as u32;
            *end += 1;
        }
        let mut made = Self { firsts: Vec::with_capacity(len), later: Box::default() };
        let by_value =
            |a: u32, b: u32| hashes[a as usize].cmp(&hashes[b as usize]).then_with(|| compare(a, b));
        let mut from = 0;
        for &end in &ends[..1 << bits] {
            let slots = &mut order[from..end as usize];
            from = end as usize;
            slots.sort_unstable_by(|&a, &b| by_value(a, b).then(a.cmp(&b)));
            for equal in slots.chunk_by(|&a, &b| by_value(a, b).is_eq()) {
                made.firsts.push(equal[0]);
                for pair in equal.windows(2) {
                    if made.later.is_empty() {
                        made.later = vec![NONE; len].into();
                    }
                    made.later[pair[0] as usize] = pair[1];
                }
            }
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_rule_of_a_value_leads_to_the_others_whatever_the_hashes() {
        let values = [5, 6, 5, 7, 6, 5];
        let spread = values.map(|value: u64| value.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for hashes in [spread, values, [1; 6]] {
            let chains = Chains::new(&hashes, |a, b| values[a as usize].cmp(&values[b as usize]));
            let mut firsts = chains.firsts.clone();
            firsts.sort_unstable();
            assert_eq!(firsts, [0, 1, 3]);
            assert_eq!(*chains.later, [2, 4, 5, NONE, NONE, NONE]);
        }
        assert!(Chains::new(&[3, 4], |a, b| a.cmp(&b)).later.is_empty());
        assert!(Chains::new(&[], |a, b| a.cmp(&b)).firsts.is_empty());
    }
}
