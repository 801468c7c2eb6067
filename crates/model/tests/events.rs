// SPDX-License-Identifier: Apache-2.0
//! Timeouts, learned MACs, ports and packet-ins.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::*;
use dataplane::{Event, MacSeen, PacketInEvent};
use flow::operation::MAC_TABLE;
use flow::{
    EntryChange, EntryFlags, EntryId, FlowMod, Nanos, Operation, PacketInReason, PortNo, PortState, TableId,
};
use frame::Frame;
use model::{
    AsyncMessage, Change, ModelConfig, ModelError, ModelLimits, PortConfig, PortMod, PortReason,
    RemovedReason,
};

const A: [u8; 6] = [2, 0, 0, 0, 0, 1];
const B: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn learn(m: &mut Fake, now: Nanos, vid: u16, mac: [u8; 6], port: u32) {
    m.plane_mut().events.push_back(Event::Learn(MacSeen { vid, mac, port: PortNo(port) }));
    poll_all(m, now);
}

fn bridge(config: ModelConfig) -> Fake {
    let mut m = with(config);
    for number in 1..=3 {
        m.add_port(Nanos(0), port(PortNo(number)), true).unwrap();
    }
    poll_all(&mut m, Nanos(0));
    m
}

fn places(m: &mut Fake) -> Vec<(u16, [u8; 6], PortNo)> {
    m.macs(Nanos(0)).into_iter().map(|p| (p.vid, p.mac, p.port)).collect()
}

#[test]
fn timeouts_read_only_due_entries_and_report_the_reason() {
    let mut m = plain();
    let reported = EntryFlags { send_flow_removed: true, ..EntryFlags::default() };
    let timed = |n, idle_timeout_s, hard_timeout_s| FlowMod {
        idle_timeout_s,
        hard_timeout_s,
        flags: reported,
        ..add(1, mac(n), PortNo(1))
    };
    m.flow_mod(SECOND, timed(1, 2, 0)).unwrap();
    m.flow_mod(SECOND, timed(2, 0, 4)).unwrap();
    m.flow_mod(SECOND, timed(3, 2, 5)).unwrap();
    m.flow_mod(SECOND, timed(4, 0, 0)).unwrap();
    let ids: Vec<_> = dump(&mut m, Nanos(0)).iter().map(|f| f.entry.id).collect();
    m.plane_mut().counter_reads = 0;
    assert_eq!(m.next_deadline(), Some(3 * SECOND));
    assert!(poll_all(&mut m, 3 * SECOND - Nanos(1)).is_empty());
    assert_eq!(m.plane_mut().counter_reads, 0);
    for second in [2, 4, 5] {
        m.plane_mut().hit(ids[2], 1, second * SECOND + Nanos(1));
    }
    m.plane_mut().hit(ids[0], 1, 2 * SECOND);
    let removed = |async_messages: Vec<AsyncMessage>| {
        let of = |n| match n {
            AsyncMessage::FlowRemoved(f) => {
                (f.entry.matching.fields().next().unwrap().value, f.reason, f.packets)
            }
            other => panic!("{other:?}"),
        };
        async_messages.into_iter().map(of).collect::<Vec<_>>()
    };
    assert!(poll_all(&mut m, 3 * SECOND).is_empty(), "both entries were used in the meantime");
    assert_eq!(removed(poll_all(&mut m, 4 * SECOND)), [(1, RemovedReason::IdleTimeout, 1)]);
    assert_eq!(removed(poll_all(&mut m, 5 * SECOND)), [(2, RemovedReason::HardTimeout, 0)]);
    assert_eq!(removed(poll_all(&mut m, 6 * SECOND)), [(3, RemovedReason::HardTimeout, 3)]);
    assert_eq!((m.next_deadline(), m.flow_count()), (None, 1));
}

