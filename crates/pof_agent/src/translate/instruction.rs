// SPDX-License-Identifier: Apache-2.0
//! Instructions.

use super::action;
use super::field::{metadata, packet, right_aligned, slice};
use super::list::ActionList;
use super::output;
use crate::layout::TableLayout;
use crate::refusal::PofRefusal;
use flow::edit::{MODIFY_BITS_MAX, MOVE_BYTES_MAX};
use flow::{Edit, Field, Limits, Next, TableId};
use pof::instruction::{
    CalculateField, GotoDirectTable, GotoTable, MovePacketOffset, PofCalculation, PofDirection,
    PofInstruction, WriteMetadata,
};
use pof::message::table::PofTableType;
use pof::value::{PofOperand, left_aligned};
use pof::{PofDialect, error};

/// Adds instructions to a list, up to the first that ends the packet or continues in another table.
pub fn run(
    instructions: &[PofInstruction],
    list: &mut ActionList,
    table: TableId,
    layout: &TableLayout,
    dialect: PofDialect,
) -> Result<(), PofRefusal> {
    for instruction in instructions {
        if list.ended {
            break;
        }
        add(instruction, list, table, layout, dialect)?;
    }
    Ok(())
}

fn add(
    instruction: &PofInstruction,
    list: &mut ActionList,
    table: TableId,
    layout: &TableLayout,
    dialect: PofDialect,
) -> Result<(), PofRefusal> {
    match instruction {
        PofInstruction::ApplyActions(m) => action::run(&m.actions, list, dialect),
        _ if list.part.is_some() => Err(output::after_part()),
        PofInstruction::GotoTable(m) => goto_table(m, list, table, layout, dialect),
        PofInstruction::GotoDirectTable(m) => goto_direct(m, list, table, layout, dialect),
        PofInstruction::WriteMetadata(m) => write_metadata(m, list, dialect),
        PofInstruction::WriteMetadataFromPacket(m) => {
            let wrong = |problem: String| PofRefusal::new(error::INSTRUCTION_BAD_OFFSET, problem);
            let from = packet(m.packet_offset_bits, m.length_bits).map_err(wrong)?;
            let to = metadata(m.metadata_offset_bits, m.length_bits).map_err(wrong)?;
            list.edit(Edit::CopyField { from, to }, error::INSTRUCTION_BAD_OFFSET)
        }
        PofInstruction::Meter(m) => list.meter(m.meter),
        PofInstruction::CalculateField(m) => calculate(m, list),
        PofInstruction::MovePacketOffset(m) => move_offset(m, list),
        PofInstruction::ConditionalJump(_) => {
            let problem = "CONDITIONAL_JMP is not supported; use entries of another table for each case";
            Err(PofRefusal::new(error::INSTRUCTION_UNSUPPORTED, problem))
        }
    }
}

/// Checks the next table of an entry.
fn next_table(from: TableId, to: TableId, is_direct: bool, layout: &TableLayout) -> Result<(), PofRefusal> {
    let Some((kind, _)) = layout.local(to) else {
        let problem =
            format!("table {to} does not exist; this switch has tables 0 to {}", layout.total() - 1);
        return Err(PofRefusal::new(error::INSTRUCTION_TABLE_UNEXIST, problem));
    };
    let problem = match (is_direct, kind == PofTableType::Linear) {
        (true, false) => {
            format!("GOTO_DIRECT_TABLE leads to table {to}, which is not linear; use GOTO_TABLE")
        }
        (false, true) => format!("GOTO_TABLE leads to table {to}, which is linear; use GOTO_DIRECT_TABLE"),
        _ if to <= from => format!(
            "an entry of table {from} leads to table {to}; the global number of the next table must be higher"
        ),
        _ => return Ok(()),
    };
    Err(PofRefusal::new(error::INSTRUCTION_BAD_TABLE_ID, problem))
}

fn goto_table(
    m: &GotoTable,
    list: &mut ActionList,
    table: TableId,
    layout: &TableLayout,
    dialect: PofDialect,
) -> Result<(), PofRefusal> {
    next_table(table, m.table, false, layout)?;
    move_base(distance(m.packet_offset_bytes, dialect), list)?;
    list.next = Some(Next::Table(m.table));
    list.ended = true;
    Ok(())
}

fn goto_direct(
    m: &GotoDirectTable,
    list: &mut ActionList,
    table: TableId,
    layout: &TableLayout,
    dialect: PofDialect,
) -> Result<(), PofRefusal> {
    next_table(table, m.table, true, layout)?;
    let PofOperand::Number(index) = m.index else {
        let problem = "GOTO_DIRECT_TABLE with its index in a field is not supported; give the index";
        return Err(PofRefusal::new(error::INSTRUCTION_UNSUPPORTED, problem));
    };
    move_base(distance(m.packet_offset_bytes, dialect), list)?;
    list.next = Some(Next::Direct { table: m.table, index });
    list.ended = true;
    Ok(())
}

