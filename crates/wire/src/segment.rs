// SPDX-License-Identifier: Apache-2.0
//! Software implementation of checksum and segmentation offloads.
//!
//! Hosts hand over frames whose checksum field holds only the sum of the pseudo-header (CHECKSUM_PARTIAL),
//! and super-frames of up to 64 KiB that a device would segment (TSO, USO). VLAN tags, IPv4 options and IPv6
//! extension headers are supported; IP fragmentation (UFO) is not. If a super-frame is in one or more
//! tunnels, `layers` describes the innermost packet, and the outer headers are corrected in each segment.

mod outer;

#[cfg(test)]
mod tests;

use crate::layers::header;
use crate::view::Field;
use crate::{Layers, checksum, tcp};
use outer::Outer;

/// Offset of the CRC in an SCTP header in bytes. No other protocol has its checksum at this offset.
const SCTP_CHECKSUM: usize = 8;
/// Offset of the length in a UDP header in bytes.
const UDP_LENGTH: usize = 4;
/// Offset of the checksum in a UDP header in bytes.
const UDP_CHECKSUM: usize = 6;
/// Offset of the checksum in a TCP header in bytes.
const TCP_CHECKSUM: usize = 16;

/// Completes a partial checksum over the bytes from `start` to the end of the frame. `offset` is the offset
/// of the checksum field from `start`. (These are `csum_start` and `csum_offset` of a virtio-net header.)
/// Returns false and writes nothing if the field is outside the frame.
pub fn complete_partial(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let Some(covered) = frame.get_mut(start..) else { return false };
    let len = if offset == SCTP_CHECKSUM { 4 } else { 2 };
    if covered.len().checked_sub(offset).is_none_or(|rest| rest < len) {
        return false;
    }
    match offset {
        SCTP_CHECKSUM => checksum::fill_sctp(covered),
        UDP_CHECKSUM => checksum::udp(0, covered).store(&mut covered[offset..]),
        _ => checksum::l4(0, covered).store(&mut covered[offset..]),
    }
    true
}

/// Writes the segments of a super-frame in order, one per call.
#[derive(Clone, Debug)]
pub struct Segments<'a> {
    /// Super-frame without padding.
    frame: &'a [u8],
    l3: usize,
    l4: usize,
    /// Length of all headers in bytes.
    header_len: usize,
    /// Number of payload bytes per segment.
    size: usize,
    is_v4: bool,
    is_tcp: bool,
    /// Sum of the pseudo-header without its length.
    addresses: u16,
    /// Headers before `l3` whose fields differ between segments.
    outer: Outer,
    /// Number of payload bytes written so far.
    sent: usize,
    /// Number of segments written so far.
    count: u16,
}

/// Segments a TCP super-frame. Each segment has at most `size` payload bytes. `layers` describes the frame's
/// headers ([`crate::Depth::L4`]). The TCP checksum must be partial.
///
/// Returns `None` in these cases:
/// - there is no complete TCP header in an unfragmented packet;
/// - the packet is an IPv6 jumbogram;
/// - `size` is 0;
/// - the packet is in a tunnel of an unknown kind, or in a tunnel with sequence numbers.
///
/// Sequence number and IPv4 identification advance from segment to segment. PSH and FIN are kept only in the
/// last segment, and CWR is kept only in the first segment (RFC 3168, section 6.1.2).
pub fn tcp_segments<'a>(frame: &'a [u8], layers: &Layers, size: usize) -> Option<Segments<'a>> {
    if layers.present & header::TCP == 0 {
        return None;
    }
    let l4 = usize::from(layers.l4);
    let segment = tcp::Segment::new_checked(frame.get(l4..)?).ok()?;
    Segments::new(frame, layers, size, segment.header_len(), TCP_CHECKSUM)
}

/// Segments a UDP super-frame (USO), under the same conditions as [`tcp_segments`]. Its payload is split into
/// datagrams of `size` bytes.
pub fn udp_segments<'a>(frame: &'a [u8], layers: &Layers, size: usize) -> Option<Segments<'a>> {
    if layers.present & header::UDP == 0 {
        return None;
    }
    Segments::new(frame, layers, size, 8, UDP_CHECKSUM)
}

