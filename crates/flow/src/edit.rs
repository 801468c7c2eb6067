// SPDX-License-Identifier: Apache-2.0
//! Edits: actions of programs without a parser, such as those of POF. They move the base from which slices
//! are counted, insert and delete bytes, and calculate with fields.

use crate::{Action, Field, Limits, Slice, SliceBase, SliceError};

/// Greatest distance in bytes by which one action moves the base.
pub const MOVE_BYTES_MAX: i16 = (Limits::SLICE_END_BITS / 8) as i16;

/// Greatest number of bytes from the origin that [`Edit::CutFront`] deletes.
pub const CUT_BYTES_MAX: u16 = (Limits::SLICE_END_BITS / 8) as u16;

/// Greatest length in bits of a field that [`Edit::ModifyField`] increases.
pub const MODIFY_BITS_MAX: u16 = 32;

/// Bits of the frame, counted from the packet's base.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRange {
    /// First bit, counted from the base.
    pub offset_bits: u16,
    /// Length in bits.
    pub length_bits: u16,
}

/// Position from which [`Edit::CutFront`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CutOrigin {
    /// First byte of the frame.
    Packet,
    /// The packet's base.
    Base,
}

impl CutOrigin {
    /// Returns the base of slices that are counted from the same position.
    #[must_use]
    pub fn slice_base(self) -> SliceBase {
        match self {
            Self::Packet => SliceBase::Packet,
            Self::Base => SliceBase::Moving,
        }
    }

    /// Returns the origin that is the base of such slices, or `None` if there is none.
    #[must_use]
    pub fn of(base: SliceBase) -> Option<Self> {
        [Self::Packet, Self::Base].into_iter().find(|origin| origin.slice_base() == base)
    }
}

/// Edit of a packet. Edits are executed in the order of an apply-actions list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edit {
    /// Moves the base by this number of bytes, towards the end of the frame if it is positive. The base must
    /// stay in the frame or directly behind its last byte.
    MoveBase(i16),
    /// Inserts whole bytes, so that the range contains the value.
    AddField {
        /// Position and length of the inserted bytes. At most 128 bits.
        range: BitRange,
        /// Inserted bytes, right-aligned.
        value: u128,
    },
    /// Deletes whole bytes. A frame of less than 60 bytes is then padded with zeros to 60 bytes.
    DeleteField(BitRange),
    /// Deletes all bytes before a position, and moves the base to the first byte that remains. If bytes were
    /// deleted, a frame of less than 60 bytes is then padded with zeros to 60 bytes.
    CutFront {
        /// Where the position is counted from.
        origin: CutOrigin,
        /// Distance of the position from the origin in bytes.
        bytes: u16,
    },
    /// Adds a number to a field of at most 32 bits. The result wraps.
    ModifyField {
        /// Field to change.
        slice: Slice,
        /// Number to add.
        increment: i32,
    },
    /// Copies a slice to another slice of the same length.
    CopyField {
        /// Slice to read.
        from: Slice,
        /// Slice to write.
        to: Slice,
    },
    /// Calculates a one's complement checksum and writes it to a field. The bits of this field count as zero.
    CalculateChecksum {
        /// Checksum field of 8, 16 or 32 bits. The checksum is calculated in words of this length.
        checksum: BitRange,
        /// Whole bytes that the checksum covers. Zeros are added to the last word if it is incomplete.
        covered: BitRange,
    },
}

