// SPDX-License-Identifier: Apache-2.0
//! The port cache together with two lanes: released packets join the backlog, and nothing that the cache has
//! accepted is dropped there.

use crate::lab::{BURST, LIMITS, Lab, SERVICE_NS, packet, slow};
use fastrand::Rng;
use flow::{DropReason, Nanos};
use pipeline::LaneLimits;
use port_cache::{MissFigures, MissLimits, PortCacheConfig, WhenFull};
use worker::Quanta;

/// Number of the host whose packets are low-latency and leave through port 2.
const FAST: u8 = 0x77;

#[test]
fn a_million_packets_of_an_unknown_flow_hold_up_no_low_latency_flow() {
    let lab = Lab::with_quanta(slow(), LaneLimits::USUAL, Quanta::DEFAULT);
    crate::flood(lab.warmed(FAST), FAST);
}

#[test]
fn released_packets_that_exceed_their_share_of_the_backlog_are_not_dropped() {
    // Followers are known normal packets, because the first packet has made a record.
    for normal in [400, LaneLimits::USUAL.normal] {
        let limits = MissLimits { queue: 1_000, ..LIMITS };
        let lanes = LaneLimits { normal, ..LaneLimits::USUAL };
        let mut lab = Lab::new(PortCacheConfig { limits, ..slow() }, lanes);
        (0..1_001).for_each(|number| lab.push(1, &packet(1, 3, number)));
        (0..40).for_each(|_| lab.turn());
        assert_eq!(lab.totals().held, 1_001);
        lab.drain();
        assert_eq!(lab.sent(3), (0..1_001).collect::<Vec<_>>());
    }
}

#[test]
fn released_packets_wait_for_a_backlog_that_is_smaller_than_a_burst() {
    let lanes = LaneLimits { normal: 5, unknown: 3, hold: 4 };
    let mut lab = Lab::new(slow(), lanes);
    (0..200).for_each(|number| lab.push(1, &packet(1, 3, number)));
    (0..20).for_each(|_| lab.turn());
    lab.drain();
    assert_eq!(lab.sent(3), (0..200).collect::<Vec<_>>());
}

#[test]
fn released_packets_are_not_dropped_while_operations_wait() {
    let mut lab = Lab::new(slow(), LaneLimits::USUAL);
    (0..257).for_each(|number| lab.push(1, &packet(1, 3, number)));
    (0..20).for_each(|_| lab.turn());
    assert_eq!(lab.totals().held, 257);
    lab.now += SERVICE_NS;
    for host in 0..60 {
        lab.flow(&format!("priority=9,dl_dst=02:00:00:00:01:{host:02x},actions=output:1"));
    }
    let barrier = lab.model.barrier();
    (0..600).for_each(|_| lab.turn());
    assert!(lab.model.is_applied(barrier));
    assert_eq!((lab.totals().held, lab.sent(3)), (0, (0..257).collect()));
}

#[test]
fn a_flow_whose_path_cannot_be_recorded_waits_once() {
    for lanes in [LaneLimits::NONE, LaneLimits::USUAL] {
        let mut lab = Lab::new(slow(), lanes);
        // Table 1 examines a header field that table 0 has changed.
        lab.flow("table=0,priority=60000,udp,dl_dst=02:00:00:00:00:05,actions=push_vlan:0x8100,goto_table:1");
        lab.flow("table=1,priority=5,actions=output:3");
        lab.turn();
        (0..10).for_each(|number| lab.push(1, &packet(1, 5, number)));
        lab.turn();
        lab.drain();
        assert_eq!(lab.sent(3), (0..10).collect::<Vec<_>>());
        for number in 10..20 {
            lab.push(1, &packet(1, 5, number));
            lab.turn();
        }
        let MissFigures { searched, merged, passed, .. } = lab.figures();
        assert_eq!((searched, merged, passed, lab.sent(3)), (1, 9, 10, (10..20).collect()), "{lanes:?}");
    }
}

