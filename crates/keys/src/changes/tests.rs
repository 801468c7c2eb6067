// SPDX-License-Identifier: Apache-2.0
//! Tests of the list of changes: it must miss no change that concerns a key, and rarely report others.

use super::*;
use crate::plan::{ExpressPlan, PlanVersion};
use crate::{ExpressKey, KeyReader};
use flow::{Field, FieldMatch, Match, PortNo};
use wire::PacketBuilder;

/// Tables of a path without rewrites, and the priority of the entry hit in each.
const PATH: [(TableId, u16); 2] = [(TableId(0), 10), (TableId(3), 20)];

struct Lab {
    plan: ExpressPlan,
    reader: KeyReader,
    changes: RuleChanges,
}

impl Lab {
    fn new() -> Self {
        let fields = [Field::EthSrc, Field::EthType, Field::Ipv4Src, Field::Ipv4Dst, Field::UdpDst];
        let examined = fields.map(|field| (field, field.full_mask())).to_vec();
        let plan = ExpressPlan::new(PlanVersion(1), examined, PortNo(9));
        let changes = RuleChanges::new(plan.key_words());
        Self { reader: plan.reader().unwrap().clone(), plan, changes }
    }

    /// Returns the key of a packet from this MAC address to this IP address and port.
    fn key(&self, [mac, address, port]: [u8; 3]) -> ExpressKey {
        let mut key = ExpressKey::default();
        let packet = PacketBuilder::ethernet([2; 6], [2, 0, 0, 0, 0, mac]);
        let packet = packet.ipv4([10, 0, 0, 1], [10, 0, 0, address]).udp(5, port.into()).build();
        self.reader.key_of(&packet, PortNo(1), &mut key);
        key
    }

    /// Adds a rule for IPv4 packets.
    fn add(&mut self, table: u8, priority: u16, conditions: &[(Field, u128, u128)]) -> Match {
        let ipv4 = [FieldMatch::exact(Field::EthType, 0x800)];
        let conditions = conditions.iter().map(|&(field, value, mask)| FieldMatch { field, value, mask });
        let matching = Match::new(conditions.chain(ipv4)).unwrap();
        let mut row = Vec::new();
        self.plan.append_row(&matching, &mut row);
        self.changes.add(TableId(table), priority, RuleRow::of(&row));
        matching
    }

    /// Returns whether a packet may take another path than at version `since`, or `None` if later changes are
    /// forgotten.
    fn concerns(&self, since: u64, key: &ExpressKey, rewritten: Rewritten) -> Option<bool> {
        let mut since = self.changes.since(since)?;
        let kinds = since.kinds();
        Some(kinds.into_iter().any(|rules| {
            PATH.iter().any(|&(table, hit)| {
                let rewritten = if table == TableId(0) { Rewritten::Nothing } else { rewritten };
                table == rules.table
                    && since.add_match(rules, key.words(), rewritten, |priority| priority > hit)
            })
        }))
    }

    fn removes(&self, since: u64, id: u32) -> Option<bool> {
        Some(self.changes.since(since)?.remove_one_of([EntryId(7), EntryId(id)].into_iter()))
    }
}

/// Returns a condition on a destination address in the network 10.0.0.0/24.
fn to(address: u8) -> (Field, u128, u128) {
    (Field::Ipv4Dst, 0x0a00_0000 | u128::from(address), 0xffff_ffff)
}

fn from_mac(mac: u8) -> (Field, u128, u128) {
    (Field::EthSrc, 0x0200_0000_0000 | u128::from(mac), Field::EthSrc.full_mask())
}

#[test]
fn only_rules_that_match_in_a_table_of_the_path_and_win_concern_a_key() {
    let mut lab = Lab::new();
    let key = lab.key([1, 5, 7]);
    for (table, priority, address, concerns) in
        [(0, 11, 5, true), (0, 10, 5, false), (0, 11, 6, false), (3, 20, 5, false), (3, 21, 5, true)]
    {
        let before = lab.changes.version();
        lab.add(table, priority, &[to(address)]);
        assert_eq!(lab.concerns(before, &key, Rewritten::Nothing), Some(concerns), "{table} {priority}");
        assert_eq!(lab.concerns(lab.changes.version(), &key, Rewritten::Nothing), Some(false));
    }
    let before = lab.changes.version();
    lab.add(1, 99, &[to(5)]);
    assert_eq!(lab.concerns(before, &key, Rewritten::Anything), Some(false), "another table");
}

#[test]
fn rewrites_before_a_table_are_considered() {
    let mut lab = Lab::new();
    let key = lab.key([1, 5, 7]);
    let before = lab.changes.version();
    lab.add(3, 99, &[from_mac(2), to(5)]);
    for (rewritten, concerns) in
        [(Rewritten::Nothing, false), (Rewritten::MacsOrTtl, true), (Rewritten::Anything, true)]
    {
        assert_eq!(lab.concerns(before, &key, rewritten), Some(concerns), "{rewritten:?}");
    }
    let before = lab.changes.version();
    lab.add(3, 99, &[from_mac(1), to(6)]);
    lab.add(3, 5, &[to(6)]);
    assert_eq!(lab.concerns(before, &key, Rewritten::MacsOrTtl), Some(false));
    assert_eq!(lab.concerns(before, &key, Rewritten::Anything), Some(true));
    // The metadata of every arriving packet is 0.
    let before = lab.changes.version();
    lab.add(3, 99, &[(Field::Metadata, 1, 1)]);
    assert_eq!(lab.concerns(before, &key, Rewritten::MacsOrTtl), Some(false));
    assert_eq!(lab.concerns(before, &key, Rewritten::Anything), Some(true));
}

