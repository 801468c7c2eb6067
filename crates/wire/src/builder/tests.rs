// SPDX-License-Identifier: Apache-2.0
//! Tests that built frames contain the requested fields, and that their checksums are valid.

use super::PacketBuilder;
use crate::layers::{exthdr, header};
use crate::{Depth, arp, checksum, icmpv6, ipv4, ipv6, locate, mpls, tcp, udp, vlan};

const MAC_A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const MAC_B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [10, 0, 0, 2];
const A6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const B6: [u8; 16] = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

fn ethernet() -> PacketBuilder {
    PacketBuilder::ethernet(MAC_B, MAC_A)
}

/// Returns one frame of each kind. The frames are also written to a capture, for inspection with tshark.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let hop: &[u8] = &[1, 4];
    let routed = [&[2, 1, 0, 0, 0, 0][..], &A6].concat();
    vec![
        ethernet()
            .ipv4(A, B)
            .tos(0xb8)
            .id(7)
            .tcp(1000, 80)
            .tcp_flags(tcp::SYN)
            .tcp_options(&[2, 4, 5, 0xb4])
            .build(),
        ethernet().vlan(vlan::C_TAG, 0x6005).ipv4(A, B).ttl(3).udp(53, 53).payload(b"odd").pad_to(64).build(),
        ethernet()
            .vlan(vlan::S_TAG, 1)
            .vlan(vlan::C_TAG, 2)
            .ipv4(A, B)
            .icmpv4(8, 0, [0, 1, 0, 2])
            .payload(&[1; 9])
            .build(),
        ethernet()
            .ipv4(A, B)
            .ipv4_options(&[7, 7, 4, 1, 2, 3, 4])
            .sctp(5, 6, 7)
            .payload(&[11, 0, 0, 4])
            .build(),
        ethernet().ipv4(A, B).udp(9, 9).no_udp_checksum().payload(&[0; 2]).build(),
        ethernet().snap().ipv4(A, B).tcp(1, 2).payload(&[3; 5]).build(),
        ethernet().arp(arp::REQUEST, MAC_A, A, [0; 6], B).pad_to(60).build(),
        ethernet().mpls(16, 1, 2).mpls(17, 3, 4).ipv4(A, B).udp(1, 2).build(),
        ethernet().ipv6(A6, B6).tos(0x2e).flow_label(0x12345).tcp(443, 555).payload(b"hello").build(),
        ethernet()
            .ipv6(A6, B6)
            .extension(ipv6::HOP_BY_HOP, hop)
            .extension(ipv6::DESTINATION, hop)
            .udp(7, 8)
            .payload(&[1])
            .build(),
        ethernet()
            .ipv6(A6, B6)
            .extension(ipv6::ROUTING, &routed)
            .extension(ipv6::AUTHENTICATION, &[0; 22])
            .tcp(7, 8)
            .build(),
        ethernet().ipv6(A6, B6).sctp(1, 2, 3).payload(&[11, 0, 0, 4]).build(),
        ethernet()
            .ipv6(A6, B6)
            .ttl(255)
            .neighbour_solicitation(B6)
            .nd_option(icmpv6::SOURCE_LINK_LAYER, &MAC_A)
            .build(),
        ethernet()
            .ipv6(A6, B6)
            .ttl(255)
            .neighbour_advertisement(A6)
            .nd_option(14, &[1; 6])
            .nd_option(icmpv6::TARGET_LINK_LAYER, &MAC_A)
            .build(),
        ethernet().ipv6(A6, B6).icmpv6(icmpv6::ECHO_REQUEST, 0, [0, 1, 0, 2]).payload(&[7; 11]).build(),
        ethernet()
            .ipv4(A, B)
            .udp(4000, 4789)
            .payload(&[8, 0, 0, 0, 0, 0, 5, 0])
            .payload(&ethernet().ipv6(A6, B6).udp(1, 2).build())
            .build(),
        ethernet().ipv6(A6, B6).ipv6_fragment(0, false, 9).udp(1, 2).payload(&[1, 2, 3]).build(),
        ethernet().ipv4(A, B).ipv4_fragment(100, true).id(9).proto(17).payload(&[5; 16]).build(),
    ]
}

