// SPDX-License-Identifier: Apache-2.0
//! Where the bits that a table examines are in an arriving packet, if entries have moved the base, or
//! inserted or deleted bytes, before the packet reaches the table.

#[cfg(test)]
mod tests;

use flow::{CutOrigin, Edit, Field, FieldBase, Limits, Slice, SliceBase, ext};

/// State in which packets reach a table: their base, and the bytes that entries have inserted and deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct View {
    base: u32,
    /// Insertions and deletions, in order.
    resizes: Vec<Resize>,
}

/// Bytes that an entry inserts or deletes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Resize {
    Inserted { at: u32, count: u32 },
    Deleted { at: u32, count: u32 },
}

impl View {
    /// Returns the view after an entry's edits. Edits that neither move the base nor insert or delete bytes
    /// have no effect. Returns `None` if the edits drop every packet.
    #[must_use]
    pub fn after(&self, edits: &[Edit]) -> Option<Self> {
        let mut made = self.clone();
        for edit in edits {
            let place = |base: u32, offset_bits: u16| base + u32::from(offset_bits / 8);
            match *edit {
                Edit::MoveBase(bytes) => made.base = made.base.checked_add_signed(bytes.into())?,
                Edit::AddField { range, .. } => made.resizes.push(Resize::Inserted {
                    at: place(made.base, range.offset_bits),
                    count: u32::from(range.length_bits / 8),
                }),
                Edit::DeleteField(range) => made.resizes.push(Resize::Deleted {
                    at: place(made.base, range.offset_bits),
                    count: u32::from(range.length_bits / 8),
                }),
                Edit::CutFront { origin, bytes } => {
                    let from = if origin == CutOrigin::Packet { 0 } else { made.base };
                    let count = from + u32::from(bytes);
                    made.resizes.extend((count > 0).then_some(Resize::Deleted { at: 0, count }));
                    made.base = 0;
                }
                Edit::ModifyField { .. } | Edit::CopyField { .. } | Edit::CalculateChecksum { .. } => {}
            }
        }
        Some(made)
    }

    /// Returns the fields of the arriving packet that have the examined bits of a field. Returns `None` if
    /// bits of the arriving packet at constant positions do not determine the field.
    #[must_use]
    pub fn on_arrival(&self, field: Field, mask: u128) -> Option<Vec<(Field, u128)>> {
        let location = field.location();
        let slice = match field {
            Field::Slice(slice) if slice.base == SliceBase::Moving => {
                Some((self.base * 8 + u32::from(slice.offset_bits), slice.length_bits))
            }
            _ if self.resizes.is_empty() => return Some(vec![(field, mask)]),
            _ if location.base == FieldBase::Frame => {
                Some((location.offset_bits.into(), location.length_bits))
            }
            _ => None,
        };
        match slice {
            Some((first, length)) => self.pieces(first, length.into(), mask),
            None => {
                let end = location.offset_bits + location.length_bits;
                // The ports and the registers do not depend on the bytes of the packet.
                let is_fixed = location.base == FieldBase::Ext && end <= ext::ETH_TYPE_BIT;
                is_fixed.then(|| vec![(field, mask)])
            }
        }
    }

    /// Returns the slices of the arriving packet with these bits of the frame, without bits that entries have
    /// inserted.
    fn pieces(&self, first: u32, length: u32, mask: u128) -> Option<Vec<(Field, u128)>> {
        let mut pieces: Vec<Piece> = Vec::new();
        let end = first + length;
        // After a deletion, a short frame is padded, so each byte may be present or absent.
        let is_joined = !self.resizes.iter().any(|resize| matches!(resize, Resize::Deleted { .. }));
        for byte in first / 8..end.div_ceil(8) {
            let Some(arrived) = self.arrived_byte(byte) else { continue };
            let (from, to) = (first.max(8 * byte), end.min(8 * byte + 8));
            let bits = mask >> (end - to) & (u128::MAX >> (128 - (to - from)));
            let first = 8 * arrived + from - 8 * byte;
            match pieces.last_mut() {
                Some(piece) if is_joined && piece.end == first => {
                    piece.end += to - from;
                    piece.mask = piece.mask << (to - from) | bits;
                }
                _ => pieces.push(Piece { first, end: first + to - from, mask: bits }),
            }
        }
        pieces.into_iter().map(Piece::field).collect()
    }

    /// Returns the arriving packet's byte that is now at this offset, or `None` for an inserted byte.
    fn arrived_byte(&self, byte: u32) -> Option<u32> {
        let mut at = byte;
        for resize in self.resizes.iter().rev() {
            match *resize {
                Resize::Inserted { at: from, count } if at >= from + count => at -= count,
                Resize::Inserted { at: from, .. } if at >= from => return None,
                Resize::Deleted { at: from, count } if at >= from => at += count,
                _ => {}
            }
        }
        Some(at)
    }
}

/// Bits of an arriving frame.
#[derive(Clone, Copy, Debug)]
struct Piece {
    first: u32,
    end: u32,
    mask: u128,
}

impl Piece {
    fn field(self) -> Option<(Field, u128)> {
        let length = self.end - self.first;
        let slice = Slice {
            base: SliceBase::Packet,
            offset_bits: u16::try_from(self.first).ok()?,
            length_bits: length as u16,
        };
        // The presence of a slice counts even if none of its bits is examined.
        let mask = if self.mask == 0 { u128::MAX >> (128 - length) } else { self.mask };
        (self.end <= Limits::SLICE_END_BITS).then_some((Field::Slice(slice), mask))
    }
}
