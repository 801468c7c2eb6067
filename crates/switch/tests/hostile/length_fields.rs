// SPDX-License-Identifier: Apache-2.0
//! Tests each length field inside messages with every relevant wrong value. The switch must refuse each
//! message with the error code that the standard prescribes.

use crate::peer::{Peer, add};
use crate::scene::{Scene, bytes_of};
use flow::group::{Bucket, Group, GroupType};
use flow::meter::{Band, Meter, MeterBand};
use flow::stateless::{Arithmetic, Bank, Label, NodeId, StatelessChange, StatelessSection};
use flow::{Action, Field, GroupId, MeterId, PortNo, TableId, port_no};
use openflow::bundle::{self, BundleAdd, FLAG_ATOMIC};
use openflow::error::{self, ErrorCode};
use openflow::features::SwitchConfig;
use openflow::group::{GroupChange, GroupMod};
use openflow::meter::MeterMod;
use openflow::multipart::flow_stats::FlowQuery;
use openflow::multipart::table_features::TableFeatures;
use openflow::multipart::table_features_property::{Entries, TableProperty, TypeId};
use openflow::multipart::{MultipartRequest, Query};
use openflow::packet::PacketOutMessage;
use openflow::port::PortModMessage;
use openflow::role::{AsyncConfig, Role, RoleMessage};
use openflow::{Hello, Message};
use std::net::TcpStream;

/// Offset of the match in FLOW_MOD, and in a request for entries.
const MATCH_AT: usize = 48;
/// Offset of the list in GROUP_MOD, METER_MOD and multipart requests.
const LIST_AT: usize = 16;
const XID: u32 = 9;

/// Checks that the switch refuses this message with this error code and keeps the connection.
#[track_caller]
fn is_refused(peer: &mut Peer, what: &str, bytes: &[u8], code: ErrorCode) {
    peer.send_bytes(bytes);
    let asked = peer.send(&Message::BarrierRequest);
    let mut refusals = Vec::new();
    loop {
        match peer.receive() {
            (xid, Message::BarrierReply) if xid == asked => break,
            (XID, Message::Error(error)) => refusals.push(error.code.to_string()),
            (xid, other) => panic!("{what}: {xid}: {other:?}"),
        }
    }
    assert_eq!(refusals, [code.to_string()], "{what}");
}

/// Message with correct length fields.
struct Right {
    name: &'static str,
    bytes: Vec<u8>,
}

impl Right {
    fn new(name: &'static str, message: &Message) -> Self {
        Self { name, bytes: bytes_of(message) }
    }

