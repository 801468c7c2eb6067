// SPDX-License-Identifier: Apache-2.0
//! Mirrors: which frames they copy. A copy has the bytes with which the frame passed the port.

use flow::{MirrorSelection, Passage, PortNo};

/// EtherTypes of VLAN tags.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Returns whether a mirror copies a frame with these bytes that passes a port.
#[must_use]
pub fn is_mirrored(selection: &MirrorSelection, port: PortNo, passage: Passage, bytes: &[u8]) -> bool {
    let vlan = vlan(bytes);
    let is_selected = selection.vlans.is_empty() || selection.vlans.contains(&vlan);
    is_selected && selection.ports(passage).contains(&port)
}

/// Returns the VLAN ID of the outermost tag. A frame without a complete tag is in VLAN 0.
fn vlan(bytes: &[u8]) -> u16 {
    let word = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    match (word(12), word(14)) {
        (Some(eth_type), Some(tci)) if TAGS.contains(&eth_type) => tci % 4_096,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mirror_copies_the_frames_of_its_ports_and_vlans() {
        let tagged = |tag: [u8; 4]| {
            let mut bytes = vec![0; 60];
            bytes[12..16].copy_from_slice(&tag);
            bytes
        };
        let mirror =
            MirrorSelection { ingress: vec![PortNo(1)], egress: vec![PortNo(2)], vlans: vec![0, 10] };
        let is = |port, passage, tag| is_mirrored(&mirror, PortNo(port), passage, &tagged(tag));
        assert!(is(1, Passage::Ingress, [0x81, 0, 0xe0, 10]) && is(2, Passage::Egress, [8, 0, 0, 11]));
        assert!(is(1, Passage::Ingress, [0x88, 0xa8, 0, 10]) && is(1, Passage::Ingress, [0x91, 0, 0, 0]));
        assert!(!is(1, Passage::Egress, [8, 0, 0, 0]) && !is(3, Passage::Ingress, [8, 0, 0, 0]));
        assert!(!is(1, Passage::Ingress, [0x81, 0, 0xe0, 11]));
        assert!(is_mirrored(&mirror, PortNo(1), Passage::Ingress, &[0x81; 15]), "the tag is incomplete");
        let all = MirrorSelection { vlans: Vec::new(), ..mirror };
        assert!(is_mirrored(&all, PortNo(1), Passage::Ingress, &tagged([0x81, 0, 0, 11])));
    }
}
