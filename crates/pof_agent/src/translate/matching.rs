// SPDX-License-Identifier: Apache-2.0
//! Conditions of entries.

use super::TableKey;
use super::field::{right_aligned, slice};
use crate::refusal::PofRefusal;
use flow::{Field, FieldMatch, Match};
use pof::error;
use pof::message::table::{PofFlowMod, PofTableType};
use pof::value::{METADATA_FIELD, PofField, PofMatch};

/// Translates the conditions of an entry. Its fields must be those of its table.
pub fn matching(m: &PofFlowMod, key: TableKey<'_>) -> Result<Match, PofRefusal> {
    if key.kind == PofTableType::Linear {
        if m.matches.is_empty() {
            return Ok(Match::at_index(m.index));
        }
        let problem = "an entry of a linear (DT) table is found by its index; give it no match fields";
        return Err(PofRefusal::new(error::MATCH_BAD_FIELD, problem));
    }
    if m.matches.len() != key.fields.len() {
        let problem = format!(
            "the entry has {} match fields, but TABLE_MOD gave table {} {}",
            m.matches.len(),
            key.table,
            key.fields.len()
        );
        return Err(PofRefusal::new(error::MATCH_BAD_FIELD, problem));
    }
    let mut conditions = Vec::with_capacity(m.matches.len());
    for (n, (condition, field)) in m.matches.iter().zip(key.fields).enumerate() {
        if position(condition.field) != position(*field) {
            let problem = format!(
                "match field {n} is {}, but TABLE_MOD gave table {} {} there",
                named(condition.field),
                key.table,
                named(*field)
            );
            return Err(PofRefusal::new(error::MATCH_BAD_FIELD, problem));
        }
        conditions.push(self::condition(n, condition)?);
    }
    Match::new(conditions).map_err(|problem| PofRefusal::new(error::MATCH_BAD_FIELD, problem.to_string()))
}

/// Translates one condition. Bits of value and mask behind the end of the field have no effect.
fn condition(n: usize, condition: &PofMatch) -> Result<FieldMatch, PofRefusal> {
    let wrong = |problem| PofRefusal::new(error::MATCH_BAD_FIELD, format!("match field {n}: {problem}"));
    let slice = slice(condition.field).map_err(wrong)?;
    let value = right_aligned(condition.value, slice.length_bits);
    let mask = right_aligned(condition.mask, slice.length_bits);
    if value & !mask != 0 {
        let problem = format!(
            "match field {n}: value {value:#x} has bits outside its mask {mask:#x}, so no packet can match it"
        );
        return Err(PofRefusal::new(error::MATCH_BAD_WILDCARDS, problem));
    }
    Ok(FieldMatch { field: Field::Slice(slice), value, mask })
}

/// Returns what distinguishes a field from others. The number of a field of the packet is only a name.
pub fn position(field: PofField) -> (bool, u16, u16) {
    (field.id == METADATA_FIELD, field.offset_bits, field.length_bits)
}

fn named(field: PofField) -> String {
    let place = if field.id == METADATA_FIELD { "metadata" } else { "packet" };
    format!("{place} bits {} with length {}", field.offset_bits, field.length_bits)
}
