// SPDX-License-Identifier: Apache-2.0
//! Up to a few thousand rules as bit vectors: for each chunk of a dense key and each value of it a label, for each label
//! the rules that the value suits, one bit each, best first. The chunks' vectors taken together leave the rules that a
//! key matches, and the first bit is the best of them.
//!
//! A dense word that rules examine as a whole or not at all (an interface identifier) is no chunks but one hashed value.

use super::labeling::Making;
use super::layout::{DENSE_MAX, Group};
use super::simd::{Kernel, LINE_BITS, Vectors};
use crate::BitSet;

/// Rules at most.
const RULES_MAX: usize = 8 * LINE_BITS as usize;

/// A dense word that rules examine as a whole or not at all.
#[derive(Debug)]
pub(super) struct Whole {
    pub word: u8,
    /// Its bits that rules examine.
    pub mask: u64,
    /// First line of its vectors.
    pub base: u32,
    /// What a value's hash is made with.
    pub multiplier: u64,
    pub shift: u32,
    /// A value and its vector's first line behind `base`, which is not 0; at 0 is that of all other values.
    pub labels: Box<[(u64, u64)]>,
}

/// Rules of any masks.
#[derive(Debug)]
pub(super) struct Labels {
    wholes: Vec<Whole>,
    vectors: Vectors,
    /// Each bit's slot.
    slots: Vec<u32>,
}

impl Labels {
    /// For rules of these slots, in order of precedence, of rows of `dense` values and as many masks; none if they would
    /// take too much memory.
    pub fn new(slots: &[u32], rows: &[u64], dense: usize) -> Option<Self> {
        if slots.is_empty() || slots.len() > RULES_MAX {
            return None;
        }
        let made = Making::new(slots, rows, dense)?;
        let vectors = Vectors::new(made.chunks, made.lines, made.length as u32)?;
        Some(Self { wholes: made.wholes, vectors, slots: slots.into() })
    }

    /// For each key the best living rule that it matches, if it beats what is in `slots`.
    #[inline(always)]
    pub fn lookup<K: Kernel, const G: usize>(
        &self,
        kernel: K,
        keys: &Group<G>,
        dead: &BitSet,
        slots: &mut [u32],
    ) {
        let others = |nth: usize, at: usize| {
            self.wholes.get(nth).map_or(0, |whole| whole.start(keys[usize::from(whole.word) % DENSE_MAX][at]))
        };
        let wanted = |bit: u32| dead.is_empty() || !dead.contains(self.slots[bit as usize]);
        let len = slots.len();
        self.vectors.lookup(kernel, (keys, len), self.wholes.len(), others, wanted, |at, bit| {
            slots[at] = slots[at].min(self.slots[bit as usize]);
        });
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let wholes: usize = self.wholes.iter().map(|whole| whole.labels.len() * 16).sum();
        wholes + self.vectors.bytes() + self.slots.len() * 4
    }
}

impl Whole {
    #[inline(always)]
    fn start(&self, value: u64) -> u32 {
        let value = value & self.mask;
        let mut at = (value.wrapping_mul(self.multiplier) >> self.shift) as usize;
        while let Some(&(other, label)) = self.labels.get(at).filter(|(_, label)| *label != 0) {
            if other == value {
                return self.base + label as u32;
            }
            at = (at + 1) % self.labels.len();
        }
        self.base
    }
}
