// SPDX-License-Identifier: Apache-2.0
//! Incremental update of checksums from changes of the covered bytes.

use super::sum;

/// Accumulated changes of bytes that a checksum covers: the ones-complement sum of the new words minus the
/// old words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChecksumDelta {
    /// Sum of the changes. Each change adds at most 0x1fffe.
    total: u64,
}

impl ChecksumDelta {
    /// Records the change of a 16-bit word at an even offset.
    #[inline]
    pub fn replace(&mut self, old: u16, new: u16) {
        self.total += u64::from(!old) + u64::from(new);
    }

    /// Records that the bytes `old` were replaced by `new`, either of which may be empty. `odd` states
    /// whether they begin at an odd offset in the covered bytes. If covered bytes follow, the lengths must
    /// differ by an even number.
    #[inline]
    pub fn replace_bytes(&mut self, old: &[u8], new: &[u8], odd: bool) {
        let (old, new) = (sum(old), sum(new));
        // The first byte is at an odd offset, so it is the low half of its word.
        if odd {
            self.replace(old.swap_bytes(), new.swap_bytes());
        } else {
            self.replace(old, new);
        }
    }

    /// Returns whether the changes cancel out.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.total.is_multiple_of(0xffff)
    }

    /// Returns `sum` with the changes applied. The result is in 1..=0xffff.
    fn added_to(&self, sum: u16) -> u16 {
        match ((self.total + u64::from(sum)) % 0xffff) as u16 {
            0 => 0xffff,
            rest => rest,
        }
    }
}

/// Returns the checksum after the changes: ~(~HC + ~m + m') of RFC 1624. A zero delta leaves the checksum
/// unchanged. Otherwise the result is in 0..=0xfffe, as in a full computation over bytes that are not all
/// zero.
#[inline]
pub fn apply(checksum: u16, delta: ChecksumDelta) -> u16 {
    if delta.is_zero() { checksum } else { !delta.added_to(!checksum) }
}

/// Returns the checksum of an IPv4 header after its TTL was decremented: [`apply`] with a constant delta.
/// Both checksums are in the byte order of the packet.
#[inline]
pub fn apply_ttl_decrement(checksum: [u8; 2]) -> [u8; 2] {
    // The TTL is the high byte of its word, so the checksum grows by 0x0100 in one's complement. In little
    // endian, this is an addition of 1.
    let sum = u32::from(u16::from_le_bytes(checksum)) + 1;
    ((sum + u32::from(sum >= 0xffff)) as u16).to_le_bytes()
}

/// Returns the UDP checksum after the changes, like [`apply`]. A checksum of zero, which means that there is
/// none, stays zero; a result of zero becomes 0xffff.
#[inline]
pub fn apply_udp(checksum: u16, delta: ChecksumDelta) -> u16 {
    if checksum == 0 || delta.is_zero() {
        return checksum;
    }
    match apply(checksum, delta) {
        0 => 0xffff,
        updated => updated,
    }
}

/// Returns the new value of a checksum field that contains only the sum of the pseudo-header, not
/// complemented (CHECKSUM_PARTIAL). `delta` must contain only changes of the pseudo-header.
#[inline]
pub fn apply_partial(field: u16, delta: ChecksumDelta) -> u16 {
    if delta.is_zero() { field } else { delta.added_to(field) }
}
