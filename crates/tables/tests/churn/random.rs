// SPDX-License-Identifier: Apache-2.0
//! Random rules of each kind, added and removed one by one and in groups.

use crate::rig::Rig;
use fastrand::Rng;
use flow::{EntryId, Field, FieldMatch, Match, Slice, SliceBase};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Returns the number of cases of each kind, from the variable `TABLES_CASES` if set.
fn cases() -> u64 {
    number("TABLES_CASES", 40)
}

/// Adds and removes rules of a kind, and compares lookups with a linear search. Returns the engine that
/// served most steps.
fn churn(rng: &mut Rng, steps: usize, mut rule: impl FnMut(&mut Rng) -> (u16, Match)) -> &'static str {
    let mut rig = Rig::with_background_jobs(rng.bool().then(|| rng.usize(0..8)));
    let mut served: std::collections::BTreeMap<&'static str, usize> = Default::default();
    let first = rng.usize(..300);
    rig.add((0..first).map(|_| rule(rng)).collect::<Vec<_>>());
    for step in 0..steps {
        match rng.u8(..16) {
            0 => drop(rig.add((0..rng.usize(65..200)).map(|_| rule(rng)).collect::<Vec<_>>())),
            1..=8 => drop(rig.add((0..rng.usize(1..6)).map(|_| rule(rng)).collect::<Vec<_>>())),
            9 if rng.u8(..4) == 0 => {
                let most = if rng.bool() { 64 } else { rig.entries.len() };
                let gone: Vec<EntryId> =
                    rig.entries.keys().copied().filter(|_| rng.bool()).take(most).collect();
                rig.remove(&gone);
            }
            _ => {
                // Removes the rules that were hit, to find the rules that they hid.
                let packets = rig.packets(rng, 4);
                let mut hit: Vec<EntryId> =
                    rig.lookup(&packets).into_iter().filter(|id| *id != EntryId::NONE).collect();
                hit.sort_unstable();
                hit.dedup();
                rig.remove(&hit);
                rig.check(&packets, "after the rules that were hit were removed");
            }
        }
        let packets = rig.packets(rng, 40);
        rig.check(&packets, &format!("step {step}"));
        *served.entry(rig.rule_table.engine_name()).or_default() += 1;
    }
    served.into_iter().max_by_key(|(_, steps)| *steps).map_or("", |(name, _)| name)
}

fn full(bits: u32) -> u128 {
    u128::MAX >> (128 - bits)
}

fn prefix(rng: &mut Rng, field: Field, near: u128, length: u32) -> FieldMatch {
    let bits = u32::from(field.location().length_bits);
    let mask = if length == 0 { 0 } else { full(bits) >> (bits - length) << (bits - length) };
    // Close values lead to nested prefixes.
    let value = if rng.u8(..4) == 0 { near ^ 1 << rng.u32(..bits) } else { near };
    FieldMatch { field, value: value & mask, mask }
}

#[test]
fn prefixes_of_one_field_with_any_priorities() {
    let mut lpm = 0;
    for seed in 0..cases() {
        let mut rng = Rng::with_seed(seed);
        let slice = |length| Field::Slice(Slice::new(SliceBase::Packet, 3, length).unwrap());
        let length = rng.u32(1..=128);
        let (field, others) = match rng.u8(..4) {
            0 => (Field::Ipv4Dst, vec![FieldMatch::exact(Field::EthType, 0x0800)]),
            1 => (Field::Ipv6Dst, vec![FieldMatch::exact(Field::EthType, 0x86dd)]),
            2 => (slice(length), vec![]),
            _ => (
                Field::Ipv4Src,
                vec![FieldMatch::exact(Field::EthType, 0x0800), FieldMatch::exact(Field::VlanVid, 0x1001)],
            ),
        };
        let bits = u32::from(field.location().length_bits);
        let near = rng.u128(..) & full(bits);
        let (by_length, catch_all) = (rng.bool(), rng.bool());
        let engine = churn(&mut rng, 40, |rng| {
            let length = rng.u32(0..=bits);
            let mut conditions = others.clone();
            for c in &mut conditions {
                if c.field == Field::VlanVid {
                    c.value = rng.u128(0x1000..0x1004);
                }
            }
            if catch_all && rng.u8(..40) == 0 {
                return (rng.u16(..4), Match::any());
            }
            conditions.push(prefix(rng, field, near, length));
            let priority = if by_length { length as u16 + 10 } else { rng.u16(..6) };
            (priority, Match::new(conditions).unwrap())
        });
        assert!(["lpm", "scan", "exact"].contains(&engine), "{bits} bits of {field}: {engine}");
        lpm += u64::from(engine == "lpm");
    }
    assert!(lpm * 4 > cases() * 3, "only {lpm} tables were served by lpm");
}

