// SPDX-License-Identifier: Apache-2.0
//! Incremental checksum updates (RFC 1624).
//!
//! When bytes of a packet change, the checksums that cover these bytes change by the difference. A checksum
//! that was wrong before stays wrong by the same amount. The CRC32c of SCTP is recomputed.

use frame::Frame;
use wire::Layers;
use wire::checksum::{self, ChecksumDelta};
use wire::layers::header;

/// Bytes that were overwritten in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteChange<'a> {
    /// Offset of the first overwritten byte in the frame.
    pub at: usize,
    /// Previous content of these bytes.
    pub old: &'a [u8],
    /// Mask of the bits that were written, whether or not their value changed.
    pub written: &'a [u8],
}

const IPV4_CHECKSUM: usize = 10;

/// Length of an IPv6 header without extension headers, in bytes.
const IPV6_HEADER_BYTES: usize = 40;

/// Offset of the CRC in the SCTP header.
const SCTP_CRC: usize = 8;

impl ByteChange<'_> {
    /// Adds the difference of the bytes in `from..to` to `delta`, as 16-bit words aligned to `origin`.
    fn within(&self, frame: &Frame, (from, to): (usize, usize), origin: usize, delta: &mut ChecksumDelta) {
        let (first, last) = (self.at.max(from), (self.at + self.old.len()).min(to));
        if first < last {
            let new = &frame.bytes()[first..last];
            delta.replace_bytes(&self.old[first - self.at..last - self.at], new, (first - origin) % 2 == 1);
        }
    }

    /// Returns whether any bit of the bytes in `from..to` was written. A checksum that was written explicitly
    /// is not updated.
    fn wrote(&self, from: usize, to: usize) -> bool {
        let (first, last) = (self.at.max(from), (self.at + self.written.len()).min(to));
        first < last && self.written[first - self.at..last - self.at].iter().any(|bits| *bits != 0)
    }

    fn changed(&self, frame: &Frame, from: usize, to: usize) -> bool {
        let (first, last) = (self.at.max(from), (self.at + self.old.len()).min(to));
        first < last && self.old[first - self.at..last - self.at] != frame.bytes()[first..last]
    }
}

/// Updates the checksums after a change. `layers` are the headers, down to L4, as located before the change.
pub(crate) fn keep_right(frame: &mut Frame, layers: &Layers, change: ByteChange<'_>) {
    let l3 = usize::from(layers.l3);
    if layers.present & header::IPV4 != 0 {
        let header_end = l3 + usize::from(frame.bytes().get(l3).copied().unwrap_or(0) & 0x0f) * 4;
        // The checksum covers as many bytes as the header had before the change.
        let header_end = if change.wrote(l3, l3 + 1) { header_end_before(&change, l3) } else { header_end };
        let at = l3 + IPV4_CHECKSUM;
        if !change.wrote(at, at + 2) {
            let mut delta = ChecksumDelta::default();
            change.within(frame, (l3, header_end), l3, &mut delta);
            adjust(frame, at, |old| checksum::apply(old, delta));
        }
    }
    upper_layer(frame, layers, change);
}

fn header_end_before(change: &ByteChange<'_>, l3: usize) -> usize {
    l3 + usize::from(change.old[l3 - change.at] & 0x0f) * 4
}

fn upper_layer(frame: &mut Frame, layers: &Layers, change: ByteChange<'_>) {
    let l4 = usize::from(layers.l4);
    let (field, pseudo) = match layers.present {
        p if p & header::TCP != 0 => (16, true),
        p if p & header::UDP != 0 => (6, true),
        p if p & header::ICMPV6 != 0 => (2, true),
        p if p & header::ICMPV4 != 0 => (2, false),
        p if p & header::SCTP != 0 => {
            let end = layers.l4_end as usize;
            let crc = l4 + SCTP_CRC;
            if change.changed(frame, l4, end) && !change.wrote(crc, crc + 4) && !layers.fragment {
                checksum::fill_sctp(&mut frame.bytes_mut()[l4..end]);
            }
            return;
        }
        _ => return,
    };
    let at = l4 + field;
    if change.wrote(at, at + 2) {
        return;
    }
    let partial =
        frame.meta.checksum.is_some_and(|c| usize::from(c.start) == l4 && usize::from(c.offset) == field);
    let mut delta = ChecksumDelta::default();
    if pseudo {
        let l3 = usize::from(layers.l3);
        // The protocol number is the low byte of a 16-bit word of the pseudo-header.
        let (addresses, proto, before_proto) = if layers.present & header::IPV4 != 0 {
            ((l3 + 12, l3 + 20), (l3 + 9, l3 + 10), l3 + 8)
        } else if l4 == l3 + IPV6_HEADER_BYTES {
            ((l3 + 8, l3 + 40), (l3 + 6, l3 + 7), l3 + 5)
        } else {
            // With extension headers, the checksum does not cover the IPv6 header's next-header byte.
            ((l3 + 8, l3 + 40), (l3, l3), l3)
        };
        change.within(frame, addresses, l3, &mut delta);
        change.within(frame, proto, before_proto, &mut delta);
    }
    if partial {
        // With checksum offload, the field holds only the pseudo-header's sum.
        adjust(frame, at, |old| checksum::apply_partial(old, delta));
        return;
    }
    change.within(frame, (l4, layers.l4_end as usize), l4, &mut delta);
    if layers.present & header::UDP != 0 {
        adjust(frame, at, |old| checksum::apply_udp(old, delta));
    } else {
        adjust(frame, at, |old| checksum::apply(old, delta));
    }
}

fn adjust(frame: &mut Frame, at: usize, change: impl FnOnce(u16) -> u16) {
    if let Some([high, low]) = frame.bytes_mut().get_mut(at..at + 2) {
        [*high, *low] = change(u16::from_be_bytes([*high, *low])).to_be_bytes();
    }
}

#[cfg(test)]
mod tests;
