// SPDX-License-Identifier: Apache-2.0
//! Quenching of packet-ins with complete workers and a controller on an OpenFlow channel, in virtual time:
//! one packet-in per flow in flight, later packets of the flow wait and leave in order, and nobody else
//! waits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot be set up has failed")]

mod ends;
mod lab;
mod random;
mod returned;
mod rules;
mod scarce;
mod searched;

use actions::{PacketInRate, PacketInRates};
use flow::{Action, DropReason, GroupId, Match, Nanos, PortNo, TableId};
use frame::Frame;
use lab::{BURST, LIMITS, Lab, MISS, TIMEOUT_NS, number, packet, quench};
use openflow::Message;
use openflow::packet::{PacketInCode, PacketOutMessage};
use pipeline::LaneLimits;
use port_cache::MissFigures;
use worker::{Quanta, WorkerSetConfig};

#[test]
fn a_million_packets_of_a_new_flow_cause_one_packet_in_and_hold_up_nobody() {
    for lanes in [LaneLimits::NONE, LaneLimits::USUAL] {
        send_a_million(lanes);
    }
}

/// Sends 10^6 packets of a known flow and of a new flow before the controller answers.
fn send_a_million(lanes: LaneLimits) {
    let low_latency = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
    let known = "dl_dst=02:00:00:00:00:02,actions=output:2";
    let quanta = Quanta { small: 32, large: 32, quiet_ns: Nanos(0) };
    let mut lab = Lab::new(&WorkerSetConfig { lanes, quanta, ..quench(0) }, &[known, low_latency, MISS]);
    let mut packet_ins = Vec::new();
    for burst in 0..1_000_000 / BURST as u32 {
        for at in 0..BURST as u32 {
            // Every 32nd packet belongs to a known flow.
            lab.push(1, &packet(1, if at == 7 { 2 } else { 3 }, burst * BURST as u32 + at));
        }
        lab.turn();
        if lanes != LaneLimits::NONE {
            // A backlog is processed after a burst.
            lab.turn();
        }
        packet_ins.extend(lab.packet_ins());
        let sent = (lab.sent(2).len(), lab.sent(3).len());
        assert_eq!(sent, (1, 0), "known packets do not wait: burst {burst}, {lanes:?}");
    }
    let [packet_in] = &packet_ins[..] else { panic!("{} packet-ins", packet_ins.len()) };
    assert_eq!((packet_in.reason, packet_in.data.len()), (PacketInCode::NoMatch, 64));
    let figures = lab.figures();
    assert_eq!((figures.asked, figures.searched, figures.uncached), (1, 2, 0));
    assert_eq!(figures.arrived(), 1_000_000, "each packet counts once");
    assert_eq!(figures.merged + figures.returned, LIMITS.queue.into());
    assert_eq!((lab.totals().held, lab.totals().consumed), (LIMITS.queue.into(), 1));
    assert_eq!(lab.dropped(DropReason::MissQueueFull), figures.dropped);
    lab.add("dl_dst=02:00:00:00:00:03,actions=output:3", packet_in.buffer_id);
    lab.turns();
    let expected: Vec<u32> = (0..).filter(|n| n % 32 != 7).take(1 + usize::from(LIMITS.queue)).collect();
    assert_eq!(lab.sent(3), expected, "what fits the queue leaves in order, after the first packet");
    lab.push(1, &packet(1, 3, 9));
    lab.turn();
    assert_eq!((lab.sent(3), lab.totals().held, lab.packet_ins()), (vec![9], 0, vec![]));
    assert_eq!(lab.errors, []);
}

#[test]
fn a_packet_out_without_a_rule_asks_again_for_each_waiting_packet() {
    let mut lab = Lab::usual();
    (0..5).for_each(|number| lab.push(1, &packet(1, 3, number)));
    for number in 0..5 {
        lab.turns();
        let packet_ins = lab.packet_ins();
        assert_eq!(packet_ins.len(), 1, "one packet-in in flight");
        assert_eq!(lab.totals().held, 4 - number);
        lab.packet_out(packet_ins[0].buffer_id, &[], PortNo(2));
    }
    lab.turns();
    assert_eq!((lab.sent(2), lab.sent(3), lab.packet_ins()), ((0..5).collect(), vec![], vec![]));
    assert_eq!(lab.figures().asked, 5);
}

