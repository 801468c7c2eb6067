// SPDX-License-Identifier: Apache-2.0
//! Prefixes at every level of instructions, with bursts of every length, deleted rules and groups, compared
//! with a linear search.

use engines::lpm::{Lpm, Piece, Prefixes};
use engines::simd::Level;
use engines::{BitSet, NONE};
use fastrand::Rng;

/// Rules as rows. Word 0 has a presence bit of the field and a tag of 8 bits that all rules examine. The
/// field begins in word 1.
struct Rows {
    field: Vec<Piece>,
    words: usize,
    tags: u64,
    values: Vec<u64>,
    masks: Vec<u64>,
}

const PRESENT: u64 = 1 << 40;

impl Rows {
    /// Creates rows for a field of `bits` bits. A field of fewer than 64 bits is in the middle of its word.
    /// The tag has `tags` values.
    fn new(bits: u32, tags: u64) -> Self {
        let first = bits.min(64);
        let mut field = vec![Piece { word: 1, shift: (64 - first) / 2, bits: first }];
        if bits > 64 {
            field.push(Piece { word: 2, shift: 128 - bits, bits: bits - 64 });
        }
        Self { words: 1 + field.len(), field, tags, values: Vec::new(), masks: Vec::new() }
    }

    fn bits(&self) -> u32 {
        self.field.iter().map(|piece| piece.bits).sum()
    }

    fn put(&self, row: &mut [u64], value: u128) {
        let mut rest = self.bits();
        for piece in &self.field {
            rest -= piece.bits;
            row[piece.word] |= ((value >> rest) as u64) << piece.shift & piece.mask();
        }
    }

    /// Adds a prefix, left-aligned in 128 bits. With length 0 the rule does not examine the field.
    fn push(&mut self, tag: u64, value: u128, length: u32) {
        let down = 128 - self.bits();
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        let (mut row, mut mask_row) = (vec![0; self.words], vec![0; self.words]);
        self.put(&mut row, (value & mask) >> down);
        self.put(&mut mask_row, mask >> down);
        (row[0], mask_row[0]) = if length > 0 { (tag | PRESENT, 0xff | PRESENT) } else { (tag, 0xff) };
        self.values.extend(row);
        self.masks.extend(mask_row);
    }

    fn len(&self) -> usize {
        self.values.len() / self.words
    }

    fn key(&self, rng: &mut Rng) -> Vec<u64> {
        let mut key: Vec<u64> = (0..self.words).map(|_| rng.u64(..)).collect();
        if self.len() > 0 && rng.u8(..8) != 0 {
            let at = rng.usize(..self.len()) * self.words;
            for ((key, value), mask) in key.iter_mut().zip(&self.values[at..]).zip(&self.masks[at..]) {
                *key = *key & !mask | value;
            }
            // Some keys differ from a prefix in one bit of the field.
            if rng.u8(..4) == 0 {
                let piece = self.field[rng.usize(..self.field.len())];
                key[piece.word] ^= 1 << (piece.shift + rng.u32(..piece.bits));
            }
        }
        if rng.u8(..16) == 0 {
            key[0] &= !PRESENT;
        }
        if rng.u8(..16) == 0 {
            key[0] = key[0] & !0xff | rng.u64(..self.tags + 1);
        }
        key
    }

    /// Returns the matching rules, best first.
    fn matching<'r>(&'r self, key: &'r [u64]) -> impl Iterator<Item = u32> + 'r {
        let rows = self.values.chunks_exact(self.words).zip(self.masks.chunks_exact(self.words));
        rows.enumerate().filter_map(|(slot, (value, mask))| {
            key.iter()
                .zip(value)
                .zip(mask)
                .all(|((key, value), mask)| key & mask == *value)
                .then_some(slot as u32)
        })
    }

    fn length(&self, slot: u32) -> u32 {
        let mask = &self.masks[slot as usize * self.words..][..self.words];
        mask[1..].iter().map(|word| word.count_ones()).sum()
    }

