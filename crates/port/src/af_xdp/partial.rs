// SPDX-License-Identifier: Apache-2.0
//! Partial checksums that a host on this machine left to its device. XDP reports no metadata about them.
//!
//! A partial checksum is recognized by its value, the sum of the pseudo-header. A complete checksum may equal
//! this sum by chance. Completing it again does not change a correct checksum, but makes a damaged packet's
//! checksum correct. This is accepted, because packets between namespaces are not damaged.

use frame::PartialChecksum;
use wire::layers::header;
use wire::{Depth, checksum, locate};

const TCP_CHECKSUM_AT: u16 = 16;
const UDP_CHECKSUM_AT: u16 = 6;

/// Returns the partial checksum of a packet, if any. Only TCP and UDP outside tunnels are recognized.
pub(super) fn find(bytes: &[u8]) -> Option<PartialChecksum> {
    let layers = locate(bytes, Depth::L4);
    let offset = match layers.present & (header::TCP | header::UDP) {
        header::TCP => TCP_CHECKSUM_AT,
        header::UDP => UDP_CHECKSUM_AT,
        _ => return None,
    };
    let (l3, l4) = (usize::from(layers.l3), usize::from(layers.l4));
    // A partial checksum covers all bytes up to the end of the frame, so the IP packet must end there.
    if layers.fragment || layers.l4_end as usize != bytes.len() {
        return None;
    }
    let at = l4 + usize::from(offset);
    let field = u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?);
    let len = layers.l4_end - u32::from(layers.l4);
    let pseudo = if layers.present & header::IPV4 != 0 {
        let addresses: &[[u8; 4]; 2] = bytes.get(l3 + 12..l3 + 20)?.as_chunks().0.try_into().ok()?;
        checksum::pseudo_v4(addresses[0], addresses[1], layers.ip_proto, len)
    } else {
        let addresses: &[[u8; 16]; 2] = bytes.get(l3 + 8..l3 + 40)?.as_chunks().0.try_into().ok()?;
        checksum::pseudo_v6(addresses[0], addresses[1], layers.ip_proto, len)
    };
    (field == pseudo).then_some(PartialChecksum { start: layers.l4, offset })
}

#[cfg(test)]
mod tests {
    use super::*;
    use frame::Frame;

    /// Returns a packet with the header of `proto`, 5 bytes of payload, an IP header of version 4 or 6, and a
    /// partial checksum.
    fn open(version: u8, proto: u8) -> Vec<u8> {
        let (l4_len, at) = if proto == 6 { (20, 16) } else { (8, 6) };
        let len = l4_len as u8 + 5;
        let mut bytes = vec![2; 12];
        let pseudo = if version == 4 {
            bytes.extend([8, 0, 0x45, 0, 0, 20 + len, 0, 0, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
            checksum::pseudo_v4([10, 0, 0, 1], [10, 0, 0, 2], proto, len.into())
        } else {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, len, proto, 64]);
            bytes.extend([[0xfd; 16], [0xfe; 16]].concat());
            checksum::pseudo_v6([0xfd; 16], [0xfe; 16], proto, len.into())
        };
        let l4 = bytes.len();
        bytes.resize(l4 + l4_len, 0);
        bytes[l4..l4 + 4].copy_from_slice(&[0x13, 0x88, 0, 80]);
        if proto == 6 {
            bytes[l4 + 12] = 0x50;
        } else {
            bytes[l4 + 5] = len;
        }
        bytes[l4 + at..l4 + at + 2].copy_from_slice(&pseudo.to_be_bytes());
        bytes.extend([1, 2, 3, 4, 5]);
        bytes
    }

    #[test]
    fn partial_checksums_are_found_and_complete_ones_are_not() {
        for (version, proto) in [(4, 6), (4, 17), (6, 6), (6, 17)] {
            let bytes = open(version, proto);
            let found = find(&bytes).unwrap();
            let start = if version == 4 { 34 } else { 54 };
            assert_eq!(found, PartialChecksum { start, offset: if proto == 6 { 16 } else { 6 } });
            let mut frame = Frame::from_bytes(&bytes);
            frame.meta.checksum = Some(found);
            assert!(crate::offload::complete_checksum(&mut frame));
            assert_eq!(find(frame.bytes()), None, "{version} {proto}");
            // The checksum is also found after a VLAN tag.
            let tagged = [&bytes[..12], &[0x81, 0, 0, 5], &bytes[12..]].concat();
            assert_eq!(find(&tagged).map(|found| found.start), Some(start + 4));
        }
    }

    #[test]
    fn incomplete_packets_are_unchanged() {
        let bytes = open(4, 17);
        assert_eq!(find(&[&bytes[..], &[0; 9]].concat()), None, "padding");
        let mut fragment = bytes.clone();
        fragment[20] = 0x20;
        assert_eq!(find(&fragment), None);
        let mut other = bytes.clone();
        other[23] = 132;
        assert_eq!(find(&other), None);
        (0..bytes.len()).for_each(|len| assert_eq!(find(&bytes[..len]), None));
    }

    /// Completing a checksum that only looks partial changes nothing.
    #[test]
    fn a_correct_checksum_that_equals_the_sum_is_unchanged() {
        let mut bytes = open(4, 17);
        // The payload cancels the rest of the sum, so the complete checksum equals the sum of the
        // pseudo-header.
        let field = u16::from_be_bytes([bytes[40], bytes[41]]);
        bytes[42..44].fill(0);
        let rest = checksum::sum(&bytes[34..40]);
        let rest = checksum::add(rest, checksum::sum(&bytes[44..]));
        let wanted = checksum::add(checksum::add(!field, !field), !rest);
        bytes[42..44].copy_from_slice(&wanted.to_be_bytes());
        let mut frame = Frame::from_bytes(&bytes);
        frame.meta.checksum = find(&bytes);
        assert!(frame.meta.checksum.is_some() && crate::offload::complete_checksum(&mut frame));
        assert_eq!(frame.bytes(), bytes);
    }
}
