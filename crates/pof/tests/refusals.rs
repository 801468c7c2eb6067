// SPDX-License-Identifier: Apache-2.0
//! Invalid messages are refused with POF's error code, the message, the offset and the reason. Values that a
//! dialect cannot express are not encoded.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use pof::action::{AddFieldAction, DeleteFieldAction, DropAction, OutputAction, PofAction};
use pof::instruction::{ApplyActions, MovePacketOffset, PofInstruction};
use pof::message::resource::{PofGroupMod, PofMeterMod};
use pof::message::table::{FlowCommand, PofFlowMod};
use pof::value::{PofField, PofMatch, PofOperand};
use pof::{PofDialect, PofEncodeError, PofMessage, decode, encode};

const OLD: PofDialect = PofDialect::V1_2;
const NEW: PofDialect = PofDialect::V1_4;

/// Decodes a message of zeros except for some bytes, given by their offset in the message.
fn refused(dialect: PofDialect, kind: u8, length: u16, bytes: &[(usize, u8)]) -> Option<String> {
    let mut message = vec![0; usize::from(length)];
    message[..2].copy_from_slice(&[4, kind]);
    message[2..4].copy_from_slice(&length.to_be_bytes());
    for (at, byte) in bytes {
        message[*at] = *byte;
    }
    decode(&message, dialect).err().map(|error| {
        let code = error.code.to_string();
        assert!(error.to_string().ends_with(&format!("({code})")));
        format!("{code} at {}", error.offset)
    })
}

type Case<'a> = (PofDialect, u8, u16, &'a [(usize, u8)], &'a str);

#[test]
fn invalid_fields_are_refused_with_their_code_and_offset() {
    let cases: &[Case<'_>] = &[
        (OLD, 12, 136, &[(8, 3)], "POFBRC_BAD_TYPE at 8"),
        (OLD, 17, 136, &[(128, 2)], "POFPMFC_UNKNOWN at 128"),
        (OLD, 18, 152, &[(8, 3)], "POFTMFC_BAD_COMMAND at 8"),
        (NEW, 18, 152, &[(8, 5)], "POFTMFC_BAD_COMMAND at 8"),
        (OLD, 18, 152, &[(10, 4)], "POFTMFC_BAD_TABLE_TYPE at 10"),
        (OLD, 18, 152, &[(11, 9)], "POFTMFC_BAD_KEY_LEN at 11"),
        (OLD, 15, 1200, &[(8, 5)], "POFFMFC_BAD_COMMAND at 8"),
        (NEW, 15, 2192, &[(8, 7)], "POFFMFC_BAD_COMMAND at 8"),
        (OLD, 15, 1200, &[(9, 9)], "POFBMC_BAD_LEN at 9"),
        (OLD, 15, 1200, &[(10, 5)], "POFBIC_BAD_LEN at 10"),
        (NEW, 15, 2192, &[(10, 7)], "POFBIC_BAD_LEN at 10"),
        (OLD, 15, 1200, &[(11, 3)], "POFFMFC_BAD_FLAGS at 11"),
        (OLD, 15, 1200, &[(33, 4)], "POFFMFC_BAD_TABLE_TYPE at 33"),
        // The second match has a field of 129 bits.
        (OLD, 15, 1200, &[(9, 2), (93, 129)], "POFBMC_BAD_LEN at 92"),
        // Types of instructions: unknown, without layout, and not in this dialect.
        (OLD, 15, 1200, &[(10, 1)], "POFBIC_UNKNOWN_INST at 368"),
        (OLD, 15, 1200, &[(10, 2), (369, 6), (577, 16)], "POFBIC_UNKNOWN_INST at 576"),
        (OLD, 15, 1200, &[(10, 1), (369, 3)], "POFBIC_UNSUP_INST at 368"),
        (OLD, 15, 1200, &[(10, 1), (369, 9)], "POFBIC_UNSUP_INST at 368"),
        (NEW, 15, 2192, &[(10, 1), (369, 12)], "POFBIC_UNSUP_INST at 368"),
        (NEW, 15, 2192, &[(10, 1), (369, 11), (376, 2)], "POFBIC_BAD_OFFSET at 376"),
        (NEW, 15, 2192, &[(10, 1), (369, 9), (377, 2)], "POFBIC_JUM_TO_INVALID_INST at 377"),
        (NEW, 15, 2192, &[(10, 1), (369, 11), (377, 2)], "POFBIC_UNSUP_INST at 377"),
        (NEW, 15, 2192, &[(10, 1), (369, 10), (377, 8)], "POFBIC_UNSUP_INST at 376"),
        (OLD, 15, 1200, &[(10, 1), (369, 1), (377, 9)], "POFBIC_BAD_LEN at 377"),
        // Actions: too many, unknown, and with an operand of an unknown type.
        (OLD, 15, 1200, &[(10, 1), (369, 4), (376, 5)], "POFBIC_TOO_MANY_ACTIONS at 376"),
        (NEW, 15, 2192, &[(10, 1), (369, 4), (376, 7)], "POFBIC_TOO_MANY_ACTIONS at 376"),
        (OLD, 15, 1200, &[(10, 1), (369, 4), (376, 2), (433, 11)], "POFBAC_BAD_TYPE at 432"),
        (NEW, 15, 2192, &[(10, 1), (369, 4), (376, 1), (385, 101)], "POFBAC_BAD_TYPE at 384"),
        (NEW, 15, 2192, &[(10, 1), (369, 4), (376, 1), (388, 2)], "POFBAC_BAD_ARGUMENT at 388"),
        (NEW, 15, 2192, &[(10, 1), (369, 4), (376, 1), (385, 6), (389, 2)], "POFBAC_BAD_ARGUMENT at 389"),
        (OLD, 16, 216, &[(8, 3)], "POFGMFC_BAD_COMMAND at 8"),
        (OLD, 16, 216, &[(9, 4)], "POFGMFC_BAD_TYPE at 9"),
        (OLD, 16, 216, &[(10, 5)], "POFBAC_TOO_MANY at 10"),
        (NEW, 16, 1848, &[(10, 7)], "POFGMFC_OUT_OF_BUCKETS at 10"),
        (NEW, 16, 1848, &[(10, 2), (329, 7)], "POFBAC_TOO_MANY at 328"),
        (OLD, 30, 16, &[(8, 3)], "POFMMFC_BAD_COMMAND at 8"),
        (OLD, 31, 24, &[(8, 5)], "POFCMFC_BAD_COMMAND at 8"),
        (OLD, 10, 40, &[(13, 7)], "POFBRC_BAD_LEN at 12"),
        (OLD, 10, 40, &[(13, 8), (14, 3)], "POFBRC_BAD_TYPE at 14"),
        (NEW, 14, 316, &[(23, 5)], "POFBRC_BAD_PACKET at 20"),
        (OLD, 11, 48, &[], "POFBRC_BAD_TYPE at 1"),
        (OLD, 36, 48, &[], "POFBRC_BAD_TYPE at 1"),
        (OLD, 99, 8, &[], "POFBRC_BAD_TYPE at 1"),
        (OLD, 14, 312, &[], "POFBRC_BAD_TYPE at 1"),
        (OLD, 2, 8, &[(0, 1)], "POFBRC_BAD_VERSION at 0"),
        // PCTRL's GROUP_MOD.
        (NEW, 16, 320, &[], "POFBRC_BAD_LEN at 2"),
    ];
    for (dialect, kind, length, bytes, expected) in cases {
        let got = refused(*dialect, *kind, *length, bytes);
        assert_eq!(got.as_deref(), Some(*expected), "type {kind} in {dialect} with {bytes:?}");
    }
}