#[test]
fn a_controller_that_asks_for_whole_packets_is_recognised_by_the_packet_that_it_returns() {
    let rules = ["dl_dst=02:00:00:00:00:02,actions=output:2", "priority=0,actions=controller:65535"];
    let mut lab = Lab::new(&quench(0), &rules);
    (0..5).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    let packet_ins = lab.packet_ins();
    assert_eq!((packet_ins.len(), packet_ins[0].buffer_id), (1, None));
    lab.add("dl_dst=02:00:00:00:00:03,actions=output:3", None);
    lab.turns();
    assert_eq!((lab.sent(3), lab.totals().held), (vec![], 4), "the first packet leaves first");
    lab.packet_out(None, &packet_ins[0].data, PortNo(3));
    lab.turns();
    assert_eq!((lab.sent(3), lab.packet_ins()), ((0..5).collect(), vec![]));
    // A rule without a packet-out releases the packets soon.
    (0..3).for_each(|number| lab.push(1, &packet(1, 4, number)));
    lab.turns();
    assert_eq!(lab.packet_ins().len(), 1);
    lab.add("dl_dst=02:00:00:00:00:04,actions=output:3", None);
    lab.turn();
    lab.now += Nanos(20_000_000);
    lab.turns();
    assert_eq!((lab.sent(3), lab.packet_ins()), (vec![1, 2], vec![]));
    // A rule for another flow does not.
    (0..3).for_each(|number| lab.push(1, &packet(1, 5, number)));
    lab.turns();
    lab.add("dl_dst=02:00:00:00:00:06,actions=output:3", None);
    lab.turn();
    lab.now += Nanos(20_000_000);
    lab.turns();
    assert_eq!((lab.packet_ins().len(), lab.totals().held), (1, 2));
}

#[test]
fn only_table_miss_entries_of_the_marked_tables_are_quenched() {
    let rules =
        ["dl_dst=02:00:00:00:00:04,actions=controller:64", "dl_dst=02:00:00:00:00:05,actions=goto_table:1"];
    let miss = "table=1,priority=0,actions=controller:64";
    let mut lab = Lab::new(&quench(0), &[rules[0], rules[1], MISS, miss]);
    for host in 3..6 {
        (0..20).for_each(|number| lab.push(1, &packet(1, host, number)));
    }
    lab.turns();
    let packet_ins = lab.packet_ins();
    let of = |host| packet_ins.iter().filter(|packet_in| packet_in.data[5] == host).count();
    assert_eq!([3, 4, 5].map(of), [1, 20, 20]);
}

#[test]
fn packets_with_other_outputs_are_not_quenched() {
    let miss = "table=1,priority=0,actions=controller:64";
    for (rule, packet_ins, outputs) in [
        ("dl_dst=02:00:00:00:00:03,actions=controller:64,goto_table:1", 40, 0),
        ("dl_dst=02:00:00:00:00:03,actions=output:2,goto_table:1", 20, 20),
    ] {
        for lanes in [LaneLimits::NONE, LaneLimits::USUAL] {
            let mut lab = Lab::new(&WorkerSetConfig { lanes, ..quench(1) }, &[rule, miss]);
            for number in 0..20 {
                lab.push(1, &packet(1, 3, number));
                if number > 10 {
                    lab.turn();
                }
            }
            lab.turns();
            assert_eq!((lab.packet_ins().len(), lab.sent(2).len()), (packet_ins, outputs), "{rule}");
            assert_eq!((lab.totals().held, lab.figures().asked), (0, 0));
        }
    }
}

