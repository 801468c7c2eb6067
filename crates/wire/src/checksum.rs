// SPDX-License-Identifier: Apache-2.0
//! Internet checksums (RFC 1071), their incremental update (RFC 1624), and the CRC32c of SCTP (RFC 9260).
//!
//! In this module a *sum* is the ones-complement sum of big-endian 16-bit words, folded to 16 bits and not
//! complemented. A *checksum* is the value of a header field: the complement of a sum.

mod delta;

#[cfg(test)]
mod tests;

pub use delta::{ChecksumDelta, apply, apply_partial, apply_ttl_decrement, apply_udp};

/// Folds a sum of words to 16 bits with end-around carry.
fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Returns the ones-complement sum of `bytes`. If the number of bytes is odd, a zero byte is assumed to
/// follow.
pub fn sum(bytes: &[u8]) -> u16 {
    // Byte-swapped words have the byte-swapped sum (RFC 1071, section 2), so words are read in native order.
    // The sum of 32-bit words, folded to 16 bits, equals the sum of 16-bit words.
    let (words, rest) = bytes.as_chunks::<4>();
    let mut total: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    total += u64::from(u32::from_ne_bytes(last));
    u16::from_be(fold(total))
}

/// Adds two sums. The bytes of the second sum must begin at an even offset from the bytes of the first sum.
pub fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum + u16::from(carry)
}

/// Returns the checksum of an IPv4 header with its options. The checksum field itself is treated as zero.
pub fn ipv4_header(header: &[u8]) -> u16 {
    let (before, rest) = header.split_at(header.len().min(10));
    !add(sum(before), sum(rest.get(2..).unwrap_or_default()))
}

/// As [`ipv4_header`], for a header without options in which `ttl` replaces the TTL.
#[inline(always)]
pub fn ipv4_header_with_ttl(header: &[u8; 20], ttl: u8) -> u16 {
    /// The TTL and the checksum in bytes 8 to 15.
    const REPLACED: u64 = u64::from_ne_bytes([0xff, 0, 0xff, 0xff, 0, 0, 0, 0]);
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, rest @ ..] = *header;
    let first = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
    let second = u64::from_ne_bytes([i, j, k, l, m, n, o, p]) & !REPLACED;
    let second = second | u64::from_ne_bytes([ttl, 0, 0, 0, 0, 0, 0, 0]);
    let (sum, carry) = first.overflowing_add(second);
    let (sum, last_carry) = sum.overflowing_add(u64::from(u32::from_ne_bytes(rest)) + u64::from(carry));
    let sum = sum + u64::from(last_carry);
    // The upper half of this sum is the sum of both halves, with its carry.
    let sum = (sum.wrapping_add(sum.rotate_left(32)) >> 32) as u32;
    let sum = (sum.wrapping_add(sum.rotate_left(16)) >> 16) as u16;
    !u16::from_be(sum)
}

/// Returns the sum of the IPv4 pseudo-header. `len` is the length of the upper-layer header and payload in
/// bytes.
pub fn pseudo_v4(src: [u8; 4], dst: [u8; 4], proto: u8, len: u32) -> u16 {
    add(add(sum(&src), sum(&dst)), add(u16::from(proto), length(len)))
}

/// Returns the sum of the IPv6 pseudo-header. `len` is the length of the upper-layer header and payload in
/// bytes. With a routing header, `dst` is the last destination (RFC 8200, section 8.1).
pub fn pseudo_v6(src: [u8; 16], dst: [u8; 16], proto: u8, len: u32) -> u16 {
    add(add(sum(&src), sum(&dst)), add(u16::from(proto), length(len)))
}

/// Returns the sum of a 32-bit length.
pub(crate) fn length(len: u32) -> u16 {
    sum(&len.to_be_bytes())
}

/// Returns the checksum of an upper-layer header and payload whose checksum field is zero. `pseudo` is the
/// sum of the pseudo-header, or 0 for ICMP in IPv4, which has no pseudo-header.
pub fn l4(pseudo: u16, header_and_payload: &[u8]) -> u16 {
    !add(pseudo, sum(header_and_payload))
}

/// Returns the checksum of a UDP datagram, like [`l4`]. A result of zero is returned as 0xffff, because zero
/// means that there is no checksum (RFC 768).
pub fn udp(pseudo: u16, header_and_payload: &[u8]) -> u16 {
    match l4(pseudo, header_and_payload) {
        0 => 0xffff,
        checksum => checksum,
    }
}

/// Offset of the checksum in the SCTP common header, in bytes.
const SCTP_CHECKSUM: usize = 8;

/// Returns the CRC32c of an SCTP packet in the byte order of the header (least significant first, RFC 9260,
/// appendix A). The checksum field itself is treated as zero.
pub fn sctp(packet: &[u8]) -> [u8; 4] {
    let (before, rest) = packet.split_at(packet.len().min(SCTP_CHECKSUM));
    let crc = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    crc32c::crc32c_append(crc, rest.get(4..).unwrap_or_default()).to_le_bytes()
}

/// Computes and writes the CRC32c of an SCTP packet. A packet too short for the field is left unchanged.
pub fn fill_sctp(packet: &mut [u8]) {
    let crc = sctp(packet);
    if let Some(field) = packet.get_mut(SCTP_CHECKSUM..SCTP_CHECKSUM + 4) {
        field.copy_from_slice(&crc);
    }
}