type Accepted<'a> = (PofDialect, u8, u16, &'a [(usize, u8)]);

/// Padding, unused slots and lengths inside a message may have any content.
#[test]
fn bytes_without_meaning_are_accepted() {
    let cases: &[Accepted<'_>] = &[
        (OLD, 15, 1200, &[(44, 9), (47, 9)]),
        // A slot beyond the number of instructions, and the length of an instruction.
        (OLD, 15, 1200, &[(368, 0xff), (369, 0xff)]),
        (OLD, 15, 1200, &[(10, 1), (369, 6), (370, 0xff), (371, 0xff), (375, 1)]),
        (OLD, 13, 88, &[(10, 1), (11, 1)]),
        (NEW, 12, 136, &[(15, 7), (135, 7)]),
    ];
    for (dialect, kind, length, bytes) in cases {
        assert_eq!(refused(*dialect, *kind, *length, bytes), None, "type {kind} with {bytes:?}");
    }
}

#[test]
fn errors_state_message_offset_reason_and_code() {
    let error = decode(&[4, 31, 0, 8, 0, 0, 0, 0], OLD).unwrap_err();
    assert_eq!(
        error.to_string(),
        "COUNTER_MOD, byte 2: the message has 8 bytes; in dialect 1.2 it has 24 (POFBRC_BAD_LEN)"
    );
    // The length of the other dialect.
    let mut flow_mod = vec![0; 2192];
    flow_mod[..4].copy_from_slice(&[4, 15, 8, 0x90]);
    assert_eq!(
        decode(&flow_mod, OLD).unwrap_err().to_string(),
        "FLOW_MOD, byte 2: the message has 2192 bytes; in dialect 1.2 it has 1200 (this is its length in dialect \
         1.4.0.015; check the dialect of this channel) (POFBRC_BAD_LEN)"
    );
    let error = decode(&[4, 16, 0, 8, 0, 0, 0, 0], NEW).unwrap_err();
    assert!(error.to_string().contains("in dialect 1.4.0.015 it has 216 or 1848"), "{error}");
    let error = decode(&[4, 11, 0, 8, 0, 0, 0, 0], NEW).unwrap_err();
    assert_eq!(
        error.to_string(),
        "FLOW_REMOVED, byte 1: POF numbers FLOW_REMOVED (11) but defines no layout for it (POFBRC_BAD_TYPE)"
    );
}