    fn length_at(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// Checks that each value of `wrong` is refused in the 16-bit field at offset `at`. The valid message
    /// must have the value `right` there, which proves that the offset is correct.
    #[track_caller]
    fn refuses(&self, peer: &mut Peer, at: usize, right: u16, wrong: &[u16], code: ErrorCode) {
        assert_eq!(self.length_at(at), right, "{} at {at}: {:02x?}", self.name, self.bytes);
        for value in wrong {
            let mut bytes = self.bytes.clone();
            bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
            is_refused(peer, &format!("{} with {value} at {at}", self.name), &bytes, code);
        }
    }

    /// Like [`Right::refuses`], but for an 8-bit field.
    #[track_caller]
    fn refuses_byte(&self, peer: &mut Peer, at: usize, right: u8, wrong: &[u8], code: ErrorCode) {
        assert_eq!(self.bytes[at], right, "{} at {at}: {:02x?}", self.name, self.bytes);
        for value in wrong {
            let mut bytes = self.bytes.clone();
            bytes[at] = *value;
            is_refused(peer, &format!("{} with {value} at {at}", self.name), &bytes, code);
        }
    }

    /// Checks that the message is refused with any other size, even if its header states that size.
    #[track_caller]
    fn has_one_size(&self, peer: &mut Peer) {
        let right = self.bytes.len();
        for size in (8..right).chain([right + 1, right + 4, right + 8, 1_000]) {
            let mut bytes = self.bytes.clone();
            bytes.resize(size, 0);
            bytes[2..4].copy_from_slice(&(size as u16).to_be_bytes());
            is_refused(peer, &format!("{} of {size} bytes", self.name), &bytes, error::BAD_LEN);
        }
    }
}

/// Returns two actions of 16 bytes each.
fn actions() -> Vec<Action> {
    vec![Action::set(Field::EthSrc, 0x0200_0000_0001), Action::output(PortNo(2))]
}

/// Checks wrong lengths within the actions of [`actions`], which begin at offset `at`.
#[track_caller]
fn actions_are_checked(right: &Right, peer: &mut Peer, at: usize) {
    let wrong = [0, 1, 4, 7, 9, 12, 15, 17, 0x7fff, 0xfff8, 0xffff];
    right.refuses(peer, at + 2, 16, &wrong, error::ACTION_BAD_LEN);
    right.refuses(peer, at + 18, 16, &wrong, error::ACTION_BAD_LEN);
    right.refuses(peer, at + 18, 16, &[8], error::ACTION_BAD_LEN);
    right.refuses_byte(peer, at + 7, 6, &[0, 1, 5, 7, 12, 13, 255], error::ACTION_BAD_SET_LEN);
}

fn flow() -> Message {
    add("table=3,tcp,tcp_dst=80,actions=set_field:02:00:00:00:00:01->eth_src,output:2")
}

fn flow_mods(peer: &mut Peer) {
    let right = Right::new("flow-mod", &flow());
    // EtherType, protocol and port need 6 + 5 + 6 bytes, and the match header 4 bytes.
    right.refuses(peer, MATCH_AT + 2, 21, &[0, 1, 3, 5, 7, 20, 22, 0x7fff, 0xffff], error::MATCH_BAD_LEN);
    right.refuses_byte(peer, MATCH_AT + 7, 2, &[0, 1, 3, 4, 17, 255], error::MATCH_BAD_LEN);
    let instruction = MATCH_AT + 24;
    let wrong = [0, 1, 4, 7, 9, 39, 41, 48, 0x7fff, 0xfff8, 0xffff];
    right.refuses(peer, instruction + 2, 40, &wrong, error::INSTRUCTION_BAD_LEN);
    right.refuses(peer, instruction + 2, 40, &[16, 32], error::ACTION_BAD_LEN);
    actions_are_checked(&right, peer, instruction + 8);

    let query = Query::Flow(FlowQuery::default());
    let right = Right::new("flow stats", &Message::MultipartRequest(MultipartRequest { more: false, query }));
    right.refuses(peer, MATCH_AT + 2, 4, &[0, 1, 3, 5, 7, 9, 0x7fff, 0xffff], error::MATCH_BAD_LEN);
}

fn groups_and_meters(peer: &mut Peer) {
    let bucket = Bucket { weight: 0, watch_port: None, watch_group: None, actions: actions() };
    let group = Group { id: GroupId(1), kind: GroupType::All, buckets: vec![bucket.clone(), bucket] };
    let right = Right::new("group-mod", &Message::GroupMod(GroupMod { command: GroupChange::Add, group }));
    for at in [LIST_AT, LIST_AT + 48] {
        let wrong = [0, 1, 4, 8, 12, 15, 97, 0x7fff, 0xfff8, 0xffff];
        right.refuses(peer, at, 48, &wrong, error::GROUP_BAD_BUCKET);
        right.refuses(peer, at, 48, &[17, 24, 40, 47], error::ACTION_BAD_LEN);
        actions_are_checked(&right, peer, at + 16);
    }
    right.refuses(peer, LIST_AT + 48, 48, &[49, 56], error::GROUP_BAD_BUCKET);

    let band = MeterBand { band: Band::Drop, rate: 5, burst: 5 };
    let meter = Meter { id: MeterId(1), packets: false, stats: true, burst: true, bands: vec![band; 2] };
    let right = Right::new("meter-mod", &Message::MeterMod(MeterMod { command: GroupChange::Add, meter }));
    for at in [LIST_AT, LIST_AT + 16] {
        let wrong = [0, 1, 4, 8, 12, 15, 17, 20, 24, 32, 0x7fff, 0xffff];
        right.refuses(peer, at + 2, 16, &wrong, error::BAD_LEN);
    }
}

fn packets_and_bundles(peer: &mut Peer) {
    let out = PacketOutMessage {
        buffer_id: None,
        in_port: port_no::CONTROLLER,
        actions: actions(),
        data: vec![3; 60],
    };
    let right = Right::new("packet-out", &Message::PacketOut(out));
    right.refuses(peer, 16, 32, &[93, 100, 0x7fff, 0xfff8, 0xffff], error::BAD_LEN);
    right.refuses(peer, 16, 32, &[1, 3, 17, 24, 31, 33, 36, 40], error::ACTION_BAD_LEN);
    actions_are_checked(&right, peer, 24);

    let added = BundleAdd { bundle_id: 3, flags: FLAG_ATOMIC, message: Box::new(flow()) };
    let right = Right::new("bundle-add", &Message::BundleAdd(added));
    let inner = bytes_of(&flow()).len() as u16;
    let wrong = [0, 1, 4, 7, inner + 1, inner + 8, 0x7fff, 0xffff];
    right.refuses(peer, 26, inner, &wrong, bundle::code::MSG_BAD_LEN);
    right.refuses(peer, 26, inner, &[8, 9, 16, 47], error::BAD_LEN);
    right.refuses(peer, 26, inner, &[inner - 1, inner - 8], error::INSTRUCTION_BAD_LEN);
    right.refuses(peer, 24 + MATCH_AT + 2, 21, &[0, 3, 20, 22, 0xffff], error::MATCH_BAD_LEN);
}

fn table_features(peer: &mut Peer) {
    let ids = vec![TypeId { number: 1, experimenter: None }; 2];
    let properties = vec![
        TableProperty::Instructions(Entries::Ordinary, ids),
        TableProperty::NextTables(Entries::Ordinary, vec![1; 4]),
    ];
    let table = TableFeatures {
        table: TableId(0),
        name: "first".to_owned(),
        metadata_match: 0,
        metadata_write: 0,
        config: 0,
        max_entries: 1,
        properties,
    };
    let query = Query::TableFeatures(vec![table]);
    let asked = Message::MultipartRequest(MultipartRequest { more: false, query });
    let (right, code) = (Right::new("table-features", &asked), error::TABLE_FEATURES_BAD_LEN);
    right.refuses(peer, LIST_AT, 64 + 16 + 8, &[0, 1, 2, 8, 63, 89, 96, 0x7fff, 0xffff], code);
    right.refuses(peer, LIST_AT + 64 + 2, 12, &[0, 1, 3, 5, 7, 11, 25, 0x7fff, 0xffff], code);
    right.refuses(peer, LIST_AT + 64 + 6, 4, &[0, 1, 3, 9, 0x7fff, 0xffff], code);
    right.refuses(peer, LIST_AT + 80 + 2, 8, &[0, 1, 3, 9, 16, 0x7fff, 0xffff], code);
}

fn stateless(peer: &mut Peer) {
    let id = NodeId::new(Arithmetic::Integer, 5).unwrap();
    let labels = [(0, Label::Tables), (1, Label::Port(PortNo(2)))].into();
    let bank = Bank { id, labels, backups: [(PortNo(2), PortNo(3))].into() };
    let sections = StatelessChange::Set(vec![StatelessSection::Bank(0, Some(bank))]);
    let right = Right::new("stateless_mod", &Message::StatelessMod(sections));
    let section = 24;
    let wrong = [0, 1, 3, 4, 5, 15, 16, 17, 24, 31, 32, 33, 36, 39, 41, 48, 0x7fff, 0xfff8, 0xffff];
    right.refuses(peer, section + 2, 40, &wrong, error::BAD_LEN);
    // Wrong lengths inside the list of labels.
    right.refuses(peer, section + 12, 0, &[1, 0x7fff, 0xffff], error::BAD_LEN);
    right.refuses(peer, section + 14, 2, &[4, 5, 0x7fff, 0xffff], error::BAD_LEN);
    Right::new("stateless_request", &Message::StatelessRequest).has_one_size(peer);
}

fn messages_of_one_size(peer: &mut Peer) {
    let port = PortModMessage { port: PortNo(1), mac: [0; 6], config: 0, mask: 0, advertise: 0 };
    Right::new("port-mod", &Message::PortMod(port)).has_one_size(peer);
    Right::new("set-config", &Message::SetConfig(SwitchConfig::default())).has_one_size(peer);
    Right::new("set-async", &Message::SetAsync(AsyncConfig::default())).has_one_size(peer);
    let role = RoleMessage { role: Role::NoChange, generation_id: 0 };
    Right::new("role-request", &Message::RoleRequest(role)).has_one_size(peer);
}

#[test]
fn each_wrong_length_is_refused_under_its_code() {
    let scene = Scene::start();
    let mut peer = scene.lab.peer();
    let master = RoleMessage { role: Role::Master, generation_id: 1 };
    assert!(matches!(peer.ask(&Message::RoleRequest(master)), Message::RoleReply(_)));
    flow_mods(&mut peer);
    groups_and_meters(&mut peer);
    packets_and_bundles(&mut peer);
    table_features(&mut peer);
    messages_of_one_size(&mut peer);
    stateless(&mut peer);
    Right::new("hello", &Message::Hello(Hello::supported())).refuses(
        &mut peer,
        10,
        8,
        &[0, 1, 3, 4, 7, 9, 16, 0x7fff, 0xffff],
        error::BAD_LEN,
    );
    first_hellos(&scene);
    assert_eq!(scene.lab.ofctl(&["dump-groups"]).lines().count(), 1);
    assert_eq!(scene.lab.ofctl(&["dump-meters"]).lines().count(), 1);
    scene.end();
}

/// Tests a first HELLO with invalid elements. Only the version in the header counts.
fn first_hellos(scene: &Scene) {
    let right = bytes_of(&Message::Hello(Hello::supported()));
    for value in [0u16, 1, 3, 4, 7, 9, 16, 0x7fff, 0xffff] {
        for version in [4, 1] {
            let mut peer = Peer::silent(TcpStream::connect(scene.lab.address).unwrap());
            let mut wrong = right.clone();
            wrong[0] = version;
            wrong[10..12].copy_from_slice(&value.to_be_bytes());
            peer.send_bytes(&wrong);
            assert!(matches!(peer.receive(), (_, Message::Hello(_))));
            if version == 4 {
                peer.barrier();
                continue;
            }
            // The ERROR has the peer's version.
            let refusal = peer.receive_bytes().unwrap();
            assert_eq!(refusal[..2], [1, 1], "{value}");
            assert_eq!(refusal[8..12], [0, 0, 0, 0], "OFPHFC_INCOMPATIBLE");
            assert_eq!(peer.receive_bytes(), None, "{value}");
        }
    }
}
