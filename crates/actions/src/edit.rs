// SPDX-License-Identifier: Apache-2.0
//! Edits: actions that move the packet's base, insert and delete bytes, and calculate with fields.
//!
//! Offsets and lengths were checked when the entry was added. Each edit compares its end with the length of
//! the packet once, before it changes anything.

#[cfg(test)]
mod tests;

use crate::field_write::FieldWrite;
use crate::packet_data::PacketData;
use crate::tags;
use flow::action::SetField;
use flow::{BitRange, CutOrigin, DropReason, Edit, Field, FieldBase, Slice};
use std::ops::Range;
use wire::Depth;

/// Executes an edit.
///
/// # Errors
/// Returns `MissingHeader` if the packet is too short, `NoHeadroom` if it cannot grow, and
/// `UnsupportedAction` if the edit would change the payload of a frame that is still to be segmented.
pub(crate) fn run(edit: &Edit, packet: &mut PacketData) -> Result<(), DropReason> {
    match *edit {
        Edit::MoveBase(bytes) => move_base(packet, bytes),
        Edit::AddField { range, value } => add_field(packet, range, value),
        Edit::DeleteField(range) => delete_field(packet, range),
        Edit::CutFront { origin, bytes } => cut_front(packet, origin, bytes),
        Edit::ModifyField { slice, increment } => {
            let value = read(packet, slice)?;
            write(packet, slice, value.wrapping_add_signed(increment.into()))
        }
        Edit::CopyField { from, to } => {
            let value = read(packet, from)?;
            write(packet, to, value)
        }
        Edit::CalculateChecksum { checksum, covered } => calculate_checksum(packet, checksum, covered),
    }
}

fn move_base(packet: &mut PacketData, bytes: i16) -> Result<(), DropReason> {
    let moved = packet.base.checked_add_signed(bytes.into()).ok_or(DropReason::MissingHeader)?;
    if moved as usize > packet.frame.len() {
        return Err(DropReason::MissingHeader);
    }
    packet.base = moved;
    Ok(())
}

fn add_field(packet: &mut PacketData, range: BitRange, value: u128) -> Result<(), DropReason> {
    let bytes = value.to_be_bytes();
    let count = usize::from(range.length_bits / 8);
    let at = packet.base as usize + usize::from(range.offset_bits / 8);
    if at > packet.frame.len() {
        return Err(DropReason::MissingHeader);
    }
    complete_checksum(packet, at)?;
    if !packet.frame.insert(at, count) {
        return Err(DropReason::NoHeadroom);
    }
    if let Some(place) = packet.frame.bytes_mut().get_mut(at..at + count) {
        place.copy_from_slice(&bytes[bytes.len() - count..]);
    }
    packet.forget_layers();
    Ok(())
}

fn delete_field(packet: &mut PacketData, range: BitRange) -> Result<(), DropReason> {
    let place = place_of(packet, range)?;
    complete_checksum(packet, place.end)?;
    if !packet.frame.remove(place.start, place.len()) {
        return Err(DropReason::MissingHeader);
    }
    tags::pad(packet)
}

fn cut_front(packet: &mut PacketData, origin: CutOrigin, bytes: u16) -> Result<(), DropReason> {
    let from = match origin {
        CutOrigin::Packet => 0,
        CutOrigin::Base => packet.base as usize,
    };
    let count = from + usize::from(bytes);
    if count > packet.frame.len() {
        return Err(DropReason::MissingHeader);
    }
    if count > 0 {
        complete_checksum(packet, count)?;
        if !packet.frame.remove(0, count) {
            return Err(DropReason::MissingHeader);
        }
        tags::pad(packet)?;
    }
    packet.base = 0;
    Ok(())
}

