// SPDX-License-Identifier: Apache-2.0
use super::super::layout::extract;
use super::super::paging::paged;
use super::*;
use fastrand::Rng;

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| *level <= Level::found())
}

/// A table, and the entries that its lookups must return.
struct Held<'h> {
    table: &'h Paged,
    entries: &'h [u16],
}

impl Work for Held<'_> {
    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        self.check::<K, 1>(kernel);
        self.check::<K, 8>(kernel);
        self.check::<K, 32>(kernel);
    }
}

impl Held<'_> {
    fn right(&self, at: u32) -> u32 {
        let last = self.entries.len() - 1;
        self.entries[last.min(at as usize)].into()
    }

    #[inline(always)]
    fn check<K: Kernel, const G: usize>(&self, kernel: K) {
        let mut rng = Rng::with_seed(1);
        let len = self.entries.len() as u32;
        for shift in [0, 16, 48] {
            let mask = len.next_power_of_two() - 1;
            let words: [u64; G] = std::array::from_fn(|_| rng.u64(..));
            let mut labels = [0; G];
            kernel.label(self.table, &words, Cut { shift, mask }, &mut labels);
            let right = words.map(|word| self.right((word >> shift) as u32 & mask));
            assert_eq!(labels, right, "{len} entries, labels from bit {shift} on");
        }
        for scale in [1, 3, len.div_ceil(4)] {
            let mut numbers: [u32; G] = std::array::from_fn(|_| rng.u32(..=len / scale));
            let fellows: [u32; G] = std::array::from_fn(|_| rng.u32(..scale));
            let right: [u32; G] = std::array::from_fn(|nth| self.right(numbers[nth] * scale + fellows[nth]));
            kernel.join(self.table, scale, &mut numbers, &fellows);
            assert_eq!(numbers, right, "{len} entries, joined by {scale}");
        }
    }
}

#[test]
fn every_level_reads_the_same_entries_in_pages_or_not() {
    let mut rng = Rng::with_seed(2);
    let mut in_pages = 0;
    for len in [1, 2, 15, 16, 17, 300, 5_000, 40_000] {
        for shift in [0, 1, 4, 8] {
            let kinds: Vec<u16> = (0..4 << shift).map(|_| rng.u16(..)).collect();
            let blocks = std::iter::repeat_with(|| &kinds[rng.usize(..4) << shift..][..1 << shift]);
            let entries: Vec<u16> = blocks.flatten().copied().take(len).collect();
            for direct in [0, usize::MAX] {
                let table = paged(&entries, shift, direct).unwrap();
                in_pages += usize::from(!table.pages.is_empty());
                for level in levels() {
                    Width::new(level).run(Held { table: &table, entries: &entries });
                }
            }
        }
    }
    assert!(in_pages >= 5, "{in_pages} tables have pages");
}

#[test]
fn tables_that_lead_beyond_their_entries_are_rejected() {
    let pages = |pages: &[u16], items: usize, shift: u32, entries: usize| {
        Paged::new(pages.to_vec(), vec![7; items], shift, entries).map(|table| table.bytes())
    };
    assert_eq!(pages(&[], 3, 0, 3), Some(2 * (3 + 2)));
    assert_eq!(pages(&[], 3, 0, 4), None);
    assert_eq!(pages(&[], 0, 0, 0), None, "there is no last entry");
    assert_eq!(pages(&[0, 0], 16, 4, 32), Some(2 * (2 + 2 + 16 + 2)));
    assert_eq!(pages(&[0, 0], 16, 4, 33), None);
    assert_eq!(pages(&[0, 1], 31, 4, 32), None, "the second page is incomplete");
    assert_eq!(pages(&[0, 1], 32, 4, 20), Some(2 * (2 + 2 + 32 + 2)));
    assert!(pages(&[0], 1 << 16, 16, 5).is_some());
    assert_eq!(pages(&[0], 1 << 17, 17, 5), None);
}

