// SPDX-License-Identifier: Apache-2.0
//! The bits of a key that tell rules apart, close together: what trees cut and leaves compare.
//!
//! A bit that no rule examines is left out. Bits that the same rules examine, all with one value (an `EtherType`, a
//! prefix that a whole table lies in, the presence of a header), count as one: whether they all have that value. The
//! others are ranked by how many pairs of rules they tell apart, so that the first dense words hold the best.

use super::simd::{COMPARED, Kernel, Portable};

/// Words of a dense key.
pub(super) const DENSE_MAX: usize = 8;

/// Bits of one word that the same rules examine with one value become one bit if they are at least as many.
const COMMON_MIN: u32 = 3;

/// A dense key; words that a table does not use are 0.
pub(super) type Dense = [u64; DENSE_MAX];

/// The dense keys of a group, word by word.
pub(super) type Group<const G: usize> = [[u64; G]; DENSE_MAX];

/// Bits of a key word that stand in a dense word, in their order.
#[derive(Clone, Copy, Debug)]
struct Step {
    word: u8,
    to: u8,
    shift: u8,
    mask: u64,
}

/// Bits of a key word that count as one.
#[derive(Clone, Copy, Debug)]
struct Common {
    word: u8,
    to: u8,
    shift: u8,
    mask: u64,
    value: u64,
}

/// Where the bits of a dense key come from.
#[derive(Debug, Default)]
pub(super) struct Layout {
    words: usize,
    dense: usize,
    steps: Vec<Step>,
    commons: Vec<Common>,
}

/// What the rules ask of a bit.
#[derive(Clone, Copy, Default)]
struct Asked {
    zeros: u64,
    ones: u64,
    /// The sum of the asking rules' marks: equal, as good as certainly, for bits that the same rules ask for.
    marks: u64,
}

impl Asked {
    fn rules(self) -> u64 {
        self.zeros + self.ones
    }
}

impl Layout {
    /// The layout for rules of `words` words each in `values` and `masks`; none if more bits than fit tell them apart.
    pub fn new(words: usize, values: &[u64], masks: &[u64]) -> Option<Self> {
        let asked = count(words, values, masks);
        // Taking bits together takes time for each key, so it is done only where all rules agree, or it saves dense words.
        let commons = commons(words, values, masks, &asked);
        let len = (values.len() / words) as u64;
        let always =
            |c: &&Common| asked[usize::from(c.word) * 64 + c.mask.trailing_zeros() as usize].rules() == len;
        let plain = Self::of(words, &asked, commons.iter().filter(always).copied().collect());
        if (1..=COMPARED).contains(&plain.dense) {
            return Some(plain);
        }
        let shared = Self::of(words, &asked, commons);
        let made = if shared.dense < plain.dense { shared } else { plain };
        (1..=DENSE_MAX).contains(&made.dense).then_some(made)
    }

    fn of(words: usize, asked: &[Asked], mut commons: Vec<Common>) -> Self {
        // What most rules ask for comes first.
        let mut units: Vec<(u64, u8, u64)> = Vec::new();
        for word in 0..words {
            let of = &asked[word * 64..][..64];
            let mut mask = (0..64).filter(|bit| of[*bit].rules() > 0).fold(0u64, |mask, bit| mask | 1 << bit);
            mask =
                commons.iter().filter(|c| usize::from(c.word) == word).fold(mask, |mask, c| mask & !c.mask);
            let most = (0..64).filter(|bit| mask >> bit & 1 != 0).map(|bit| of[bit].rules()).max();
            units.extend(most.map(|most| (most, word as u8, mask)));
        }
        units.sort_by_key(|(most, word, mask)| (mask.count_ones() < 16, std::cmp::Reverse(*most), *word));
        // Long pieces end at multiples of 16 bits, as fields mostly do; short ones fill what that leaves.
        let mut used: Vec<u64> = Vec::new();
        let mut room = |bits: u32| {
            let run = u64::MAX >> (64 - bits);
            let fits = |used: u64| {
                let mut shifts =
                    (0..=64 - bits).rev().filter(|shift| bits < 16 || (shift + bits).is_multiple_of(16));
                shifts.find(|shift| used >> shift & run == 0)
            };
            let found = used.iter().enumerate().find_map(|(to, used)| Some((to, fits(*used)?)));
            let (to, shift) = found.unwrap_or_else(|| {
                used.push(0);
                (used.len() - 1, 64 - bits)
            });
            used[to] |= run << shift;
            (to as u8, shift as u8)
        };
        let mut steps = Vec::new();
        for (_, word, mask) in units {
            let (to, shift) = room(mask.count_ones());
            steps.push(Step { word, to, shift, mask });
        }
        for common in &mut commons {
            (common.to, common.shift) = room(1);
        }
        let dense = used.len();
        Self { words, dense, steps, commons }
    }