#[test]
fn only_idle_timeouts_wait_until_hits_are_counted() {
    let mut m = plain();
    let flags = EntryFlags { send_flow_removed: true, ..EntryFlags::default() };
    let timed = |n, idle_timeout_s, hard_timeout_s| FlowMod {
        idle_timeout_s,
        hard_timeout_s,
        flags,
        ..add(1, mac(n), PortNo(1))
    };
    for (n, idle, hard) in [(1, 3, 0), (2, 0, 4), (3, 3, 5), (4, 3, 6)] {
        m.flow_mod(Nanos(0), timed(n, idle, hard)).unwrap();
    }
    let ids: Vec<_> = dump(&mut m, Nanos(0)).iter().map(|f| f.entry.id).collect();
    m.plane_mut().hit(ids[2], 1, 2 * SECOND + Nanos(1));
    m.plane_mut().hit(ids[3], 1, 2 * SECOND);
    m.plane_mut().uncounted_since = Some(3 * SECOND);
    let removed = |m: &mut Fake, now: Nanos| {
        let messages = poll_all(m, now).into_iter();
        let removed = messages.map(|message| match message {
            AsyncMessage::FlowRemoved(f) => (f.entry.id, f.reason),
            other => panic!("{other:?}"),
        });
        removed.collect::<Vec<_>>()
    };
    assert_eq!(removed(&mut m, 3 * SECOND), [(ids[0], RemovedReason::IdleTimeout)]);
    assert_eq!(m.next_deadline(), Some(4 * SECOND));
    assert_eq!(removed(&mut m, 4 * SECOND), [(ids[1], RemovedReason::HardTimeout)]);
    assert_eq!(removed(&mut m, 5 * SECOND), [(ids[2], RemovedReason::HardTimeout)]);
    assert_eq!(removed(&mut m, 6 * SECOND), [], "the idle timeout at 5 s may have been first");
    assert!(m.next_deadline().unwrap() > 6 * SECOND);
    m.plane_mut().hit(ids[3], 1, 3 * SECOND + Nanos(1));
    m.plane_mut().uncounted_since = None;
    assert_eq!(removed(&mut m, 7 * SECOND), [(ids[3], RemovedReason::HardTimeout)]);
}

#[test]
fn macs_are_learned_moved_and_aged() {
    let mut m = bridge(ModelConfig { mac_ageing: 10 * SECOND, ..ModelConfig::default() });
    learn(&mut m, SECOND, 0, A, 1);
    let changes = last_changes(&mut m);
    let [EntryChange::Add(entry)] = &changes[..] else { panic!("{changes:?}") };
    assert_eq!((entry.table, entry.priority, &*entry.instructions), (MAC_TABLE, 1, &output(PortNo(1))));
    assert_eq!(entry.matching.to_string(), "vlan_tci=0x0000/0x0fff,dl_dst=02:00:00:00:00:01");
    let operations = m.plane_mut().operations.len();
    learn(&mut m, SECOND, 0, A, 1);
    learn(&mut m, SECOND, 0, [3, 0, 0, 0, 0, 1], 1);
    learn(&mut m, SECOND, 0, B, 9);
    learn(&mut m, SECOND, 0x1001, B, 1);
    assert_eq!(m.plane_mut().operations.len(), operations, "no report contains a new address");
    learn(&mut m, 2 * SECOND, 7, A, 2);
    learn(&mut m, 2 * SECOND, 0, A, 3);
    let changes = last_changes(&mut m);
    assert!(matches!(changes[..], [EntryChange::Remove { .. }, EntryChange::Add(_)]), "moved: {changes:?}");
    assert_eq!(places(&mut m), [(0, A, PortNo(3)), (7, A, PortNo(2))]);
    assert!(dump(&mut m, Nanos(0)).is_empty(), "learned addresses are not entries of the controller");
    m.flow_mod(2 * SECOND, delete_all()).unwrap();
    assert_eq!(places(&mut m).len(), 2);

    let id = |m: &mut Fake| match last_changes(m).pop() {
        Some(EntryChange::Add(entry)) => entry.id,
        other => panic!("{other:?}"),
    };
    let moved = id(&mut m);
    m.plane_mut().hit(moved, 0, 8 * SECOND);
    assert_eq!(m.macs(9 * SECOND)[0].age_ns, SECOND);
    poll_all(&mut m, 12 * SECOND);
    assert_eq!(places(&mut m), [(0, A, PortNo(3))]);
    poll_all(&mut m, 18 * SECOND);
    assert_eq!(places(&mut m), []);
    assert_eq!(m.plane_mut().known_ids(), 0);
}

