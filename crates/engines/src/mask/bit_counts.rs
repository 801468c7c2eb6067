// SPDX-License-Identifier: Apache-2.0
//! Control side: counts in how many words each bit is set. The 64 counters are stored vertically: plane n
//! holds bit n of all counters. On average, adding a word changes two planes.

/// Number of planes, and of bits of a vertical counter. The counters are added to the sums before they
/// overflow.
const PLANES: usize = 8;

/// Number of words in which each bit is set.
#[derive(Clone, Debug)]
pub(super) struct BitCounts {
    planes: [u64; PLANES],
    /// Number of words in the planes.
    added: u32,
    sums: [u64; 64],
}

impl Default for BitCounts {
    fn default() -> Self {
        Self { planes: [0; PLANES], added: 0, sums: [0; 64] }
    }
}

impl BitCounts {
    /// Adds a word.
    #[inline]
    pub fn add(&mut self, word: u64) {
        let mut carry = word;
        for plane in &mut self.planes {
            if carry == 0 {
                break;
            }
            (*plane, carry) = (*plane ^ carry, *plane & carry);
        }
        self.added += 1;
        if self.added == (1 << PLANES) - 1 {
            self.add_planes();
        }
    }

    fn add_planes(&mut self) {
        for (plane, weight) in self.planes.iter().zip((0..).map(|at| 1 << at)) {
            let mut left: u64 = *plane;
            while left != 0 {
                self.sums[left.trailing_zeros() as usize] += weight;
                left &= left - 1;
            }
        }
        self.planes = [0; PLANES];
        self.added = 0;
    }

    /// Returns the number of words in which each bit is set.
    pub fn finish(mut self) -> [u64; 64] {
        self.add_planes();
        self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    #[test]
    fn bits_are_counted_in_any_number_of_words() {
        let mut rng = Rng::with_seed(1);
        for count in [0, 1, 2, 3, 254, 255, 256, 511, 10_000] {
            let dense = rng.u64(..);
            let words: Vec<u64> = (0..count).map(|_| rng.u64(..) & rng.u64(..) | dense).collect();
            let mut counts = BitCounts::default();
            words.iter().for_each(|word| counts.add(*word));
            let right: Vec<u64> =
                (0..64).map(|bit| words.iter().filter(|word| *word >> bit & 1 == 1).count() as u64).collect();
            assert_eq!(counts.finish()[..], right[..], "{count} words");
        }
    }
}