    /// Words of a key.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Words in use of a dense key.
    pub fn dense(&self) -> usize {
        self.dense
    }

    /// The dense keys of `len` keys. Dense keys must be 0 before.
    #[inline(always)]
    pub fn keys<K: Kernel, const G: usize>(&self, kernel: K, keys: &[u64], len: usize, dense: &mut Group<G>) {
        // Counted by hand: chunks of a length that only now is known cost a division each time.
        for step in &self.steps {
            let mut from = usize::from(step.word);
            for dense in &mut dense[usize::from(step.to) % DENSE_MAX][..len.min(G)] {
                *dense |= kernel.extract(keys[from], step.mask) << step.shift;
                from += self.words;
            }
        }
        for common in &self.commons {
            let mut from = usize::from(common.word);
            for dense in &mut dense[usize::from(common.to) % DENSE_MAX][..len.min(G)] {
                *dense |= u64::from(keys[from] & common.mask == common.value) << common.shift;
                from += self.words;
            }
        }
    }

    /// The dense values and masks of a rule.
    pub fn rule(&self, value: &[u64], mask: &[u64]) -> (Dense, Dense) {
        let (mut values, mut masks) = ([0; DENSE_MAX], [0; DENSE_MAX]);
        for step in &self.steps {
            let (word, to) = (usize::from(step.word), usize::from(step.to));
            values[to] |= extract(value[word] & mask[word], step.mask) << step.shift;
            masks[to] |= extract(mask[word], step.mask) << step.shift;
        }
        for common in &self.commons {
            if mask[usize::from(common.word)] & common.mask != 0 {
                values[usize::from(common.to)] |= 1 << common.shift;
                masks[usize::from(common.to)] |= 1 << common.shift;
            }
        }
        (values, masks)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.steps.len() * size_of::<Step>() + self.commons.len() * size_of::<Common>()
    }
}

fn count(words: usize, values: &[u64], masks: &[u64]) -> Vec<Asked> {
    let mut asked = vec![Asked::default(); words * 64];
    let mut mark = 0u64;
    for (value, mask) in values.chunks_exact(words).zip(masks.chunks_exact(words)) {
        mark = mark.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mark ^ mark >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = mixed ^ mixed >> 32;
        for word in 0..words {
            let mut left = mask[word];
            while left != 0 {
                let bit = left.trailing_zeros();
                left &= left - 1;
                let of = &mut asked[word * 64 + bit as usize];
                let one = value[word] >> bit & 1;
                of.ones += one;
                of.zeros += 1 - one;
                of.marks = of.marks.wrapping_add(mixed);
            }
        }
    }
    asked
}

/// The sets of bits that count as one. Held against every rule: that their marks are equal proves nothing.
fn commons(words: usize, values: &[u64], masks: &[u64], asked: &[Asked]) -> Vec<Common> {
    let mut sets: Vec<(u64, Common)> = Vec::new();
    for (at, of) in asked.iter().enumerate() {
        if (of.zeros == 0) != (of.ones == 0) {
            let (word, bit) = ((at / 64) as u8, at % 64);
            let known = sets.iter().position(|(marks, set)| (*marks, set.word) == (of.marks, word));
            let known = known.unwrap_or_else(|| {
                sets.push((of.marks, Common { word, to: 0, shift: 0, mask: 0, value: 0 }));
                sets.len() - 1
            });
            sets[known].1.mask |= 1 << bit;
            sets[known].1.value |= u64::from(of.ones != 0) << bit;
        }
    }
    let sets = sets.into_iter().map(|(_, set)| set);
    let mut found: Vec<Common> = sets.filter(|set| set.mask.count_ones() >= COMMON_MIN).collect();
    for (value, mask) in values.chunks_exact(words).zip(masks.chunks_exact(words)) {
        found.retain(|set| {
            let (value, mask) = (value[usize::from(set.word)], mask[usize::from(set.word)] & set.mask);
            mask == 0 || (mask == set.mask && value & mask == set.value)
        });
    }
    found
}

/// The bits of a word under a mask, put together at the lower end.
pub(super) fn extract(word: u64, mask: u64) -> u64 {
    Portable.extract(word, mask)
}
