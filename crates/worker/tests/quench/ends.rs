// SPDX-License-Identifier: Apache-2.0
//! The end of a question to the controller: without an answer in time, without a controller, or after a lost
//! packet-in.

use crate::lab::{BURST, LATE_NS, LIMITS, Lab, MISS, TIMEOUT_NS, number, packet, quench};
use crate::one_slot;
use flow::{Nanos, PortNo};
use model::ModelLimits;
use openflow::error;
use port_cache::{MissFigures, MissLimits};
use worker::WorkerSetConfig;

#[test]
fn without_an_answer_in_time_each_packet_asks_and_the_buffer_is_unknown() {
    let mut lab = Lab::usual();
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    let late = lab.packet_ins()[0].buffer_id;
    lab.now += TIMEOUT_NS + LATE_NS;
    lab.turns();
    let later = lab.packet_ins();
    assert_eq!(later.iter().map(|packet_in| packet_in.buffer_id.is_some()).collect::<Vec<_>>(), [true; 2]);
    let MissFigures { unanswered, unquenched, asked, .. } = lab.figures();
    assert_eq!((lab.totals().held, unanswered, unquenched, asked), (0, 1, 2, 1));
    lab.packet_out(late, &[], PortNo(3));
    lab.add("dl_dst=02:00:00:00:00:03,actions=output:3", late);
    lab.turns();
    assert_eq!((lab.packet_ins(), lab.sent(3)), (vec![], vec![]));
    assert_eq!(lab.errors, [error::BUFFER_UNKNOWN, error::BUFFER_UNKNOWN]);
    // The next packet of the flow is quenched again.
    (3..6).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    let next = lab.packet_ins();
    assert_eq!((next.len(), lab.totals().held), (1, 2));
    lab.packet_out(later[0].buffer_id, &[], PortNo(3));
    lab.add("dl_dst=02:00:00:00:00:03,actions=output:3", next[0].buffer_id);
    lab.turns();
    assert_eq!((lab.sent(3), lab.totals().held), (vec![1, 3, 4, 5], 0));
    // A buffer is used once.
    lab.packet_out(later[0].buffer_id, &[], PortNo(3));
    lab.packet_ins();
    assert_eq!(lab.errors.len(), 3);
}

/// If the controller answers without a rule, or not at all, the waiting packets do not wait for one question
/// each.
#[test]
fn a_packet_waits_for_a_limited_time() {
    for answers in [false, true] {
        let mut lab = Lab::usual();
        let count = 1 + u32::from(LIMITS.queue);
        (0..count).for_each(|number| lab.push(1, &packet(1, 3, number)));
        lab.turns();
        let (begin, mut packet_ins) = (lab.now, lab.packet_ins());
        assert_eq!((packet_ins.len(), lab.totals().held), (1, LIMITS.queue.into()));
        let mut reported = 1;
        while lab.totals().held > 0 {
            // The controller answers after 0.3 s without a rule, or not at all.
            lab.now += Nanos(300_000_000);
            for packet_in in packet_ins.into_iter().filter(|_| answers) {
                lab.packet_out(packet_in.buffer_id, &[], PortNo(2));
            }
            lab.turns();
            packet_ins = lab.packet_ins();
            reported += packet_ins.len();
            assert!(lab.now < begin + 2 * (TIMEOUT_NS + LATE_NS) + Nanos(300_000_000), "answers: {answers}");
        }
        let MissFigures { asked, unquenched, .. } = lab.figures();
        assert_eq!((asked, unquenched), if answers { (4, 253) } else { (1, 256) });
        assert_eq!(reported, count as usize, "each packet is sent to the controller once");
    }
}

#[test]
fn a_question_ends_although_operations_always_wait() {
    let mut lab = Lab::usual();
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    assert_eq!((lab.packet_ins().len(), lab.totals().held), (1, 2));
    lab.now += TIMEOUT_NS + LATE_NS;
    // More rules come than the worker applies.
    for round in 0..40u32 {
        for rule in 0..30 {
            lab.flow(&format!("dl_dst=02:00:00:01:{round:02x}:{rule:02x},actions=output:2"));
        }
        lab.turn();
    }
    let last = lab.model.barrier();
    assert!(!lab.model.is_applied(last), "operations wait");
    assert_eq!((lab.totals().held, lab.figures().unanswered), (0, 1));
}