#[test]
fn many_new_flows_have_one_packet_in_each_and_keep_their_order() {
    let lanes = LaneLimits { normal: 1_000, unknown: 1_000, hold: 100 };
    for lanes in [LaneLimits::NONE, lanes] {
        let config = WorkerSetConfig { lanes, ..quench(0) };
        let low_latency = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
        let rules = ["dl_dst=02:00:00:00:00:02,udp,tp_dst=77,actions=output:2", low_latency, MISS];
        let mut lab = Lab::new(&config, &rules);
        // Ten flows with twenty packets each, in turns.
        for number in 0..200u32 {
            lab.push(1, &packet((number % 10) as u16, 3, number));
            if number % 7 == 0 {
                lab.turn();
            }
        }
        lab.turns();
        let packet_ins = lab.packet_ins();
        assert_eq!(packet_ins.len(), 10, "{lanes:?}");
        // The rule examines another field, so the key plan changes.
        for packet_in in &packet_ins {
            let flow = u16::from_be_bytes([packet_in.data[36], packet_in.data[37]]);
            let rule = format!("dl_dst=02:00:00:00:00:03,udp,tp_dst={flow},nw_tos=0,actions=output:3");
            lab.add(&rule, packet_in.buffer_id);
            lab.turns();
        }
        lab.turns();
        lab.now += TIMEOUT_NS;
        lab.turns();
        let sent = lab.sent(3);
        for flow in 0..10 {
            let of_flow: Vec<u32> = sent.iter().copied().filter(|number| number % 10 == flow).collect();
            let expected: Vec<u32> = (0..200).filter(|number| number % 10 == flow).collect();
            assert_eq!(of_flow, expected, "{lanes:?} flow {flow}");
        }
        assert_eq!(lab.totals().held, 0);
    }
}

#[test]
fn packets_that_earlier_tables_change_wait_unchanged() {
    let change = "dl_dst=02:00:00:00:00:03,actions=set_field:9->ip_dscp,goto_table:1";
    let mut lab = Lab::new(
        &quench(1),
        &[
            change,
            "table=1,dl_dst=02:00:00:00:00:02,actions=output:2",
            "table=1,priority=0,actions=controller:64",
        ],
    );
    (0..3).for_each(|number| {
        lab.push(1, &packet(1, 3, number));
        lab.turn();
    });
    let packet_ins = lab.packet_ins();
    assert_eq!((packet_ins.len(), packet_ins[0].table, packet_ins[0].data[15]), (1, TableId(1), 9 << 2));
    lab.add("table=1,dl_dst=02:00:00:00:00:03,actions=output:3", packet_ins[0].buffer_id);
    lab.turns();
    assert_eq!((lab.sent(3), lab.dropped(DropReason::PacketInQuenched)), ((0..3).collect(), 0));
}

#[test]
fn packets_of_one_burst_that_earlier_tables_change_wait_unchanged() {
    let rules = [
        "dl_dst=02:00:00:00:00:03,actions=set_field:9->ip_dscp,goto_table:1",
        "table=1,dl_dst=02:00:00:00:00:02,actions=output:2",
        "table=1,priority=0,actions=controller:64",
    ];
    let mut lab = Lab::new(&quench(1), &rules);
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    let packet_ins = lab.packet_ins();
    assert_eq!((packet_ins.len(), lab.totals().held), (1, 2));
    lab.add("table=1,dl_dst=02:00:00:00:00:03,actions=output:3", packet_ins[0].buffer_id);
    lab.turns();
    assert_eq!((lab.sent(3), lab.dropped(DropReason::PacketInQuenched)), ((0..3).collect(), 0));
}

/// A port cache with one slot, and a backlog.
fn one_slot(table: u8) -> WorkerSetConfig {
    let lanes = LaneLimits { normal: 1_000, unknown: 1_000, hold: 100 };
    let mut config = WorkerSetConfig { lanes, ..quench(table) };
    config.port_cache.iter_mut().for_each(|cache| cache.limits.entries = 1);
    config
}

