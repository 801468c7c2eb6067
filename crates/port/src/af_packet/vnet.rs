// SPDX-License-Identifier: Apache-2.0
//! Conversion between a frame's offload metadata and the kernel's `struct virtio_net_hdr`. Layout
//! (linux/virtio_net.h, legacy, native byte order), with lengths in bits: flags 8, type 8, header length 16,
//! segment size 16, checksum start 16, checksum offset 16.

use crate::sys::{VNET_BYTES, VnetBytes};
use frame::{Frame, Gso, GsoKind, PartialChecksum};
use wire::layers::header;
use wire::{Depth, locate};

const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_ECN: u8 = 0x80;

const UDP_HEADER_BYTES: u16 = 8;
const TCP_MIN_HEADER_BYTES: u16 = 20;
/// Maximum number of VLAN tags before the IP header with which the kernel accepts a super-frame.
const MAX_TAGS: usize = 2;
const ETHERNET_BYTES: usize = 14;
const TAG_BYTES: usize = 4;

/// Sets a received frame's offload metadata from the kernel's header. Returns false if the header is not
/// understood. Must be called before a VLAN tag is inserted, because offsets refer to the bytes that the
/// kernel delivered.
pub(super) fn import(vnet: &VnetBytes, frame: &mut Frame) -> bool {
    let [flags, kind] = [vnet[0], vnet[1]];
    if flags & NEEDS_CHECKSUM != 0 {
        frame.meta.checksum = Some(PartialChecksum { start: word(vnet, 6), offset: word(vnet, 8) });
    }
    let gso_kind = match kind & !GSO_ECN {
        GSO_NONE => return true,
        GSO_TCP4 => GsoKind::Tcp4,
        GSO_TCP6 => GsoKind::Tcp6,
        GSO_UDP => GsoKind::Udp,
        _ => return false,
    };
    // The kernel's header length is only a hint: it gives the length of the first piece in memory.
    let Some(header_len) = header_len(frame, gso_kind) else { return false };
    frame.meta.gso = Some(Gso { kind: gso_kind, ecn: kind & GSO_ECN != 0, size: word(vnet, 4), header_len });
    true
}

/// Returns the total length of the headers of a super-frame in bytes.
fn header_len(frame: &Frame, kind: GsoKind) -> Option<u16> {
    let l4 = match frame.meta.checksum {
        Some(sum) => sum.start,
        None => {
            let layers = locate(frame.bytes(), Depth::L4);
            (layers.present & (header::TCP | header::UDP) != 0).then_some(layers.l4)?
        }
    };
    let l4_len = match kind {
        GsoKind::Udp => UDP_HEADER_BYTES,
        GsoKind::Tcp4 | GsoKind::Tcp6 => u16::from(frame.bytes().get(usize::from(l4) + 12)? >> 4) * 4,
    };
    let len = l4.checked_add(l4_len)?;
    let least = if kind == GsoKind::Udp { UDP_HEADER_BYTES } else { TCP_MIN_HEADER_BYTES };
    (l4_len >= least && usize::from(len) <= frame.len()).then_some(len)
}

/// How a frame is transmitted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TransmitForm {
    /// Sent as one packet with this header: the kernel completes checksum and segmentation.
    Kernel(VnetBytes),
    /// Sent in segments, because the kernel would not find the headers to repeat.
    Segments,
    /// Dropped, because its segments exceed the MTU.
    TooLong,
}

/// Selects how to transmit a frame. `mtu` is the device's MTU in bytes, if known.
#[inline]
pub(super) fn way(frame: &Frame, mtu: Option<u32>) -> TransmitForm {
    let mut vnet = [0; VNET_BYTES];
    if let Some(sum) = frame.meta.checksum {
        vnet[0] = NEEDS_CHECKSUM;
        set_word(&mut vnet, 6, sum.start);
        set_word(&mut vnet, 8, sum.offset);
    }
    let Some(gso) = frame.meta.gso else { return TransmitForm::Kernel(vnet) };
    let tags = tags(frame.bytes());
    let l2_bytes = ETHERNET_BYTES + TAG_BYTES * tags;
    let segment_bytes = usize::from(gso.header_len) + usize::from(gso.size);
    // One VLAN tag is allowed on top of the MTU, as the kernel allows it for other frames.
    let spare = if tags > 0 { TAG_BYTES } else { 0 };
    if mtu.is_some_and(|mtu| segment_bytes > mtu as usize + ETHERNET_BYTES + spare) {
        return TransmitForm::TooLong;
    }
    if tags > MAX_TAGS || !is_plain(frame, gso, l2_bytes) {
        return TransmitForm::Segments;
    }
    vnet[1] = match gso.kind {
        GsoKind::Tcp4 => GSO_TCP4,
        GsoKind::Tcp6 => GSO_TCP6,
        GsoKind::Udp => GSO_UDP,
    } | if gso.ecn { GSO_ECN } else { 0 };
    set_word(&mut vnet, 2, gso.header_len);
    set_word(&mut vnet, 4, gso.size);
    TransmitForm::Kernel(vnet)
}

