// SPDX-License-Identifier: Apache-2.0
//! Up to a few thousand rules as bit vectors: for each chunk of a dense key and each value of it a label, for each label
//! the rules that the value suits, one bit each, best first. The chunks' vectors taken together leave the rules that a
//! key matches, and the first bit is the best of them.
//!
//! A dense word that rules examine as a whole or not at all (an interface identifier) is no chunks but one hashed value.

use super::layout::{DENSE_MAX, Group};
use super::simd::{CHUNK_BITS, CHUNKS_MAX, Chunk, Kernel, LINE_BITS, Line, Vectors};
use crate::BitSet;
use crate::hash::Seed;
use std::collections::HashMap;

/// Rules at most.
const RULES_MAX: usize = 8 * LINE_BITS as usize;

/// Lines of all vectors: what hostile rules can take.
const LINES_MAX: usize = 1 << 17;

/// Values that are looked at while labels are made, all rules together.
const STEPS_MAX: usize = 1 << 26;

/// A dense word that rules examine as a whole or not at all.
#[derive(Debug)]
struct Whole {
    word: u8,
    /// Its bits that rules examine.
    mask: u64,
    /// First line of its vectors.
    base: u32,
    multiplier: u64,
    shift: u32,
    /// A value and its vector's first line behind `base`, which is not 0; at 0 is that of all other values.
    labels: Box<[(u64, u64)]>,
}

/// Rules of any masks.
#[derive(Debug)]
pub(super) struct Labels {
    wholes: Vec<Whole>,
    vectors: Vectors,
    /// Each bit's slot.
    slots: Vec<u32>,
}

/// Labels as they are made.
struct Making {
    wholes: Vec<Whole>,
    chunks: Vec<Chunk>,
    lines: Vec<Line>,
    /// Lines of a vector.
    length: usize,
}

impl Labels {
    /// For rules of these slots, in order of precedence, of rows of `dense` values and as many masks; none if they would
    /// take too much memory.
    pub fn new(slots: &[u32], rows: &[u64], dense: usize) -> Option<Self> {
        if slots.is_empty() || slots.len() > RULES_MAX {
            return None;
        }
        let length = slots.len().div_ceil(LINE_BITS as usize);
        let mut made = Making { wholes: Vec::new(), chunks: Vec::new(), lines: Vec::new(), length };
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
        let vectors = Vectors::new(made.chunks, made.lines, length as u32)?;
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
        self.vectors.lookup(kernel, keys, len, self.wholes.len(), others, wanted, |at, bit| {
            slots[at] = slots[at].min(self.slots[bit as usize]);
        });
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let wholes: usize = self.wholes.iter().map(|whole| whole.labels.len() * 16).sum();
        wholes + self.vectors.bytes() + self.slots.len() * 4
    }
}

impl Making {
    /// The rules, by what they ask for.
    fn pairs(&self, asked: &[(u64, u64)]) -> Vec<((u64, u64), Vec<Line>)> {
        let mut pairs: HashMap<(u64, u64), Vec<Line>> = HashMap::new();
        for (bit, (value, mask)) in asked.iter().enumerate() {
            let vector = pairs.entry((*mask, *value)).or_insert_with(|| vec![Line([0; 8]); self.length]);
            vector[bit / 512].0[bit / 64 % 8] |= 1 << (bit % 64);
        }
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        pairs.sort_unstable_by_key(|(pair, _)| *pair);
        pairs
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

fn either<'l>(a: &'l [Line], b: &'l [Line]) -> impl Iterator<Item = Line> + 'l {
    a.iter().zip(b).map(|(a, b)| Line(std::array::from_fn(|at| a.0[at] | b.0[at])))
}
