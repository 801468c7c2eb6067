// SPDX-License-Identifier: Apache-2.0
//! Compares tries with linear searches of the same rules.

use std::path::Path;

use fastrand::Rng;

use super::*;

fn sample(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engines/tests/engines/data");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Random ternary rules. The mask of each byte is empty, full, a prefix, or arbitrary. Values are few, so
/// that many rules match the same keys.
struct Random {
    words: usize,
    values: Vec<u64>,
    masks: Vec<u64>,
    ids: Vec<u32>,
}

impl Random {
    fn new(rng: &mut Rng, words: usize, rows: usize, open_bytes: u32) -> Self {
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        for _ in 0..rows * words {
            let mask: u64 = (0..8).fold(0, |mask, _| {
                let byte = match rng.u32(..open_bytes + 3) {
                    0 => 0xff,
                    1 => (0xff00_u16 >> rng.u32(..9)) as u8,
                    2 => rng.u8(..),
                    _ => 0,
                };
                mask << 8 | u64::from(byte)
            });
            values.push(Self::word(rng) & mask);
            masks.push(mask);
        }
        // Neighbouring rows may have the same rule id.
        let ids = (0..rows as u32).map(|row| if row % 5 == 1 { row - 1 } else { row }).collect();
        Self { words, values, masks, ids }
    }

    fn word(rng: &mut Rng) -> u64 {
        (0..8).fold(0, |word, _| word << 8 | if rng.u8(..8) == 0 { rng.u64(..256) } else { rng.u64(..2) })
    }

    fn rows(&self) -> TernaryRows<'_> {
        TernaryRows { words: self.words, values: &self.values, masks: &self.masks, ids: &self.ids }
    }

    fn first(&self, key: &[u64]) -> u32 {
        let rows = self.values.chunks(self.words).zip(self.masks.chunks(self.words));
        let fits = |(values, masks): (&[u64], &[u64])| {
            key.iter().zip(values).zip(masks).all(|((key, value), mask)| key & mask == *value)
        };
        rows.zip(&self.ids).find(|(row, _)| fits(*row)).map_or(NONE, |(_, id)| *id)
    }

    /// Returns keys close to the rules.
    fn keys(&self, rng: &mut Rng, count: usize) -> Vec<u64> {
        let mut keys = Vec::new();
        for _ in 0..count {
            let row = rng.usize(..self.ids.len()) * self.words;
            for at in row..row + self.words {
                let turned = if rng.u8(..8) == 0 { 1 << rng.u32(..64) } else { 0 };
                keys.push((self.values[at] | Self::word(rng) & !self.masks[at]) ^ turned);
            }
        }
        keys
    }
}

#[test]
fn ternary_rules_of_any_width_are_found_as_in_a_plain_list() {
    let mut rng = Rng::with_seed(1);
    for round in 0..32 {
        let words = 1 + round % 8;
        let open_bytes = rng.u32(0..words as u32 * 4);
        let rows = rng.usize(1..24);
        let rules = Random::new(&mut rng, words, rows, open_bytes);
        let trie = AclTrie::new(&rules.rows()).unwrap();
        // Covers every possible number of keys in the last group of lanes.
        let keys = rules.keys(&mut rng, 200 + round);
        let mut found = vec![7; 200 + round];
        trie.lookup(&keys, &mut found);
        for (key, found) in keys.chunks(words).zip(found) {
            assert_eq!(found, rules.first(key), "{words} words, key {key:x?}");
        }
    }
}

#[test]
fn rules_that_make_a_trie_too_large_are_divided() {
    let mut rng = Rng::with_seed(2);
    let rules = Random::new(&mut rng, 4, 150, 12);
    let trie = AclTrie::new(&rules.rows()).unwrap();
    assert!(trie.tries() > 1, "{} trie of {} bytes", trie.tries(), trie.bytes());
    let keys = rules.keys(&mut rng, 1_000);
    let mut found = vec![0; 1_000];
    trie.lookup(&keys, &mut found);
    for (key, found) in keys.chunks(4).zip(found) {
        assert_eq!(found, rules.first(key));
    }
}

#[test]
fn access_lists_of_both_families_are_found_as_by_a_linear_search() {
    let mut rng = Rng::with_seed(3);
    for set in ["acl1", "fw1", "ipc1"] {
        let list = AccessList::parse(&sample(&format!("{set}.rules")));
        assert!(list.rules.len() > 200);
        for list in [list.to_ipv6(), list] {
            let trie = AclTrie::new(&list.rows().as_rows()).unwrap();
            let packets: Vec<FiveTuple> = (0..2_000)
                .map(|_| {
                    let (packet, other) = (list.draw(&mut rng), list.draw(&mut rng));
                    match rng.u8(..4) {
                        0 => FiveTuple { ports: other.ports, protocol: other.protocol, ..packet },
                        1 => FiveTuple { addresses: [packet.addresses[0], other.addresses[1]], ..packet },
                        _ => packet,
                    }
                })
                .collect();
            let mut keys = Vec::new();
            packets.iter().for_each(|packet| list.push_row(packet, &mut keys));
            let mut found = vec![0; packets.len()];
            trie.lookup(&keys, &mut found);
            let mut different = std::collections::HashSet::new();
            for (packet, found) in packets.iter().zip(found) {
                assert_eq!(found, list.first(packet).unwrap_or(NONE), "{set}: {packet:x?}");
                different.insert(found);
            }
            assert!(different.len() > 100, "{set}: the packets hit {} rules", different.len());
        }
    }
}

