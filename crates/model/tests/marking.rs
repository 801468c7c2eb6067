// SPDX-License-Identifier: Apache-2.0
//! Which entries are low-latency, and why.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Fake, SECOND, add, command, dump, last_changes, mac, with};
use flow::syntax::{ParseOptions, parse_flow};
use flow::{EntryChange, EntryFlags, FlowMod, FlowModCommand, Match, Nanos, PortNo, TableId};
use model::{CookieMask, Learning, Mark, ModelConfig, ModelLimits};

/// Entries become low-latency at 100 packets per second over a window of 1 s, and normal below 50 packets per
/// second.
fn config() -> ModelConfig {
    let learning = Learning { min_pps: 100, window: SECOND, min_timeout: 600 * SECOND };
    ModelConfig {
        low_latency_cookie: Some(CookieMask { value: 0x4c00, mask: 0xff00 }),
        learning: Some(learning),
        limits: ModelLimits { entries: 10_000, ..ModelLimits::default() },
        ..ModelConfig::default()
    }
}

fn learner() -> Fake {
    with(config())
}

/// Returns whether the entry of this priority is low-latency, and the reason.
fn state(model: &mut Fake, now: Nanos, priority: u16) -> (bool, Mark) {
    let flows = dump(model, now);
    let flow = flows.iter().find(|f| f.entry.priority == priority).unwrap();
    (flow.entry.low_latency, flow.mark)
}

/// Advances the time by one second, in which the entry of this priority is hit `packets` times.
fn second(model: &mut Fake, now: &mut Nanos, priority: u16, packets: u64) {
    let id = dump(model, *now).iter().find(|f| f.entry.priority == priority).unwrap().entry.id;
    model.plane_mut().hit(id, packets, *now);
    *now += SECOND;
    assert!(!model.poll(*now));
}

const LEARNED: (bool, Mark) = (true, Mark { explicit: None, learned: true });
const NOTHING: (bool, Mark) = (false, Mark { explicit: None, learned: false });

#[test]
fn busy_entries_are_learned_and_idle_ones_forgotten() {
    let mut m = learner();
    m.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
    m.flow_mod(Nanos(0), add(2, mac(2), PortNo(1))).unwrap();
    let mut now = Nanos(0);
    let rates = [99, 100, 50, 49, 50, 49, 49, 99, 100];
    let wanted = [NOTHING, LEARNED, LEARNED, LEARNED, LEARNED, LEARNED, NOTHING, NOTHING, LEARNED];
    for (rate, wanted) in rates.into_iter().zip(wanted) {
        let before = m.plane_mut().operations.len();
        let was = state(&mut m, now, 1);
        second(&mut m, &mut now, 1, rate);
        assert_eq!(state(&mut m, now, 1), wanted, "after a second at {rate} packets/s");
        assert_eq!(state(&mut m, now, 2), NOTHING);
        // Workers get an operation for each change of a mark, and no other operations.
        assert_eq!(m.plane_mut().operations.len() - before, usize::from(was != wanted));
    }
    let [EntryChange::Modify { low_latency: true, reset_counts: false, instructions, .. }] =
        &last_changes(&mut m)[..]
    else {
        panic!("one modify, not {:?}", last_changes(&mut m));
    };
    assert_eq!(**instructions, *dump(&mut m, now)[0].entry.instructions);
    assert_eq!(dump(&mut m, now)[0].packets, rates.iter().sum::<u64>());
}

#[test]
fn explicit_marks_and_cookies_come_before_learning() {
    let mut m = learner();
    let marked =
        |priority, low_latency, cookie| FlowMod { low_latency, cookie, ..add(priority, mac(9), PortNo(1)) };
    for (priority, low_latency, cookie) in
        [(1, Some(false), 0), (2, Some(true), 0), (3, None, 0x4c01), (4, Some(false), 0x4c01)]
    {
        m.flow_mod(Nanos(0), marked(priority, low_latency, cookie)).unwrap();
    }
    let mut now = Nanos(0);
    let mut states = |rate: u64| {
        for _ in 0..3 {
            for priority in 1..=4 {
                let id = dump(&mut m, now).iter().find(|f| f.entry.priority == priority).unwrap().entry.id;
                m.plane_mut().hit(id, rate, now);
            }
            now += SECOND;
            m.poll(now);
        }
        assert_eq!(m.plane_mut().operations.len(), 4, "marked entries are not learned");
        [1, 2, 3, 4].map(|priority| state(&mut m, now, priority))
    };
    let mark = |explicit| Mark { explicit, learned: false };
    let wanted = [
        (false, mark(Some(false))),
        (true, mark(Some(true))),
        (true, mark(None)),
        (false, mark(Some(false))),
    ];
    assert_eq!(states(1_000), wanted);
    assert_eq!(states(0), wanted);
}

