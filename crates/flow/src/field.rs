// SPDX-License-Identifier: Apache-2.0
//! Match fields: the named fields of the OpenFlow 1.3 basic class, and protocol-oblivious slices. The table
//! `fields!` lists the base, first bit and length of each named field.

use crate::ext;
use crate::slice::{Slice, SliceBase};
use wire::layers::header as h;

/// Position from which a location's offset is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FieldBase {
    /// First bit of the frame.
    Frame,
    /// First bit of the extended header.
    Ext,
    /// Header after the EtherType (`Layers::l3`).
    L3,
    /// Upper-layer header (`Layers::l4`).
    L4,
    /// Source link-layer address of neighbour discovery (`Layers::nd_sll`).
    NdSll,
    /// Target link-layer address of neighbour discovery (`Layers::nd_tll`).
    NdTll,
    /// The packet's base, which actions move.
    Moving,
}

/// Location of a field's bits in a packet or its extended header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Origin of the offset.
    pub base: FieldBase,
    /// First bit, counted from the base, most significant bit first.
    pub offset_bits: u16,
    /// Length in bits, 1 to 128.
    pub length_bits: u16,
    /// Header bits (`wire::layers::header`) that must all be present, or 0 if the field always exists.
    pub needs: u32,
}

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $oxm:literal, $text:literal, $base:ident, $offset:expr, $length:literal, $needs:expr;)*) => {
        /// A match field. The variants are in the order of the fields in a [`crate::Match`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Field {
            $($(#[$doc])* $name,)*
            /// A protocol-oblivious slice.
            Slice(Slice),
        }

        impl Field {
            /// The named fields, in OXM order.
            pub const NAMED: &'static [Self] = &[$(Self::$name),*];

            /// Returns the field's number in OXM class OFPXMC_OPENFLOW_BASIC, or `None` for a slice.
            #[must_use]
            pub fn oxm(self) -> Option<u8> {
                match self { $(Self::$name => Some($oxm),)* Self::Slice(_) => None }
            }

            /// Returns the name that ovs-ofctl prints, or an empty string for a slice.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* Self::Slice(_) => "" }
            }

            /// Returns the location of the field's bits.
            #[must_use]
            pub const fn location(self) -> Location {
                match self {
                    $(Self::$name => Location { base: FieldBase::$base, offset_bits: $offset, length_bits: $length, needs: $needs },)*
                    Self::Slice(s) => Location {
                        base: match s.base {
                            SliceBase::Packet => FieldBase::Frame,
                            SliceBase::Metadata => FieldBase::Ext,
                            SliceBase::L3 => FieldBase::L3,
                            SliceBase::L4 => FieldBase::L4,
                            SliceBase::Moving => FieldBase::Moving,
                        },
                        offset_bits: s.offset_bits,
                        length_bits: s.length_bits,
                        needs: 0,
                    },
                }
            }
        }
    };
}

