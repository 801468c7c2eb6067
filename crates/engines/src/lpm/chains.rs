// SPDX-License-Identifier: Apache-2.0
//! Chains of the rules that match a value: from the first rule of its longest prefix through equal prefixes
//! to shorter ones. Lookups walk a chain only if its best rule is deleted.

use crate::{BitSet, NONE};

/// Chains of all prefixes.
#[derive(Debug)]
pub(super) struct Chains {
    /// For each rule, the first rule of the next shorter prefix that contains the rule's prefix.
    pub up: Vec<u32>,
    /// For each rule, the next rule with the same prefix. Empty if all prefixes differ.
    pub equal: Vec<u32>,
    /// For the first rule of each prefix, the best rule of its chain. Empty if this is always the first rule.
    pub best: Vec<u32>,
}

impl Chains {
    /// Returns whether the first rule of each chain is the result: no rule is deleted, and priorities follow
    /// lengths.
    #[inline]
    pub fn are_plain(&self, tombstones: &BitSet) -> bool {
        self.best.is_empty() && tombstones.is_empty()
    }

    /// Returns the best rule of a chain that is not deleted, or [`NONE`].
    #[inline]
    pub fn living(&self, first: u32, tombstones: &BitSet) -> u32 {
        if first == NONE {
            return NONE;
        }
        let best = self.best.get(first as usize).copied().unwrap_or(first);
        if tombstones.is_empty() || !tombstones.contains(best) {
            return best;
        }
        let mut found = NONE;
        let mut prefix = first;
        while prefix != NONE {
            // Equal prefixes are in order of precedence.
            let mut slot = prefix;
            while slot < found && tombstones.contains(slot) {
                slot = self.equal.get(slot as usize).copied().unwrap_or(NONE);
            }
            if slot < found {
                found = slot;
                if self.best.is_empty() {
                    break;
                }
            }
            prefix = self.up[prefix as usize];
        }
        found
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        (self.up.len() + self.equal.len() + self.best.len()) * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_continues_after_deleted_rules_to_equal_and_shorter_prefixes() {
        // Rules 2, 4 and 5 share a prefix within the prefix of rules 0 and 3, which is within that of rule 1.
        let mut chains = Chains {
            up: vec![1, NONE, 0, 1, 0, 0],
            equal: vec![3, NONE, 4, NONE, 5, NONE],
            best: vec![0, 1, 0, 1, 0, 0],
        };
        let living = |chains: &Chains, tombstones: &[u32]| {
            let mut set = BitSet::new(6);
            tombstones.iter().for_each(|slot| set.insert(*slot));
            chains.living(2, &set)
        };
        assert_eq!(living(&chains, &[]), 0);
        assert_eq!(
            living(&chains, &[0]),
            1,
            "rule 3, with the same prefix as rule 0, is skipped because rule 1 is better"
        );
        assert_eq!(living(&chains, &[0, 1]), 2);
        assert_eq!(living(&chains, &[0, 1, 2]), 3);
        assert_eq!(living(&chains, &[0, 1, 2, 3]), 4);
        assert_eq!(living(&chains, &[0, 1, 2, 3, 4]), 5);
        assert_eq!(living(&chains, &[0, 1, 2, 3, 4, 5]), NONE);
        assert_eq!(chains.living(NONE, &BitSet::new(6)), NONE);
        assert!(!chains.are_plain(&BitSet::new(6)));
        assert_eq!(chains.bytes(), 18 * 4);
        // Without `best`, longer prefixes have precedence.
        chains.best.clear();
        assert!(chains.are_plain(&BitSet::new(6)));
        assert_eq!((living(&chains, &[]), living(&chains, &[2]), living(&chains, &[2, 4, 5])), (2, 4, 0));
        assert_eq!(chains.bytes(), 12 * 4);
        chains.equal.truncate(5);
        assert_eq!(chains.bytes(), 11 * 4);
    }
}
