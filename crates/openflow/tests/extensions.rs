// SPDX-License-Identifier: Apache-2.0
//! The examples of docs/openflow-extensions.md must decode to their documented meaning, and encode to the
//! same bytes. Invalid examples must be refused with the documented error code.

#![allow(clippy::unwrap_used, clippy::panic)]

use flow::syntax::{ParseOptions, format_flow, parse_flow};
use flow::{FlowMod, FlowModCommand};
use openflow::error::BAD_VERSION;
use openflow::multipart::flow_stats::FlowStatsEntry;
use openflow::multipart::{Answer, MultipartReply};
use openflow::{DecodeError, Message, decode, encode};

const PAGE: &str = include_str!("../../../docs/openflow-extensions.md");
const XID: u32 = 7;

struct Example {
    kind: &'static str,
    bytes: Vec<u8>,
    says: &'static str,
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Returns the refused examples if `refused` is true, or else the accepted ones.
fn examples(refused: bool) -> Vec<Example> {
    let line = |line: &'static str| {
        let mut parts = line.split(" | ").map(str::trim);
        let (kind, hex, says) = (parts.next()?, parts.next()?, parts.next()?);
        ["instruction", "match", "action"].contains(&kind).then(|| Example { kind, bytes: bytes(hex), says })
    };
    let all: Vec<_> =
        PAGE.lines().filter_map(line).filter(|e| e.says.starts_with("OFP") == refused).collect();
    assert!(all.len() > 10, "the page has too few examples");
    all
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![4, kind];
    message.extend_from_slice(&(8 + body.len() as u16).to_be_bytes());
    message.extend_from_slice(&XID.to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// Returns a match and instructions that contain the example.
fn inside(example: &Example) -> Vec<u8> {
    let (mut fields, mut instructions) = (Vec::new(), Vec::new());
    match example.kind {
        "match" => fields.clone_from(&example.bytes),
        "instruction" => instructions.clone_from(&example.bytes),
        _ => {
            instructions.extend_from_slice(&[0, 4]);
            instructions.extend_from_slice(&(8 + example.bytes.len() as u16).to_be_bytes());
            instructions.extend_from_slice(&[0; 4]);
            instructions.extend_from_slice(&example.bytes);
        }
    }
    let mut body = vec![0, 1];
    body.extend_from_slice(&(4 + fields.len() as u16).to_be_bytes());
    body.extend_from_slice(&fields);
    body.resize((4 + fields.len()).next_multiple_of(8), 0);
    body.extend_from_slice(&instructions);
    body
}

/// Returns an add command of priority 32768 for table 0.
fn flow_mod(example: &Example) -> Vec<u8> {
    let mut body =
        bytes("0000000000000000 0000000000000000 00 00 0000 0000 8000 ffffffff ffffffff ffffffff 0000 0000");
    body.extend(inside(example));
    message(14, &body)
}

fn bundled(example: &Example) -> Vec<u8> {
    let mut body = bytes("4f4e4600 000008fd 00000005 0000 0003");
    body.extend(flow_mod(example));
    message(4, &body)
}

fn statistics(example: &Example) -> Vec<u8> {
    let mut entry = bytes(
        "0000 00 00 00000001 00000002 8000 0000 0000 0000 00000000 0000000000000000 0000000000000005 0000000000000006",
    );
    entry.extend(inside(example));
    let length = entry.len() as u16;
    entry[..2].copy_from_slice(&length.to_be_bytes());
    let mut body = bytes("0001 0000 00000000");
    body.extend(entry);
    message(19, &body)
}

fn again(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    encode(message, XID, &mut out).unwrap();
    out
}

/// Returns the flow into which the example's text is parsed.
fn of_text(example: &Example) -> FlowMod {
    let line = match example.kind {
        "action" => format!("actions={}", example.says),
        "instruction" if example.says.starts_with("goto") => format!("actions={}", example.says),
        _ => format!("{} actions=drop", example.says),
    };
    parse_flow(&line, FlowModCommand::Add, ParseOptions::default())
        .unwrap_or_else(|e| panic!("{line}: {e:?}"))
}

#[test]
fn examples_have_their_documented_meaning() {
    for example in examples(false) {
        let wanted = of_text(&example);
        assert!(
            format_flow(&wanted).contains(example.says),
            "{} is printed as {}",
            example.says,
            format_flow(&wanted)
        );

        let sent = flow_mod(&example);
        let Ok(Message::FlowMod(m)) = decode(&sent) else { panic!("{}: {:?}", example.says, decode(&sent)) };
        assert_eq!(m.flow, wanted, "{}", example.says);
        assert_eq!(again(&Message::FlowMod(m)), sent, "{}", example.says);

        let sent = bundled(&example);
        let Ok(Message::BundleAdd(add)) = decode(&sent) else { panic!("{}", example.says) };
        assert!(matches!(&*add.message, Message::FlowMod(m) if m.flow == wanted), "{}", example.says);
        assert_eq!(again(&Message::BundleAdd(add)), sent, "{}", example.says);

        let sent = statistics(&example);
        let Ok(Message::MultipartReply(MultipartReply { answer: Answer::Flow(flows), .. })) = decode(&sent)
        else {
            panic!("{}: {:?}", example.says, decode(&sent))
        };
        let [FlowStatsEntry { matching, instructions, low_latency, .. }] = &flows[..] else {
            panic!("{}", example.says)
        };
        assert_eq!(
            (matching, instructions, *low_latency),
            (&wanted.matching, &wanted.instructions, wanted.low_latency)
        );
        assert_eq!(again(&decode(&sent).unwrap()), sent, "{}", example.says);
    }
}

#[test]
fn invalid_examples_are_refused_in_every_message() {
    let code = |bytes: &[u8]| decode(bytes).map_err(|DecodeError { code, .. }| code.to_string());
    for example in examples(true) {
        let (says, hex) = (Err(example.says.to_owned()), &example.bytes);
        assert_eq!(code(&flow_mod(&example)).map(|_| ()), says, "{hex:02x?}");
        assert_eq!(code(&bundled(&example)).map(|_| ()), says, "{hex:02x?} in a bundle");
        assert_eq!(code(&statistics(&example)).map(|_| ()), says, "{hex:02x?} in statistics");
    }
}

#[test]
fn other_versions_are_refused() {
    for example in examples(false) {
        for version in [1, 5, 6] {
            let mut sent = flow_mod(&example);
            sent[0] = version;
            assert_eq!(decode(&sent).unwrap_err().code, BAD_VERSION);
            // A message must also be refused if only the message inside a bundle has another version.
            let mut sent = bundled(&example);
            sent[24] = version;
            assert_eq!(decode(&sent).unwrap_err().code, BAD_VERSION);
        }
    }
}

#[test]
fn reserved_bytes_are_ignored() {
    for (said, reported) in [
        ("ffff0010ff53484e 0002 01 ffffffffff", "ffff0010ff53484e 0002 01 0000000000"),
        ("ffff0010ff53484e 0001 05 ff 00000007", "ffff0010ff53484e 0001 05 00 00000007"),
    ] {
        let of = |hex| Example { kind: "instruction", bytes: bytes(hex), says: "" };
        assert_eq!(again(&decode(&flow_mod(&of(said))).unwrap()), flow_mod(&of(reported)));
    }
}
