// SPDX-License-Identifier: Apache-2.0
//! Access to bits of byte strings, one bit at a time. Bit 0 is the most significant bit of the first byte.

/// Returns `length` bits (at most 128) from `first` on, right-aligned. Returns `None` if `bytes` has fewer
/// bits.
pub(crate) fn read(bytes: &[u8], first: usize, length: usize) -> Option<u128> {
    let mut value = 0;
    for bit in first..first + length {
        let byte = bytes.get(bit / 8)?;
        value = value << 1 | u128::from(byte >> (7 - bit % 8) & 1);
    }
    Some(value)
}

/// Writes `value` to the `length` bits from `first` on, but changes only the bits that are set in `mask`.
/// `value` and `mask` are right-aligned. Bits after the end of `bytes` are ignored.
pub(crate) fn write(bytes: &mut [u8], first: usize, length: usize, value: u128, mask: u128) {
    for (index, bit) in (first..first + length).enumerate() {
        let shift = length - 1 - index;
        let Some(byte) = bytes.get_mut(bit / 8) else { return };
        if mask >> shift & 1 == 1 {
            let one = 0x80 >> (bit % 8);
            *byte = if value >> shift & 1 == 1 { *byte | one } else { *byte & !one };
        }
    }
}
