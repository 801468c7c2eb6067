// SPDX-License-Identifier: Apache-2.0
//! Frames whose checksum or segmentation the sender left to a device.

use crate::checksums::sum;

/// Work that remains before a frame is on the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// Checksum field that holds only the sum of the pseudo-header.
    pub checksum: Option<OpenChecksum>,
    /// Segmentation of the frame.
    pub cut: Option<Cut>,
}

/// Position of an open checksum. The checksum covers the bytes from `start` to the end of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenChecksum {
    /// Offset of the first covered byte.
    pub start: usize,
    /// Offset of the checksum field from `start`.
    pub offset: usize,
}

/// Segmentation of a super-frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Protocol of the super-frame.
    pub kind: CutKind,
    /// Total length of the headers in bytes, as the sender described it.
    pub header_len: usize,
    /// Number of payload bytes per segment. The last segment may have fewer.
    pub size: usize,
}

/// Protocol of a super-frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutKind {
    /// TCP over IPv4.
    Tcp4,
    /// TCP over IPv6.
    Tcp6,
    /// UDP over IPv4 or IPv6.
    Udp,
}

/// Length of a TCP header without options in bytes.
const TCP_HEADER_BYTES: usize = 20;
/// TCP flags.
const FIN: u8 = 1;
const PSH: u8 = 8;
const CWR: u8 = 0x80;

impl Unfinished {
    /// Adjusts the offsets after bytes were inserted at `at`.
    pub(crate) fn inserted(&mut self, at: usize, count: usize) {
        self.moved(|offset| if offset >= at { offset + count } else { offset });
    }

    /// Adjusts the offsets after bytes were removed at `at`.
    pub(crate) fn removed(&mut self, at: usize, count: usize) {
        self.moved(|offset| if offset >= at { offset.saturating_sub(count) } else { offset });
    }

    fn moved(&mut self, place: impl Fn(usize) -> usize) {
        if let Some(checksum) = &mut self.checksum {
            checksum.start = place(checksum.start);
        }
        if let Some(cut) = &mut self.cut {
            cut.header_len = place(cut.header_len);
        }
    }
}

/// Returns the frames that a device sends on the wire, or `None` if the frame does not match the description
/// of the remaining work. As in the kernel, the frame's own headers give the length that segments repeat,
/// because an action can change the data offset of a TCP header; [`Cut::header_len`] is only a hint.
#[must_use]
pub fn finished(frame: &[u8], unfinished: Unfinished) -> Option<Vec<Vec<u8>>> {
    let Some(open) = unfinished.checksum else {
        return unfinished.cut.is_none().then(|| vec![frame.to_vec()]);
    };
    match unfinished.cut {
        None => Some(vec![completed(frame, open)?]),
        Some(cut) => segments(frame, open, cut),
    }
}

pub(crate) fn completed(frame: &[u8], open: OpenChecksum) -> Option<Vec<u8>> {
    let mut bytes = frame.to_vec();
    let checksum = checksum_of(bytes.get(open.start..)?, open.offset);
    bytes.get_mut(open.start + open.offset..)?.get_mut(..2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(bytes)
}

/// Returns the checksum of the bytes `covered`, in which the checksum field holds the sum of the
/// pseudo-header or 0. The result is never 0 for UDP, whose checksum is at offset 6.
fn checksum_of(covered: &[u8], offset: usize) -> u16 {
    let sum = match sum(covered) {
        0 => 0xffff,
        sum => sum as u16,
    };
    if offset == 6 && sum == 0xffff { 0xffff } else { !sum }
}

fn segments(frame: &[u8], open: OpenChecksum, cut: Cut) -> Option<Vec<Vec<u8>>> {
    let l4 = open.start;
    let (l3, is_v4) = ip_header(frame, l4, cut.kind)?;
    let is_tcp = cut.kind != CutKind::Udp;
    let l4_len = if is_tcp { usize::from(*frame.get(l4 + 12)? >> 4) * 4 } else { 8 };
    if (is_tcp && l4_len < TCP_HEADER_BYTES) || cut.size == 0 || frame.len() < l4 + l4_len {
        return None;
    }
    let (headers, payload) = frame.split_at(l4 + l4_len);
    let count = payload.len().div_ceil(cut.size).max(1);
    let mut made = Vec::with_capacity(count);
    for number in 0..count {
        let from = number * cut.size;
        let part = &payload[from..payload.len().min(from + cut.size)];
        let mut segment = [headers, part].concat();
        if is_v4 {
            finish_ipv4(&mut segment[l3..l4], (headers.len() + part.len() - l3) as u16, number as u16);
        } else {
            let payload_len = (segment.len() - l3 - 40) as u16;
            segment[l3 + 4..l3 + 6].copy_from_slice(&payload_len.to_be_bytes());
        }
        if is_tcp {
            let sequence =
                u32::from_be_bytes([segment[l4 + 4], segment[l4 + 5], segment[l4 + 6], segment[l4 + 7]]);
            segment[l4 + 4..l4 + 8].copy_from_slice(&sequence.wrapping_add(from as u32).to_be_bytes());
            segment[l4 + 13] &= if number + 1 < count { !(FIN | PSH) } else { 0xff };
            segment[l4 + 13] &= if number > 0 { !CWR } else { 0xff };
        } else {
            let udp_len = (segment.len() - l4) as u16;
            segment[l4 + 4..l4 + 6].copy_from_slice(&udp_len.to_be_bytes());
        }
        // The sum in the field contains the length of the super-frame. Each segment needs its own length.
        let field = l4 + open.offset;
        let whole = sum(&((frame.len() - l4) as u32).to_be_bytes());
        let own = sum(&((segment.len() - l4) as u32).to_be_bytes());
        let pseudo = (sum(&segment[field..field + 2]) + 0xffff - whole + own) % 0xffff;
        segment[field..field + 2].copy_from_slice(&(pseudo as u16).to_be_bytes());
        let checksum = checksum_of(&segment[l4..], open.offset);
        segment[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        made.push(segment);
    }
    Some(made)
}

/// Writes length, identification and checksum of an IPv4 header in segment `number`.
fn finish_ipv4(header: &mut [u8], total_len: u16, number: u16) {
    header[2..4].copy_from_slice(&total_len.to_be_bytes());
    let id = u16::from_be_bytes([header[4], header[5]]).wrapping_add(number);
    header[4..6].copy_from_slice(&id.to_be_bytes());
    header[10..12].fill(0);
    let checksum = checksum_of(header, 10);
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Returns the offset of the IP header before the upper layer, and whether it is an IPv4 header. The IP
/// length must extend to the end of the frame.
fn ip_header(frame: &[u8], l4: usize, kind: CutKind) -> Option<(usize, bool)> {
    let length = |at: usize| Some(usize::from(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?])));
    let v4 = (20..=60).step_by(4).filter_map(|len| Some((l4.checked_sub(len)?, len))).find(|(at, len)| {
        frame.get(*at).is_some_and(|first| usize::from(*first) == 0x40 | (len / 4))
            && length(at + 2) == Some(frame.len() - at)
    });
    let v6 = (40..=l4).step_by(8).map(|len| l4 - len).find(|at| {
        frame.get(*at).is_some_and(|first| first >> 4 == 6)
            && length(at + 4) == frame.len().checked_sub(at + 40)
    });
    let v4 = v4.map(|(at, _)| (at, true)).filter(|_| kind != CutKind::Tcp6);
    let v6 = v6.map(|at| (at, false)).filter(|_| kind != CutKind::Tcp4);
    v4.or(v6)
}
