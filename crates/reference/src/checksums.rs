// SPDX-License-Identifier: Apache-2.0
//! Updates of checksums by the difference between the sums of all covered bytes before and after a change. A
//! wrong checksum stays wrong by the same amount.

use crate::OpenChecksum;
use crate::walk::{Headers, Network, Upper};
use std::ops::Range;

/// Adjusts the checksums in the frame `after`, which a write made from the frame `before` with these headers.
/// `written` has a 1 for each bit that was written; a checksum with such a bit is not adjusted. The field of
/// an `open` checksum contains only the sum of the pseudo-header.
pub(crate) fn keep_right(
    headers: &Headers,
    before: &[u8],
    after: &mut [u8],
    written: &[u8],
    open: Option<OpenChecksum>,
) {
    if headers.network == Network::Ipv4 {
        keep_ipv4_header_right(headers.l3, before, after, written);
    }
    let Some(ip) = headers.ip else { return };
    let l4 = ip.l4;
    let (field, addresses) = match headers.upper {
        Upper::None => return,
        Upper::Tcp => (l4 + 16..l4 + 18, true),
        Upper::Udp => (l4 + 6..l4 + 8, true),
        Upper::Icmpv6 => (l4 + 2..l4 + 4, true),
        Upper::Icmpv4 => (l4 + 2..l4 + 4, false),
        Upper::Sctp => (l4 + 8..l4 + 12, false),
    };
    if written[field.clone()].iter().any(|bits| *bits != 0) {
        return;
    }
    // The length in the pseudo-header is left out, because a write does not change the length of a frame.
    let (pseudo, proto_at) = match (addresses, headers.network) {
        (true, Network::Ipv4) => (headers.l3 + 12..headers.l3 + 20, Some(headers.l3 + 9)),
        // With extension headers, this field holds the number of the first extension header, not the
        // protocol.
        (true, Network::Ipv6) => {
            (headers.l3 + 8..headers.l3 + 40, (l4 == headers.l3 + 40).then_some(headers.l3 + 6))
        }
        _ => (0..0, None),
    };
    let pseudo_header = |frame: &[u8]| {
        let proto = proto_at.map_or(Vec::new(), |at| vec![0, frame[at]]);
        [&frame[pseudo.clone()], &proto[..]].concat()
    };
    let is_open = open.is_some_and(|open| open.start == l4 && open.start + open.offset == field.start);
    if is_open && headers.upper != Upper::Sctp {
        let change = (sum(&pseudo_header(after)) + 0xffff - sum(&pseudo_header(before))) % 0xffff;
        if change != 0 {
            let sum = match (sum(&after[field.clone()]) + change) % 0xffff {
                0 => 0xffff,
                sum => sum as u16,
            };
            after[field].copy_from_slice(&sum.to_be_bytes());
        }
        return;
    }
    let covered = |frame: &[u8]| [pseudo_header(frame), without(frame, l4..ip.end, &field)].concat();
    let (old, new) = (covered(before), covered(after));
    if headers.upper == Upper::Sctp {
        if old != new && !ip.fragment {
            let crc = crc32c(&new);
            after[field].copy_from_slice(&crc.to_le_bytes());
        }
        return;
    }
    let is_udp = headers.upper == Upper::Udp;
    let checksum = u16::from_be_bytes([after[field.start], after[field.start + 1]]);
    if is_udp && checksum == 0 {
        return;
    }
    let adjusted = match adjust(checksum, &old, &new) {
        0 if is_udp => 0xffff,
        adjusted => adjusted,
    };
    after[field].copy_from_slice(&adjusted.to_be_bytes());
}

/// Adjusts the checksum of the IPv4 header at `at`, as [`keep_right`] does.
pub(crate) fn keep_ipv4_header_right(at: usize, before: &[u8], after: &mut [u8], written: &[u8]) {
    let field = at + 10..at + 12;
    if written[field.clone()].iter().any(|bits| *bits != 0) {
        return;
    }
    let header = at..at + usize::from(before[at] & 15) * 4;
    let (old, new) = (without(before, header.clone(), &field), without(after, header, &field));
    let checksum = u16::from_be_bytes([after[field.start], after[field.start + 1]]);
    after[field].copy_from_slice(&adjust(checksum, &old, &new).to_be_bytes());
}

/// Returns the bytes of `range`, with zeros in place of the bytes of `field`.
fn without(frame: &[u8], range: Range<usize>, field: &Range<usize>) -> Vec<u8> {
    let is_field = |at: &usize| field.contains(at);
    range.map(|at| if is_field(&at) { 0 } else { frame[at] }).collect()
}

/// Returns the sum of 16-bit words modulo 0xffff. If the number of bytes is odd, a zero byte is assumed to
/// follow.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let words =
        bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |b| u64::from(*b)));
    words.sum::<u64>() % 0xffff
}

/// Returns the checksum after the bytes it covers changed from `old` to `new`.
fn adjust(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    let change = (sum(new) + 0xffff - sum(old)) % 0xffff;
    if change == 0 {
        return checksum;
    }
    let new_sum = match (u64::from(!checksum) + change) % 0xffff {
        0 => 0xffff,
        rest => rest,
    };
    !(new_sum as u16)
}

/// Returns the CRC32c, computed bit by bit (reflected polynomial 0x82f63b78). SCTP sends its least
/// significant byte first.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        }
    }
    !crc
}
