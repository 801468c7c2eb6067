// SPDX-License-Identifier: Apache-2.0
//! Tests which updates are sent to workers, and when bases are compiled.

use crate::rig::{Rig, entry};
use fastrand::Rng;
use flow::{EntryId, Field, FieldMatch, Match};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use tables::rule_table::RuleChange;
use tables::{RuleTable, RunInParallel, TableUpdate};

/// Returns a route with a prefix of 1 to 32 bits.
fn route(value: u32, length: u32) -> Match {
    let mask = u32::MAX << (32 - length);
    let prefix = FieldMatch { field: Field::Ipv4Dst, value: (value & mask).into(), mask: mask.into() };
    Match::new([FieldMatch::exact(Field::EthType, 0x0800), prefix]).unwrap()
}

fn some(rng: &mut Rng, count: usize) -> Vec<(u16, Match)> {
    (0..count).map(|_| (rng.u16(..50), route(rng.u32(..), rng.u32(16..=32)))).collect()
}

#[test]
fn bundles_on_a_large_base_swap_views_that_share_it() {
    let mut rng = Rng::with_seed(3);
    let mut rig = Rig::default();
    rig.add(some(&mut rng, 20_000));
    assert_eq!((rig.swaps, rig.rule_table.compiled(), rig.rule_table.engine_name()), (1, 1, "lpm"));
    for bundle in 2..30 {
        rig.add(some(&mut rng, 65));
        let gone: Vec<EntryId> = rig.entries.keys().copied().filter(|_| rng.u8(..) == 0).take(70).collect();
        rig.remove(&gone);
        assert!(rig.swaps >= bundle, "65 rules of one operation are sent as a swap");
        rig.check(&rig.packets(&mut rng, 20), "a bundle");
    }
    assert_eq!(rig.rule_table.compiled(), 1, "the additions fit into the delta");
    rig.add(some(&mut rng, 20_000 / 16 + 1));
    assert_eq!(
        rig.rule_table.compiled(),
        2,
        "an operation that changes more than a 16th of the base compiles a new one"
    );
    rig.check(&rig.packets(&mut rng, 20), "a large bundle");
}

#[test]
fn large_additions_by_several_threads_give_the_same_table() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let on_two_threads: RunInParallel = |other, this| {
        CALLS.fetch_add(1, Relaxed);
        std::thread::scope(|scope| {
            scope.spawn(other);
            this();
        });
    };
    // Routes; exact rules; exact rules with a rule of lower priority that matches all packets; rules with
    // masks in two fields.
    for (kind, engine) in [(0, "lpm"), (1, "exact"), (2, "exact"), (3, "mask")] {
        let rules = |rng: &mut Rng, count: usize| match kind {
            0 => some(rng, count),
            3 => {
                let port = |rng: &mut Rng| FieldMatch::exact(Field::InPort, rng.u128(1..4));
                let both =
                    |rng: &mut Rng, route: &Match| Match::new(route.fields().chain([port(rng)])).unwrap();
                let routes = some(rng, count).into_iter();
                routes.map(|(p, route)| (p, if rng.bool() { both(rng, &route) } else { route })).collect()
            }
            _ => {
                let exact = (0..count).map(|_| (rng.u16(1..50), route(rng.u32(..), 32)));
                exact.chain((kind == 2).then_some((0, Match::any()))).collect()
            }
        };
        let mut rigs = [Rig::default(), Rig::default()];
        rigs[1].rule_table.set_run_in_parallel(Some(on_two_threads));
        for (rig, is_parallel) in rigs.iter_mut().zip([false, true]) {
            let mut rng = Rng::with_seed(kind + 9);
            let before = CALLS.load(Relaxed);
            rig.add(rules(&mut rng, 5_000));
            assert_eq!((rig.rule_table.engine_name(), rig.rule_table.len()), (engine, rig.entries.len()));
            // The first of these operations is small, the second is large, and the third compiles all rules.
            for count in [20, 5_000, 20_000] {
                rig.add(rules(&mut rng, count));
                let gone: Vec<EntryId> = rig.entries.keys().copied().filter(|_| rng.u8(..32) == 0).collect();
                gone.chunks(50).for_each(|gone| rig.remove(gone));
                rig.check(&rig.packets(&mut rng, 100), "several threads");
            }
            let calls = CALLS.load(Relaxed) - before;
            assert_eq!(calls > 0, is_parallel, "{calls} calls");
        }
        let [serial, parallel] = &rigs;
        let mut rng = Rng::with_seed(1);
        let packets = serial.packets(&mut rng, 2_000);
        assert_eq!(serial.lookup(&packets), parallel.lookup(&packets));
        assert_eq!(serial.rule_table.examined_fields(), parallel.rule_table.examined_fields());
        assert_eq!(serial.rule_table.compiled(), parallel.rule_table.compiled());
    }
}

