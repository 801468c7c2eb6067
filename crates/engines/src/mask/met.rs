// SPDX-License-Identifier: Apache-2.0
//! Control side: set of vectors, each stored once and numbered by a label.

use super::simd::Line;
use crate::hash::{Hashed, Seed};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// Maximum number of labels.
const LABELS_MAX: usize = 1 << 14;

/// Vectors of `length` lines each. The label of a vector is its index.
pub(super) struct Met {
    pub length: usize,
    /// Lines of all vectors, in the order of their labels.
    pub lines: Vec<Line>,
    /// Secret for the hash of each word of a vector.
    secrets: Vec<u64>,
    /// Labels by hash. If another vector has the same hash, the label of the later vector is stored under
    /// the next free hash.
    known: HashMap<u64, u16, BuildHasherDefault<Hashed>>,
}

impl Met {
    pub fn new(length: usize) -> Self {
        let seed = Seed::of_process();
        let secrets = (0..8 * length as u64).map(|at| seed.derive(at) | 1).collect();
        Self { length, lines: Vec::new(), secrets, known: HashMap::default() }
    }

    /// Returns the number of vectors.
    pub fn count(&self) -> usize {
        self.lines.len() / self.length
    }

    /// Returns a word's contribution to the hash of its vector. It is 0 for a word of 0.
    pub fn hash(&self, at: usize, word: u64) -> u64 {
        let wide = u128::from(word) * u128::from(self.secrets[at]);
        wide as u64 ^ (wide >> 64) as u64
    }

    /// Returns the label of a vector with this hash, and stores the vector if it is new. Returns `None` if
    /// there are too many vectors.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_vectors_have_one_label_whatever_their_hashes() {
        let vector = |value: u64| [Line([0; 8]), Line([value; 8])];
        for hash in [|value: u64| value, |_| 7] {
            let mut met = Met::new(2);
            for round in 0..2 {
                for value in 0..20 {
                    assert_eq!(met.label(hash(value), &vector(value)), Some(value as u16), "round {round}");
                }
            }
            assert_eq!(met.count(), 20);
            assert_eq!((met.lines[2 * 3].0, met.lines[2 * 3 + 1].0), ([0; 8], [3; 8]));
        }
    }

    #[test]
    fn there_are_at_most_16384_labels() {
        let mut met = Met::new(1);
        let label = |met: &mut Met, value: u64| met.label(value, &[Line([value; 8])]);
        for value in 0..1 << 14 {
            assert_eq!(label(&mut met, value), Some(value as u16));
        }
        assert_eq!(label(&mut met, 1 << 14), None);
        assert_eq!(label(&mut met, 5), Some(5), "known vectors are found at the limit");
    }

    #[test]
    fn the_hash_of_a_word_depends_on_its_position() {
        let met = Met::new(2);
        let hashes: std::collections::HashSet<u64> = (0..16).map(|at| met.hash(at, 3)).collect();
        assert_eq!(hashes.len(), 16);
        assert!((0..16).all(|at| met.hash(at, 0) == 0), "words of 0 contribute nothing");
    }
}
