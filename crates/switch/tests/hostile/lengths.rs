// SPDX-License-Identifier: Apache-2.0
//! Tests of messages with a wrong length at every position.

use crate::peer::{Peer, add};
use crate::scene::{Scene, bytes_of};
use flow::group::{Bucket, Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::{Action, Field, GroupId, MeterId, PortNo, TableId, port_no};
use openflow::bundle::{BundleAdd, FLAG_ATOMIC};
use openflow::group::{GroupChange, GroupMod};
use openflow::meter::MeterMod;
use openflow::multipart::flow_stats::FlowQuery;
use openflow::multipart::{MultipartRequest, Query};
use openflow::packet::PacketOutMessage;
use openflow::role::{Role, RoleMessage};
use openflow::{Hello, Message, error};
use std::net::{Shutdown, TcpStream};

fn messages() -> Vec<Message> {
    let actions = vec![
        Action::set(Field::EthSrc, 0x0200_0000_0001),
        Action::PushVlan(0x8100),
        Action::output(PortNo(2)),
    ];
    let bucket = Bucket { weight: 0, watch_port: None, watch_group: None, actions: actions.clone() };
    let group = Group { id: GroupId(1), kind: GroupType::All, buckets: vec![bucket.clone(), bucket] };
    let band = MeterBand { band: Band::Drop, rate: 5, burst: 5 };
    let meter = Meter { id: MeterId(1), packets: false, stats: true, burst: true, bands: vec![band; 2] };
    let out = PacketOutMessage { buffer_id: None, in_port: port_no::CONTROLLER, actions, data: vec![3; 60] };
    let flow = add(
        "table=3,ip,nw_src=10.0.0.0/8,tcp,tcp_dst=80,actions=set_field:02:00:00:00:00:01->eth_dst,write_metadata:3,goto_table:4",
    );
    let query = Query::Flow(FlowQuery { table: Some(TableId(1)), ..FlowQuery::default() });
    vec![
        flow.clone(),
        Message::GroupMod(GroupMod { command: GroupChange::Add, group }),
        Message::MeterMod(MeterMod { command: GroupChange::Add, meter }),
        Message::PacketOut(out),
        Message::BundleAdd(BundleAdd { bundle_id: 3, flags: FLAG_ATOMIC, message: Box::new(flow) }),
        Message::MultipartRequest(MultipartRequest { more: false, query }),
        Message::RoleRequest(RoleMessage { role: Role::NoChange, generation_id: 0 }),
        Message::EchoRequest(vec![1; 9]),
        Message::Hello(Hello::supported()),
    ]
}

fn wrong_values(right: u16) -> Vec<u16> {
    let edges = [0, 1, 3, 4, 7, 8, 9, 16, 0x7fff, 0x8000, 0xfff8, 0xffff];
    let near = [1, 4, 8].into_iter().flat_map(|by| [right.wrapping_sub(by), right.wrapping_add(by)]);
    edges.into_iter().chain(near).filter(|value| *value != right).collect()
}

/// Tests a wrong value at each position inside a message. The connection survives, and each message gets at
/// most one answer. The peer is a slave, so that a message that happens to be valid changes nothing.
#[test]
fn wrong_values_within_a_message_do_no_harm() {
    let mut scene = Scene::start();
    let mut peer = scene.lab.peer();
    let slave = RoleMessage { role: Role::Slave, generation_id: 1 };
    assert!(matches!(peer.ask(&Message::RoleRequest(slave)), Message::RoleReply(_)));
    let mut refused = std::collections::BTreeMap::<String, usize>::new();
    for message in messages() {
        let bytes = bytes_of(&message);
        // For these messages, the switch checks the role before the contents. In other messages, a wrong
        // value may yield a request that slaves may send.
        let is_barred = message.is_barred_for_slaves()
            && !matches!(
                message,
                Message::MultipartRequest(_)
                    | Message::BundleControl(_)
                    | Message::BundleAdd(_)
                    | Message::StatelessMod(_)
            );
        for at in (8..bytes.len() - 1).step_by(2) {
            for value in wrong_values(u16::from_be_bytes([bytes[at], bytes[at + 1]])) {
                let mut wrong = bytes.clone();
                wrong[at..at + 2].copy_from_slice(&value.to_be_bytes());
                peer.send_bytes(&wrong);
            }
        }
        // Answers are in order, so the answer to this request follows all earlier ones.
        let asked = peer.send(&Message::GetConfigRequest);
        loop {
            match peer.receive() {
                (xid, _) if xid == asked => break,
                (9, Message::Error(error)) if is_barred => {
                    assert_eq!(error.code, error::IS_SLAVE, "{message:?}")
                }
                (9, Message::Error(error)) => *refused.entry(error.code.to_string()).or_default() += 1,
                (9, Message::MultipartReply(_) | Message::RoleReply(_) | Message::EchoReply(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }
    for code in [error::BAD_LEN, error::IS_SLAVE] {
        assert!(refused.contains_key(&code.to_string()), "{code}: {refused:?}");
    }
    scene.is_logged(1, &["refused: "]);
    scene.is_served();
    scene.end();
}

/// Tests wrong lengths in the header. The switch continues to read as if the length were right. The
/// connection survives, or is closed with a reason.
#[test]
fn wrong_lengths_in_the_header_end_the_connection_at_worst() {
    let mut scene = Scene::start();
    for message in messages() {
        let bytes = bytes_of(&message);
        for value in wrong_values(bytes.len() as u16) {
            let mut wrong = bytes.clone();
            wrong[2..4].copy_from_slice(&value.to_be_bytes());
            // The message is sent as the first message on a connection, and then as a later message of a
            // slave.
            for greets in [false, true] {
                let stream = TcpStream::connect(scene.lab.address).unwrap();
                let mut peer = Peer::silent(stream.try_clone().unwrap());
                if greets {
                    peer.greet();
                    let slave = RoleMessage { role: Role::Slave, generation_id: 1 };
                    peer.send(&Message::RoleRequest(slave));
                }
                peer.send_bytes(&wrong);
                // The switch may have closed the connection already.
                let _ = stream.shutdown(Shutdown::Write);
                while peer.receive_bytes().is_some() {}
            }
        }
        scene.is_served();
    }
    scene.is_logged(1, &["WARN", "closed: ", "the following bytes cannot be parsed"]);
    scene.is_logged(1, &["closed by the peer"]);
    scene.has_grown_at_most(16 * 1_024 * 1_024);
    scene.end();
}
