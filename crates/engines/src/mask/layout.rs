// SPDX-License-Identifier: Apache-2.0
//! Dense keys: the bits of a key that distinguish rules, packed together.
//!
//! Bits that no rule examines are left out. Some bits are examined by the same rules with the same required
//! value, such as an `EtherType` or the presence of a header. They are reduced to one bit, which states
//! whether they have that value. Words whose bits are examined by most rules come first.

use super::bit_counts::BitCounts;
use super::simd::{COMPARED, DENSE_MAX, Kernel, Portable};

/// Minimum number of bits of a word to reduce to one bit.
const COMMON_MIN: u32 = 3;

/// A dense key. Unused words are 0.
pub(super) type Dense = [u64; DENSE_MAX];

/// Dense keys of a group, stored word by word.
pub(super) type Group<const G: usize> = [[u64; G]; DENSE_MAX];

/// Bits of a key word that are copied to a dense word without changing their order.
#[derive(Clone, Copy, Debug)]
struct Step {
    word: u8,
    to: u8,
    shift: u8,
    mask: u64,
}

/// Bits of a key word that are reduced to one bit.
#[derive(Clone, Copy, Debug)]
struct Common {
    word: u8,
    to: u8,
    shift: u8,
    mask: u64,
    value: u64,
}

/// Mapping from the words of a key to its dense key.
#[derive(Debug, Default)]
pub(super) struct Layout {
    words: usize,
    dense: usize,
    steps: Vec<Step>,
    commons: Vec<Common>,
}

/// Use of a bit by the rules: how many require 0 and how many require 1.
#[derive(Clone, Copy, Default)]
struct Asked {
    zeros: u64,
    ones: u64,
    /// Sum of the random marks of the rules that examine the bit. Bits with equal sums are almost certainly
    /// examined by the same rules.
    marks: u64,
}

impl Asked {
    fn rules(self) -> u64 {
        self.zeros + self.ones
    }
}