/// Lets packets 2 to 19 of flow `flow` to host 3 return to the queue from the backlog. Packet 0 is sent to
/// the controller while the only slot is in use by a packet to host 4. Packet 1 is sent when the time of the
/// latter is over. Returns the buffer of packet 1.
fn return_to_queue(lab: &mut Lab, flow: u16) -> Option<u32> {
    let before = lab.figures();
    lab.push(1, &packet(flow, 4, 0));
    lab.turns();
    assert_eq!(lab.packet_ins().len(), 1);
    (0..20).for_each(|number| lab.push(1, &packet(flow, 3, number)));
    lab.turn();
    assert_eq!(lab.packet_ins().len(), 1);
    lab.now += Nanos(2 * TIMEOUT_NS.0);
    lab.turns();
    let MissFigures { uncached, unquenched, asked, returned, .. } = lab.figures();
    let counts = (uncached - before.uncached, unquenched - before.unquenched);
    assert_eq!((counts, asked - before.asked, returned - before.returned), ((20, 1), 2, 18));
    let packet_ins = lab.packet_ins();
    assert_eq!((packet_ins.len(), number(&packet_ins[0].data)), (1, 1));
    packet_ins[0].buffer_id
}

#[test]
fn packets_that_return_to_the_queue_count_once() {
    let goto = "cookie=7,dl_dst=02:00:00:00:00:03,actions=goto_table:1";
    let other = "dl_dst=02:00:00:00:00:04,actions=goto_table:1";
    let low_latency = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
    let miss = "table=1,priority=0,actions=controller:200";
    let mut lab = Lab::new(&one_slot(1), &[goto, other, low_latency, miss]);
    let buffer_id = return_to_queue(&mut lab, 1);
    lab.add("table=1,dl_dst=02:00:00:00:00:03,actions=output:3", buffer_id);
    lab.turns();
    lab.now += TIMEOUT_NS;
    lab.turns();
    assert_eq!(lab.sent(3), (1..20).collect::<Vec<_>>());
    // Packet 1 passes the tables once more for the flow-mod. The packet to host 4 passes table 1 only.
    let bytes = packet(1, 3, 0).len() as u64;
    assert_eq!(lab.entry_counts(7), (21, 21 * bytes));
    assert_eq!(lab.table_counts(1), (22, 22));
}

#[test]
fn followers_that_wait_in_front_of_a_backlog_count_once() {
    for lanes in [LaneLimits::NONE, LaneLimits { normal: 1_000, unknown: 1_000, hold: 100 }] {
        let goto = "cookie=7,dl_dst=02:00:00:00:00:03,actions=goto_table:1";
        let low_latency = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
        let miss = "table=1,priority=0,actions=controller:64";
        let mut lab = Lab::new(&WorkerSetConfig { lanes, ..quench(1) }, &[goto, low_latency, miss]);
        let count = 20;
        (0..count).for_each(|number| lab.push(1, &packet(1, 3, number)));
        lab.turns();
        let MissFigures { searched, merged, asked, returned, .. } = lab.figures();
        assert_eq!((searched, merged, asked, returned), (1, 19, 1, 0), "{lanes:?}");
        let buffer_id = lab.packet_ins()[0].buffer_id;
        lab.add("table=1,dl_dst=02:00:00:00:00:03,actions=output:3", buffer_id);
        lab.turns();
        assert_eq!(lab.sent(3), (0..count).collect::<Vec<_>>(), "{lanes:?}");
        lab.now += TIMEOUT_NS;
        lab.turns();
        // The first packet passes the tables once more for the flow-mod.
        let bytes = packet(1, 3, 0).len() as u64;
        assert_eq!(lab.entry_counts(7), (u64::from(count) + 1, (u64::from(count) + 1) * bytes), "{lanes:?}");
        assert_eq!(lab.table_counts(1), (u64::from(count) + 1, u64::from(count) + 1), "{lanes:?}");
    }
}

#[test]
fn packets_that_return_to_the_queue_are_traced_once() {
    let low_latency = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
    let fields = "dl_dst=02:00:00:00:00:02,udp,tp_dst=9,actions=output:2";
    let miss = "priority=0,actions=controller:200";
    let mut lab = Lab::new(&one_slot(0), &[low_latency, fields, miss]);
    assert!(lab.model.plane_mut().record(&Match::any(), u64::MAX));
    let mut records = 0;
    for flow in 0..10 {
        let buffer_id = return_to_queue(&mut lab, flow);
        lab.add(&format!("dl_dst=02:00:00:00:00:03,udp,tp_dst={flow},actions=output:3"), buffer_id);
        lab.turns();
        records += std::iter::from_fn(|| lab.model.plane_mut().next_record()).count();
    }
    assert_eq!((lab.sent(3).len(), records), (190, 210));
}