#[test]
fn a_flow_is_searched_once_although_its_first_packet_waits_in_the_backlog() {
    // Before the next packets of the flow arrive, its first packet is still searched, or in the backlog.
    for (when_full, turns) in [(WhenFull::Drop, 1), (WhenFull::Forward, 1), (WhenFull::Drop, 20)] {
        let case = (when_full, turns);
        let limits = MissLimits { entries: 2, queue: 200, when_full, ..LIMITS };
        let mut lab = Lab::new(PortCacheConfig { limits, ..slow() }, LaneLimits::USUAL);
        lab.push(1, &packet(1, 3, 0));
        lab.turn();
        fill_backlog(&mut lab);
        (0..turns).for_each(|_| lab.turn());
        for number in 1..80 {
            lab.push(1, &packet(1, 3, number));
            lab.turn();
        }
        let MissFigures { searched, merged, .. } = lab.figures();
        assert_eq!((searched, merged), (2, 79), "{case:?}");
        lab.drain();
        let flow: Vec<u32> = lab.sent(3);
        assert_eq!((flow, lab.figures().searched), ((0..80).collect(), 2), "{case:?}");
        lab.push(1, &packet(1, 3, 80));
        lab.turn();
        assert_eq!((lab.sent(3), lab.figures().searched), (vec![80], 2), "the flow has a record");
        assert!(lab.pending() == 0, "no slot is left behind");
    }
}

/// Fills the backlog with packets of port 1, which must have one of two slots, until ten poll iterations
/// before its search ends.
fn fill_backlog(lab: &mut Lab) {
    lab.push(1, &packet(1, 1, 1_000));
    lab.turn();
    lab.now += SERVICE_NS - Nanos(10_000);
    // Both slots are taken, so these packets join the backlog, which one packet leaves per quantum.
    (0..120).for_each(|number| lab.push(1, &packet(1, 8, 1_000 + number)));
}

#[test]
fn followers_of_a_packet_that_left_at_once_do_not_wait_for_the_backlog() {
    let limits = MissLimits { entries: 2, ..LIMITS };
    let mut lab = Lab::new(PortCacheConfig { limits, ..slow() }, LaneLimits::USUAL);
    // The packet of port 3 makes a LUT record, which the first packet of port 1 hits when it is released.
    lab.push(3, &packet(1, FAST, 1_000));
    lab.turn();
    lab.answer();
    (0..5).for_each(|number| lab.push(1, &packet(1, FAST, number)));
    lab.turn();
    fill_backlog(&mut lab);
    (0..20).for_each(|_| lab.turn());
    let flow: Vec<u32> = lab.sent(2).into_iter().filter(|number| *number < 1_000).collect();
    assert_eq!(flow, [0, 1, 2, 3, 4]);
    assert!(lab.totals().held > 80, "the backlog is not empty");
}

#[test]
fn a_slot_ends_although_its_first_packet_is_dropped() {
    // Port 2 is down, so the first packet makes no record that sends it.
    let mut lab = Lab::new(slow(), LaneLimits::USUAL);
    lab.flow("priority=60000,dl_dst=02:00:00:00:00:05,actions=drop");
    lab.turn();
    lab.push(1, &packet(1, 5, 0));
    lab.turn();
    assert_eq!(lab.pending(), 1);
    lab.drain();
    assert_eq!(lab.pending(), 0);
}

