// SPDX-License-Identifier: Apache-2.0
//! Search keys: which bits of the extended header a table compares, and with what.
//!
//! A key is four slices of 4 bytes, then one *presence* bit for each slice, the first slice's at the most
//! significant end. A presence bit is 1 if the whole slice is inside the frame or the metadata. An entry that
//! examines a slice must require its presence bit, because the bits of an absent slice are 0.

/// Slices of a key.
pub const KEY_SLICES: usize = 4;
/// Bytes of a slice.
pub const SLICE_BYTES: usize = 4;
/// Bits of a key: slices, then presence bits.
pub const KEY_BITS: usize = KEY_SLICES * (SLICE_BYTES * 8 + 1);
/// Bytes of a key in messages. The least significant 4 bits of the last byte are unused.
pub const KEY_BYTES: usize = KEY_BITS.div_ceil(8);

/// Position from which the offset of a slice is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum SelectorBase {
    /// First byte of the extended header.
    #[default]
    Extended = 0,
    /// First byte of the frame.
    Frame = 1,
    /// First byte after the EtherType.
    L3 = 2,
    /// First byte of the upper-layer header. Without such a header, the slice is absent.
    L4 = 3,
}

impl SelectorBase {
    /// All bases by code.
    pub const ALL: [Self; 4] = [Self::Extended, Self::Frame, Self::L3, Self::L4];
}

/// Configuration of one slice. Bits after `bytes` are 0 in the key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeySlice {
    /// Position from which `offset` counts.
    pub base: SelectorBase,
    /// Offset of the first byte.
    pub offset: u8,
    /// Number of bytes, 0 to 4. A slice of 0 bytes is always present.
    pub bytes: u8,
}

/// Value and mask that an entry compares a key with. A bit of the value outside the mask must be 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TernaryKey {
    /// Bits that the key must have.
    pub value: [u8; KEY_BYTES],
    /// Bits that are compared.
    pub mask: [u8; KEY_BYTES],
}

impl TernaryKey {
    /// Returns whether `key` equals the value in all bits of the mask.
    #[must_use]
    pub fn matches(&self, key: &[u8; KEY_BYTES]) -> bool {
        let parts = key.iter().zip(&self.value).zip(&self.mask);
        parts.fold(0, |differ, ((key, value), mask)| differ | ((key ^ value) & mask)) == 0
    }

    /// Returns whether all value bits are inside the mask, and the unused bits are 0.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        let unused = (1_u8 << (KEY_BYTES * 8 - KEY_BITS)) - 1;
        self.value.iter().zip(&self.mask).all(|(value, mask)| value & !mask == 0)
            && self.mask[KEY_BYTES - 1] & unused == 0
    }
}
