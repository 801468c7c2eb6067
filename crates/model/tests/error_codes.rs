// SPDX-License-Identifier: Apache-2.0
//! Compares the OpenFlow error type and code of each error with the numbers of the specification (OpenFlow
//! 1.3, section 7.4.4).

use flow::action::TfHeader;
use flow::stateless::StatelessError;
use flow::validate::ValidateError;
use flow::{EditError, Field, GroupId, MatchError, MeterId, PortNo, TableId};
use model::ModelError::{self, *};

const BAD_REQUEST: u16 = 1;
const BAD_ACTION: u16 = 2;
const BAD_INSTRUCTION: u16 = 3;
const BAD_MATCH: u16 = 4;
const FLOW_MOD_FAILED: u16 = 5;
const GROUP_MOD_FAILED: u16 = 6;
const PORT_MOD_FAILED: u16 = 7;
const METER_MOD_FAILED: u16 = 12;
const EXPERIMENTER: u16 = 0xffff;

fn check(cases: impl IntoIterator<Item = (ModelError, (u16, u16))>) {
    for (error, expected) in cases {
        assert_eq!(error.openflow(), expected, "{error:?}");
    }
}

#[test]
fn flow_mods_and_packet_outs() {
    check([
        (RemovedTable(TableId(1)), (FLOW_MOD_FAILED, 2)),
        (RemovedNextTable(TableId(1)), (BAD_INSTRUCTION, 2)),
        (TableFull { in_use: 1, limit: 1 }, (FLOW_MOD_FAILED, 1)),
        (TooManySlices { table: TableId(1), slices: 9 }, (FLOW_MOD_FAILED, 1)),
        (Overlap { table: TableId(1), priority: 3 }, (FLOW_MOD_FAILED, 3)),
        (IndexTooLarge { index: 2, limit: 1 }, (BAD_MATCH, 7)),
        (IndexTaken { table: TableId(1), index: 2, priority: 3 }, (FLOW_MOD_FAILED, 3)),
        (BadInPort(PortNo(3)), (BAD_REQUEST, 11)),
        (BadPacket(3), (BAD_REQUEST, 12)),
        (Stateless(StatelessError::Port(PortNo(0))), (EXPERIMENTER, 1)),
    ]);
}

#[test]
fn flow_mods_that_are_invalid_by_themselves() {
    use ValidateError as V;
    let header = TfHeader { qid: 9, up: 0, down: 0 };
    let cases = [
        (V::Table, (FLOW_MOD_FAILED, 2)),
        (V::Goto { from: TableId(3), to: TableId(2) }, (BAD_INSTRUCTION, 2)),
        (V::Prerequisite(MatchError::Prerequisite("tcp_dst".into(), "tcp")), (BAD_MATCH, 9)),
        (V::Meter(MeterId(0)), (METER_MOD_FAILED, 2)),
        (V::TooManyActions(99), (BAD_ACTION, 7)),
        (V::OutPort(PortNo(0)), (BAD_ACTION, 4)),
        (V::OutGroup(GroupId(0)), (BAD_ACTION, 9)),
        (V::Queue, (BAD_ACTION, 8)),
        (V::SetType(Field::InPort), (BAD_ACTION, 13)),
        (V::SetArgument { field: Field::EthSrc, value: 1, mask: 0 }, (BAD_ACTION, 15)),
        (V::PushType { action: "push_vlan", ethertype: 0, allowed: "" }, (BAD_ACTION, 5)),
        (V::Key { bytes: 9, epoch: 0 }, (BAD_ACTION, 5)),
        (V::Tf { action: "push_tf", up_bits: 32, down_bits: 13, header }, (BAD_ACTION, 5)),
        (V::Edit(EditError::Distance(2_000)), (BAD_ACTION, 5)),
        (V::Unordered("move_base"), (BAD_ACTION, 11)),
    ];
    check(cases.map(|(error, expected)| (Invalid(error), expected)));
}

#[test]
fn groups() {
    check([
        (NoSuchGroup(GroupId(1)), (BAD_ACTION, 9)),
        (GroupExists(GroupId(1)), (GROUP_MOD_FAILED, 0)),
        (InvalidGroup { group: GroupId(1), why: "" }, (GROUP_MOD_FAILED, 1)),
        (TooManyGroups, (GROUP_MOD_FAILED, 3)),
        (NoRoomForBuckets { group: GroupId(1), buckets: 2 }, (GROUP_MOD_FAILED, 4)),
        (TooManyPasses { group: GroupId(1) }, (GROUP_MOD_FAILED, 4)),
        (TooManyBuckets { group: GroupId(1), buckets: 2 }, (GROUP_MOD_FAILED, 4)),
        (GroupChain(GroupId(1)), (GROUP_MOD_FAILED, 5)),
        (GroupLoop(GroupId(1)), (GROUP_MOD_FAILED, 7)),
        (UnknownGroup(GroupId(1)), (GROUP_MOD_FAILED, 8)),
        (ChainedGroup { group: GroupId(1), sender: GroupId(2) }, (GROUP_MOD_FAILED, 9)),
    ]);
}

#[test]
fn meters() {
    check([
        (MeterExists(MeterId(1)), (METER_MOD_FAILED, 1)),
        (InvalidMeter { meter: MeterId(1), why: "" }, (METER_MOD_FAILED, 2)),
        (NoSuchMeter(MeterId(1)), (METER_MOD_FAILED, 3)),
        (ZeroRate(MeterId(1)), (METER_MOD_FAILED, 6)),
        (BadPrecedence { meter: MeterId(1), level: 9 }, (METER_MOD_FAILED, 9)),
        (TooManyMeters, (METER_MOD_FAILED, 10)),
        (TooManyBands { meter: MeterId(1), bands: 99 }, (METER_MOD_FAILED, 11)),
    ]);
}

#[test]
fn ports() {
    check([
        (NoSuchPort(PortNo(1)), (PORT_MOD_FAILED, 0)),
        (BadPortNumber(PortNo(0)), (PORT_MOD_FAILED, 0)),
        (PortExists(PortNo(1)), (PORT_MOD_FAILED, 0)),
        (TooManyPorts, (PORT_MOD_FAILED, 0)),
        (PortMac(PortNo(1)), (PORT_MOD_FAILED, 1)),
        (PortAdvertise(PortNo(1)), (PORT_MOD_FAILED, 3)),
    ]);
}
