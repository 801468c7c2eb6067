// SPDX-License-Identifier: Apache-2.0
//! Tests of output actions, and of NORMAL.

use super::frames::{DST, SRC, udp};
use super::{add, entry, run, with_instructions};
use crate::{LearnedMac, Processed, Reference};
use flow::bridge::{BridgeConfig, BridgePort, PortVlans, StormLimit, StormLimits, TrunkVlans};
use flow::operation::MAC_TABLE;
use flow::{
    Action, DropReason, EntryId, Field, FieldMatch, FlowEntry, Instructions, Match, Operation, Outcome,
    PacketInReason, PortNo, PortState, QueueId, TableId, port_no,
};
use std::sync::Arc;
use wire::PacketBuilder;

fn to(port: u32) -> Instructions {
    Instructions { write: vec![Action::output(PortNo(port))], ..Instructions::default() }
}

fn ports(done: &Processed) -> Vec<u32> {
    done.sent.iter().map(|sent| sent.port.0).collect()
}

fn set_port(reference: &mut Reference, state: PortState) {
    reference.apply(&Operation::Port(state)).unwrap();
}

fn learn(reference: &mut Reference, id: u32, vid: u16, mac: u128, port: u32) {
    let vid = FieldMatch { field: Field::VlanVid, value: vid.into(), mask: 0xfff };
    let matching = Match::new([vid, FieldMatch::exact(Field::EthDst, mac)]).unwrap();
    add(reference, entry(id, MAC_TABLE, matching, Instructions::apply(vec![Action::output(PortNo(port))])));
}

