// SPDX-License-Identifier: Apache-2.0
//! No packet overtakes an earlier packet of its flow that waits, whatever makes a record or ends the records.

use crate::lab::{LIMITS, Lab, SERVICE_NS, TURN_NS, packet, slow};
use flow::stateless::{Arithmetic, Bank, Label, NodeId, StatelessConfig};
use flow::{Nanos, PortNo};
use pipeline::LaneLimits;
use port_cache::{MissLimits, PortCacheConfig};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

#[test]
fn a_new_key_plan_keeps_searches_and_order() {
    let mut lab = Lab::warm(slow());
    // Until the key plan changes, packets with different UDP ports belong to one flow.
    (0..6).for_each(|number| lab.push(1, &packet(number as u16 % 2, 3, number)));
    lab.turn();
    assert_eq!(lab.figures().searched, 3);
    lab.flow("priority=60000,udp,tp_dst=1,dl_dst=02:00:00:00:00:03,actions=output:2");
    lab.turn();
    (6..8).for_each(|number| lab.push(1, &packet(number as u16 % 2, 3, number)));
    lab.turn();
    assert_eq!((lab.figures().searched, lab.totals().held), (3, 8), "no packet starts another search");
    lab.answer();
    lab.answer();
    assert_eq!((lab.sent(2), lab.sent(3)), (vec![1, 3, 5, 7], vec![0, 2, 4, 6]));
}

#[test]
fn a_record_made_by_a_packet_of_the_backlog_is_not_used_before_held_packets_have_left() {
    let lanes = LaneLimits { normal: 1_000, unknown: 1_000, hold: 100 };
    let limits = MissLimits { entries: 1, ..LIMITS };
    let mut lab = Lab::new(PortCacheConfig { limits, ..slow() }, lanes);
    // The first packet of port 1 finds the LUT record that the packet of port 3 has made. It does not join
    // the backlog when it is released, so its slot is free at once.
    lab.push(3, &packet(1, 0x77, 1_000));
    lab.turn();
    lab.answer();
    lab.push(1, &packet(1, 0x77, 1_001));
    lab.turn();
    lab.now += Nanos(SERVICE_NS.0 - 5 * TURN_NS.0);
    // The only slot is taken, so these packets join the backlog, which one packet leaves per poll iteration.
    (100..130).for_each(|number| lab.push(1, &packet(1, 8, number)));
    lab.push(1, &packet(1, 9, 0));
    (0..10).for_each(|_| lab.turn());
    let figures = lab.figures();
    assert_eq!((figures.searched, figures.uncached, figures.released), (2, 31, 2), "the slot is free again");
    // The second packet of flow 9 is held while the first one is in the backlog.
    for number in 1..100 {
        lab.push(1, &packet(1, 9, number));
        lab.turn();
    }
    assert_eq!(lab.figures().searched, 3);
    (0..300).for_each(|_| lab.turn());
    let sent: Vec<u32> = lab.sent(2).into_iter().filter(|number| *number < 100).collect();
    assert_eq!((sent, lab.totals().held), ((0..100).collect(), 0));
}

#[test]
fn a_record_made_by_a_packet_that_did_not_fit_is_not_used_before_held_packets_have_left() {
    // A waiting packet of another flow leaves room for a short packet only.
    let limits = MissLimits { bytes: MissLimits::BYTES_MIN, ..LIMITS };
    let mut lab = Lab::new(PortCacheConfig { limits, ..slow() }, LaneLimits::NONE);
    lab.push(1, &long(packet(1, 1, 0)));
    lab.turn();
    lab.push(1, &long(packet(1, 3, 1)));
    lab.push(1, &packet(1, 3, 2));
    lab.turn();
    let figures = lab.figures();
    assert_eq!((figures.searched, figures.uncached), (2, 1), "the long packet does not fit");
    lab.push(1, &packet(1, 3, 3));
    lab.turn();
    assert_eq!(lab.sent(3), [1, 2, 3]);
}

#[test]
fn held_packets_leave_before_later_ones_that_need_no_table() {
    let mut lab = Lab::warm(slow());
    (0..2).for_each(|number| lab.push(1, &tagged(number)));
    lab.turn();
    assert_eq!(lab.totals().held, 2);
    let id = NodeId::new(Arithmetic::Polynomial, 7).unwrap();
    let labels = (0..id.residues()).map(|label| (label, Label::Port(PortNo(3)))).collect();
    let polka = Some(Bank { id, labels, backups: BTreeMap::new() });
    let trusted = [1, 3].map(PortNo).into();
    let config = StatelessConfig { trusted, polka, ..StatelessConfig::default() };
    lab.model.set_stateless(lab.now, Some(Arc::new(config))).unwrap();
    lab.push(1, &tagged(2));
    lab.turn();
    assert_eq!((lab.sent(3), lab.totals().stateless), (vec![0, 1, 2], 3));
}