fields! {
    /// Ingress port.
    InPort = 0, "in_port", Ext, ext::IN_PORT_BIT, 32, 0;
    /// Physical ingress port.
    InPhyPort = 1, "in_phy_port", Ext, ext::IN_PHY_PORT_BIT, 32, 0;
    /// Metadata register, which passes 64 bits from one table to the next.
    Metadata = 2, "metadata", Ext, ext::METADATA_BIT, 64, 0;
    /// Destination MAC.
    EthDst = 3, "dl_dst", Frame, 0, 48, 0;
    /// Source MAC.
    EthSrc = 4, "dl_src", Frame, 48, 48, 0;
    /// EtherType after VLAN tags.
    EthType = 5, "dl_type", Ext, ext::ETH_TYPE_BIT, 16, 0;
    /// VLAN ID of the outermost tag, with OFPVID_PRESENT (0x1000) as the first of its 13 bits.
    VlanVid = 6, "vlan_vid", Ext, ext::VLAN_BIT + 3, 13, 0;
    /// Priority of the outermost tag.
    VlanPcp = 7, "vlan_pcp", Ext, ext::VLAN_BIT, 3, h::VLAN;
    /// DSCP of IPv4 or IPv6, 6 bits.
    IpDscp = 8, "ip_dscp", Ext, ext::IP_TOS_BIT, 6, h::IP;
    /// ECN bits of IPv4 or IPv6.
    IpEcn = 9, "nw_ecn", Ext, ext::IP_TOS_BIT + 6, 2, h::IP;
    /// Upper-layer protocol after extension headers.
    IpProto = 10, "nw_proto", Ext, ext::IP_PROTO_BIT, 8, h::IP;
    /// IPv4 source.
    Ipv4Src = 11, "nw_src", L3, 96, 32, h::IPV4;
    /// IPv4 destination.
    Ipv4Dst = 12, "nw_dst", L3, 128, 32, h::IPV4;
    /// TCP source port.
    TcpSrc = 13, "tcp_src", L4, 0, 16, h::TCP;
    /// TCP destination port.
    TcpDst = 14, "tcp_dst", L4, 16, 16, h::TCP;
    /// UDP source port.
    UdpSrc = 15, "udp_src", L4, 0, 16, h::UDP;
    /// UDP destination port.
    UdpDst = 16, "udp_dst", L4, 16, 16, h::UDP;
    /// SCTP source port.
    SctpSrc = 17, "sctp_src", L4, 0, 16, h::SCTP;
    /// SCTP destination port.
    SctpDst = 18, "sctp_dst", L4, 16, 16, h::SCTP;
    /// ICMP type.
    Icmpv4Type = 19, "icmp_type", L4, 0, 8, h::ICMPV4;
    /// ICMP code.
    Icmpv4Code = 20, "icmp_code", L4, 8, 8, h::ICMPV4;
    /// ARP operation.
    ArpOp = 21, "arp_op", L3, 48, 16, h::ARP;
    /// ARP sender protocol address.
    ArpSpa = 22, "arp_spa", L3, 112, 32, h::ARP;
    /// ARP target protocol address.
    ArpTpa = 23, "arp_tpa", L3, 192, 32, h::ARP;
    /// ARP sender hardware address.
    ArpSha = 24, "arp_sha", L3, 64, 48, h::ARP;
    /// ARP target hardware address.
    ArpTha = 25, "arp_tha", L3, 144, 48, h::ARP;
    /// IPv6 source.
    Ipv6Src = 26, "ipv6_src", L3, 64, 128, h::IPV6;
    /// IPv6 destination.
    Ipv6Dst = 27, "ipv6_dst", L3, 192, 128, h::IPV6;
    /// IPv6 flow label.
    Ipv6Flabel = 28, "ipv6_label", L3, 12, 20, h::IPV6;
    /// ICMPv6 type.
    Icmpv6Type = 29, "icmpv6_type", L4, 0, 8, h::ICMPV6;
    /// ICMPv6 code.
    Icmpv6Code = 30, "icmpv6_code", L4, 8, 8, h::ICMPV6;
    /// Neighbour discovery target.
    NdTarget = 31, "nd_target", L4, 64, 128, h::ND;
    /// Source link-layer address in a solicitation.
    NdSll = 32, "nd_sll", NdSll, 0, 48, h::ND_SLL;
    /// Target link-layer address in an advertisement.
    NdTll = 33, "nd_tll", NdTll, 0, 48, h::ND_TLL;
    /// Label of the outermost MPLS shim.
    MplsLabel = 34, "mpls_label", L3, 0, 20, h::MPLS;
    /// Traffic class of the outermost MPLS shim.
    MplsTc = 35, "mpls_tc", L3, 20, 3, h::MPLS;
    /// Bottom-of-stack bit of the outermost MPLS shim.
    MplsBos = 36, "mpls_bos", L3, 23, 1, h::MPLS;
    /// Service instance ID of the PBB I-tag.
    PbbIsid = 37, "pbb_isid", L3, 8, 24, h::PBB;
    /// Tunnel ID.
    TunnelId = 38, "tun_id", Ext, ext::TUNNEL_ID_BIT, 64, 0;
    /// IPv6 extension headers present in the packet (OFPIEH_*).
    Ipv6Exthdr = 39, "ipv6_exthdr", Ext, ext::EXTHDR_BIT + 7, 9, h::IPV6;
}

impl Field {
    /// Returns the mask of all bits of the field, right-aligned.
    #[must_use]
    pub const fn full_mask(self) -> u128 {
        u128::MAX >> (128 - self.location().length_bits as u32)
    }

    /// Returns whether a match may examine only some bits of the field: in slices, fields that Open vSwitch
    /// can mask, ICMP types and codes, and the VLAN priority.
    #[must_use]
    pub fn maskable(self) -> bool {
        !matches!(
            self,
            Self::InPort
                | Self::InPhyPort
                | Self::EthType
                | Self::IpDscp
                | Self::IpEcn
                | Self::IpProto
                | Self::ArpOp
                | Self::MplsLabel
                | Self::MplsTc
                | Self::MplsBos
        )
    }

    /// Returns whether a set-field action may write the field.
    #[must_use]
    pub fn settable(self) -> bool {
        match self {
            Self::InPort | Self::InPhyPort | Self::Ipv6Exthdr | Self::Metadata => false,
            // Only metadata and tunnel ID can be written. The ingress ports are before them, and fields
            // derived by the parser after them.
            Self::Slice(s) => {
                s.base != SliceBase::Metadata
                    || (s.offset_bits >= ext::METADATA_BIT
                        && s.offset_bits + s.length_bits <= ext::ETH_TYPE_BIT)
            }
            _ => true,
        }
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Slice(s) => write!(f, "slice({},{},{})", s.base.name(), s.offset_bits, s.length_bits),
            named => f.write_str(named.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forty_basic_fields_stand_in_oxm_order_with_their_lengths() {
        // Lengths in bits, from the OpenFlow 1.3 table of match fields.
        let lengths = [
            32, 32, 64, 48, 48, 16, 13, 3, 6, 2, 8, 32, 32, 16, 16, 16, 16, 16, 16, 8, 8, 16, 32, 32, 48, 48,
            128, 128, 20, 8, 8, 128, 48, 48, 20, 3, 1, 24, 64, 9,
        ];
        assert_eq!(Field::NAMED.len(), lengths.len());
        for (number, field) in Field::NAMED.iter().enumerate() {
            assert_eq!(field.oxm(), Some(number as u8));
            assert_eq!(field.location().length_bits, lengths[number], "{field:?}");
        }
        assert_eq!(Field::MplsBos.full_mask(), 1);
        assert_eq!(Field::Ipv6Dst.full_mask(), u128::MAX);
    }
}
