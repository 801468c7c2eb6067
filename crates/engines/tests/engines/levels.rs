// SPDX-License-Identifier: Apache-2.0
//! Engine `mask` at every level of instructions, and `lpm` on routes of a real table, compared with a linear
//! search.

use engines::lpm::{Lpm, Piece};
use engines::mask::Mask;
use engines::scan::Scan;
use engines::simd::Level;
use engines::{BitSet, KeyPlan};
use fastrand::Rng;
use flow::{Field, FieldMatch, Match, Slice, SliceBase};
use std::path::Path;

use crate::packet::Packet;

fn sample(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engines/data");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Rows of matches, best first.
struct Rows {
    plan: KeyPlan,
    values: Vec<u64>,
    masks: Vec<u64>,
    matches: Vec<Match>,
}

impl Rows {
    fn new(matches: Vec<Match>) -> Self {
        let mut fields: Vec<Field> = matches.iter().flat_map(|m| m.fields().map(|c| c.field)).collect();
        fields.sort_unstable();
        fields.dedup();
        let plan = KeyPlan::new(&fields).unwrap();
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        matches.iter().for_each(|m| plan.encode(m, &mut values, &mut masks));
        Self { plan, values, masks, matches }
    }

    fn mask(&self, level: Level) -> Mask {
        Mask::with_level(&self.plan, self.matches.len(), &self.values, &self.masks, level)
    }

    /// Returns keys that match rules. Some of the keys have one flipped bit.
    fn keys(&self, rng: &mut Rng, count: usize) -> Vec<u64> {
        let mut keys = Vec::new();
        for _ in 0..count {
            let at = rng.usize(..self.matches.len());
            let mut key = Packet::matching(rng, &self.matches[at]).key(&self.plan);
            if rng.u8(..3) == 0 {
                let word = rng.usize(..key.len());
                key[word] ^= 1 << rng.u32(..64);
            }
            keys.extend(key);
        }
        keys
    }

    /// Compares `mask` at all levels with a linear search, with all rules active, then with some deleted.
    fn check(&self, rng: &mut Rng, keys: usize) {
        let engine = |level| {
            let mask = self.mask(level);
            move |keys: &[u64], tombstones: &BitSet, found: &mut [u32]| mask.lookup(keys, tombstones, found)
        };
        self.hold(rng, keys, engine);
    }

    /// Compares `lpm` at all levels with a linear search, with all rules active, then with some deleted.
    fn check_prefixes(&self, rng: &mut Rng, keys: usize, field: Field) {
        let pieces = Piece::of_field(&self.plan, field);
        let (words, len) = (self.plan.words(), self.matches.len());
        let engine = |level| {
            let lpm = Lpm::with_level(level, words, &pieces, len, &self.values, &self.masks);
            move |keys: &[u64], tombstones: &BitSet, found: &mut [u32]| lpm.lookup(keys, tombstones, found)
        };
        self.hold(rng, keys, engine);
    }

    fn hold<E: Fn(&[u64], &BitSet, &mut [u32])>(
        &self,
        rng: &mut Rng,
        keys: usize,
        engine: impl Fn(Level) -> E,
    ) {
        let len = self.matches.len();
        let keys = self.keys(rng, keys);
        let scan = Scan::new(self.plan.words(), len, &self.values, &self.masks);
        let mut tombstones = BitSet::new(len);
        let levels = Level::ALL.into_iter().filter(|level| *level <= Level::found());
        let engines: Vec<E> = levels.map(engine).collect();
        for round in 0..5 {
            let count = keys.len() / self.plan.words();
            let (mut right, mut found) = (vec![0; count], vec![0; count]);
            scan.lookup(&keys, &tombstones, &mut right);
            for (engine, level) in engines.iter().zip(Level::ALL) {
                let mut from = 0;
                while from < count {
                    let to = (from + rng.usize(1..70)).min(count);
                    let words = self.plan.words();
                    engine(&keys[from * words..to * words], &tombstones, &mut found[from..to]);
                    from = to;
                }
                assert!(found == right, "{level:?}: {len} rules, {} deleted", tombstones.len());
            }
            // Deletes some of the rules that were hit, and some others.
            right.iter().filter(|_| rng.u8(..4) < round + 1).for_each(|slot| tombstones.insert(*slot));
            (0..len as u32).filter(|_| rng.u8(..8) == 0).for_each(|slot| tombstones.insert(slot));
            if round == 3 {
                // Leaves only a few rules active.
                (0..len as u32).filter(|_| rng.u8(..50) > 0).for_each(|slot| tombstones.insert(slot));
            }
        }
    }
}

fn prefix(field: Field, value: u128, length: u32) -> FieldMatch {
    let bits = u32::from(field.location().length_bits);
    let full = field.full_mask();
    let mask = if length == 0 { 0 } else { full >> (bits - length) << (bits - length) };
    FieldMatch { field, value: value & mask, mask }
}

/// Sizes that lead to labels alone, to trees and labels, and to several trees.
const SIZES: [usize; 4] = [40, 700, 3_000, 9_000];

#[test]
fn access_lists() {
    for (seed, size) in (0..).zip(SIZES) {
        for wide in [false, true] {
            let mut rng = Rng::with_seed(seed);
            let fields =
                if wide { [Field::Ipv6Src, Field::Ipv6Dst] } else { [Field::Ipv4Src, Field::Ipv4Dst] };
            let ether_type = FieldMatch::exact(Field::EthType, if wide { 0x86dd } else { 0x0800 });
            let near: Vec<u128> = (0..size / 4 + 2).map(|_| rng.u128(..) & fields[0].full_mask()).collect();
            let rule = |_| {
                let mut conditions = vec![ether_type];
                for field in fields {
                    let bits = u32::from(field.location().length_bits);
                    let length = [0, bits / 4, bits / 2, bits * 3 / 4, bits][rng.usize(..5)];
                    conditions.push(prefix(field, near[rng.usize(..near.len())], length));
                }
                for field in crate::sets::ports().unwrap() {
                    let length = [0, 0, 6, 16][rng.usize(..4)];
                    conditions.push(prefix(field, rng.u128(..300), length));
                }
                if rng.bool() {
                    conditions.push(FieldMatch::exact(Field::IpProto, rng.u128(6..9)));
                }
                Match::new(conditions).unwrap()
            };
            let rows = Rows::new((0..size).map(rule).collect());
            rows.check(&mut Rng::with_seed(seed), 400);
        }
    }
}

#[test]
fn samples_of_access_lists() {
    for (seed, name) in (30..).zip(["acl1.rules", "fw1.rules", "ipc1.rules"]) {
        let list = crate::sets::access_list(&sample(name));
        Rows::new(list.into_iter().flatten().collect()).check(&mut Rng::with_seed(seed), 600);
    }
}

#[test]
fn samples_of_routing_tables() {
    for (seed, name, field) in [(40, "ipv4.txt", Field::Ipv4Dst), (41, "ipv6.txt", Field::Ipv6Dst)] {
        let mut routes = crate::sets::routes(&sample(name));
        routes.sort_by_key(|route| std::cmp::Reverse(route.get(field).map(|c| c.mask)));
        let rows = Rows::new(routes);
        let mut rng = Rng::with_seed(seed);
        rows.check_prefixes(&mut rng, 600, field);
        rows.check(&mut rng, 300);
    }
}

#[test]
fn masks_with_holes_on_long_keys() {
    let slice = |at: u32| Field::Slice(Slice::new(SliceBase::Packet, at * 64, 64).unwrap());
    let kinds: [&[Field]; 4] = [
        &[Field::Metadata],
        &[Field::EthDst, Field::EthSrc, Field::InPort],
        &[slice(0), slice(1), slice(2), slice(3), Field::Metadata],
        // More bits distinguish these rules than a dense key has.
        &[slice(0), slice(1), slice(2), slice(3), slice(4), slice(5), slice(6), slice(7), slice(8)],
    ];
    for (seed, fields) in (10..).zip(kinds) {
        for size in SIZES {
            let mut rng = Rng::with_seed(seed);
            let rule = |_| {
                let asked: Vec<Field> = fields.iter().copied().filter(|_| rng.u8(..3) > 0).collect();
                let conditions = asked.into_iter().map(|field| {
                    let full = field.full_mask();
                    let dense = rng.u128(..) | rng.u128(..);
                    let mask = if field.maskable() { dense & full } else { full };
                    FieldMatch { field, value: (rng.u128(..16) * 0x1111_1111_1111) & mask, mask }
                });
                Match::new(conditions.collect::<Vec<_>>()).unwrap_or_default()
            };
            let matches: Vec<Match> = (0..size).map(rule).collect();
            Rows::new(matches).check(&mut Rng::with_seed(seed), 200);
        }
    }
}

/// Rules that all match one packet: the worst case.
#[test]
fn nested_rules() {
    let mut matches = Vec::new();
    for source in (0..=32).rev() {
        for destination in (0..=32).rev() {
            for port in [16, 8, 0] {
                let [from, _] = crate::sets::ports().unwrap();
                matches.push(
                    Match::new([
                        FieldMatch::exact(Field::EthType, 0x0800),
                        FieldMatch::exact(Field::IpProto, 6),
                        prefix(Field::Ipv4Src, 0x0a0a_0a0a, source),
                        prefix(Field::Ipv4Dst, 0x0b0b_0b0b, destination),
                        prefix(from, 80, port),
                    ])
                    .unwrap(),
                );
            }
        }
    }
    let mut rng = Rng::with_seed(20);
    Rows::new(matches.clone()).check(&mut rng, 400);
    // If the widest rule is first, it hides all others.
    matches.reverse();
    Rows::new(matches.clone()).check(&mut rng, 400);
    rng.shuffle(&mut matches);
    Rows::new(matches).check(&mut rng, 400);
}

/// Rules that no coarse mask distinguishes, many of them equal.
#[test]
fn rules_equal_in_all_long_fields() {
    let mut rng = Rng::with_seed(21);
    let rule = |_| {
        let [from, to] = crate::sets::ports().unwrap();
        let ports = [prefix(from, rng.u128(..), [16, 9][rng.usize(..2)]), prefix(to, rng.u128(..4), 16)];
        let proto = FieldMatch::exact(Field::IpProto, 17);
        let source = prefix(Field::Ipv4Src, 0x0a00_0000, 8);
        Match::new([FieldMatch::exact(Field::EthType, 0x0800), proto, source].into_iter().chain(ports))
            .unwrap()
    };
    let rows = Rows::new((0..65_536).map(rule).collect());
    rows.check(&mut Rng::with_seed(22), 60);
    let bytes = rows.mask(Level::found()).bytes();
    assert!(bytes < 300 * rows.matches.len(), "{} bytes per rule", bytes / rows.matches.len());
}