#[test]
fn ranges_are_exactly_their_prefixes() {
    let list = |low, high| {
        let rule = AccessRule { addresses: [(0, 0); 2], ports: [(0, 65_535), (low, high)], protocol: None };
        AccessList { address_bits: 32, rules: vec![rule] }
    };
    for (low, high) in [(0, 65_535), (1_024, 65_535), (1, 65_534), (7, 7), (0, 0), (65_535, 65_535), (3, 12)]
    {
        let list = list(low, high);
        let trie = AclTrie::new(&list.rows().as_rows()).unwrap();
        for port in [0, 1, 2, 3, 7, 8, 12, 13, 1_023, 1_024, 65_534, 65_535] {
            let packet = FiveTuple { addresses: [5; 2], ports: [9, port], protocol: 17 };
            let (mut key, mut found) = (Vec::new(), [0]);
            list.push_row(&packet, &mut key);
            trie.lookup(&key, &mut found);
            assert_eq!(found[0] == 0, (low..=high).contains(&port), "{port} in {low} to {high}");
        }
    }
}

fn routes_of(text: &str) -> Vec<Route> {
    let parse = |(id, line): (u32, &str)| {
        let (address, length) = line.split_once('/')?;
        let address: std::net::Ipv6Addr = address.parse().ok()?;
        Some(Route { value: address.into(), length: length.parse().ok()?, id })
    };
    (0..).zip(text.lines()).filter_map(parse).collect()
}

fn longest(routes: &[Route], key: u128) -> u32 {
    let fits = |route: &&Route| {
        let mask = u128::MAX.checked_shl(128 - u32::from(route.length)).unwrap_or(0);
        key & mask == route.value
    };
    // Among equal prefixes, the last one is the expected result.
    routes.iter().filter(fits).max_by_key(|route| route.length).map_or(NONE, |route| route.id)
}

fn hold_against_list(routes: &[Route], words: usize, keys: &[u128]) {
    let trie = LpmTrie::new(words, routes).unwrap();
    let rows: Vec<u64> =
        keys.iter().flat_map(|key| [(key >> 64) as u64, *key as u64].into_iter().take(words)).collect();
    let mut found = vec![0; keys.len()];
    trie.lookup(&rows, &mut found);
    for (key, found) in keys.iter().zip(found) {
        assert_eq!(found, longest(routes, *key), "{key:x}, {words} words");
    }
}

#[test]
fn the_longest_prefix_is_found() {
    let mut rng = Rng::with_seed(4);
    for round in 0..8 {
        let words = 1 + round % 2;
        let mut routes: Vec<Route> = (0..rng.u32(1..200))
            .map(|id| {
                let length = rng.u8(..=words as u8 * 64);
                let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                // There are few distinct values per byte, so that prefixes nest.
                let value = (0..16).fold(0, |value, _| (value << 8) | (rng.u128(..2) * 0x81));
                Route { value: value & mask, length, id }
            })
            .collect();
        routes.extend(routes.clone().iter().map(|route| Route { id: route.id + 1_000, ..*route }).take(5));
        let keys: Vec<u128> = (0..300)
            .map(|_| {
                let key = rng.choice(&routes).unwrap().value | rng.u128(..) >> rng.u32(..128);
                if words == 1 { key >> 64 << 64 } else { key }
            })
            .collect();
        hold_against_list(&routes, words, &keys);
    }
}

#[test]
fn routes_of_a_full_table_are_found() {
    let mut rng = Rng::with_seed(5);
    let routes = routes_of(&sample("ipv6.txt"));
    assert!(routes.len() > 1_000);
    let keys: Vec<u128> = (0..2_000)
        .map(|_| {
            let route = rng.choice(&routes).unwrap();
            route.value ^ rng.u128(..) >> (u32::from(route.length) - rng.u32(..4)).min(127)
        })
        .collect();
    hold_against_list(&routes, 2, &keys);
}

#[test]
fn invalid_tables_are_refused() {
    let row = [0; 9];
    let rows = |words, values, ids| TernaryRows { words, values, masks: &row[..2], ids };
    assert!(AclTrie::new(&rows(1, &row[..2], &[1, 2])).is_some());
    assert!(AclTrie::new(&rows(1, &row[..2], &[1, NONE])).is_none());
    assert!(AclTrie::new(&rows(1, &row[..1], &[1, 2])).is_none());
    assert!(AclTrie::new(&rows(0, &row[..2], &[1, 2])).is_none());
    assert!(AclTrie::new(&TernaryRows { words: 9, values: &row, masks: &row, ids: &[1] }).is_none());
    let empty = AclTrie::new(&TernaryRows { words: 1, values: &[], masks: &[], ids: &[] }).unwrap();
    let mut found = [0];
    empty.lookup(&[5], &mut found);
    assert_eq!(found, [NONE]);
    let route = |value, length, id| [Route { value, length, id }];
    assert!(LpmTrie::new(2, &route(0, 128, 0)).is_some());
    assert!(LpmTrie::new(1, &route(0, 65, 0)).is_none());
    assert!(LpmTrie::new(2, &route(1, 127, 0)).is_none());
    assert!(LpmTrie::new(2, &route(0, 0, NONE)).is_none());
    assert!(LpmTrie::new(3, &[]).is_none());
}