/// The ring to the worker has space for 1,024 operations. The answer waits behind more of them.
#[test]
fn a_question_does_not_end_before_an_answer_that_found_no_space_in_the_ring() {
    let mut lab = Lab::usual();
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    let buffer_id = lab.packet_ins()[0].buffer_id;
    for rule in 0..1_100u32 {
        lab.flow(&format!("dl_dst=02:00:00:01:{:02x}:{:02x},actions=output:2", rule / 256, rule % 256));
    }
    lab.packet_out(buffer_id, &[], PortNo(3));
    lab.now += TIMEOUT_NS * 2;
    // The worker empties the ring. The control thread does not fill it again.
    lab.turns();
    assert_eq!((lab.sent(3), lab.totals().held), (vec![], 2));
    assert_eq!(lab.figures().unanswered, 0);
    lab.packet_ins();
    lab.turns();
    assert_eq!((lab.sent(3), lab.figures().unanswered), (vec![0], 0));
}

#[test]
fn a_question_without_waiting_packets_ends_in_time() {
    let mut lab = Lab::usual();
    lab.push(1, &packet(1, 3, 0));
    lab.turns();
    assert_eq!((lab.packet_ins().len(), lab.pending()), (1, 1));
    lab.now += TIMEOUT_NS + LATE_NS;
    lab.turn();
    assert_eq!((lab.pending(), lab.figures().unanswered), (0, 1));
}

#[test]
fn a_question_does_not_end_before_packets_of_its_flow_have_left_the_backlog() {
    let low_latency = "low_latency,dl_dst=02:00:00:00:00:77,actions=output:2";
    let fields = "dl_dst=02:00:00:00:00:02,udp,tp_dst=9,actions=output:2";
    let mut lab = Lab::new(&one_slot(0), &[low_latency, fields, "priority=0,actions=controller:200"]);
    // As in `return_to_queue`, but packets 5 to 19 are still in the backlog when the time is over.
    lab.push(1, &packet(1, 4, 0));
    lab.turns();
    (0..20).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turn();
    assert_eq!(lab.packet_ins().len(), 2);
    lab.now += Nanos(2 * TIMEOUT_NS.0);
    (0..5).for_each(|_| lab.turn());
    assert!((1..18).contains(&lab.figures().returned), "{:?}", lab.figures());
    let packet_ins = lab.packet_ins();
    assert_eq!(packet_ins.iter().map(|packet_in| number(&packet_in.data)).collect::<Vec<_>>(), [1]);
    lab.now += Nanos(2 * TIMEOUT_NS.0);
    // Until then, packet 2 does not wait alone.
    for _ in 0..1_000 {
        if lab.figures().returned == 18 {
            break;
        }
        assert_eq!((lab.packet_ins().len(), lab.figures().unanswered), (0, 1));
        lab.turn();
    }
    assert_eq!(lab.figures().returned, 18);
    lab.turns();
    let sent: Vec<u32> = lab.packet_ins().iter().map(|packet_in| number(&packet_in.data)).collect();
    assert_eq!((sent, lab.totals().held), ((2..20).collect(), 0));
}

#[test]
fn nobody_is_asked_while_no_controller_is_connected() {
    let mut lab = Lab::usual();
    (0..5).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    assert_eq!((lab.packet_ins().len(), lab.totals().held), (1, 4));
    // The end of the connection ends the question.
    lab.disconnect();
    lab.turns();
    assert_eq!((lab.totals().held, lab.totals().consumed, lab.figures().unanswered), (0, 5, 0));
    let version = lab.model.barrier();
    for flow in 0..300 {
        (0..2).for_each(|number| lab.push(1, &packet(flow, 3, number)));
        lab.turn();
        lab.packet_ins();
    }
    let MissFigures { asked, .. } = lab.figures();
    assert_eq!((lab.totals().held, asked, lab.totals().consumed), (0, 1, 605));
    assert_eq!(lab.model.barrier(), version, "lost packet-ins cause no operation");
}

