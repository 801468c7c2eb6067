// SPDX-License-Identifier: Apache-2.0
//! Properties of tables (section 7.3.5.5.2): type 16 bits, length 16 bits without padding, list, zeros to a
//! multiple of 8 bytes.

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use crate::{experimenter, oxm};
use flow::{Field, SliceBase};

/// Instruction or action that a table supports, as a type number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TypeId {
    /// Type number (OFPIT_* or OFPAT_*).
    pub number: u16,
    /// Experimenter, present only if the number is 0xffff.
    pub experimenter: Option<u32>,
}

impl TypeId {
    /// Returns the ID of a standard instruction or action.
    #[must_use]
    pub fn standard(number: u16) -> Self {
        Self { number, experimenter: None }
    }
}

/// Match field that a table supports, as an OXM header without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OxmId {
    /// OXM class.
    pub class: u16,
    /// Field number in the class, 7 bits.
    pub number: u8,
    /// Whether a mask is supported.
    pub masked: bool,
    /// Length in bytes of the value, and of the mask if there is one. Some controllers send 0.
    pub length: u8,
    /// Experimenter, present only if the class is 0xffff.
    pub experimenter: Option<u32>,
}

impl OxmId {
    /// Returns the ID of a field. All slices of the same base have the same ID.
    #[must_use]
    pub fn of(field: Field, masked: bool) -> Self {
        let (class, number, before, experimenter) = match field {
            Field::Slice(s) => (oxm::EXPERIMENTER, s.base.number(), 4, Some(experimenter::EXPERIMENTER)),
            named => (oxm::BASIC, named.oxm().unwrap_or(0), 0, None),
        };
        let value = match field {
            Field::Slice(_) => 4,
            named => oxm::value_bytes(named) * if masked { 2 } else { 1 },
        };
        Self { class, number, masked, length: (before + value) as u8, experimenter }
    }

    /// Returns the field of this OXM ID, or `None` if it is unknown.
    #[must_use]
    pub fn field(self) -> Option<Field> {
        if self.class == oxm::BASIC { Field::NAMED.get(usize::from(self.number)).copied() } else { None }
    }

    /// Returns the base of the slices with this ID, or `None` if the ID does not stand for slices.
    #[must_use]
    pub fn slice_base(self) -> Option<SliceBase> {
        if self.experimenter != Some(experimenter::EXPERIMENTER) {
            return None;
        }
        SliceBase::numbered(self.number)
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (class, field_and_mask, length) = (r.u16()?, r.u8()?, r.u8()?);
        let experimenter = if class == oxm::EXPERIMENTER { Some(r.u32()?) } else { None };
        Ok(Self { class, number: field_and_mask >> 1, masked: field_and_mask & 1 == 1, length, experimenter })
    }

    fn encode(self, out: &mut Vec<u8>) {
        out.put_u16(self.class);
        out.put(&[self.number << 1 | u8::from(self.masked), self.length]);
        if let Some(experimenter) = self.experimenter {
            out.put_u32(experimenter);
        }
    }
}

/// Kind of entries to which a property applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entries {
    /// Ordinary entries. The property also applies to table-miss entries, unless a separate property covers
    /// them.
    Ordinary,
    /// Table-miss entries.
    Miss,
}

/// Property of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TableProperty {
    /// Supported instructions.
    Instructions(Entries, Vec<TypeId>),
    /// Numbers of the tables to which a goto can lead.
    NextTables(Entries, Vec<u8>),
    /// Actions supported in write-actions.
    WriteActions(Entries, Vec<TypeId>),
    /// Actions supported in apply-actions.
    ApplyActions(Entries, Vec<TypeId>),
    /// Supported match fields. An ID with a mask means that masks are supported.
    Match(Vec<OxmId>),
    /// Match fields that may be omitted. ovs-ofctl expects them without masks.
    Wildcards(Vec<OxmId>),
    /// Fields that a set-field in write-actions can write.
    WriteSetField(Entries, Vec<OxmId>),
    /// Fields that a set-field in apply-actions can write.
    ApplySetField(Entries, Vec<OxmId>),
    /// Property of an experimenter, as the bytes after the length.
    Experimenter(Entries, Vec<u8>),
}

const MATCH: u16 = 8;
const WILDCARDS: u16 = 10;

