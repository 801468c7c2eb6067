// SPDX-License-Identifier: Apache-2.0
//! Edits: actions that move the base, insert and delete bytes, and calculate with fields.

use crate::bits;
use crate::fields;
use crate::packet::ReferencePacket;
use crate::set_field::set_field;
use crate::unfinished;
use flow::action::SetField;
use flow::{BitRange, CutOrigin, DropReason, Edit, Field, Slice};

/// Executes an edit.
pub(crate) fn edit(packet: &mut ReferencePacket, edit: Edit) -> Result<(), DropReason> {
    match edit {
        Edit::MoveBase(bytes) => {
            let moved = packet.base as isize + isize::from(bytes);
            if moved < 0 || moved > packet.bytes.len() as isize {
                return Err(DropReason::MissingHeader);
            }
            packet.base = moved as usize;
            Ok(())
        }
        Edit::AddField { range, value } => {
            let at = packet.base + usize::from(range.offset_bits / 8);
            if at > packet.bytes.len() {
                return Err(DropReason::MissingHeader);
            }
            complete_before(packet, at)?;
            let count = usize::from(range.length_bits / 8);
            packet.insert(at, &value.to_be_bytes()[16 - count..], None)
        }
        Edit::DeleteField(range) => {
            let (from, to) = present(packet, range)?;
            complete_before(packet, to)?;
            packet.remove(from..to, None);
            Ok(())
        }
        Edit::CutFront { origin, bytes } => {
            let to = usize::from(bytes) + if origin == CutOrigin::Base { packet.base } else { 0 };
            if to > packet.bytes.len() {
                return Err(DropReason::MissingHeader);
            }
            if to > 0 {
                complete_before(packet, to)?;
                packet.remove(0..to, None);
            }
            packet.base = 0;
            Ok(())
        }
        Edit::ModifyField { slice, increment } => {
            let value = value_of(packet, slice)?;
            let wide = value as i128 + i128::from(increment);
            write(packet, slice, wide.rem_euclid(1 << slice.length_bits) as u128)
        }
        Edit::CopyField { from, to } => {
            let value = value_of(packet, from)?;
            write(packet, to, value)
        }
        Edit::CalculateChecksum { checksum, covered } => {
            let (field_from, field_to) = present(packet, checksum)?;
            let (from, to) = present(packet, covered)?;
            complete_before(packet, to.max(field_to))?;
            let zeroed = |at: usize| if (field_from..field_to).contains(&at) { 0 } else { packet.bytes[at] };
            let bytes: Vec<u8> = (from..to).map(zeroed).collect();
            let sum = ones_complement_sum(&bytes, usize::from(checksum.length_bits / 8));
            let full = Field::Slice(checksum.slice()).full_mask();
            write(packet, checksum.slice(), !sum & full)
        }
    }
}

/// Returns the first byte of a range in the frame, and the byte after the last.
fn present(packet: &ReferencePacket, range: BitRange) -> Result<(usize, usize), DropReason> {
    let from = packet.base + usize::from(range.offset_bits / 8);
    let to = from + usize::from(range.length_bits / 8);
    if to > packet.bytes.len() { Err(DropReason::MissingHeader) } else { Ok((from, to)) }
}

fn value_of(packet: &ReferencePacket, slice: Slice) -> Result<u128, DropReason> {
    fields::get(packet, Field::Slice(slice)).ok_or(DropReason::MissingHeader)
}

fn write(packet: &mut ReferencePacket, slice: Slice, value: u128) -> Result<(), DropReason> {
    let field = Field::Slice(slice);
    set_field(packet, &SetField { field, value, mask: field.full_mask() })
}

/// Completes an open checksum before an edit of bytes up to `end`, if these bytes are not all before the
/// bytes that the checksum covers.
fn complete_before(packet: &mut ReferencePacket, end: usize) -> Result<(), DropReason> {
    let Some(open) = packet.unfinished.checksum.filter(|open| open.start < end) else { return Ok(()) };
    if packet.unfinished.cut.is_some() {
        return Err(DropReason::UnsupportedAction);
    }
    let completed = unfinished::completed(&packet.bytes, open).ok_or(DropReason::UnsupportedAction)?;
    packet.unfinished.checksum = None;
    packet.bytes = completed;
    Ok(())
}

/// Returns the one's complement sum of words of `word_bytes` bytes. Zeros are added to the last word.
fn ones_complement_sum(bytes: &[u8], word_bytes: usize) -> u128 {
    let mut sum: u128 = 0;
    for word in bytes.chunks(word_bytes) {
        let mut padded = vec![0; 16];
        padded[16 - word_bytes..16 - word_bytes + word.len()].copy_from_slice(word);
        sum += bits::read(&padded, 0, 128).unwrap_or_default();
        if sum >> (8 * word_bytes) != 0 {
            sum = (sum & !(u128::MAX << (8 * word_bytes))) + 1;
        }
    }
    sum
}