#[test]
fn few_changes_of_an_operation_with_many_in_all_tables_become_a_swap() {
    let mut rule_table = RuleTable::default();
    let mut id = 0;
    let mut change = |rules: Vec<(u16, Match)>, in_all: usize| {
        let add = |(priority, matching)| {
            id += 1;
            RuleChange::Add(Arc::new(entry(EntryId(id), priority, matching)))
        };
        let changes: Vec<RuleChange> = rules.into_iter().map(add).collect();
        let updates = rule_table.change(&changes, in_all, 2).unwrap();
        let swaps = updates.iter().flatten().filter(|update| matches!(update, TableUpdate::Swap(_))).count();
        (swaps, updates.iter().map(Vec::len).sum::<usize>(), rule_table.compiled())
    };
    let mut rng = Rng::with_seed(1);
    assert_eq!(change(some(&mut rng, 2_000), 2_000), (2, 2, 1));
    assert_eq!(change(some(&mut rng, 30), 30), (0, 60, 1));
    assert_eq!(change(some(&mut rng, 30), 64), (0, 60, 1));
    assert_eq!(change(some(&mut rng, 30), 65), (2, 2, 1));
}

#[test]
fn a_base_with_half_of_its_rules_deleted_is_recompiled() {
    let mut rng = Rng::with_seed(2);
    let mut rig = Rig::default();
    let ids = rig.add((0..3_000).map(|at| (5, route(at << 8, 24))));
    ids[..1_500].chunks(64).for_each(|gone| rig.remove(gone));
    assert_eq!(rig.rule_table.compiled(), 1);
    rig.remove(&ids[1_500..1_501]);
    assert_eq!(rig.rule_table.compiled(), 2);
    rig.check(&rig.packets(&mut rng, 50), "half of the rules removed");
}

/// A lookup visits the deleted rules of one match one by one, so a base may hold only a limited number.
#[test]
fn a_base_with_many_deleted_rules_of_one_match_is_recompiled() {
    let kinds = [("exact", 9..9, None), ("lpm", 9..31, None), ("mask", 9..31, Some(Field::InPort))];
    for (engine, lengths, other) in kinds {
        let mut rng = Rng::with_seed(4);
        let mut rig = Rig::default();
        let equal = (0..1_000).map(|priority| (priority, route(0x0a00_0000, 8)));
        let longer = lengths.map(|length| (7, route(0xc000_0000, length)));
        let other = other.map(|field| (7, Match::new([FieldMatch::exact(field, 1)]).unwrap()));
        let ids = rig.add(equal.chain(longer).chain(other).collect::<Vec<_>>());
        assert_eq!((rig.rule_table.engine_name(), rig.rule_table.compiled()), (engine, 1));
        // The best rules are removed first.
        for (gone, id) in ids[..1_000].iter().rev().take(500).enumerate() {
            rig.remove(&[*id]);
            assert_eq!(rig.rule_table.compiled(), 1 + (gone + 1) / 65, "{engine}");
            rig.check(&rig.packets(&mut rng, 3), engine);
        }
    }
}

