// SPDX-License-Identifier: Apache-2.0
//! Tests of features that only a controller can use: barriers, packets, roles, asynchronous messages, and
//! several controllers at once.

use crate::lab::{Lab, frame};
use crate::peer::{Peer, add, all_to, flow_mod};
use flow::group::{Bucket, Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::{Action, Field, FlowModCommand, GroupId, MeterId, PortNo, TableId, port_no};
use openflow::bundle::{BundleAdd, BundleControl, BundleKind};
use openflow::features::{Fragments, SwitchConfig};
use openflow::flow_mod::FlowRemovedReason;
use openflow::group::{GroupChange, GroupMod};
use openflow::meter::MeterMod;
use openflow::multipart::flow_stats::FlowQuery;
use openflow::multipart::table_features::TableFeatures;
use openflow::multipart::{Answer, MultipartRequest, Query};
use openflow::packet::{PacketInCode, PacketInMessage, PacketOutMessage};
use openflow::port::{PortModMessage, PortStatusReason, config};
use openflow::role::{AsyncConfig, Role, RoleMessage};
use openflow::{Message, bundle, error};
use std::time::{Duration, Instant};

/// Number of rounds with busy workers. It is small, because each round may wait for a CPU that busy workers
/// occupy.
const BUSY_ROUNDS: u32 = 2_000;

fn query(query: Query) -> Message {
    Message::MultipartRequest(MultipartRequest { more: false, query })
}

/// Waits for a packet-in and returns it.
fn packet_in(peer: &mut Peer) -> PacketInMessage {
    loop {
        if let (0, Message::PacketIn(packet)) = peer.receive() {
            return packet;
        }
    }
}

/// Runs `rounds` rounds. Each round sends a flow-mod that redirects packets, then a barrier, then a packet
/// into a port of each worker.
fn rounds(idle: &str, rounds: u32) {
    let mut lab = Lab::start_idling(idle, 2, 4, "");
    let mut peer = lab.peer();
    for round in 0..rounds {
        let to = 3 + round % 2;
        peer.send(&all_to(to));
        peer.barrier();
        // Ports 1 and 2 belong to different workers.
        for from in [1, 2] {
            lab.push(from, &frame(9, from as u8));
            assert_eq!(lab.pop(to as usize), frame(9, from as u8), "round {round}");
        }
        let other = 7 - to as usize;
        assert_eq!(lab.ports[other - 1].pop(0), None, "round {round}");
    }
}

#[test]
fn after_a_barrier_packets_meet_the_earlier_changes() {
    rounds("adaptive", 10_000);
}

#[test]
fn after_a_barrier_busy_workers_have_the_changes() {
    rounds("busy", BUSY_ROUNDS);
}

#[test]
fn requests_after_a_barrier_wait_for_its_reply() {
    let lab = Lab::start(2, 2, "");
    let mut peer = lab.peer();
    let mut expected = Vec::new();
    for n in 0..200u16 {
        peer.send(&add(&format!("tcp,tcp_dst={n},actions=output:2")));
        expected.push(peer.send(&Message::BarrierRequest));
        expected.push(peer.send(&Message::GetConfigRequest));
    }
    for xid in expected {
        assert_eq!(peer.receive().0, xid);
    }
}

#[test]
fn packets_go_to_the_controller_and_back() {
    let mut lab = Lab::start(1, 3, "");
    let mut peer = lab.peer();
    peer.send(&add("priority=0,cookie=0x55,actions=controller:20"));
    peer.send(&add("table=1,priority=9,cookie=0x66,actions=controller"));
    peer.send(&add("priority=1,in_port=3,actions=write_metadata:0x99,goto_table:1"));
    peer.barrier();
    lab.push(1, &frame(2, 1));
    let packet = packet_in(&mut peer);
    assert_eq!((packet.reason, packet.table, packet.cookie), (PacketInCode::NoMatch, TableId(0), 0x55));
    let held = packet.buffer_id.unwrap();
    assert_eq!((packet.total_len, &packet.data[..]), (60, &frame(2, 1)[..20]));
    assert_eq!(packet.matching.get(Field::InPort).unwrap().value, 1);
    lab.push(3, &frame(2, 3));
    let packet = packet_in(&mut peer);
    assert_eq!((packet.reason, packet.table, packet.cookie), (PacketInCode::Action, TableId(1), 0x66));
    assert_eq!(packet.matching.get(Field::Metadata).unwrap().value, 0x99);
    assert_eq!((packet.buffer_id, &packet.data), (None, &frame(2, 3)));

    let mut out = PacketOutMessage {
        buffer_id: None,
        in_port: port_no::CONTROLLER,
        actions: vec![Action::set(Field::EthDst, 0x0a0b_0c0d_0e0f), Action::output(PortNo(2))],
        data: frame(2, 1),
    };
    peer.send(&Message::PacketOut(out.clone()));
    peer.barrier();
    assert_eq!(lab.pop(2)[..6], [10, 11, 12, 13, 14, 15]);
    out.in_port = PortNo(1);
    out.actions = vec![Action::output(port_no::FLOOD)];
    peer.send(&Message::PacketOut(out.clone()));
    assert_eq!((lab.pop(2), lab.pop(3)), (frame(2, 1), frame(2, 1)));
    assert_eq!(lab.ports[0].pop(0), None);
    out.buffer_id = Some(held);
    out.data = Vec::new();
    peer.send(&Message::PacketOut(out.clone()));
    assert_eq!((lab.pop(2), lab.pop(3)), (frame(2, 1), frame(2, 1)));
    assert_eq!(peer.refused(&Message::PacketOut(out)), error::BUFFER_UNKNOWN);

    lab.push(1, &frame(7, 1));
    let Message::FlowMod(mut flow) = add("priority=2,in_port=1,actions=output:2") else {
        panic!("not a flow-mod")
    };
    flow.buffer_id = packet_in(&mut peer).buffer_id;
    peer.send(&Message::FlowMod(flow.clone()));
    assert_eq!(lab.pop(2), frame(7, 1), "the buffered packet uses the new flow");
    assert_eq!(peer.refused(&Message::FlowMod(flow)), error::BUFFER_UNKNOWN);
}

#[test]
fn all_controllers_are_notified_of_flows_and_ports() {
    let lab = Lab::start(1, 2, "");
    let (mut one, mut two) = (lab.peer(), lab.peer());
    one.send(&add("priority=7,cookie=0x9,send_flow_rem,tcp,actions=drop"));
    one.send(&add("hard_timeout=1,send_flow_rem,udp,actions=drop"));
    one.send(&add("icmp,actions=drop"));
    one.barrier();
    one.send(&flow_mod(FlowModCommand::Delete, "icmp"));
    one.send(&flow_mod(FlowModCommand::Delete, "tcp"));
    for peer in [&mut one, &mut two] {
        for reason in [FlowRemovedReason::Delete, FlowRemovedReason::HardTimeout] {
            let (_, Message::FlowRemoved(removed)) = peer.receive() else { panic!("unexpected message") };
            assert_eq!(removed.reason, reason);
            if reason == FlowRemovedReason::Delete {
                assert_eq!((removed.priority, removed.cookie), (7, 9));
                assert_eq!(removed.matching.to_string(), "tcp");
            }
        }
    }
    let down = PortModMessage {
        port: PortNo(2),
        mac: [0; 6],
        config: config::PORT_DOWN,
        mask: config::PORT_DOWN | config::NO_RECV,
        advertise: 0,
    };
    one.send(&Message::PortMod(down));
    for peer in [&mut one, &mut two] {
        let (0, Message::PortStatus(status)) = peer.receive() else { panic!("unexpected message") };
        assert_eq!((status.reason, status.port.number), (PortStatusReason::Modify, PortNo(2)));
        assert_eq!((status.port.config, status.port.state), (config::PORT_DOWN, 0));
    }
    let other = Message::PortMod(PortModMessage { port: PortNo(3), ..down });
    assert_eq!(one.refused(&other), error::PORT_MOD_BAD_PORT);
    let other = Message::PortMod(PortModMessage { mac: [1; 6], ..down });
    assert_eq!(one.refused(&other), error::PORT_MOD_BAD_HW_ADDR);
    let other = Message::PortMod(PortModMessage { mask: 2, ..down });
    assert_eq!(one.refused(&other), error::PORT_MOD_BAD_CONFIG);
}

/// Returns a TABLE_FEATURES request that names these tables and requests no properties.
fn lay_out(tables: &[u8], more: bool) -> Message {
    let named = |table: &u8| TableFeatures {
        table: TableId(*table),
        name: String::new(),
        metadata_match: 0,
        metadata_write: 0,
        config: 0,
        max_entries: 10,
        properties: vec![],
    };
    let query = Query::TableFeatures(tables.iter().map(named).collect());
    Message::MultipartRequest(MultipartRequest { more, query })
}

/// Returns the tables in a reply to TABLE_FEATURES.
fn reported(reply: &Message) -> Vec<u8> {
    let Message::MultipartReply(reply) = reply else { panic!("{reply:?}") };
    let Answer::TableFeatures(tables) = &reply.answer else { panic!("{reply:?}") };
    tables.iter().map(|features| features.table).map(|number| number.0).collect()
}

/// OpenFlow 1.3.5, 7.3.5.5: omitted tables are removed, and their entries are deleted without flow-removed
/// messages.
#[test]
fn tables_omitted_from_table_features_are_removed() {
    let mut lab = Lab::start(1, 2, "");
    let mut peer = lab.peer();
    peer.send(&flow_mod(FlowModCommand::Delete, "table=all"));
    for line in [
        "table=0,actions=goto_table:1",
        "table=1,actions=output:2",
        "table=1,priority=9,in_port=2,send_flow_rem,actions=goto_table:3",
        "table=3,send_flow_rem,actions=output:1",
    ] {
        peer.send(&add(line));
    }
    peer.barrier();
    assert_eq!(lab.flows().len(), 4);
    let asked = peer.send(&lay_out(&[0, 1], false));
    let (xid, reply) = peer.receive();
    assert_eq!(
        (xid, reported(&reply)),
        (asked, vec![0, 1]),
        "no flow-removed message comes before the reply"
    );
    assert_eq!(lab.flows().len(), 2, "{:?}", lab.flows());
    lab.push(1, &frame(2, 1));
    assert_eq!(lab.pop(2), frame(2, 1));
    let Message::MultipartReply(stats) = peer.ask(&query(Query::Table)) else { panic!("unexpected message") };
    assert!(matches!(&stats.answer, Answer::Table(tables) if tables.len() == 2), "{stats:?}");

    assert_eq!(peer.refused(&add("table=3,actions=drop")), error::FLOW_MOD_BAD_TABLE_ID);
    assert_eq!(
        peer.refused(&add("table=1,priority=7,actions=goto_table:3")),
        error::INSTRUCTION_BAD_TABLE_ID
    );
    for wrong in [&[1][..], &[0, 1, 1], &[0, 255]] {
        assert_eq!(peer.refused(&lay_out(wrong, false)), error::TABLE_FEATURES_BAD_TABLE, "{wrong:?}");
    }
    assert_eq!(reported(&peer.ask(&lay_out(&[], false))), [0, 1]);
    assert_eq!(lab.flows().len(), 2, "refused requests and queries change nothing");

    // Send the request in two parts. The request restores removed tables.
    peer.send(&lay_out(&[0, 1], true));
    let asked = peer.send_part(&lay_out(&[3, 200], false));
    assert_eq!(reported(&peer.answer_to(asked)), [0, 1, 3, 200]);
    assert_eq!(lab.flows().len(), 2);
    peer.send(&add("table=1,priority=7,actions=goto_table:3"));
    peer.send(&add("table=3,actions=output:2"));
    peer.send(&flow_mod(FlowModCommand::Delete, "table=all"));
    peer.barrier();
}

/// Returns the number of tables of the pipeline.
fn tables(peer: &mut Peer) -> usize {
    let Message::MultipartReply(stats) = peer.ask(&query(Query::Table)) else { panic!("unexpected message") };
    let Answer::Table(tables) = &stats.answer else { panic!("{stats:?}") };
    tables.len()
}

#[test]
fn parts_of_a_layout_belong_to_one_request() {
    let lab = Lab::start(1, 2, "");
    let mut peer = lab.peer();
    peer.send(&add("table=3,actions=output:1"));
    peer.barrier();
    let refused = |peer: &mut Peer, asked| match peer.answer_to(asked) {
        Message::Error(error) => error.code,
        other => panic!("not refused: {other:?}"),
    };
    // A request with a refused part is refused as a whole, even if other messages come between its parts.
    let asked = peer.send(&lay_out(&[0, 255], true));
    assert_eq!(refused(&mut peer, asked), error::TABLE_FEATURES_BAD_TABLE);
    peer.send_part(&lay_out(&[0], false));
    assert_eq!(refused(&mut peer, asked), error::TABLE_FEATURES_BAD_ARGUMENT);
    // The whole request is also refused if a part cannot be decoded, here because of a property of one byte.
    let mut bytes = Vec::new();
    openflow::encode(&lay_out(&[1], true), 5_000, &mut bytes).unwrap();
    let length = u16::try_from(bytes.len() + 8).unwrap();
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes[16..18].copy_from_slice(&72_u16.to_be_bytes());
    bytes.extend([0, 0, 0, 1, 0, 0, 0, 0]);
    peer.send_bytes(&bytes);
    assert!(matches!(peer.answer_to(5_000), Message::Error(_)));
    bytes.clear();
    openflow::encode(&lay_out(&[0], false), 5_000, &mut bytes).unwrap();
    peer.send_bytes(&bytes);
    assert_eq!(refused(&mut peer, 5_000), error::TABLE_FEATURES_BAD_ARGUMENT);
    // An unfinished request and other messages do not affect each other.
    peer.send(&lay_out(&[0], true));
    assert!(matches!(peer.ask(&lay_out(&[], false)), Message::MultipartReply(_)));
    assert_eq!(tables(&mut peer), 255);
    assert_eq!(lab.flows().len(), 2, "{:?}", lab.flows());
    let asked = peer.send(&lay_out(&[1], true));
    peer.send_bytes(&wrong_flow_mod());
    peer.send_part(&lay_out(&[0], false));
    assert_eq!(reported(&peer.answer_to(asked)), [0, 1]);
}

#[test]
fn a_slave_does_not_finish_the_layout_that_it_began() {
    let lab = Lab::start(1, 2, "");
    let mut peer = lab.peer();
    let role = |role| Message::RoleRequest(RoleMessage { role, generation_id: 1 });
    let asked = peer.send(&lay_out(&[0], true));
    let mut bytes = Vec::new();
    openflow::encode(&role(Role::Slave), 6_000, &mut bytes).unwrap();
    peer.send_bytes(&bytes);
    assert!(matches!(peer.answer_to(6_000), Message::RoleReply(_)));
    peer.send_part(&lay_out(&[], false));
    let Message::Error(error) = peer.answer_to(asked) else { panic!("not refused") };
    assert_eq!(error.code, error::IS_SLAVE);
    assert_eq!(tables(&mut peer), 255);
}

/// Returns a flow-mod with transaction ID 77. Its match has an unknown field of class 0x8000. The flow-mod is
/// not longer than the data of an ERROR.
fn wrong_flow_mod() -> Vec<u8> {
    let mut bytes = vec![4, 14, 0, 64, 0, 0, 0, 77];
    bytes.resize(48, 0);
    bytes.extend([0, 1, 0, 12, 0x80, 0, 0x70, 4, 0, 0, 0, 1, 0, 0, 0, 0]);
    bytes
}

/// As in Open vSwitch, a HELLO of version 0 is an error and ends the connection.
#[test]
fn a_later_hello_of_version_0_is_refused() {
    let lab = Lab::start(1, 1, "");
    let mut peer = lab.peer();
    peer.send_bytes(&[4, 0, 0, 8, 0, 0, 0, 5]);
    peer.barrier();
    peer.send_bytes(&[0, 0, 0, 8, 0, 0, 0, 6]);
    let (6, Message::Error(error)) = peer.receive() else { panic!("unexpected message") };
    assert_eq!(error.code, error::BAD_VERSION);
    assert_eq!(peer.receive_bytes(), None);
}

#[test]
fn there_is_one_master_and_slaves_only_read() {
    let mut lab = Lab::start(1, 2, "");
    let (mut one, mut two) = (lab.peer(), lab.peer());
    let role = |role, generation_id| Message::RoleRequest(RoleMessage { role, generation_id });
    let is = |role, generation_id| Message::RoleReply(RoleMessage { role, generation_id });
    assert_eq!(one.ask(&role(Role::NoChange, 0)), is(Role::Equal, u64::MAX));
    assert_eq!(one.ask(&role(Role::Master, 1)), is(Role::Master, 1));
    assert_eq!(two.ask(&role(Role::Master, 2)), is(Role::Master, 2));
    assert_eq!(one.ask(&role(Role::NoChange, 0)), is(Role::Slave, 2));
    assert_eq!(one.refused(&role(Role::Master, 1)), error::ROLE_STALE);
    assert_eq!(one.refused(&add("actions=drop")), error::IS_SLAVE);
    // For a slave, the switch checks the role before the contents.
    let unknown_field = wrong_flow_mod();
    for (peer, code) in [(&mut one, error::IS_SLAVE), (&mut two, error::MATCH_BAD_FIELD)] {
        peer.send_bytes(&unknown_field);
        let Message::Error(error) = peer.answer_to(77) else { panic!("unexpected message") };
        assert_eq!((error.code, &error.data[..]), (code, &unknown_field[..]));
    }
    // The switch checks the role that the peer has when the message is processed.
    let asked = one.send(&role(Role::Equal, 0));
    one.send_bytes(&unknown_field);
    assert_eq!(one.answer_to(asked), is(Role::Equal, 2));
    assert!(matches!(one.answer_to(77), Message::Error(error) if error.code == error::MATCH_BAD_FIELD));
    assert_eq!(one.ask(&role(Role::Slave, 2)), is(Role::Slave, 2));
    assert!(matches!(one.ask(&query(Query::PortDesc)), Message::MultipartReply(_)));
    let config = |fragments, miss_send_len| SwitchConfig { fragments, miss_send_len };
    let before = two.ask(&Message::GetConfigRequest);
    one.send(&Message::SetConfig(config(Fragments::Drop, 99)));
    assert_eq!(
        one.ask(&Message::GetConfigRequest),
        Message::GetConfigReply(config(Fragments::Normal, 99)),
        "the switch has one fragment mode, and each channel has a length"
    );
    assert_eq!(two.ask(&Message::GetConfigRequest), before);
    two.send(&Message::SetConfig(config(Fragments::Drop, 128)));
    two.barrier();
    assert_eq!(one.ask(&Message::GetConfigRequest), Message::GetConfigReply(config(Fragments::Drop, 99)));
    two.send(&Message::SetConfig(config(Fragments::Normal, 128)));
    two.barrier();

    two.send(&add("priority=9,actions=controller"));
    two.barrier();
    lab.push(1, &frame(2, 1));
    packet_in(&mut two);
    let masks = AsyncConfig { packet_in: [0, 0b11], ..AsyncConfig::default() };
    one.send(&Message::SetAsync(masks));
    assert_eq!(one.ask(&Message::GetAsyncRequest), Message::GetAsyncReply(masks));
    two.send(&Message::SetAsync(masks));
    two.barrier();
    lab.push(1, &frame(3, 1));
    assert_eq!(
        packet_in(&mut one).data,
        frame(3, 1),
        "a slave gets the packets that arrive after its request for packet-ins"
    );
    let asked = two.send(&Message::BarrierRequest);
    assert_eq!(
        two.receive(),
        (asked, Message::BarrierReply),
        "a master without a request for packet-ins gets none"
    );
    drop(two);
    assert_eq!(one.ask(&role(Role::Equal, 0)), is(Role::Equal, 2));
    one.send(&add("tcp,actions=drop"));
    one.barrier();
}

#[test]
fn a_bundle_is_applied_as_a_whole_or_not_at_all() {
    let lab = Lab::start(1, 2, "");
    let mut peer = lab.peer();
    peer.send(&flow_mod(FlowModCommand::Delete, ""));
    let control =
        |kind| Message::BundleControl(BundleControl { bundle_id: 4, kind, flags: bundle::FLAG_ATOMIC });
    let part = |message| {
        Message::BundleAdd(BundleAdd { bundle_id: 4, flags: bundle::FLAG_ATOMIC, message: Box::new(message) })
    };
    assert_eq!(peer.ask(&control(BundleKind::OpenRequest)), control(BundleKind::OpenReply));
    assert_eq!(peer.refused(&control(BundleKind::OpenRequest)), bundle::code::BUNDLE_EXIST);
    peer.send(&part(add("tcp,actions=drop")));
    let wrong = peer.send(&part(add("udp,actions=group:77")));
    let commit = peer.send(&control(BundleKind::CommitRequest));
    let (first, second) = (peer.receive(), peer.receive());
    assert!(
        matches!(first, (xid, Message::Error(e)) if xid == wrong && e.code == error::ACTION_BAD_OUT_GROUP)
    );
    assert!(
        matches!(second, (xid, Message::Error(e)) if xid == commit && e.code == bundle::code::MSG_FAILED)
    );
    assert_eq!(lab.flows(), [""; 0]);
    assert_eq!(peer.refused(&control(BundleKind::CommitRequest)), bundle::code::BAD_ID);

    peer.ask(&control(BundleKind::OpenRequest));
    for n in 0..1_000 {
        peer.send(&part(add(&format!("tcp,tcp_dst={n},actions=drop"))));
    }
    assert_eq!(peer.ask(&control(BundleKind::CommitRequest)), control(BundleKind::CommitReply));
    assert_eq!(lab.flows().len(), 1_000);
    peer.ask(&control(BundleKind::OpenRequest));
    peer.send(&part(add("udp,actions=drop")));
    assert_eq!(peer.ask(&control(BundleKind::DiscardRequest)), control(BundleKind::DiscardReply));
    assert_eq!(lab.flows().len(), 1_000);
}

/// Changes of groups, meters, ports and flows in a bundle are atomic. When a group is deleted, the removal of
/// its entries is reported.
#[test]
fn a_bundle_may_change_groups_meters_and_ports() {
    let mut lab = Lab::start(1, 3, "");
    let mut peer = lab.peer();
    peer.send(&flow_mod(FlowModCommand::Delete, ""));
    let control = |kind| {
        let flags = bundle::FLAG_ATOMIC | bundle::FLAG_ORDERED;
        Message::BundleControl(BundleControl { bundle_id: 4, kind, flags })
    };
    let part = |message| {
        let flags = bundle::FLAG_ATOMIC | bundle::FLAG_ORDERED;
        Message::BundleAdd(BundleAdd { bundle_id: 4, flags, message: Box::new(message) })
    };
    let group = |command, id, port| {
        let bucket = Bucket { actions: vec![Action::output(port)], ..Bucket::default() };
        let group = Group { id, kind: GroupType::Indirect, buckets: vec![bucket] };
        Message::GroupMod(GroupMod { command, group })
    };
    let bands = vec![MeterBand { band: Band::Drop, rate: 1_000_000, burst: 0 }];
    let meter = Meter { id: MeterId(2), packets: true, stats: true, burst: false, bands };
    let port = |config| {
        Message::PortMod(PortModMessage {
            port: PortNo(3),
            mac: [0; 6],
            config,
            mask: config::NO_FWD,
            advertise: 0,
        })
    };
    let messages = [
        group(GroupChange::Add, GroupId(1), PortNo(2)),
        Message::MeterMod(MeterMod { command: GroupChange::Add, meter }),
        add("send_flow_rem,in_port=1,actions=meter:2,group:1"),
        port(config::NO_FWD),
    ];
    peer.ask(&control(BundleKind::OpenRequest));
    for message in &messages {
        peer.send(&part(message.clone()));
    }
    let wrong = peer.send(&part(group(GroupChange::Modify, GroupId(9), PortNo(2))));
    let commit = peer.send(&control(BundleKind::CommitRequest));
    assert!(
        matches!(peer.receive(), (xid, Message::Error(e)) if xid == wrong && e.code == error::GROUP_UNKNOWN)
    );
    assert!(matches!(peer.receive(), (xid, Message::Error(_)) if xid == commit));
    assert_eq!(
        (lab.flows().len(), lab.ofctl(&["dump-groups"]).lines().count()),
        (0, 1),
        "a part of the bundle was applied"
    );

    peer.ask(&control(BundleKind::OpenRequest));
    for message in &messages {
        peer.send(&part(message.clone()));
    }
    peer.send(&part(group(GroupChange::Modify, GroupId(1), PortNo(3))));
    peer.send(&part(port(0)));
    // The two changes of the port are reported before the reply.
    let commit = peer.send(&control(BundleKind::CommitRequest));
    assert_eq!(peer.answer_to(commit), control(BundleKind::CommitReply));
    peer.barrier();
    lab.push(1, &frame(7, 1));
    assert_eq!(lab.pop(3), frame(7, 1), "the last change of the group and of the port applies");
    let out = PacketOutMessage {
        buffer_id: None,
        in_port: port_no::CONTROLLER,
        actions: vec![],
        data: frame(1, 2),
    };
    assert_eq!(peer.refused(&part(Message::PacketOut(out))), bundle::code::MSG_UNSUP);

    peer.send(&group(GroupChange::Delete, GroupId(1), PortNo(2)));
    loop {
        match peer.receive() {
            (_, Message::PortStatus(_)) => {}
            (_, Message::FlowRemoved(removed)) => {
                break assert_eq!(removed.reason, FlowRemovedReason::GroupDelete);
            }
            (_, other) => panic!("{other:?}"),
        }
    }
}

/// A packet with an expired TTL goes to the controllers that request such packets. Fragments are dropped if a
/// controller requests it.
#[test]
fn invalid_ttls_and_fragments_are_treated_as_configured() {
    let mut lab = Lab::start(1, 2, "");
    let (mut one, mut two) = (lab.peer(), lab.peer());
    one.send(&add("cookie=0x7,priority=9,ip,actions=dec_ttl,output:2"));
    one.barrier();
    let ip = |ttl, fragment: u8| {
        let mut bytes = frame(7, 1)[..12].to_vec();
        bytes.extend([8, 0, 0x45, 0, 0, 20, 0, 0, fragment, 0, ttl, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.resize(60, 0);
        bytes
    };
    let normal = AsyncConfig::default();
    let asked = AsyncConfig { packet_in: [0b111, 0], ..normal };
    lab.push(1, &ip(1, 0));
    lab.push(1, &ip(9, 0));
    lab.pop(2);
    one.send(&Message::SetAsync(asked));
    one.barrier();
    lab.push(1, &ip(1, 0));
    let reported = packet_in(&mut one);
    assert_eq!((reported.reason, reported.cookie, reported.table), (PacketInCode::InvalidTtl, 7, TableId(0)));
    assert_eq!(reported.data, ip(1, 0), "the packet is complete and unchanged");
    // The other controller did not request such packets, so it gets only the reply to its barrier.
    two.barrier();
    one.send(&Message::SetAsync(normal));
    one.barrier();
    lab.push(1, &ip(0, 0));
    lab.push(1, &ip(9, 0x20));
    lab.pop(2);

    let config = |fragments| SwitchConfig { fragments, miss_send_len: 64 };
    assert_eq!(
        one.refused(&Message::SetConfig(config(Fragments::Reassemble))),
        error::SWITCH_CONFIG_BAD_FLAGS
    );
    one.send(&Message::SetConfig(config(Fragments::Drop)));
    one.barrier();
    let Message::GetConfigReply(got) = two.ask(&Message::GetConfigRequest) else {
        panic!("no configuration")
    };
    assert_eq!(
        (got.fragments, got.miss_send_len),
        (Fragments::Drop, 128),
        "each channel has a separate length"
    );
    lab.push(1, &ip(9, 0x20));
    lab.push(1, &ip(3, 0));
    assert_eq!(lab.pop(2)[22], 2, "the fragment before this packet was dropped");
    one.send(&Message::SetConfig(config(Fragments::Normal)));
    one.barrier();
    lab.push(1, &ip(5, 0x20));
    assert_eq!(lab.pop(2)[22], 4);
}

/// No action sets the length of a packet-in for an invalid TTL, so each channel's miss_send_len applies.
#[test]
fn packet_ins_for_invalid_ttls_are_cut_per_channel() {
    let mut lab = Lab::start(1, 2, "");
    let mut peers = [lab.peer(), lab.peer(), lab.peer()];
    for (peer, miss_send_len) in peers.iter_mut().zip([40, 0xffff, 40]) {
        peer.send(&Message::SetConfig(SwitchConfig { fragments: Fragments::Normal, miss_send_len }));
        peer.send(&Message::SetAsync(AsyncConfig { packet_in: [0b111, 0], ..AsyncConfig::default() }));
        peer.barrier();
    }
    peers[0].send(&add("priority=9,ip,actions=dec_ttl,output:2"));
    peers[0].barrier();
    let mut bytes = frame(7, 1)[..12].to_vec();
    bytes.extend([8, 0, 0x45, 0, 0, 20, 0, 0, 0, 0, 1, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.resize(60, 0);
    lab.push(1, &bytes);
    let [cut, whole, also_cut] = peers.each_mut().map(packet_in);
    for reported in [&cut, &also_cut] {
        assert_eq!((reported.reason, reported.total_len), (PacketInCode::InvalidTtl, 60));
        assert_eq!(reported.data, bytes[..40]);
    }
    assert_eq!((whole.buffer_id, &whole.data), (None, &bytes));
    // The buffer holds the whole packet.
    let actions = vec![Action::output(PortNo(2))];
    let out = PacketOutMessage { buffer_id: cut.buffer_id, in_port: PortNo(1), actions, data: Vec::new() };
    assert!(out.buffer_id.is_some() && also_cut.buffer_id.is_some());
    peers[0].send(&Message::PacketOut(out));
    peers[0].barrier();
    assert_eq!(lab.pop(2), bytes);
}

/// A modify resets the counters only if its flags request it. Counters that an entry does not keep are not
/// reported.
#[test]
fn counters_are_reset_and_omitted_as_requested() {
    let mut lab = Lab::start(1, 2, "");
    let mut peer = lab.peer();
    peer.send(&flow_mod(FlowModCommand::Delete, ""));
    peer.send(&add("priority=9,in_port=1,actions=output:2"));
    peer.barrier();
    let counts = |peer: &mut Peer| {
        let Message::MultipartReply(reply) = peer.ask(&query(Query::Flow(FlowQuery::default()))) else {
            panic!("no statistics")
        };
        let Answer::Flow(flows) = reply.answer else { panic!("no flows") };
        flows.iter().map(|flow| (flow.packets, flow.bytes)).collect::<Vec<_>>()
    };
    let mut send = |count: u8| {
        for n in 0..count {
            lab.push(1, &frame(7, n));
            lab.pop(2);
        }
    };
    send(3);
    assert_eq!(counts(&mut peer), [(3, 180)]);
    peer.send(&flow_mod(FlowModCommand::Modify, "in_port=1,reset_counts,actions=output:2"));
    peer.barrier();
    assert_eq!(counts(&mut peer), [(0, 0)]);
    send(2);
    peer.send(&flow_mod(FlowModCommand::Modify, "in_port=1,actions=output:2"));
    peer.barrier();
    assert_eq!(counts(&mut peer), [(2, 120)]);
    peer.send(&add("priority=9,in_port=1,no_packet_counts,actions=output:2"));
    peer.barrier();
    send(1);
    assert_eq!(counts(&mut peer), [(u64::MAX, 180)]);
}

/// A change of many entries delays no echo replies, on any connection.
#[test]
fn a_long_change_does_not_keep_echoes_waiting() {
    const ENTRIES: usize = 200_000;
    let lab = Lab::start(1, 2, "");
    let (mut one, mut two) = (lab.peer(), lab.peer());
    for n in 0..ENTRIES {
        one.send(&add(&format!("priority={},tcp,tcp_dst={},actions=output:1", 1 + n / 65_536, n % 65_536)));
    }
    one.barrier();
    one.send(&flow_mod(FlowModCommand::Delete, ""));
    let waiter = std::thread::spawn(move || {
        let start = Instant::now();
        one.barrier();
        start.elapsed()
    });
    let (mut answered, mut longest) = (0, Duration::ZERO);
    while !waiter.is_finished() {
        let start = Instant::now();
        assert_eq!(two.ask(&Message::EchoRequest(vec![2])), Message::EchoReply(vec![2]));
        longest = longest.max(start.elapsed());
        answered += 1;
    }
    let took = waiter.join().unwrap();
    println!("{answered} echoes were answered in {took:?}, the longest wait {longest:?}");
    assert!(answered > 3, "{answered} echoes in {took:?}");
    assert_eq!(lab.flows().len(), 0);
}

/// If a client disconnects while the model is lent, the control thread still sleeps.
#[test]
fn the_control_thread_sleeps_during_a_long_change() {
    const ENTRIES: usize = 200_000;
    let lab = Lab::start(1, 2, "");
    let mut peer = lab.peer();
    let client = lab.control_client();
    for n in 0..ENTRIES {
        peer.send(&add(&format!("priority={},tcp,tcp_dst={},actions=output:1", 1 + n / 65_536, n % 65_536)));
    }
    peer.barrier();
    let (start, before) = (Instant::now(), lab.control_cpu());
    peer.send(&flow_mod(FlowModCommand::Modify, "actions=output:2"));
    // Another thread now owns the model, until the change is complete.
    std::thread::sleep(Duration::from_millis(20));
    drop(client);
    peer.barrier();
    let (took, cpu) = (start.elapsed(), lab.control_cpu() - before);
    println!("{cpu:?} of {took:?}");
    assert!(cpu < took / 10, "{cpu:?} of {took:?}");
}

/// A long dump does not delay other requests, but a barrier waits for its end.
#[test]
fn a_long_answer_does_not_delay_other_requests() {
    const ENTRIES: usize = 20_000;
    let lab = Lab::start(1, 2, "");
    let mut peer = lab.peer();
    for n in 0..ENTRIES {
        peer.send(&add(&format!("table=1,ip,nw_dst=10.{}.{}.1,actions=output:2", n / 250, n % 250)));
    }
    peer.barrier();
    let dump = peer.send(&query(Query::Flow(FlowQuery { table: Some(TableId(1)), ..FlowQuery::default() })));
    let late = peer.send(&add("table=1,udp,actions=drop"));
    let echo = peer.send(&Message::EchoRequest(vec![1, 2, 3]));
    let barrier = peer.send(&Message::BarrierRequest);
    let (mut entries, mut parts, mut echoed, mut ended) = (0, 0, None, false);
    loop {
        match peer.receive() {
            (xid, Message::MultipartReply(reply)) if xid == dump => {
                assert!(!ended);
                let Answer::Flow(list) = reply.answer else { panic!("unexpected answer") };
                entries += list.len();
                parts += 1;
                ended = !reply.more;
            }
            (xid, Message::EchoReply(_)) if xid == echo => echoed = Some(parts),
            (xid, Message::BarrierReply) if xid == barrier => break,
            (xid, other) => panic!("{xid} (flow-mod {late}): {other:?}"),
        }
    }
    assert!(ended && (ENTRIES..=ENTRIES + 1).contains(&entries), "{entries} entries");
    assert!(parts > 20, "{parts}");
    assert!(echoed.is_some_and(|at| at < parts), "the echo waited for the whole dump");
}