#[test]
fn a_modify_with_a_mark_ends_learning_and_one_without_keeps_it() {
    let mut m = learner();
    m.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
    let mut now = Nanos(0);
    second(&mut m, &mut now, 1, 100);
    let modify = |low_latency| FlowMod {
        low_latency,
        ..command(FlowModCommand::Modify, add(1, Match::any(), PortNo(2)))
    };
    m.flow_mod(now, modify(None)).unwrap();
    assert_eq!(state(&mut m, now, 1), LEARNED);
    let EntryChange::Modify { low_latency: true, .. } = last_changes(&mut m)[0] else {
        panic!("the entry stays low-latency")
    };
    m.flow_mod(now, modify(Some(false))).unwrap();
    let EntryChange::Modify { low_latency: false, .. } = last_changes(&mut m)[0] else {
        panic!("the entry becomes normal immediately")
    };
    let never = (false, Mark { explicit: Some(false), learned: false });
    for _ in 0..3 {
        second(&mut m, &mut now, 1, 1_000);
        assert_eq!(state(&mut m, now, 1), never);
    }
    // A refused bundle leaves all entries unchanged.
    let refused = m.bundle(now, [modify(Some(true)), FlowMod { table: None, ..add(1, mac(1), PortNo(1)) }]);
    assert_eq!(refused.map_err(|(at, _)| at), Err(1));
    assert_eq!(state(&mut m, now, 1), never);
}

#[test]
fn short_lived_entries_are_not_learned() {
    let mut m = learner();
    for (priority, idle_timeout_s, hard_timeout_s) in
        [(1, 599, 0), (2, 0, 599), (3, 600, 0), (4, 600, 600), (5, 599, 600)]
    {
        m.flow_mod(Nanos(0), FlowMod { idle_timeout_s, hard_timeout_s, ..add(priority, mac(1), PortNo(1)) })
            .unwrap();
    }
    let mut now = Nanos(0);
    for priority in 1..=5 {
        let id = dump(&mut m, now).iter().find(|f| f.entry.priority == priority).unwrap().entry.id;
        m.plane_mut().hit(id, 100, now);
    }
    now += SECOND;
    m.poll(now);
    assert_eq!([1, 2, 3, 4, 5].map(|p| state(&mut m, now, p)), [NOTHING, NOTHING, LEARNED, LEARNED, NOTHING]);
}

#[test]
fn floods_that_are_dropped_or_go_to_the_controller_are_not_learned() {
    let mut m = learner();
    let does =
        ["drop", "CONTROLLER", "output:2,CONTROLLER", "write_actions(CONTROLLER)", "set_field:1->ip_dscp"];
    let forwards = ["NORMAL", "write_actions(output:2)", "goto_table:1"];
    let all = || does.iter().chain(&forwards).zip(1..);
    for (actions, priority) in all() {
        let line = format!("priority={priority},ip,actions={actions}");
        m.flow_mod(Nanos(0), parse_flow(&line, FlowModCommand::Add, ParseOptions::default()).unwrap())
            .unwrap();
    }
    let mut now = Nanos(0);
    let ids: Vec<_> = dump(&mut m, now).iter().map(|f| f.entry.id).collect();
    let mut window = |m: &mut Fake| {
        ids.iter().for_each(|id| m.plane_mut().hit(*id, 1_000, now));
        now += SECOND;
        m.poll(now);
        all().map(|(_, priority)| state(m, now, priority) == LEARNED).collect::<Vec<_>>()
    };
    assert_eq!(window(&mut m), [false, false, false, false, false, true, true, true]);
    // A learned mark ends when the entry is modified and does not forward.
    let drop = FlowMod { table: Some(TableId(0)), command: FlowModCommand::Modify, ..FlowMod::default() };
    m.flow_mod(SECOND, drop).unwrap();
    assert_eq!(window(&mut m), [false; 8]);
}

#[test]
fn a_replacing_entry_is_learned_anew() {
    let mut m = learner();
    m.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
    let mut now = Nanos(0);
    second(&mut m, &mut now, 1, 100);
    assert_eq!(state(&mut m, now, 1), LEARNED);
    m.flow_mod(now, add(1, mac(1), PortNo(1))).unwrap();
    assert_eq!(state(&mut m, now, 1), NOTHING);
    assert_eq!(dump(&mut m, now)[0].packets, 100, "the counts of the entry continue");
    second(&mut m, &mut now, 1, 99);
    assert_eq!(state(&mut m, now, 1), NOTHING);
    second(&mut m, &mut now, 1, 100);
    assert_eq!(state(&mut m, now, 1), LEARNED);
    // A modify command that resets the counters does not disturb learning.
    let reset = EntryFlags { reset_counts: true, ..EntryFlags::default() };
    m.flow_mod(
        now,
        FlowMod { flags: reset, ..command(FlowModCommand::Modify, add(1, Match::any(), PortNo(2))) },
    )
    .unwrap();
    second(&mut m, &mut now, 1, 50);
    second(&mut m, &mut now, 1, 50);
    assert_eq!(state(&mut m, now, 1), LEARNED);
}