fn number(mac: [u8; 6]) -> u128 {
    mac.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

#[test]
fn to_one_port() {
    for (port, reason) in [
        (1, Some(DropReason::IngressPort)),
        (2, None),
        (3, Some(DropReason::PortDown)),
        (4, Some(DropReason::PortNotForwarding)),
        (5, Some(DropReason::NoSuchPort)),
        (0, Some(DropReason::NoSuchPort)),
        (port_no::LOCAL.0, Some(DropReason::NoSuchPort)),
        (port_no::TABLE.0, Some(DropReason::NoSuchPort)),
        (port_no::ANY.0, Some(DropReason::NoSuchPort)),
        (0xffff_ff01, Some(DropReason::NoSuchPort)),
    ] {
        let mut reference = with_instructions(to(port));
        set_port(&mut reference, PortState { up: false, no_fwd: true, ..PortState::up(PortNo(3)) });
        set_port(&mut reference, PortState { no_fwd: true, ..PortState::up(PortNo(4)) });
        let done = reference.process(PortNo(1), &udp());
        assert_eq!(done.outcome, reason.map_or(Outcome::Forwarded, Outcome::Dropped), "port {port:#x}");
        assert_eq!(done.sent.len(), usize::from(reason.is_none()));
        assert_eq!(reference.drops().values().sum::<u64>(), u64::from(reason.is_some()));
    }
}

#[test]
fn in_port_goes_back() {
    let mut reference = with_instructions(to(port_no::IN_PORT.0));
    assert_eq!(ports(&reference.process(PortNo(1), &udp())), [1]);
    set_port(&mut reference, PortState { no_fwd: true, ..PortState::up(PortNo(1)) });
    assert_eq!(reference.process(PortNo(1), &udp()).outcome, Outcome::Dropped(DropReason::PortNotForwarding));
}

#[test]
fn all_and_flood() {
    for (output, expected) in [(port_no::ALL, vec![2, 6]), (port_no::FLOOD, vec![2])] {
        let mut reference = with_instructions(to(output.0));
        set_port(&mut reference, PortState { up: false, ..PortState::up(PortNo(3)) });
        set_port(&mut reference, PortState { no_fwd: true, ..PortState::up(PortNo(4)) });
        set_port(&mut reference, PortState { no_flood: true, ..PortState::up(PortNo(6)) });
        let done = reference.process(PortNo(1), &udp());
        assert_eq!((ports(&done), done.copy_drops), (expected, vec![]));
        reference.apply(&Operation::RemovePort(PortNo(2))).unwrap();
        reference.apply(&Operation::RemovePort(PortNo(6))).unwrap();
        assert_eq!(reference.process(PortNo(1), &udp()).outcome, Outcome::Dropped(DropReason::NoFloodPort));
    }
}

#[test]
fn to_the_controller() {
    let asked = Action::Output { port: port_no::CONTROLLER, max_len: 64 };
    let instructions = Instructions::apply(vec![Action::PushVlan(0x8100), asked]);
    let mut reference = with_instructions(instructions.clone());
    let done = reference.process(PortNo(1), &udp());
    let packet_in = &done.packet_ins[0];
    assert_eq!(
        (packet_in.table, packet_in.entry, packet_in.max_len, packet_in.in_port),
        (TableId(0), EntryId(7), 64, PortNo(1))
    );
    assert_eq!((packet_in.reason, packet_in.bytes.len()), (PacketInReason::Action, 46));
    assert_eq!((done.outcome, done.copy_drops), (Outcome::Consumed, vec![]));
    set_port(&mut reference, PortState { no_packet_in: true, ..PortState::up(PortNo(1)) });
    assert!(reference.process(PortNo(1), &udp()).packet_ins.is_empty());
    // The table-miss entry has priority 0 and matches every packet.
    let mut reference = super::four_ports();
    add(&mut reference, FlowEntry { priority: 0, ..entry(1, TableId(0), Match::any(), instructions) });
    assert_eq!(reference.process(PortNo(1), &udp()).packet_ins[0].reason, PacketInReason::NoMatch);
}

#[test]
fn a_port_can_forbid_packet_ins() {
    let mut reference = with_instructions(to(port_no::CONTROLLER.0));
    set_port(&mut reference, PortState { no_packet_in: true, ..PortState::up(PortNo(1)) });
    assert_eq!(reference.process(PortNo(1), &udp()).outcome, Outcome::Dropped(DropReason::NoPacketIn));
    assert_eq!(reference.process(PortNo(2), &udp()).outcome, Outcome::Consumed);
}

#[test]
fn each_copy_has_the_bytes_at_the_time_of_its_output() {
    let done = run(
        Instructions::apply(vec![
            Action::output(PortNo(2)),
            Action::SetQueue(QueueId(3)),
            Action::SetNwTtl(9),
            Action::output(PortNo(1)),
            Action::output(PortNo(3)),
        ]),
        &udp(),
    );
    let sent: Vec<_> = done.sent.iter().map(|sent| (sent.port, sent.queue, sent.bytes[22])).collect();
    assert_eq!(sent, [(PortNo(2), QueueId(0), 64), (PortNo(3), QueueId(3), 9)]);
    assert_eq!((done.outcome, done.copy_drops), (Outcome::Forwarded, vec![DropReason::IngressPort]));
}

#[test]
fn normal_floods_learns_and_forwards() {
    let mut reference = with_instructions(to(port_no::NORMAL.0));
    let done = reference.process(PortNo(1), &udp());
    let learned = LearnedMac { vid: 0, mac: number(SRC) as u64, port: PortNo(1) };
    assert_eq!((ports(&done), done.learn), (vec![2, 3, 4], vec![learned]));
    // Learned addresses are added only by operations.
    assert_eq!(reference.process(PortNo(1), &udp()).learn, vec![learned]);
    learn(&mut reference, 100, 0, number(SRC), 1);
    learn(&mut reference, 101, 0, number(DST), 3);
    let done = reference.process(PortNo(1), &udp());
    assert_eq!(
        (ports(&done), done.learn, done.hits),
        (vec![3], vec![], vec![(TableId(0), Some(EntryId(7)))])
    );
    assert_eq!(reference.table_counters(MAC_TABLE), (0, 0));
    assert_eq!(reference.entry_counters(EntryId(101)), Some((0, 0)));
    // The source moved to another port, and the destination is on the ingress port.
    let done = reference.process(PortNo(3), &udp());
    assert_eq!(done.learn, vec![LearnedMac { port: PortNo(3), ..learned }]);
    assert_eq!(done.outcome, Outcome::Dropped(DropReason::IngressPort));
    reference.apply(&Operation::RemovePort(PortNo(3))).unwrap();
    assert_eq!(reference.process(PortNo(1), &udp()).outcome, Outcome::Dropped(DropReason::NoSuchPort));
}

#[test]
fn normal_keeps_vlans_apart() {
    let mut reference = with_instructions(to(port_no::NORMAL.0));
    learn(&mut reference, 100, 5, number(DST), 3);
    let tagged =
        |vid: u16| PacketBuilder::ethernet(DST, SRC).vlan(0x8100, 0xe000 | vid).ethertype(0x1234).build();
    assert_eq!(ports(&reference.process(PortNo(1), &tagged(5))), [3]);
    let done = reference.process(PortNo(1), &tagged(6));
    assert_eq!((ports(&done), done.learn[0].vid), (vec![2, 3, 4], 6));
    assert_eq!(ports(&reference.process(PortNo(1), &udp())), [2, 3, 4]);
    assert_eq!(
        (reference.learned(5, number(DST) as u64), reference.learned(6, number(DST) as u64)),
        (Some(PortNo(3)), None)
    );
}

#[test]
fn normal_obeys_the_vlans_of_ports() {
    let mut reference = with_instructions(Instructions::apply(vec![
        Action::output(port_no::NORMAL),
        Action::output(PortNo(5)),
    ]));
    set_port(&mut reference, PortState::up(PortNo(5)));
    let only = |vids: &[u16]| TrunkVlans::Only(vids.iter().copied().collect());
    let ports = [
        (1, PortVlans::Access(10)),
        (2, PortVlans::Trunk(only(&[10, 20]))),
        (3, PortVlans::NativeUntagged { native: 10, trunks: only(&[]) }),
        (4, PortVlans::NativeTagged { native: 20, trunks: only(&[0]) }),
        (5, PortVlans::Access(0)),
    ];
    let ports =
        ports.map(|(port, vlans)| (PortNo(port), BridgePort { vlans, ..BridgePort::default() })).into();
    reference.apply(&Operation::Bridge(Some(Arc::new(BridgeConfig { ports })))).unwrap();
    let untagged = || PacketBuilder::ethernet(DST, SRC).pad_to(64);
    let plain = untagged().ethertype(0x1234).build();
    let tagged = |tci| untagged().vlan(0x8100, tci).ethertype(0x1234).build();
    let mut sent = |port, frame: &[u8]| {
        let done = reference.process(PortNo(port), frame);
        let copies = done.sent.into_iter().map(|copy| (copy.port.0, copy.bytes)).collect::<Vec<_>>();
        (copies, done.copy_drops, done.learn.first().map(|mac| mac.vid))
    };
    // The frame with a tag has four bytes more.
    let grown = |tci: u16| {
        let mut frame = plain.clone();
        let [first, second] = tci.to_be_bytes();
        frame.splice(12..12, [0x81, 0, first, second]);
        frame
    };
    let rule = |frame: &[u8]| (5, frame.to_vec());
    // VLAN 10: tagged on port 2, native on port 3. The rule of port 5 sends the frame as it arrived.
    assert_eq!(sent(1, &plain), (vec![(2, grown(10)), (3, plain.clone()), rule(&plain)], vec![], Some(10)));
    let refused = (vec![rule(&tagged(10))], vec![DropReason::WrongVlan], None);
    assert_eq!(sent(1, &tagged(10)), refused);
    // VLAN 20: tagged on port 4. A priority tag of VLAN 0 gets the native VLAN.
    assert_eq!(sent(2, &tagged(20)), (vec![(4, tagged(20)), rule(&tagged(20))], vec![], Some(20)));
    let (copies, _, vid) = sent(4, &tagged(0xe000));
    assert_eq!((copies, vid), (vec![(2, tagged(0xe000 | 20)), rule(&tagged(0xe000))], Some(20)));
    assert_eq!(sent(3, &tagged(20)).1, [DropReason::WrongVlan]);
}

#[test]
fn normal_learns_no_more_addresses_than_the_limit_of_the_port() {
    let mut reference = with_instructions(to(port_no::NORMAL.0));
    let ports = [(PortNo(1), BridgePort { mac_limit: Some(2), ..BridgePort::default() })].into();
    reference.apply(&Operation::Bridge(Some(Arc::new(BridgeConfig { ports })))).unwrap();
    let frame = PacketBuilder::ethernet(DST, SRC).ethertype(0x1234).build();
    for (id, port) in [(100, 3), (101, 1), (102, 1)] {
        assert_eq!(reference.process(PortNo(1), &frame).learn.len(), 1, "before entry {id}");
        learn(&mut reference, id, 0, u128::from(id), port);
    }
    assert_eq!(reference.process(PortNo(1), &frame).learn, vec![]);
    assert_eq!(reference.process(PortNo(2), &frame).learn.len(), 1);
    // A learned source is still refreshed.
    learn(&mut reference, 103, 0, number(SRC), 1);
    assert_eq!(reference.process(PortNo(1), &frame).refreshed, [EntryId(103)]);
}

#[test]
fn normal_drops_floods_above_the_limit_of_their_kind() {
    let mut reference = with_instructions(to(port_no::NORMAL.0));
    learn(&mut reference, 100, 0, number(DST), 3);
    let storm = StormLimits {
        broadcast: Some(StormLimit { rate: 1, burst: 1 }),
        unknown_unicast: Some(StormLimit { rate: 1, burst: 1 }),
        ..StormLimits::default()
    };
    let ports = [(PortNo(1), BridgePort { storm, ..BridgePort::default() })].into();
    reference.apply(&Operation::Bridge(Some(Arc::new(BridgeConfig { ports })))).unwrap();
    let mut outcome = |exceeds, port, dst: [u8; 6]| {
        reference.exceed_storm_limits(vec![exceeds]);
        reference.process(PortNo(port), &PacketBuilder::ethernet(dst, SRC).ethertype(0x1234).build()).outcome
    };
    let (unknown, group) = ([2, 9, 9, 9, 9, 9], [1, 0, 0x5e, 0, 0, 1]);
    assert_eq!(outcome(true, 1, [0xff; 6]), Outcome::Dropped(DropReason::StormBroadcast));
    assert_eq!(outcome(true, 1, unknown), Outcome::Dropped(DropReason::StormUnknownUnicast));
    // Without a limit of the kind or the port, and below the limit, packets pass.
    for (exceeds, port, dst) in
        [(true, 1, group), (true, 1, DST), (true, 2, [0xff; 6]), (false, 1, [0xff; 6]), (false, 1, unknown)]
    {
        assert_eq!(outcome(exceeds, port, dst), Outcome::Forwarded, "{exceeds} {port} {dst:?}");
    }
}

#[test]
fn normal_and_special_addresses() {
    let frame = |dst, src| PacketBuilder::ethernet(dst, src).ethertype(0x1234).build();
    let mut reference = with_instructions(to(port_no::NORMAL.0));
    for (last, outcome) in [
        (0, Outcome::Dropped(DropReason::ReservedMulticast)),
        (15, Outcome::Dropped(DropReason::ReservedMulticast)),
        (16, Outcome::Forwarded),
    ] {
        let done = reference.process(PortNo(1), &frame([1, 0x80, 0xc2, 0, 0, last], SRC));
        assert_eq!((done.outcome, !done.learn.is_empty()), (outcome, outcome == Outcome::Forwarded));
    }
    assert_eq!(reference.process(PortNo(1), &frame(DST, [0; 6])).learn, vec![]);
    assert_eq!(reference.process(PortNo(1), &frame(DST, [3, 0, 0, 0, 0, 1])).learn, vec![]);
    // A group address is flooded even if the table contains it.
    learn(&mut reference, 100, 0, 0xffff_ffff_ffff, 3);
    assert_eq!(ports(&reference.process(PortNo(1), &frame([0xff; 6], SRC))), [2, 3, 4]);
    // Ports with NO_FLOOD are excluded.
    set_port(&mut reference, PortState { no_flood: true, ..PortState::up(PortNo(3)) });
    assert_eq!(ports(&reference.process(PortNo(1), &frame([0xff; 6], SRC))), [2, 4]);
}
