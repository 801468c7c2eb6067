// SPDX-License-Identifier: Apache-2.0
//! Effects of messages on packets: packet-ins, packet-outs, groups, meters, counters, ports, linear tables.

use crate::lab::{Lab, until};
use crate::peer::{Peer, apply, entry, equals, field, frame, goto, output, table};
use flow::{GroupId, MeterId, TableId};
use pof::action::{
    AddFieldAction, CounterAction, DropAction, GroupAction, OutputAction, PacketInAction, PofAction,
};
use pof::instruction::{GotoDirectTable, MeterInstruction, PofInstruction, WriteMetadata};
use pof::message::packet::{NO_BUFFER, PofPacketIn, PofPacketInReason, PofPacketOut};
use pof::message::port::{PofForwarding, PofPort, PofPortReason, PofPortStatus};
use pof::message::resource::*;
use pof::message::table::{FlowCommand, PofFlowMod, PofTableType};
use pof::value::{PofCounterId, PofMatch, PofOperand};
use pof::{PofDialect, PofMessage, error};

/// Returns the FLOW_MOD of an entry for an EtherType in the masked table 0.
fn of_type(ethertype: u128, instructions: Vec<PofInstruction>) -> PofFlowMod {
    entry(ethertype as u32 % 1_000, vec![equals(field(96, 16), ethertype)], instructions)
}

/// Starts a switch whose masked table 0 examines the EtherType.
fn start(pof: &str) -> (Lab, Peer) {
    let lab = Lab::start(pof);
    let mut peer = lab.peer();
    peer.tell(&table(PofTableType::Mask, 0, &[field(96, 16)]));
    (lab, peer)
}

fn packet_in(peer: &mut Peer) -> PofPacketIn {
    loop {
        if let (0, PofMessage::PacketIn(packet_in)) = peer.receive() {
            return packet_in;
        }
    }
}

#[test]
fn a_packet_in_has_the_whole_packet_and_its_entry() {
    let (mut lab, mut peer) = start("device_id = 3");
    let action = PofAction::PacketIn(PacketInAction { reason: 1 });
    let mut m = of_type(0x0908, vec![apply(vec![output(2), action])]);
    m.cookie = 0x1234_5678_9abc_def0;
    peer.tell(&PofMessage::FlowMod(m));
    let mut packet = frame(0x0908, &[]);
    packet.resize(1_500, 7);
    lab.push(3, &packet);
    assert_eq!(lab.pop(2), packet);
    let found = packet_in(&mut peer);
    assert_eq!(
        (found.reason, found.table, found.cookie),
        (PofPacketInReason::Action, TableId(0), 0x1234_5678_9abc_def0)
    );
    assert_eq!((found.port, found.device_id, found.buffer_id), (3, 3, NO_BUFFER));
    assert_eq!((found.total_length_bytes, found.data), (1_500, packet));
}

/// OpenFlow would take an entry of priority 0 for all packets for a table-miss entry.
#[test]
fn a_packet_in_has_the_reason_of_its_action() {
    use PofPacketInReason::{Action, InvalidTtl, NoMatch};
    let (mut lab, mut peer) = start("miss = \"controller\"");
    let any = PofMatch { field: field(96, 16), value: 0, mask: 0 };
    for priority in [0, 7] {
        for (number, expected) in [(0, NoMatch), (1, Action), (2, InvalidTtl)] {
            let action = PofAction::PacketIn(PacketInAction { reason: number });
            let mut m = entry(1, vec![any], vec![apply(vec![action])]);
            (m.priority, m.cookie) = (priority, 5);
            peer.tell(&PofMessage::FlowMod(m.clone()));
            for _ in 0..3 {
                lab.push(1, &frame(0x0908, &[]));
                let found = packet_in(&mut peer);
                assert_eq!((found.reason, found.cookie), (expected, 5), "priority {priority}");
            }
            m.command = FlowCommand::Delete;
            peer.tell(&PofMessage::FlowMod(m));
            // The table-miss entry is back.
            lab.push(1, &frame(0x0908, &[]));
            assert_eq!(packet_in(&mut peer).reason, NoMatch);
        }
    }
    // An output to the controllers' port is an action, too.
    let to_port = apply(vec![output(0xffff_fffd)]);
    peer.tell(&PofMessage::FlowMod(PofFlowMod { priority: 0, ..entry(1, vec![any], vec![to_port]) }));
    lab.push(1, &frame(0x0908, &[]));
    assert_eq!(packet_in(&mut peer).reason, Action);
}

