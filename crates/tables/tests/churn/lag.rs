// SPDX-License-Identifier: Apache-2.0
//! A worker that lags behind the control side. Updates that the worker has not applied must not affect its
//! lookups.

use crate::packet::Packet;
use crate::rig::{entry, plain_best};
use fastrand::Rng;
use flow::{EntryId, Field, FieldMatch, FlowEntry, Match};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tables::rule_table::RuleChange;
use tables::{RuleTable, Table};

type Rules = BTreeMap<EntryId, Arc<FlowEntry>>;

fn rule(rng: &mut Rng, fields: &[Field]) -> Match {
    let prefix = |field: &Field| {
        let length = rng.u32(0..=32);
        let mask = u128::from(u32::MAX.checked_shl(32 - length).unwrap_or(0));
        FieldMatch { field: *field, value: (0x0a00_0000 | 1 << rng.u32(..32)) & mask, mask }
    };
    let conditions: Vec<_> = fields.iter().map(prefix).collect();
    Match::new(conditions.into_iter().chain([FieldMatch::exact(Field::EthType, 0x0800)])).unwrap()
}

#[test]
fn a_worker_sees_its_own_version() {
    for (seed, fields) in
        (0..60).zip([&[Field::Ipv4Dst][..], &[Field::Ipv4Src, Field::Ipv4Dst]].iter().cycle())
    {
        let mut rng = Rng::with_seed(seed);
        let (mut rule_table, mut view) = (RuleTable::default(), Table::default());
        let (mut rules, mut seen) = (Rules::new(), Rules::new());
        let mut queue = VecDeque::new();
        for step in 0..60 {
            let mut changes = Vec::new();
            for _ in 0..if step % 15 == 0 { rng.usize(65..300) } else { rng.usize(1..9) } {
                if let Some(&id) = rules.keys().nth(rng.usize(..200)).filter(|_| rng.u8(..5) < 2) {
                    rules.remove(&id);
                    changes.push(RuleChange::Remove(id));
                } else {
                    let id = EntryId(seed as u32 * 1_000_000 + step * 1_000 + changes.len() as u32);
                    let added = Arc::new(entry(id, rng.u16(..9), rule(&mut rng, fields)));
                    changes.push(RuleChange::Add(Arc::clone(&added)));
                    rules.insert(id, added);
                }
            }
            let in_all = changes.len() * rng.usize(1..20);
            queue.push_back((rule_table.change(&changes, in_all, 1).unwrap().remove(0), rules.clone()));
            for (updates, version) in queue.drain(..rng.usize(..=queue.len()).min(3)) {
                updates.into_iter().for_each(|mut update| view.apply(&mut update));
                seen = version;
            }
            let from: Vec<_> = rules.values().chain(seen.values()).collect();
            for _ in 0..20.min(from.len()) {
                let at = rng.usize(..from.len());
                let packet = Packet::matching(&mut rng, &from[at].matching);
                let mut found = [EntryId::NONE];
                view.lookup(&packet.key(view.plan()), &mut found);
                assert_eq!(found[0], plain_best(seen.values(), &packet), "seed {seed}, step {step}");
            }
        }
        assert!(["lpm", "mask"].contains(&rule_table.engine_name()));
    }
}