#[test]
fn the_mac_not_seen_for_longest_is_evicted() {
    let mut m = bridge(ModelConfig { mac_limit: 3, ..ModelConfig::default() });
    for n in 1..=3 {
        learn(&mut m, n * SECOND, 0, [2, 0, 0, 0, 0, n as u8], 1);
    }
    m.plane_mut().hit(EntryId(0), 0, 5 * SECOND);
    learn(&mut m, 6 * SECOND, 0, [2, 0, 0, 0, 0, 9], 1);
    assert_eq!(m.macs(Nanos(0)).iter().map(|p| p.mac[5]).collect::<Vec<_>>(), [1, 3, 9]);
    for n in 20..60_u8 {
        let mac = [2, 0, 0, 0, 0, n];
        m.plane_mut().events.push_back(Event::Learn(MacSeen { vid: 0, mac, port: PortNo(2) }));
    }
    poll_all(&mut m, 7 * SECOND);
    assert_eq!(m.macs(Nanos(0)).iter().map(|p| p.mac[5]).collect::<Vec<_>>(), [57, 58, 59]);
    assert_eq!(m.plane_mut().known_ids(), 3);
}

#[test]
fn macs_of_a_removed_port_are_forgotten() {
    let mut m = bridge(ModelConfig::default());
    for (mac, port) in [(A, 1), (B, 2), ([2, 0, 0, 0, 0, 3], 3)] {
        learn(&mut m, Nanos(0), 0, mac, port);
    }
    m.set_link(Nanos(1), PortNo(1), false).unwrap();
    assert_eq!(places(&mut m).len(), 2);
    learn(&mut m, Nanos(1), 0, A, 1);
    assert_eq!(places(&mut m).len(), 2, "nothing is learned at a port that is down");
    m.remove_port(Nanos(2), PortNo(2)).unwrap();
    let down = PortConfig { down: true, ..PortConfig::default() };
    m.set_port_config(Nanos(3), PortNo(3), down).unwrap();
    assert_eq!(places(&mut m), []);
    poll_all(&mut m, Nanos(4));
    assert_eq!(m.plane_mut().known_ids(), 0);
}

#[test]
fn a_port_that_changes_and_stays_up_keeps_its_macs() {
    let mut m = bridge(ModelConfig::default());
    for (mac, port) in [(A, 1), (B, 2)] {
        learn(&mut m, Nanos(0), 0, mac, port);
    }
    for config in [
        PortConfig { no_flood: true, ..PortConfig::default() },
        PortConfig { no_fwd: true, no_packet_in: true, ..PortConfig::default() },
        PortConfig::default(),
    ] {
        m.set_port_config(Nanos(1), PortNo(1), config).unwrap();
        assert_eq!(places(&mut m), [(0, A, PortNo(1)), (0, B, PortNo(2))], "{config:?}");
    }
    let renamed = model::PortDesc { name: "other".into(), ..port(PortNo(2)) };
    let operations = m.plane_mut().operations.len();
    m.set_port_desc(Nanos(2), renamed).unwrap();
    assert_eq!(m.plane_mut().operations.len(), operations, "workers do not know a port's name");
    assert_eq!(places(&mut m).len(), 2);
    // A port whose link comes up has no learned MACs to lose.
    m.set_link(Nanos(3), PortNo(3), false).unwrap();
    m.set_link(Nanos(4), PortNo(3), true).unwrap();
    assert_eq!(places(&mut m).len(), 2);
}

