// SPDX-License-Identifier: Apache-2.0
//! Messages of stateless forwarding: the examples of docs/openflow-extensions.md, replies that consist of
//! several messages, and wrong lengths.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::hex;
use flow::PortNo;
use flow::stateless::{
    Arithmetic, Bank, Gate, GateFlag, Gates, Label, NodeId, StatelessChange, StatelessConfig,
    StatelessSection, TagTypes,
};
use openflow::error::{BAD_LEN, STATELESS_BAD_CONFIG};
use openflow::stateless::{StatelessReplies, StatelessReply};
use openflow::{DecodeError, MESSAGE_BYTES_MAX, Message, decode, encode};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

const PAGE: &str = include_str!("../../../docs/openflow-extensions.md");
const XID: u32 = 7;
/// Maximum number of labels and backups together in a message.
const PAIRS: usize = 8_186;

fn bank(
    arithmetic: Arithmetic,
    id: u32,
    labels: &[(u32, Label)],
    backups: &[(PortNo, PortNo)],
) -> Option<Bank> {
    let id = NodeId::new(arithmetic, id).unwrap();
    let (labels, backups) = (labels.iter().copied().collect(), backups.iter().copied().collect());
    Some(Bank { id, labels, backups })
}

fn change(sections: Vec<StatelessSection>) -> Message {
    Message::StatelessMod(StatelessChange::Set(sections))
}

/// Returns the documented meaning of an example: a section of a stateless_mod, or a message.
fn meant(says: &str) -> Message {
    use Arithmetic::{Integer, Polynomial};
    let gate = |number, flag| Gate { number: NonZeroU32::new(number).unwrap(), flag };
    let section = match says {
        "types: 0x88b5, 0x8842, 0xff1f, 0x88b6" => {
            StatelessSection::Types(TagTypes { keyflow: 0x88b5, polka: 0x8842, tf: 0xff1f, tf_wide: 0x88b6 })
        }
        "trusted: 1, 3" => StatelessSection::Trusted(BTreeSet::from([PortNo(1), PortNo(3)])),
        "trusted: none" => StatelessSection::Trusted(BTreeSet::new()),
        "mtu: 1500 at port 2" => StatelessSection::MtuBytes(BTreeMap::from([(PortNo(2), 1_500)])),
        "bank of epoch 0: integer 5, label 0 tables, label 1 port 2, in place of 2 port 3" => {
            StatelessSection::Bank(
                0,
                bank(
                    Integer,
                    5,
                    &[(0, Label::Tables), (1, Label::Port(PortNo(2)))],
                    &[(PortNo(2), PortNo(3))],
                ),
            )
        }
        "bank of epoch 1: polynomial 11, label 7 port 1" => {
            StatelessSection::Bank(1, bank(Polynomial, 11, &[(7, Label::Port(PortNo(1)))], &[]))
        }
        "bank of epoch 1: none" => StatelessSection::Bank(1, None),
        "polka: polynomial 0x1002d, label 0 tables" => {
            StatelessSection::Polka(bank(Polynomial, 0x1_002d, &[(0, Label::Tables)], &[]))
        }
        "polka: none" => StatelessSection::Polka(None),
        "gates: down-d 2, up-d 3, external-d 0, server_gate_max 16, port 1 gate 4 G_SRV, port 2 gate 6 G_ASS" =>
        {
            let ports = [(PortNo(1), gate(4, GateFlag::Server)), (PortNo(2), gate(6, GateFlag::Assists))];
            let (down_d, up_d, external_d, server_gate_max) = (2, 3, 0, 16);
            StatelessSection::Gates(Some(Gates {
                down_d,
                up_d,
                external_d,
                server_gate_max,
                ports: ports.into(),
            }))
        }
        "gates: none" => StatelessSection::Gates(None),
        "stateless_mod: off" => return Message::StatelessMod(StatelessChange::Off),
        "stateless_mod: no sections" => return change(vec![]),
        "stateless_mod: trusted port 1, no polka" => {
            return change(vec![
                StatelessSection::Trusted(BTreeSet::from([PortNo(1)])),
                StatelessSection::Polka(None),
            ]);
        }
        "stateless_request" => return Message::StatelessRequest,
        "stateless_reply: off" => {
            return Message::StatelessReply(StatelessReply { more: false, sections: None });
        }
        "stateless_reply: trusted port 1, more follows" => {
            let sections = Some(vec![StatelessSection::Trusted(BTreeSet::from([PortNo(1)]))]);
            return Message::StatelessReply(StatelessReply { more: true, sections });
        }
        other => panic!("the page has the unknown text {other}"),
    };
    change(vec![section])
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn message(body: &[u8]) -> Vec<u8> {
    let mut message = vec![4, 4];
    message.extend_from_slice(&(8 + body.len() as u16).to_be_bytes());
    message.extend_from_slice(&XID.to_be_bytes());
    message.extend_from_slice(body);
    message
}

fn stateless_mod(sections: &[u8]) -> Vec<u8> {
    message(&[bytes("ff53484e 00000001 00000000 00000000"), sections.to_vec()].concat())
}

fn bundled(inner: &[u8]) -> Vec<u8> {
    message(&[bytes("4f4e4600 000008fd 00000005 0000 0003"), inner.to_vec()].concat())
}

fn encoded(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    encode(message, XID, &mut out).unwrap();
    out
}

/// Returns the examples of docs/openflow-extensions.md with their documented meaning: the refused examples if
/// `refused` is true, or else the accepted ones.
fn examples(refused: bool) -> Vec<(Vec<u8>, &'static str)> {
    let line = |line: &'static str| {
        let mut parts = line.split(" | ").map(str::trim);
        let (kind, hex, says) = (parts.next()?, parts.next()?, parts.next()?);
        match kind {
            "section" => Some((stateless_mod(&bytes(hex)), says)),
            "message" => Some((message(&bytes(hex)), says)),
            _ => None,
        }
    };
    let all: Vec<_> =
        PAGE.lines().filter_map(line).filter(|(_, says)| says.starts_with("OFP") == refused).collect();
    assert!(all.len() > 15, "the page has too few examples");
    all
}