#[test]
fn access_lists() {
    let mut mask = 0;
    for seed in 0..cases() {
        let mut rng = Rng::with_seed(1_000 + seed);
        let near = [rng.u128(..) & full(32), rng.u128(..) & full(32)];
        let nested = rng.bool();
        let engine = churn(&mut rng, 40, |rng| {
            let mut conditions = vec![FieldMatch::exact(Field::EthType, 0x0800)];
            for field in [Field::Ipv4Src, Field::Ipv4Dst] {
                let near = if nested { near[rng.usize(..2)] } else { rng.u128(..) & full(32) };
                let length = [0, 8, 16, 20, 24, 28, 32][rng.usize(..7)];
                conditions.push(prefix(rng, field, near, length));
            }
            let protocol = match rng.u8(..3) {
                0 => Some(6),
                1 => Some(17),
                _ => None,
            };
            if let Some(protocol) = protocol {
                conditions.push(FieldMatch::exact(Field::IpProto, protocol));
                for field in crate::sets::ports().unwrap() {
                    let length = [0, 6, 10, 16][rng.usize(..4)];
                    let near = rng.u128(..4);
                    conditions.push(prefix(rng, field, near, length));
                }
            }
            (rng.u16(..100), Match::new(conditions).unwrap())
        });
        mask += u64::from(engine == "mask");
    }
    assert!(mask * 4 > cases() * 3, "only {mask} tables were served by mask");
}

#[test]
fn masks_with_holes_on_any_fields() {
    for seed in 0..cases() {
        let mut rng = Rng::with_seed(2_000 + seed);
        let slice = Field::Slice(Slice::new(SliceBase::Packet, 16, 64).unwrap());
        let all = [slice, Field::InPort, Field::EthDst, Field::EthSrc, Field::Metadata, Field::VlanVid];
        let fields = &all[..rng.usize(1..=all.len())];
        let few_bits = rng.bool();
        churn(&mut rng, 40, |rng| {
            let mut conditions = Vec::new();
            for &field in fields {
                if rng.u8(..3) == 0 {
                    continue;
                }
                let full = field.full_mask();
                let mask = if field.maskable() { rng.u128(..) & rng.u128(..) & full } else { full };
                let mask = if field == Field::VlanVid { full } else { mask };
                let value = if few_bits { 0x1000 } else { rng.u128(..) };
                conditions.push(FieldMatch { field, value: value & mask, mask });
            }
            (rng.u16(..8), Match::new(conditions).unwrap_or_default())
        });
    }
}

#[test]
fn one_mask_and_a_few_others() {
    for seed in 0..cases() {
        let mut rng = Rng::with_seed(3_000 + seed);
        let few = rng.u8(..3);
        let engine = churn(&mut rng, 40, |rng| match rng.u8(..30) {
            0 if few > 0 => (rng.u16(..3), Match::any()),
            1 if few > 1 => {
                (rng.u16(..9), Match::new([FieldMatch::exact(Field::InPort, rng.u128(1..4))]).unwrap())
            }
            _ => (rng.u16(..9), Match::new([FieldMatch::exact(Field::EthDst, rng.u128(..400))]).unwrap()),
        });
        assert!(few > 0 || engine == "exact", "{engine}");
    }
}

/// Additions may examine only a part of the other rules' mask.
#[test]
fn one_mask_with_holes_and_parts_of_it() {
    for seed in 0..cases() {
        let mut rng = Rng::with_seed(7_000 + seed);
        let mask = [0xf00f, 0x12, 0xff_0000_00ff, 0x8000_0000_0000_0001][rng.usize(..4)];
        let of = |rng: &mut Rng, mask: u128| {
            let field = FieldMatch { field: Field::Metadata, value: rng.u128(..) & mask, mask };
            Match::new([field]).unwrap()
        };
        churn(&mut rng, 40, |rng| match rng.u8(..30) {
            0 => {
                let part = mask & rng.u128(..);
                (rng.u16(5..9), of(rng, part))
            }
            _ => (rng.u16(..6), of(rng, mask)),
        });
    }
}

/// Keys have no words as long as no rule examines a field.
#[test]
fn rules_that_match_everything() {
    for seed in 0..cases() {
        let mut rng = Rng::with_seed(4_000 + seed);
        let keyed = rng.bool();
        let engine = churn(&mut rng, 40, |rng| match rng.u8(..100) {
            0 if keyed => (rng.u16(..), Match::new([FieldMatch::exact(Field::InPort, 1)]).unwrap()),
            _ => (rng.u16(..), Match::any()),
        });
        assert!(keyed || engine == "scan", "{engine}");
    }
}

#[test]
fn rules_that_match_everything_one_by_one() {
    let mut rng = Rng::with_seed(5);
    let mut rig = Rig::default();
    for priority in 1..=300 {
        let ids = rig.add([(priority, Match::any())]);
        assert_eq!(rig.lookup(&rig.packets(&mut rng, 40)), [ids[0]; 40], "priority {priority}");
    }
}
