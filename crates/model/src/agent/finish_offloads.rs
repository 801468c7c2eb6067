// SPDX-License-Identifier: Apache-2.0
//! Completes checksums and segmentation of packets for controllers. Virtual interfaces leave this work to
//! their device.

use frame::{Frame, GsoKind};
use wire::segment::{self, Segments};
use wire::{Depth, layers};

/// Maximum number of segments per super-frame; a larger super-frame is dropped.
const SEGMENTS: usize = 256;

/// Returns the packet, or the segments of a super-frame. The result is empty if the frame's metadata is
/// inconsistent with its bytes.
pub fn packets(frame: &Frame) -> Vec<Vec<u8>> {
    let Some(gso) = frame.meta.gso else { return vec![completed(frame)] };
    let layers = layers::locate(frame.bytes(), Depth::L4);
    let segments = match gso.kind {
        GsoKind::Tcp4 | GsoKind::Tcp6 => segment::tcp_segments(frame.bytes(), &layers, gso.size.into()),
        GsoKind::Udp => segment::udp_segments(frame.bytes(), &layers, gso.size.into()),
    };
    match segments {
        Some(segments) if segments.remaining() <= SEGMENTS => cut(segments),
        _ => Vec::new(),
    }
}

fn completed(frame: &Frame) -> Vec<u8> {
    let mut bytes = frame.bytes().to_vec();
    if let Some(open) = frame.meta.checksum {
        // A checksum field outside the packet needs no completion.
        let _ = segment::complete_partial(&mut bytes, open.start.into(), open.offset.into());
    }
    bytes
}

fn cut(mut segments: Segments<'_>) -> Vec<Vec<u8>> {
    let mut buffer = vec![0; segments.segment_len_max()];
    let mut packets = Vec::with_capacity(segments.remaining());
    while let Some(length) = segments.write_next(&mut buffer) {
        packets.push(buffer[..length].to_vec());
    }
    packets
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::{Gso, PartialChecksum};

    /// Returns a TCP over IPv4 packet with 100 bytes of payload and a partial checksum.
    fn frame() -> Frame {
        let mut bytes = vec![2; 12];
        bytes.extend([8, 0, 0x45, 0, 0, 140, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0; 12]);
        bytes.push(0x50);
        bytes.extend([0; 7]);
        bytes.extend(0..100);
        let pseudo = wire::checksum::pseudo_v4([10, 0, 0, 1], [10, 0, 0, 2], 6, 120);
        bytes[50..52].copy_from_slice(&pseudo.to_be_bytes());
        let mut frame = Frame::from_bytes(&bytes);
        frame.meta.checksum = Some(PartialChecksum { start: 34, offset: 16 });
        frame
    }

    /// Returns whether the TCP checksum of an IPv4 packet is correct.
    fn is_right(packet: &[u8]) -> bool {
        let pseudo = wire::checksum::pseudo_v4([10, 0, 0, 1], [10, 0, 0, 2], 6, packet.len() as u32 - 34);
        wire::checksum::add(pseudo, wire::checksum::sum(&packet[34..])) == 0xffff
    }

    #[test]
    fn partial_checksums_are_completed() {
        let [packet] = &packets(&frame())[..] else { panic!("expected one packet") };
        assert!(is_right(packet) && !is_right(frame().bytes()));
        let mut short = frame();
        short.meta.checksum = Some(PartialChecksum { start: 900, offset: 16 });
        assert_eq!(packets(&short), [short.bytes().to_vec()]);
    }

    #[test]
    fn super_frames_become_packets() {
        let mut frame = frame();
        frame.meta.gso = Some(Gso { kind: GsoKind::Tcp4, ecn: false, size: 40, header_len: 54 });
        let cut = packets(&frame);
        assert_eq!(cut.iter().map(Vec::len).collect::<Vec<_>>(), [94, 94, 74]);
        assert!(cut.iter().all(|packet| is_right(packet)));
        frame.meta.gso = frame.meta.gso.map(|gso| Gso { size: 0, ..gso });
        assert!(packets(&frame).is_empty());
    }
}