#[test]
fn packets_without_an_entry_go_to_the_controller_if_configured() {
    let (mut lab, mut peer) = start("miss = \"controller\"");
    let exact = PofTableType::Exact;
    peer.tell(&table(exact, 2, &[field(0, 8)]));
    peer.tell(&PofMessage::FlowMod(of_type(0x0908, vec![goto(22, 14)])));
    lab.push(1, &frame(0x0908, &[1]));
    let found = packet_in(&mut peer);
    assert_eq!((found.reason, found.table, found.port), (PofPacketInReason::NoMatch, TableId(22), 1));
    lab.push(2, &frame(0x0909, &[1]));
    assert_eq!(packet_in(&mut peer).table, TableId(0));
    // An entry of the controller for all packets takes the place of the table-miss entry until it is deleted.
    let any = PofMatch { field: field(96, 16), value: 0, mask: 0 };
    let mut all = entry(7, vec![any], vec![apply(vec![output(4)])]);
    all.priority = 0;
    peer.tell(&PofMessage::FlowMod(all.clone()));
    lab.push(2, &frame(0x0909, &[1]));
    lab.pop(4);
    all.command = FlowCommand::Delete;
    peer.tell(&PofMessage::FlowMod(all));
    lab.push(2, &frame(0x0909, &[1]));
    assert_eq!(packet_in(&mut peer).table, TableId(0));
    // The table-miss entry does not count as an entry.
    let mut delete = match table(exact, 2, &[]) {
        PofMessage::TableMod(m) => m,
        other => panic!("{other:?}"),
    };
    delete.command = pof::message::table::TableCommand::Delete;
    peer.tell(&PofMessage::TableMod(delete));
    lab.push(1, &frame(0x0908, &[1]));
    assert!(lab.is_quiet());
}

#[test]
fn a_packet_out_leaves_the_port_of_its_actions() {
    let (mut lab, mut peer) = start("");
    let data = frame(0x0908, &[9]);
    let packet = PofPacketOut {
        buffer_id: NO_BUFFER,
        in_port: 1,
        packet_length_bytes: data.len() as u32,
        actions: vec![output(2), PofAction::Drop(DropAction { reason: 0 }), output(3)],
        data: data.clone(),
    };
    peer.tell(&PofMessage::PacketOut(packet.clone()));
    assert_eq!(lab.pop(2), data);
    assert!(lab.is_quiet());
    let short = PofPacketOut { data: vec![0; 13], packet_length_bytes: 13, ..packet.clone() };
    for (wrong, code) in [
        (PofPacketOut { buffer_id: 1, ..packet.clone() }, pof::PofErrorCode::new(1, 8)),
        (PofPacketOut { in_port: 9, ..packet.clone() }, error::BAD_PORT),
        (PofPacketOut { in_port: 0x0001_0001, ..packet.clone() }, error::BAD_PORT),
        (PofPacketOut { actions: vec![output(0xffff_fffe)], ..packet.clone() }, error::ACTION_BAD_OUT_PORT),
        (short, error::BAD_PACKET),
    ] {
        assert_eq!(peer.refused(&PofMessage::PacketOut(wrong)).0, code);
    }
}

fn group(number: u32, group_type: PofGroupType, actions: Vec<PofAction>) -> PofGroupMod {
    PofGroupMod { group: GroupId(number), group_type, actions, ..PofGroupMod::default() }
}

fn to_group(number: u32) -> PofInstruction {
    apply(vec![PofAction::Group(GroupAction { group: GroupId(number) })])
}

#[test]
fn a_group_of_type_all_runs_its_list_of_actions() {
    let (mut lab, mut peer) = start("");
    let set = PofAction::SetField(equals(field(0, 48), 0x0200_0000_0009));
    let list = vec![output(2), set, output(3)];
    peer.tell(&PofMessage::GroupMod(group(1, PofGroupType::All, list)));
    peer.tell(&PofMessage::FlowMod(of_type(0x0908, vec![to_group(1)])));
    let packet = frame(0x0908, &[]);
    lab.push(1, &packet);
    assert_eq!(lab.pop(2), packet);
    let mut changed = packet.clone();
    changed[5] = 9;
    assert_eq!(lab.pop(3), changed);
    // A modified group replaces the old one, and entries with a deleted group are removed.
    let other =
        PofGroupMod { command: PofGroupCommand::Modify, ..group(1, PofGroupType::Indirect, vec![output(4)]) };
    peer.tell(&PofMessage::GroupMod(other.clone()));
    lab.push(1, &packet);
    assert_eq!(lab.pop(4), packet);
    peer.tell(&PofMessage::GroupMod(PofGroupMod { command: PofGroupCommand::Delete, ..other }));
    lab.push(1, &packet);
    assert!(lab.is_quiet());
    peer.tell(&PofMessage::FlowMod(of_type(0x0908, vec![])));
}