/// Lookups compare rules that match everything one by one. The more of them the base has, the more the delta
/// may hold.
#[test]
fn rules_that_match_everything_compile_few_bases() {
    let exact = |at: u32| Match::new([FieldMatch::exact(Field::EthDst, at.into())]).unwrap();
    let exact: Vec<_> = (0..10_000).map(|at| (60_000, exact(at))).collect();
    let routes: Vec<_> = (0..10_000).map(|at| (9, route(at << 14, 18 + at % 8))).collect();
    for (engine, rules) in [("exact", exact), ("lpm", routes), ("scan", vec![])] {
        let mut rig = Rig::default();
        rig.add(rules);
        (0..3_000).for_each(|priority| drop(rig.add([(priority, Match::any())])));
        assert_eq!(rig.rule_table.engine_name(), engine);
        assert!(rig.rule_table.compiled() < 25, "{engine}: {} bases", rig.rule_table.compiled());
        rig.check(&rig.packets(&mut Rng::with_seed(1), 30), engine);
    }
}

/// Rules are added and removed one by one while the next base is compiled. No change may find the delta full
/// and wait.
#[test]
fn background_bases_are_ready_before_the_delta_is_full() {
    for later in [0, 1, 100, 300] {
        let mut rng = Rng::with_seed(5);
        let mut rig = Rig::with_background_jobs(Some(later));
        rig.add(some(&mut rng, 4_000));
        for step in 0..4_000 {
            if step % 2 == 0 {
                rig.add(some(&mut rng, 1));
            } else {
                let gone = rig.any_entry(&mut rng).unwrap().id;
                rig.remove(&[gone]);
            }
            if step % 100 < 3 {
                rig.check(&rig.packets(&mut rng, 20), "rules are added and removed");
            }
        }
        let background = rig.rule_table.compiled_in_background();
        assert_eq!(
            rig.rule_table.compiled(),
            1 + background,
            "{later}: all bases but the first were compiled in the background"
        );
        assert!(background >= 4, "{later}: {background} bases");
    }
}

/// A rule is removed and its ID is reused while a base is compiled. The new rule must be found.
#[test]
fn numbers_may_be_used_again_while_a_base_is_compiled() {
    let mut rule_table = RuleTable::default();
    let mut view = tables::Table::default();
    let mut apply_updates = |updates: Vec<Vec<TableUpdate>>| {
        for mut update in updates.into_iter().flatten() {
            view.apply(&mut update);
        }
    };
    let add = |id: u32, value: u32| RuleChange::Add(Arc::new(entry(EntryId(id), 7, route(value, 32))));
    apply_updates(
        rule_table.change(&(0..1_000).map(|id| add(id, id)).collect::<Vec<_>>(), 1_000, 1).unwrap(),
    );
    (1_000..1_100).for_each(|id| apply_updates(rule_table.change(&[add(id, id)], 1, 1).unwrap()));
    let job = rule_table.background_job(1).unwrap();
    assert!(rule_table.background_job(1).is_none(), "one background compilation at a time");
    // Removes a rule of the base, a rule of the delta, and an unused ID. Then adds a rule with each ID.
    for id in [5, 1_050, 1_100] {
        apply_updates(rule_table.change(&[RuleChange::Remove(EntryId(id))], 1, 1).unwrap());
        apply_updates(rule_table.change(&[add(id, 50_000 + id)], 1, 1).unwrap());
    }
    rule_table.install(job.run());
    // Removes a rule of the new base, and a rule added after the compilation began.
    for id in [8, 1_100] {
        apply_updates(rule_table.change(&[RuleChange::Remove(EntryId(id))], 1, 1).unwrap());
    }
    for _ in 0..10 {
        apply_updates(rule_table.catch_up(1).unwrap().into_iter().flatten().collect());
    }
    assert_eq!(
        (rule_table.compiled(), rule_table.compiled_in_background()),
        (2, 1),
        "the new base has caught up with all changes"
    );
    // Removes rules once more, from the new base.
    apply_updates(
        rule_table
            .change(&[RuleChange::Remove(EntryId(1_050)), RuleChange::Remove(EntryId(6))], 2, 1)
            .unwrap(),
    );
    let key = |value: u32| {
        let plan = Arc::clone(rule_table.plan());
        let (mut values, mut masks) = (Vec::new(), Vec::new());
        plan.encode(&route(value, 32), &mut values, &mut masks);
        values
    };
    let found: Vec<EntryId> = [5, 50_005, 1_050, 51_050, 51_100, 6, 7, 8, 1_060]
        .map(|value| {
            let mut ids = [EntryId::NONE];
            view.lookup(&key(value), &mut ids);
            ids[0]
        })
        .to_vec();
    let none = EntryId::NONE;
    assert_eq!(found, [none, EntryId(5), none, none, none, none, EntryId(7), none, EntryId(1_060)]);
}

