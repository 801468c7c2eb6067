// SPDX-License-Identifier: Apache-2.0
//! Every instruction of both dialects, in the slots of a FLOW_MOD.

use super::tables::flow_mod;
use super::{Cell, NEW, OLD, Vector, assemble, insert, vector};
use flow::{MeterId, TableId};
use pof::action::{DropAction, PofAction};
use pof::instruction::{
    ApplyActions, CalculateField, ConditionalJump, GotoDirectTable, GotoTable, MeterInstruction,
    MovePacketOffset, PofCalculation, PofDirection, PofInstruction, WriteMetadata, WriteMetadataFromPacket,
};
use pof::message::table::PofFlowMod;
use pof::value::{PofField, PofOperand};
use pof::{PofDialect, PofMessage};

/// Returns a FLOW_MOD with these instructions. Each is given by type, length, and cells whose offsets begin
/// after the slot's header.
pub fn with_instructions(
    dialect: PofDialect,
    instructions: Vec<(u128, u128, Vec<Cell>, PofInstruction)>,
) -> Vector {
    let stride = if dialect == OLD { 208 } else { 304 };
    let (mut body, message) = flow_mod(dialect, 2);
    let mut list = Vec::new();
    body[2] = instructions.len() as u8;
    for (n, (kind, length, cells, instruction)) in instructions.into_iter().enumerate() {
        let shifted: Vec<Cell> = cells.into_iter().map(|(at, width, value)| (at + 8, width, value)).collect();
        let head = [(0, 2, kind), (2, 2, length)];
        insert(&mut body, 360 + n * stride, &assemble(stride, &[&head[..], &shifted].concat()));
        list.push(instruction);
    }
    vector(dialect, 15, body, PofMessage::FlowMod(PofFlowMod { instructions: list, ..message }))
}

/// A field and its cells at an offset.
pub fn field(at: usize, n: u16) -> (PofField, [Cell; 3]) {
    let field = PofField { id: 0x0a00 + n, offset_bits: 0x0b00 + n, length_bits: 0x0c00 + n };
    let n = u128::from(n);
    (field, [(at, 2, 0x0a00 + n), (at + 2, 2, 0x0b00 + n), (at + 4, 2, 0x0c00 + n)])
}

pub fn vectors() -> Vec<Vector> {
    let mut made = Vec::new();
    for dialect in [OLD, NEW] {
        made.push(with_instructions(dialect, gotos(dialect)));
        made.push(with_instructions(dialect, metadata(dialect)));
        made.push(with_instructions(dialect, apply(dialect)));
    }
    made.push(with_instructions(NEW, jumps()));
    made.push(with_instructions(NEW, calculations()));
    made
}

type Given = (u128, u128, Vec<Cell>, PofInstruction);

fn gotos(dialect: PofDialect) -> Vec<Given> {
    let mut cells: Vec<Cell> = vec![(0, 1, 25), (1, 1, 8), (2, 2, 0x0e0f)];
    let mut fields = Vec::new();
    for n in 0..8 {
        let (one, more) = field(8 + 8 * usize::from(n), n);
        cells.extend(more);
        fields.push(one);
    }
    let table = TableId(25);
    let goto = PofInstruction::GotoTable(GotoTable { table, packet_offset_bytes: 0x0e0f, fields });
    let direct = |index| {
        PofInstruction::GotoDirectTable(GotoDirectTable { table, packet_offset_bytes: 0x0102, index })
    };
    let number = direct(PofOperand::Number(0x0304_0506));
    let mut made = vec![(1, 80, cells, goto)];
    if dialect == OLD {
        made.push((8, 16, vec![(0, 1, 25), (2, 2, 0x0102), (4, 4, 0x0304_0506)], number));
    } else {
        made.push((8, 24, vec![(0, 1, 25), (2, 2, 0x0102), (8, 4, 0x0304_0506)], number));
        let (one, more) = field(8, 3);
        let cells = [&[(0, 1, 25), (1, 1, 1), (2, 2, 0x0102)][..], &more].concat();
        made.push((8, 24, cells, direct(PofOperand::Field(one))));
    }
    made
}