/// Reason why an edit was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The base would move too far.
    #[error("move_base({0}); one action moves the base by at most {MOVE_BYTES_MAX} bytes")]
    Distance(i16),
    /// A position that is too far from its origin.
    #[error("cut_front by {0} bytes; the maximum is {CUT_BYTES_MAX} bytes from the base or the first byte")]
    Cut(u16),
    /// Bits that are not whole bytes.
    #[error(
        "{0}: bits {1} to {2} are not whole bytes; offset and length must be multiples of 8, and the length not 0"
    )]
    WholeBytes(&'static str, u16, u32),
    /// A range that ends too far from the base.
    #[error("{0}: the range ends at bit {1}; it must end by bit {max} from the base", max = Limits::SLICE_END_BITS)]
    End(&'static str, u32),
    /// A field that is too long for the action.
    #[error("{0}: the field has {1} bits; it can have {2}")]
    Length(&'static str, u16, &'static str),
    /// A value that is longer than its field.
    #[error("add_field: value {0:#x} does not fit {1} bits")]
    Value(u128, u16),
    /// Slices of different lengths.
    #[error("copy_field from {from} bits to {to} bits; both slices must have the same length")]
    Lengths {
        /// Length of the slice to read.
        from: u16,
        /// Length of the slice to write.
        to: u16,
    },
    /// A slice that cannot exist.
    #[error("{0}: {1}")]
    Slice(&'static str, SliceError),
    /// A slice that no action can write.
    #[error("{0} cannot write {1}; the switch derives it from the packet")]
    ReadOnly(&'static str, Field),
}

impl BitRange {
    /// Returns the index after the last bit, counted from the base.
    #[must_use]
    pub fn end_bits(self) -> u32 {
        u32::from(self.offset_bits) + u32::from(self.length_bits)
    }

    /// Returns the slice with these bits.
    #[must_use]
    pub fn slice(self) -> Slice {
        Slice { base: SliceBase::Moving, offset_bits: self.offset_bits, length_bits: self.length_bits }
    }

    fn check(self, action: &'static str) -> Result<(), EditError> {
        let end = self.end_bits();
        if self.length_bits == 0 || !(self.offset_bits | self.length_bits).is_multiple_of(8) {
            return Err(EditError::WholeBytes(action, self.offset_bits, end));
        }
        if end > Limits::SLICE_END_BITS { Err(EditError::End(action, end)) } else { Ok(()) }
    }
}

impl Edit {
    /// Returns the action's name in the flow syntax.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MoveBase(_) => "move_base",
            Self::AddField { .. } => "add_field",
            Self::DeleteField(_) => "delete_field",
            Self::CutFront { .. } => "cut_front",
            Self::ModifyField { .. } => "modify_field",
            Self::CopyField { .. } => "copy_field",
            Self::CalculateChecksum { .. } => "calculate_checksum",
        }
    }

    /// Checks everything that does not depend on the packet.
    ///
    /// # Errors
    /// Returns the first fault.
    pub fn check(self) -> Result<(), EditError> {
        let name = self.name();
        match self {
            Self::MoveBase(bytes) if bytes.unsigned_abs() > MOVE_BYTES_MAX.unsigned_abs() => {
                Err(EditError::Distance(bytes))
            }
            Self::MoveBase(_) => Ok(()),
            Self::AddField { range, value } => {
                range.check(name)?;
                let bits = range.length_bits;
                if bits > Limits::SLICE_BITS {
                    return Err(EditError::Length(name, bits, "8 to 128"));
                }
                let fits = value & !(u128::MAX >> (128 - u32::from(bits))) == 0;
                if fits { Ok(()) } else { Err(EditError::Value(value, bits)) }
            }
            Self::DeleteField(range) => range.check(name),
            Self::CutFront { bytes, .. } if bytes > CUT_BYTES_MAX => Err(EditError::Cut(bytes)),
            Self::CutFront { .. } => Ok(()),
            Self::ModifyField { slice, .. } => {
                if slice.length_bits > MODIFY_BITS_MAX {
                    return Err(EditError::Length(name, slice.length_bits, "1 to 32"));
                }
                check_slice(name, slice)?;
                check_writable(name, slice)
            }
            Self::CopyField { from, to } => {
                check_slice(name, from)?;
                check_slice(name, to)?;
                if from.length_bits != to.length_bits {
                    return Err(EditError::Lengths { from: from.length_bits, to: to.length_bits });
                }
                check_writable(name, to)
            }
            Self::CalculateChecksum { checksum, covered } => {
                checksum.check(name)?;
                covered.check(name)?;
                match checksum.length_bits {
                    8 | 16 | 32 => Ok(()),
                    bits => Err(EditError::Length(name, bits, "8, 16 or 32")),
                }
            }
        }
    }
}

fn check_slice(action: &'static str, slice: Slice) -> Result<(), EditError> {
    let made = Slice::new(slice.base, slice.offset_bits.into(), slice.length_bits.into());
    made.map(|_| ()).map_err(|problem| EditError::Slice(action, problem))
}

fn check_writable(action: &'static str, slice: Slice) -> Result<(), EditError> {
    let field = Field::Slice(slice);
    if field.settable() { Ok(()) } else { Err(EditError::ReadOnly(action, field)) }
}

impl From<Edit> for Action {
    fn from(edit: Edit) -> Self {
        Self::Edit(edit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(offset_bits: u16, length_bits: u16) -> BitRange {
        BitRange { offset_bits, length_bits }
    }

    fn slice(base: SliceBase, offset_bits: u16, length_bits: u16) -> Slice {
        Slice { base, offset_bits, length_bits }
    }

    #[test]
    fn moves_are_bounded_in_both_directions() {
        for (bytes, allowed) in [(0, true), (1536, true), (-1536, true), (1537, false), (-1537, false)] {
            assert_eq!(Edit::MoveBase(bytes).check().is_ok(), allowed, "{bytes}");
        }
        assert!(Edit::MoveBase(i16::MIN).check().is_err());
    }

    #[test]
    fn cuts_are_bounded_and_count_from_two_bases_of_slices() {
        for origin in [CutOrigin::Packet, CutOrigin::Base] {
            for (bytes, allowed) in [(0, true), (1_536, true), (1_537, false), (u16::MAX, false)] {
                assert_eq!(Edit::CutFront { origin, bytes }.check().is_ok(), allowed, "{bytes}");
            }
            assert_eq!(CutOrigin::of(origin.slice_base()), Some(origin));
        }
        let others = [SliceBase::Metadata, SliceBase::L3, SliceBase::L4];
        assert_eq!(others.map(CutOrigin::of), [None; 3]);
    }

    #[test]
    fn ranges_are_whole_bytes_within_reach() {
        for (offset, length, allowed) in [
            (0, 8, true),
            (12_280, 8, true),
            (12_280, 16, false),
            (4, 8, false),
            (8, 12, false),
            (8, 0, false),
            (0, 12_288, true),
        ] {
            let range = range(offset, length);
            assert_eq!(Edit::DeleteField(range).check().is_ok(), allowed, "{range:?}");
            let add = Edit::AddField { range, value: 1 }.check();
            assert_eq!(add.is_ok(), allowed && length <= 128, "{range:?}: {add:?}");
        }
        let add = |value| Edit::AddField { range: range(0, 16), value }.check();
        assert_eq!((add(0xffff), add(0x1_0000)), (Ok(()), Err(EditError::Value(0x1_0000, 16))));
        assert_eq!(Edit::AddField { range: range(0, 128), value: u128::MAX }.check(), Ok(()));
    }

    #[test]
    fn written_slices_must_be_writable_and_copies_as_long_as_their_source() {
        let metadata = slice(SliceBase::Metadata, 64, 16);
        let packet = slice(SliceBase::Moving, 3, 16);
        let port = slice(SliceBase::Metadata, 0, 16);
        let copy = |from, to| Edit::CopyField { from, to }.check();
        assert_eq!((copy(packet, metadata), copy(metadata, packet)), (Ok(()), Ok(())));
        assert_eq!(copy(port, packet), Ok(()));
        assert!(matches!(copy(packet, port), Err(EditError::ReadOnly(..))));
        assert!(matches!(copy(packet, slice(SliceBase::L3, 0, 8)), Err(EditError::Lengths { .. })));
        assert!(matches!(copy(packet, slice(SliceBase::L3, 12_280, 16)), Err(EditError::Slice(..))));
        let modify = |slice| Edit::ModifyField { slice, increment: 1 }.check();
        assert_eq!(modify(slice(SliceBase::L4, 0, 32)), Ok(()));
        assert!(matches!(modify(slice(SliceBase::L4, 0, 33)), Err(EditError::Length(..))));
        assert!(matches!(modify(slice(SliceBase::L4, 0, 0)), Err(EditError::Slice(..))));
        assert!(matches!(modify(port), Err(EditError::ReadOnly(..))));
    }

    #[test]
    fn checksums_have_one_two_or_four_bytes() {
        for (bits, allowed) in [(8, true), (16, true), (24, false), (32, true), (64, false)] {
            let checksum = Edit::CalculateChecksum { checksum: range(0, bits), covered: range(8, 24) };
            assert_eq!(checksum.check().is_ok(), allowed, "{bits}");
        }
        let covered = Edit::CalculateChecksum { checksum: range(0, 16), covered: range(8, 20) };
        assert!(covered.check().is_err());
    }
}