#[test]
fn held_packets_leave_before_later_ones_if_keys_become_too_long() {
    let mut lab = Lab::warm(slow());
    (0..2).for_each(|number| lab.push(1, &packet(1, 3, number)));
    lab.turn();
    assert_eq!(lab.totals().held, 2);
    // These entries examine more bytes than a key can have.
    (0..16).for_each(|at| lab.flow(&format!("priority=7,slice(packet,{},64)=7,actions=drop", 112 + 64 * at)));
    (0..20).for_each(|_| lab.turn());
    lab.push(1, &packet(1, 3, 2));
    lab.turn();
    assert_eq!(lab.sent(3), [0, 1, 2]);
}

#[test]
fn a_path_of_the_previous_plan_needs_no_search() {
    let mut lab = Lab::warm(slow());
    lab.push(1, &packet(1, 3, 0));
    lab.turn();
    let searched = lab.figures().searched;
    // The records are old enough to be inherited.
    lab.model.poll(lab.now);
    lab.turn();
    lab.flow("priority=60000,udp,tp_dst=1,dl_dst=02:00:00:00:00:03,actions=output:2");
    lab.turn();
    for number in 1..9 {
        lab.push(1, &packet(number as u16, 2, number));
        lab.turn();
    }
    assert_eq!((lab.sent(2), lab.figures().searched), ((1..9).collect(), searched));
    let inherited = lab.model.plane_mut().express_figures().inherited;
    assert_eq!((inherited, lab.totals().held), (8, 1));
}

#[test]
fn a_path_of_the_previous_plan_is_not_used_while_an_earlier_packet_waits() {
    let limits = MissLimits { entries: 1, ..LIMITS };
    let mut lab = Lab::new(PortCacheConfig { limits, ..slow() }, LaneLimits::USUAL).warmed(2);
    lab.model.poll(lab.now);
    lab.turn();
    lab.flow("priority=60000,udp,tp_dst=1,dl_dst=02:00:00:00:00:03,actions=output:2");
    lab.turn();
    // The first of these packets takes the only slot of port 3. The others join the backlog.
    (100..106).for_each(|number| lab.push(3, &packet(number as u16, 8, number)));
    lab.turn();
    // No path of the previous plan is used while packets are in the backlog, so this packet is searched.
    let searched = lab.figures().searched;
    lab.push(1, &packet(1, 2, 0));
    lab.turn();
    assert_eq!(lab.figures().searched, searched + 1);
    (0..10).for_each(|_| lab.turn());
    assert_eq!((lab.totals().held, lab.sent(2)), (2, (101..106).collect()));
    lab.push(1, &packet(1, 2, 1));
    lab.turn();
    assert_eq!((lab.sent(2), lab.figures().merged), (vec![], 1));
    // The packets without a slot took the searcher's time, too.
    (0..6).for_each(|_| lab.answer());
    lab.drain();
    let sent: Vec<u32> = lab.sent(2).into_iter().filter(|number| *number < 100).collect();
    assert_eq!(sent, [0, 1]);
}

#[test]
fn a_record_with_a_fence_is_no_victim_while_packets_wait_for_the_fence() {
    let limits = MissLimits { entries: 1, records: 1, ..LIMITS };
    let mut lab = Lab::new(PortCacheConfig { limits, ..PortCacheConfig::default() }, LaneLimits::USUAL);
    // Packets of different flows: followers of one flow would wait in the port cache.
    let fill = |lab: &mut Lab, hosts: Range<u8>| hosts.for_each(|host| lab.push(3, &packet(1, host, 100)));
    // One packet leaves the backlog per poll iteration.
    fill(&mut lab, 10..14);
    lab.push(3, &packet(1, 0x77, 100));
    lab.turn();
    lab.push(1, &packet(1, 0x77, 0));
    lab.turn();
    fill(&mut lab, 20..30);
    // The packet of port 3 leaves, and makes a LUT record. Its fence is behind the ten packets.
    (0..3).for_each(|_| lab.turn());
    fill(&mut lab, 30..40);
    // Packet 0 leaves, and makes a path record with a later fence. Packet 1 waits for this fence.
    lab.turn();
    lab.push(1, &packet(1, 0x77, 1));
    lab.turn();
    let own = |lab: &mut Lab| lab.sent(2).into_iter().filter(|number| *number < 100).collect::<Vec<_>>();
    assert_eq!(own(&mut lab), [0]);
    (0..10).for_each(|_| lab.turn());
    // The fence of the LUT record has passed. Without its path record, packet 2 would leave at once.
    lab.push(1, &packet(1, 8, 100));
    lab.turn();
    lab.push(1, &packet(1, 0x77, 2));
    lab.turn();
    assert!(own(&mut lab).is_empty());
    lab.drain();
    assert_eq!(own(&mut lab), [1, 2]);
}

/// Returns a packet with a payload before its number.
fn long(mut packet: Vec<u8>) -> Vec<u8> {
    let number = packet.split_off(packet.len() - 4);
    packet.resize(1_496, 0);
    packet.extend(number);
    packet
}

/// Returns packet `number` of a flow to host 3, with a PolKA header.
fn tagged(number: u32) -> Vec<u8> {
    let mut packet = vec![2, 0, 0, 0, 0, 3, 4, 4, 4, 4, 4, 4];
    packet.extend(wire::polka::ETHERTYPE.to_be_bytes());
    packet.extend([0, 9, 8, 0]);
    packet.extend([0; 40]);
    packet.extend(number.to_be_bytes());
    packet
}