    /// Compares lookups at every level with a linear search.
    fn check(&self, rng: &mut Rng, bursts: usize, tombstones: &BitSet, what: &str) {
        let numbers: Vec<u32> = (0..self.len() as u32).map(|slot| slot % 7).collect();
        for level in Level::ALL.into_iter().filter(|level| *level <= Level::found()) {
            let engine =
                Lpm::with_level(level, self.words, &self.field, self.len(), &self.values, &self.masks);
            let shared = Prefixes::new(level, self.words, &self.field, &self.values, &self.masks, &numbers);
            for _ in 0..bursts {
                let keys: Vec<Vec<u64>> = (0..rng.usize(1..70)).map(|_| self.key(rng)).collect();
                let rows: Vec<u64> = keys.concat();
                let (mut found, mut hops) = (vec![1; keys.len()], vec![1; keys.len()]);
                engine.lookup(&rows, tombstones, &mut found);
                shared.lookup(&rows, &mut hops);
                for ((key, found), hop) in keys.iter().zip(found).zip(hops) {
                    let right = self.matching(key).find(|slot| !tombstones.contains(*slot)).unwrap_or(NONE);
                    assert_eq!(found, right, "{what}, {level:?}: {key:x?}");
                    // With shared numbers, the expected rule is the first one of the longest matching prefix.
                    let longest = self.matching(key).min_by_key(|slot| std::cmp::Reverse(self.length(*slot)));
                    let right = longest.map_or(NONE, |slot| numbers[slot as usize]);
                    assert_eq!(hop, right, "{what}, {level:?}, shared: {key:x?}");
                }
            }
        }
    }
}

#[test]
fn every_level_finds_the_same() {
    for seed in 0..40 {
        let mut rng = Rng::with_seed(seed);
        let bits = [rng.u32(1..=32), 32, 48, rng.u32(33..=64), rng.u32(65..=128), 128][rng.usize(..6)];
        let tags = if rng.bool() { 1 } else { rng.u64(2..5) };
        let mut rows = Rows::new(bits, tags);
        let near = rng.u128(..);
        for _ in 0..rng.usize(1..400) {
            let length = if rng.bool() { rng.u32(0..=bits) } else { bits - rng.u32(0..=bits.min(3)) };
            let value = if rng.u8(..3) == 0 { rng.u128(..) } else { near ^ 1 << rng.u32(128 - bits..128) };
            rows.push(rng.u64(..tags), value, length);
        }
        let mut tombstones = BitSet::new(rows.len());
        rows.check(&mut rng, 6, &tombstones, "all rules active");
        (0..rows.len() as u32).filter(|_| rng.u8(..3) == 0).for_each(|slot| tombstones.insert(slot));
        rows.check(&mut rng, 6, &tombstones, "some rules deleted");
    }
}

/// Prefixes of every length, each nested in the next shorter one.
#[test]
fn the_deepest_nesting() {
    for bits in [24, 32, 64, 128] {
        let mut rng = Rng::with_seed(bits.into());
        let mut rows = Rows::new(bits, 1);
        for length in (0..=bits).rev() {
            rows.push(0, 0, length);
            rows.push(0, u128::MAX, length);
            rows.push(0, 0x5555_5555_5555_5555_5555_5555_5555_5555, length);
        }
        let mut tombstones = BitSet::new(rows.len());
        rows.check(&mut rng, 40, &tombstones, "nested");
        (0..rows.len() as u32).filter(|slot| slot % 5 != 0).for_each(|slot| tombstones.insert(slot));
        rows.check(&mut rng, 40, &tombstones, "nested, most rules deleted");
    }
}

/// Function that returns the n-th prefix.
type Hostile = fn(u32, &mut Rng) -> (u128, u32);

/// Prefixes that an attacker may load. Memory must stay linear.
#[test]
fn memory_is_linear_in_hostile_prefixes() {
    let cases: [(&str, u32, Hostile); 6] = [
        ("under one root", 32, |n, _| ((0x0a0a_0000 | u128::from(n)) << 96, 32)),
        ("spread", 32, |n, _| (u128::from(n.reverse_bits() | 1) << 96, 32)),
        ("random hosts", 32, |_, rng| (u128::from(rng.u32(..)) << 96, 32)),
        ("any lengths", 32, |n, rng| (u128::from(rng.u32(..)) << 96, n % 33)),
        ("under one /64", 128, |n, _| (0x2001 << 112 | u128::from(n), 128)),
        ("one in each /64", 128, |n, rng| {
            (0x2001 << 112 | u128::from(n) << 64 | u128::from(rng.u64(..)), 128)
        }),
    ];
    for (name, bits, prefix) in cases {
        let mut rng = Rng::with_seed(9);
        let mut rows = Rows::new(bits, 1);
        for n in 0..65_536 {
            let (value, length) = prefix(n, &mut rng);
            rows.push(0, value, length);
        }
        let engine =
            Lpm::with_level(Level::found(), rows.words, &rows.field, rows.len(), &rows.values, &rows.masks);
        assert!(engine.bytes() < rows.len() * 200, "{name}: {} bytes", engine.bytes());
        let mut tombstones = BitSet::new(rows.len());
        (0..1_000).for_each(|_| tombstones.insert(rng.u32(..65_536)));
        rows.check(&mut rng, 1, &tombstones, name);
    }
}
