// SPDX-License-Identifier: Apache-2.0
//! Values that occur in several messages: numbers, arrays, text, fields, operands and matches.

use std::fmt;

use flow::{GroupId, MeterId, TableId};

use crate::dialect::PofDialect;
use crate::error::{self, Fault, PofEncodeError};
use crate::layout::{self, Slot, Wire, number, part, put_number, record};

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Wire for $type {
            fn read(bytes: &[u8], _: PofDialect) -> Result<Self, Fault> {
                Ok(number(bytes) as Self)
            }

            fn write(&self, bytes: &mut [u8], dialect: PofDialect) -> Result<(), PofEncodeError> {
                put_number(u128::from(*self), bytes, dialect)
            }
        })*
    };
}

numbers! { u8 u16 u32 u64 u128 }

macro_rules! ids {
    ($($type:ident)*) => {
        $(impl Wire for $type {
            fn read(bytes: &[u8], dialect: PofDialect) -> Result<Self, Fault> {
                Wire::read(bytes, dialect).map($type)
            }

            fn write(&self, bytes: &mut [u8], dialect: PofDialect) -> Result<(), PofEncodeError> {
                self.0.write(bytes, dialect)
            }
        })*
    };
}

ids! { GroupId MeterId TableId PofCounterId }

/// Number of a counter. The switch creates a counter for an entry with the entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PofCounterId(pub u32);

impl Wire for i32 {
    fn read(bytes: &[u8], dialect: PofDialect) -> Result<Self, Fault> {
        u32::read(bytes, dialect).map(u32::cast_signed)
    }

    fn write(&self, bytes: &mut [u8], dialect: PofDialect) -> Result<(), PofEncodeError> {
        self.cast_unsigned().write(bytes, dialect)
    }
}

impl Slot for u8 {
    const STRIDES: [usize; 2] = [1, 1];
}

impl<T: Slot + Default + Copy, const N: usize> Wire for [T; N] {
    fn read(bytes: &[u8], dialect: PofDialect) -> Result<Self, Fault> {
        let stride = T::STRIDES[dialect.column()];
        let mut items = [T::default(); N];
        for (item, at) in items.iter_mut().zip((0..).step_by(stride)) {
            let place = layout::Place { at, bytes: stride };
            *item = T::read(part(bytes, place), dialect).map_err(|fault| fault.within(at))?;
        }
        Ok(items)
    }

    fn write(&self, bytes: &mut [u8], dialect: PofDialect) -> Result<(), PofEncodeError> {
        let slots = bytes.chunks_exact_mut(T::STRIDES[dialect.column()]);
        self.iter().zip(slots).try_for_each(|(item, slot)| item.write(slot, dialect))
    }
}

/// Text in a field of `N` bytes, padded with NUL bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PofText<const N: usize>([u8; N]);

impl<const N: usize> PofText<N> {
    /// Returns the text up to the first NUL byte. Invalid UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> String {
        let length = self.0.iter().position(|byte| *byte == 0).unwrap_or(N);
        String::from_utf8_lossy(&self.0[..length]).into_owned()
    }
}

impl<const N: usize> Default for PofText<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

/// Longer text is cut at a character boundary. The last byte is always NUL.
impl<const N: usize> From<&str> for PofText<N> {
    fn from(text: &str) -> Self {
        let mut length = text.len().min(N.saturating_sub(1));
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        let mut bytes = [0; N];
        bytes[..length].copy_from_slice(&text.as_bytes()[..length]);
        Self(bytes)
    }
}

impl<const N: usize> fmt::Debug for PofText<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text())
    }
}

impl<const N: usize> Wire for PofText<N> {
    fn read(bytes: &[u8], dialect: PofDialect) -> Result<Self, Fault> {
        <[u8; N]>::read(bytes, dialect).map(Self)
    }

    fn write(&self, bytes: &mut [u8], dialect: PofDialect) -> Result<(), PofEncodeError> {
        self.0.write(bytes, dialect)
    }
}

/// Number of a field that is in the metadata instead of the packet.
pub const METADATA_FIELD: u16 = 0xffff;

/// Maximum length in bits of a field with a value.
pub const FIELD_BITS_MAX: u16 = 128;

record! {
    /// Position of bits in the packet, from the base offset on, or in the metadata.
    #[derive(Copy, Hash)]
    pub struct PofField: "field" [8 8] {
        /// [`METADATA_FIELD`] for metadata. Any other number is only a name of the field.
        id: u16 = (0 2) (0 2),
        /// Offset in bits.
        offset_bits: u16 = (2 2) (2 2),
        /// Length in bits.
        length_bits: u16 = (4 2) (4 2),
    }
}

impl Slot for PofField {
    const STRIDES: [usize; 2] = [8, 8];
}

record! {
    /// Condition on a field: its bits equal those of `value` wherever `mask` has ones. Value and mask are
    /// left-aligned: bit 127 is the first bit of the field.
    #[derive(Copy, Hash)]
    pub struct PofMatch: "field with value" [40 40] {
        /// The field, of at most 128 bits.
        field: PofField = (0 8) (0 8),
        /// Value of the field.
        value: u128 = (8 16) (8 16),
        /// Examined bits.
        mask: u128 = (24 16) (24 16),
    }
    check check_length;
}

impl Slot for PofMatch {
    const STRIDES: [usize; 2] = [40, 40];
}

fn check_length(matching: &PofMatch) -> Result<(), Fault> {
    let bits = matching.field.length_bits;
    if bits <= FIELD_BITS_MAX {
        return Ok(());
    }
    Err(error::MATCH_BAD_LEN.at(4, format!("a field with a value has {bits} bits; the maximum is 128")))
}

/// A number, or the field that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PofOperand {
    /// A number.
    Number(u32),
    /// The number is in this field. Dialect 1.2 has no such operands.
    Field(PofField),
}

impl Default for PofOperand {
    fn default() -> Self {
        Self::Number(0)
    }
}

/// Returns the value of an action or instruction, left-aligned like the values of matches. Dialect 1.2 sends
/// a right-aligned number instead. `bits` is the length of the value; only these bits are kept.
#[must_use]
pub fn left_aligned(value: u128, bits: u32, dialect: PofDialect) -> u128 {
    let Some(unused) = u128::BITS.checked_sub(bits) else { return value };
    let mask = u128::MAX.checked_shl(unused).unwrap_or(0);
    match dialect {
        PofDialect::V1_2 => value.checked_shl(unused).unwrap_or(0),
        PofDialect::V1_4 => value & mask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_aligned_to_the_left() {
        let (old, new) = (PofDialect::V1_2, PofDialect::V1_4);
        assert_eq!(left_aligned(0x1_23, 8, old), 0x23 << 120);
        assert_eq!(left_aligned(0x23 << 120 | 1, 8, new), 0x23 << 120);
        assert_eq!(left_aligned(u128::MAX, 0, old), 0);
        assert_eq!(left_aligned(u128::MAX, 0, new), 0);
        assert_eq!(left_aligned(5, 128, new), 5);
        assert_eq!(left_aligned(5, 129, old), 5);
    }

    #[test]
    fn text_is_cut_at_a_character() {
        assert_eq!(PofText::<4>::from("abcd").text(), "abc");
        assert_eq!(PofText::<4>::from("abä").text(), "ab");
        assert_eq!(PofText::<4>([b'a'; 4]).text(), "aaaa");
    }
}
