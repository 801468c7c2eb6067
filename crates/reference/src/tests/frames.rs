// SPDX-License-Identifier: Apache-2.0
//! Test frames, and a check of their checksums.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::layers::header;
use wire::{Depth, PacketBuilder, checksum, locate};

pub(crate) const DST: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
pub(crate) const SRC: [u8; 6] = [2, 0, 0, 0, 0, 0xa];

pub(crate) fn ethernet() -> PacketBuilder {
    PacketBuilder::ethernet(DST, SRC)
}

pub(crate) fn ipv4() -> PacketBuilder {
    ethernet().ipv4([10, 0, 0, 1], [10, 0, 0, 2])
}

pub(crate) fn ipv6() -> PacketBuilder {
    ethernet().ipv6([0x20; 16], [0x30; 16])
}

/// Returns a 20-byte IPv4 header and a UDP header without payload.
pub(crate) fn udp() -> Vec<u8> {
    ipv4().udp(1000, 2000).build()
}

/// Returns the names of a frame's wrong checksums. In fragments, only the IPv4 header checksum is checked.
pub(crate) fn wrong_checksums(frame: &[u8]) -> Vec<&'static str> {
    let found = locate(frame, Depth::L4);
    let has = |bit| found.present & bit != 0;
    let (l3, l4) = (usize::from(found.l3), usize::from(found.l4));
    let mut wrong = Vec::new();
    if has(header::IPV4) && checksum::sum(&frame[l3..l4]) != 0xffff {
        wrong.push("IPv4");
    }
    if !has(header::IP) || found.fragment {
        return wrong;
    }
    let upper = &frame[l4..found.l4_end as usize];
    let len = upper.len() as u32;
    let pseudo = if has(header::IPV4) {
        let addresses = frame[l3 + 12..l3 + 20].as_chunks::<4>().0;
        checksum::pseudo_v4(addresses[0], addresses[1], found.ip_proto, len)
    } else {
        let addresses = frame[l3 + 8..l3 + 40].as_chunks::<16>().0;
        checksum::pseudo_v6(addresses[0], addresses[1], found.ip_proto, len)
    };
    let sums_up = |pseudo| checksum::add(pseudo, checksum::sum(upper)) == 0xffff;
    if has(header::TCP) && !sums_up(pseudo) {
        wrong.push("TCP");
    }
    if has(header::UDP) && upper[6..8] != [0, 0] && !sums_up(pseudo) {
        wrong.push("UDP");
    }
    if has(header::ICMPV6) && !sums_up(pseudo) {
        wrong.push("ICMPv6");
    }
    if has(header::ICMPV4) && !sums_up(0) {
        wrong.push("ICMP");
    }
    if has(header::SCTP) && upper[8..12] != checksum::sctp(upper) {
        wrong.push("SCTP");
    }
    wrong
}

fn tagged() -> impl Strategy<Value = PacketBuilder> {
    let tpid = prop_oneof![Just(0x8100u16), Just(0x88a8), Just(0x9100)];
    let tags =
        prop_oneof![4 => vec((tpid.clone(), any::<u16>()), 0..3), 1 => vec((tpid, any::<u16>()), 7..11)];
    (any::<[u8; 6]>(), any::<[u8; 6]>(), tags, prop::bool::weighted(0.1)).prop_map(
        |(dst, src, tags, snap)| {
            let tagged =
                tags.into_iter().fold(PacketBuilder::ethernet(dst, src), |b, (tpid, tci)| b.vlan(tpid, tci));
            if snap { tagged.snap() } else { tagged }
        },
    )
}

fn network() -> impl Strategy<Value = PacketBuilder> {
    let number =
        prop_oneof![Just(0u8), Just(43), Just(51), Just(60), Just(60), Just(135), Just(50), Just(59)];
    let extensions = prop_oneof![
        3 => Just(Vec::new()),
        2 => vec((number.clone(), vec(any::<u8>(), 6..30), any::<bool>()), 1..6),
        1 => vec((number, vec(any::<u8>(), 6..7), Just(false)), 14..19),
    ];
    (tagged(), 0..12u8, any::<[u8; 16]>(), any::<[u8; 16]>(), extensions, any::<u16>(), 0..3u16).prop_map(
        |(base, kind, a, b, extensions, bits, offset)| {
            let (src, dst) = ([a[0], a[1], a[2], a[3]], [b[0], b[1], b[2], b[3]]);
            match kind {
                0 => base.arp(bits, [a[0], a[1], a[2], a[3], a[4], a[5]], src, [3; 6], dst),
                1 => base.mpls(bits.into(), 3, a[0]).ipv4(src, dst),
                2 => base.mpls(bits.into(), 1, a[0]).mpls(7, 2, a[1]).ipv6(a, b),
                3 => base.ethertype(bits),
                4 => base.ipv4(src, dst).ipv4_options(&a[..usize::from(bits) % 16]).tos(a[9]),
                5 => base.ipv4(src, dst).ipv4_fragment(offset, bits & 1 == 1),
                6 | 7 => base.ipv4(src, dst).tos(a[8]).ttl(a[9]),
                _ => extensions.iter().fold(base.ipv6(a, b).tos(a[9]).flow_label(bits.into()), |base, e| {
                    let base = base.extension(e.0, &e.1);
                    if e.2 { base.ipv6_fragment(offset.saturating_sub(1), bits & 2 == 2, 9) } else { base }
                }),
            }
        },
    )
}

/// Generates well-formed frames of all protocols, with correct checksums.
pub(crate) fn well_formed() -> impl Strategy<Value = Vec<u8>> {
    (network(), 0..12u8, any::<[u8; 4]>(), vec(any::<u8>(), 0..40), 0..90usize).prop_map(
        |(base, kind, bytes, payload, pad)| {
            let (a, b) = (u16::from_be_bytes([bytes[0], bytes[1]]), u16::from_be_bytes([bytes[2], bytes[3]]));
            let target = [bytes[0]; 16];
            let upper = match kind {
                0 | 1 => base.tcp(a, b),
                2 | 3 => base.udp(a, b),
                4 => base.udp(a, b).no_udp_checksum(),
                5 => base.sctp(a, b, 77),
                6 => base.icmpv4(bytes[0], bytes[1], bytes),
                7 => base.icmpv6(bytes[0], bytes[1], bytes),
                8 => base.neighbour_solicitation(target).nd_option(bytes[1] % 3, &payload).nd_option(1, &SRC),
                9 => base.neighbour_advertisement(target).nd_option(2, &DST),
                10 => base.neighbour_solicitation(target).nd_option(1, &SRC),
                _ => base,
            };
            upper.payload(&payload).pad_to(pad).build()
        },
    )
}

/// Generates frames like [`well_formed`], but overwrites bytes and cuts off the end.
pub(crate) fn broken() -> impl Strategy<Value = Vec<u8>> {
    let changes = vec((any::<prop::sample::Index>(), prop_oneof![any::<u8>(), 0..8u8]), 0..4);
    (well_formed(), changes, any::<prop::sample::Index>(), any::<bool>()).prop_map(
        |(mut frame, changes, cut, is_cut)| {
            for (at, value) in changes {
                let at = at.index(frame.len());
                frame[at] = value;
            }
            if is_cut {
                frame.truncate(cut.index(frame.len() + 1));
            }
            frame
        },
    )
}