/// Returns the number of bytes by which a GOTO moves the base. It is signed in dialect 1.4.0.015.
fn distance(packet_offset_bytes: u16, dialect: PofDialect) -> i64 {
    match dialect {
        PofDialect::V1_2 => packet_offset_bytes.into(),
        PofDialect::V1_4 => packet_offset_bytes.cast_signed().into(),
    }
}

fn write_metadata(m: &WriteMetadata, list: &mut ActionList, dialect: PofDialect) -> Result<(), PofRefusal> {
    let most = if dialect == PofDialect::V1_2 { 32 } else { Limits::SLICE_BITS };
    if m.length_bits > most {
        let problem =
            format!("WRITE_METADATA of {} bits; in dialect {dialect} it has 1 to {most}", m.length_bits);
        return Err(PofRefusal::new(error::INSTRUCTION_BAD_OFFSET, problem));
    }
    let wrong = |problem: String| PofRefusal::new(error::INSTRUCTION_BAD_OFFSET, problem);
    let slice = metadata(m.offset_bits, m.length_bits).map_err(wrong)?;
    let value = right_aligned(left_aligned(m.value, m.length_bits.into(), dialect), m.length_bits);
    list.set(slice, value, Field::Slice(slice).full_mask(), error::INSTRUCTION_BAD_OFFSET)
}

fn calculate(m: &CalculateField, list: &mut ActionList) -> Result<(), PofRefusal> {
    let unsupported = |problem: String| PofRefusal::new(error::INSTRUCTION_UNSUPPORTED, problem);
    let name = match m.calculation {
        PofCalculation::Add => "add",
        PofCalculation::Subtract => "subtract",
        PofCalculation::And => "and",
        PofCalculation::Or => "or",
        PofCalculation::ShiftLeft => "left shift",
        PofCalculation::ShiftRight => "right shift",
        PofCalculation::Xor => "xor",
        PofCalculation::Nor => "nor",
    };
    let PofOperand::Number(operand) = m.operand else {
        let problem = format!("CALCULATE_FIELD ({name}) with its operand in a field is not supported");
        return Err(unsupported(problem));
    };
    let slice = slice(m.field).map_err(unsupported)?;
    if slice.length_bits > MODIFY_BITS_MAX {
        let bits = slice.length_bits;
        let problem = format!("CALCULATE_FIELD ({name}) of {bits} bits; the maximum is {MODIFY_BITS_MAX}");
        return Err(unsupported(problem));
    }
    let full = Field::Slice(slice).full_mask();
    let bits = u128::from(operand) & full;
    match m.calculation {
        PofCalculation::Add | PofCalculation::Subtract => {
            let number = operand.cast_signed();
            let negate = m.calculation == PofCalculation::Subtract;
            // The field has at most 32 bits and wraps, so the number may wrap, too.
            let increment = if negate { number.wrapping_neg() } else { number };
            list.edit(Edit::ModifyField { slice, increment }, error::INSTRUCTION_UNSUPPORTED)
        }
        PofCalculation::And => list.set(slice, 0, full & !bits, error::INSTRUCTION_UNSUPPORTED),
        PofCalculation::Or => list.set(slice, bits, bits, error::INSTRUCTION_UNSUPPORTED),
        _ => {
            Err(unsupported(format!("CALCULATE_FIELD ({name}) is not supported; add, subtract, and, or are")))
        }
    }
}

fn move_offset(m: &MovePacketOffset, list: &mut ActionList) -> Result<(), PofRefusal> {
    let PofOperand::Number(bytes) = m.bytes else {
        let problem = "MOVE_PACKET_OFFSET by the number in a field is not supported; give the number";
        return Err(PofRefusal::new(error::INSTRUCTION_UNSUPPORTED, problem));
    };
    let bytes = i64::from(bytes);
    move_base(if m.direction == PofDirection::Backward { -bytes } else { bytes }, list)
}

fn move_base(bytes: i64, list: &mut ActionList) -> Result<(), PofRefusal> {
    match i16::try_from(bytes) {
        Ok(0) => Ok(()),
        Ok(bytes) => list.edit(Edit::MoveBase(bytes), error::INSTRUCTION_BAD_OFFSET),
        Err(_) => {
            let problem =
                format!("the packet offset moves by {bytes} bytes; the maximum is {MOVE_BYTES_MAX}");
            Err(PofRefusal::new(error::INSTRUCTION_BAD_OFFSET, problem))
        }
    }
}