#[test]
fn examples_have_their_documented_meaning() {
    for (sent, says) in examples(false) {
        let wanted = meant(says);
        assert_eq!(decode(&sent), Ok(wanted.clone()), "{says}");
        assert_eq!(hex(&encoded(&wanted)), hex(&sent), "{says}");
        let in_bundle = decode(&bundled(&sent));
        match wanted {
            Message::StatelessMod(_) => {
                let Ok(Message::BundleAdd(add)) = in_bundle else { panic!("{says}: {in_bundle:?}") };
                assert_eq!(*add.message, wanted);
                assert_eq!(hex(&encoded(&Message::BundleAdd(add))), hex(&bundled(&sent)));
            }
            _ => assert_eq!(in_bundle.unwrap_err().code, openflow::bundle::code::MSG_UNSUP, "{says}"),
        }
    }
}

#[test]
fn invalid_examples_are_refused() {
    let code = |bytes: &[u8]| match decode(bytes) {
        Ok(message) => panic!("{message:?} is accepted: {}", hex(bytes)),
        Err(DecodeError { code: STATELESS_BAD_CONFIG, .. }) => "OFPET_EXPERIMENTER 1".to_owned(),
        Err(error) => error.code.to_string(),
    };
    for (sent, says) in examples(true) {
        assert_eq!(code(&sent), says, "{}", hex(&sent));
        if sent[12..16] == [0, 0, 0, 1] {
            assert_eq!(code(&bundled(&sent)), says, "{} in a bundle", hex(&sent));
        }
    }
}

#[test]
fn reserved_bytes_are_ignored() {
    for (said, reported) in [
        ("0002000c 00000001 00000003 ffffffff", "0002000c 00000001 00000003 00000000"),
        ("00040010 01 ff 00 ff ffffffff ffffffff", "00040010 01 00 00 00 00000000 00000000"),
        (
            "00060018 00ffffff ffffffff ffffffff ffffffff ffffffff",
            "00060018 00000000 00000000 00000000 00000000 00000000",
        ),
    ] {
        let taken = decode(&stateless_mod(&bytes(said))).unwrap();
        assert_eq!(hex(&encoded(&taken)), hex(&stateless_mod(&bytes(reported))));
    }
}

/// Returns a bank with this number of labels and of backups. Ports are numbered from 1.
fn large(labels: u32, backups: u32) -> Option<Bank> {
    let label =
        |label| (label, if label == 0 { Label::Tables } else { Label::Port(PortNo(1 + label % 1_024)) });
    let id = NodeId::new(Arithmetic::Integer, 65_537).unwrap();
    let backups = (1..=backups).map(|port| (PortNo(port), PortNo(1 + port % 1_024))).collect();
    Some(Bank { id, labels: (0..labels).map(label).collect(), backups })
}

/// Returns the messages of a reply, as a controller decodes them.
fn reported(stateless_config: &StatelessConfig) -> Vec<StatelessReply> {
    let there_and_back = |reply: StatelessReply| {
        let Ok(Message::StatelessReply(reported)) = decode(&encoded(&Message::StatelessReply(reply.clone())))
        else {
            panic!("expected a reply")
        };
        assert_eq!(reported, reply);
        reported
    };
    StatelessReplies::new(Some(Arc::new(stateless_config.clone()))).map(there_and_back).collect()
}

