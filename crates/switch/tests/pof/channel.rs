// SPDX-License-Identifier: Apache-2.0
//! A session from the handshake to forwarded packets.

use crate::lab::{Lab, until};
use crate::peer::{Peer, apply, entry, equals, field, frame, goto, output, table};
use pof::message::port::{PofForwarding, PofPortReason};
use pof::message::table::PofTableType;
use pof::{PofDialect, PofMessage, error};
use std::io::Write;
use std::net::TcpStream;

/// A program of two tables: the EtherType selects the next header, whose first byte selects the port.
#[test]
fn a_program_of_two_tables_forwards_packets() {
    let mut lab = Lab::start("");
    let mut peer = lab.peer();
    let (ethertype, kind) = (field(96, 16), field(0, 8));
    peer.send(&table(PofTableType::Mask, 0, &[ethertype]));
    peer.send(&table(PofTableType::Exact, 1, &[kind]));
    let first = entry(5, vec![equals(ethertype, 0x0908)], vec![goto(21, 14)]);
    let mut second = entry(9, vec![equals(kind, 7)], vec![apply(vec![output(3)])]);
    (second.table_type, second.table) = (PofTableType::Exact, 1);
    peer.send(&PofMessage::FlowMod(first));
    peer.tell(&PofMessage::FlowMod(second));
    let packet = frame(0x0908, &[7, 1, 2]);
    lab.push(1, &frame(0x0908, &[8]));
    lab.push(1, &frame(0x0909, &[7]));
    lab.push(1, &packet);
    assert_eq!(lab.pop(3), packet);
    assert!(lab.is_quiet());
}

#[test]
fn the_answers_of_the_handshake_describe_the_switch() {
    let lab = Lab::start("device_id = 9\ntables = [1, 2, 3, 4]");
    let peer = lab.peer();
    let [features, config, resources, ports @ ..] = &peer.greeting[..] else { panic!("{:?}", peer.greeting) };
    let PofMessage::FeaturesReply(features) = features else { panic!("{features:?}") };
    assert_eq!((features.device_id, features.ports, features.tables), (9, 4, 10));
    assert_eq!(features.capabilities, 0x0f);
    let PofMessage::GetConfigReply(config) = config else { panic!("{config:?}") };
    assert_eq!((config.device_id, config.flags), (9, 0));
    let PofMessage::ResourceReport(report) = resources else { panic!("{resources:?}") };
    assert_eq!((report.extensions, report.meters, report.groups), (1, 4_096, 4_096));
    assert_eq!(report.tables.map(|tables| tables.tables), [1, 2, 3, 4]);
    for (n, port) in ports.iter().enumerate() {
        let PofMessage::PortStatus(status) = port else { panic!("{port:?}") };
        let (name, port) = (format!("p{}", n + 1), &status.port);
        assert_eq!((port.number, port.name.text(), port.device_id), (n as u32 + 1, name, 9));
        assert_eq!((status.reason, port.forwarding), (PofPortReason::Add, PofForwarding::Enabled));
    }
    assert_eq!(ports.len(), 4);
    until("the protocol is logged", || !lab.log.lines(&["INFO", ": POF 1.4.0.015"]).is_empty());
}

#[test]
fn the_other_dialect_is_spoken_if_it_is_configured() {
    let mut lab = Lab::start("dialect = \"1.2\"");
    let mut peer = Peer::connect_in(PofDialect::V1_2, lab.pof);
    let ethertype = field(96, 16);
    peer.send(&table(PofTableType::Mask, 0, &[ethertype]));
    peer.tell(&PofMessage::FlowMod(entry(0, vec![equals(ethertype, 0x0908)], vec![apply(vec![output(2)])])));
    let packet = frame(0x0908, &[]);
    lab.push(1, &packet);
    assert_eq!(lab.pop(2), packet);
}

#[test]
fn a_hello_empties_the_switch() {
    let mut lab = Lab::start("");
    let mut peer = lab.peer();
    peer.send(&table(PofTableType::Mask, 0, &[]));
    peer.tell(&PofMessage::FlowMod(entry(0, vec![], vec![apply(vec![output(2)])])));
    lab.push(1, &frame(1, &[]));
    lab.pop(2);
    // The entries stay when the controller leaves, and go when the next one comes.
    drop(peer);
    until("the controller has left", || !lab.log.lines(&["closed by the peer"]).is_empty());
    lab.push(1, &frame(1, &[]));
    lab.pop(2);
    let mut peer = lab.peer();
    peer.settle();
    lab.push(1, &frame(1, &[]));
    assert!(lab.is_quiet());
    peer.tell(&table(PofTableType::Mask, 0, &[]));
}

#[test]
fn a_refused_message_gets_its_error_and_a_log_line() {
    let lab = Lab::start("");
    let mut peer = lab.peer();
    let (code, text) = peer.refused(&PofMessage::FlowMod(entry(0, vec![], vec![])));
    assert_eq!(code, error::FLOW_MOD_BAD_TABLE_ID);
    assert!(text.contains("add it by TABLE_MOD first (POFFMFC_BAD_TABLE_ID)"), "{text}");
    until("the refusal is logged", || !lab.log.lines(&["refused", "add it by TABLE_MOD first"]).is_empty());
    peer.settle();
}

#[test]
fn controllers_of_the_other_protocol_get_advice() {
    let lab = Lab::start("");
    // An OpenFlow controller on the POF address: a HELLO with a list of versions.
    let mut stream = TcpStream::connect(lab.pof).unwrap();
    stream.write_all(&[4, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x10]).unwrap();
    let advice = "from [datapath.pof] to [datapath.openflow]";
    until("the controller is refused", || !lab.log.lines(&["WARN", "closed", advice]).is_empty());
    // A POF controller on the OpenFlow address.
    let mut stream = lab.openflow_stream();
    stream.write_all(&[4, 0, 0, 8, 0, 0, 0, 1]).unwrap();
    let mut table_mod = vec![4, 18, 0, 152, 0, 0, 0, 2];
    table_mod.resize(152, 0);
    stream.write_all(&table_mod).unwrap();
    let advice = "from [datapath.openflow] to [datapath.pof]";
    until("the message is refused", || !lab.log.lines(&["WARN", "refused", advice]).is_empty());
    // A POF controller closes the connection when it gets the HELLO or the FEATURES_REPLY of OpenFlow.
    for sent in 1..3 {
        let mut stream = lab.openflow_stream();
        let hello_and_request = [[4, 0, 0, 8, 0, 0, 0, 1], [4, 5, 0, 8, 0, 0, 0, 2]].concat();
        stream.write_all(&hello_and_request[..8 * sent]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        until("the peer gets advice", || {
            lab.log.lines(&["WARN", "closed by the peer", advice]).len() == sent
        });
    }
    // A controller whose HELLO has versions speaks OpenFlow.
    let mut stream = lab.openflow_stream();
    stream.write_all(&[4, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 0, 0x10]).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    until("the peer has left", || !lab.log.lines(&["INFO", "closed by the peer"]).is_empty());
    assert_eq!(lab.log.lines(&["closed by the peer", advice]).len(), 2);
}