impl TableProperty {
    /// Decodes the remaining bytes of the reader as properties.
    pub(crate) fn decode_list(r: &mut Reader<'_>) -> Result<Vec<Self>, DecodeError> {
        let mut properties = Vec::new();
        while !r.is_empty() {
            properties.push(Self::decode(r)?);
        }
        Ok(properties)
    }

    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let code = error::TABLE_FEATURES_BAD_LEN;
        let (number, length) = (r.u16()?, usize::from(r.u16()?));
        let Some(content) = length.checked_sub(4) else {
            return code.says(format!("a table property has {length} bytes; its header alone has 4"));
        };
        let mut list = r.part(content, "a table property", code)?;
        // The padding of the last property may be missing.
        r.skip((length.next_multiple_of(8) - length).min(r.remaining()))?;
        // Properties come in pairs: an even number for ordinary entries, and the next odd number for
        // table-miss entries. Match and wildcards have no such pair.
        let entries = if number % 2 == 0 { Entries::Ordinary } else { Entries::Miss };
        let l = &mut list;
        Ok(match number {
            0 | 1 => Self::Instructions(entries, type_ids(l)?),
            2 | 3 => Self::NextTables(entries, l.rest().to_vec()),
            4 | 5 => Self::WriteActions(entries, type_ids(l)?),
            6 | 7 => Self::ApplyActions(entries, type_ids(l)?),
            MATCH => Self::Match(oxm_ids(l)?),
            WILDCARDS => Self::Wildcards(oxm_ids(l)?),
            12 | 13 => Self::WriteSetField(entries, oxm_ids(l)?),
            14 | 15 => Self::ApplySetField(entries, oxm_ids(l)?),
            0xfffe | 0xffff => Self::Experimenter(entries, l.rest().to_vec()),
            _ => {
                return error::TABLE_FEATURES_BAD_TYPE
                    .says(format!("table property of type {number} is not known in OpenFlow 1.3"));
            }
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let header = |number: u16, entries: &Entries, out: &mut Vec<u8>| {
            out.put_u16(number + u16::from(*entries == Entries::Miss));
            out.zeros(2);
        };
        match self {
            Self::Instructions(entries, list) => {
                header(0, entries, out);
                put_type_ids(list, out);
            }
            Self::NextTables(entries, list) => {
                header(2, entries, out);
                out.put(list);
            }
            Self::WriteActions(entries, list) => {
                header(4, entries, out);
                put_type_ids(list, out);
            }
            Self::ApplyActions(entries, list) => {
                header(6, entries, out);
                put_type_ids(list, out);
            }
            Self::Match(list) => {
                header(MATCH, &Entries::Ordinary, out);
                list.iter().for_each(|id| id.encode(out));
            }
            Self::Wildcards(list) => {
                header(WILDCARDS, &Entries::Ordinary, out);
                list.iter().for_each(|id| id.encode(out));
            }
            Self::WriteSetField(entries, list) => {
                header(12, entries, out);
                list.iter().for_each(|id| id.encode(out));
            }
            Self::ApplySetField(entries, list) => {
                header(14, entries, out);
                list.iter().for_each(|id| id.encode(out));
            }
            Self::Experimenter(entries, content) => {
                header(0xfffe, entries, out);
                out.put(content);
            }
        }
        out.patch_length(start + 2, start);
        out.pad8(start);
    }
}

fn type_ids(r: &mut Reader<'_>) -> Result<Vec<TypeId>, DecodeError> {
    let mut ids = Vec::new();
    while !r.is_empty() {
        let (number, length) = (r.u16()?, usize::from(r.u16()?));
        let code = error::TABLE_FEATURES_BAD_LEN;
        let Some(content) = length.checked_sub(4) else {
            return code
                .says(format!("an instruction or action ID has {length} bytes; its header alone has 4"));
        };
        // Some controllers pad the ID to 8 bytes, the length of a complete instruction.
        let mut content = r.part(content, "an instruction or action ID", code)?;
        let experimenter = if number == 0xffff { Some(content.u32()?) } else { None };
        ids.push(TypeId { number, experimenter });
    }
    Ok(ids)
}

fn put_type_ids(ids: &[TypeId], out: &mut Vec<u8>) {
    for id in ids {
        let start = out.len();
        out.put_u16(id.number);
        out.zeros(2);
        if let Some(experimenter) = id.experimenter {
            out.put_u32(experimenter);
        }
        out.patch_length(start + 2, start);
    }
}

fn oxm_ids(r: &mut Reader<'_>) -> Result<Vec<OxmId>, DecodeError> {
    let mut ids = Vec::new();
    while !r.is_empty() {
        ids.push(OxmId::decode(r)?);
    }
    Ok(ids)
}