/// Joins the messages of a reply as a controller does. Returns the configuration and the number of sections.
fn put_together(replies: &[StatelessReply]) -> (StatelessConfig, usize) {
    let (mut stateless_config, mut count) = (StatelessConfig::default(), 0);
    let join = |whole: &mut Option<Bank>, piece: Option<Bank>| match (whole, piece) {
        (Some(whole), Some(piece)) => {
            assert_eq!(whole.id, piece.id);
            whole.labels.extend(piece.labels);
            whole.backups.extend(piece.backups);
        }
        (whole, piece) => *whole = piece,
    };
    for (at, reply) in replies.iter().enumerate() {
        assert_eq!(reply.more, at + 1 < replies.len());
        for section in reply.sections.clone().unwrap() {
            count += 1;
            match section {
                StatelessSection::Bank(epoch, bank) => {
                    join(&mut stateless_config.banks[usize::from(epoch)], bank)
                }
                StatelessSection::Polka(bank) => join(&mut stateless_config.polka, bank),
                other => stateless_config.set(other),
            }
        }
    }
    (stateless_config, count)
}

#[test]
fn a_configuration_is_reported_in_as_many_messages_as_needed() {
    let none: Vec<_> = StatelessReplies::new(None).collect();
    assert_eq!(none, [StatelessReply { more: false, sections: None }]);
    let ports = (1..=1_024).map(PortNo);
    let gate =
        |port: PortNo| (port, Gate { number: NonZeroU32::new(2 * port.0).unwrap(), flag: GateFlag::Server });
    let gates = Gates { ports: ports.clone().map(gate).collect(), ..Gates::default() };
    let full = StatelessConfig {
        trusted: ports.clone().collect(),
        mtu_bytes: ports.map(|port| (port, 1_500)).collect(),
        gates: Some(gates),
        ..StatelessConfig::default()
    };
    for (banks, polka, messages, sections) in [
        ([None, None], None, 1, 7),
        ([large(1_025, 1_024), large(1_025, 1_024)], None, 1, 7),
        // 8,186 pairs fill a message completely.
        ([large(PAIRS as u32, 0), large(PAIRS as u32 - 1_024, 1_024)], None, 4, 7),
        ([large(PAIRS as u32 + 1, 0), None], None, 3, 8),
        ([large(PAIRS as u32, 1), None], None, 3, 8),
        ([large(65_536, 1_024), large(65_536, 1_024)], large(65_536, 0), 28, 31),
    ] {
        let stateless_config = StatelessConfig { banks, polka, ..full.clone() };
        assert_eq!(stateless_config.check(), Ok(()));
        let replies = reported(&stateless_config);
        let (again, count) = put_together(&replies);
        assert_eq!(again, stateless_config);
        assert_eq!((replies.len(), count), (messages, sections));
    }
}

#[test]
fn a_bank_that_one_stateless_mod_can_set_is_reported_in_one_section() {
    let longest = |pairs| change(vec![StatelessSection::Bank(1, large(pairs, 0))]);
    let mut out = Vec::new();
    assert!(encode(&longest(PAIRS as u32 + 1), XID, &mut out).is_err());
    let sent = encoded(&longest(PAIRS as u32));
    let Ok(Message::StatelessMod(StatelessChange::Set(sections))) = decode(&sent) else { panic!() };
    let mut stateless_config = StatelessConfig::default();
    sections.into_iter().for_each(|section| stateless_config.set(section));
    assert_eq!(put_together(&reported(&stateless_config)).1, 7);
}

#[test]
fn sections_with_wrong_lengths_are_refused() {
    let rest = vec![0; MESSAGE_BYTES_MAX - 24 - 16];
    for length in [0, 1, 3, 5, 11, 13, 0x7fff, 0xffe8, 0xfff0, 0xfffc, 0xffff_u16] {
        for kind in 1..=6_u8 {
            let mut section = vec![0, kind];
            section.extend_from_slice(&length.to_be_bytes());
            section.extend_from_slice(&[1, 0, 1, 0]);
            section.extend_from_slice(&u64::MAX.to_be_bytes());
            for rest in [&rest[..0], &rest[..rest.len() & !7]] {
                let sent = stateless_mod(&[&section[..], rest].concat());
                let error = decode(&sent).unwrap_err();
                // The section is complete, but its content is invalid: port 0 occurs twice.
                let is_whole = usize::from(length) <= section.len() + rest.len();
                assert!(
                    error.code == BAD_LEN || is_whole && error.code == STATELESS_BAD_CONFIG,
                    "{error}: type {kind}, length {length}"
                );
            }
        }
    }
}
