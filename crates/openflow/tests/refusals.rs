// SPDX-License-Identifier: Apache-2.0
//! Invalid messages must be refused with the error code that OpenFlow 1.3 defines.

#![allow(clippy::unwrap_used, clippy::panic)]

use openflow::bundle::code as bundle;
use openflow::error::*;
use openflow::{ErrorCode, decode};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn refused(kind: u8, body: &[u8]) -> Option<ErrorCode> {
    let mut message = vec![4, kind];
    message.extend_from_slice(&((8 + body.len()) as u16).to_be_bytes());
    message.extend_from_slice(&[0, 0, 0, 1]);
    message.extend_from_slice(body);
    decode(&message).err().map(|error| {
        assert!(error.to_string().contains(&error.code.to_string()));
        error.code
    })
}

/// Sends a flow-mod with these OXM fields and instructions, both in hex.
fn flow_mod(oxm: &str, instructions: &str) -> Option<ErrorCode> {
    let mut body =
        bytes("0000000000000000 0000000000000000 00 00 0000 0000 8000 ffffffff ffffffff ffffffff 0000 0000");
    let fields = bytes(oxm);
    body.extend_from_slice(&[0, 1]);
    body.extend_from_slice(&((4 + fields.len()) as u16).to_be_bytes());
    body.extend_from_slice(&fields);
    body.resize(40 + (4 + fields.len()).next_multiple_of(8), 0);
    body.extend_from_slice(&bytes(instructions));
    refused(14, &body)
}

/// Sends a flow-mod that applies this action, in hex.
fn apply(action: &str) -> Option<ErrorCode> {
    let length = 8 + bytes(action).len();
    flow_mod("", &format!("0004{length:04x}00000000{action}"))
}

#[test]
fn match_fields() {
    for (oxm, code) in [
        ("80000004 00000001", None),
        ("80000002 0001", Some(MATCH_BAD_LEN)),
        ("80000104 00000001", Some(MATCH_BAD_LEN)),
        ("80000108 00000001 ffffffff", None),
        ("80000108 00000001 0000ffff", Some(MATCH_BAD_MASK)),
        // Transport ports, ICMP type and code, PCP and neighbour discovery may be masked. Value bits outside
        // the mask must be 0.
        ("80000a02 0800 80001401 06 80001d04 0400 0400", None),
        ("80000a02 0800 80001401 06 80001d04 0401 0400", Some(MATCH_BAD_WILDCARDS)),
        ("80000a02 86dd 80001401 11 80001f04 0010 00f0", None),
        ("80000a02 0800 80001401 84 80002504 0001 0001", None),
        ("80000a02 0800 80001401 01 80002702 08 08", None),
        ("80000a02 0800 80001401 01 80002902 00 01", None),
        ("80000a02 86dd 80001401 3a 80003b02 80 80", None),
        ("80000a02 86dd 80001401 3a 80003d02 00 0f", None),
        ("80000c02 1064 80000f02 04 04", None),
        ("80000c02 1064 80000f02 08 08", Some(MATCH_BAD_VALUE)),
        (
            "80000a02 86dd 80001401 3a 80003a01 87 80003f20 fe800000000000000000000000000000 \
             ffc00000000000000000000000000000",
            None,
        ),
        (
            "80000a02 86dd 80001401 3a 80003b02 87 fe 8000410c 020000000000 ff0000000000",
            Some(MATCH_BAD_WILDCARDS),
        ),
        (
            "80000a02 86dd 80001401 3a 80003b02 86 fe 8000410c 020000000000 ff0000000000",
            Some(MATCH_BAD_PREREQ),
        ),
        ("80000a02 86dd 80001401 3a 80003a01 87 8000410c 020000000000 ff0000000000", None),
        ("80000a02 86dd 80001401 3a 80003a01 88 8000430c 020000000000 ff0000000000", None),
        // Open vSwitch refuses a mask on other fields as well.
        ("80000b04 0800 ff00", Some(MATCH_BAD_MASK)),
        ("80000a02 0800 80001502 06 07", Some(MATCH_BAD_MASK)),
        ("80000a02 0800 80001102 08 38", Some(MATCH_BAD_MASK)),
        ("80000a02 0800 80001302 01 01", Some(MATCH_BAD_MASK)),
        ("80000a02 0806 80002b04 0001 0001", Some(MATCH_BAD_MASK)),
        ("80000a02 8847 80004508 00000001 0000000f", Some(MATCH_BAD_MASK)),
        ("80000a02 8847 80004702 01 01", Some(MATCH_BAD_MASK)),
        // A mask of all ones is treated as no mask.
        ("80000b04 0800 ffff", None),
        ("80000004 00000001 80000004 00000001", Some(MATCH_DUP_FIELD)),
        ("80000a02 0800 8000160 4 0a000001", None),
        ("80001604 0a000001", Some(MATCH_BAD_PREREQ)),
        ("80001604 0a000001 80000a02 0800", None),
        ("80000a02 86dd 80001604 0a000001", Some(MATCH_BAD_PREREQ)),
        ("80000a02 0800 80001708 0a000001 ff000000", Some(MATCH_BAD_WILDCARDS)),
        ("80000a02 0800 80001708 0a000000 ff000000", None),
        ("80000e01 01", Some(MATCH_BAD_PREREQ)),
        ("80000c02 1064 80000e01 08", Some(MATCH_BAD_VALUE)),
        ("80000c02 2064", Some(MATCH_BAD_VALUE)),
        ("80000c02 1064 80000e01 07", None),
        ("80005001 00", Some(MATCH_BAD_FIELD)),
        ("00010004 00000001", Some(MATCH_BAD_FIELD)),
        ("ffff0008 4f4e4600 00000001", Some(MATCH_BAD_FIELD)),
        ("ffff0008 4f4e", Some(MATCH_BAD_LEN)),
        // Shunt's slices: base packet, bit 96, 16 bits.
        ("ffff000a ff53484e 0060 0010 0800", None),
        ("ffff000b ff53484e 0060 0010 080000", Some(MATCH_BAD_LEN)),
        ("ffff010c ff53484e 0060 0010 0800 ff00", None),
        ("ffff0009 ff53484e 0060 0007 ff", Some(MATCH_BAD_VALUE)),
        ("ffff0008 ff53484e 0060 0000", Some(MATCH_BAD_VALUE)),
        ("ffff0c09 ff53484e 0060 0008 ff", Some(MATCH_BAD_FIELD)),
        ("ffff000a ff53484e 0060 0010 0800 ffff000a ff53484e 0060 0010 0800", Some(MATCH_DUP_FIELD)),
        ("ffff0808 ff53484e 00000005", None),
        ("ffff0808 ff53484e 00000005 80000004 00000001", Some(MATCH_BAD_WILDCARDS)),
    ] {
        assert_eq!(flow_mod(oxm, ""), code, "{oxm}");
    }
}