/// Returns the number of VLAN tags at the front of the frame.
fn tags(bytes: &[u8]) -> usize {
    bytes.get(12..).map_or(0, |rest| {
        rest.chunks_exact(4).take_while(|tag| matches!(tag[..2], [0x81, 0] | [0x88, 0xa8])).count()
    })
}

/// Returns whether the kernel would find the headers of a super-frame: only VLAN tags precede the IP header,
/// and the TCP or UDP header that `gso` names is at the offset in the metadata.
fn is_plain(frame: &Frame, gso: Gso, l2_bytes: usize) -> bool {
    let layers = locate(frame.bytes(), Depth::L4);
    let wanted = match gso.kind {
        GsoKind::Tcp4 => header::IPV4 | header::TCP,
        GsoKind::Tcp6 => header::IPV6 | header::TCP,
        GsoKind::Udp => header::IP | header::UDP,
    };
    layers.present & wanted == wanted
        && layers.present & (header::MPLS | header::PBB) == 0
        && usize::from(layers.l3) == l2_bytes
        && frame.meta.checksum.is_some_and(|sum| sum.start == layers.l4)
}

fn word(vnet: &VnetBytes, at: usize) -> u16 {
    u16::from_ne_bytes([vnet[at], vnet[at + 1]])
}

fn set_word(vnet: &mut VnetBytes, at: usize, value: u16) {
    vnet[at..at + 2].copy_from_slice(&value.to_ne_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a TCP over IPv4 super-frame: 32 bytes of TCP header, 3,000 bytes of payload.
    fn super_frame() -> Frame {
        let mut bytes = vec![2; 12];
        bytes.extend([8, 0, 0x45, 0]);
        bytes.extend((20 + 32 + 3000_u16).to_be_bytes());
        bytes.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0; 12]);
        bytes.push(0x80);
        bytes.extend([0; 19 + 3000]);
        Frame::from_bytes(&bytes)
    }

    fn vnet(kind: u8) -> VnetBytes {
        let mut vnet = [NEEDS_CHECKSUM, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        for (at, value) in [(2, 66), (4, 1448), (6, 34), (8, 16)] {
            set_word(&mut vnet, at, value);
        }
        vnet
    }

    #[test]
    fn metadata_is_preserved_on_receive_and_transmit() {
        let mut frame = super_frame();
        assert!(import(&vnet(GSO_TCP4 | GSO_ECN), &mut frame));
        assert_eq!(frame.meta.checksum, Some(PartialChecksum { start: 34, offset: 16 }));
        let gso = Gso { kind: GsoKind::Tcp4, ecn: true, size: 1448, header_len: 66 };
        assert_eq!(frame.meta.gso, Some(gso));
        assert_eq!(way(&frame, Some(1500)), TransmitForm::Kernel(vnet(GSO_TCP4 | GSO_ECN)));
        assert_eq!(way(&frame, Some(1499)), TransmitForm::TooLong);

        assert!(frame.insert(12, 4));
        frame.bytes_mut()[12..16].copy_from_slice(&[0x81, 0, 0, 5]);
        let mut tagged = vnet(GSO_TCP4 | GSO_ECN);
        set_word(&mut tagged, 2, 70);
        set_word(&mut tagged, 6, 38);
        assert_eq!(way(&frame, Some(1500)), TransmitForm::Kernel(tagged));
    }

    #[test]
    fn super_frames_that_the_kernel_cannot_segment_are_segmented_here() {
        let mut frame = super_frame();
        assert!(import(&vnet(GSO_TCP4), &mut frame));
        assert!(frame.insert(14, 4));
        frame.bytes_mut()[12..18].copy_from_slice(&[0x88, 0x47, 0, 1, 0x01, 64]);
        assert_eq!(way(&frame, None), TransmitForm::Segments);

        let mut wrong_kind = super_frame();
        assert!(import(&vnet(GSO_TCP6), &mut wrong_kind));
        assert_eq!(way(&wrong_kind, None), TransmitForm::Segments);
    }

    #[test]
    fn invalid_headers_are_refused() {
        assert!(!import(&vnet(3), &mut super_frame()));
        assert!(!import(&vnet(GSO_TCP4), &mut Frame::from_bytes(&[0; 40])));
        let mut plain = super_frame();
        assert!(import(&[0; VNET_BYTES], &mut plain));
        assert_eq!((plain.meta.checksum, plain.meta.gso), (None, None));
        assert_eq!(way(&plain, Some(100)), TransmitForm::Kernel([0; VNET_BYTES]));
    }
}
