// SPDX-License-Identifier: Apache-2.0
//! Where a packet's headers are: one walk over the bytes, as deep as asked, no allocation.
//!
//! The walk answers with offsets and with the few values that have no fixed place (the EtherType behind VLAN tags,
//! the protocol behind IPv6 extension headers). It never fails: a header that is cut short or contradicts itself is
//! not `present`, and what lies behind it is not looked at.

mod ip;
mod upper;
mod walk;

#[cfg(test)]
mod tests;

pub use walk::{deepen, locate};

/// One bit for each header that a match field can live in.
pub mod header {
    /// At least one whole VLAN tag (C-tag 0x8100, S-tag 0x88a8, or the older 0x9100).
    pub const VLAN: u32 = 1 << 0;
    /// A whole MPLS shim (4 bytes) behind EtherType 0x8847 or 0x8848.
    pub const MPLS: u32 = 1 << 1;
    /// A whole PBB I-tag (4 bytes) behind EtherType 0x88e7.
    pub const PBB: u32 = 1 << 2;
    /// A whole ARP body for Ethernet and IPv4 (28 bytes).
    pub const ARP: u32 = 1 << 3;
    /// A valid IPv4 header: version 4, IHL of at least 5, all of it there, total length not shorter than it.
    pub const IPV4: u32 = 1 << 4;
    /// A whole IPv6 fixed header (40 bytes) of version 6.
    pub const IPV6: u32 = 1 << 5;
    /// A whole TCP header without options (20 bytes) inside the IP payload.
    pub const TCP: u32 = 1 << 6;
    /// A whole UDP header (8 bytes).
    pub const UDP: u32 = 1 << 7;
    /// A whole SCTP common header (12 bytes).
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

/// Pseudo-header bits of the IPv6 extension headers seen, as OpenFlow numbers them (OFPIEH_*).
pub mod exthdr {
    /// "No next header" encountered.
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
    /// Unexpected repeats.
    pub const UNREP: u16 = 1 << 7;
    /// Not in the order RFC 8200 recommends.
    pub const UNSEQ: u16 = 1 << 8;
}

/// EtherType given to 802.3 frames with LLC and no SNAP EtherType, as Open vSwitch does.
pub const ETH_TYPE_LLC: u16 = 0x05ff;

/// How deep to walk. Each level includes those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Nothing is looked at.
    #[default]
    None,
    /// VLAN tags and the EtherType.
    L2,
    /// MPLS, PBB, ARP, IPv4, IPv6 with extension headers.
    L3,
    /// TCP, UDP, SCTP, ICMP, ICMPv6 and neighbour discovery.
    L4,
}

/// What the walk found. Offsets are bytes from the start of the frame; an offset is meaningful only while its header
/// bit is set in `present`.
///
/// The order of the fields matters: bytes that are written one by one do not lie side by side, so that nobody reads them
/// as one word while they are still on their way to the cache, which stalls the core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Layers {
    /// Bits of [`header`].
    pub present: u32,
    /// End of the IP payload: the frame's end, or earlier where padding follows the datagram; 0 without IP.
    pub l4_end: u32,
    /// EtherType behind all VLAN tags; [`ETH_TYPE_LLC`] for LLC frames.
    pub eth_type: u16,
    /// Offset of what follows that EtherType: MPLS shim, PBB I-tag, ARP body or IP header.
    pub l3: u16,
    /// Tag control information of the outermost VLAN tag (PCP 3, DEI 1, VID 12 bits); 0 without a tag.
    pub vlan_tci: u16,
    /// Offset of the upper-layer header in the IP payload.
    pub l4: u16,
    /// Upper-layer protocol behind IPv6 extension headers; 0 without IP.
    pub ip_proto: u8,
    /// An IP fragment: `l4` headers are present in the first only, their checksum covers more than this frame.
    pub fragment: bool,
    /// The IPv4 ToS or IPv6 traffic class byte; 0 without IP.
    pub ip_tos: u8,
    /// How deep the walk went.
    pub depth: Depth,
    /// Offset of the EtherType that `eth_type` was read from (12 without tags).
    pub type_at: u16,
    /// Bits of [`exthdr`]; 0 without IPv6.
    pub exthdr: u16,
    /// Offset of the 6-byte address in the source link-layer address option.
    pub nd_sll: u16,
    /// Offset of the 6-byte address in the target link-layer address option.
    pub nd_tll: u16,
}