#[test]
fn the_match_around_the_fields() {
    let fixed = "0000000000000000 0000000000000000 00 00 0000 0000 8000 ffffffff ffffffff ffffffff 0000 0000";
    for (matching, code) in [
        ("0001 0004 00000000", None),
        ("0000 0058", Some(MATCH_BAD_TYPE)),
        ("0001 0003 00000000", Some(MATCH_BAD_LEN)),
        ("0001 0100 00000000", Some(MATCH_BAD_LEN)),
        ("0001 0004", Some(MATCH_BAD_LEN)),
    ] {
        assert_eq!(refused(14, &bytes(&format!("{fixed}{matching}"))), code, "{matching}");
    }
}

#[test]
fn actions() {
    for (action, code) in [
        ("0000 0010 00000001 0000 000000000000", None),
        ("0000 0008 00000001", Some(ACTION_BAD_LEN)),
        ("0000 0000 00000001", Some(ACTION_BAD_LEN)),
        ("0000 000c 00000001 0000 0000 00000000", Some(ACTION_BAD_LEN)),
        ("0000 0018 00000001 0000 000000000000 0000000000000000", Some(ACTION_BAD_LEN)),
        ("0000 0020 00000001 0000 000000000000", Some(ACTION_BAD_LEN)),
        ("0001 0008 00000001", Some(ACTION_BAD_TYPE)),
        ("0018 0008 00000000", None),
        ("0019 0010 80001604 0a000001 00000000", None),
        ("0019 0010 80001602 0a000000 00000000", Some(ACTION_BAD_SET_LEN)),
        ("0019 0010 8000f604 0a000001 00000000", Some(ACTION_BAD_SET_TYPE)),
        ("0019 0010 80000c02 2000 000000000000", Some(ACTION_BAD_SET_ARGUMENT)),
        ("0019 0010 80001708 0a000000 ff000000", Some(ACTION_BAD_SET_ARGUMENT)),
        ("0019 0018 80001604 0a000001 000000000000000000000000", Some(ACTION_BAD_LEN)),
        ("0019 0008 80001604", Some(ACTION_BAD_SET_LEN)),
        ("ffff 0010 00001234 0000000000000000", Some(ACTION_BAD_EXPERIMENTER)),
        ("ffff 0010 00002320 0001 000000000000", Some(ACTION_BAD_EXP_TYPE)),
        ("ffff 0010 ff53484e 0099 000000000000", Some(ACTION_BAD_EXP_TYPE)),
        ("ffff 0010 ff53484e 0001 40 00 0009 0000", Some(ACTION_BAD_LEN)),
        ("ffff 0018 00002320 0007 0003 00000406 0000000000000005", None),
        ("ffff 0018 00002320 0007 0003 00000406 0000000000000015", Some(ACTION_BAD_SET_ARGUMENT)),
        ("ffff 0018 00002320 0007 0003 00010004 0000000000000005", Some(ACTION_BAD_SET_TYPE)),
    ] {
        assert_eq!(apply(action), code, "{action}");
    }
}

