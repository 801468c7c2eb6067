// SPDX-License-Identifier: Apache-2.0
//! Active rules of a vector, one line at a time.

use super::simd::{Kernel, LINE_BITS, Line};
use crate::BitSet;

/// Slots whose tombstones are in the same word. Their bits become the next bits of a line.
#[derive(Clone, Copy, Debug)]
struct Piece {
    word: u32,
    mask: u64,
}

/// For each line, the positions of its rules' bits in the tombstones.
#[derive(Debug)]
pub(super) struct Living {
    pieces: Vec<Piece>,
    /// Index of the first piece of each line, followed by the number of pieces.
    lines: Vec<u32>,
}

impl Living {
    /// Creates the positions for a vector, given the slot of each bit in ascending order.
    pub fn new(slots: &[u32]) -> Self {
        let mut made = Self { pieces: Vec::new(), lines: vec![0] };
        for slots in slots.chunks(LINE_BITS as usize) {
            for slots in slots.chunk_by(|slot, next| slot / 64 == next / 64) {
                let mask = slots.iter().fold(0, |mask, slot| mask | 1 << (slot % 64));
                made.pieces.push(Piece { word: slots[0] / 64, mask });
            }
            made.lines.push(made.pieces.len() as u32);
        }
        made
    }

    /// Returns a bitmap of the active rules of a line.
    #[inline(always)]
    pub fn line<K: Kernel>(&self, kernel: K, line: u32, tombstones: &BitSet) -> Line {
        let line = line as usize;
        let pieces = match (self.lines.get(line), self.lines.get(line + 1)) {
            (Some(from), Some(to)) => &self.pieces[*from as usize..*to as usize],
            _ => &[],
        };
        let (mut bits, mut at) = ([0u64; 8], 0);
        for Piece { word, mask } in pieces {
            let living = kernel.extract(!tombstones.word(*word), *mask);
            // A line has all bits of its pieces, so the index does not wrap.
            let (word, shift) = (at / 64 % 8, at % 64);
            bits[word] |= living << shift;
            if shift > 0 {
                bits[(word + 1) % 8] |= living >> (64 - shift);
            }
            at += mask.count_ones() as usize;
        }
        Line(bits)
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        self.pieces.len() * size_of::<Piece>() + self.lines.len() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::super::simd::Portable;
    use super::*;
    use fastrand::Rng;

    #[test]
    fn each_bit_shows_whether_its_slot_is_active() {
        let mut rng = Rng::with_seed(1);
        for (count, step) in [(1, 1), (64, 1), (512, 1), (513, 1), (4_096, 1), (700, 3), (4_000, 90)] {
            let mut slot = 0;
            let slots: Vec<u32> = std::iter::repeat_with(|| {
                slot += rng.u32(1..=step);
                slot - 1
            })
            .take(count)
            .collect();
            let living = Living::new(&slots);
            let mut tombstones = BitSet::new(slot as usize);
            (0..slot).filter(|_| rng.u8(..3) == 0).for_each(|slot| tombstones.insert(slot));
            for (bit, slot) in slots.iter().enumerate() {
                let line = living.line(Portable, bit as u32 / LINE_BITS, &tombstones);
                assert_eq!(
                    line.0[bit / 64 % 8] >> (bit % 64) & 1 == 0,
                    tombstones.contains(*slot),
                    "bit {bit}"
                );
            }
            let last = living.line(Portable, (count as u32 - 1) / LINE_BITS, &tombstones);
            let ones: u32 = last.0.iter().map(|word| word.count_ones()).sum();
            assert!(
                ones as usize <= (count - 1) % LINE_BITS as usize + 1,
                "no bit is set after the last rule"
            );
            assert_eq!(living.line(Portable, 8, &tombstones).0, [0; 8]);
        }
    }

    #[test]
    fn the_memory_size_is_reported() {
        // A piece of 64 slots takes 16 bytes, and each line takes the index of its first piece.
        let slots: Vec<u32> = (0..1_024).collect();
        assert_eq!(Living::new(&slots).bytes(), 16 * 16 + 3 * 4);
    }
}