/// Returns a table of `rules` different routes, and a function that creates further routes.
fn table_of(rules: usize) -> (RuleTable, impl FnMut(usize) -> Vec<RuleChange>) {
    let mut rule_table = RuleTable::default();
    let mut next = 0;
    let mut more = move |count: usize| {
        let from = next;
        next += count as u32;
        let add = |id: u32| RuleChange::Add(Arc::new(entry(EntryId(id), 7, route(id << 8, 24))));
        (from..next).map(add).collect::<Vec<_>>()
    };
    rule_table.change(&more(rules), rules, 1).unwrap();
    assert_eq!((rule_table.compiled(), rule_table.len(), rule_table.changes()), (1, rules, rules as u64));
    (rule_table, more)
}

#[test]
fn operations_that_change_more_than_a_16th_of_the_base_recompile_it() {
    // Up to 64 changes are always applied one by one.
    for (rules, most) in [(100, 64), (1_024, 64), (1_040, 65), (1_600, 100)] {
        let (mut rule_table, mut more) = table_of(rules);
        rule_table.change(&more(most), most, 1).unwrap();
        assert_eq!(rule_table.compiled(), 1, "{most} changes on a base of {rules} rules");
        let (mut rule_table, mut more) = table_of(rules);
        rule_table.change(&more(most + 1), most + 1, 1).unwrap();
        assert_eq!(rule_table.compiled(), 2, "{} changes on a base of {rules} rules", most + 1);
    }
}

#[test]
fn an_addition_that_does_not_fit_into_the_delta_compiles_a_base() {
    for (rules, room) in [(100, 64), (1_000, 250)] {
        let (mut rule_table, mut more) = table_of(rules);
        for added in 1..=room + 1 {
            rule_table.change(&more(1), 1, 1).unwrap();
            assert_eq!(
                rule_table.compiled(),
                1 + usize::from(added > room),
                "{added} additions to a base of {rules} rules"
            );
        }
    }
}

#[test]
fn a_base_is_recompiled_when_more_than_1024_and_half_of_its_rules_are_deleted() {
    for (rules, most) in [(1_500, 1_024), (2_048, 1_024), (2_100, 1_050)] {
        let (mut rule_table, _) = table_of(rules);
        for gone in 1..=most + 1 {
            rule_table.change(&[RuleChange::Remove(EntryId(gone as u32 - 1))], 1, 1).unwrap();
            assert_eq!(
                rule_table.compiled(),
                1 + usize::from(gone > most),
                "{gone} of {rules} rules are deleted"
            );
        }
    }
}

