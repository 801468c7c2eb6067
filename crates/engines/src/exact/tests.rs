// SPDX-License-Identifier: Apache-2.0
use super::*;
use fastrand::Rng;

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| *level <= Level::found())
}

#[test]
fn deleted_rules_give_way_to_equal_rules_and_to_catch_alls() {
    // Two rules of value 5 (the first is better), one rule of value 6, and a table-miss rule.
    let exact = Exact::new(1, &[0xff], vec![5, 6, 5], 3, 4);
    let mut tombstones = BitSet::new(4);
    let mut slots = [0; 3];
    exact.lookup(&[0x105, 6, 9], &tombstones, &mut slots);
    assert_eq!(slots, [0, 1, 3]);
    tombstones.insert(0);
    tombstones.insert(1);
    exact.lookup(&[5, 6, 9], &tombstones, &mut slots);
    assert_eq!(slots, [2, 3, 3]);
    tombstones.insert(3);
    exact.lookup(&[5, 6, 9], &tombstones, &mut slots);
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
fn many_rules_of_one_value_take_no_longer_to_build_than_others() {
    let exact = Exact::new(1, &[u64::MAX], vec![7; 200_000], 200_000, 200_000);
    let mut tombstones = BitSet::new(200_000);
    for slot in (0..199_999).rev() {
        tombstones.insert(slot);
    }
    let mut slots = [0; 2];
    exact.lookup(&[7, 8], &tombstones, &mut slots);
    assert_eq!(slots, [199_999, NONE]);
}

/// Rules with few distinct values, and a linear search over them as the reference.
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

    fn find(&self, key: &[u64], tombstones: &BitSet) -> u32 {
        let equals =
            |row: &[u64]| row.iter().zip(key).zip(&self.mask).all(|((row, key), mask)| key & mask == *row);
        let keyed = self.values.chunks_exact(self.mask.len()).take(self.keyed);
        let found = (0..)
            .zip(keyed)
            .find(|(slot, row)| !tombstones.contains(*slot) && equals(row))
            .map(|(slot, _)| slot);
        let catch_all = || (self.keyed as u32..self.len as u32).find(|slot| !tombstones.contains(*slot));
        found.or_else(catch_all).unwrap_or(NONE)
    }

    /// Returns keys of rules, some with flipped bits.
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
fn every_level_agrees_with_a_linear_search_however_many_values_are_spilled() {
    let mut rng = Rng::with_seed(1);
    for case in 0..400 {
        let plain = Plain::draw(&mut rng);
        let words = plain.mask.len();
        let mut tombstones = BitSet::new(plain.len);
        if rng.bool() {
            (0..plain.len as u32).filter(|_| rng.u8(..3) == 0).for_each(|slot| tombstones.insert(slot));
        }
        let keys = plain.keys(&mut rng, 150);
        let right: Vec<u32> = keys.chunks_exact(words).map(|key| plain.find(key, &tombstones)).collect();
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
                    exact.lookup(keys, &tombstones, &mut slots[from..from + count]);
                    from += count;
                }
                assert_eq!(slots, right, "case {case}: {words} words, {level:?}, {tries} pilots");
            }
        }
    }
}