#[test]
fn removed_entries_are_found_until_they_are_forgotten() {
    let mut lab = Lab::new();
    let first = lab.changes.version();
    for id in 100..100 + REMEMBERED as u32 {
        lab.changes.remove_or_modify(EntryId(id));
    }
    for id in [100, 3_000, 100 + REMEMBERED as u32 - 1] {
        assert_eq!(lab.removes(first, id), Some(true), "{id}");
        assert_eq!(lab.removes(first + u64::from(id - 100), id), Some(true), "{id}");
        assert_eq!(lab.removes(first + u64::from(id - 99), id), Some(false), "{id}");
    }
    assert_eq!(lab.removes(first, 99), Some(false));
    lab.changes.add_station();
    assert_eq!((lab.removes(first, 100), lab.removes(first + 1, 99)), (None, Some(false)));
    assert!(lab.changes.since(first + 1).unwrap().have_stations());
    assert!(!lab.changes.since(lab.changes.version()).unwrap().have_stations());
    let before = lab.changes.version();
    lab.changes.forget_all();
    assert!(lab.changes.since(before).is_none() && lab.changes.since(before + 1).is_some());
}

#[test]
fn random_changes_concern_the_keys_that_they_match() {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut lab = Lab::new();
    let (mut asked, mut needless) = (0, 0);
    // The changes as a plain list of version, table, priority and rule.
    let mut all: Vec<(u64, TableId, u16, Match)> = Vec::new();
    for _ in 0..12_000 {
        let table = [0, 1, 3][rng.usize(0..3)];
        let mask = !((1u128 << rng.u32(0..5)) - 1) & 0xffff_ffff;
        let (field, value, _) = to(rng.u8(..));
        let mut conditions = vec![(field, value & mask, mask)];
        if rng.u8(0..4) == 0 {
            conditions.push(from_mac(rng.u8(0..3)));
        }
        let priority = rng.u16(0..30);
        let matching = lab.add(table, priority, &conditions);
        all.push((lab.changes.version(), TableId(table), priority, matching));
        for _ in 0..2 {
            let most = lab.changes.version().min([100, 5_000][rng.usize(0..2)]);
            let since = lab.changes.version() - rng.u64(0..most);
            let key = lab.key([rng.u8(0..3), rng.u8(..), 7]);
            let rewritten = [Rewritten::Nothing, Rewritten::MacsOrTtl][rng.usize(0..2)];
            let expected = all.iter().rev().take_while(|(version, ..)| *version > since).any(
                |(_, table, priority, matching)| {
                    PATH.iter().any(|(passed, hit)| {
                        let rewritten = if *passed == TableId(0) { Rewritten::Nothing } else { rewritten };
                        passed == table && priority > hit && lab.plan.may_match(matching, &key, rewritten)
                    })
                },
            );
            let Some(found) = lab.concerns(since, &key, rewritten) else { continue };
            assert!(found || !expected, "a change since {since} of {} is missed", lab.changes.version());
            asked += 1;
            needless += u32::from(found && !expected);
        }
    }
    assert!(asked > 20_000 && needless < asked / 20, "{needless} of {asked} are reported without need");
}

#[test]
fn many_kinds_of_rules_shorten_the_memory() {
    let mut lab = Lab::new();
    let key = lab.key([1, 5, 7]);
    let first = lab.changes.version();
    lab.add(0, 50, &[to(5)]);
    let rule = |lab: &mut Lab, kind: u32| {
        let mask = 0xffff_ffff & !(1 << kind);
        lab.add(0, 50, &[(Field::Ipv4Dst, 0x0c00_0005 & mask, mask)]);
    };
    (0..KINDS as u32 - 1).for_each(|kind| rule(&mut lab, kind));
    assert_eq!(lab.concerns(first, &key, Rewritten::Nothing), Some(true));
    rule(&mut lab, KINDS as u32 - 1);
    assert_eq!(lab.concerns(first, &key, Rewritten::Nothing), None, "the first kind is forgotten");
    assert_eq!(lab.concerns(first + 1, &key, Rewritten::Nothing), Some(false));
    let before = lab.changes.version();
    lab.add(0, 50, &[to(5)]);
    assert_eq!(lab.concerns(before, &key, Rewritten::Nothing), Some(true));
}

#[test]
fn a_comparison_with_many_equal_rules_ends() {
    let mut lab = Lab::new();
    let key = lab.key([1, 5, 7]);
    let first = lab.changes.version();
    (0..COMPARED_MAX).for_each(|_| drop(lab.add(0, 1, &[to(5)])));
    assert_eq!(lab.concerns(first + 1, &key, Rewritten::Nothing), Some(false), "none has the priority");
    lab.add(0, 1, &[to(5)]);
    assert_eq!(lab.concerns(first, &key, Rewritten::Nothing), Some(true), "too many to be sure");
}
