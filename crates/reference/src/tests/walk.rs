// SPDX-License-Identifier: Apache-2.0
//! Compares the reference's header walk with that of the fast path.

use super::frames;
use crate::walk::{Headers, Network, Upper, walk};
use proptest::prelude::*;
use wire::layers::header;
use wire::{Depth, Layers, locate};

/// Converts the result to the type of the fast path.
fn as_layers(found: &Headers) -> Layers {
    let network = match found.network {
        Network::Other => 0,
        Network::Mpls => header::MPLS,
        Network::Pbb => header::PBB,
        Network::Arp => header::ARP,
        Network::Ipv4 => header::IPV4 | header::IP,
        Network::Ipv6 => header::IPV6 | header::IP,
    };
    let upper = match found.upper {
        Upper::None => 0,
        Upper::Tcp => header::TCP,
        Upper::Udp => header::UDP,
        Upper::Sctp => header::SCTP,
        Upper::Icmpv4 => header::ICMPV4,
        Upper::Icmpv6 => header::ICMPV6,
    };
    let bit = |is_there, bit| if is_there { bit } else { 0 };
    let ip = found.ip.unwrap_or_default();
    Layers {
        present: network
            | upper
            | bit(found.vlan_tci.is_some(), header::VLAN)
            | bit(found.nd, header::ND)
            | bit(found.nd_sll.is_some(), header::ND_SLL)
            | bit(found.nd_tll.is_some(), header::ND_TLL),
        eth_type: found.eth_type,
        vlan_tci: found.vlan_tci.unwrap_or(0),
        ip_proto: ip.proto,
        ip_tos: ip.tos,
        exthdr: ip.exthdr,
        type_at: found.type_at as u16,
        l3: found.l3 as u16,
        l4: ip.l4 as u16,
        l4_end: ip.end as u32,
        nd_sll: found.nd_sll.unwrap_or(0) as u16,
        nd_tll: found.nd_tll.unwrap_or(0) as u16,
        fragment: ip.fragment,
        depth: Depth::L4,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn finds_the_same_headers_as_the_fast_path(frame in prop_oneof![frames::broken(), frames::well_formed()]) {
        prop_assert_eq!(as_layers(&walk(&frame)), locate(&frame, Depth::L4));
    }

    #[test]
    fn random_bytes(frame in prop::collection::vec(prop_oneof![any::<u8>(), Just(0)], 0..80)) {
        prop_assert_eq!(as_layers(&walk(&frame)), locate(&frame, Depth::L4));
    }
}

#[test]
fn every_prefix_of_a_frame_with_many_headers() {
    let frame = frames::ethernet()
        .vlan(0x88a8, 0xe001)
        .vlan(0x8100, 2)
        .ipv6([1; 16], [2; 16])
        .extension(0, &[0; 6])
        .neighbour_solicitation([3; 16])
        .nd_option(9, &[0; 14])
        .nd_option(1, &frames::SRC)
        .build();
    let found = walk(&frame);
    assert_eq!((found.l3, found.vlan_tci, found.nd_sll), (22, Some(0xe001), Some(22 + 40 + 8 + 24 + 16 + 2)));
    for len in 0..=frame.len() {
        assert_eq!(as_layers(&walk(&frame[..len])), locate(&frame[..len], Depth::L4), "{len} bytes");
    }
    // The payload length of the IPv6 header is arbitrary. Bytes after the payload are padding.
    let mut frame = frame;
    for payload_len in 0..=70 {
        frame[22 + 5] = payload_len;
        assert_eq!(as_layers(&walk(&frame)), locate(&frame, Depth::L4), "payload length {payload_len}");
    }
    let mut routed = frames::ipv6().extension(43, &[0; 14]).udp(1, 2).build();
    routed[14 + 5] = 12;
    assert_eq!(walk(&routed).ip.map(|ip| (ip.proto, ip.exthdr, ip.end)), Some((43, 0, 66)));
}