/// Returns values that an attacker would choose who knows the code of the hash, but not its seed.
fn hostile(words: usize) -> Vec<(&'static str, Vec<u64>)> {
    const RULES: u64 = 20_000;
    let row = |first: u64, rest: u64| (0..words as u64).map(move |word| if word == 0 { first } else { rest });
    let rows = |each: &dyn Fn(u64) -> (u64, u64)| -> Vec<u64> {
        (0..RULES)
            .flat_map(|at| {
                let (first, rest) = each(at);
                row(first, rest)
            })
            .collect()
    };
    // The first AES round mixes bytes 0, 5, 10 and 15 of a block, and bytes 4, 9, 14 and 3.
    let diagonal =
        |at: u64| ((at & 0xff) | (at >> 8 & 0xff) << 40, (at & 0xff) << 16 | (at >> 8 & 0xff) << 56);
    let mut made = vec![
        ("sequential", rows(&|at| (at, 0))),
        ("sequential in the upper bits", rows(&|at| (at << 48, 7))),
        ("multiples of a power of two", rows(&|at| (at << 32, at << 20))),
        ("equal words", rows(&|at| (at, at))),
        ("words that are complements", rows(&|at| (at, !at))),
        ("values on one diagonal", rows(&|at| diagonal(at))),
        (
            "single bits and pairs of bits",
            rows(&|at| (1 << (at % 64) | (at / 64) << 50, 1 << (at / 64 % 64))),
        ),
    ];
    // With the guessed seed, all values would fall into one of 64 parts of the table.
    let guess = Seed::of_number(7);
    let aes = crate::hash::simd::Aes::new(guess);
    let hash = |key: &[u64]| {
        aes.as_ref().filter(|_| words < 8).map_or_else(|| guess.hash_masked(key), |aes| aes.hash(key))
    };
    let mut rng = Rng::with_seed(3);
    let mut crafted = Vec::new();
    while crafted.len() < 3_000 * words {
        let key: Vec<u64> = (0..words).map(|_| rng.u64(..)).collect();
        if hash(&key) & 0xfc00_0000 == 0 {
            crafted.extend(key);
        }
    }
    made.push(("crafted for another seed", crafted));
    made
}

#[test]
fn no_choice_of_values_makes_buckets_overflow() {
    for words in [1, 2, 3, 5, 8, 10] {
        for (name, values) in hostile(words) {
            let mut seen = std::collections::HashSet::new();
            let rows = values.chunks_exact(words).filter(|row| seen.insert(row.to_vec()));
            let values: Vec<u64> = rows.flatten().copied().collect();
            let len = values.len() / words;
            for level in levels() {
                let mask = vec![u64::MAX; words];
                let exact = Exact::with_level(level, words, &mask, values.clone(), len, len);
                // Some pairs of hashes agree by chance in 40 of 64 bits, so a few values are spilled.
                assert!(
                    exact.spilled() <= 8,
                    "{name}, {words} words, {level:?}: {} of {len}",
                    exact.spilled()
                );
                let mut slots = vec![0; len];
                exact.lookup(&values, &BitSet::new(len), &mut slots);
                assert!((0..).zip(slots).all(|(slot, found)| slot == found), "{name}");
            }
        }
    }
}

#[test]
fn tables_report_their_memory_size() {
    for (words, bytes) in [(1, 14.8), (2, 24.5), (3, 38.4), (4, 80.4), (7, 80.4)] {
        // Every word differs between rules, so all words of a row are stored.
        let values: Vec<u64> = (0..10_000).flat_map(|at: u64| vec![at; words]).collect();
        let exact = Exact::new(words, &vec![u64::MAX; words], values, 10_000, 10_003);
        let store = exact.store.bytes();
        assert!((store as f64 / 10_000.0 - bytes).abs() < 0.1, "{words} words: {store} for 10,000 rules");
        let pilots = &exact.store.pilots;
        assert_eq!(store, pilots.bytes() + (pilots.buckets() as usize * 8 + 7) * 8);
        // The mask, the common words, and the indices of the stored words.
        assert_eq!(exact.columns.bytes(), 3 * words * 8);
        assert_eq!(exact.bytes(), size_of::<Exact>() + store + exact.columns.bytes());
    }
    // Two rules with the same value take one place, and each rule has a link.
    let twice = Exact::new(1, &[u64::MAX], (0..200).map(|at| at / 2).collect(), 200, 200);
    let rest = size_of::<Exact>() + twice.store.bytes() + twice.columns.bytes();
    assert_eq!(twice.bytes(), rest + 200 * 4);
    let once = Exact::new(1, &[u64::MAX], (0..100).collect(), 100, 100);
    assert_eq!(twice.store.bytes(), once.store.bytes());
    let spilled = Exact::with_tries(0, Level::found(), (1, &[u64::MAX]), (0..100).collect(), 100, 100);
    assert_eq!(spilled.store.bytes(), once.store.bytes() + 100 * 12);
}
