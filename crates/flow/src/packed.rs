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
use std::hash::Hasher;
use std::ops::Range;

const INDEX: u8 = 0x7e;
const INDEX_BYTES: usize = 4;
const SLICE: u8 = 0x7f;
const MASKED: u8 = 0x80;

/// Length of a slice's head in bytes: base, first bit and length.
const SLICE_HEAD: usize = 5;

/// A named field, as the reader needs it.
#[derive(Clone, Copy)]
struct NamedField {
    field: Field,
    /// Number of bytes of a value.
    bytes: usize,
    full_mask: u128,
}

/// The named fields by OXM number. Looking a field up here takes less time than computing its values.
static NAMED: [NamedField; Field::NAMED.len()] = {
    let mut named = [NamedField { field: Field::InPort, bytes: 0, full_mask: 0 }; Field::NAMED.len()];
    let mut at = 0;
    while at < named.len() {
        let field = Field::NAMED[at];
        named[at] = NamedField { field, bytes: bytes_of(field), full_mask: field.full_mask() };
        at += 1;
    }
    named
};

const fn bytes_of(field: Field) -> usize {
    (field.location().length_bits as usize).div_ceil(8)
}

/// Returns the number of bytes of an encoded condition.
fn packed_bytes(condition: &FieldMatch) -> usize {
    let head = if matches!(condition.field, Field::Slice(_)) { 1 + SLICE_HEAD } else { 1 };
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

    fn bytes(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn number(&mut self, bytes: usize) -> Option<u128> {
        let taken = self.bytes(bytes)?;
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
        let NamedField { field, bytes, full_mask } = match tag & !MASKED {
            SLICE => {
                let base = SliceBase::numbered(self.number(1)? as u8)?;
                let (offset_bits, length_bits) = (self.number(2)? as u16, self.number(2)? as u16);
                let field = Field::Slice(Slice { base, offset_bits, length_bits });
                NamedField { field, bytes: bytes_of(field), full_mask: field.full_mask() }
            }
            // The named fields are in OXM order without gaps, so `get` returns `None` for other values.
            named => *NAMED.get(usize::from(named))?,
        };
        let value = self.number(bytes)?;
        let mask = if tag & MASKED == 0 { full_mask } else { self.number(bytes)? };
        Some(FieldMatch { field, value, mask })
    }
}

/// Iterator over the encoded fields and masks of packed conditions, without the values. For each condition,
/// it returns the first byte with a slice's head, and the mask, which is empty if it is full.
struct Shape<'a>(Fields<'a>);

impl<'a> Iterator for Shape<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let Lengths { head, value, mask } = Lengths::of(self.0.rest)?;
        let head = self.0.bytes(head)?;
        self.0.bytes(value)?;
        Some((head, self.0.bytes(mask)?))
    }
}

/// Lengths of the parts of a packed condition in bytes.
#[derive(Clone, Copy)]
struct Lengths {
    /// The first byte, with a slice's head.
    head: usize,
    value: usize,
    /// 0 if the mask is full.
    mask: usize,
}

impl Lengths {
    /// Returns the lengths of the first of these packed conditions, or `None` if there is none.
    #[inline]
    fn of(packed: &[u8]) -> Option<Self> {
        let tag = *packed.first()?;
        let (head, value) = match tag & !MASKED {
            SLICE => {
                let length_bits = [*packed.get(SLICE_HEAD - 1)?, *packed.get(SLICE_HEAD)?];
                (1 + SLICE_HEAD, usize::from(u16::from_be_bytes(length_bits)).div_ceil(8))
            }
            // An index of a linear table is a value of its own length.
            INDEX => (1, INDEX_BYTES),
            named => (1, NAMED.get(usize::from(named))?.bytes),
        };
        Some(Self { head, value, mask: if tag & MASKED == 0 { 0 } else { value } })
    }
}

