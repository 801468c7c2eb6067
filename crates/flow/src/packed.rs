// SPDX-License-Identifier: Apache-2.0
//! Compact byte encoding of a match's conditions. A 5-tuple takes 22 bytes instead of 240.
//!
//! Conditions follow one another in field order. Each consists of:
//! - the field's OXM number, or 0x7f followed by the slice's base, first bit and length (8, 16 and 16 bits);
//!   the first byte is increased by 0x80 if a mask follows;
//! - the value, big-endian, in the fewest bytes that hold the field;
//! - the mask in the same number of bytes, absent if it is full.
//!
//! Equal conditions have equal encodings. An index of a linear table is encoded as 0x7e and 4 bytes.

use crate::slice::{Slice, SliceBase};
use crate::{Field, FieldMatch};

const INDEX: u8 = 0x7e;
const SLICE: u8 = 0x7f;
const MASKED: u8 = 0x80;

fn bytes_of(field: Field) -> usize {
    usize::from(field.location().length_bits).div_ceil(8)
}

/// Returns the number of bytes of an encoded condition.
fn packed_bytes(condition: &FieldMatch) -> usize {
    let head = if matches!(condition.field, Field::Slice(_)) { 6 } else { 1 };
    head + bytes_of(condition.field) * if condition.is_exact() { 1 } else { 2 }
}

/// Packs conditions, which must be in field order. No value may have bits outside its mask.
pub(crate) fn pack(conditions: &[FieldMatch]) -> Box<[u8]> {
    let mut packed = Vec::with_capacity(conditions.iter().map(packed_bytes).sum());
    for c in conditions {
        let masked = if c.is_exact() { 0 } else { MASKED };
        match c.field {
            Field::Slice(slice) => {
                packed.extend([SLICE | masked, slice.base.number()]);
                packed.extend(slice.offset_bits.to_be_bytes());
                packed.extend(slice.length_bits.to_be_bytes());
            }
            // Only slices have no OXM number.
            named => packed.push(named.oxm().unwrap_or_default() | masked),
        }
        let bytes = bytes_of(c.field);
        packed.extend(&c.value.to_be_bytes()[16 - bytes..]);
        if masked != 0 {
            packed.extend(&c.mask.to_be_bytes()[16 - bytes..]);
        }
    }
    debug_assert_eq!(packed.len(), packed.capacity());
    packed.into_boxed_slice()
}

/// Packs an index of a linear table.
pub(crate) fn pack_index(index: u32) -> Box<[u8]> {
    let [a, b, c, d] = index.to_be_bytes();
    Box::new([INDEX, a, b, c, d])
}

/// Returns the index, if `packed` has one.
pub(crate) fn index(packed: &[u8]) -> Option<u32> {
    match *packed {
        [INDEX, a, b, c, d] => Some(u32::from_be_bytes([a, b, c, d])),
        _ => None,
    }
}

/// Iterator over a match's conditions, in field order.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn of(packed: &'a [u8]) -> Self {
        Self { rest: packed }
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u128> {
        let taken = self.take(bytes)?;
        // Nearly all numbers have few bytes, for which this is faster than a copy.
        if bytes <= 8 {
            return Some(taken.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)).into());
        }
        let mut number = [0; 16];
        number[16usize.checked_sub(bytes)?..].copy_from_slice(taken);
        Some(u128::from_be_bytes(number))
    }
}

impl Iterator for Fields<'_> {
    type Item = FieldMatch;

    fn next(&mut self) -> Option<FieldMatch> {
        let (&tag, rest) = self.rest.split_first()?;
        self.rest = rest;
        let field = match tag & !MASKED {
            SLICE => {
                let base = SliceBase::numbered(self.number(1)? as u8)?;
                let (offset_bits, length_bits) = (self.number(2)? as u16, self.number(2)? as u16);
                Field::Slice(Slice { base, offset_bits, length_bits })
            }
            // `NAMED` is in OXM order without gaps, so `get` returns `None` for other values.
            named => *Field::NAMED.get(usize::from(named))?,
        };
        let bytes = bytes_of(field);
        let value = self.number(bytes)?;
        let mask = if tag & MASKED == 0 { field.full_mask() } else { self.number(bytes)? };
        Some(FieldMatch { field, value, mask })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_conditions_are_read_back() {
        let slice = |base, offset_bits, length_bits| Field::Slice(Slice { base, offset_bits, length_bits });
        let mut fields = Field::NAMED.to_vec();
        fields.extend(SliceBase::ALL.map(|base| slice(base, 0x123, 61)));
        fields.push(slice(SliceBase::L4, 3, 128));
        let all: Vec<FieldMatch> = fields
            .iter()
            .flat_map(|&field| {
                let mask = field.full_mask() & 0x5555_5555_5555_5555_5555_5555_5555_5555;
                [
                    FieldMatch::exact(field, field.full_mask() & (0x1122_3344 << 90 | 7)),
                    FieldMatch { field, value: mask & 0x3333_3333_3333_3333_3333_3333_3333_3333, mask },
                ]
            })
            .collect();
        assert_eq!(Fields::of(&pack(&all)).collect::<Vec<_>>(), all);
        assert_eq!(Fields::of(&[]).next(), None);
        let linear = pack_index(0x0102_0304);
        assert_eq!((index(&linear), Fields::of(&linear).next()), (Some(0x0102_0304), None));
        assert_eq!(index(&pack(&all)), None);
    }

    #[test]
    fn a_five_tuple_is_short() {
        let tuple = [(Field::EthType, 0x800), (Field::IpProto, 6), (Field::Ipv4Src, 1), (Field::TcpDst, 2)];
        let packed = pack(&tuple.map(|(field, value)| FieldMatch::exact(field, value)));
        assert_eq!(&packed[..], [5, 8, 0, 10, 6, 11, 0, 0, 0, 1, 14, 0, 2]);
    }

    #[test]
    fn truncated_bytes_end_the_iteration() {
        let packed = pack(&[FieldMatch::exact(Field::EthSrc, 5), FieldMatch::exact(Field::InPort, 5)]);
        for length in 0..packed.len() {
            assert!(Fields::of(&packed[..length]).count() < 2);
        }
    }
}