#[test]
fn instructions() {
    for (list, code) in [
        ("0001 0008 05000000", None),
        ("0001 0008 05000000 0001 0008 06000000", Some(INSTRUCTION_UNSUPPORTED)),
        ("0001 0008 05000000 ffff 0010 ff53484e 0001 06 00 00000001", Some(INSTRUCTION_UNSUPPORTED)),
        ("0001 0010 05000000 0000000000000000", Some(INSTRUCTION_BAD_LEN)),
        ("0001 0007 05000000", Some(INSTRUCTION_BAD_LEN)),
        ("0001 0010 05000000", Some(INSTRUCTION_BAD_LEN)),
        ("0001 00", Some(INSTRUCTION_BAD_LEN)),
        ("0002 0008 00000000", Some(INSTRUCTION_BAD_LEN)),
        ("0005 0008 00000000", None),
        ("0007 0008 00000000", Some(INSTRUCTION_UNKNOWN)),
        ("ffff 0008 00002320", Some(INSTRUCTION_BAD_EXPERIMENTER)),
        ("ffff 0010 ff53484e 0009 000000000000", Some(INSTRUCTION_BAD_EXP_TYPE)),
    ] {
        assert_eq!(flow_mod("", list), code, "{list}");
    }
}

#[test]
fn messages() {
    let bundle_add = "4f4e4600 000008fd 00000005 0000 0000";
    for (kind, body, code) in [
        (5, "", None),
        (5, "00", Some(BAD_LEN)),
        (30, "", Some(BAD_TYPE)),
        (9, "0003 0080", Some(SWITCH_CONFIG_BAD_FLAGS)),
        (9, "0000", Some(BAD_LEN)),
        (4, "00002320 00000010 00000001", Some(BAD_EXPERIMENTER)),
        (4, "ff53484e 00000004", Some(BAD_EXP_TYPE)),
        (4, "4f4e4600 00000001", Some(BAD_EXP_TYPE)),
        (4, "4f4e4600 000008fc 00000005 0000 0003", None),
        (4, "4f4e4600 000008fc 00000005 0008 0003", Some(bundle::BAD_TYPE)),
        (4, &format!("{bundle_add} 0410000800000001"), Some(BAD_LEN)),
        (4, &format!("{bundle_add} 0410000900000001"), Some(bundle::MSG_BAD_LEN)),
        (4, &format!("{bundle_add} 0410000800000002"), Some(bundle::MSG_BAD_XID)),
        (4, &format!("{bundle_add} 0405000800000001"), Some(bundle::MSG_UNSUP)),
        (4, &format!("{bundle_add} 0404000800000001"), Some(bundle::MSG_UNSUP)),
        (4, bundle_add, Some(bundle::MSG_BAD_LEN)),
        (13, "ffffffff 00000001 0000 000000000000", None),
        // Packet-outs without an ingress port.
        (13, "ffffffff 00000000 0000 000000000000", None),
        (13, "ffffffff fffffffd 0000 000000000000", None),
        (13, "ffffffff fffffffe 0000 000000000000", None),
        (13, "ffffffff ffffffff 0000 000000000000", None),
        (13, "ffffffff fffffff8 0000 000000000000", Some(BAD_PORT)),
        (13, "ffffffff fffffff9 0000 000000000000", Some(BAD_PORT)),
        (13, "ffffffff ffffff01 0000 000000000000", Some(BAD_PORT)),
        (13, "ffffffff 00000001 0008 000000000000", Some(BAD_LEN)),
        (14, &format!("{:032} 00 05 {:036}", 0, 0), Some(FLOW_MOD_BAD_COMMAND)),
        (15, "0003 00 00 00000001", Some(GROUP_BAD_COMMAND)),
        (15, "0000 04 00 00000001", Some(GROUP_BAD_TYPE)),
        (15, "0000 00 00 fffffffc", Some(GROUP_INVALID)),
        (15, "0002 00 00 fffffffc", None),
        (15, "0000 00 00 00000001 0008 0000 00000000", Some(GROUP_BAD_BUCKET)),
        (15, "0000 00 00 00000001 0018 0000 ffffffff ffffffff 00000000", Some(GROUP_BAD_BUCKET)),
        (
            15,
            "0000 00 00 00000001 0018 0000 ffffffff ffffffff 00000000 0001 0008 00000000",
            Some(ACTION_BAD_TYPE),
        ),
        (18, "000e 0000 00000000", Some(BAD_MULTIPART)),
        (18, "0000 0000 00000000 00", Some(BAD_LEN)),
        (18, "ffff 0000 00000000 00002320 00000000", Some(BAD_EXPERIMENTER)),
        (18, "000c 0000 00000000 0000", Some(TABLE_FEATURES_BAD_LEN)),
        (24, "00000004 00000000 0000000000000000", Some(ROLE_BAD_ROLE)),
        (29, "0003 0001 00000001", Some(METER_BAD_COMMAND)),
        (29, "0000 0003 00000001", Some(METER_BAD_FLAGS)),
        (29, "0000 0011 00000001", Some(METER_BAD_FLAGS)),
        (29, "0000 0001 00000000", Some(METER_INVALID)),
        (29, "0000 0001 00000001 0003 0010 00000001 00000000 00000000", Some(METER_BAD_BAND)),
        (29, "0000 0001 00000001 0001 0008 00000001", Some(BAD_LEN)),
    ] {
        assert_eq!(refused(kind, &bytes(body)), code, "type {kind}: {body}");
    }
    assert_eq!(decode(&[5, 5, 0, 8, 0, 0, 0, 1]).unwrap_err().code, BAD_VERSION);
    assert_eq!(decode(&[4, 5, 0, 9, 0, 0, 0, 1]).unwrap_err().code, BAD_LEN);
    assert_eq!(decode(&[4, 5, 0]).unwrap_err().code, BAD_LEN);
    let unknown_flag = format!("{:044} 8000 ffffffff ffffffff ffffffff 0020 0000 0001 0004 00000000", 0);
    assert_eq!(refused(14, &bytes(&unknown_flag)), Some(FLOW_MOD_BAD_FLAGS));
}