#[test]
fn a_base_is_compiled_in_background_when_a_128th_was_added_or_deleted() {
    for (rules, least, worth) in [(1_280, 1, 10), (1_280, 12, 12), (1_408, 1, 11), (100, 5, 5)] {
        let (mut added, mut more) = table_of(rules);
        let (mut tombstones, _) = table_of(rules);
        for change in 1..=worth {
            assert!(
                added.background_job(least).is_none() && tombstones.background_job(least).is_none(),
                "change {change}, threshold {worth}"
            );
            added.change(&more(1), 1, 1).unwrap();
            tombstones.change(&[RuleChange::Remove(EntryId(change as u32))], 1, 1).unwrap();
        }
        assert!(
            added.background_job(least).is_some() && tombstones.background_job(least).is_some(),
            "{rules} rules"
        );
    }
    let (mut rule_table, mut more) = table_of(1_280);
    assert!(rule_table.job_at_rest().is_none(), "the base has no added and no deleted rules");
    rule_table.change(&more(1), 1, 1).unwrap();
    assert!(rule_table.job_at_rest().is_some(), "one added rule suffices for a table at rest");
}

/// Each call replays three queued rules into the new base. So does each change, after it has added its own
/// rule to the queue.
#[test]
fn a_base_compiled_in_background_catches_up_three_rules_at_a_time() {
    for (meanwhile, calls) in [(0, 1), (3, 1), (4, 2), (9, 3), (10, 4)] {
        let (mut rule_table, mut more) = table_of(1_000);
        rule_table.change(&more(20), 20, 1).unwrap();
        let job = rule_table.background_job(1).unwrap();
        // Half of the changes remove a rule, and the others add one.
        let gone: Vec<RuleChange> = (0..meanwhile / 2).map(|id| RuleChange::Remove(EntryId(id))).collect();
        let changes = [gone, more((meanwhile - meanwhile / 2) as usize)].concat();
        rule_table.change(&changes, changes.len(), 1).unwrap();
        rule_table.install(job.run());
        for call in 1..=calls {
            assert_eq!(rule_table.compiled_in_background(), 0, "call {call}, {meanwhile} changes meanwhile");
            assert_eq!(rule_table.catch_up(1).unwrap().is_some(), call == calls);
        }
        assert_eq!(rule_table.compiled_in_background(), 1, "{meanwhile} changes meanwhile");
    }
    let (mut rule_table, mut more) = table_of(1_000);
    rule_table.change(&more(20), 20, 1).unwrap();
    let job = rule_table.background_job(1).unwrap();
    rule_table.change(&more(10), 10, 1).unwrap();
    rule_table.install(job.run());
    // Each change adds one rule to the queue and replays three, so ten rules last for five changes.
    for change in 1..=5 {
        assert_eq!(rule_table.compiled_in_background(), 0, "change {change}");
        let updates = rule_table.change(&more(1), 1, 1).unwrap();
        assert_eq!(matches!(updates[0][..], [TableUpdate::Swap(_)]), change == 5, "change {change}");
    }
    assert_eq!((rule_table.compiled_in_background(), rule_table.len()), (1, 1_035));
}

#[test]
fn rules_on_new_fields_that_come_and_go_do_not_compile_the_table_again_and_again() {
    let (mut rule_table, _) = table_of(200);
    let come_and_go = |rule_table: &mut RuleTable, field: Field| {
        let id = EntryId(9_000);
        let matching = Match::new([FieldMatch::exact(field, 1)]).unwrap();
        rule_table.change(&[RuleChange::Add(Arc::new(entry(id, 9, matching)))], 1, 1).unwrap();
        rule_table.change(&[RuleChange::Remove(id)], 1, 1).unwrap();
    };
    let fields = [Field::EthSrc, Field::EthDst, Field::InPort];
    fields.into_iter().for_each(|field| come_and_go(&mut rule_table, field));
    assert_eq!(rule_table.compiled(), 4);
    // The delta has room for 64 rules.
    for _ in 0..10 {
        fields.into_iter().for_each(|field| come_and_go(&mut rule_table, field));
    }
    assert_eq!(rule_table.compiled(), 4);
    // The unused fields leave the keys.
    let job = rule_table.job_at_rest().unwrap();
    rule_table.install(job.run());
    assert!(rule_table.catch_up(1).unwrap().is_some());
    assert_eq!(rule_table.plan().fields().iter().filter(|field| fields.contains(field)).count(), 0);
    assert!(rule_table.job_at_rest().is_none());
}