/// Recomputes every checksum of the frame from the headers that `locate` found.
fn check(frame: &[u8]) {
    let layers = locate(frame, Depth::L4);
    let (l3, l4, end) = (layers.l3.into(), usize::from(layers.l4), layers.l4_end as usize);
    if layers.present & header::IP == 0 {
        return;
    }
    let len = (end.saturating_sub(l4)) as u32;
    let pseudo = if layers.present & header::IPV4 != 0 {
        let ip = ipv4::Packet::new_checked(&frame[l3..]).unwrap();
        assert!(ip.checksum_ok());
        checksum::pseudo_v4(ip.src(), ip.dst(), layers.ip_proto, len)
    } else {
        let ip = ipv6::Packet::new_checked(&frame[l3..]).unwrap();
        checksum::pseudo_v6(ip.src(), ip.final_dst(), layers.ip_proto, len)
    };
    let payload = &frame[l4..end];
    if layers.present & (header::TCP | header::ICMPV6) != 0 {
        assert_eq!(checksum::l4(pseudo, payload), 0);
    } else if layers.present & header::UDP != 0 {
        let datagram = udp::Datagram::new_checked(payload).unwrap();
        assert_eq!(usize::from(datagram.length()), payload.len());
        assert!(datagram.checksum() == 0 || checksum::l4(pseudo, payload) == 0);
    } else if layers.present & header::ICMPV4 != 0 {
        assert_eq!(checksum::l4(0, payload), 0);
    } else if layers.present & header::SCTP != 0 {
        assert_eq!(checksum::sctp(payload), payload[8..12]);
    }
}

#[test]
fn checksums_hold() {
    for frame in samples() {
        check(&frame);
    }
}

#[test]
fn headers_are_found_at_their_offsets() {
    use header::*;
    let expected = [
        (IPV4 | IP | TCP, 0x0800, 6),
        (VLAN | IPV4 | IP | UDP, 0x0800, 17),
        (VLAN | IPV4 | IP | ICMPV4, 0x0800, 1),
        (IPV4 | IP | SCTP, 0x0800, 132),
        (IPV4 | IP | UDP, 0x0800, 17),
        (IPV4 | IP | TCP, 0x0800, 6),
        (ARP, 0x0806, 0),
        (MPLS, 0x8847, 0),
        (IPV6 | IP | TCP, 0x86dd, 6),
        (IPV6 | IP | UDP, 0x86dd, 17),
        (IPV6 | IP | TCP, 0x86dd, 6),
        (IPV6 | IP | SCTP, 0x86dd, 132),
        (IPV6 | IP | ICMPV6 | ND | ND_SLL, 0x86dd, 58),
        (IPV6 | IP | ICMPV6 | ND | ND_TLL, 0x86dd, 58),
        (IPV6 | IP | ICMPV6, 0x86dd, 58),
        (IPV4 | IP | UDP, 0x0800, 17),
        (IPV6 | IP | UDP, 0x86dd, 17),
        (IPV4 | IP, 0x0800, 17),
    ];
    let samples = samples();
    assert_eq!(samples.len(), expected.len());
    for (index, (frame, expected)) in samples.iter().zip(expected).enumerate() {
        let layers = locate(frame, Depth::L4);
        assert_eq!((layers.present, layers.eth_type, layers.ip_proto), expected, "sample {index}");
    }
    assert_eq!(locate(&samples[10], Depth::L4).exthdr, exthdr::ROUTER | exthdr::AUTH);
}

