// SPDX-License-Identifier: Apache-2.0
//! Every action of both dialects, in the slots of an APPLY_ACTIONS instruction.

use super::instructions::{field, with_instructions};
use super::{Cell, NEW, OLD, Vector};
use flow::GroupId;
use pof::PofDialect;
use pof::action::{
    AddFieldAction, ChecksumAction, CounterAction, DeleteFieldAction, DropAction, GroupAction,
    ModifyFieldAction, OutputAction, PacketInAction, PofAction, PofLocation, SetFieldFromMetadataAction,
};
use pof::instruction::{ApplyActions, PofInstruction};
use pof::value::{PofCounterId, PofField, PofMatch, PofOperand};

/// Type, length, cells whose offsets begin after the action's header of 4 bytes, and the action.
type Given = (u128, u128, Vec<Cell>, PofAction);

pub fn vectors() -> Vec<Vector> {
    let mut made = Vec::new();
    for dialect in [OLD, NEW] {
        let lists = [simple(), fields(), if dialect == OLD { old() } else { new() }];
        for list in lists {
            let most = if dialect == OLD { 4 } else { 6 };
            made.extend(list.chunks(most).map(|actions| with_actions(dialect, actions)));
        }
    }
    made
}

fn with_actions(dialect: PofDialect, given: &[Given]) -> Vector {
    let mut cells: Vec<Cell> = vec![(0, 1, given.len() as u128)];
    let mut actions = Vec::new();
    for (n, (kind, length, own, action)) in given.iter().enumerate() {
        let at = 8 + 48 * n;
        cells.extend([(at, 2, *kind), (at + 2, 2, *length)]);
        cells.extend(own.iter().map(|(offset, width, value)| (at + 4 + offset, *width, *value)));
        actions.push(action.clone());
    }
    let length = if dialect == OLD { 208 } else { 304 };
    let instruction = PofInstruction::ApplyActions(ApplyActions { actions });
    with_instructions(dialect, vec![(4, length, cells, instruction)])
}

/// Actions of one number, equal in both dialects.
fn simple() -> Vec<Given> {
    let number: Vec<Cell> = vec![(0, 4, 0x0102_0304)];
    let group = PofAction::Group(GroupAction { group: GroupId(0x0102_0304) });
    let counter = PofAction::Counter(CounterAction { counter: PofCounterId(0x0102_0304) });
    vec![
        (7, 12, number.clone(), group),
        (8, 12, number.clone(), PofAction::Drop(DropAction { reason: 0x0102_0304 })),
        (9, 12, number.clone(), PofAction::PacketIn(PacketInAction { reason: 0x0102_0304 })),
        (10, 12, number, counter),
    ]
}

/// Actions on fields, equal in both dialects.
fn fields() -> Vec<Given> {
    let (value, mask) = (0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10, 0xff00_ff00 << 96);
    let set = PofMatch { field: PofField { id: 5, offset_bits: 0x0607, length_bits: 128 }, value, mask };
    let set_cells = vec![(0, 2, 5), (2, 2, 0x0607), (4, 2, 128), (8, 16, value), (24, 16, mask)];
    let (one, cells) = field(0, 1);
    let copy = SetFieldFromMetadataAction { field: one, metadata_offset_bits: 0x0809 };
    let modify = ModifyFieldAction { field: one, increment: -2 };
    vec![
        (1, 44, set_cells, PofAction::SetField(set)),
        (2, 20, [&cells[..], &[(8, 2, 0x0809)]].concat(), PofAction::SetFieldFromMetadata(copy)),
        (3, 20, [&cells[..], &[(8, 4, 0xffff_fffe)]].concat(), PofAction::ModifyField(modify)),
    ]
}

fn output(port: PofOperand) -> PofAction {
    PofAction::Output(OutputAction {
        metadata_offset_bits: 0x0102,
        metadata_length_bits: 0x0304,
        packet_offset_bytes: 0x0506,
        port,
    })
}

fn add(value: u128) -> PofAction {
    PofAction::AddField(AddFieldAction { id: 0x0102, offset_bits: 0x0304, length_bits: 64, value })
}

fn delete(length_bits: PofOperand) -> PofAction {
    PofAction::DeleteField(DeleteFieldAction { offset_bits: 0x0102, length_bits })
}

fn checksum(checksum_location: PofLocation, sum_location: PofLocation) -> PofAction {
    PofAction::Checksum(ChecksumAction {
        checksum_location,
        sum_location,
        checksum_offset_bits: 0x0102,
        checksum_length_bits: 0x0304,
        sum_offset_bits: 0x0506,
        sum_length_bits: 0x0708,
    })
}

fn old() -> Vec<Given> {
    let number = PofOperand::Number(0x1112_1314);
    let value = 0x2122_2324_2526_2728;
    let sum = checksum(PofLocation::Packet, PofLocation::Packet);
    vec![
        (0, 20, vec![(0, 4, 0x1112_1314), (4, 2, 0x0102), (6, 2, 0x0304), (8, 2, 0x0506)], output(number)),
        (4, 20, vec![(0, 2, 0x0102), (2, 2, 0x0304), (4, 4, 64), (8, 8, value)], add(value)),
        (5, 12, vec![(0, 2, 0x0102), (4, 4, 0x1112_1314)], delete(number)),
        (6, 12, vec![(0, 2, 0x0102), (2, 2, 0x0304), (4, 2, 0x0506), (6, 2, 0x0708)], sum),
    ]
}

fn new() -> Vec<Given> {
    let number = PofOperand::Number(0x1112_1314);
    let (one, cells) = field(8, 2);
    let value = 0x2122_2324_2526_2728_292a_2b2c_2d2e_2f30;
    let out: &[Cell] = &[(2, 2, 0x0102), (4, 2, 0x0304), (6, 2, 0x0506)];
    let sum: &[Cell] = &[(2, 2, 0x0102), (4, 2, 0x0304), (6, 2, 0x0506), (8, 2, 0x0708)];
    let from_metadata = checksum(PofLocation::Packet, PofLocation::Metadata);
    let to_metadata = checksum(PofLocation::Metadata, PofLocation::Packet);
    vec![
        (0, 20, [out, &[(8, 4, 0x1112_1314)]].concat(), output(number)),
        (0, 20, [out, &[(0, 1, 1)], &cells].concat(), output(PofOperand::Field(one))),
        (4, 28, vec![(0, 2, 0x0102), (2, 2, 0x0304), (4, 4, 64), (8, 16, value)], add(value)),
        (5, 20, vec![(0, 2, 0x0102), (8, 4, 0x1112_1314)], delete(number)),
        (5, 20, [&[(0, 2, 0x0102), (2, 1, 1)], &cells[..]].concat(), delete(PofOperand::Field(one))),
        (6, 20, [sum, &[(1, 1, 1)]].concat(), from_metadata),
        (6, 20, [sum, &[(0, 1, 1)]].concat(), to_metadata),
    ]
}