impl<'a> Segments<'a> {
    fn new(frame: &'a [u8], layers: &Layers, size: usize, l4_len: usize, field: usize) -> Option<Self> {
        let (l3, l4) = (usize::from(layers.l3), usize::from(layers.l4));
        let header_len = l4 + l4_len;
        let frame = frame.get(..layers.l4_end as usize)?;
        let is_v4 = layers.present & header::IPV4 != 0;
        let ip_len_min = if is_v4 { 20 } else { 40 };
        if size == 0 || layers.fragment || l4 < l3 + ip_len_min || header_len > frame.len() {
            return None;
        }
        // A payload length of zero means that a jumbo option contains the length.
        if !is_v4 && frame[l3 + 4..l3 + 6] == [0, 0] {
            return None;
        }
        let partial: u16 = Field::load(&frame[l4 + field..]);
        Some(Self {
            frame,
            l3,
            l4,
            header_len,
            size,
            is_v4,
            is_tcp: field == TCP_CHECKSUM,
            // Removes the super-frame's length from the sender's sum, because each segment adds its own
            // length. With a routing header, the sum contains the last destination.
            addresses: checksum::add(partial, !checksum::length((frame.len() - l4) as u32)),
            outer: Outer::find(frame, l3)?,
            sent: 0,
            count: 0,
        })
    }

    /// Returns the length in bytes of the longest segment with its headers. A buffer for segments must have
    /// at least this size.
    pub fn segment_len_max(&self) -> usize {
        self.frame.len().min(self.header_len + self.size)
    }

    /// Returns the number of segments that are not written yet. A frame without payload is one segment.
    pub fn remaining(&self) -> usize {
        let payload_len = self.frame.len() - self.header_len;
        match (payload_len - self.sent).div_ceil(self.size) {
            0 if self.count == 0 => 1,
            count => count,
        }
    }

    /// Writes the next segment to the start of `out` and returns its length. Returns `None` after the last
    /// segment, or if `out` is too small (see [`segment_len_max`](Self::segment_len_max)).
    pub fn write_next(&mut self, out: &mut [u8]) -> Option<usize> {
        if self.remaining() == 0 {
            return None;
        }
        let from = self.header_len + self.sent;
        let payload_len = self.size.min(self.frame.len() - from);
        let total = self.header_len + payload_len;
        let out = out.get_mut(..total)?;
        out[..self.header_len].copy_from_slice(&self.frame[..self.header_len]);
        out[self.header_len..].copy_from_slice(&self.frame[from..from + payload_len]);
        self.finish_ip(out);
        let pseudo = checksum::add(self.addresses, checksum::length((total - self.l4) as u32));
        let l4 = &mut out[self.l4..];
        if self.is_tcp {
            self.finish_tcp(l4, from + payload_len == self.frame.len());
            0u16.store(&mut l4[TCP_CHECKSUM..]);
            checksum::l4(pseudo, l4).store(&mut l4[TCP_CHECKSUM..]);
        } else {
            (l4.len() as u16).store(&mut l4[UDP_LENGTH..]);
            0u16.store(&mut l4[UDP_CHECKSUM..]);
            checksum::udp(pseudo, l4).store(&mut l4[UDP_CHECKSUM..]);
        }
        self.outer.finish(out, self.count);
        self.sent += payload_len;
        self.count = self.count.wrapping_add(1);
        Some(total)
    }

    fn finish_ip(&self, out: &mut [u8]) {
        let ip = &mut out[self.l3..];
        if !self.is_v4 {
            let payload_len = ip.len() - 40;
            (payload_len as u16).store(&mut ip[4..]);
            return;
        }
        outer::finish_ipv4(ip, self.count);
    }

    fn finish_tcp(&self, l4: &mut [u8], is_last: bool) {
        if let Ok(mut segment) = tcp::Segment::new_checked(l4) {
            segment.set_seq(segment.seq().wrapping_add(self.sent as u32));
            let not_here =
                if is_last { 0 } else { tcp::FIN | tcp::PSH } | if self.count > 0 { tcp::CWR } else { 0 };
            segment.set_flags(segment.flags() & !not_here);
        }
    }
}
