// SPDX-License-Identifier: Apache-2.0
//! Experimenter actions that edit packets: their content after the subtype (docs/openflow-extensions.md).

use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError};
use crate::experimenter::action;
use flow::{BitRange, CutOrigin, Edit, Slice, SliceBase};

/// Returns whether an action of Shunt with this subtype is an edit.
pub(crate) fn is_edit(subtype: u16) -> bool {
    (action::MOVE_BASE..=action::CUT_FRONT).contains(&subtype)
}

/// Returns the subtype of an edit.
pub(crate) fn subtype(edit: Edit) -> u16 {
    match edit {
        Edit::MoveBase(_) => action::MOVE_BASE,
        Edit::AddField { .. } => action::ADD_FIELD,
        Edit::DeleteField(_) => action::DELETE_FIELD,
        Edit::CutFront { .. } => action::CUT_FRONT,
        Edit::ModifyField { .. } => action::MODIFY_FIELD,
        Edit::CopyField { .. } => action::COPY_FIELD,
        Edit::CalculateChecksum { .. } => action::CALCULATE_CHECKSUM,
    }
}

/// Decodes the content of an edit. The caller must check the edit with [`Edit::check`].
pub(crate) fn decode(subtype: u16, r: &mut Reader<'_>) -> Result<Edit, DecodeError> {
    match subtype {
        action::MOVE_BASE => {
            let bytes = r.u16()?.cast_signed();
            r.skip(4)?;
            Ok(Edit::MoveBase(bytes))
        }
        action::ADD_FIELD => {
            let range = range(r)?;
            r.skip(2)?;
            Ok(Edit::AddField { range, value: r.u128()? })
        }
        action::DELETE_FIELD => {
            let range = range(r)?;
            r.skip(2)?;
            Ok(Edit::DeleteField(range))
        }
        action::MODIFY_FIELD => {
            let base = base(r)?;
            r.skip(1)?;
            let BitRange { offset_bits, length_bits } = range(r)?;
            let increment = r.u32()?.cast_signed();
            r.skip(4)?;
            Ok(Edit::ModifyField { slice: Slice { base, offset_bits, length_bits }, increment })
        }
        action::COPY_FIELD => {
            let (from, to) = (base(r)?, base(r)?);
            let (from_bit, to_bit, length_bits) = (r.u16()?, r.u16()?, r.u16()?);
            r.skip(6)?;
            Ok(Edit::CopyField {
                from: Slice { base: from, offset_bits: from_bit, length_bits },
                to: Slice { base: to, offset_bits: to_bit, length_bits },
            })
        }
        action::CUT_FRONT => {
            let base = base(r)?;
            r.skip(1)?;
            let bytes = r.u16()?;
            r.skip(2)?;
            match CutOrigin::of(base) {
                Some(origin) => Ok(Edit::CutFront { origin, bytes }),
                None => error::ACTION_BAD_ARGUMENT.says(format!(
                    "cut_front cannot count from {}; it counts from packet or base",
                    base.name()
                )),
            }
        }
        _ => {
            let (checksum, covered) = (range(r)?, range(r)?);
            r.skip(6)?;
            Ok(Edit::CalculateChecksum { checksum, covered })
        }
    }
}

fn range(r: &mut Reader<'_>) -> Result<BitRange, DecodeError> {
    Ok(BitRange { offset_bits: r.u16()?, length_bits: r.u16()? })
}

fn base(r: &mut Reader<'_>) -> Result<SliceBase, DecodeError> {
    let number = r.u8()?;
    match SliceBase::numbered(number) {
        Some(base) => Ok(base),
        None => error::ACTION_BAD_ARGUMENT
            .says(format!("{number} is not a base of slices; bases are {}", SliceBase::NAMES)),
    }
}

/// Writes the content of an edit, without the padding at its end.
pub(crate) fn encode(edit: Edit, out: &mut Vec<u8>) {
    let range = |out: &mut Vec<u8>, range: BitRange| {
        out.put_u16(range.offset_bits);
        out.put_u16(range.length_bits);
    };
    match edit {
        Edit::MoveBase(bytes) => {
            out.put_u16(bytes.cast_unsigned());
            out.zeros(4);
        }
        Edit::AddField { range: at, value } => {
            range(out, at);
            out.zeros(2);
            out.put(&value.to_be_bytes());
        }
        Edit::DeleteField(at) => {
            range(out, at);
            out.zeros(2);
        }
        Edit::CutFront { origin, bytes } => {
            out.put(&[origin.slice_base().number(), 0]);
            out.put_u16(bytes);
            out.zeros(2);
        }
        Edit::ModifyField { slice, increment } => {
            out.put(&[slice.base.number(), 0]);
            range(out, BitRange { offset_bits: slice.offset_bits, length_bits: slice.length_bits });
            out.put_u32(increment.cast_unsigned());
        }
        Edit::CopyField { from, to } => {
            out.put(&[from.base.number(), to.base.number()]);
            out.put_u16(from.offset_bits);
            out.put_u16(to.offset_bits);
            out.put_u16(from.length_bits);
        }
        Edit::CalculateChecksum { checksum, covered } => {
            range(out, checksum);
            range(out, covered);
        }
    }
}
