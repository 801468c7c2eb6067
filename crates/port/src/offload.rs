// SPDX-License-Identifier: Apache-2.0
//! Checksums and segmentation in software, for drivers and frames that the kernel does not complete.

use frame::{Frame, GsoKind, PartialChecksum};
use wire::layers::header;
use wire::segment::{self, Segments};
use wire::{Depth, Layers};

/// Maximum number of segments per super-frame; a super-frame with more segments is dropped.
const MAX_SEGMENTS: usize = 2048;
const IPV4_HEADER_BYTES: std::ops::RangeInclusive<usize> = 20..=60;
const IPV6_HEADER_BYTES: usize = 40;

/// Completes a partial checksum in the frame's bytes. Returns false, and leaves the frame unchanged, if the
/// checksum lies outside the frame. Must not be called for super-frames.
pub(crate) fn complete_checksum(frame: &mut Frame) -> bool {
    let Some(PartialChecksum { start, offset }) = frame.meta.checksum else { return true };
    if !segment::complete_partial(frame.bytes_mut(), start.into(), offset.into()) {
        return false;
    }
    frame.meta.checksum = None;
    true
}

/// Returns the segments of a super-frame, including any headers before its IP header. Returns `None` if the
/// metadata does not fit the bytes, or if the headers of its tunnel cannot be updated.
pub(crate) fn segments(frame: &Frame) -> Option<Segments<'_>> {
    let gso = frame.meta.gso?;
    let layers = layers(frame, gso.kind)?;
    let segments = match gso.kind {
        GsoKind::Tcp4 | GsoKind::Tcp6 => segment::tcp_segments(frame.bytes(), &layers, gso.size.into()),
        GsoKind::Udp => segment::udp_segments(frame.bytes(), &layers, gso.size.into()),
    }?;
    (segments.remaining() <= MAX_SEGMENTS).then_some(segments)
}

/// Returns the frames that a device without offloads would send for this frame. Returns `None` if the
/// metadata does not fit the bytes.
#[must_use]
pub fn finished(mut frame: Frame) -> Option<Vec<Vec<u8>>> {
    if frame.meta.gso.is_none() {
        return complete_checksum(&mut frame).then(|| vec![frame.bytes().to_vec()]);
    }
    let mut segments = segments(&frame)?;
    let mut buffer = vec![0; segments.segment_len_max()];
    let mut made = Vec::with_capacity(segments.remaining());
    while let Some(len) = segments.write_next(&mut buffer) {
        made.push(buffer[..len].to_vec());
    }
    Some(made)
}

/// Finds the headers that segments repeat. The partial checksum gives the offset of the L4 header, even after
/// headers that are not parsed from the front (MPLS, PBB, KeyFlow keys). The IP header ends at this offset,
/// and its length field reaches to the end of the frame.
fn layers(frame: &Frame, kind: GsoKind) -> Option<Layers> {
    let l4 = usize::from(frame.meta.checksum?.start);
    let bytes = frame.bytes();
    let (l3, ip) = match kind {
        GsoKind::Tcp4 => (ipv4_at(bytes, l4)?, header::IPV4),
        GsoKind::Tcp6 => (ipv6_at(bytes, l4)?, header::IPV6),
        GsoKind::Udp => match ipv4_at(bytes, l4) {
            Some(l3) => (l3, header::IPV4),
            None => (ipv6_at(bytes, l4)?, header::IPV6),
        },
    };
    let l4_header = if kind == GsoKind::Udp { header::UDP } else { header::TCP };
    Some(Layers {
        present: ip | header::IP | l4_header,
        l3: l3 as u16,
        l4: l4 as u16,
        l4_end: bytes.len() as u32,
        depth: Depth::L4,
        ..Layers::default()
    })
}

fn ipv4_at(bytes: &[u8], l4: usize) -> Option<usize> {
    IPV4_HEADER_BYTES.step_by(4).filter_map(|len| l4.checked_sub(len)).find(|l3| {
        bytes.get(*l3..*l3 + 4).is_some_and(|ip| {
            usize::from(ip[0]) == (0x40 | ((l4 - l3) / 4))
                && usize::from(u16::from_be_bytes([ip[2], ip[3]])) == bytes.len() - l3
        })
    })
}

fn ipv6_at(bytes: &[u8], l4: usize) -> Option<usize> {
    (IPV6_HEADER_BYTES..=l4).step_by(8).map(|len| l4 - len).find(|l3| {
        bytes.get(*l3..*l3 + IPV6_HEADER_BYTES).is_some_and(|ip| {
            ip[0] >> 4 == 6
                && usize::from(u16::from_be_bytes([ip[4], ip[5]])) == bytes.len() - l3 - IPV6_HEADER_BYTES
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::Gso;

    /// Returns a TCP over IPv4 super-frame after `outer`, with 100 bytes of payload and segments of 40
    /// bytes.
    fn super_frame(outer: &[u8]) -> Frame {
        let mut bytes = outer.to_vec();
        bytes.extend([0x45, 0, 0, 140, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0; 12]);
        bytes.push(0x50);
        bytes.extend([0; 7]);
        bytes.extend(0..100);
        let mut frame = Frame::from_bytes(&bytes);
        let l4 = outer.len() as u16 + 20;
        frame.meta.checksum = Some(PartialChecksum { start: l4, offset: 16 });
        frame.meta.gso = Some(Gso { kind: GsoKind::Tcp4, ecn: false, size: 40, header_len: l4 + 20 });
        frame
    }

    #[test]
    fn segments_repeat_all_headers_before_the_ip_header() {
        for outer in [vec![2; 14], vec![9; 18], vec![0x45; 50]] {
            let frame = super_frame(&outer);
            let mut segments = segments(&frame).unwrap();
            let mut payload: Vec<u8> = Vec::new();
            let mut out = [0; 200];
            while let Some(len) = segments.write_next(&mut out) {
                assert_eq!(out[..outer.len()], outer);
                payload.extend(&out[outer.len() + 40..len]);
            }
            assert_eq!(payload, (0..100).collect::<Vec<u8>>());
        }
    }

    #[test]
    fn metadata_that_does_not_fit_gives_no_segments() {
        let mut frame = super_frame(&[2; 14]);
        frame.meta.gso = frame.meta.gso.map(|gso| Gso { kind: GsoKind::Tcp6, ..gso });
        assert!(segments(&frame).is_none());
        let mut frame = super_frame(&[2; 14]);
        frame.meta.checksum = Some(PartialChecksum { start: 35, offset: 16 });
        assert!(segments(&frame).is_none());
        frame.meta.checksum = None;
        assert!(segments(&frame).is_none());
        frame.meta.checksum = Some(PartialChecksum { start: 60_000, offset: 16 });
        assert!(segments(&frame).is_none() && !complete_checksum(&mut frame));
    }

    #[test]
    fn a_partial_checksum_is_completed_once() {
        let mut frame = Frame::from_bytes(&[0, 1, 0, 0, 0, 2]);
        frame.meta.checksum = Some(PartialChecksum { start: 0, offset: 2 });
        assert!(complete_checksum(&mut frame));
        assert_eq!(frame.bytes()[2..4], [0xff, 0xfc]);
        assert!(complete_checksum(&mut frame) && frame.meta.checksum.is_none());
        assert_eq!(frame.bytes()[2..4], [0xff, 0xfc]);
    }
}
