// SPDX-License-Identifier: Apache-2.0
//! The rules that match a value, from the first one of its longest prefix on: equal prefixes, then shorter ones. Dead
//! rules and priorities that contradict lengths cost steps on this chain, not correctness.

use crate::{BitSet, NONE};

/// See above.
#[derive(Debug)]
pub(super) struct Chains {
    /// For each rule the first one of the next shorter prefix that contains its own.
    pub up: Vec<u32>,
    /// For each rule the next one of the same prefix; empty if there are no two of one.
    pub equal: Vec<u32>,
    /// For each first rule of a prefix the best of its chain; empty if that is always the rule itself.
    pub best: Vec<u32>,
}

impl Chains {
    /// Whether the first rule of each chain is its best that is not dead.
    #[inline]
    pub fn are_plain(&self, dead: &BitSet) -> bool {
        self.best.is_empty() && dead.is_empty()
    }

    /// The best rule of a chain that is not dead.
    #[inline]
    pub fn living(&self, first: u32, dead: &BitSet) -> u32 {
        if first == NONE {
            return NONE;
        }
        let best = self.best.get(first as usize).copied().unwrap_or(first);
        if dead.is_empty() || !dead.contains(best) {
            return best;
        }
        let mut found = NONE;
        let mut prefix = first;
        while prefix != NONE {
            // Of equal prefixes the first that lives is the best.
            let mut slot = prefix;
            while slot < found && dead.contains(slot) {
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

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        (self.up.len() + self.equal.len() + self.best.len()) * 4
    }
}