fn calculate_checksum(
    packet: &mut PacketData,
    checksum: BitRange,
    covered: BitRange,
) -> Result<(), DropReason> {
    let field = place_of(packet, checksum)?;
    let place = place_of(packet, covered)?;
    complete_checksum(packet, place.end.max(field.end))?;
    let bits = u32::from(checksum.length_bits);
    let mask = u64::MAX >> (64 - bits);
    let sum =
        sum_of(&packet.frame.bytes()[place.clone()], bits, |number| field.contains(&(place.start + number)));
    write(packet, checksum.slice(), u128::from(!sum & mask))
}

/// Returns the one's complement sum of words of `bits` (8, 16 or 32) bits. Skipped bytes count as 0.
fn sum_of(bytes: &[u8], bits: u32, skips: impl Fn(usize) -> bool) -> u64 {
    let word_bytes = bits as usize / 8;
    // 1,536 bytes have at most 1,536 words of 32 bits, so the sum does not overflow.
    let mut sum = 0;
    for (number, byte) in bytes.iter().enumerate() {
        if !skips(number) {
            sum += u64::from(*byte) << (8 * (word_bytes - 1 - number % word_bytes));
        }
    }
    while sum >> bits != 0 {
        sum = (sum & (u64::MAX >> (64 - bits))) + (sum >> bits);
    }
    sum
}

/// Returns the place of a range in the frame.
fn place_of(packet: &PacketData, range: BitRange) -> Result<Range<usize>, DropReason> {
    let start = packet.slice_start(FieldBase::Moving, range.end_bits()).ok_or(DropReason::MissingHeader)?;
    let from = start + usize::from(range.offset_bits / 8);
    Ok(from..from + usize::from(range.length_bits / 8))
}

/// Completes an open checksum before bytes up to `end` are edited, if some of them are behind the start of
/// the bytes that it covers.
fn complete_checksum(packet: &mut PacketData, end: usize) -> Result<(), DropReason> {
    let Some(open) = packet.frame.meta.checksum else { return Ok(()) };
    let start = usize::from(open.start);
    if start >= end {
        return Ok(());
    }
    if packet.frame.meta.gso.is_some() {
        return Err(DropReason::UnsupportedAction);
    }
    if !wire::segment::complete_partial(packet.frame.bytes_mut(), start, open.offset.into()) {
        return Err(DropReason::UnsupportedAction);
    }
    packet.frame.meta.checksum = None;
    Ok(())
}

/// Reads a slice, right-aligned.
fn read(packet: &mut PacketData, slice: Slice) -> Result<u128, DropReason> {
    let base = Field::Slice(slice).location().base;
    if !matches!(base, FieldBase::Frame | FieldBase::Moving) {
        packet.locate(Depth::L4);
    }
    let end = u32::from(slice.offset_bits) + u32::from(slice.length_bits);
    let start = packet.slice_start(base, end).ok_or(DropReason::MissingHeader)?;
    let bytes = if base == FieldBase::Ext { packet.ext.bytes() } else { packet.frame.bytes() };
    let first = start + usize::from(slice.offset_bits / 8);
    Ok(read_bits(bytes.get(first..).unwrap_or_default(), slice.offset_bits % 8, slice.length_bits))
}

/// Returns `length` (at most 128) bits that begin `skip` (0 to 7) bits into `bytes`.
fn read_bits(bytes: &[u8], skip: u16, length: u16) -> u128 {
    let end = skip + length;
    let mut value = 0;
    for (number, byte) in bytes.iter().enumerate().take(usize::from(end.div_ceil(8))) {
        let byte = u128::from(if number == 0 { byte & (0xff >> skip) } else { *byte });
        // Distance in bits from the last bit of the field to the last bit of this byte.
        let down = i32::from(end) - 8 * (number as i32 + 1);
        value |= if down >= 0 { byte << down } else { byte >> -down };
    }
    value
}

/// Writes the low bits of a value to a slice, and updates the checksums that cover it.
fn write(packet: &mut PacketData, slice: Slice, value: u128) -> Result<(), DropReason> {
    let field = Field::Slice(slice);
    FieldWrite::compile(&SetField { field, value, mask: field.full_mask() }).run(packet)
}