/// Iterator over the exact conditions of a packed match on named fields, with the positions of their values.
pub(crate) fn exact_values(packed: &[u8]) -> impl Iterator<Item = (Field, Range<usize>)> {
    let mut fields = Fields::of(packed);
    std::iter::from_fn(move || {
        let condition = fields.next()?;
        let end = packed.len() - fields.rest.len();
        Some((condition, end))
    })
    .filter(|(condition, _)| condition.is_exact() && !matches!(condition.field, Field::Slice(_)))
    .map(|(FieldMatch { field, .. }, end)| (field, end - bytes_of(field)..end))
}

/// Returns whether two packed matches examine the same bits of the same fields. All indices of linear tables
/// examine the same.
pub(crate) fn have_same_shape(mut one: &[u8], mut other: &[u8]) -> bool {
    // The lengths of a condition follow from its field and mask. So if the conditions before are alike, the
    // next condition begins at the same byte in both matches.
    if one.len() != other.len() {
        return false;
    }
    while let Some(Lengths { head, value, mask }) = Lengths::of(one) {
        let end = head + value + mask;
        let (Some((mine, rest)), Some((others, rest_of_other))) =
            (one.split_at_checked(end), other.split_at_checked(end))
        else {
            return false;
        };
        // Most conditions have a head of one byte and no mask. Comparing one byte is faster than comparing
        // slices, which calls `memcmp`.
        if mine.first() != others.first()
            || head > 1 && mine[..head] != others[..head]
            || mask > 0 && mine[end - mask..] != others[end - mask..]
        {
            return false;
        }
        (one, other) = (rest, rest_of_other);
    }
    one.is_empty()
}

/// Adds the fields and masks of a packed match to a hash, without the values.
pub(crate) fn hash_shape(packed: &[u8], state: &mut impl Hasher) {
    for (head, mask) in Shape(Fields::of(packed)) {
        state.write(head);
        state.write(mask);
    }
}

/// Returns whether packed conditions examine a slice.
pub(crate) fn has_slice(packed: &[u8]) -> bool {
    Shape(Fields::of(packed)).any(|(head, _)| head.len() > 1)
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
    fn shapes_are_equal_if_fields_and_masks_are() {
        let slice = |length_bits| Field::Slice(Slice { base: SliceBase::L3, offset_bits: 4, length_bits });
        let fields = [Field::InPort, Field::EthDst, Field::MplsBos, Field::Ipv6Src, slice(9), slice(70)];
        let mut all: Vec<Vec<FieldMatch>> = vec![Vec::new()];
        for field in fields {
            let (full, low) = (field.full_mask(), field.full_mask() & 0x1_ffff);
            let conditions = [(0, full), (full, full), (1, low), (low, low), (0, 1)];
            let conditions = conditions.map(|(value, mask)| FieldMatch { field, value, mask });
            let before = all.clone();
            all.extend(before.iter().flat_map(|list| conditions.iter().map(|c| [&list[..], &[*c]].concat())));
            all.truncate(700);
            all.extend(conditions.iter().map(|c| vec![*c]));
        }
        let hash = |packed: &[u8]| {
            let mut state = std::hash::DefaultHasher::new();
            hash_shape(packed, &mut state);
            state.finish()
        };
        let shape = |list: &[FieldMatch]| list.iter().map(|c| (c.field, c.mask)).collect::<Vec<_>>();
        for one in &all {
            let first = pack(one);
            assert_eq!(has_slice(&first), one.iter().any(|c| matches!(c.field, Field::Slice(_))));
            for other in &all {
                let (second, equal) = (pack(other), shape(one) == shape(other));
                assert_eq!(have_same_shape(&first, &second), equal, "{one:?} {other:?}");
                assert_eq!(hash(&first) == hash(&second), equal, "{one:?} {other:?}");
            }
        }
        assert!(have_same_shape(&pack_index(1), &pack_index(0xff00_0000)) && !has_slice(&pack_index(1)));
        let port = pack(&[FieldMatch::exact(Field::InPort, 1)]);
        assert!(!have_same_shape(&pack_index(1), &port));
        // No field has this number.
        let malformed = [0x7d, 0, 0, 0, 1];
        assert!(!have_same_shape(&malformed, &port) && !have_same_shape(&port, &malformed));
        assert_ne!(hash(&pack_index(1)), hash(&[]));
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