fn metadata(dialect: PofDialect) -> Vec<Given> {
    let write = |value| {
        PofInstruction::WriteMetadata(WriteMetadata { offset_bits: 0x0102, length_bits: 0x0304, value })
    };
    let copy = PofInstruction::WriteMetadataFromPacket(WriteMetadataFromPacket {
        metadata_offset_bits: 0x0102,
        packet_offset_bits: 0x0304,
        length_bits: 0x0506,
    });
    let meter = PofInstruction::Meter(MeterInstruction { meter: MeterId(0x0708_090a) });
    let first = if dialect == OLD {
        let value = 0x1112_1314;
        (2, 16, vec![(0, 2, 0x0102), (2, 2, 0x0304), (4, 4, value)], write(value))
    } else {
        let value = 0x1112_1314_1516_1718_191a_1b1c_1d1e_1f20;
        (2, 32, vec![(0, 2, 0x0102), (2, 2, 0x0304), (4, 16, value)], write(value))
    };
    vec![
        first,
        (7, 16, vec![(0, 2, 0x0102), (2, 2, 0x0304), (4, 2, 0x0506)], copy),
        (6, 16, vec![(0, 4, 0x0708_090a)], meter),
    ]
}

/// APPLY_ACTIONS with no action, and with as many as there are slots, in all slots of the entry.
fn apply(dialect: PofDialect) -> Vec<Given> {
    let (most, length) = if dialect == OLD { (4, 208) } else { (6, 304) };
    (0..most)
        .map(|n| {
            let count = if n == 0 { 0 } else { most };
            let mut cells: Vec<Cell> = vec![(0, 1, count as u128)];
            let mut actions = Vec::new();
            for action in 0..count {
                let at = 8 + 48 * action;
                let reason = 0x0100_0000 + (n * 16 + action) as u32;
                cells.extend([(at, 2, 8), (at + 2, 2, 12), (at + 4, 4, reason.into())]);
                actions.push(PofAction::Drop(DropAction { reason }));
            }
            (4, length, cells, PofInstruction::ApplyActions(ApplyActions { actions }))
        })
        .collect()
}

fn jumps() -> Vec<Given> {
    let (compared, compared_cells) = field(8, 1);
    let (operand, operand_cells) = field(16, 2);
    let (greater, greater_cells) = field(40, 3);
    let first = PofInstruction::ConditionalJump(ConditionalJump {
        less_direction: PofDirection::Backward,
        equal_direction: PofDirection::Forward,
        greater_direction: PofDirection::Backward,
        field: compared,
        operand: PofOperand::Field(operand),
        less: PofOperand::Number(2),
        equal: PofOperand::Number(0x0102_0304),
        greater: PofOperand::Field(greater),
    });
    let mut cells: Vec<Cell> =
        vec![(0, 1, 1), (1, 1, 1), (5, 1, 1), (6, 1, 1), (24, 4, 2), (32, 4, 0x0102_0304)];
    cells.extend([compared_cells, operand_cells, greater_cells].concat());
    // In the second, the other two operands are fields.
    let (less, less_cells) = field(24, 4);
    let (equal, equal_cells) = field(32, 5);
    let second = PofInstruction::ConditionalJump(ConditionalJump {
        less_direction: PofDirection::Forward,
        equal_direction: PofDirection::Backward,
        greater_direction: PofDirection::Forward,
        field: compared,
        operand: PofOperand::Number(7),
        less: PofOperand::Field(less),
        equal: PofOperand::Field(equal),
        greater: PofOperand::Number(9),
    });
    let mut more: Vec<Cell> = vec![(2, 1, 1), (3, 1, 1), (4, 1, 1), (16, 4, 7), (40, 4, 9)];
    more.extend([compared_cells, less_cells, equal_cells].concat());
    vec![(9, 56, cells, first), (9, 56, more, second)]
}

fn calculations() -> Vec<Given> {
    let (field_8, cells_8) = field(8, 6);
    let (field_16, cells_16) = field(16, 7);
    let calculate = |calculation, operand| {
        PofInstruction::CalculateField(CalculateField { calculation, field: field_8, operand })
    };
    let mut made = Vec::new();
    for (number, calculation) in
        [(0, PofCalculation::Add), (1, PofCalculation::Subtract), (7, PofCalculation::Nor)]
    {
        let cells = [&[(0, 2, number), (16, 4, 0x0102_0304)][..], &cells_8].concat();
        made.push((10, 32, cells, calculate(calculation, PofOperand::Number(0x0102_0304))));
    }
    let cells = [&[(0, 2, 6), (2, 1, 1)][..], &cells_8, &cells_16].concat();
    made.push((10, 32, cells, calculate(PofCalculation::Xor, PofOperand::Field(field_16))));
    let (direction, bytes) = (PofDirection::Backward, PofOperand::Number(14));
    let back = PofInstruction::MovePacketOffset(MovePacketOffset { direction, bytes });
    made.push((11, 24, vec![(0, 1, 1), (8, 4, 14)], back));
    let (direction, bytes) = (PofDirection::Forward, PofOperand::Field(field_8));
    let forward = PofInstruction::MovePacketOffset(MovePacketOffset { direction, bytes });
    made.push((11, 24, [&[(1, 1, 1)][..], &cells_8].concat(), forward));
    made
}
