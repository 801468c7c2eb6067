// SPDX-License-Identifier: Apache-2.0
//! Messages that the controller PCTRL packs, in dialect 1.4.0.015. They must decode, and encode to the same
//! bytes.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use pof::action::PofAction;
use pof::instruction::PofInstruction;
use pof::{PofDialect, PofMessage, decode, encode};

const PCTRL: &str = include_str!("golden/pctrl.txt");

/// Returns the name, the bytes and the decoded message of each line.
fn messages() -> Vec<(&'static str, Vec<u8>, PofMessage)> {
    let lines = PCTRL.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, rest) = line.split_once(' ').unwrap();
            let bytes = common::bytes(rest.split_whitespace());
            let message = decode(&bytes, PofDialect::V1_4).unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, bytes, message)
        })
        .collect()
}

#[test]
fn messages_of_pctrl_decode_and_encode_to_the_same_bytes() {
    let messages = messages();
    assert_eq!(messages.len(), 25);
    for (name, bytes, message) in messages {
        let xid = u32::from_be_bytes(*bytes[4..].first_chunk().unwrap());
        let mut made = Vec::new();
        encode(&message, xid, PofDialect::V1_4, &mut made).unwrap();
        match name {
            // PCTRL sends no number of the device, and pads the packet to 2,048 bytes.
            "set_config" => assert_eq!((made.len(), bytes.len()), (16, 12)),
            "packet_out" => {
                assert_eq!((made.len(), bytes.len()), (318, 2360));
                assert_eq!(made[4..], bytes[4..318]);
            }
            _ => assert_eq!(made, bytes, "{name}: {message:?}"),
        }
    }
}

/// The values of a message that mixes many fields are those of golden/make_pctrl.py.
#[test]
fn values_of_pctrl_are_decoded() {
    let messages = messages();
    let flow = |wanted: &str| match &messages.iter().find(|(name, ..)| *name == wanted).unwrap().2 {
        PofMessage::FlowMod(flow) => flow.clone(),
        other => panic!("{other:?}"),
    };
    let goto = flow("flow_goto");
    assert_eq!((goto.counter.0, goto.cookie, goto.priority, goto.index), (7, 0x1122, 9, 4));
    assert_eq!(goto.matches[0].value, 0x0102_0304_0506 << 80);
    let [PofInstruction::GotoTable(goto)] = &goto.instructions[..] else { panic!() };
    assert_eq!((goto.table.0, goto.packet_offset_bytes, goto.fields[0].offset_bits), (25, 14, 96));
    let added = flow("flow_add");
    let [PofInstruction::ApplyActions(apply)] = &added.instructions[..] else { panic!() };
    let [PofAction::AddField(add)] = &apply.actions[..] else { panic!() };
    assert_eq!((add.length_bits, add.value), (32, 0x0102_0304 << 96));
}
