// SPDX-License-Identifier: Apache-2.0
//! The state that a restart keeps: what the journal gets, and what a new model makes of it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use dataplane::PlaneRefusal;
use flow::group::{Bucket, Group, GroupType};
use flow::validate::validate;
use flow::{
    Action, EntryFlags, FlowMod, GroupId, Instructions, Match, Nanos, Next, PortNo, RuleVersion, TableId,
};
use model::{
    EntryOrigin, GroupCommand, Journal, KeptChange, KeptState, Learning, Model, ModelConfig, PortConfig,
    PortDesc, RestoredEntries, RestoredEntry, RestoredInstructions, RestoredPart, StatePart, StateRequest,
};
use std::sync::{Arc, Mutex};

/// What a journal got, and what it answers.
#[derive(Debug, Default)]
struct Book {
    changes: Vec<(RuleVersion, Vec<KeptChange>)>,
    parts: Vec<StatePart>,
    request: Option<StateRequest>,
    kept: bool,
}

#[derive(Debug, Default)]
struct TestJournal(Arc<Mutex<Book>>);

impl Journal for TestJournal {
    fn record(&mut self, _: Nanos, version: RuleVersion, changes: Vec<KeptChange>) {
        self.0.lock().unwrap().changes.push((version, changes));
    }

    fn is_kept(&mut self, _: RuleVersion) -> bool {
        self.0.lock().unwrap().kept
    }

    fn state_request(&mut self) -> Option<StateRequest> {
        self.0.lock().unwrap().request
    }

    fn state(&mut self, _: Nanos, part: StatePart) {
        let mut book = self.0.lock().unwrap();
        if part.is_last {
            book.request = None;
        }
        book.parts.push(part);
    }
}

fn with_journal(model: &mut Fake) -> Arc<Mutex<Book>> {
    let book = Arc::<Mutex<Book>>::default();
    model.attach_journal(Nanos(0), Box::new(TestJournal(Arc::clone(&book))), Vec::new());
    book
}

/// Returns the changes of the last transaction.
fn last(book: &Mutex<Book>) -> Vec<KeptChange> {
    book.lock().unwrap().changes.last().unwrap().1.clone()
}

