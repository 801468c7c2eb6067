// SPDX-License-Identifier: Apache-2.0
//! What is sent to workers, and when a base is compiled.

use crate::rig::{Rig, entry};
use fastrand::Rng;
use flow::{Field, FieldMatch, Match};
use std::sync::Arc;
use tables::master::RuleChange;
use tables::{Master, TableUpdate};

/// A route of 1 to 32 bits.
fn route(value: u32, length: u32) -> Match {
    let mask = u32::MAX << (32 - length);
    let prefix = FieldMatch { field: Field::Ipv4Dst, value: (value & mask).into(), mask: mask.into() };
    Match::new([FieldMatch::exact(Field::EthType, 0x0800), prefix]).unwrap()
}

fn some(rng: &mut Rng, count: usize) -> Vec<(u16, Match)> {
    (0..count).map(|_| (rng.u16(..50), route(rng.u32(..), rng.u32(16..=32)))).collect()
}

#[test]
fn bundles_beside_a_large_base_swap_views_that_share_it() {
    let mut rng = Rng::with_seed(3);
    let mut rig = Rig::default();
    rig.add(some(&mut rng, 20_000));
    assert_eq!((rig.swaps, rig.master.compiled(), rig.master.engine_name()), (1, 1, "lpm"));
    for bundle in 2..30 {
        rig.add(some(&mut rng, 65));
        let gone: Vec<u32> = rig.entries.keys().copied().filter(|_| rng.u8(..) == 0).take(70).collect();
        rig.remove(&gone);
        assert!(rig.swaps >= bundle, "a worker does not add 65 rules in one go");
        rig.check(&rig.packets(&mut rng, 20), "a bundle");
    }
    assert_eq!(rig.master.compiled(), 1, "their additions fit the head");
    rig.add(some(&mut rng, 20_000 / 16 + 1));
    assert_eq!(rig.master.compiled(), 2, "so many are worth a new base");
    rig.check(&rig.packets(&mut rng, 20), "a large bundle");
}

#[test]
fn few_changes_of_an_operation_that_changes_many_in_all_are_swapped_in() {
    let mut master = Master::default();
    let mut id = 0;
    let mut change = |rules: Vec<(u16, Match)>, in_all: usize| {
        let add = |(priority, matching)| {
            id += 1;
            RuleChange::Add(Arc::new(entry(id, priority, matching)))
        };
        let changes: Vec<RuleChange> = rules.into_iter().map(add).collect();
        let updates = master.change(&changes, in_all, 2).unwrap();
        let swaps = updates.iter().flatten().filter(|update| matches!(update, TableUpdate::Swap(_))).count();
        (swaps, updates.iter().map(Vec::len).sum::<usize>(), master.compiled())
    };
    let mut rng = Rng::with_seed(1);
    assert_eq!(change(some(&mut rng, 2_000), 2_000), (2, 2, 1));
    assert_eq!(change(some(&mut rng, 30), 30), (0, 60, 1));
    assert_eq!(change(some(&mut rng, 30), 64), (0, 60, 1));
    assert_eq!(change(some(&mut rng, 30), 65), (2, 2, 1));
}