#[test]
fn queues() {
    for (kind, body, code) in [
        (22, "00000001 00000000", None),
        (22, "00000001", Some(BAD_LEN)),
        (22, "00000001 00000000 00", Some(BAD_LEN)),
        // Queue 2 of port 1 with a guaranteed rate. The next four messages have wrong lengths: the queue is
        // too short, the queue is longer than the message, the property is too short, and the property is
        // longer than its queue.
        (
            23,
            "00000001 00000000 00000002 00000001 0020 000000000000 0001 0010 00000000 0064 000000000000",
            None,
        ),
        (23, "00000001 00000000 00000002 00000001 0008 000000000000", Some(BAD_LEN)),
        (23, "00000001 00000000 00000002 00000001 0020 000000000000", Some(BAD_LEN)),
        (23, "00000001 00000000 00000002 00000001 0018 000000000000 0001 0004 00000000", Some(BAD_LEN)),
        (23, "00000001 00000000 00000002 00000001 0018 000000000000 0001 0018 00000000", Some(BAD_LEN)),
        // Statistics of queue 2, port 1.
        (18, "0005 0000 00000000 00000001 00000002", None),
        (18, "0005 0000 00000000 00000001", Some(BAD_LEN)),
    ] {
        assert_eq!(refused(kind, &bytes(body)), code, "{kind}: {body}");
    }
    assert_eq!(apply("0015 0008 00000007"), None);
    assert_eq!(apply("0015 0010 00000007 00000000 00000000"), Some(ACTION_BAD_LEN));
}