#[test]
fn packets_do_not_wait_for_the_answer_to_a_lost_packet_in() {
    // The model's queue of messages is full.
    let limits = ModelLimits { async_messages: 2, ..ModelLimits::default() };
    let mut lab = Lab::with_limits(&quench(0), limits, &["udp,tp_dst=9,actions=output:2", MISS]);
    let version = lab.model.barrier();
    (1..6).for_each(|flow| (0..2).for_each(|number| lab.push(1, &packet(flow, 3, number))));
    for _ in 0..10 {
        lab.turn();
        while lab.model.poll(lab.now) {}
    }
    assert_eq!((lab.totals().held, lab.packet_ins().len()), (2, 2));
    assert_eq!(lab.model.barrier().0, version.0 + 2, "one operation for all packet-ins of a poll");
    assert_eq!(lab.figures().unanswered, 0);
}

#[test]
fn packets_do_not_wait_for_a_packet_in_that_a_congested_connection_has_lost() {
    let all = "dl_dst=02:00:00:00:00:04,actions=controller:65535";
    let mut lab = Lab::new(&quench(0), &["dl_dst=02:00:00:00:00:02,actions=output:2", all, MISS]);
    // Packet-ins that are not quenched fill the connection.
    for _ in 0..10_000 {
        if lab.lost() > 0 {
            break;
        }
        (0..BURST as u32).for_each(|number| lab.push(1, &packet(1, 4, number)));
        lab.turn();
        lab.report();
    }
    assert!(lab.lost() > 0, "no packet-in was lost");
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turns();
    assert_eq!((lab.figures().asked, lab.totals().held), (1, 2));
    for _ in 0..5 {
        lab.report();
        lab.turns();
    }
    assert_eq!((lab.figures().asked, lab.totals().held, lab.figures().unanswered), (3, 0, 0));
}

/// Lost packet-ins must not cause more operations than the workers apply.
#[test]
fn the_operations_for_lost_packet_ins_are_limited() {
    let limits = ModelLimits { async_messages: 0, ..ModelLimits::default() };
    let mut config = WorkerSetConfig { small_frames: 4_096, ..quench(0) };
    config.port_cache.iter_mut().for_each(|cache| cache.limits.entries = MissLimits::ENTRIES_MAX);
    let mut lab = Lab::with_limits(&config, limits, &["udp,tp_dst=9,actions=output:2", MISS]);
    let version = lab.model.barrier();
    for flow in 100..1_100 {
        (0..2).for_each(|number| lab.push(1, &packet(flow, 3, number)));
    }
    (0..80).for_each(|_| lab.turn());
    assert!(lab.figures().asked > 200, "{:?}", lab.figures());
    while lab.model.poll(lab.now) {}
    let operations = lab.model.barrier().0 - version.0;
    assert!((1..10).contains(&operations), "{operations} operations for {:?}", lab.figures());
    for _ in 0..100 {
        lab.turn();
        while lab.model.poll(lab.now) {}
    }
    assert_eq!((lab.totals().held, lab.figures().unanswered), (0, 0));
}

#[test]
fn a_packet_in_that_comes_late_has_the_whole_packet() {
    let mut lab = Lab::usual();
    lab.push(1, &packet(1, 3, 0));
    lab.turns();
    lab.now += TIMEOUT_NS / 2;
    let packet_ins = lab.packet_ins();
    assert_eq!((packet_ins[0].buffer_id, packet_ins[0].data.len()), (None, packet(1, 3, 0).len()));
    lab.packet_out(None, &packet_ins[0].data, PortNo(3));
    lab.turns();
    assert_eq!((lab.sent(3), lab.errors.len()), (vec![0], 0));
}