#[test]
fn short_bursts_of_many_flows_stay_in_order() {
    let mut rng = Rng::with_seed(22);
    for _ in 0..10 {
        let limits = MissLimits { entries: 8, negative_ns: Nanos(20_000), ..LIMITS };
        let service_ns = Nanos(rng.u64(500..5_000));
        let config = PortCacheConfig { limits, service_ns, ..PortCacheConfig::default() };
        let mut lab = Lab::with_quanta(config, LaneLimits::USUAL, Quanta::DEFAULT);
        lab.flow("priority=40000,dl_dst=02:00:00:00:00:02,udp,tp_dst=7,actions=output:2");
        let (mut pushed, mut left) = ([0; FLOWS], [0; FLOWS]);
        for step in 0..4_000 {
            for _ in 0..rng.usize(0..=8) {
                let flow = rng.usize(0..FLOWS);
                let host = if flow.is_multiple_of(4) { FAST } else { 2 };
                lab.push(1, &packet(100 + flow as u16, host, (flow * 65_536 + pushed[flow]) as u32));
                pushed[flow] += 1;
            }
            // All records become outdated, and some of them are different afterwards.
            if step % 500 == 250 {
                let low_latency = if step % 1_000 == 250 { "low_latency," } else { "" };
                lab.flow(&format!("{low_latency}dl_dst=02:00:00:00:00:77,actions=output:2"));
            }
            lab.turn();
            check_order(&mut lab, &mut left);
        }
        lab.drain();
        check_order(&mut lab, &mut left);
        assert_eq!(left, pushed, "nothing is dropped");
        let MissFigures { hits, merged, uncached, .. } = lab.figures();
        assert!(hits > 1_000 && merged > 10 && uncached > 5, "{:?}", lab.figures());
    }
}

/// Number of flows of [`short_bursts_of_many_flows_stay_in_order`].
const FLOWS: usize = 40;

/// Checks that the packets that port 2 has sent follow the `left` packets of each flow that left before.
fn check_order(lab: &mut Lab, left: &mut [usize; FLOWS]) {
    for number in lab.sent(2) {
        let (flow, sequence) = (number as usize / 65_536, number as usize % 65_536);
        assert_eq!(sequence, left[flow], "flow {flow}");
        left[flow] += 1;
    }
}

#[test]
fn quanta_are_small_after_low_latency_packets_were_released() {
    let quanta = Quanta { small: 1, large: BURST, quiet_ns: Nanos(50_000) };
    let limits = MissLimits { entries: 1, ..LIMITS };
    let mut lab =
        Lab::with_quanta(PortCacheConfig { limits, ..slow() }, LaneLimits::USUAL, quanta).warmed(FAST);
    // The record of port 3 is one of the port; the LUT record serves both flows of port 1.
    lab.flow("priority=40000,dl_dst=02:00:00:00:00:01,udp,tp_dst=7,actions=output:2");
    lab.turn();
    lab.now += Nanos(1_000_000);
    (0..4).for_each(|number| lab.push(1, &packet(9, FAST, number)));
    lab.turn();
    lab.now += SERVICE_NS - Nanos(1_500);
    // These packets are not queued. They join the backlog in the poll iteration of the release.
    (0..BURST as u32).for_each(|number| lab.push(1, &packet(10, 1, number)));
    lab.turn();
    lab.turn();
    assert_eq!(lab.sent(2), [0, 1, 2, 3]);
    assert_eq!(lab.poll().worked, 1, "a low-latency packet left less than 50 us ago");
}

#[test]
fn hits_are_not_counted_while_released_packets_are_processed() {
    let mut lab = Lab::new(slow(), LaneLimits::USUAL).warmed(FAST);
    (0..50).for_each(|number| lab.push(1, &packet(1, 3, number)));
    (0..2).for_each(|_| lab.turn());
    lab.now += SERVICE_NS;
    lab.turn();
    lab.turn();
    lab.push(1, &packet(1, FAST, 0));
    for _ in 0..45 {
        let turn = lab.poll();
        assert!(turn.worked > 0 && turn.counting, "{turn:?}");
    }
    (0..100).for_each(|_| lab.turn());
    assert!(!lab.poll().counting);
}

#[test]
fn unknown_packets_that_arrive_one_at_a_time_do_not_fill_the_backlog() {
    let mut lab = Lab::with_quanta(PortCacheConfig::default(), LaneLimits::USUAL, Quanta::DEFAULT);
    lab.flow("priority=40000,dl_dst=02:00:00:00:00:02,udp,tp_dst=7,actions=output:2");
    lab.turn();
    for flow in 100..4_100 {
        lab.push(1, &packet(flow, 2, flow.into()));
        lab.turn();
    }
    assert_eq!(lab.totals().dropped.of(DropReason::BacklogUnknown), 0);
    assert_eq!(lab.sent(2).len(), 4_000);
}
