// SPDX-License-Identifier: Apache-2.0
//! The search worker: its answers make path records, have no side effects, and are recognized if they were
//! found under other rules. Its end or silence loses no packet.

use super::lab::{LIMITS, Lab, TURN_NS, packet};
use dataplane::{DataPlane, EntryCounters};
use flow::group::{Bucket, Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::{Action, DropReason, GroupId, MeterId, Nanos, PortNo, TableId};
use model::{AsyncMessage, FlowCursor, FlowFilter, GroupCommand, MeterCommand};
use pipeline::LaneLimits;
use port_cache::{MissFigures, MissLimits, PortCacheConfig, SearcherKind, WhenFull};
use worker::WorkerSetConfig;

/// A search worker that answers in its next poll iteration.
fn searched() -> PortCacheConfig {
    PortCacheConfig { limits: LIMITS, searcher: SearcherKind::Worker, ..PortCacheConfig::default() }
}

/// Runs the forwarding worker alone for a time that is long enough to miss the search worker.
fn wait_for_silence(lab: &mut Lab) {
    for _ in 0..200 {
        lab.now += Nanos(1_000_000);
        lab.worker.turn(lab.now);
        lab.model.poll(lab.now);
    }
}

#[test]
fn an_answer_makes_the_record_by_which_the_first_packet_leaves() {
    for lanes in [LaneLimits::NONE, LaneLimits::USUAL] {
        let mut lab = Lab::new(searched(), lanes);
        let before = lab.totals();
        (0..20).for_each(|number| lab.push(1, &packet(1, 3, number)));
        lab.turn();
        assert_eq!((lab.totals().held, lab.sent(3).len()), (20, 0));
        (0..40).for_each(|_| lab.turn());
        assert_eq!(lab.sent(3), (0..20).collect::<Vec<_>>());
        let (figures, totals) = (lab.figures(), lab.totals());
        assert_eq!((figures.searched, figures.merged, figures.sent, figures.answered), (1, 19, 1, 1));
        assert_eq!((figures.outdated, figures.stale, figures.fallen_back), (0, 0, 0));
        assert_eq!(totals.express - before.express, 20, "no packet is looked up in the worker's tables");
        lab.push(1, &packet(1, 3, 20));
        (0..4).for_each(|_| lab.turn());
        assert_eq!((lab.sent(3), lab.figures().sent), (vec![20], 1));
    }
}

/// Flows of one packet each, such as those of a scan, do not displace records that were not hit for a while.
#[test]
fn a_searched_path_displaces_a_record_only_if_the_flow_arrives_again() {
    let config = WorkerSetConfig {
        express_records: 16,
        small_frames: 256,
        port_cache: Some(searched()),
        lanes: LaneLimits::NONE,
        ..WorkerSetConfig::default()
    };
    let mut lab = Lab::with_config(&config);
    let send = |lab: &mut Lab, host: u8| {
        lab.push(1, &packet(1, host, host.into()));
        (0..100).for_each(|_| lab.turn());
        assert_eq!(lab.sent(2), [u32::from(host)]);
    };
    (0x80..0x90).for_each(|host| send(&mut lab, host));
    assert_eq!(lab.model.plane_mut().express_figures().records, 16, "the set is full");
    // The records are idle from now on.
    lab.now += Nanos(10_000_000_000);
    (0x90..0x94).for_each(|host| send(&mut lab, host));
    let figures = lab.model.plane_mut().express_figures();
    assert_eq!((figures.displaced, lab.figures().answered), (0, 20));
    (0..3).for_each(|_| send(&mut lab, 0xc0));
    assert_eq!(lab.model.plane_mut().express_figures().displaced, 1);
}

/// Everything that a packet changes in a switch.
#[derive(Debug, PartialEq)]
struct Effects {
    entries: Vec<(u16, EntryCounters)>,
    group: Vec<u64>,
    meter: Vec<u64>,
    packet_ins: usize,
    macs: usize,
    tables: Vec<(u64, u64)>,
    ports: Vec<u64>,
    dropped: u64,
}

/// Sends packets whose paths have side effects through a switch with this searcher.
fn effects(cache: PortCacheConfig) -> (Effects, MissFigures) {
    let mut lab = Lab::new(cache, LaneLimits::NONE);
    let buckets = [2, 3].map(|port| bucket(port, None)).into();
    let group = Group { id: GroupId(1), kind: GroupType::All, buckets };
    lab.model.group_mod(lab.now, GroupCommand::Add, group).unwrap();
    let bands = vec![MeterBand { rate: 1, burst: 2, band: Band::Drop }];
    let meter = Meter { id: MeterId(1), packets: true, stats: true, burst: true, bands };
    lab.model.meter_mod(lab.now, MeterCommand::Add, meter).unwrap();
    for text in [
        "priority=60001,dl_dst=02:00:00:00:00:11,actions=meter:1,group:1",
        "priority=60002,dl_dst=02:00:00:00:00:12,actions=output:2,controller:64",
        "priority=60003,dl_dst=02:00:00:00:00:13,actions=normal",
        "priority=60004,dl_dst=02:00:00:00:00:14,actions=dec_ttl,goto_table:1",
        "table=1,priority=60005,actions=output:3",
    ] {
        lab.flow(text);
    }
    for round in 0..4 {
        for host in 0x11..0x16 {
            lab.push(1, &packet(1, host, round));
            (0..6).for_each(|_| lab.turn());
            lab.model.poll(lab.now);
            (0..6).for_each(|_| lab.turn());
        }
    }
    lab.drain();
    // Hits are added to the counters of their entries while the worker is idle.
    (0..100).for_each(|_| lab.turn());
    lab.model.poll(lab.now);
    let packet_ins = std::iter::from_fn(|| lab.model.next_async_message());
    let packet_ins = packet_ins.filter(|message| matches!(message, AsyncMessage::PacketIn(_))).count();
    let macs = lab.model.macs(lab.now).len();
    let flows = lab.model.flows(lab.now, &FlowFilter::default(), &mut FlowCursor::default(), 1_000);
    let plane = lab.model.plane_mut();
    let without_time = |counters| EntryCounters { used_ns: Nanos(0), ..counters };
    let entries = flows.iter().map(|flow| (flow.entry.priority, plane.entry_counters(flow.entry.id)));
    let mut entries: Vec<_> =
        entries.map(|(priority, counters)| (priority, without_time(counters))).collect();
    entries.sort_by_key(|(priority, counters)| (*priority, counters.packets));
    let group = plane.group_counters(GroupId(1)).unwrap();
    let meter = plane.meter_counters(MeterId(1)).unwrap();
    let effects = Effects {
        entries,
        group: group.buckets.iter().chain([&group.total]).map(|count| count.packets).collect(),
        meter: meter.bands.iter().chain([&meter.total]).map(|count| count.packets).collect(),
        packet_ins,
        macs,
        tables: [0, 1]
            .map(TableId)
            .map(|table| plane.table_counters(table))
            .map(|c| (c.lookups, c.matches))
            .into(),
        ports: [2, 3].map(PortNo).map(|port| plane.port_counters(port).unwrap().tx_packets).into(),
        dropped: DropReason::ALL.iter().map(|reason| plane.totals().dropped_in_all(*reason)).sum(),
    };
    (effects, lab.figures())
}

#[test]
fn a_search_has_no_side_effects() {
    let (with, figures) = effects(searched());
    assert!(figures.answered >= 5 && figures.fallen_back == 0, "{figures:?}");
    let (without, _) = effects(PortCacheConfig { limits: LIMITS, ..PortCacheConfig::default() });
    assert_eq!(with, without);
    assert!(with.meter.iter().all(|count| *count > 0) && with.packet_ins == 4 && with.macs == 1, "{with:?}");
    assert!(with.group.iter().all(|count| *count > 0) && with.tables[1].0 == 4, "{with:?}");
}

/// Changes the path of a packet to host 3 in one way.
type Change = fn(&mut Lab);

/// For each kind of operation that may change a path: rules for packets to host 3, the operation, and the
/// ports by which such packets leave before and after it.
const CHANGES: [(&str, &[&str], Change, usize, usize); 4] = [
    ("flow-mod", &[], |lab| lab.flow("priority=60000,dl_dst=02:00:00:00:00:03,actions=output:2"), 3, 2),
    (
        "group-mod",
        &["priority=60000,dl_dst=02:00:00:00:00:03,actions=group:7"],
        |lab| lab.model.group_mod(lab.now, GroupCommand::Modify, group(2)).unwrap(),
        3,
        2,
    ),
    (
        "port change",
        &["priority=60000,dl_dst=02:00:00:00:00:03,actions=group:8"],
        |lab| lab.model.set_link(lab.now, PortNo(3), false).unwrap(),
        3,
        2,
    ),
    (
        "MAC move",
        &["priority=60000,dl_dst=02:00:00:00:00:03,actions=normal"],
        // The model takes the report of the new port.
        |lab| _ = lab.model.poll(lab.now),
        3,
        2,
    ),
];

fn bucket(port: u32, watch_port: Option<PortNo>) -> Bucket {
    Bucket { weight: 0, watch_port, watch_group: None, actions: vec![Action::output(PortNo(port))] }
}

fn group(port: u32) -> Group {
    Group { id: GroupId(7), kind: GroupType::Indirect, buckets: vec![bucket(port, None)] }
}

fn failover() -> Group {
    let buckets = [3, 2].map(|port| bucket(port, Some(PortNo(port)))).into();
    Group { id: GroupId(8), kind: GroupType::FastFailover, buckets }
}

/// Lets host 3 send a packet from a port. The worker reports its address to the model.
fn move_host(lab: &mut Lab, port: usize) {
    let mut bytes = packet(9, 0x55, 99);
    bytes[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 3]);
    lab.push(port, &bytes);
    (0..10).for_each(|_| lab.turn());
}