#[test]
fn a_group_with_buckets_and_wrong_groups() {
    let (mut lab, mut peer) = start("");
    let bucket = |watch_port, actions| PofBucket { watch_port, actions, ..PofBucket::default() };
    let buckets = |group_type, buckets| {
        let group = GroupId(5);
        PofMessage::BucketGroupMod(PofBucketGroupMod { group, group_type, buckets, ..Default::default() })
    };
    // Port 9 does not exist, so the first bucket is not live.
    let failover = vec![bucket(9, vec![output(2)]), bucket(3, vec![output(3)])];
    peer.tell(&buckets(PofGroupType::FastFailover, failover));
    peer.tell(&PofMessage::FlowMod(of_type(0x0908, vec![to_group(5)])));
    let packet = frame(0x0908, &[]);
    lab.push(1, &packet);
    assert_eq!(lab.pop(3), packet);
    assert!(lab.is_quiet());
    let edit = PofAction::AddField(AddFieldAction { length_bits: 8, ..AddFieldAction::default() });
    let part = OutputAction { port: PofOperand::Number(1), packet_offset_bytes: 4, ..Default::default() };
    let counter = PofAction::Counter(CounterAction { counter: PofCounterId(1) });
    let all = PofGroupType::All;
    let one = |number, kind, actions| PofMessage::GroupMod(group(number, kind, actions));
    let weightless = vec![PofBucket::default()];
    for (wrong, code) in [
        (one(5, all, vec![]), pof::PofErrorCode::new(6, 0)),
        (one(6, all, vec![edit.clone(), output(1)]), error::ACTION_UNSUPPORTED_ORDER),
        (one(6, all, vec![PofAction::Output(part)]), error::ACTION_UNSUPPORTED_ORDER),
        (one(6, all, vec![counter, output(1)]), error::ACTION_BAD_ARGUMENT),
        (one(6, PofGroupType::Indirect, vec![output(1), output(2)]), error::ACTION_UNSUPPORTED_ORDER),
        (one(0xff00_0001, all, vec![]), error::GROUP_INVALID),
        (buckets(PofGroupType::Select, weightless), pof::PofErrorCode::new(6, 0)),
        (
            PofMessage::GroupMod(PofGroupMod { command: PofGroupCommand::Delete, ..group(8, all, vec![]) }),
            pof::PofErrorCode::new(6, 8),
        ),
        (PofMessage::GroupMod(PofGroupMod { slot: 1, ..group(8, all, vec![]) }), error::BAD_PORT),
    ] {
        let (found, text) = peer.refused(&wrong);
        assert_eq!(found, code, "{text}");
    }
}

#[test]
fn a_meter_drops_packets_above_its_rate() {
    let (mut lab, mut peer) = start("");
    let meter = |command, rate_kbps| {
        PofMessage::MeterMod(PofMeterMod { command, rate_kbps, meter: MeterId(4), ..PofMeterMod::default() })
    };
    peer.tell(&meter(PofMeterCommand::Add, 1));
    let metered = PofInstruction::Meter(MeterInstruction { meter: MeterId(4) });
    peer.tell(&PofMessage::FlowMod(of_type(0x0908, vec![metered, apply(vec![output(2)])])));
    let packet = frame(0x0908, &[]);
    let passed = |lab: &mut Lab| {
        (0..100).for_each(|_| lab.push(1, &packet));
        std::thread::sleep(std::time::Duration::from_millis(100));
        std::iter::from_fn(|| lab.ports[1].pop(0)).count()
    };
    let slow = passed(&mut lab);
    assert!(slow < 50, "{slow} packets of 512 bits passed a meter of 1 kbit/s");
    peer.tell(&meter(PofMeterCommand::Modify, 1_000_000));
    assert_eq!(passed(&mut lab), 100);
    peer.tell(&meter(PofMeterCommand::Delete, 0));
    lab.push(1, &packet);
    assert!(lab.is_quiet());
    for (wrong, code) in [
        (meter(PofMeterCommand::Modify, 1), pof::PofErrorCode::new(12, 3)),
        (meter(PofMeterCommand::Add, 0), pof::PofErrorCode::new(12, 6)),
    ] {
        assert_eq!(peer.refused(&wrong).0, code);
    }
}

