// SPDX-License-Identifier: Apache-2.0
//! A newer port takes over the packets of an older one on the same interface.

use crate::lab::{Lab, drain, in_lab, open_one, send, spec, veth};
use crate::raw::{pause, udp};
use port::{Queue, Spec};
use std::collections::{BTreeSet, HashMap};

/// Number of flows in a burst.
const FLOWS: u16 = 60;

/// Bytes of the addresses and ports of [`udp`] packets: source and destination address, then both ports.
const ADDRESSES: [std::ops::Range<usize>; 2] = [26..30, 30..34];
const PORTS: [std::ops::Range<usize>; 2] = [34..36, 36..38];

/// Returns the packet in the other direction.
fn reversed(packet: &[u8]) -> Vec<u8> {
    let mut bytes = packet.to_vec();
    for [one, other] in [ADDRESSES, PORTS] {
        bytes[one.clone()].copy_from_slice(&packet[other.clone()]);
        bytes[other].copy_from_slice(&packet[one]);
    }
    bytes
}

/// Sends a packet with this mark in each direction of each flow.
fn send_flows(sender: &mut dyn Queue, mark: u8) {
    let there: Vec<_> = (0..FLOWS).map(|flow| udp(1_000 + flow, mark)).collect();
    send(sender, &there);
    pause();
    let back: Vec<_> = there.iter().map(|packet| reversed(packet)).collect();
    send(sender, &back);
    pause();
}

/// Receives what has arrived at each queue. Returns the flows with this mark by the queue's number, and
/// asserts that each direction of each flow arrived once, that both arrived at one queue, and that each queue
/// got some.
fn assert_all_arrived(queues: &mut [Box<dyn Queue>], mark: u8) {
    let mut seen = BTreeSet::new();
    let mut queue_of = HashMap::new();
    for (number, queue) in queues.iter_mut().enumerate() {
        let packets = drain(&mut **queue);
        assert!(!packets.is_empty(), "queue {number} got no packet with mark {mark}");
        for packet in packets {
            assert_eq!(packet[42], mark, "a packet of another time");
            let ports = PORTS.map(|at| u16::from_be_bytes([packet[at.start], packet[at.start + 1]]));
            let flow = ports.into_iter().max().unwrap();
            assert_eq!(*queue_of.entry(flow).or_insert(number), number, "flow {flow} is on two queues");
            assert!(seen.insert(ports), "{ports:?} arrived twice");
        }
    }
    assert_eq!(seen.len(), 2 * usize::from(FLOWS), "packets with mark {mark} are lost");
}

fn assert_nothing_arrived(queues: &mut [Box<dyn Queue>]) {
    assert!(queues.iter_mut().all(|queue| drain(&mut **queue).is_empty()));
}

/// Two takeovers in a row with this number of queues.
fn take_over_twice(queues: usize) {
    let (a, b) = (format!("va{queues}"), format!("vb{queues}"));
    veth(&a, &b);
    let mut sender = open_one(9, &b);
    let mut old = port::open(&spec(1, &a, queues)).unwrap();
    let mut mark = 0;
    let mut next = || {
        mark += 1;
        mark
    };
    for from_first in [true, false] {
        let old_group = old[0].fanout().unwrap();
        let fanout = Some(old_group.group().unwrap());
        let mut new = port::open(&Spec { fanout, ..spec(2, &a, queues) }).unwrap();
        let new_group = new[0].fanout().unwrap();
        assert_eq!(new_group.group(), None, "a third port cannot join yet");
        let first = next();
        send_flows(&mut *sender, first);
        assert_nothing_arrived(&mut new);
        assert_all_arrived(&mut old, first);

        // There and back again, as after a failure.
        for (group, to_new) in [(&new_group, true), (&old_group, false), (&new_group, true)] {
            group.take_over().unwrap();
            let sent = next();
            send_flows(&mut *sender, sent);
            let (to, from) = if to_new { (&mut new, &mut old) } else { (&mut old, &mut new) };
            assert_all_arrived(to, sent);
            assert_nothing_arrived(from);
        }

        // The queues of the old port close one after the other, in any order.
        while let Some(last) = old.len().checked_sub(1) {
            drop(old.remove(if from_first { 0 } else { last }));
            let sent = next();
            send_flows(&mut *sender, sent);
            let mut at_new = new.iter_mut().map(|queue| drain(&mut **queue)).collect::<Vec<_>>();
            let all: Vec<_> = at_new.drain(..).flatten().collect();
            assert_eq!(all.len(), 2 * usize::from(FLOWS), "{} old queues are left", old.len());
            assert!(all.iter().all(|packet| packet[42] == sent));
        }
        new_group.settle().unwrap();
        let last = next();
        send_flows(&mut *sender, last);
        assert_all_arrived(&mut new, last);
        old = new;
    }
}

#[test]
fn each_packet_reaches_the_old_or_the_new_port() {
    in_lab("takeover::each_packet_reaches_the_old_or_the_new_port", 0, |_: &Lab| {
        [1, 3].into_iter().for_each(take_over_twice);
    });
}

#[test]
fn a_group_is_not_offered_while_its_interface_is_gone() {
    in_lab("takeover::a_group_is_not_offered_while_its_interface_is_gone", 0, |_: &Lab| {
        veth("va", "vb");
        let queue = open_one(1, "va");
        let group = queue.fanout().unwrap();
        assert!(group.group().is_some());
        crate::lab::run("ip link del va");
        assert_eq!(group.group(), None);
        assert!(group.take_over().is_err());
    });
}