#[test]
fn views_read_what_was_built() {
    let samples = samples();
    let ip = ipv4::Packet::new_checked(&samples[0][14..]).unwrap();
    assert_eq!((ip.dscp(), ip.ecn(), ip.id(), ip.ttl(), ip.src(), ip.dst()), (0x2e, 0, 7, 64, A, B));
    let segment = tcp::Segment::new_checked(ip.payload()).unwrap();
    assert_eq!((segment.src_port(), segment.dst_port(), segment.flags()), (1000, 80, tcp::SYN));
    assert_eq!((segment.header_len(), segment.payload().len()), (24, 0));
    let tag = vlan::Tag::new_checked(&samples[1][14..]).unwrap();
    assert_eq!((tag.pcp(), tag.vid(), tag.ethertype()), (3, 5, 0x0800));
    assert_eq!(samples[1].len(), 64);
    let body = arp::Packet::new_checked(&samples[6][14..]).unwrap();
    assert_eq!((body.operation(), body.sha(), body.spa(), body.tpa()), (arp::REQUEST, MAC_A, A, B));
    let outer = mpls::Entry::new_checked(&samples[7][14..]).unwrap();
    assert_eq!((outer.label(), outer.tc(), outer.bottom(), outer.ttl()), (16, 1, false, 2));
    let inner = mpls::Entry::new_checked(&samples[7][18..]).unwrap();
    assert_eq!((inner.label(), inner.tc(), inner.bottom(), inner.ttl()), (17, 3, true, 4));
    let ip = ipv6::Packet::new_checked(&samples[8][14..]).unwrap();
    assert_eq!((ip.traffic_class(), ip.flow_label(), ip.payload().len()), (0x2e, 0x12345, 25));
    let ip = ipv6::Packet::new_checked(&samples[9][14..]).unwrap();
    let mut headers = ip.extension_headers();
    let numbers: Vec<u8> = headers.by_ref().map(|header| header.number).collect();
    assert_eq!((numbers, headers.next_header(), headers.rest().len()), (vec![0, 60], 17, 9));
    let ip = ipv6::Packet::new_checked(&samples[10][14..]).unwrap();
    assert_eq!((ip.dst(), ip.final_dst()), (B6, A6));
    let neighbour = icmpv6::Neighbour::new_checked(&samples[13][54..]).unwrap();
    assert_eq!((neighbour.target(), neighbour.flags()), (A6, 0x6000_0000));
    let option = neighbour.options().last().unwrap();
    assert_eq!((option.kind, option.body), (icmpv6::TARGET_LINK_LAYER, &MAC_A[..]));
}

#[test]
fn views_write_what_they_read() {
    let mut word = [0u8; 4];
    let mut entry = mpls::Entry::new_checked(&mut word[..]).unwrap();
    entry.set_label(0xfffff);
    entry.set_tc(7);
    entry.set_bottom(true);
    entry.set_label(0x12345);
    entry.set_ttl(9);
    assert_eq!((entry.label(), entry.tc(), entry.bottom(), entry.ttl()), (0x12345, 7, true, 9));
    let mut tag = vlan::Tag::new_checked([0xff; 4]).unwrap();
    tag.set_vid(0xf005);
    tag.set_pcp(2);
    assert_eq!((tag.vid(), tag.pcp(), tag.tci()), (5, 2, 0x5005));
    let mut ip = ipv6::Packet::new_checked(samples()[8][14..].to_vec()).unwrap();
    ip.set_traffic_class(0xff);
    ip.set_flow_label(1);
    assert_eq!((ip.traffic_class(), ip.flow_label(), ip.first_word() >> 28), (0xff, 1, 6));
}

#[test]
fn malformed_headers_are_refused() {
    assert!(ipv4::Packet::new_checked(&[0x46; 20][..]).is_err());
    assert!(ipv6::Packet::new_checked(&[0x46; 40][..]).is_err());
    assert!(tcp::Segment::new_checked(&[0x40; 20][..]).is_err());
    let error = arp::Packet::new_checked(&[0; 10][..]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no ARP body for Ethernet and IPv4 in 10 bytes: truncated or inconsistent; at least 28 bytes are needed"
    );
}

#[test]
fn fields_without_their_header_change_nothing() {
    let plain = ethernet().ethertype(0x88b5).payload(&[1, 2]).build();
    let same =
        ethernet().ttl(1).tos(1).id(1).tcp_flags(1).flow_label(1).ethertype(0x88b5).payload(&[1, 2]).build();
    assert_eq!(plain, same);
}

/// The sample in the repository must equal the builder's output. `SHUNT_WRITE_SAMPLES=1 cargo test -p wire`
/// rewrites it.
#[test]
fn the_sample_in_the_repository_equals_the_output_of_the_builder() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/built.pcap");
    let made: Vec<(u64, Vec<u8>)> =
        (0u64..).map(|index| 1_700_000_000_000_000_001 + index * 1_000_000_003).zip(samples()).collect();
    if std::env::var_os("SHUNT_WRITE_SAMPLES").is_some() {
        let mut writer = crate::capture::CaptureWriter::create(path).unwrap();
        for (time_ns, frame) in &made {
            writer.write(*time_ns, 0, frame).unwrap();
        }
        writer.finish().unwrap();
    }
    let mut reader = crate::capture::CaptureReader::open(path).unwrap();
    for (time_ns, frame) in made {
        let packet = reader.next_packet().unwrap().unwrap();
        assert_eq!((packet.timestamp_ns, packet.bytes), (time_ns, &frame[..]));
    }
    assert!(reader.next_packet().unwrap().is_none());
}
