// SPDX-License-Identifier: Apache-2.0
//! Extended header of the device: the bits that a lookup can examine.
//!
//! The first 32 bytes are the extended header of the software (`flow::ext`), so a slice with the base
//! `metadata` selects the same bits in both. Then follow fields that only the device has, and the first bytes
//! of the frame. `present` is next to `ip_proto`, so that one slice of 4 bytes selects both. All values are
//! big-endian. Bit 0 is the most significant bit of the first byte.

use flow::ext;

/// Bytes of a frame that the parser puts into the extended header.
pub const RAW_BYTES: usize = 128;

/// Bytes by which actions can lengthen the copied part of the frame.
pub const GROWTH_BYTES: usize = 16;

/// Bytes of the frame's part, with room for growth.
pub const FRAME_BYTES: usize = RAW_BYTES + GROWTH_BYTES;

/// First byte of the frame's part.
pub const FRAME_BYTE: usize = 48;

/// Length of the device's extended header in bytes.
pub const EXTENDED_BYTES: usize = FRAME_BYTE + FRAME_BYTES;

/// Field of the extended header. A slice `{bit, width}` selects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderField {
    /// Name in the generated files.
    pub name: &'static str,
    /// First bit.
    pub bit: u16,
    /// Number of bits.
    pub width: u16,
    /// Meaning, for the generated files.
    pub meaning: &'static str,
}

const fn field(name: &'static str, bit: u16, width: u16, meaning: &'static str) -> HeaderField {
    HeaderField { name, bit, width, meaning }
}

/// First bit after the software's extended header.
const OWN_BIT: u16 = (ext::EXT_BYTES * 8) as u16;

/// Fields in ascending order, without gaps.
pub const FIELDS: [HeaderField; 16] = [
    field("in_port", ext::IN_PORT_BIT, 32, "ingress port"),
    field("in_phy_port", ext::IN_PHY_PORT_BIT, 32, "physical ingress port, equal to the ingress port"),
    field("metadata", ext::METADATA_BIT, 64, "metadata register, 0 at arrival"),
    field("tunnel_id", ext::TUNNEL_ID_BIT, 64, "tunnel ID; always 0 in the device"),
    field("eth_type", ext::ETH_TYPE_BIT, 16, "EtherType after VLAN tags; 0x05ff for LLC frames"),
    field("vlan", ext::VLAN_BIT, 16, "outermost VLAN tag: PCP 3, present 1, VID 12; 0 without a tag"),
    field("ip_tos", ext::IP_TOS_BIT, 8, "IPv4 ToS or IPv6 traffic class; 0 without IP"),
    field("ip_proto", ext::IP_PROTO_BIT, 8, "upper-layer protocol; 0 without IP"),
    field("exthdr", ext::EXTHDR_BIT, 16, "IPv6 extension headers; always 0 in the device"),
    field("present", OWN_BIT, 8, "headers found, PRESENT_*"),
    field("l3_offset", OWN_BIT + 8, 8, "first byte after the EtherType, counted from the frame's first"),
    field("l4_offset", OWN_BIT + 16, 8, "first byte of the upper-layer header; 0 without one"),
    field("reserved", OWN_BIT + 24, 24, "0"),
    field("frame_bytes", OWN_BIT + 48, 16, "length of the frame at arrival, without FCS"),
    field("timestamp", OWN_BIT + 64, 64, "device clock cycle at which the parser received the first beat"),
    field("frame", (FRAME_BYTE * 8) as u16, (FRAME_BYTES * 8) as u16, "first bytes of the frame, then zeros"),
];

/// Bits of the field `present`, from bit 0 (least significant) on.
pub const PRESENT: [(&str, &str); 8] = [
    ("ethernet", "a whole Ethernet header"),
    ("vlan", "a whole VLAN tag"),
    ("ipv4", "a valid IPv4 header"),
    ("ipv6", "an IPv6 fixed header"),
    ("tcp", "a TCP header without options, inside the IP payload"),
    ("udp", "a UDP header"),
    ("icmp", "4 bytes of ICMP in IPv4 or of ICMPv6 in IPv6"),
    ("sctp", "an SCTP common header"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_cover_the_header_without_gaps() {
        let mut next = 0;
        for field in FIELDS {
            assert_eq!(field.bit, next, "{}", field.name);
            next += field.width;
        }
        assert_eq!(usize::from(next), EXTENDED_BYTES * 8);
        assert_eq!(FIELDS[9].bit, 256, "the software's header ends at bit 256");
    }
}
