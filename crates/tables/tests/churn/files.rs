// SPDX-License-Identifier: Apache-2.0
//! Access lists and routing tables from files: the samples in the tests of crate `engines`, and the complete
//! data sets if they are present.

use crate::rig::Rig;
use crate::sets::{access_list, routes};
use fastrand::Rng;
use flow::{EntryId, Field, FieldMatch, Match};
use std::path::{Path, PathBuf};
use std::process::Command;

fn sample(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engines/tests/engines/data");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns an unpacked file of the complete sets, or prints a message if they are not present.
fn whole(name: &str) -> Option<String> {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data").join(name);
    if !path.exists() {
        println!("{name} does not exist: the test uses only the samples in the repository");
        return None;
    }
    let output = Command::new("zcat").arg(&path).output().unwrap();
    assert!(output.status.success(), "zcat {}", path.display());
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Assigns descending priorities in the order of the list. Adjacent rules may share one, because an access
/// list can have more rules than there are priorities.
fn ranked(list: Vec<Vec<Match>>) -> Vec<(u16, Match)> {
    let len = list.len();
    let priority = |place: usize| (65_535 - place * 65_535 / len.max(1)) as u16;
    list.into_iter()
        .enumerate()
        .flat_map(|(place, rules)| rules.into_iter().map(move |rule| (priority(place), rule)))
        .collect()
}

/// Returns a routing table whose priorities are prefix lengths, with a default route and a table-miss entry
/// at the end.
fn by_length(routes: Vec<Match>) -> Vec<(u16, Match)> {
    let length = |route: &Match| route.fields().last().map_or(0, |c| c.mask.count_ones() as u16);
    let ether_type = routes[0].get(Field::EthType);
    let mut made: Vec<(u16, Match)> = routes.into_iter().map(|route| (length(&route), route)).collect();
    made.push((0, Match::new(ether_type).unwrap()));
    made.push((0, Match::any()));
    made
}

/// Adds half of the rules at once and half one by one, then removes a third. Checks lookups in between.
fn through_churn(rules: Vec<(u16, Match)>, engine: &str, lookups: usize) -> Rig {
    let mut rng = Rng::with_seed(7);
    let mut rig = Rig::default();
    let (loaded, single): (Vec<_>, Vec<_>) = rules.into_iter().partition(|_| rng.bool());
    rig.add(loaded);
    assert_eq!(rig.rule_table.engine_name(), engine);
    rig.check(&rig.packets(&mut rng, lookups), "loaded");
    for (at, rule) in single.into_iter().enumerate() {
        rig.add([rule]);
        if at % 100 == 0 {
            rig.check(&rig.packets(&mut rng, 8), "added");
        }
    }
    rig.check(&rig.packets(&mut rng, lookups), "all rules added");
    let gone: Vec<EntryId> = rig.entries.keys().copied().filter(|_| rng.u8(..3) == 0).collect();
    for (at, id) in gone.iter().enumerate() {
        rig.remove(&[*id]);
        if at % 100 == 0 {
            rig.check(&rig.packets(&mut rng, 8), "removed");
        }
    }
    rig.check(&rig.packets(&mut rng, lookups), "a third of the rules removed");
    assert_eq!(rig.rule_table.engine_name(), engine);
    rig
}

#[test]
fn sample_access_lists() {
    for name in ["acl1.rules", "fw1.rules", "ipc1.rules"] {
        let list = access_list(&sample(name));
        assert!(list.len() > 190, "{name}");
        through_churn(ranked(list), "mask", 400);
    }
}

#[test]
fn sample_routes() {
    for name in ["ipv4.txt", "ipv6.txt"] {
        let routes = routes(&sample(name));
        assert!(routes.len() > 1_300, "{name}");
        through_churn(by_length(routes), "lpm", 400);
    }
}

#[test]
fn whole_access_lists() {
    for name in ["acl1_10k", "fw1_10k", "ipc1_10k", "acl2_10k", "fw2_10k"] {
        let Some(text) = whole(&format!("classbench/{name}.rules.gz")) else { return };
        let mut rules = ranked(access_list(&text));
        Rng::with_seed(1).shuffle(&mut rules);
        rules.truncate(6_000);
        through_churn(rules, "mask", 100);
    }
}

/// Changes a full routing table, and compares lookups with a linear search.
#[test]
fn whole_routes() {
    for name in ["rib/ipv4_full.txt.gz", "rib/ipv6_full.txt.gz"] {
        let Some(text) = whole(name) else { return };
        let mut rules = by_length(routes(&text));
        // The linear search is slow, so few packets are looked up among all routes, and many among a part.
        let mut rig = Rig::default();
        rig.add(rules.clone());
        assert_eq!((rig.rule_table.engine_name(), rig.rule_table.len()), ("lpm", rules.len()));
        let mut rng = Rng::with_seed(9);
        rig.check(&rig.packets(&mut rng, 25), name);
        let gone: Vec<EntryId> =
            rig.entries.keys().copied().filter(|id| id.0 % 3 == 0).take(64 * 50).collect();
        gone.chunks(64).for_each(|gone| rig.remove(gone));
        assert_eq!(rig.rule_table.compiled(), 1, "small changes need no new base");
        rig.check(&rig.packets(&mut rng, 10), name);
        rules.rotate_left(100_000);
        rules.truncate(5_000);
        through_churn(rules, "lpm", 200);
    }
}

/// Most rules differ only in one field of 16 bits, so they are equal under a mask without this field.
#[test]
fn many_rules_of_one_coarse_value() {
    let mut rng = Rng::with_seed(3);
    let rule = |port: u32| {
        let source = FieldMatch { field: Field::Ipv4Src, value: 0x0a00_0000, mask: 0xff00_0000 };
        Match::new([
            FieldMatch::exact(Field::EthType, 0x0800),
            FieldMatch::exact(Field::IpProto, 17),
            source,
            FieldMatch::exact(Field::UdpDst, port.into()),
        ])
        .unwrap()
    };
    let other = |bits: u32| {
        let mask = u128::from(u32::MAX << bits);
        let source = FieldMatch { field: Field::Ipv4Dst, value: 0, mask };
        Match::new([FieldMatch::exact(Field::EthType, 0x0800), source]).unwrap()
    };
    let mut rig = Rig::default();
    rig.add((0..65_536).map(|port| (100, rule(port))));
    assert_eq!(rig.rule_table.engine_name(), "exact");
    rig.add((0..24).map(|bits| (bits as u16 * 10, other(bits))));
    rig.add((0..100).map(|bits| (bits as u16 * 10, other(bits % 24))));
    assert_eq!(rig.rule_table.engine_name(), "mask");
    let packets = rig.packets(&mut rng, 50);
    rig.check(&packets, "many rules of one coarse value");
    // Each value has a hundred rules of different priority, the best of which hides the others.
    rig.add((0..6_400).map(|at| (200 + at / 64, rule(u32::from(at % 64)))).collect::<Vec<_>>());
    rig.check(&packets, "a hundred rules of each value");
    let best: Vec<EntryId> =
        rig.entries.iter().filter(|(_, e)| e.priority > 250).map(|(id, _)| *id).collect();
    best.chunks(64).for_each(|gone| rig.remove(gone));
    let packets = rig.packets(&mut rng, 50);
    rig.check(&packets, "half of the rules of each value removed");
}

#[test]
fn adding_rules_one_by_one_compiles_few_bases() {
    // The masks are random. Their clear top bit keeps them from being prefixes.
    let mut rng = Rng::with_seed(5);
    let mut holes = Rig::default();
    for _ in 0..20_000 {
        let mask = rng.u128(..) & Field::EthDst.full_mask() & !(1 << 47);
        let value = rng.u128(..) & mask;
        let rule = Match::new([FieldMatch { field: Field::EthDst, value, mask }]).unwrap_or_default();
        holes.add([(rng.u16(..), rule)]);
    }
    holes.check(&holes.packets(&mut rng, 50), "a different mask for each rule");
    assert!(holes.rule_table.compiled() < 40, "{} bases for 20,000 rules", holes.rule_table.compiled());
    let mut lists = Rig::default();
    let rules = ranked(access_list(&sample("fw1.rules")));
    for (at, (priority, rule)) in rules.iter().cycle().take(10_000).enumerate() {
        lists.add([(priority ^ at as u16, rule.clone())]);
    }
    lists.check(&lists.packets(&mut rng, 50), "repeated access list");
    assert!(lists.rule_table.compiled() < 40, "{} bases for 10,000 rules", lists.rule_table.compiled());
}
