// SPDX-License-Identifier: Apache-2.0
//! Control side: vectors that come of others, each of them once.

use super::simd::Line;
use crate::hash::{Hashed, Seed};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Labels at most.
const LABELS_MAX: usize = 1 << 14;

/// Vectors of `length` lines and their labels, which are counted from 0.
pub(super) struct Met {
    pub length: usize,
    pub lines: Vec<Line>,
    /// For each word what it is hashed with.
    secrets: Vec<u64>,
    /// Labels by hashes; where two vectors have the same, one stands at the next number.
    known: HashMap<u64, u16, BuildHasherDefault<Hashed>>,
}

impl Met {
    pub fn new(length: usize) -> Self {
        let seed = Seed::of_process();
        let secrets = (0..8 * length as u64).map(|at| seed.derive(at) | 1).collect();
        Self { length, lines: Vec::new(), secrets, known: HashMap::default() }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lines.len() / self.length
    }

    /// What a word adds to the hash of its vector: nothing if it is 0.
    pub fn hash(&self, at: usize, word: u64) -> u64 {
        let wide = u128::from(word) * u128::from(self.secrets[at]);
        wide as u64 ^ (wide >> 64) as u64
    }

    /// The label of a vector with this hash, a new one if it has none; none if there are too many.
    pub fn label(&mut self, mut hash: u64, vector: &[Line]) -> Option<u16> {
        while let Some(label) = self.known.get(&hash) {
            let known = &self.lines[usize::from(*label) * self.length..][..self.length];
            if known.iter().zip(vector).all(|(known, line)| known.0 == line.0) {
                return Some(*label);
            }
            hash = hash.wrapping_add(1);
        }
        if self.count() == LABELS_MAX {
            return None;
        }
        let label = self.count() as u16;
        self.known.insert(hash, label);
        self.lines.extend_from_slice(vector);
        Some(label)
    }
}