#[test]
fn a_transaction_is_reported_once_and_a_refused_one_never() {
    let mut model = plain();
    let book = with_journal(&mut model);
    model.bundle(Nanos(5), [add(1, mac(1), PortNo(1)), add(2, mac(2), PortNo(2))]).unwrap();
    let changes = last(&book);
    let serials: Vec<u64> = changes
        .iter()
        .map(|change| match change {
            KeptChange::Entry(kept) => {
                assert_eq!(kept.created_ns, Nanos(5));
                kept.serial
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(serials, [0, 1]);
    assert_eq!(book.lock().unwrap().changes[0].0, model.barrier());
    // The second request is refused, so the first one is rolled back.
    let missing = FlowMod { instructions: group_output(9), ..add(1, mac(4), PortNo(1)) };
    model.bundle(Nanos(6), [add(1, mac(3), PortNo(1)), missing]).unwrap_err();
    assert_eq!(book.lock().unwrap().changes.len(), 1);
    // A replacement is a removal and an addition. An entry that the transaction itself added is not reported
    // as removed.
    model.bundle(Nanos(7), [add(1, mac(1), PortNo(3)), add(1, mac(1), PortNo(4))]).unwrap();
    let changes = last(&book);
    assert!(matches!(changes[..], [KeptChange::EntryGone(0), KeptChange::Entry(_)]), "{changes:?}");
}

fn group_output(group: u32) -> Instructions {
    Instructions::apply(vec![Action::Group(GroupId(group))])
}

#[test]
fn a_barrier_waits_for_the_journal() {
    let mut model = plain();
    let book = with_journal(&mut model);
    model.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
    let version = model.barrier();
    assert!(model.is_applied(version) && !model.is_settled(version));
    book.lock().unwrap().kept = true;
    assert!(model.is_settled(version));
}

#[test]
fn the_state_is_reported_in_parts_while_it_changes() {
    let mut model = plain();
    let mods: Vec<FlowMod> = (0..100).map(|n| add(n, mac(n.into()), PortNo(1))).collect();
    model.bundle(Nanos(0), mods).unwrap();
    let book = with_journal(&mut model);
    book.lock().unwrap().request = Some(StateRequest { number: 3, entries: 30 });
    model.poll(Nanos(1));
    // An entry that was reported changes, and one that was not reported is removed.
    model
        .flow_mod(Nanos(1), FlowMod { instructions: output(PortNo(9)), ..add(0, mac(0), PortNo(1)) })
        .unwrap();
    let strict = flow::FlowModCommand::DeleteStrict;
    model.flow_mod(Nanos(1), command(strict, add(99, mac(99), PortNo(1)))).unwrap();
    poll_all(&mut model, Nanos(2));
    let book = book.lock().unwrap();
    assert_eq!(book.parts.iter().filter(|part| part.is_first).count(), 1);
    assert!(book.parts.first().unwrap().is_first && book.parts.last().unwrap().is_last);
    assert!(book.parts.iter().all(|part| part.number == 3));
    // The parts and then the changes give the state.
    let mut entries = std::collections::BTreeMap::new();
    let parts = book.parts.iter().flat_map(|part| &part.changes);
    for change in parts.chain(book.changes.iter().flat_map(|(_, changes)| changes)) {
        match change {
            KeptChange::Entry(kept) => drop(entries.insert(kept.serial, kept.entry.clone())),
            KeptChange::EntryGone(serial) => drop(entries.remove(serial)),
            _ => {}
        }
    }
    let expected: Vec<_> = model
        .kept_state()
        .into_iter()
        .filter_map(|change| match change {
            KeptChange::Entry(kept) => Some((kept.serial, kept.entry)),
            _ => None,
        })
        .collect();
    assert_eq!(entries.into_iter().collect::<Vec<_>>(), expected);
}

/// An entry to restore, and its instructions.
type Decoded = (RestoredEntry, RestoredInstructions);

fn entry(serial: u64, created_ns: Nanos, flow: FlowMod) -> Decoded {
    let invalid = validate(&flow).err();
    let entry = RestoredEntry {
        priority: flow.priority,
        matching: flow.matching,
        instructions: 0,
        idle_timeout_s: flow.idle_timeout_s,
        hard_timeout_s: flow.hard_timeout_s,
        cookie: flow.cookie,
        flags: flow.flags,
        origin: EntryOrigin { serial, created_ns, learned: false },
    };
    let (table, instructions) = (flow.table.unwrap(), Arc::new(flow.instructions));
    (entry, RestoredInstructions { table, instructions, explicit: flow.low_latency, invalid })
}

/// Returns entries in parts, as one thread decodes them: a part has only the instructions that no part before
/// it has.
fn entries(parts: Vec<Vec<Decoded>>) -> RestoredEntries {
    let mut known: Vec<RestoredInstructions> = Vec::new();
    let mut restored = Vec::new();
    for decoded in parts {
        let mut part = RestoredPart { list: 7, ..RestoredPart::default() };
        for (mut entry, instructions) in decoded {
            entry.instructions = known.iter().position(|other| *other == instructions).unwrap_or_else(|| {
                part.instructions.push(instructions.clone());
                known.push(instructions);
                known.len() - 1
            });
            part.entries.push(entry);
        }
        restored.push(part);
    }
    restored.into()
}

#[test]
fn restored_entries_keep_their_hard_timeouts_and_restart_their_idle_timeouts() {
    let now = 1_000 * SECOND.0;
    let mut model = Model::new(ModelConfig::default(), FakePlane::default(), Nanos(now));
    let hard = FlowMod { hard_timeout_s: 60, ..add(1, mac(1), PortNo(1)) };
    let idle = FlowMod { idle_timeout_s: 20, ..add(1, mac(2), PortNo(1)) };
    let decoded =
        vec![entry(4, Nanos(now - 50 * SECOND.0), hard), entry(9, Nanos(now - 500 * SECOND.0), idle)];
    let state = KeptState { entries: entries(vec![decoded]), ..KeptState::default() };
    let report = model.restore(Nanos(now), state);
    assert_eq!((report.flows, report.refused), (2, 0));
    let left = |model: &mut Fake, after: u64| {
        let at = Nanos(now + after * SECOND.0);
        poll_all(model, at);
        let all = dump(model, at);
        all.iter().map(|flow| (flow.entry.idle_timeout_s, flow.duration_ns.0 / SECOND.0)).collect::<Vec<_>>()
    };
    assert_eq!(left(&mut model, 9), [(0, 59), (20, 509)]);
    assert_eq!(left(&mut model, 10), [(20, 510)]);
    assert_eq!(left(&mut model, 19), [(20, 519)]);
    assert_eq!(left(&mut model, 20), []);
    // New entries get higher serial numbers.
    let book = with_journal(&mut model);
    model.flow_mod(Nanos(now + 30 * SECOND.0), add(1, mac(3), PortNo(1))).unwrap();
    assert!(matches!(&last(&book)[..], [KeptChange::Entry(kept)] if kept.serial == 10));
}

#[test]
fn a_restored_state_replaces_the_default_entry_and_skips_what_is_refused() {
    let config = ModelConfig { standalone: true, ..ModelConfig::default() };
    let mut model = Model::new(config, FakePlane::default(), Nanos(0));
    let overlapping = FlowMod {
        flags: EntryFlags { check_overlap: true, ..EntryFlags::default() },
        ..add(1, Match::any(), PortNo(1))
    };
    let missing = FlowMod { instructions: group_output(9), ..add(1, mac(4), PortNo(1)) };
    let sends = FlowMod { instructions: group_output(1), ..add(1, mac(5), PortNo(1)) };
    let bucket = |actions| Bucket { actions, ..Bucket::default() };
    let group = |id, actions| Group { id: GroupId(id), kind: GroupType::All, buckets: vec![bucket(actions)] };
    let backwards = Instructions { next: Some(Next::Table(TableId(0))), ..Instructions::default() };
    let invalid = FlowMod { instructions: backwards, ..add(1, mac(6), PortNo(1)) };
    // One of six entries cannot be decoded.
    let decoded = vec![
        vec![entry(1, Nanos(0), overlapping), entry(2, Nanos(0), add(1, mac(1), PortNo(1)))],
        Vec::new(),
        vec![entry(3, Nanos(0), missing), entry(4, Nanos(0), sends), entry(5, Nanos(0), invalid)],
    ];
    let state = KeptState {
        entries: RestoredEntries { count: 6, ..entries(decoded) },
        // Group 1 sends to group 2.
        groups: vec![
            group(1, vec![Action::Group(GroupId(2))]),
            group(2, vec![Action::output(PortNo(1))]),
            group(3, vec![Action::Group(GroupId(8))]),
        ],
        ..KeptState::default()
    };
    let report = model.restore(Nanos(0), state);
    assert_eq!((report.flows, report.groups, report.refused, report.undecodable), (3, 2, 3, 1));
    let gone = [KeptChange::GroupGone(GroupId(3)), KeptChange::EntryGone(3), KeptChange::EntryGone(5)];
    assert_eq!(report.gone, gone);
    assert!(report.reasons.iter().any(|reason| reason.contains("group")), "{:?}", report.reasons);
    assert!(!model.config().standalone);
    assert_eq!(dump(&mut model, Nanos(0)).len(), 3);
    assert!(model.group_mod(Nanos(0), GroupCommand::Delete, group(1, Vec::new())).is_ok());
    assert_eq!(dump(&mut model, Nanos(0)).iter().filter(|flow| flow.entry.table == TableId(0)).count(), 2);
}

/// Several entries refer to the same instructions, which the model checks once.
#[test]
fn entries_with_shared_instructions_are_counted_and_refused_one_by_one() {
    let mut model = Model::new(ModelConfig::default(), FakePlane::default(), Nanos(0));
    let bucket = Bucket { actions: vec![Action::output(PortNo(1))], ..Bucket::default() };
    let group = |id| Group { id: GroupId(id), kind: GroupType::All, buckets: vec![bucket.clone()] };
    let with = |serial, number, group| {
        let instructions = group_output(group);
        entry(serial, Nanos(0), FlowMod { instructions, ..add(1, mac(number), PortNo(1)) })
    };
    let parts = vec![vec![with(1, 1, 1), with(2, 2, 9), with(3, 3, 1)], vec![with(4, 4, 9), with(5, 5, 1)]];
    let state = KeptState { entries: entries(parts), groups: vec![group(1)], ..KeptState::default() };
    let report = model.restore(Nanos(0), state);
    assert_eq!((report.flows, report.refused), (3, 2));
    assert_eq!(report.gone, [KeptChange::EntryGone(2), KeptChange::EntryGone(4)]);
    assert_eq!(model.group(Nanos(0), GroupId(1)).map(|stats| stats.references), Some(3));
}

#[test]
fn entries_that_the_data_plane_refuses_leave_the_others_as_they_were() {
    let refusal = PlaneRefusal { kind: 5, code: 0, text: "no room".into() };
    let mut plane = FakePlane::default();
    plane.refused_priority = Some((7, refusal));
    let learning = Some(Learning { min_pps: 1, window: SECOND, min_timeout: Nanos(0) });
    let mut model = Model::new(ModelConfig { learning, ..ModelConfig::default() }, plane, Nanos(0));
    let with = |serial, flow: FlowMod, learned| {
        let mut restored = entry(serial, Nanos(serial), flow);
        restored.0.origin.learned = learned;
        restored
    };
    let explicit = FlowMod { low_latency: Some(true), ..add(1, mac(3), PortNo(1)) };
    let bucket = Bucket { actions: vec![Action::output(PortNo(1))], ..Bucket::default() };
    let group = Group { id: GroupId(1), kind: GroupType::All, buckets: vec![bucket] };
    let sends = |number| FlowMod { instructions: group_output(1), ..add(1, mac(number), PortNo(1)) };
    let parts = vec![vec![
        with(1, add(1, mac(1), PortNo(1)), true),
        with(2, add(7, mac(2), PortNo(1)), false),
        with(3, explicit, false),
        with(4, sends(4), false),
        with(5, sends(5), false),
    ]];
    let state = KeptState { entries: entries(parts), groups: vec![group], ..KeptState::default() };
    let report = model.restore(Nanos(9), state);
    assert_eq!((report.flows, report.refused), (4, 1));
    assert_eq!(model.group(Nanos(9), GroupId(1)).map(|stats| stats.references), Some(2));
    assert_eq!(report.gone, [KeptChange::EntryGone(2)]);
    let kept: Vec<_> = model
        .kept_state()
        .into_iter()
        .filter_map(|change| match change {
            KeptChange::Entry(kept) => Some((
                kept.serial,
                kept.created_ns,
                kept.mark.explicit,
                kept.mark.learned,
                kept.entry.low_latency,
            )),
            _ => None,
        })
        .collect();
    let expected = [
        (1, Nanos(1), None, true, true),
        (3, Nanos(3), Some(true), false, true),
        (4, Nanos(4), None, false, false),
        (5, Nanos(5), None, false, false),
    ];
    assert_eq!(kept, expected);
}

#[test]
fn rules_can_be_restored_before_the_ports_are_added() {
    let mut model = Model::new(ModelConfig::default(), FakePlane::default(), Nanos(0));
    let bucket = Bucket { actions: vec![Action::output(PortNo(1))], ..Bucket::default() };
    let group = Group { id: GroupId(1), kind: GroupType::All, buckets: vec![bucket] };
    let port_config = PortConfig { no_flood: true, ..PortConfig::default() };
    let flow = FlowMod { idle_timeout_s: 2, ..add(1, mac(1), PortNo(2)) };
    let state = KeptState {
        entries: entries(vec![vec![entry(1, Nanos(0), flow)]]),
        groups: vec![group],
        ports: vec![(PortNo(2), port_config), (PortNo(7), port_config)],
        macs: vec![(0, [2, 0, 0, 0, 0, 1], PortNo(1)), (0, [2, 0, 0, 0, 0, 7], PortNo(7))],
        ..KeptState::default()
    };
    let partly = model.restore_rules(Nanos(0), state);
    assert!(model.ports().next().is_none() && model.macs(Nanos(0)).is_empty());
    for number in [1, 2] {
        let desc = PortDesc { number: PortNo(number), ..PortDesc::default() };
        model.add_port(Nanos(0), desc, true).unwrap();
    }
    let added = 5 * SECOND.0;
    let report = model.restore_ports(Nanos(added), partly);
    assert_eq!((report.flows, report.groups, report.macs, report.refused), (1, 1, 1, 0));
    // The store must forget a MAC that is not restored.
    assert_eq!(report.gone, [KeptChange::MacGone { vid: 0, mac: [2, 0, 0, 0, 0, 7] }]);
    assert_eq!(model.port(PortNo(2)).unwrap().config, port_config);
    assert_eq!(model.port(PortNo(1)).unwrap().config, PortConfig::default());
    // Idle timeouts begin when the ports have been added.
    for (after_s, entries) in [(1, 1), (3, 0)] {
        let at = Nanos(added + after_s * SECOND.0);
        poll_all(&mut model, at);
        assert_eq!(dump(&mut model, at).len(), entries, "{after_s} s after the ports");
    }
}

/// Two threads decode entries, and each has a list of instructions of its own.
#[test]
fn entries_refer_to_the_list_of_their_part() {
    let mut model = Model::new(ModelConfig::default(), FakePlane::default(), Nanos(0));
    let part = |list, serials: &[(u64, usize)], ports: &[u32]| {
        let of = |serial: u64| entry(serial, Nanos(0), add(1, mac(u128::from(serial)), PortNo(1))).0;
        let with = |&(serial, instructions)| RestoredEntry { instructions, ..of(serial) };
        let send = |&port: &u32| entry(0, Nanos(0), add(1, Match::any(), PortNo(port))).1;
        RestoredPart {
            list,
            instructions: ports.iter().map(send).collect(),
            entries: serials.iter().map(with).collect(),
        }
    };
    let parts = vec![
        part(0, &[(1, 0), (2, 1)], &[10, 11]),
        part(1, &[(3, 1), (4, 0)], &[11, 20]),
        part(0, &[(5, 0), (6, 2)], &[12]),
        // The second index is wrong, so this entry is lost.
        part(1, &[(7, 1), (8, 2)], &[]),
    ];
    let report = model.restore(Nanos(0), KeptState { entries: parts.into(), ..KeptState::default() });
    assert_eq!((report.flows, report.refused, report.undecodable), (7, 0, 1));
    let sent: Vec<_> =
        dump(&mut model, Nanos(0)).iter().map(|flow| flow.entry.instructions.clone()).collect();
    let expected = [10, 11, 20, 11, 10, 12, 20].map(|port| Arc::new(output(PortNo(port))));
    assert_eq!(sent, expected);
    // Entries of both lists share equal instructions.
    assert!(Arc::ptr_eq(&sent[1], &sent[3]));
}