#[test]
fn a_refused_answer_does_not_use_up_the_buffer() {
    let mut lab = Lab::usual();
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    let buffer_id = lab.packet_ins()[0].buffer_id;
    // Neither the group nor the ingress port exists.
    lab.send(&Message::PacketOut(PacketOutMessage {
        buffer_id,
        in_port: PortNo(1),
        actions: vec![Action::Group(GroupId(9))],
        data: Vec::new(),
    }));
    lab.send(&Message::PacketOut(PacketOutMessage {
        buffer_id,
        in_port: PortNo(77),
        actions: vec![Action::output(PortNo(3))],
        data: Vec::new(),
    }));
    lab.add("dl_dst=02:00:00:00:00:03,actions=group:9", buffer_id);
    lab.turns();
    lab.packet_ins();
    assert_eq!((lab.errors.len(), lab.totals().held), (3, 2));
    lab.add("dl_dst=02:00:00:00:00:03,actions=output:3", buffer_id);
    lab.turns();
    lab.packet_ins();
    assert_eq!((lab.sent(3), lab.errors.len()), ((0..3).collect(), 3));
}

#[test]
fn a_buffer_is_sent_once() {
    let mut lab = Lab::usual();
    lab.push(1, &packet(1, 3, 0));
    lab.turns();
    let buffer_id = lab.packet_ins()[0].buffer_id;
    (0..2).for_each(|_| lab.packet_out(buffer_id, &[], PortNo(3)));
    lab.turns();
    lab.packet_ins();
    assert_eq!((lab.sent(3), lab.errors.len()), (vec![0], 1));
}

#[test]
fn known_and_new_flows_do_not_wait_for_space_that_a_quenched_flow_uses() {
    let rules = ["udp,tp_dst=9,actions=output:2", MISS];
    let mut config = quench(0);
    if let Some(cache) = &mut config.port_cache {
        cache.limits.queue = 2;
    }
    let mut lab = Lab::new(&config, &rules);
    // Packets of the flow in its first burst are dropped as well if they have no space.
    (0..10).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    assert_eq!((lab.packet_ins().len(), lab.totals().held), (1, 2));
    assert_eq!((lab.dropped(DropReason::MissQueueFull), lab.figures().dropped), (7, 7));
    (0..10).for_each(|number| lab.push(1, &packet(9, 3, number)));
    lab.turns();
    assert_eq!((lab.sent(2), lab.figures().arrived()), ((0..10).collect(), 20));
}

/// Frames of the receive pool do not wait for the backlog or for the controller.
#[test]
fn packets_beyond_the_queue_do_not_wait_with_lanes() {
    let lanes = LaneLimits { normal: 1_000, unknown: 1_000, hold: 100 };
    let mut config = WorkerSetConfig { lanes, ..quench(0) };
    config.port_cache.iter_mut().for_each(|cache| cache.limits.queue = 4);
    let low_latency = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
    let mut lab = Lab::new(&config, &["dl_dst=02:00:00:00:00:02,actions=output:2", low_latency, MISS]);
    (0..BURST as u32).for_each(|number| lab.push(1, &packet(1, 3, number)));
    for _ in 0..200 {
        lab.turn();
        let followers: u64 = lab.model.plane_mut().port_caches().map(|(.., usage)| usage.followers).sum();
        assert!(followers <= 4, "{followers} packets wait");
    }
    let packet_ins = lab.packet_ins();
    assert_eq!((packet_ins.len(), lab.totals().held), (1, 4));
    assert_eq!(lab.dropped(DropReason::MissQueueFull), BURST as u64 - 5);
    lab.add("dl_dst=02:00:00:00:00:03,actions=output:3", packet_ins[0].buffer_id);
    lab.turns();
    assert_eq!((lab.sent(3), lab.totals().held), ((0..5).collect(), 0));
}

