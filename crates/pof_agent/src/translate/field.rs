// SPDX-License-Identifier: Apache-2.0
//! Fields of POF as slices, and values of fields.

use flow::{Limits, Slice, SliceBase, ext};
use pof::value::{METADATA_FIELD, PofField};

/// Bits of POF's metadata that have the ingress port.
const PORT_BITS: std::ops::Range<u32> = 16..24;
/// Bits of POF's metadata that instructions can write.
const USER_BITS: std::ops::Range<u32> = 32..160;
/// First bit of the extended header with the lowest byte of the ingress port.
const EXT_PORT_BIT: u32 = 24;

/// Returns the slice of a field of a packet or of the metadata.
///
/// # Errors
/// Returns the reason if the switch does not have these bits.
pub fn slice(field: PofField) -> Result<Slice, String> {
    if field.id == METADATA_FIELD {
        return metadata(field.offset_bits, field.length_bits);
    }
    packet(field.offset_bits, field.length_bits)
}

/// Returns the slice of a packet's bits, counted from the packet's base.
///
/// # Errors
/// Returns the reason if the switch cannot examine these bits.
pub fn packet(offset_bits: u16, length_bits: u16) -> Result<Slice, String> {
    Slice::new(SliceBase::Moving, offset_bits.into(), length_bits.into()).map_err(|error| {
        format!("the field of {length_bits} bits at bit {offset_bits} of the packet is impossible: {error}")
    })
}

/// Returns the slice of bits of POF's metadata.
///
/// # Errors
/// Returns the reason if the switch does not have these bits.
pub fn metadata(offset_bits: u16, length_bits: u16) -> Result<Slice, String> {
    let (start, length) = (u32::from(offset_bits), u32::from(length_bits));
    let end = start + length;
    let within = |range: &std::ops::Range<u32>| range.start <= start && end <= range.end;
    let at = if within(&USER_BITS) {
        start - USER_BITS.start + u32::from(ext::METADATA_BIT)
    } else if within(&PORT_BITS) {
        start - PORT_BITS.start + EXT_PORT_BIT
    } else {
        return Err(format!(
            "bits {start} to {end} of the metadata do not exist; the switch has bits 16 to 24 (ingress port) \
             and 32 to 160 (written by instructions)"
        ));
    };
    Slice::new(SliceBase::Metadata, at, length)
        .map_err(|error| format!("the metadata field at bit {start} is impossible: {error}"))
}

/// Returns the first `length_bits` bits of a left-aligned value, right-aligned. The length must be 1 to 128.
#[must_use]
pub fn right_aligned(value: u128, length_bits: u16) -> u128 {
    debug_assert!((1..=Limits::SLICE_BITS).contains(&length_bits));
    value.checked_shr(128 - u32::from(length_bits)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(base: SliceBase, offset_bits: u16, length_bits: u16) -> Option<Slice> {
        Some(Slice { base, offset_bits, length_bits })
    }

    #[test]
    fn fields_are_slices_of_the_moving_base_or_of_the_extended_header() {
        for (id, offset_bits, length_bits, expected) in [
            (0, 0, 48, made(SliceBase::Moving, 0, 48)),
            (0x8001, 12_160, 128, made(SliceBase::Moving, 12_160, 128)),
            (7, 12_161, 128, None),
            (7, 0, 0, None),
            (7, 0, 129, None),
            (7, 0xffff, 0xffff, None),
            (0xffff, 16, 8, made(SliceBase::Metadata, 24, 8)),
            (0xffff, 17, 3, made(SliceBase::Metadata, 25, 3)),
            (0xffff, 32, 128, made(SliceBase::Metadata, 64, 128)),
            (0xffff, 152, 8, made(SliceBase::Metadata, 184, 8)),
            (0xffff, 153, 8, None),
            (0xffff, 0, 16, None),
            (0xffff, 15, 2, None),
            (0xffff, 23, 2, None),
            (0xffff, 24, 8, None),
            (0xffff, 31, 2, None),
            (0xffff, 32, 0, None),
            (0xffff, 0xffff, 0xffff, None),
        ] {
            let found = slice(PofField { id, offset_bits, length_bits });
            assert_eq!(found.clone().ok(), expected, "{id:#x} {offset_bits} {length_bits}: {found:?}");
        }
    }

    #[test]
    fn the_ingress_port_is_read_only_and_user_bits_are_not() {
        let settable = |offset, length| flow::Field::Slice(metadata(offset, length).unwrap()).settable();
        assert!(!settable(16, 8) && settable(32, 128) && settable(159, 1));
    }

    #[test]
    fn values_are_aligned_to_the_right() {
        assert_eq!(right_aligned(0xabcd << 112, 16), 0xabcd);
        assert_eq!(right_aligned(0xabcd << 112 | 1, 12), 0xabc);
        assert_eq!(right_aligned(u128::MAX, 128), u128::MAX);
        assert_eq!(right_aligned(u128::MAX, 1), 1);
    }
}