#[test]
fn types_without_a_layout_are_refused_by_name() {
    for (kind, name) in [
        (4, "EXPERIMENTER"),
        (11, "FLOW_REMOVED"),
        (19, "MULTIPART_REQUEST"),
        (20, "MULTIPART_REPLY"),
        (21, "BARRIER_REQUEST"),
        (22, "BARRIER_REPLY"),
        (23, "QUEUE_GET_CONFIG_REQUEST"),
        (24, "QUEUE_GET_CONFIG_REPLY"),
        (25, "ROLE_REQUEST"),
        (26, "ROLE_REPLY"),
        (27, "GET_ASYNC_REQUEST"),
        (28, "GET_ASYNC_REPLY"),
        (29, "SET_ASYNC"),
        (36, "INSTRUCTION_BLOCK_MOD"),
    ] {
        for dialect in PofDialect::ALL {
            let error = decode(&[4, kind, 0, 8, 0, 0, 0, 0], dialect).unwrap_err();
            assert_eq!((error.code.kind, error.code.code, error.offset), (1, 1, 1));
            assert_eq!((&*error.message, pof::message::name_of(kind)), (name, Some(name)));
        }
    }
    assert_eq!(pof::message::name_of(37), None);
}

fn unencodable(message: PofMessage, dialect: PofDialect) -> PofEncodeError {
    let mut out = vec![1, 2, 3];
    let error = encode(&message, 0, dialect, &mut out).expect_err("must not be encoded");
    assert_eq!(out, [1, 2, 3], "nothing is written");
    error
}

fn flow(instruction: PofInstruction) -> PofMessage {
    PofMessage::FlowMod(PofFlowMod { instructions: vec![instruction], ..PofFlowMod::default() })
}

fn action(action: PofAction) -> PofMessage {
    flow(PofInstruction::ApplyActions(ApplyActions { actions: vec![action] }))
}

#[test]
fn values_that_a_dialect_cannot_express_are_not_encoded() {
    let meter =
        |slot, rate_kbps| PofMessage::MeterMod(PofMeterMod { slot, rate_kbps, ..PofMeterMod::default() });
    let unfit = |field| PofEncodeError::Unfit { field, dialect: OLD };
    assert_eq!(unencodable(meter(1, 0), OLD), unfit("slot"));
    assert_eq!(unencodable(meter(0, 0x1_0000), OLD), unfit("rate_kbps"));
    let query = PofFlowMod { command: FlowCommand::Query, ..PofFlowMod::default() };
    assert_eq!(unencodable(PofMessage::FlowMod(query), OLD), unfit("command"));
    let field = PofOperand::Field(PofField::default());
    let output = OutputAction { port: field, ..OutputAction::default() };
    assert_eq!(unencodable(action(PofAction::Output(output)), OLD), unfit("port"));
    let delete = DeleteFieldAction { length_bits: field, ..DeleteFieldAction::default() };
    assert_eq!(unencodable(action(PofAction::DeleteField(delete)), OLD), unfit("length_bits"));
    let add = AddFieldAction { value: 1 << 64, ..AddFieldAction::default() };
    assert_eq!(unencodable(action(PofAction::AddField(add)), OLD), unfit("value"));
    let shift = PofInstruction::MovePacketOffset(MovePacketOffset::default());
    let missing = PofEncodeError::Missing { what: "MovePacketOffset", dialect: OLD };
    assert_eq!(unencodable(flow(shift), OLD), missing);
}

#[test]
fn lists_and_fields_that_are_too_long_are_not_encoded() {
    let drop = PofAction::Drop(DropAction::default());
    for (dialect, max) in [(OLD, 4), (NEW, 6)] {
        let actions = vec![drop.clone(); max + 1];
        let error = unencodable(flow(PofInstruction::ApplyActions(ApplyActions { actions })), dialect);
        assert_eq!(error, PofEncodeError::TooMany { field: "actions", count: max + 1, max, dialect });
    }
    let actions = vec![drop; 5];
    let group = PofMessage::GroupMod(PofGroupMod { actions, ..PofGroupMod::default() });
    assert!(matches!(unencodable(group, NEW), PofEncodeError::TooMany { max: 4, .. }));
    let long = PofField { length_bits: 129, ..PofField::default() };
    let matches = vec![PofMatch { field: long, ..PofMatch::default() }];
    let error = unencodable(PofMessage::FlowMod(PofFlowMod { matches, ..PofFlowMod::default() }), NEW);
    assert_eq!(error.to_string(), "a field with a value has 129 bits; the maximum is 128");
}