#[test]
fn ports_are_reported_to_the_data_plane_and_to_controllers() {
    let mut m = plain();
    m.add_port(Nanos(0), port(PortNo(4)), false).unwrap();
    assert!(m.add_port(Nanos(0), port(PortNo(4)), false).is_err());
    assert!(m.add_port(Nanos(0), port(PortNo(0)), false).is_err());
    assert_eq!(m.set_link(Nanos(0), PortNo(5), true).unwrap_err().openflow(), (7, 0));
    m.set_link(Nanos(0), PortNo(4), true).unwrap();
    m.set_link(Nanos(0), PortNo(4), true).unwrap();
    m.set_port_config(Nanos(0), PortNo(4), PortConfig { no_fwd: true, ..PortConfig::default() }).unwrap();
    m.remove_port(Nanos(0), PortNo(4)).unwrap();
    let up = PortState::up(PortNo(4));
    assert_eq!(
        m.plane_mut().operations,
        [
            Operation::Port(PortState { up: false, ..up }),
            Operation::Port(up),
            Operation::Port(PortState { no_fwd: true, ..up }),
            Operation::RemovePort(PortNo(4)),
        ]
    );
    let reasons: Vec<_> = std::iter::from_fn(|| m.next_async_message())
        .map(|n| match n {
            AsyncMessage::PortStatus { reason, port } => (reason, port.is_up()),
            other => panic!("{other:?}"),
        })
        .collect();
    let modified = (PortReason::Modify, true);
    assert_eq!(reasons, [(PortReason::Add, false), modified, modified, (PortReason::Delete, true)]);
    assert_eq!(m.port_counters(PortNo(4)), None);
}

#[test]
fn a_datapath_has_at_most_1024_ports_with_different_numbers() {
    let mut m = plain();
    for number in 1..=1_023 {
        m.add_port(Nanos(0), port(PortNo(number)), true).unwrap();
    }
    assert_eq!(m.add_port(Nanos(0), port(PortNo(0)), true), Err(ModelError::BadPortNumber(PortNo(0))));
    assert_eq!(
        m.add_port(Nanos(0), port(PortNo(0xffff_ff01)), true),
        Err(ModelError::BadPortNumber(PortNo(0xffff_ff01)))
    );
    assert_eq!(m.add_port(Nanos(0), port(PortNo(7)), true), Err(ModelError::PortExists(PortNo(7))));
    m.add_port(Nanos(0), port(PortNo(0xffff_ff00)), true).unwrap();
    assert_eq!(m.add_port(Nanos(0), port(PortNo(2_000)), true), Err(ModelError::TooManyPorts));
    m.remove_port(Nanos(0), PortNo(7)).unwrap();
    m.add_port(Nanos(0), port(PortNo(2_000)), true).unwrap();
    assert_eq!(m.ports().count(), 1_024);
}

