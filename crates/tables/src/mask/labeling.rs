// SPDX-License-Identifier: Apache-2.0
//! Control side: which values of a chunk the same rules suit, and the vector of each such set of values.

use super::labels::Whole;
use super::simd::{CHUNK_BITS, CHUNKS_MAX, Chunk, LINE_BITS, Line};
use crate::hash::Seed;
use std::collections::BTreeMap;

/// Lines of all vectors: what hostile rules can take.
const LINES_MAX: usize = 1 << 17;

/// Values that are looked at while labels are made, all rules together.
const STEPS_MAX: usize = 1 << 26;

/// Labels as they are made.
pub(super) struct Making {
    pub wholes: Vec<Whole>,
    pub chunks: Vec<Chunk>,
    pub lines: Vec<Line>,
    /// Lines of a vector.
    pub length: usize,
}

impl Making {
    /// For rules of these slots, in order of precedence, of rows of `dense` values and as many masks; none if they would
    /// take too much memory or time.
    pub fn new(slots: &[u32], rows: &[u64], dense: usize) -> Option<Self> {
        let length = slots.len().div_ceil(LINE_BITS as usize);
        let mut made = Self { wholes: Vec::new(), chunks: Vec::new(), lines: Vec::new(), length };
        let mut steps = STEPS_MAX;
        for word in 0..dense {
            let of = |slot: &u32| {
                let at = *slot as usize * 2 * dense + word;
                (rows[at], rows[at + dense])
            };
            let asked: Vec<(u64, u64)> = slots.iter().map(of).collect();
            let all = asked.iter().fold(0, |all, (_, mask)| all | mask);
            if all.count_ones() > 24 && asked.iter().all(|(_, mask)| *mask == 0 || *mask == all) {
                made.whole(word, all, &asked)?;
                continue;
            }
            for shift in (0..64).step_by(CHUNK_BITS as usize) {
                let part = |bits: u64| bits >> shift & ((1 << CHUNK_BITS) - 1);
                if part(all) != 0 {
                    let asked: Vec<(u64, u64)> = asked.iter().map(|(v, m)| (part(*v), part(*m))).collect();
                    made.direct(word, shift, part(all), &asked, &mut steps)?;
                }
            }
        }
        Some(made)
    }

    /// The rules, by what they ask for.
    fn pairs(&self, asked: &[(u64, u64)]) -> Vec<((u64, u64), Vec<Line>)> {
        let mut pairs: BTreeMap<(u64, u64), Vec<Line>> = BTreeMap::new();
        for (bit, (value, mask)) in asked.iter().enumerate() {
            let vector = pairs.entry((*mask, *value)).or_insert_with(|| vec![Line([0; 8]); self.length]);
            vector[bit / 512].0[bit / 64 % 8] |= 1 << (bit % 64);
        }
        pairs.into_iter().collect()
    }

    fn whole(&mut self, word: usize, mask: u64, asked: &[(u64, u64)]) -> Option<()> {
        let pairs = self.pairs(asked);
        let base = self.lines.len() as u32;
        let open = match pairs.first() {
            Some(((0, _), vector)) => vector.clone(),
            _ => vec![Line([0; 8]); self.length],
        };
        self.lines.extend_from_slice(&open);
        let size = (4 * pairs.len()).next_power_of_two();
        let mut labels = vec![(0u64, 0u64); size].into_boxed_slice();
        let multiplier = Seed::of_process().hash_masked(&[mask]) | 1;
        let shift = 64 - size.trailing_zeros();
        for (label, ((_, value), vector)) in (1u64..).zip(pairs.iter().filter(|((mask, _), _)| *mask != 0)) {
            self.lines.extend(either(vector, &open));
            let mut at = (value.wrapping_mul(multiplier) >> shift) as usize;
            while labels[at].1 != 0 {
                at = (at + 1) % size;
            }
            labels[at] = (*value, label * self.length as u64);
        }
        self.wholes.push(Whole { word: word as u8, mask, base, multiplier, shift, labels });
        (self.lines.len() <= LINES_MAX && self.chunks.len() + self.wholes.len() <= CHUNKS_MAX).then_some(())
    }

    fn direct(
        &mut self,
        word: usize,
        shift: usize,
        mask: u64,
        asked: &[(u64, u64)],
        steps: &mut usize,
    ) -> Option<()> {
        let pairs = self.pairs(asked);
        let size = 1usize << (64 - mask.leading_zeros());
        let mut labels = Box::new([0u16; 1 << 16]);
        // Pair by pair a label is divided into the values that the pair suits and the others. Labels that are left
        // without values go at last.
        let mut vectors: Vec<Vec<Line>> = vec![vec![Line([0; 8]); self.length]];
        let mut counts = vec![size];
        // For each label the last pair that divided it, and the label of what the pair suits.
        let mut divided = vec![(usize::MAX, 0u16)];
        for (number, ((mask, value), vector)) in pairs.iter().enumerate() {
            let open = !mask & (size as u64 - 1);
            *steps = steps.checked_sub(1usize << open.count_ones())?;
            let mut more = 0u64;
            loop {
                let at = (value | more) as usize;
                let old = labels[at];
                let (by, known) = divided[usize::from(old)];
                let new = if by == number {
                    known
                } else {
                    let new = u16::try_from(vectors.len()).ok()?;
                    if vectors.len() * self.length > LINES_MAX {
                        return None;
                    }
                    vectors.push(either(&vectors[usize::from(old)], vector).collect());
                    counts.push(0);
                    divided.push((number, new));
                    divided[usize::from(old)] = (number, new);
                    new
                };
                labels[at] = new;
                counts[usize::from(old)] -= 1;
                counts[usize::from(new)] += 1;
                more = more.wrapping_sub(open) & open;
                if more == 0 {
                    break;
                }
            }
        }
        let base = self.lines.len() as u32;
        let mut names = vec![0u16; vectors.len()];
        let mut used = 0u16;
        for (label, vector) in vectors.iter().enumerate().filter(|(label, _)| counts[*label] > 0) {
            names[label] = used;
            used = used.checked_add(self.length as u16)?;
            self.lines.extend_from_slice(vector);
        }
        // Bits above those examined, which other rules may examine, change nothing.
        for at in 0..labels.len() {
            labels[at] = if at < size { names[usize::from(labels[at])] } else { labels[at % size] };
        }
        self.chunks.push(Chunk::new(word as u8, shift as u8, base, &labels));
        (self.lines.len() <= LINES_MAX && self.chunks.len() + self.wholes.len() <= CHUNKS_MAX).then_some(())
    }
}

fn either<'l>(a: &'l [Line], b: &'l [Line]) -> impl Iterator<Item = Line> + 'l {
    a.iter().zip(b).map(|(a, b)| Line(std::array::from_fn(|at| a.0[at] | b.0[at])))
}