fn counter(command: CounterCommand, number: u32) -> PofCounter {
    PofCounter { command, counter: PofCounterId(number), ..PofCounter::default() }
}

fn count(peer: &mut Peer, number: u32) -> (u64, u64) {
    match peer.ask(&PofMessage::CounterRequest(counter(CounterCommand::Request, number))) {
        PofMessage::CounterReply(found) => (found.packets, found.bytes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn counters_add_up_entries_and_actions() {
    let (mut lab, mut peer) = start("");
    let count_under = |number| PofAction::Counter(CounterAction { counter: PofCounterId(number) });
    // Two entries name counter 5, and a third counts under it by its action. The packets go on.
    let mut first = of_type(0x0901, vec![apply(vec![output(2)])]);
    first.counter = PofCounterId(5);
    let mut second = of_type(0x0902, vec![apply(vec![output(2)])]);
    second.counter = PofCounterId(5);
    let third = of_type(0x0903, vec![apply(vec![count_under(5), count_under(6), output(2)])]);
    for m in [&first, &second, &third] {
        peer.tell(&PofMessage::FlowMod(m.clone()));
    }
    for (n, ethertype) in [(1, 0x0901), (2, 0x0902), (3, 0x0903), (4, 0x0904)] {
        for _ in 0..n {
            lab.push(1, &frame(ethertype, &[]));
        }
    }
    (0..6).for_each(|_| drop(lab.pop(2)));
    assert!(lab.is_quiet());
    let modify = |command| move |number| PofMessage::CounterMod(counter(command, number));
    until("all packets are counted", || count(&mut peer, 5) == (6, 6 * 64));
    assert_eq!(count(&mut peer, 6), (3, 3 * 64));
    // A cleared counter starts at 0.
    peer.tell(&modify(CounterCommand::Clear)(5));
    assert_eq!(count(&mut peer, 5), (0, 0));
    lab.push(1, &frame(0x0903, &[]));
    lab.pop(2);
    until("the packet is counted", || count(&mut peer, 5) == (1, 64));
    // The counts of a deleted entry stay in a counter that has other users.
    peer.tell(&PofMessage::FlowMod(PofFlowMod { command: FlowCommand::Delete, ..first }));
    assert_eq!(count(&mut peer, 5), (1, 64));
    let delete =
        |m: &PofFlowMod| PofMessage::FlowMod(PofFlowMod { command: FlowCommand::Delete, ..m.clone() });
    let (code, text) = peer.refused(&modify(CounterCommand::Delete)(5));
    assert_eq!(code, error::COUNTER_BAD_COUNTER_ID, "{text}");
    peer.tell(&delete(&second));
    assert_eq!(peer.refused(&modify(CounterCommand::Delete)(6)).0, error::COUNTER_BAD_COUNTER_ID);
    peer.tell(&delete(&third));
    peer.tell(&modify(CounterCommand::Delete)(5));
    peer.tell(&modify(CounterCommand::Delete)(6));
    for (wrong, code) in [
        (PofMessage::CounterRequest(counter(CounterCommand::Request, 5)), error::COUNTER_UNEXIST),
        (modify(CounterCommand::Clear)(5), error::COUNTER_UNEXIST),
        (modify(CounterCommand::Delete)(5), error::COUNTER_UNEXIST),
        (modify(CounterCommand::Request)(5), error::COUNTER_BAD_COMMAND),
        (modify(CounterCommand::Add)(0), error::COUNTER_BAD_COUNTER_ID),
    ] {
        assert_eq!(peer.refused(&wrong).0, code);
    }
    peer.tell(&modify(CounterCommand::Add)(5));
    assert_eq!(count(&mut peer, 5), (0, 0));
    assert_eq!(peer.refused(&modify(CounterCommand::Add)(5)).0, error::COUNTER_EXIST);
}

#[test]
fn a_counter_ends_with_its_last_entry() {
    let (_lab, mut peer) = start("");
    let mut m = of_type(0x0901, vec![]);
    m.counter = PofCounterId(8);
    peer.tell(&PofMessage::FlowMod(m.clone()));
    assert_eq!(count(&mut peer, 8), (0, 0));
    // A modified entry may name another counter.
    let other = PofFlowMod { command: FlowCommand::Modify, counter: PofCounterId(9), ..m.clone() };
    peer.tell(&PofMessage::FlowMod(other));
    let ask = |number| PofMessage::CounterRequest(counter(CounterCommand::Request, number));
    assert_eq!(peer.refused(&ask(8)).0, error::COUNTER_UNEXIST);
    assert_eq!(count(&mut peer, 9), (0, 0));
    peer.tell(&PofMessage::FlowMod(PofFlowMod { command: FlowCommand::Delete, ..m }));
    assert_eq!(peer.refused(&ask(9)).0, error::COUNTER_UNEXIST);
}

/// The bytes that leave are those of public switches: metadata, then the packet from an offset on.
#[test]
fn an_output_sends_a_part_of_the_packet_after_metadata() {
    let mut lab = Lab::start("");
    let mut peer = lab.peer();
    peer.tell(&table(PofTableType::Mask, 0, &[field(96, 16)]));
    let part = |port, packet_offset_bytes, metadata_length_bits| {
        PofAction::Output(OutputAction {
            port: PofOperand::Number(port),
            metadata_offset_bits: 32,
            metadata_length_bits,
            packet_offset_bytes,
        })
    };
    let write = WriteMetadata { offset_bits: 32, length_bits: 24, value: 0xc0ffee << 104 };
    let write = PofInstruction::WriteMetadata(write);
    // Port 2 gets the whole packet, port 3 the part.
    let actions = |part| vec![write.clone(), apply(vec![output(2), part])];
    peer.tell(&PofMessage::FlowMod(of_type(0x0901, actions(part(3, 2, 0)))));
    peer.tell(&PofMessage::FlowMod(of_type(0x0902, actions(part(3, 0, 24)))));
    peer.tell(&PofMessage::FlowMod(of_type(0x0903, actions(part(3, 14, 20)))));
    for (ethertype, cut, before) in
        [(0x0901, 2, &[][..]), (0x0902, 0, &[0xc0, 0xff, 0xee]), (0x0903, 14, &[0xc0, 0xff, 0xee])]
    {
        let mut packet = frame(ethertype, &[1, 2, 3, 4]);
        packet.resize(100, 0x55);
        lab.push(1, &packet);
        assert_eq!(lab.pop(2), packet);
        assert_eq!(lab.pop(3), [before, &packet[cut..]].concat(), "{ethertype:#x}");
    }
    let data = frame(0x0904, &[9; 90]);
    let packet_out = PofPacketOut {
        buffer_id: NO_BUFFER,
        in_port: 1,
        packet_length_bytes: data.len() as u32,
        actions: vec![part(4, 14, 0)],
        data: data.clone(),
    };
    peer.tell(&PofMessage::PacketOut(packet_out));
    let left = lab.pop(4);
    assert_eq!(left[..data.len() - 14], data[14..]);
    assert!(left[data.len() - 14..].iter().all(|byte| *byte == 0), "a short frame is padded");
    assert!(lab.is_quiet());
}

/// Only a frame that is shorter than 60 bytes with its metadata is padded.
#[test]
fn a_part_of_a_short_frame_has_no_bytes_behind_its_end() {
    for (name, dialect) in [("1.2", PofDialect::V1_2), ("1.4.0.015", PofDialect::V1_4)] {
        let mut lab = Lab::start(&format!("dialect = {name:?}"));
        let mut peer = Peer::connect_in(dialect, lab.pof);
        peer.tell(&table(PofTableType::Mask, 0, &[field(96, 16)]));
        peer.tell(&table(PofTableType::Mask, 1, &[]));
        // Both dialects remove the first 14 bytes.
        let base = if dialect == PofDialect::V1_2 { 6 } else { 4 };
        let packet_offset_bytes = if dialect == PofDialect::V1_2 { 14 } else { 10 };
        peer.tell(&PofMessage::FlowMod(of_type(0x0901, vec![goto(1, base)])));
        let output = OutputAction {
            port: PofOperand::Number(3),
            metadata_offset_bits: 32,
            metadata_length_bits: 128,
            packet_offset_bytes,
        };
        let second = entry(0, vec![], vec![apply(vec![PofAction::Output(output)])]);
        peer.tell(&PofMessage::FlowMod(PofFlowMod { table: 1, ..second }));
        for length in [64, 63, 60, 59, 58, 57, 40, 14] {
            for _ in 0..3 {
                let packet = &frame(0x0901, &[1, 2, 3, 4])[..length];
                lab.push(1, packet);
                let mut expected = [&[0; 16], &packet[14..]].concat();
                expected.resize(expected.len().max(60), 0);
                assert_eq!(lab.pop(3), expected, "{name}, {length} bytes");
            }
        }
        lab.push(1, &frame(0x0901, &[])[..13]);
        assert!(lab.is_quiet());
    }
}

/// A GOTO of dialect 1.4.0.015 may move the base backward.
#[test]
fn a_goto_may_return_to_an_earlier_header() {
    let (mut lab, mut peer) = start("");
    for (number, key) in [(1, field(0, 8)), (2, field(96, 16))] {
        peer.tell(&table(PofTableType::Mask, number, &[key]));
    }
    peer.tell(&PofMessage::FlowMod(of_type(0x0908, vec![goto(1, 14)])));
    let back = entry(1, vec![equals(field(0, 8), 7)], vec![goto(2, (-14i16).cast_unsigned())]);
    peer.tell(&PofMessage::FlowMod(PofFlowMod { table: 1, ..back }));
    let last = of_type(0x0908, vec![apply(vec![output(2)])]);
    peer.tell(&PofMessage::FlowMod(PofFlowMod { table: 2, ..last }));
    for _ in 0..3 {
        let packet = frame(0x0908, &[7]);
        lab.push(1, &packet);
        assert_eq!(lab.pop(2), packet);
    }
    lab.push(1, &frame(0x0908, &[8]));
    assert!(lab.is_quiet());
}

/// Public switches of dialect 1.4.0.015 take the longest prefix, and those of dialect 1.2 the highest
/// priority.
#[test]
fn the_longest_prefix_is_hit_in_dialect_1_4() {
    let prefix_field = field(240, 32);
    for (name, dialect, expected) in [("1.2", PofDialect::V1_2, 2), ("1.4.0.015", PofDialect::V1_4, 3)] {
        // The shorter prefix has the higher priority, or is added first.
        for priorities in [[9, 3], [0, 0]] {
            let mut lab = Lab::start(&format!("dialect = {name:?}"));
            let mut peer = Peer::connect_in(dialect, lab.pof);
            peer.tell(&table(PofTableType::Mask, 0, &[field(96, 16)]));
            peer.tell(&table(PofTableType::LongestPrefix, 0, &[prefix_field]));
            peer.tell(&PofMessage::FlowMod(of_type(0x0800, vec![goto(10, 0)])));
            for (index, (bits, priority)) in [8, 16].into_iter().zip(priorities).enumerate() {
                let mask = u128::MAX << (128 - bits);
                let value = (0x0a01_0000u128 << 96) & mask;
                let matches = vec![PofMatch { field: prefix_field, value, mask }];
                let m = entry(index as u32, matches, vec![apply(vec![output(index as u32 + 2)])]);
                let table_type = PofTableType::LongestPrefix;
                peer.tell(&PofMessage::FlowMod(PofFlowMod { table_type, priority, ..m }));
            }
            let mut packet = frame(0x0800, &[0x45]);
            packet[30..34].copy_from_slice(&[10, 1, 2, 3]);
            lab.push(1, &packet);
            assert_eq!(lab.pop(expected), packet, "{name} {priorities:?}");
            assert!(lab.is_quiet());
        }
    }
}

/// Packets reach the entry with two bases. The dialects count from different positions.
#[test]
fn an_output_of_a_part_counts_from_the_base_or_the_first_byte() {
    for (name, dialect, expected) in
        [("1.2", PofDialect::V1_2, [5, 5]), ("1.4.0.015", PofDialect::V1_4, [19, 23])]
    {
        let mut lab = Lab::start(&format!("dialect = {name:?}"));
        let mut peer = Peer::connect_in(dialect, lab.pof);
        peer.tell(&table(PofTableType::Mask, 0, &[field(96, 16)]));
        peer.tell(&table(PofTableType::Mask, 1, &[]));
        let output = OutputAction {
            port: PofOperand::Number(3),
            metadata_offset_bits: 16,
            metadata_length_bits: 8,
            packet_offset_bytes: 5,
        };
        for (index, (ethertype, base)) in [(0x0901, 14), (0x0902, 18)].into_iter().enumerate() {
            let index = index as u32;
            let first = PofFlowMod { index, ..of_type(ethertype, vec![goto(1, base)]) };
            peer.tell(&PofMessage::FlowMod(first));
        }
        let second = entry(0, vec![], vec![apply(vec![PofAction::Output(output)])]);
        peer.tell(&PofMessage::FlowMod(PofFlowMod { table: 1, ..second }));
        // Several packets, because the first of a flow takes another way through the switch.
        for _ in 0..3 {
            for (ethertype, cut) in [0x0901, 0x0902].into_iter().zip(expected) {
                let mut packet = frame(ethertype, &[1, 2, 3, 4]);
                packet.extend(0..100);
                lab.push(1, &packet);
                assert_eq!(lab.pop(3), [&[1], &packet[cut..]].concat(), "{name} {ethertype:#x}");
            }
        }
        assert!(lab.is_quiet());
    }
}

#[test]
fn a_field_without_mask_bits_matches_packets_that_end_before_it() {
    let lab_and_peer = |mask| {
        let lab = Lab::start("");
        let mut peer = lab.peer();
        // The packets have 64 bytes.
        let behind = field(64 * 8 - 8, 16);
        peer.tell(&table(PofTableType::Mask, 0, &[behind]));
        let condition = PofMatch { field: behind, value: 0, mask };
        peer.tell(&PofMessage::FlowMod(entry(0, vec![condition], vec![apply(vec![output(2)])])));
        (lab, peer)
    };
    let mut packet = frame(0x0908, &[]);
    packet[63] = 0;
    let (mut lab, _peer) = lab_and_peer(0);
    lab.push(1, &packet);
    assert_eq!(lab.pop(2), packet);
    // The first byte of the field is present and 0, but the field is not complete.
    let (mut lab, _peer) = lab_and_peer(0xff << 120);
    lab.push(1, &packet);
    assert!(lab.is_quiet());
}

#[test]
fn a_disabled_port_neither_sends_nor_receives() {
    let (mut lab, mut peer) = start("");
    peer.tell(&PofMessage::FlowMod(of_type(0x0908, vec![apply(vec![output(2)])])));
    let set = |number, forwarding| {
        let port = PofPort { number, forwarding, ..PofPort::default() };
        PofMessage::PortMod(PofPortStatus { reason: PofPortReason::Modify, port })
    };
    let packet = frame(0x0908, &[]);
    for port in [1, 2] {
        for forwarding in [PofForwarding::Disabled, PofForwarding::Enabled] {
            peer.send(&set(port, forwarding));
            let status = loop {
                match peer.receive() {
                    (0, PofMessage::PortStatus(status)) => break status,
                    (_, PofMessage::Error(error)) => panic!("{error:?}"),
                    _ => {}
                }
            };
            assert_eq!((status.reason, status.port.number), (PofPortReason::Modify, port));
            assert_eq!(status.port.forwarding, forwarding);
            peer.settle();
            lab.push(1, &packet);
            if forwarding == PofForwarding::Enabled {
                assert_eq!(lab.pop(2), packet);
            } else {
                assert!(lab.is_quiet());
            }
        }
    }
    assert_eq!(peer.refused(&set(9, PofForwarding::Enabled)).0, error::PORT_MOD_BAD_PORT_ID);
}

#[test]
fn an_entry_of_a_linear_table_is_found_by_its_index() {
    let (mut lab, mut peer) = start("");
    peer.tell(&table(PofTableType::Linear, 3, &[]));
    let index = PofOperand::Number(70);
    let direct = GotoDirectTable { table: TableId(28), packet_offset_bytes: 14, index };
    peer.tell(&PofMessage::FlowMod(of_type(0x0908, vec![PofInstruction::GotoDirectTable(direct)])));
    let packet = frame(0x0908, &[5]);
    lab.push(1, &packet);
    assert!(lab.is_quiet());
    for (index, port) in [(69, 2), (70, 3)] {
        // The base is behind the Ethernet header.
        let set = PofAction::SetField(equals(field(0, 8), 0x77));
        let mut m = entry(index, vec![], vec![apply(vec![set, output(port)])]);
        (m.table_type, m.table) = (PofTableType::Linear, 3);
        peer.tell(&PofMessage::FlowMod(m));
    }
    lab.push(1, &packet);
    assert_eq!(lab.pop(3), frame(0x0908, &[0x77]));
}