#[test]
fn each_worker_releases_its_own_packets() {
    let config = WorkerSetConfig { workers: 2, ..quench(0) };
    let mut lab = Lab::new(&config, &["dl_dst=02:00:00:00:00:02,actions=output:2", MISS]);
    for number in 0..5 {
        assert!(lab.handles[0].push_frame(1, &Frame::from_bytes(&packet(1, 3, number))));
    }
    lab.turns();
    let buffer_id = lab.packet_ins()[0].buffer_id;
    lab.add("dl_dst=02:00:00:00:00:03,actions=output:3", buffer_id);
    lab.turns();
    assert_eq!((lab.sent(3), lab.totals().held), ((0..5).collect(), 0));
    // The second worker also recognises a packet that the first one sends.
    for number in 0..5 {
        assert!(lab.handles[0].push_frame(1, &Frame::from_bytes(&packet(1, 4, number))));
    }
    lab.turns();
    assert_eq!(lab.packet_ins().len(), 1);
    lab.packet_out(None, &packet(1, 4, 0), PortNo(3));
    lab.turns();
    assert_eq!((lab.sent(3), lab.packet_ins().len()), (vec![0], 1));
}

#[test]
fn a_port_without_space_sends_further_packet_ins_and_keeps_known_flows() {
    let mut lab = Lab::new(
        &quench(0),
        &[
            "dl_dst=02:00:00:00:00:02,udp,tp_dst=9,actions=output:2",
            "priority=7,dl_dst=02:00:00:00:00:02,actions=output:2",
            MISS,
        ],
    );
    let flows = LIMITS.entries + 20;
    for flow in 100..100 + flows {
        (0..2).for_each(|number| lab.push(1, &packet(flow, 3, number)));
        lab.turn();
    }
    let figures = lab.figures();
    assert_eq!((figures.asked, figures.unquenched), (LIMITS.entries.into(), 40));
    assert_eq!(lab.packet_ins().len(), usize::from(LIMITS.entries) + 40);
    // Without an answer, nothing is held for ever.
    lab.now += Nanos(2 * TIMEOUT_NS.0);
    lab.turns();
    lab.now += Nanos(2 * TIMEOUT_NS.0);
    lab.turns();
    assert_eq!(lab.totals().held, 0);
}

#[test]
fn packet_ins_are_limited_by_reason() {
    let no_match = PacketInRate { rate: 100, burst: 5 };
    let rates = PacketInRates { no_match, ..PacketInRates::default() };
    let rules =
        ["dl_dst=02:00:00:00:00:04,actions=controller:64", "udp,tp_dst=7,priority=1,actions=drop", MISS];
    let config = WorkerSetConfig { port_cache: None, packet_in_rates: rates, ..quench(0) };
    let mut lab = Lab::new(&config, &rules);
    for number in 0..50 {
        lab.push(1, &packet(1, 3, number));
        lab.push(1, &packet(1, 4, number));
    }
    lab.turns();
    let packet_ins = lab.packet_ins();
    let of = |reason| packet_ins.iter().filter(|packet_in| packet_in.reason == reason).count();
    assert_eq!((of(PacketInCode::NoMatch), of(PacketInCode::Action)), (5, 50));
    assert_eq!(lab.dropped(DropReason::PacketInRateNoMatch), 45);
    // With quenching, a packet-in above the limit asks nothing, so later packets do not wait for an answer.
    let config = WorkerSetConfig { packet_in_rates: rates, ..quench(0) };
    let mut lab = Lab::new(&config, &rules);
    for flow in 100..120 {
        lab.push(1, &packet(flow, 3, 0));
        lab.turn();
    }
    assert_eq!((lab.packet_ins().len(), lab.totals().held), (5, 0));
    (100..120).for_each(|flow| lab.push(1, &packet(flow, 3, 1)));
    lab.turns();
    assert_eq!((lab.packet_ins().len(), lab.totals().held), (0, 5));
}
