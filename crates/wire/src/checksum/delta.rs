// SPDX-License-Identifier: Apache-2.0
//! Incremental update: what changed in the bytes a checksum covers.

use super::sum;

/// Changes to bytes that a checksum covers, accumulated: the ones-complement sum of the new words less the old ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delta {
    /// Each change adds at most 0x1fffe: 64 bits do not overflow in the life of a packet.
    total: u64,
}

impl Delta {
    /// A 16-bit word at an even offset changed.
    #[inline]
    pub fn replace(&mut self, old: u16, new: u16) {
        self.total += u64::from(!old) + u64::from(new);
    }

    /// A range of bytes changed; `odd` if it begins at an odd offset of what the checksum covers. The lengths may
    /// differ (one may be empty, for bytes inserted or removed) if what follows moves by an even number of bytes.
    #[inline]
    pub fn replace_bytes(&mut self, old: &[u8], new: &[u8], odd: bool) {
        let (old, new) = (sum(old), sum(new));
        // Bytes at an odd offset are the low halves of their words.
        if odd {
            self.replace(old.swap_bytes(), new.swap_bytes());
        } else {
            self.replace(old, new);
        }
    }

    /// Whether the changes leave every sum as it is.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.total.is_multiple_of(0xffff)
    }

    /// `sum` with the changes, represented in 1..=0xffff.
    fn added_to(&self, sum: u16) -> u16 {
        match ((self.total + u64::from(sum)) % 0xffff) as u16 {
            0 => 0xffff,
            rest => rest,
        }
    }
}

/// The checksum after the changes: ~(~HC + ~m + m') of RFC 1624. A delta of zero returns it unchanged; otherwise the
/// result is in 0..=0xfffe, as a full computation over bytes that are not all zero gives.
#[inline]
pub fn apply(checksum: u16, delta: Delta) -> u16 {
    if delta.is_zero() { checksum } else { !delta.added_to(!checksum) }
}

/// As [`apply`], for UDP: zero means no checksum and stays, a result of zero becomes 0xffff.
#[inline]
pub fn apply_udp(checksum: u16, delta: Delta) -> u16 {
    if checksum == 0 || delta.is_zero() {
        return checksum;
    }
    match apply(checksum, delta) {
        0 => 0xffff,
        updated => updated,
    }
}

/// As [`apply`], for a field that holds the sum of the pseudo-header, not complemented, because an offload is to
/// complete it (CHECKSUM_PARTIAL). Only changes of the pseudo-header belong into `delta`.
#[inline]
pub fn apply_partial(field: u16, delta: Delta) -> u16 {
    if delta.is_zero() { field } else { delta.added_to(field) }
}
