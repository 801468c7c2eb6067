// SPDX-License-Identifier: Apache-2.0
//! Offsets of a packet's headers, found in one walk over its bytes to a requested depth, without allocation.
//!
//! The walk also returns values that have no fixed position: the EtherType after VLAN tags, and the protocol
//! after IPv6 extension headers. If a header is incomplete or inconsistent, its bit in `present` is not set,
//! and the bytes after it are not examined.

mod common;
mod ip;
mod upper;
mod walk;

#[cfg(test)]
mod tests;

pub use common::{CommonGuard, is_untagged_ip, locate_common};
pub use walk::{deepen, locate};

/// One bit for each header to which match fields refer.
pub mod header {
    /// At least one complete VLAN tag (C-tag 0x8100, S-tag 0x88a8, or the older 0x9100).
    pub const VLAN: u32 = 1 << 0;
    /// Complete MPLS shim (4 bytes) after EtherType 0x8847 or 0x8848.
    pub const MPLS: u32 = 1 << 1;
    /// Complete PBB I-tag (4 bytes) after EtherType 0x88e7.
    pub const PBB: u32 = 1 << 2;
    /// Complete ARP body for Ethernet and IPv4 (28 bytes).
    pub const ARP: u32 = 1 << 3;
    /// Valid IPv4 header: complete, version 4, IHL of at least 5, and a total length that covers the header.
    pub const IPV4: u32 = 1 << 4;
    /// Complete IPv6 fixed header (40 bytes) of version 6.
    pub const IPV6: u32 = 1 << 5;
    /// Complete TCP header without options (20 bytes) inside the IP payload.
    pub const TCP: u32 = 1 << 6;
    /// Complete UDP header (8 bytes).
    pub const UDP: u32 = 1 << 7;
    /// Complete SCTP common header (12 bytes).
    pub const SCTP: u32 = 1 << 8;
    /// At least 4 bytes of ICMP (type, code, checksum) in IPv4.
    pub const ICMPV4: u32 = 1 << 9;
    /// At least 4 bytes of ICMPv6 in IPv6.
    pub const ICMPV6: u32 = 1 << 10;
    /// Neighbour solicitation or advertisement (ICMPv6 135 or 136, code 0) with its target (24 bytes).
    pub const ND: u32 = 1 << 11;
    /// Source link-layer address option (type 1, 8 bytes) in a solicitation.
    pub const ND_SLL: u32 = 1 << 12;
    /// Target link-layer address option (type 2, 8 bytes) in an advertisement.
    pub const ND_TLL: u32 = 1 << 13;
    /// IPv4 or IPv6.
    pub const IP: u32 = 1 << 14;
}

/// Bits of OpenFlow's match field for IPv6 extension headers (OFPIEH_*).
pub mod exthdr {
    /// The last header has the next-header number "no next header".
    pub const NONEXT: u16 = 1 << 0;
    /// Encapsulating security payload.
    pub const ESP: u16 = 1 << 1;
    /// Authentication header.
    pub const AUTH: u16 = 1 << 2;
    /// One or two destination options headers.
    pub const DEST: u16 = 1 << 3;
    /// Fragment header.
    pub const FRAG: u16 = 1 << 4;
    /// Routing header.
    pub const ROUTER: u16 = 1 << 5;
    /// Hop-by-hop options.
    pub const HOP: u16 = 1 << 6;
    /// A header is repeated, although it should occur only once.
    pub const UNREP: u16 = 1 << 7;
    /// The headers are not in the order that RFC 8200 recommends.
    pub const UNSEQ: u16 = 1 << 8;
}

/// EtherType of LLC frames without a SNAP EtherType, as in Open vSwitch.
pub const ETH_TYPE_LLC: u16 = 0x05ff;

/// Depth of the walk. Each level includes all levels before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// No header.
    #[default]
    None,
    /// VLAN tags and the EtherType.
    L2,
    /// MPLS, PBB, ARP, IPv4, IPv6 with extension headers.
    L3,
    /// TCP, UDP, SCTP, ICMP, ICMPv6 and neighbour discovery.
    L4,
}

/// Result of the walk. Offsets are in bytes from the start of the frame. An offset is valid only while its
/// header bit is set in `present`.
///
/// Fields that are written by separate stores are not adjacent, because reading them as one word would stall
/// the core (failed store forwarding).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Layers {
    /// Headers found, as bits of [`header`].
    pub present: u32,
    /// End of the IP payload, or 0 without IP. This is the end of the frame, or an earlier position if
    /// padding follows the datagram.
    pub l4_end: u32,
    /// EtherType after all VLAN tags, or [`ETH_TYPE_LLC`] for LLC frames.
    pub eth_type: u16,
    /// Offset of the header after the EtherType: MPLS shim, PBB I-tag, ARP body or IP header.
    pub l3: u16,
    /// Tag control information of the outermost VLAN tag (PCP 3 bits, DEI 1, VID 12), or 0 without a tag.
    pub vlan_tci: u16,
    /// Offset of the upper-layer header in the IP payload.
    pub l4: u16,
    /// Upper-layer protocol after IPv6 extension headers, or 0 without IP.
    pub ip_proto: u8,
    /// Whether the packet is an IP fragment. Upper-layer headers are present only in the first fragment.
    /// Their checksum covers more than this frame.
    pub fragment: bool,
    /// IPv4 ToS byte or IPv6 traffic class, or 0 without IP.
    pub ip_tos: u8,
    /// Depth that the walk has reached.
    pub depth: Depth,
    /// Offset of the EtherType in `eth_type`, 12 without tags.
    pub type_at: u16,
    /// IPv6 extension headers, as bits of [`exthdr`], or 0 without IPv6.
    pub exthdr: u16,
    /// Offset of the 6-byte address in the source link-layer address option.
    pub nd_sll: u16,
    /// Offset of the 6-byte address in the target link-layer address option.
    pub nd_tll: u16,
}

impl Layers {
    /// The result before any header was located.
    pub const NONE: Self = Self {
        present: 0,
        l4_end: 0,
        eth_type: 0,
        l3: 0,
        vlan_tci: 0,
        l4: 0,
        ip_proto: 0,
        fragment: false,
        ip_tos: 0,
        depth: Depth::None,
        type_at: 0,
        exthdr: 0,
        nd_sll: 0,
        nd_tll: 0,
    };
}
