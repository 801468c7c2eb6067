// SPDX-License-Identifier: Apache-2.0
//! One match field as type-length-value (OXM, section 7.2.3): class 16 bits, field 7, has-mask 1, length 8,
//! value, mask.

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError, ErrorCode};
use crate::experimenter;
use flow::{Field, FieldMatch, Slice, SliceBase};

/// Length of a TLV's head in bytes.
const HEAD: usize = 4;

/// Class of the fields that the standard defines (OFPXMC_OPENFLOW_BASIC).
pub(crate) const BASIC: u16 = 0x8000;
/// Class of the fields that experimenters define (OFPXMC_EXPERIMENTER).
pub(crate) const EXPERIMENTER: u16 = 0xffff;

/// Content of a TLV.
pub(crate) enum Tlv {
    Field {
        condition: FieldMatch,
        masked: bool,
    },
    /// Index of an entry of a linear table.
    Index(u32),
}

/// Error codes for the faults of a TLV. A match and a set-field action have different codes.
#[derive(Clone, Copy)]
pub(crate) struct Codes {
    pub unknown: ErrorCode,
    pub length: ErrorCode,
    pub value: ErrorCode,
    /// Code for value bits outside the mask.
    pub outside_mask: ErrorCode,
}

pub(crate) const IN_MATCH: Codes = Codes {
    unknown: error::MATCH_BAD_FIELD,
    length: error::MATCH_BAD_LEN,
    value: error::MATCH_BAD_VALUE,
    outside_mask: error::MATCH_BAD_WILDCARDS,
};
pub(crate) const IN_SET_FIELD: Codes = Codes {
    unknown: error::ACTION_BAD_SET_TYPE,
    length: error::ACTION_BAD_SET_LEN,
    value: error::ACTION_BAD_SET_ARGUMENT,
    outside_mask: error::ACTION_BAD_SET_ARGUMENT,
};

/// Returns the length of a field's value on the wire in bytes.
pub(crate) fn value_bytes(field: Field) -> usize {
    match field {
        // On the wire, these 20-bit fields are 32-bit words.
        Field::MplsLabel | Field::Ipv6Flabel => 4,
        other => usize::from(other.location().length_bits.div_ceil(8)),
    }
}

pub(crate) fn decode(r: &mut Reader<'_>, codes: Codes) -> Result<Tlv, DecodeError> {
    let class = r.u16()?;
    let field_and_mask = r.u8()?;
    let length = usize::from(r.u8()?);
    let (number, masked) = (field_and_mask >> 1, field_and_mask & 1 == 1);
    let mut body = r.part(length, "a match field", codes.length)?;
    let unknown = || codes.unknown.says(format!("field {number} of OXM class {class:#06x} is not known"));
    let field = match class {
        BASIC => match Field::NAMED.get(usize::from(number)) {
            Some(field) => *field,
            None => return unknown(),
        },
        EXPERIMENTER => {
            let id = body.u32()?;
            if id != experimenter::EXPERIMENTER {
                return codes.unknown.says(format!(
                    "match field {number} of experimenter {id:#x} is not known; the known experimenter is {:#x}",
                    experimenter::EXPERIMENTER
                ));
            }
            if number == experimenter::OXM_INDEX && !masked {
                let index = body.u32()?;
                body.end()?;
                return Ok(Tlv::Index(index));
            }
            let Some(base) = SliceBase::numbered(number) else { return unknown() };
            let (offset_bits, length_bits) = (body.u16()?, body.u16()?);
            match Slice::new(base, offset_bits.into(), length_bits.into()) {
                Ok(slice) => Field::Slice(slice),
                Err(problem) => return codes.value.says(problem.to_string()),
            }
        }
        _ => return unknown(),
    };
    let size = value_bytes(field);
    if body.remaining() != if masked { 2 * size } else { size } {
        return codes.length.says(format!(
            "{field} has {} bytes of value{}; it must have {size}{}",
            body.remaining(),
            if masked { " and mask" } else { "" },
            if masked { " of each" } else { "" },
        ));
    }
    let value = number_of(body.take(size)?);
    let mask = if masked { number_of(body.take(size)?) } else { field.full_mask() };
    let full = field.full_mask();
    // The upper, unused bits of value and mask must be 0.
    if (value | mask) & !full != 0 {
        let bits = field.location().length_bits;
        return codes.value.says(format!("{field}: {value:#x}/{mask:#x} does not fit its {bits} bits"));
    }
    if value & !mask != 0 {
        return codes
            .outside_mask
            .says(format!("{field}: value {value:#x} has bits outside its mask {mask:#x}"));
    }
    Ok(Tlv::Field { condition: FieldMatch { field, value, mask }, masked })
}

/// Returns the position of a named field's value of `size` bytes, if `bytes` has a TLV of the field without a
/// mask. `bytes` has valid TLVs from position `from` on.
pub(crate) fn exact_value(bytes: &[u8], mut from: usize, field: Field, size: usize) -> Option<usize> {
    let wanted = field.oxm()?;
    while let Some(&[class, class_low, field_and_mask, length]) = bytes.get(from..from + HEAD) {
        if [class, class_low] == BASIC.to_be_bytes() && field_and_mask == wanted << 1 {
            return (usize::from(length) == size).then_some(from + HEAD);
        }
        from += HEAD + usize::from(length);
    }
    None
}

fn number_of(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte))
}

/// Writes a field's TLV. The mask is omitted if it is full.
pub(crate) fn encode(out: &mut Vec<u8>, field: Field, value: u128, mask: u128) {
    let masked = mask != field.full_mask();
    let size = value_bytes(field);
    let (class, number, before) = match field {
        Field::Slice(s) => (EXPERIMENTER, s.base.number(), 8),
        named => (BASIC, named.oxm().unwrap_or(0), 0),
    };
    out.put_u16(class);
    out.put_u8(number << 1 | u8::from(masked));
    out.put_u8((before + if masked { 2 * size } else { size }) as u8);
    if let Field::Slice(s) = field {
        out.put_u32(experimenter::EXPERIMENTER);
        out.put_u16(s.offset_bits);
        out.put_u16(s.length_bits);
    }
    out.put(&value.to_be_bytes()[16 - size..]);
    if masked {
        out.put(&mask.to_be_bytes()[16 - size..]);
    }
}

/// Writes the index of an entry of a linear table.
pub(crate) fn encode_index(out: &mut Vec<u8>, index: u32) {
    out.put_u16(EXPERIMENTER);
    out.put_u8(experimenter::OXM_INDEX << 1);
    out.put_u8(8);
    out.put_u32(experimenter::EXPERIMENTER);
    out.put_u32(index);
}
