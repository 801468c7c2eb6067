// SPDX-License-Identifier: Apache-2.0
//! Match fields: their positions in the frame, and their values.

use crate::bits;
use crate::packet::ReferencePacket;
use crate::walk::{Network, Upper};
use flow::{Field, Match, Slice, SliceBase};

/// Returns the first bit and the length in bits of a field in the frame. Returns `None` if the field is
/// absent or not in the frame.
pub(crate) fn in_frame(packet: &ReferencePacket, field: Field) -> Option<(usize, usize)> {
    let found = &packet.headers;
    let network = |wanted: Network, byte: usize, bit: usize, length: usize| {
        (found.network == wanted).then_some(((found.l3 + byte) * 8 + bit, length))
    };
    let upper = |wanted: Upper, byte: usize, length: usize| {
        let l4 = found.ip.filter(|_| found.upper == wanted)?.l4;
        Some(((l4 + byte) * 8, length))
    };
    match field {
        Field::EthDst => Some((0, 48)),
        Field::EthSrc => Some((48, 48)),
        Field::VlanPcp => found.vlan_tci.map(|_| (14 * 8, 3)),
        Field::MplsLabel => network(Network::Mpls, 0, 0, 20),
        Field::MplsTc => network(Network::Mpls, 2, 4, 3),
        Field::MplsBos => network(Network::Mpls, 2, 7, 1),
        Field::PbbIsid => network(Network::Pbb, 1, 0, 24),
        Field::ArpOp => network(Network::Arp, 6, 0, 16),
        Field::ArpSha => network(Network::Arp, 8, 0, 48),
        Field::ArpSpa => network(Network::Arp, 14, 0, 32),
        Field::ArpTha => network(Network::Arp, 18, 0, 48),
        Field::ArpTpa => network(Network::Arp, 24, 0, 32),
        // In IPv4, DSCP and ECN are one byte. In IPv6, they are the 8 bits that begin with the fifth bit.
        Field::IpDscp => network(Network::Ipv4, 1, 0, 6).or(network(Network::Ipv6, 0, 4, 6)),
        Field::IpEcn => network(Network::Ipv4, 1, 6, 2).or(network(Network::Ipv6, 1, 2, 2)),
        Field::Ipv4Src => network(Network::Ipv4, 12, 0, 32),
        Field::Ipv4Dst => network(Network::Ipv4, 16, 0, 32),
        Field::Ipv6Src => network(Network::Ipv6, 8, 0, 128),
        Field::Ipv6Dst => network(Network::Ipv6, 24, 0, 128),
        Field::Ipv6Flabel => network(Network::Ipv6, 1, 4, 20),
        Field::TcpSrc => upper(Upper::Tcp, 0, 16),
        Field::TcpDst => upper(Upper::Tcp, 2, 16),
        Field::UdpSrc => upper(Upper::Udp, 0, 16),
        Field::UdpDst => upper(Upper::Udp, 2, 16),
        Field::SctpSrc => upper(Upper::Sctp, 0, 16),
        Field::SctpDst => upper(Upper::Sctp, 2, 16),
        Field::Icmpv4Type => upper(Upper::Icmpv4, 0, 8),
        Field::Icmpv4Code => upper(Upper::Icmpv4, 1, 8),
        Field::Icmpv6Type => upper(Upper::Icmpv6, 0, 8),
        Field::Icmpv6Code => upper(Upper::Icmpv6, 1, 8),
        Field::NdTarget if found.nd => upper(Upper::Icmpv6, 8, 128),
        Field::NdSll => found.nd_sll.map(|at| (at * 8, 48)),
        Field::NdTll => found.nd_tll.map(|at| (at * 8, 48)),
        Field::Slice(slice) => slice_in_frame(packet, slice),
        Field::InPort
        | Field::InPhyPort
        | Field::Metadata
        | Field::TunnelId
        | Field::EthType
        | Field::VlanVid
        | Field::IpProto
        | Field::NdTarget
        | Field::Ipv6Exthdr => None,
    }
}

/// Returns the position of a slice. A slice is present if the frame, including padding, reaches the slice's
/// last bit.
fn slice_in_frame(packet: &ReferencePacket, slice: Slice) -> Option<(usize, usize)> {
    let found = &packet.headers;
    let base = match slice.base {
        SliceBase::Packet => 0,
        SliceBase::Moving => packet.base,
        SliceBase::L3 => found.l3,
        SliceBase::L4 if found.upper != Upper::None => found.ip?.l4,
        SliceBase::L4 | SliceBase::Metadata => return None,
    };
    let first = base * 8 + usize::from(slice.offset_bits);
    let length = usize::from(slice.length_bits);
    (first + length <= packet.bytes.len() * 8).then_some((first, length))
}

/// Returns the field's value, right-aligned, or `None` if the packet does not have the field.
pub(crate) fn get(packet: &ReferencePacket, field: Field) -> Option<u128> {
    let found = &packet.headers;
    match field {
        Field::InPort | Field::InPhyPort => Some(packet.in_port.0.into()),
        Field::Metadata => Some(packet.metadata.into()),
        Field::TunnelId => Some(packet.tunnel_id.into()),
        Field::EthType => Some(found.eth_type.into()),
        // The value is OFPVID_PRESENT and the VID, or 0 (OFPVID_NONE) for an untagged packet.
        Field::VlanVid => Some(found.vlan_tci.map_or(0, |tci| 0x1000 | u128::from(tci & 0xfff))),
        Field::IpProto => Some(found.ip?.proto.into()),
        Field::Ipv6Exthdr if found.network == Network::Ipv6 => Some(found.ip?.exthdr.into()),
        Field::Slice(slice) if slice.base == SliceBase::Metadata => {
            bits::read(&packet.extended_header(), slice.offset_bits.into(), slice.length_bits.into())
        }
        _ => {
            let (first, length) = in_frame(packet, field)?;
            bits::read(&packet.bytes, first, length)
        }
    }
}

/// Returns whether the packet satisfies all conditions. A match with an index matches no packet.
pub(crate) fn matches(packet: &ReferencePacket, matching: &Match) -> bool {
    matching.index().is_none()
        && matching.fields().all(|c| get(packet, c.field).is_some_and(|value| value & c.mask == c.value))
}