#[test]
fn a_bundle_reports_each_port_once() {
    let mut m = plain();
    for number in 1..=3 {
        m.add_port(Nanos(0), port(PortNo(number)), true).unwrap();
    }
    poll_all(&mut m, Nanos(0));
    let down = PortConfig { down: true, ..PortConfig::default() };
    let no_fwd = PortConfig { no_fwd: true, ..PortConfig::default() };
    let set = |number, config, mask| Change::Port(PortMod { number, config, mask, ..PortMod::default() });
    let none = PortConfig::default();
    let changes = vec![
        set(PortNo(2), down, down),
        set(PortNo(1), down, down),
        set(PortNo(3), down, down),
        set(PortNo(1), no_fwd, no_fwd),
        set(PortNo(3), none, down),
        set(PortNo(1), none, down),
    ];
    m.bundle(Nanos(0), changes).unwrap();
    let reported: Vec<_> = poll_all(&mut m, Nanos(0))
        .into_iter()
        .map(|n| match n {
            AsyncMessage::PortStatus { reason: PortReason::Modify, port } => (port.desc.number, port.config),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(reported, [(PortNo(1), no_fwd), (PortNo(2), down)], "port 3 did not change");
}

#[test]
fn packet_ins_carry_the_cookie_and_are_dropped_when_the_queue_is_full() {
    let limits = ModelLimits { async_messages: 2, ..ModelLimits::default() };
    let mut m = with(ModelConfig { limits, ..ModelConfig::default() });
    let reported = EntryFlags { send_flow_removed: true, ..EntryFlags::default() };
    m.flow_mod(Nanos(0), FlowMod { cookie: 9, flags: reported, ..add(1, mac(1), PortNo(1)) }).unwrap();
    for entry in [0, 77, 0] {
        m.plane_mut().events.push_back(Event::PacketIn(PacketInEvent {
            frame: Frame::from_bytes(&[1; 60]),
            table: TableId(0),
            entry: EntryId(entry),
            reason: PacketInReason::Action,
            max_len: 128,
            metadata: 0,
            tunnel_id: 0,
            question: None,
        }));
    }
    m.flow_mod(Nanos(0), delete_all()).unwrap();
    assert!(m.poll(Nanos(0)), "the flow-removed message waits for space");
    assert!(m.poll(Nanos(0)));
    assert_eq!((m.async_message_drops().packet_ins, m.plane_mut().recycled), (1, 1));
    let mut cookies = Vec::new();
    for _ in 0..2 {
        let Some(AsyncMessage::PacketIn(p)) = m.next_async_message() else { panic!() };
        cookies.push(p.cookie);
        m.recycle(p.frame);
    }
    assert_eq!((cookies, m.plane_mut().recycled), (vec![9, u64::MAX], 3));
    assert!(!m.poll(Nanos(0)));
    assert!(matches!(m.next_async_message(), Some(AsyncMessage::FlowRemoved(_))));
    assert!(m.next_async_message().is_none());
}

#[test]
fn ids_are_reused_only_after_pending_events() {
    let limits = ModelLimits { events_per_poll: 2, ..ModelLimits::default() };
    let mut m = with(ModelConfig { limits, ..ModelConfig::default() });
    m.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
    m.flow_mod(Nanos(0), delete_all()).unwrap();
    for _ in 0..3 {
        m.plane_mut().events.push_back(Event::Learn(MacSeen { vid: 0, mac: A, port: PortNo(1) }));
    }
    assert!(m.poll(Nanos(0)));
    assert_eq!(m.plane_mut().known_ids(), 1);
    assert!(!m.poll(Nanos(0)));
    assert_eq!(m.plane_mut().known_ids(), 0);
}

#[test]
fn a_poll_reports_remaining_due_timers() {
    let limits = ModelLimits { timers_per_poll: 2, ..ModelLimits::default() };
    for (entries, polls) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3)] {
        let mut m = with(ModelConfig { limits: limits.clone(), ..ModelConfig::default() });
        for n in 0..entries {
            m.flow_mod(Nanos(0), FlowMod { hard_timeout_s: 3, ..add(1, mac(n), PortNo(1)) }).unwrap();
        }
        assert!(!m.poll(3 * SECOND - Nanos(1)));
        // The removals are not applied, so `poll` has no removed entries to release.
        m.plane_mut().held = true;
        let made = (1..=9).find(|_| !m.poll(3 * SECOND));
        assert_eq!((made, m.flow_count()), (Some(polls), 0), "{entries} entries");
    }
}

#[test]
fn entries_are_released_even_if_events_never_end() {
    const PER_POLL: usize = 1_024;
    let limits = ModelLimits { events_per_poll: PER_POLL, ..ModelLimits::default() };
    let mut m = with(ModelConfig { limits, ..ModelConfig::default() });
    m.flow_mod(Nanos(0), add(1, mac(1), PortNo(1))).unwrap();
    m.flow_mod(Nanos(0), delete_all()).unwrap();
    let mut polls = 0;
    while m.plane_mut().known_ids() > 0 {
        let learn = || Event::Learn(MacSeen { vid: 0, mac: A, port: PortNo(1) });
        m.plane_mut().events.extend(std::iter::repeat_with(learn).take(PER_POLL));
        assert!(m.poll(Nanos(0)));
        polls += 1;
        assert!(polls < 1_000, "the entry is never released");
    }
    assert_eq!(
        polls, 65,
        "the entry is released after more than 65,536 events, the maximum that can be pending"
    );
}