#[test]
fn nodes_that_lead_out_of_bounds_are_rejected() {
    let leaf = |first: u32, more: u32| Entry { mask: 0, next: 0, leaf: more << MORE_SHIFT | first };
    let makes = |entries: &[Entry], blocks: usize, slots: &[u32]| {
        let slots = slots.iter().map(|slot| [*slot; LANES]).collect();
        Nodes::new(entries.to_vec(), vec![Block::EMPTY; blocks], slots).is_some()
    };
    assert!(makes(&[leaf(0, 0), leaf(1, 1)], 3, &[NONE, 1, 2]));
    assert!(!makes(&[leaf(3, 0)], 3, &[NONE, 1, 2]), "the block does not exist");
    assert!(!makes(&[leaf(1, 2)], 3, &[NONE, 1, 2]), "the last block does not exist");
    assert!(!makes(&[leaf(0, 0)], 3, &[NONE, 1]), "a block has no slots");
    assert!(!makes(&[leaf(0, 0)], 1, &[0]), "the first block must not hold a rule");
    let node = |next: u32| Entry { mask: 0b101, next, leaf: 0 };
    let children = |count: usize| vec![leaf(0, 0); count];
    assert!(makes(&[vec![node(1)], children(4)].concat(), 1, &[NONE]));
    assert!(!makes(&[vec![node(1)], children(3)].concat(), 1, &[NONE]), "the last child does not exist");
}

#[test]
fn nodes_report_their_memory_size() {
    let entries = vec![Entry { mask: 0, next: 0, leaf: 0 }; 5];
    let nodes = Nodes::new(entries, vec![Block::EMPTY; 3], vec![[NONE; LANES]; 3]).unwrap();
    // A node has 16 bytes and a block 144 bytes, as in docs/engines.md.
    assert_eq!(nodes.bytes(), 5 * 16 + 3 * 144);
}

#[test]
fn vectors_are_created_for_up_to_the_maximum_number_of_sources() {
    let makes = |lines: usize, length: u32, sources: usize| {
        Vectors::new(vec![Line([0; 8]); lines], length, vec![0; sources]).map(|vectors| vectors.bytes())
    };
    assert_eq!(makes(3, 3, 32), Some(3 * 64));
    assert_eq!(makes(3, 3, 33), None);
    assert_eq!(makes(2, 3, 1), None);
    assert_eq!(makes(2, 0, 1), None);
}

/// Compares each operation of a SIMD kernel with a scalar implementation.
struct Steps;

impl Work for Steps {
    #[inline(always)]
    fn run<K: Kernel>(self, kernel: K) {
        let mut rng = Rng::with_seed(3);
        for _ in 0..500 {
            let (word, mask) = (rng.u64(..), rng.u64(..) & rng.u64(..) >> rng.u32(..64));
            let bits = (0..64).filter(|bit| mask >> bit & 1 != 0).enumerate();
            let right = bits.fold(0, |made, (to, bit)| made | (word >> bit & 1) << to);
            assert_eq!((kernel.extract(word, mask), extract(word, mask)), (right, right), "{mask:x}");

            let mut block = Block::EMPTY;
            let key = [rng.u64(..), rng.u64(..)];
            let mut right = 0;
            for at in 0..LANES * COMPARED {
                block.masks[at] = rng.u64(..) & rng.u64(..);
                block.values[at] = key[at % COMPARED] & block.masks[at];
            }
            for lane in 0..LANES {
                match rng.u8(..4) {
                    0 => block.values[lane * COMPARED] ^= 1 << rng.u32(..64),
                    1 => block.values[lane * COMPARED + 1] ^= 1 << rng.u32(..64),
                    2 => block.values[lane * COMPARED + rng.usize(..2)] = rng.u64(..),
                    _ => right |= 1 << (2 * lane),
                }
            }
            assert_eq!(kernel.suiting(&block, key), right);

            let lines: [Line; 2] = std::array::from_fn(|_| {
                Line(std::array::from_fn(|_| rng.u64(..) & rng.u64(..) & rng.u64(..)))
            });
            let mut lines = lines;
            let cleared = rng.usize(..=8);
            lines[0].0[..cleared].fill(0);
            let common = |bit: &u32| {
                let of = |line: &Line| line.0[*bit as usize / 64] >> (bit % 64) & 1;
                of(&lines[0]) & of(&lines[1]) != 0
            };
            let right = (0..LINE_BITS).find(common).unwrap_or(LINE_BITS);
            assert_eq!(kernel.first_bit(kernel.meet(kernel.line(&lines[0]), &lines[1])), right);
        }
    }
}

#[test]
fn every_level_gives_the_same_result_for_each_operation() {
    levels().for_each(|level| Width::new(level).run(Steps));
}
