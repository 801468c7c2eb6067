// SPDX-License-Identifier: Apache-2.0
//! The port cache with complete workers, in virtual time: one search per flow, packets of other flows do not
//! wait, operations do not wait for held packets, and every packet is counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod blocking;
mod lab;
mod lanes;
mod order;
mod records;
mod search;

use flow::DropReason;
use lab::{BURST, LIMITS, Lab, packet, slow};
use pipeline::LaneLimits;
use port_cache::{MissLimits, PortCacheConfig};

#[test]
fn a_million_packets_of_an_unknown_flow_cause_one_search_and_hold_up_no_other_flow() {
    flood(Lab::warm(slow()), 2);
}

/// Sends 10^6 packets from port 1. Every 32nd packet is one of flow 1 to the host `known`, which has a
/// record. The others belong to one unknown flow. The search takes longer than all these packets.
fn flood(mut lab: Lab, known: u8) {
    let before = lab.figures();
    for burst in 0..1_000_000 / BURST as u32 {
        for at in 0..BURST as u32 {
            let number = burst * BURST as u32 + at;
            lab.push(1, &if at == 7 { packet(1, known, number) } else { packet(1, 3, number) });
        }
        lab.turn();
        assert_eq!((lab.sent(2).len(), lab.sent(3).len()), (1, 0), "known packets leave at once");
    }
    let figures = lab.figures();
    let dropped = figures.dropped - before.dropped;
    assert_eq!((figures.searched - before.searched, figures.merged), (1, LIMITS.queue.into()));
    assert_eq!(lab.totals().dropped.of(DropReason::MissQueueFull), dropped);
    assert_eq!(lab.totals().held, 1 + u64::from(LIMITS.queue));
    lab.drain();
    let expected: Vec<u32> = (0..).filter(|n| n % 32 != 7).take(1 + usize::from(LIMITS.queue)).collect();
    assert_eq!(lab.sent(3), expected, "what fits the queue leaves in order");
    lab.push(1, &packet(1, 3, 9));
    lab.turn();
    assert_eq!((lab.sent(3), lab.figures().searched), (vec![9], figures.searched), "the flow has a record");
}

#[test]
fn operations_do_not_wait_for_held_packets_which_follow_the_new_rules() {
    let mut lab = Lab::warm(slow());
    (0..3).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turn();
    assert_eq!(lab.totals().held, 3);
    lab.flow("priority=50000,dl_dst=02:00:00:00:00:03,actions=output:2");
    let barrier = lab.model.barrier();
    lab.turn();
    assert!(lab.model.is_applied(barrier) && lab.totals().held == 3);
    lab.answer();
    assert_eq!((lab.sent(2), lab.sent(3)), (vec![0, 1, 2], vec![]));
}

#[test]
fn held_packets_take_no_frames_for_receiving() {
    let mut lab = Lab::warm(slow());
    // More packets wait than there are frames for receiving.
    for number in 0..500 {
        lab.push(1, &packet(1, 3, number));
        lab.push(3, &packet(2, 1, number));
        lab.turn();
    }
    assert!(lab.totals().held > 256 + 128, "{:?}", lab.totals());
    for number in 0..10_000 {
        lab.push(1 + 2 * (number as usize % 2), &packet(1, 2, number));
        lab.turn();
        assert_eq!(lab.sent(2), [number]);
    }
    lab.answer();
    lab.answer();
    assert_eq!((lab.totals().held, lab.totals().dropped.of(DropReason::NoBuffer)), (0, 0));
}

#[test]
fn a_port_that_floods_with_new_flows_leaves_other_ports_their_searches() {
    let mut lab = Lab::warm(slow());
    // The UDP port is part of the keys from now on.
    lab.flow("priority=40000,dl_dst=02:00:00:00:00:02,udp,tp_dst=7,actions=output:2");
    let before = lab.figures();
    for flow in 0..4_000 {
        lab.push(1, &packet(flow, 2, flow.into()));
        lab.turn();
    }
    let flood = lab.figures();
    assert_eq!(flood.searched - before.searched, LIMITS.entries.into());
    assert!(flood.uncached > 3_000, "flows without a slot take the tables: {flood:?}");
    lab.push(3, &packet(5_000, 3, 1));
    lab.turn();
    assert_eq!(lab.figures().searched, flood.searched + 1);
}

#[test]
fn a_searcher_that_answers_at_once_holds_no_packet_longer_than_a_burst() {
    let mut lab = Lab::new(PortCacheConfig::default(), LaneLimits::NONE);
    (0..20).for_each(|number| lab.push(1, &packet(number as u16 % 4, 3, number)));
    lab.turn();
    let figures = lab.figures();
    assert_eq!((figures.searched + figures.merged, figures.released, lab.totals().held), (20, 20, 0));
    assert!(figures.searched <= 4 && lab.sent(3).len() == 20, "{figures:?}");
    let totals = lab.totals();
    assert!(totals.express >= 16, "followers use the record of the first packet: {totals:?}");
}

#[test]
fn packets_that_wait_when_a_worker_ends_are_counted() {
    let mut lab = Lab::warm(slow());
    (0..5).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turn();
    let lost = lab.worker.end();
    let totals = lab.totals();
    assert_eq!((lost.packets, totals.dropped.of(DropReason::Shutdown), totals.held), (5, 5, 0));
}

/// Packets of a burst wait only until the whole burst has been looked up, so no budget limits them.
#[test]
fn a_searcher_that_answers_at_once_drops_nothing() {
    let limits = MissLimits { queue: 0, bytes: MissLimits::BYTES_MIN, ..MissLimits::USUAL };
    for limits in [limits, MissLimits { queue: 4, ..MissLimits::USUAL }] {
        let mut lab = Lab::new(PortCacheConfig { limits, ..PortCacheConfig::default() }, LaneLimits::NONE);
        (0..32).for_each(|number| lab.push(1, &packet(1, 3, number)));
        lab.turn();
        assert_eq!(lab.sent(3), (0..32).collect::<Vec<_>>(), "a new flow");
        lab.flow("priority=60000,dl_dst=02:00:00:00:00:03,actions=output:3");
        (0..32).for_each(|number| lab.push(1, &packet(1, 3, number)));
        lab.turn();
        assert_eq!(lab.sent(3), (0..32).collect::<Vec<_>>(), "a known flow after a change of its rule");
    }
}
