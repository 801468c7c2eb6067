// SPDX-License-Identifier: Apache-2.0
use super::*;
use fastrand::Rng;

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| *level <= Level::found())
}

#[test]
fn values_catch_all_and_the_dead() {
    // Two rules of value 5 (the first is better), one of 6, a miss entry.
    let exact = Exact::new(1, &[0xff], vec![5, 6, 5], 3, 4);
    let mut dead = BitSet::new(4);
    let mut slots = [0; 3];
    exact.lookup(&[0x105, 6, 9], &dead, &mut slots);
    assert_eq!(slots, [0, 1, 3]);
    dead.insert(0);
    dead.insert(1);
    exact.lookup(&[5, 6, 9], &dead, &mut slots);
    assert_eq!(slots, [2, 3, 3]);
    dead.insert(3);
    exact.lookup(&[5, 6, 9], &dead, &mut slots);
    assert_eq!(slots, [2, NONE, NONE]);
}

#[test]
fn many_keys_in_many_groups() {
    let values: Vec<u64> = (0..5_000u64).flat_map(|i| [i, i * 7]).collect();
    let exact = Exact::new(2, &[u64::MAX; 2], values.clone(), 5_000, 5_000);
    let mut slots = vec![0; 5_000];
    exact.lookup(&values, &BitSet::new(5_000), &mut slots);
    assert!(slots.iter().enumerate().all(|(at, slot)| *slot == at as u32));
    let wrong: Vec<u64> = (0..70u64).flat_map(|i| [i, i * 7 + 1]).collect();
    exact.lookup(&wrong, &BitSet::new(5_000), &mut slots[..70]);
    assert!(slots[..70].iter().all(|slot| *slot == NONE));
}

#[test]
fn many_rules_of_one_value_cost_no_more_to_build_than_others() {
    let exact = Exact::new(1, &[u64::MAX], vec![7; 200_000], 200_000, 200_000);
    let mut dead = BitSet::new(200_000);
    for slot in (0..199_999).rev() {
        dead.insert(slot);
    }
    let mut slots = [0; 2];
    exact.lookup(&[7, 8], &dead, &mut slots);
    assert_eq!(slots, [199_999, NONE]);
}

/// Rules over few values, and what a plain list finds.
struct Plain {
    mask: Vec<u64>,
    values: Vec<u64>,
    keyed: usize,
    len: usize,
}

impl Plain {
    fn draw(rng: &mut Rng) -> Self {
        let words = rng.usize(1..=11);
        let alike = rng.u64(..) & rng.u64(..);
        let mask: Vec<u64> = (0..words)
            .map(|_| match rng.u8(..5) {
                0 => 0,
                1 => u64::MAX,
                _ => rng.u64(..),
            })
            .collect();
        let common: Vec<u64> = mask.iter().map(|mask| mask & rng.u64(..)).collect();
        let keyed = if rng.u8(..8) == 0 { rng.usize(..4) } else { rng.usize(..600) };
        let variety = if rng.bool() { u64::MAX } else { 0x11 };
        let values = (0..keyed * words)
            .map(|at| match alike >> (at % words) & 1 {
                0 => mask[at % words] & rng.u64(..) & variety,
                _ => common[at % words],
            })
            .collect();
        Self { mask, values, keyed, len: keyed + rng.usize(..3) }
    }

    fn find(&self, key: &[u64], dead: &BitSet) -> u32 {
        let equals =
            |row: &[u64]| row.iter().zip(key).zip(&self.mask).all(|((row, key), mask)| key & mask == *row);
        let keyed = self.values.chunks_exact(self.mask.len()).take(self.keyed);
        let found =
            (0..).zip(keyed).find(|(slot, row)| !dead.contains(*slot) && equals(row)).map(|(slot, _)| slot);
        let catch_all = || (self.keyed as u32..self.len as u32).find(|slot| !dead.contains(*slot));
        found.or_else(catch_all).unwrap_or(NONE)
    }

    /// Keys of rules, with some bits turned.
    fn keys(&self, rng: &mut Rng, count: usize) -> Vec<u64> {
        let words = self.mask.len();
        let mut keys = Vec::new();
        for _ in 0..count {
            let mut key = match self.keyed {
                0 => vec![0; words],
                keyed => self.values[rng.usize(..keyed) * words..][..words].to_vec(),
            };
            for (word, mask) in key.iter_mut().zip(&self.mask) {
                *word |= rng.u64(..) & !mask;
                *word ^= u64::from(rng.u8(..4 * words as u8) == 0) << rng.u32(..64);
            }
            keys.extend(key);
        }
        keys
    }
}

#[test]
fn finds_what_a_plain_list_finds_by_any_instructions_and_however_many_are_spilled() {
    let mut rng = Rng::with_seed(1);
    for case in 0..400 {
        let plain = Plain::draw(&mut rng);
        let words = plain.mask.len();
        let mut dead = BitSet::new(plain.len);
        if rng.bool() {
            (0..plain.len as u32).filter(|_| rng.u8(..3) == 0).for_each(|slot| dead.insert(slot));
        }
        let keys = plain.keys(&mut rng, 150);
        let right: Vec<u32> = keys.chunks_exact(words).map(|key| plain.find(key, &dead)).collect();
        for level in levels() {
            for tries in [PILOTS, 2, 1, 0] {
                let layout = (words, &plain.mask[..]);
                let exact =
                    Exact::with_tries(tries, level, layout, plain.values.clone(), plain.keyed, plain.len);
                assert_eq!(exact.rows(), plain.values);
                let mut slots = vec![0; right.len()];
                let mut from = 0;
                while from < slots.len() {
                    let count = rng.usize(1..80).min(slots.len() - from);
                    let keys = &keys[from * words..][..count * words];
                    exact.lookup(keys, &dead, &mut slots[from..from + count]);
                    from += count;
                }
                assert_eq!(slots, right, "case {case}: {words} words, {level:?}, {tries} pilots");
            }
        }
    }
}
