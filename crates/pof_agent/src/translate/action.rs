// SPDX-License-Identifier: Apache-2.0
//! Actions.

use super::counter_group;
use super::field::{metadata, right_aligned, slice};
use super::list::ActionList;
use super::output;
use crate::refusal::PofRefusal;
use flow::{Action, BitRange, Edit, Field};
use pof::PofDialect;
use pof::action::{AddFieldAction, ChecksumAction, DeleteFieldAction, PofAction, PofLocation};
use pof::error;
use pof::value::{PofMatch, PofOperand, left_aligned};

/// Adds actions to a list, up to the first DROP.
pub fn run(actions: &[PofAction], list: &mut ActionList, dialect: PofDialect) -> Result<(), PofRefusal> {
    actions.iter().try_for_each(|action| if list.ended { Ok(()) } else { add(action, list, dialect) })
}

fn add(action: &PofAction, list: &mut ActionList, dialect: PofDialect) -> Result<(), PofRefusal> {
    let bad = error::ACTION_BAD_ARGUMENT;
    let wrong = |problem: String| PofRefusal::new(bad, problem);
    match action {
        PofAction::Drop(_) => list.ended = true,
        PofAction::Output(output) => output::add(output, list, dialect)?,
        _ if list.part.is_some() => return Err(output::after_part()),
        PofAction::SetField(m) => set_field(m, list)?,
        PofAction::SetFieldFromMetadata(m) => {
            let to = slice(m.field).map_err(wrong)?;
            let from = metadata(m.metadata_offset_bits, m.field.length_bits).map_err(wrong)?;
            list.edit(Edit::CopyField { from, to }, bad)?;
        }
        PofAction::ModifyField(m) => {
            let slice = slice(m.field).map_err(wrong)?;
            list.edit(Edit::ModifyField { slice, increment: m.increment }, bad)?;
        }
        PofAction::AddField(m) => add_field(m, list, dialect)?,
        PofAction::DeleteField(m) => delete_field(m, list)?,
        PofAction::Checksum(m) => checksum(m, list)?,
        PofAction::Group(m) if m.group.0 >= super::COUNTER_GROUPS => {
            let problem = format!("group {} is reserved for counters", m.group);
            return Err(PofRefusal::new(error::ACTION_BAD_OUT_GROUP, problem));
        }
        PofAction::Group(m) => {
            list.sends = true;
            list.actions.push(Action::Group(m.group));
        }
        PofAction::PacketIn(m) => list.packet_in(m.reason)?,
        // Counter 0 stands for no counter, as in the entries themselves.
        PofAction::Counter(m) if m.counter.0 == 0 => {}
        PofAction::Counter(m) => {
            list.actions.push(Action::Group(counter_group(m.counter)?));
            list.counters.push(m.counter);
        }
    }
    Ok(())
}

fn set_field(m: &PofMatch, list: &mut ActionList) -> Result<(), PofRefusal> {
    let bad = error::ACTION_BAD_ARGUMENT;
    let slice = slice(m.field).map_err(|problem| PofRefusal::new(bad, problem))?;
    // The mask does not protect the old bits: public switches write value and mask to the whole field.
    let value = right_aligned(m.value & m.mask, slice.length_bits);
    list.set(slice, value, Field::Slice(slice).full_mask(), bad)
}

fn add_field(m: &AddFieldAction, list: &mut ActionList, dialect: PofDialect) -> Result<(), PofRefusal> {
    let most = if dialect == PofDialect::V1_2 { 64 } else { 128 };
    let length_bits = u16::try_from(m.length_bits).ok().filter(|bits| (1..=most).contains(bits));
    let Some(length_bits) = length_bits else {
        let problem = format!("ADD_FIELD of {} bits; in dialect {dialect} it has 1 to {most}", m.length_bits);
        return Err(PofRefusal::new(error::ACTION_BAD_ARGUMENT, problem));
    };
    let value = right_aligned(left_aligned(m.value, m.length_bits, dialect), length_bits);
    let range = BitRange { offset_bits: m.offset_bits, length_bits };
    list.edit(Edit::AddField { range, value }, error::ACTION_BAD_ARGUMENT)
}

fn delete_field(m: &DeleteFieldAction, list: &mut ActionList) -> Result<(), PofRefusal> {
    let problem = match m.length_bits {
        PofOperand::Number(bits) => match u16::try_from(bits) {
            Ok(length_bits) => {
                let range = BitRange { offset_bits: m.offset_bits, length_bits };
                return list.edit(Edit::DeleteField(range), error::ACTION_BAD_ARGUMENT);
            }
            Err(_) => format!("DELETE_FIELD of {bits} bits; no packet is as long"),
        },
        PofOperand::Field(_) => {
            "DELETE_FIELD with its length in a field is not supported; give the length".into()
        }
    };
    Err(PofRefusal::new(error::ACTION_BAD_ARGUMENT, problem))
}

fn checksum(m: &ChecksumAction, list: &mut ActionList) -> Result<(), PofRefusal> {
    if [m.checksum_location, m.sum_location].contains(&PofLocation::Metadata) {
        let problem = "CALCULATE_CHECKSUM of metadata is not supported; use fields of the packet";
        return Err(PofRefusal::new(error::ACTION_BAD_ARGUMENT, problem));
    }
    let checksum = BitRange { offset_bits: m.checksum_offset_bits, length_bits: m.checksum_length_bits };
    let covered = BitRange { offset_bits: m.sum_offset_bits, length_bits: m.sum_length_bits };
    list.edit(Edit::CalculateChecksum { checksum, covered }, error::ACTION_BAD_ARGUMENT)
}
