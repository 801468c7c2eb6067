// SPDX-License-Identifier: Apache-2.0
//! The OpenFlow 1.3 type and code of each error, held against the numbers of the specification (section 7.4.4).

use flow::validate::ValidateError;
use model::ModelError::{self, *};

const BAD_REQUEST: u16 = 1;
const BAD_ACTION: u16 = 2;
const BAD_INSTRUCTION: u16 = 3;
const FLOW_MOD_FAILED: u16 = 5;
const GROUP_MOD_FAILED: u16 = 6;
const PORT_MOD_FAILED: u16 = 7;
const METER_MOD_FAILED: u16 = 12;

fn check(cases: impl IntoIterator<Item = (ModelError, (u16, u16))>) {
    for (error, expected) in cases {
        assert_eq!(error.openflow(), expected, "{error:?}");
    }
}

#[test]
fn flow_mods_and_packet_outs() {
    check([
        (TooManySlices { table: 1, slices: 9 }, (FLOW_MOD_FAILED, 1)),
        (IndexTaken { table: 1, index: 2, priority: 3 }, (FLOW_MOD_FAILED, 3)),
        (BadInPort(3), (BAD_REQUEST, 11)),
        (BadPacket(3), (BAD_REQUEST, 12)),
        (Invalid(ValidateError::Table), (FLOW_MOD_FAILED, 2)),
        (Invalid(ValidateError::Goto { from: 3, to: 2 }), (BAD_INSTRUCTION, 2)),
        (Invalid(ValidateError::TooManyActions(99)), (BAD_ACTION, 7)),
        (Invalid(ValidateError::OutPort(0)), (BAD_ACTION, 4)),
        (Invalid(ValidateError::OutGroup(0)), (BAD_ACTION, 9)),
    ]);
}

#[test]
fn groups() {
    check([
        (NoSuchGroup(1), (BAD_ACTION, 9)),
        (GroupExists(1), (GROUP_MOD_FAILED, 0)),
        (InvalidGroup { group: 1, why: "" }, (GROUP_MOD_FAILED, 1)),
        (TooManyGroups, (GROUP_MOD_FAILED, 3)),
        (NoRoomForBuckets { group: 1, buckets: 2 }, (GROUP_MOD_FAILED, 4)),
        (TooManyPasses { group: 1 }, (GROUP_MOD_FAILED, 4)),
        (TooManyBuckets { group: 1, buckets: 2 }, (GROUP_MOD_FAILED, 4)),
        (GroupChain(1), (GROUP_MOD_FAILED, 5)),
        (GroupLoop(1), (GROUP_MOD_FAILED, 7)),
        (UnknownGroup(1), (GROUP_MOD_FAILED, 8)),
        (ChainedGroup { group: 1, sender: 2 }, (GROUP_MOD_FAILED, 9)),
    ]);
}

#[test]
fn meters() {
    check([
        (MeterExists(1), (METER_MOD_FAILED, 1)),
        (InvalidMeter { meter: 1, why: "" }, (METER_MOD_FAILED, 2)),
        (NoSuchMeter(1), (METER_MOD_FAILED, 3)),
        (ZeroRate(1), (METER_MOD_FAILED, 6)),
        (BadPrecedence { meter: 1, level: 9 }, (METER_MOD_FAILED, 9)),
        (TooManyMeters, (METER_MOD_FAILED, 10)),
        (TooManyBands { meter: 1, bands: 99 }, (METER_MOD_FAILED, 11)),
    ]);
}

#[test]
fn ports() {
    check([
        (NoSuchPort(1), (PORT_MOD_FAILED, 0)),
        (BadPortNumber(0), (PORT_MOD_FAILED, 0)),
        (PortExists(1), (PORT_MOD_FAILED, 0)),
        (TooManyPorts, (PORT_MOD_FAILED, 0)),
        (PortMac(1), (PORT_MOD_FAILED, 1)),
        (PortAdvertise(1), (PORT_MOD_FAILED, 3)),
    ]);
}