impl Layout {
    /// Creates the layout for rules of `words` words each in `values` and `masks`. Returns `None` if no bits
    /// or too many bits distinguish the rules.
    pub fn new(words: usize, values: &[u64], masks: &[u64]) -> Option<Self> {
        let asked = count(words, values, masks);
        // Reducing bits takes time for each key, so it is done only where all rules examine the bits, or
        // where it saves dense words.
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
        // Words with the bits that most rules examine come first.
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
        // Long pieces end at multiples of 16 bits, like most fields. Short pieces fill the gaps.
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

    /// Returns the length of a key in words.
    pub fn words(&self) -> usize {
        self.words
    }

    /// Returns the number of dense words in use.
    pub fn dense(&self) -> usize {
        self.dense
    }

    /// Computes the dense keys of `len` keys. `dense` must be 0 on entry.
    #[inline(always)]
    pub fn keys<K: Kernel, const G: usize>(&self, kernel: K, keys: &[u64], len: usize, dense: &mut Group<G>) {
        // Iterating over chunks would cost a division, because their length is known only at run time.
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

    /// Returns the dense rows of rules: the values of a rule, and then its masks.
    pub fn rows(&self, values: &[u64], masks: &[u64]) -> Vec<u64> {
        let mut rows = Vec::with_capacity(values.len() / self.words * 2 * self.dense);
        // Most rules examine the same bits as the rule before them.
        let mut last: Option<(&[u64], Dense)> = None;
        for (value, mask) in values.chunks_exact(self.words).zip(masks.chunks_exact(self.words)) {
            let known = last.filter(|(bits, _)| *bits == mask);
            let (_, dense_mask) = *last.insert(known.unwrap_or_else(|| (mask, self.mask(mask))));
            rows.extend_from_slice(&self.value(value, mask)[..self.dense]);
            rows.extend_from_slice(&dense_mask[..self.dense]);
        }
        rows
    }

    /// Returns the dense values of a rule.
    fn value(&self, value: &[u64], mask: &[u64]) -> Dense {
        let mut values = [0; DENSE_MAX];
        for step in &self.steps {
            let word = usize::from(step.word);
            values[usize::from(step.to)] |= extract(value[word] & mask[word], step.mask) << step.shift;
        }
        self.add_commons(mask, &mut values);
        values
    }

    /// Returns the dense masks of a rule.
    fn mask(&self, mask: &[u64]) -> Dense {
        let mut masks = [0; DENSE_MAX];
        for step in &self.steps {
            masks[usize::from(step.to)] |= extract(mask[usize::from(step.word)], step.mask) << step.shift;
        }
        self.add_commons(mask, &mut masks);
        masks
    }

    /// Sets the reduced bits that a rule examines. They are 1 both in its values and in its masks.
    fn add_commons(&self, mask: &[u64], dense: &mut Dense) {
        for common in &self.commons {
            if mask[usize::from(common.word)] & common.mask != 0 {
                dense[usize::from(common.to)] |= 1 << common.shift;
            }
        }
    }

    /// Returns the memory size in bytes.
    pub fn bytes(&self) -> usize {
        self.steps.len() * size_of::<Step>() + self.commons.len() * size_of::<Common>()
    }
}

/// Rules in a row that examine the same bits of a word.
#[derive(Clone, Copy, Default)]
struct Run {
    mask: u64,
    /// Number of rules, and the sum of their marks.
    rules: u64,
    marks: u64,
}

fn count(words: usize, values: &[u64], masks: &[u64]) -> Vec<Asked> {
    let mut asked = vec![Asked::default(); words * 64];
    let mut ones = vec![BitCounts::default(); words];
    let mut runs = vec![Run::default(); words];
    let end_run = |asked: &mut [Asked], run: Run| {
        let mut left = run.mask;
        while left != 0 {
            let of = &mut asked[left.trailing_zeros() as usize];
            left &= left - 1;
            of.zeros += run.rules;
            of.marks = of.marks.wrapping_add(run.marks);
        }
    };
    let mut mark = 0u64;
    for (value, mask) in values.chunks_exact(words).zip(masks.chunks_exact(words)) {
        mark = mark.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mark ^ mark >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = mixed ^ mixed >> 32;
        for (word, run) in runs.iter_mut().enumerate() {
            if mask[word] != run.mask {
                end_run(&mut asked[word * 64..][..64], *run);
                *run = Run { mask: mask[word], ..Run::default() };
            }
            run.rules += 1;
            run.marks = run.marks.wrapping_add(mixed);
            ones[word].add(value[word] & mask[word]);
        }
    }
    for ((asked, run), ones) in asked.chunks_exact_mut(64).zip(runs).zip(ones) {
        end_run(asked, run);
        for (asked, ones) in asked.iter_mut().zip(ones.finish()) {
            // So far, `zeros` is the number of all rules that examine the bit.
            (asked.zeros, asked.ones) = (asked.zeros - ones, ones);
        }
    }
    asked
}

/// Returns the sets of bits that can be reduced to one bit. Equal marks are no proof, so each set is verified
/// against every rule.
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

/// Returns the bits of a word selected by a mask, packed at the lower end (PEXT).
pub(super) fn extract(word: u64, mask: u64) -> u64 {
    Portable.extract(word, mask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    /// Rules of `words` words: values and their masks.
    struct Drawn {
        words: usize,
        values: Vec<u64>,
        masks: Vec<u64>,
    }

    impl Drawn {
        fn new(words: usize, rules: impl IntoIterator<Item = Vec<(u64, u64)>>) -> Self {
            let (values, masks) =
                rules.into_iter().flatten().map(|(value, mask)| (value & mask, mask)).unzip();
            Self { words, values, masks }
        }

        fn layout(&self) -> Option<Layout> {
            Layout::new(self.words, &self.values, &self.masks)
        }

        fn rules(&self) -> impl Iterator<Item = (&[u64], &[u64])> {
            self.values.chunks_exact(self.words).zip(self.masks.chunks_exact(self.words))
        }
    }

    /// Draws rules with non-contiguous masks. Most rules have the same common bits in all words, the others
    /// in word 0 only.
    fn draw(rng: &mut Rng, words: usize, len: usize) -> Drawn {
        let common: Vec<u64> = (0..words).map(|_| rng.u64(..) & rng.u64(..)).collect();
        let value: Vec<u64> = (0..words).map(|_| rng.u64(..)).collect();
        let open = rng.u64(..) & rng.u64(..) & rng.u64(..);
        let rule = |rng: &mut Rng| {
            let has_common = rng.u8(..4) > 0;
            let word = |rng: &mut Rng, word: usize| {
                let common = if has_common || word == 0 { common[word] } else { 0 };
                (value[word] & common | rng.u64(..) & !common, common | rng.u64(..) & open)
            };
            (0..words).map(|at| word(rng, at)).collect()
        };
        Drawn::new(words, (0..len).map(|_| rule(rng)).collect::<Vec<_>>())
    }

    #[test]
    fn a_dense_key_matches_the_same_rules_as_the_key() {
        let mut rng = Rng::with_seed(1);
        let mut matches = [0, 0];
        for case in 0..200 {
            let (words, len) = (rng.usize(1..=4), rng.usize(1..40));
            let drawn = draw(&mut rng, words, len);
            let Some(layout) = drawn.layout() else { continue };
            assert_eq!(layout.words(), words);
            for _ in 0..60 {
                let (value, mask) = drawn.rules().nth(rng.usize(..len)).unwrap();
                let mut key: Vec<u64> =
                    value.iter().zip(mask).map(|(value, mask)| value | rng.u64(..) & !mask).collect();
                if rng.bool() {
                    key[rng.usize(..words)] ^= 1 << rng.u32(..64);
                }
                let mut dense: Group<1> = [[0]; DENSE_MAX];
                layout.keys(Portable, &key, 1, &mut dense);
                assert!(dense[layout.dense()..].iter().all(|word| *word == [0]), "unused words are 0");
                for (value, mask) in drawn.rules() {
                    let (values, masks) = (layout.value(value, mask), layout.mask(mask));
                    let suits = (0..words).all(|word| key[word] & mask[word] == value[word]);
                    let dense_suits = (0..DENSE_MAX).all(|word| dense[word][0] & masks[word] == values[word]);
                    assert_eq!(suits, dense_suits, "case {case}: {key:x?} {value:x?} {mask:x?}");
                    matches[usize::from(suits)] += 1;
                }
            }
        }
        assert!(matches.iter().all(|count| *count > 5_000), "{matches:?}");
    }

    #[test]
    fn bits_equal_in_all_rules_are_reduced_to_one_bit() {
        let mut rng = Rng::with_seed(2);
        let mut dense = |alike: u64, differing: u64| {
            let value = rng.u64(..) & alike;
            let rules = (0..100).map(|_| vec![(value | rng.u64(..) & differing, alike | differing)]);
            let drawn = Drawn::new(1, rules.collect::<Vec<_>>());
            let layout = drawn.layout().unwrap();
            let (mut low, mut used) = ([0; DENSE_MAX], 0);
            for (_, mask) in drawn.rules() {
                low = layout.mask(mask);
                used = low.iter().map(|word| word.count_ones()).sum();
            }
            assert_eq!(layout.dense(), low.iter().filter(|word| **word != 0).count());
            used
        };
        assert_eq!(dense(0xffff << 40, 0xff), 8 + 1);
        assert_eq!(dense(0b111 << 40, 0xff), 8 + 1);
        assert_eq!(dense(0b11 << 40, 0xff), 8 + 2, "reducing two bits is not worth a step");
    }

    #[test]
    fn rules_distinguished_by_more_than_512_bits_have_no_dense_key() {
        let mut rng = Rng::with_seed(3);
        let mut of = |words: usize, mask: u64| {
            let rules = (0..100).map(|_| (0..words).map(|_| (rng.u64(..), mask)).collect());
            Drawn::new(words, rules.collect::<Vec<_>>()).layout().map(|layout| layout.dense())
        };
        assert_eq!(of(8, u64::MAX), Some(8));
        assert_eq!(of(9, u64::MAX), None);
        assert_eq!(of(16, u64::from(u32::MAX)), Some(8));
        assert_eq!(of(17, u64::from(u32::MAX)), None);
        assert_eq!(of(1, 0), None, "no bit distinguishes the rules");
    }

    #[test]
    fn bits_equal_in_some_rules_are_reduced_if_that_saves_words() {
        let mut rng = Rng::with_seed(4);
        // All rules examine `words` words. Half of the rules also examine `half` words, whose bits outside
        // `others` are all ones.
        let mut of = |words: usize, half: usize, others: u64| {
            let mut rule = |at: usize| {
                let mask = if at.is_multiple_of(2) { u64::MAX } else { 0 };
                let whole: Vec<_> = (0..words).map(|_| (rng.u64(..), u64::MAX)).collect();
                let shared = (0..half).map(|_| (!others | rng.u64(..) & others, mask)).collect();
                [whole, shared].concat()
            };
            let rules: Vec<_> = (0..100).map(&mut rule).collect();
            let layout = Drawn::new(words + half, rules).layout();
            layout.map(|layout| (layout.dense(), layout.commons.len()))
        };
        assert_eq!(
            of(1, 1, 0xff),
            Some((2, 0)),
            "no reduction is needed for the two words that blocks compare"
        );
        assert_eq!(of(2, 1, 0xff), Some((3, 0)), "reducing bits saves no word");
        assert_eq!(of(2, 2, 0xff_ffff), Some((3, 2)), "the remaining bits of two words fit into one");
        assert_eq!(of(7, 20, 0), Some((8, 20)), "one word has space for a bit of each of twenty words");
        assert_eq!(of(8, 1, 0), None, "there is no space for another bit");
    }

    #[test]
    fn the_memory_size_is_reported() {
        // The layout copies one piece of a word, and reduces bits of two words to one bit each.
        let rules = (0..20).map(|at| vec![(at | 0xff << 32, 0xff << 32 | 0xff), (0xfff, 0xfff)]);
        let layout = Drawn::new(2, rules.collect::<Vec<_>>()).layout().unwrap();
        assert_eq!((layout.steps.len(), layout.commons.len()), (1, 2));
        assert_eq!(layout.bytes(), size_of::<Step>() + 2 * size_of::<Common>());
    }
}