/// Prepares a switch for one of the changes.
fn prepared(rules: &[&str]) -> Lab {
    let mut lab = Lab::new(searched(), LaneLimits::NONE);
    lab.model.group_mod(lab.now, GroupCommand::Add, group(3)).unwrap();
    lab.model.group_mod(lab.now, GroupCommand::Add, failover()).unwrap();
    lab.flow("priority=60000,dl_dst=02:00:00:00:00:55,actions=normal");
    rules.iter().for_each(|rule| lab.flow(rule));
    move_host(&mut lab, 3);
    lab.model.poll(lab.now);
    (0..10).for_each(|_| lab.turn());
    move_host(&mut lab, 2);
    (1..=3).for_each(|port| drop(lab.sent(port)));
    lab
}

#[test]
fn answers_found_before_an_operation_are_recognized_after_it() {
    for (name, rules, change, before, after) in CHANGES {
        let mut lab = prepared(rules);
        lab.push(1, &packet(1, 3, 7));
        (0..10).for_each(|_| lab.turn());
        assert_eq!((lab.sent(before), lab.figures().outdated), (vec![7], 0), "{name}");

        let mut lab = prepared(rules);
        (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
        // The search worker answers under the old rules. The worker applies the operation before it takes the
        // answer.
        lab.turn();
        let barrier = lab.model.barrier();
        change(&mut lab);
        assert_ne!(lab.model.barrier(), barrier, "{name} is an operation");
        (0..10).for_each(|_| lab.turn());
        assert_eq!((lab.sent(after), lab.figures().outdated), (vec![0, 1, 2], 1), "{name}");
        lab.push(1, &packet(1, 3, 8));
        (0..10).for_each(|_| lab.turn());
        assert_eq!(
            (lab.sent(before), lab.sent(after)),
            (vec![], vec![8]),
            "{name}: no record of the old path"
        );
    }
}

/// The worker applies an operation only when its backlog is empty, so the search worker may apply it earlier.
#[test]
fn answers_found_after_an_operation_are_not_used_before_it() {
    let mut lab = Lab::new(searched(), LaneLimits::USUAL);
    lab.push(1, &packet(1, 2, 0));
    (0..10).for_each(|_| lab.turn());
    assert_eq!((lab.sent(2), lab.figures().answered), (vec![0], 1));
    lab.push(1, &packet(1, 3, 0));
    (1..100).for_each(|number| lab.push(1, &packet(1, 2, number)));
    for _ in 0..4 {
        lab.now += TURN_NS;
        lab.worker.turn(lab.now);
    }
    lab.flow("priority=60000,dl_dst=02:00:00:00:00:03,actions=output:2");
    lab.search();
    let barrier = lab.model.barrier();
    // No answer is taken in the first poll iteration, because the one before has received packets.
    for _ in 0..2 {
        lab.now += TURN_NS;
        lab.worker.turn(lab.now);
    }
    assert!(!lab.model.is_applied(barrier), "packets wait in the backlog");
    assert_eq!((lab.figures().answered, lab.figures().outdated), (2, 1));
    (0..200).for_each(|_| lab.turn());
    lab.push(1, &packet(1, 3, 200));
    (0..10).for_each(|_| lab.turn());
    let (sent, by_old_rules) = (lab.sent(2), lab.sent(3));
    assert_eq!((sent.last(), by_old_rules, sent.len()), (Some(&200), vec![0], 100));
}

#[test]
fn the_end_of_the_search_workers_thread_is_noticed_at_once() {
    let mut lab = Lab::new(searched(), LaneLimits::NONE);
    let end = lab.search.as_ref().unwrap().end();
    lab.push(1, &packet(1, 3, 0));
    lab.now += TURN_NS;
    lab.worker.turn(lab.now);
    assert_eq!(lab.totals().held, 1);
    drop(end);
    lab.turn();
    assert_eq!((lab.sent(3), lab.figures().fallen_back, lab.figures().answered), (vec![0], 1, 0));
    assert!(lab.search.as_ref().unwrap().is_closed());
}

#[test]
fn a_barrier_waits_for_the_search_worker_but_not_for_a_dead_one() {
    let mut lab = Lab::new(searched(), LaneLimits::NONE);
    lab.flow("priority=60000,dl_dst=02:00:00:00:00:03,actions=output:2");
    let barrier = lab.model.barrier();
    while lab.worker.apply() > 0 {}
    assert!(!lab.model.is_applied(barrier));
    lab.search();
    assert!(lab.model.is_applied(barrier));
    // The search worker makes no poll iteration any longer.
    lab.flow("priority=60001,dl_dst=02:00:00:00:00:03,actions=output:3");
    let barrier = lab.model.barrier();
    while lab.worker.apply() > 0 {}
    for tick in 0..=10 {
        assert!(!lab.model.is_applied(barrier), "after {tick} ticks");
        lab.now += Nanos(3_600_000_000_000);
        lab.model.poll(lab.now);
    }
    assert!(lab.model.is_applied(barrier) && !lab.model.plane_mut().reaches_search_worker());
    lab.push(1, &packet(1, 3, 1));
    (0..4).for_each(|_| lab.turn());
    assert_eq!(
        (lab.sent(3), lab.figures().fallen_back),
        (vec![1], 1),
        "it lacks rules, so it answers nothing"
    );
    assert!(lab.search.as_ref().unwrap().is_closed());
}

/// Operations go on as fast as the search worker applies them, so the control thread keeps few of them.
#[test]
fn operations_that_the_search_worker_does_not_apply_are_parked_and_bounded() {
    const MOST: usize = 256;
    let mut lab = Lab::new(searched(), LaneLimits::NONE);
    let mut submitted = 0;
    while submitted < 10_000 && lab.model.plane_mut().parked() < MOST {
        lab.flow(&format!("priority=60000,udp,tp_dst={submitted},actions=output:2"));
        while lab.worker.apply() > 0 {}
        submitted += 1;
    }
    assert!((MOST..10_000).contains(&submitted), "{submitted} operations");
    let barrier = lab.model.barrier();
    assert!(!lab.model.is_applied(barrier));
    // Pending operations are applied before further searches.
    lab.push(1, &packet(1, 3, 0));
    lab.worker.turn(lab.now);
    let mut turns = 0;
    while !lab.model.is_applied(barrier) {
        assert!(turns < 10, "{submitted} operations");
        lab.search();
        turns += 1;
    }
    assert_eq!(lab.model.plane_mut().parked(), 0);
    // A search worker that has been given up holds back nothing.
    while lab.model.plane_mut().parked() < MOST {
        lab.flow(&format!("priority=60000,udp,tp_dst={submitted},actions=output:2"));
        while lab.worker.apply() > 0 {}
        submitted += 1;
    }
    for _ in 0..=20 {
        lab.now += Nanos(1_000_000_000);
        lab.model.poll(lab.now);
    }
    let plane = lab.model.plane_mut();
    assert_eq!((plane.parked(), plane.reaches_search_worker()), (0, false));
}

#[test]
fn the_end_of_the_search_worker_loses_no_packet() {
    let mut lab = Lab::new(searched(), LaneLimits::NONE);
    (0..5).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.now += TURN_NS;
    lab.worker.turn(lab.now);
    assert_eq!(lab.totals().held, 5);
    assert!(lab.worker.take_searches(), "the search worker must be woken");
    lab.search = None;
    (0..4).for_each(|_| lab.turn());
    assert_eq!(lab.sent(3), [0, 1, 2, 3, 4]);
    assert!(!lab.worker.take_searches(), "a request that nobody serves does not wake it again");
    for flow in 0..100 {
        lab.push(1, &packet(flow, 1 + flow as u8 % 3, flow.into()));
        lab.turn();
    }
    lab.model.poll(lab.now);
    assert_eq!((lab.totals().held, lab.model.plane_mut().unanswered_workers()), (0, 1));
    assert_eq!(lab.totals().dropped.of(DropReason::MissTimeout), 0);
    lab.flow("priority=60000,dl_dst=02:00:00:00:00:03,actions=output:2");
    let barrier = lab.model.barrier();
    lab.turn();
    assert!(lab.model.is_applied(barrier), "operations do not wait for it");
}

#[test]
fn a_silent_search_worker_is_replaced_by_the_tables_until_it_answers_again() {
    let mut lab = Lab::new(searched(), LaneLimits::NONE);
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    wait_for_silence(&mut lab);
    assert_eq!(lab.sent(3), [0, 1, 2]);
    let figures = lab.figures();
    assert_eq!((figures.fallen_back, figures.answered, figures.timed_out), (1, 0, 0), "{figures:?}");
    assert_eq!(lab.model.plane_mut().unanswered_workers(), 1);
    lab.push(1, &packet(2, 1, 3));
    lab.now += TURN_NS;
    lab.worker.turn(lab.now);
    assert_eq!(
        (lab.sent(1), lab.figures().fallen_back),
        (vec![], 2),
        "the packet is to leave by its own port"
    );
    // It comes back, and answers the first search, which is over.
    lab.search();
    lab.flow("priority=60000,dl_dst=02:00:00:00:00:03,udp,tp_dst=3,actions=output:3");
    (0..3).for_each(|flow| lab.push(3, &packet(flow, 2, flow.into())));
    (0..10).for_each(|_| lab.turn());
    lab.push(3, &packet(9, 2, 9));
    (0..10).for_each(|_| lab.turn());
    lab.model.poll(lab.now);
    let figures = lab.figures();
    assert_eq!((figures.stale, lab.model.plane_mut().unanswered_workers()), (1, 0), "{figures:?}");
    assert!(figures.answered > 0 && lab.sent(2).len() == 4, "{figures:?}");
}

#[test]
fn a_silent_search_worker_loses_no_packet_whose_timeout_is_short() {
    for (timeout_ns, retries) in [(1_000_000, 0), (20_000_000, 1)] {
        let limits = MissLimits { retries, timeout_ns: Nanos(timeout_ns), ..LIMITS };
        let mut lab = Lab::new(PortCacheConfig { limits, ..searched() }, LaneLimits::NONE);
        for flow in 0..20 {
            lab.push(1, &packet(flow, 0x20 + flow as u8, flow.into()));
            for _ in 0..500 {
                lab.now += Nanos(100_000);
                lab.worker.turn(lab.now);
            }
        }
        assert_eq!(lab.sent(2), (0..20).collect::<Vec<u32>>(), "timeout of {timeout_ns} ns");
        let dropped = lab.totals().dropped.of(DropReason::MissTimeout);
        assert_eq!((dropped, lab.figures().fallen_back), (0, 20), "timeout of {timeout_ns} ns");
    }
}

/// The first flow of the slot leaves without an answer, because its second packet has no place. The second
/// flow has the slot when the answers of both arrive.
#[test]
fn an_answer_for_an_earlier_flow_of_a_slot_makes_no_record() {
    let limits = MissLimits { queue: 0, when_full: WhenFull::Forward, ..LIMITS };
    let mut lab = Lab::new(PortCacheConfig { limits, ..searched() }, LaneLimits::NONE);
    lab.push(1, &packet(1, 3, 0));
    lab.worker.turn(lab.now);
    lab.push(1, &packet(1, 3, 9));
    lab.now += TURN_NS;
    lab.worker.turn(lab.now);
    assert_eq!((lab.figures().forced, lab.sent(3), lab.totals().held), (1, vec![0, 9], 0));
    lab.push(1, &packet(1, 2, 1));
    lab.worker.turn(lab.now);
    lab.search();
    (0..10).for_each(|_| lab.turn());
    assert_eq!((lab.sent(2), lab.sent(3), lab.figures().stale), (vec![1], vec![], 1));
    lab.push(1, &packet(1, 2, 2));
    (0..10).for_each(|_| lab.turn());
    assert_eq!((lab.sent(2), lab.sent(3), lab.figures().answered), (vec![2], vec![], 1));
}

#[test]
fn a_full_ring_of_requests_drops_or_forwards_as_configured() {
    const FLOWS: u16 = 120;
    for when_full in [WhenFull::Drop, WhenFull::Forward] {
        let limits = MissLimits { when_full, ..LIMITS };
        let mut lab = Lab::new(PortCacheConfig { limits, ..searched() }, LaneLimits::NONE);
        // The UDP port is part of the keys.
        lab.flow("priority=40000,dl_dst=02:00:00:00:00:02,udp,tp_dst=7,actions=output:2");
        lab.turn();
        for flow in 0..FLOWS {
            let mut bytes = packet(flow, 3, flow.into());
            let number = bytes.split_off(bytes.len() - 4);
            bytes.resize(1_900, 0);
            lab.push(1, &[bytes, number].concat());
            lab.now += TURN_NS;
            lab.worker.turn(lab.now);
        }
        let (figures, dropped) = (lab.figures(), lab.totals().dropped.of(DropReason::MissQueueFull));
        assert!((60..FLOWS.into()).contains(&figures.searched), "{figures:?}");
        let rest = u64::from(FLOWS) - figures.searched;
        let expected = if when_full == WhenFull::Drop { (rest, 0) } else { (0, rest) };
        assert_eq!((figures.dropped, figures.uncached), expected, "{figures:?}");
        assert_eq!((dropped, lab.sent(3).len() as u64), expected);
        // Few answers are taken one at a time.
        (0..200).for_each(|_| lab.turn());
        assert_eq!((lab.sent(3).len() as u64, lab.totals().held), (figures.searched, 0));
    }
}

/// A packet of a flow without a slot joins the backlog. The next packet of the flow is searched, and its path
/// is low-latency, so it could leave at once.
#[test]
fn a_searched_packet_leaves_after_an_earlier_packet_of_its_flow_in_the_backlog() {
    let limits = MissLimits { entries: 1, ..LIMITS };
    let mut lab = Lab::new(PortCacheConfig { limits, ..searched() }, LaneLimits::USUAL);
    lab.push(1, &packet(1, 2, 0));
    (0..10).for_each(|_| lab.turn());
    assert_eq!(lab.sent(2), [0]);
    (1..21).for_each(|number| lab.push(1, &packet(1, 2, number)));
    lab.push(1, &packet(1, 3, 50));
    lab.push(1, &packet(1, 0x77, 100));
    lab.turn();
    assert_eq!((lab.figures().uncached, lab.figures().searched), (1, 2), "{:?}", lab.figures());
    lab.turn();
    lab.push(1, &packet(1, 0x77, 101));
    (0..4).for_each(|_| lab.turn());
    assert_eq!(lab.figures().answered, 3, "{:?}", lab.figures());
    lab.drain();
    let sent: Vec<u32> = lab.sent(2).into_iter().filter(|number| *number >= 100).collect();
    assert_eq!((sent, lab.sent(3)), (vec![100, 101], vec![50]));
}

/// Port 1 sends so many long packets of new flows that the ring of requests is full.
#[test]
fn a_port_that_fills_the_ring_of_requests_takes_nothing_from_another_port() {
    let mut lab = Lab::new(searched(), LaneLimits::NONE);
    // The UDP port is part of the keys.
    lab.flow("priority=40000,dl_dst=02:00:00:00:00:02,udp,tp_dst=7,actions=output:2");
    lab.turn();
    for flow in 0..120 {
        let mut bytes = packet(flow, 3, flow.into());
        bytes.resize(1_900, 0);
        lab.push(1, &bytes);
        if flow >= 110 {
            lab.push(3, &packet(flow, 2, flow.into()));
        }
        lab.now += TURN_NS;
        lab.worker.turn(lab.now);
    }
    assert!(lab.figures().dropped > 0, "the ring is full: {:?}", lab.figures());
    (0..20).for_each(|_| lab.turn());
    assert_eq!(lab.sent(2), (110..120).collect::<Vec<u32>>(), "{:?}", lab.figures());
}