#[test]
fn a_step_is_short_and_all_entries_are_examined_within_a_window() {
    const ENTRIES: u64 = 5_000;
    let mut m = learner();
    let flows = (0..ENTRIES).map(|n| add(1, mac(n.into()), PortNo(1)));
    m.bundle(Nanos(0), flows).unwrap();
    let ids: Vec<_> = dump(&mut m, Nanos(0)).iter().map(|f| f.entry.id).collect();
    let mut now = Nanos(0);
    while now < 3 * SECOND {
        // Each entry is hit at twice the threshold rate, in proportion to the elapsed time.
        let next = m.next_deadline().unwrap().max(now + Nanos(1));
        for &id in &ids {
            let packets = next / (SECOND / 200) - now / (SECOND / 200);
            m.plane_mut().hit(id, packets, next);
        }
        now = next;
        let reads = m.plane_mut().counter_reads;
        let operations = m.plane_mut().operations.len();
        assert!(!m.poll(now));
        assert!(m.plane_mut().counter_reads - reads <= 1_024, "a step reads at most 1,024 counters");
        match &m.plane_mut().operations[operations..] {
            [] => {}
            [flow::Operation::Entries(changes)] => {
                assert!(changes.len() <= 64, "a step changes at most 64 marks")
            }
            other => panic!("a step submits at most one operation, not {}", other.len()),
        }
    }
    assert!(dump(&mut m, now).iter().all(|f| f.entry.low_latency), "every entry was examined");
}

#[test]
fn without_learning_no_entry_is_examined() {
    let mut m = with(ModelConfig { learning: None, ..config() });
    m.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
    assert_eq!(m.next_deadline(), None);
    let reads = m.plane_mut().counter_reads;
    m.poll(100 * SECOND);
    assert_eq!(m.plane_mut().counter_reads, reads);
    let mut m = learner();
    assert_eq!(m.next_deadline(), Some(SECOND));
    m.poll(SECOND);
    assert_eq!(m.next_deadline(), Some(2 * SECOND));
}

#[test]
fn a_change_of_the_cookie_or_of_learning_marks_existing_entries_anew() {
    let mut m = learner();
    let marked =
        |priority, low_latency, cookie| FlowMod { low_latency, cookie, ..add(priority, mac(9), PortNo(1)) };
    for flow in
        [marked(1, None, 0), marked(2, None, 0x4c00), marked(3, None, 0x5d00), marked(4, Some(false), 0x5d00)]
    {
        m.flow_mod(Nanos(0), flow).unwrap();
    }
    let mut now = Nanos(0);
    second(&mut m, &mut now, 1, 100);
    let low = |m: &mut Fake, now| [1, 2, 3, 4].map(|priority| state(m, now, priority).0);
    assert_eq!(low(&mut m, now), [true, true, false, false]);
    m.set_low_latency_cookie(now, Some(CookieMask { value: 0x5d00, mask: 0xff00 }));
    assert_eq!(low(&mut m, now), [true, false, true, false]);
    assert_eq!(last_changes(&mut m).len(), 2, "only the entries that change");
    let operations = m.plane_mut().operations.len();
    m.set_low_latency_cookie(now, Some(CookieMask { value: 0x5d00, mask: 0xff00 }));
    assert_eq!(m.plane_mut().operations.len(), operations, "nothing has changed");
    m.set_learning(now, None);
    assert_eq!((low(&mut m, now), state(&mut m, now, 1)), ([false, false, true, false], NOTHING));
    m.set_low_latency_cookie(now, None);
    assert_eq!(low(&mut m, now), [false; 4]);
    // Learning that is turned on later measures from then on. The counters have continued.
    m.set_learning(now, config().learning);
    second(&mut m, &mut now, 1, 100);
    second(&mut m, &mut now, 1, 100);
    assert_eq!(state(&mut m, now, 1), LEARNED);
    assert_eq!(dump(&mut m, now).iter().map(|flow| flow.packets).sum::<u64>(), 300);
}

#[test]
fn the_fail_mode_changes_only_the_default_entry() {
    let mut m = with(ModelConfig::default());
    m.flow_mod(Nanos(0), add(7, mac(1), PortNo(1))).unwrap();
    let priorities = |m: &mut Fake| {
        let mut all: Vec<u16> = dump(m, Nanos(0)).iter().map(|flow| flow.entry.priority).collect();
        all.sort_unstable();
        all
    };
    m.set_fail_mode(Nanos(0), true);
    assert_eq!((priorities(&mut m), m.config().standalone), (vec![0, 7], true));
    m.set_fail_mode(Nanos(0), false);
    assert_eq!((priorities(&mut m), m.config().standalone), (vec![7], false));
    // An entry of its priority and match stays as it is.
    let own = FlowMod { cookie: 5, ..add(0, Match::any(), PortNo(3)) };
    m.flow_mod(Nanos(0), own).unwrap();
    m.set_fail_mode(Nanos(0), true);
    m.set_fail_mode(Nanos(0), false);
    assert_eq!(dump(&mut m, Nanos(0)).iter().filter(|flow| flow.entry.cookie == 5).count(), 1);
}
