// SPDX-License-Identifier: Apache-2.0
//! Tests of the stateless forwarder: one controller sets it, another reads it, and packets use it.

use crate::lab::{Lab, frame};
use crate::peer::{Peer, add, flow_mod};
use flow::stateless::{Arithmetic, Bank, Label, NodeId, StatelessChange, StatelessConfig, StatelessSection};
use flow::{FlowModCommand, PortNo};
use openflow::bundle::{BundleAdd, BundleControl, BundleKind};
use openflow::role::{Role, RoleMessage};
use openflow::stateless::StatelessReply;
use openflow::{Message, error};
use std::collections::{BTreeMap, BTreeSet};

/// Returns a bank whose labels, from 1 on, lead to these ports.
fn bank(id: u32, ports: &[u32]) -> Option<Bank> {
    let to = (1..).zip(ports.iter().map(|port| Label::Port(PortNo(*port))));
    let labels = to.chain([(0, Label::Tables)]).collect();
    let id = NodeId::new(Arithmetic::Integer, id).unwrap();
    Some(Bank { id, labels, backups: BTreeMap::new() })
}

fn set(sections: Vec<StatelessSection>) -> Message {
    Message::StatelessMod(StatelessChange::Set(sections))
}

fn reported(peer: &mut Peer) -> Option<StatelessConfig> {
    let Message::StatelessReply(StatelessReply { more: false, sections }) =
        peer.ask(&Message::StatelessRequest)
    else {
        panic!("unexpected answer")
    };
    let mut stateless_config = StatelessConfig::default();
    sections?.into_iter().for_each(|section| stateless_config.set(section));
    Some(stateless_config)
}

/// Returns a frame with this key in epoch 0.
fn keyed(hops: u8, key: u8) -> Vec<u8> {
    let mut bytes = frame(2, 1);
    // The header contains version and epoch, hop limit, length and a reserved byte. After the next EtherType
    // come a reserved field and the key.
    bytes.splice(14..14, [0, 0, 0, 0, 0, 0, 0, 0, 0, key]);
    bytes.splice(12..12, [0x88, 0xb5, 0x10, hops, 1, 0]);
    bytes
}

#[test]
fn packets_follow_the_last_stateless_configuration() {
    let mut lab = Lab::start(2, 3, "");
    let (mut one, mut other) = (Peer::connect(lab.address), Peer::connect(lab.address));
    one.send(&flow_mod(FlowModCommand::Delete, "table=0"));
    one.send(&add("in_port=1,actions=output:1,in_port"));
    one.barrier();
    assert_eq!(reported(&mut other), None);
    lab.push(1, &keyed(9, 1));
    assert_eq!(lab.pop(1), keyed(9, 1), "without a stateless forwarder, the tables forward the packet");

    one.send(&set(vec![
        StatelessSection::Trusted(BTreeSet::from([PortNo(1)])),
        StatelessSection::Bank(0, bank(5, &[2, 3])),
    ]));
    one.barrier();
    let trusted = BTreeSet::from([PortNo(1)]);
    let stateless_config =
        StatelessConfig { trusted, banks: [bank(5, &[2, 3]), None], ..StatelessConfig::default() };
    assert_eq!(reported(&mut other), Some(stateless_config.clone()));
    lab.push(1, &keyed(9, 6));
    assert_eq!(lab.pop(2), keyed(8, 6));
    lab.push(1, &keyed(9, 7));
    assert_eq!(lab.pop(3), keyed(8, 7));
    lab.push(1, &keyed(9, 5));
    assert_eq!(lab.pop(1), keyed(9, 5), "label 0 sends the packet to the tables");

    // Another controller sets another bank. The trusted ports stay unchanged.
    other.send(&set(vec![StatelessSection::Bank(0, bank(7, &[3, 2]))]));
    other.barrier();
    lab.push(1, &keyed(9, 8));
    assert_eq!(lab.pop(3), keyed(8, 8));
    assert_eq!(
        reported(&mut one).unwrap(),
        StatelessConfig { banks: [bank(7, &[3, 2]), None], ..stateless_config }
    );

    one.send(&Message::StatelessMod(StatelessChange::Off));
    one.barrier();
    lab.push(1, &keyed(9, 8));
    assert_eq!(lab.pop(1), keyed(9, 8));
    assert_eq!(reported(&mut other), None);
}

#[test]
fn a_bundle_renumbers_edge_and_core_at_once() {
    let mut lab = Lab::start(1, 3, "");
    let mut peer = Peer::connect(lab.address);
    let control = |kind| Message::BundleControl(BundleControl { bundle_id: 5, kind, flags: 1 });
    peer.send(&flow_mod(FlowModCommand::Delete, "table=0"));
    let messages = [
        add("in_port=2,actions=push_key(key=0x6,width=64,hops=4,epoch=0),output:1"),
        set(vec![StatelessSection::Trusted(BTreeSet::from([PortNo(1)]))]),
        set(vec![StatelessSection::Bank(0, bank(5, &[3])), StatelessSection::Polka(None)]),
    ];
    for message in messages {
        peer.send(&Message::BundleAdd(BundleAdd { bundle_id: 5, flags: 1, message: Box::new(message) }));
    }
    assert_eq!(reported(&mut peer), None);
    assert!(matches!(peer.ask(&control(BundleKind::CommitRequest)), Message::BundleControl(_)));
    peer.barrier();
    lab.push(2, &frame(2, 1));
    let pushed = lab.pop(1);
    assert_eq!(pushed, keyed(4, 6));
    lab.push(1, &pushed);
    assert_eq!(lab.pop(3), keyed(3, 6));
}

#[test]
fn an_invalid_configuration_is_refused_and_logged() {
    let lab = Lab::start(1, 1, "");
    let mut peer = Peer::connect(lab.address);
    let small = set(vec![StatelessSection::MtuBytes(BTreeMap::from([(PortNo(1), 20)]))]);
    assert_eq!(peer.refused(&small), error::STATELESS_BAD_CONFIG);
    let log = &lab.log;
    crate::lab::until("the refusal is logged", || {
        !log.lines(&["an MTU of 20 bytes for port 1 is too small"]).is_empty()
    });
    let reply = Message::StatelessReply(StatelessReply { more: false, sections: None });
    assert_eq!(peer.refused(&reply), error::BAD_TYPE);
    let role = RoleMessage { role: Role::Slave, generation_id: 1 };
    assert!(matches!(peer.ask(&Message::RoleRequest(role)), Message::RoleReply(_)));
    assert_eq!(peer.refused(&Message::StatelessMod(StatelessChange::Off)), error::IS_SLAVE);
    assert_eq!(reported(&mut peer), None);
}
