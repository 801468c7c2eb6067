// SPDX-License-Identifier: Apache-2.0
//! Captures that are generated for a test.

use std::path::Path;
use wire::capture::CaptureWriter;
use wire::{PacketBuilder, vlan};

const HOST_A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const HOST_B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
const V4: ([u8; 4], [u8; 4]) = ([192, 168, 1, 10], [203, 0, 113, 5]);
const US: u64 = 1_000;
const MS: u64 = 1_000 * US;

fn between() -> PacketBuilder {
    PacketBuilder::ethernet(HOST_B, HOST_A)
}

fn tcp(src: u16, dst: u16, flags: u16) -> PacketBuilder {
    between().ipv4(V4.0, V4.1).ttl(60).tcp(src, dst).tcp_flags(flags).payload(b"a payload of odd length")
}

fn udp(src: u16, dst: u16) -> PacketBuilder {
    between().ipv4(V4.0, V4.1).ttl(60).udp(src, dst).payload(&[7; 40])
}

fn v6(last: u8) -> [u8; 16] {
    let mut address = [0; 16];
    (address[0], address[1], address[15]) = (0xfd, 0x10, last);
    address
}

/// Returns packets for the flows of `replay.flows`, in the order of its lines.
fn packets() -> Vec<Vec<u8>> {
    let slow = [0x01, 0x80, 0xc2, 0, 0, 0x0e];
    let group = PacketBuilder::ethernet([1, 0, 0x5e, 0, 0, 9], HOST_A).ipv4([10, 0, 0, 1], [224, 0, 0, 9]);
    let ptp = |first: u8| between().ethertype(0x88f7).payload(&[first, 2, 0, 44]).pad_to(60);
    let mpls = |label| between().mpls(label, 3, 9);
    let inner = |builder: PacketBuilder| builder.ipv4(V4.0, V4.1).ttl(33).udp(9, 10).payload(&[1; 9]);
    let stun = [&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42][..], &[5; 12]].concat();
    let builders = vec![
        between().vlan(vlan::C_TAG, 10).ipv4(V4.0, V4.1).tcp(1, 80).tcp_flags(0x10),
        between().vlan(vlan::S_TAG, 7).vlan(vlan::C_TAG, 9).ipv4(V4.0, V4.1).udp(5, 6),
        PacketBuilder::ethernet(slow, HOST_A).ethertype(0x88cc).payload(&[2; 60]),
        PacketBuilder::ethernet(slow, HOST_A).ethertype(0x8809).payload(&[2; 60]),
        PacketBuilder::ethernet([0xff; 6], HOST_A).arp(1, HOST_A, V4.0, [0; 6], V4.1),
        PacketBuilder::ethernet(HOST_A, HOST_B).arp(2, HOST_B, V4.1, HOST_A, V4.0),
        ptp(0x10),
        ptp(0x1b),
        inner(mpls(70).mpls(71, 1, 8)),
        inner(mpls(70)),
        inner(mpls(70).mpls(72, 1, 1).mpls(73, 1, 2)),
        between().ethertype(0x88e5).payload(&[0; 60]),
        between().ethertype(0x894f).payload(&[0; 60]),
        tcp(40_000, 80, 0x002),
        tcp(40_000, 5_000, 0x002),
        tcp(40_000, 443, 0x018),
        tcp(443, 40_000, 0x018),
        tcp(443, 40_000, 0x011),
        tcp(40_001, 102, 0x018).payload(&[3; 3]),
        tcp(502, 40_000, 0x018),
        tcp(40_000, 6_633, 0x018),
        tcp(40_000, 80, 0x018),
        tcp(40_000, 81, 0x018),
        udp(1_000, 53),
        udp(53, 1_000),
        udp(1_000, 4_789),
        udp(5_060, 5_060),
        udp(319, 319),
        udp(1_000, 1_001).tos(0x22),
        udp(1_000, 1_001).tos(0x21),
        udp(1_000, 1_001),
        udp(1_000, 1_001).ttl(1),
        between().ipv4(V4.0, V4.1).ttl(60).no_checksum_udp(),
        between().ipv4(V4.0, V4.1).udp(3, 3_478).payload(&stun),
        between().ipv6(v6(1), v6(2)).udp(5, 6).payload(&[1; 30]),
        between().ipv6(v6(1), [0xff; 16]).extension(0, &[1, 4, 0, 0, 0, 0]).udp(5, 6).payload(&[1; 31]),
        between().ipv6(v6(1), v6(2)).ttl(1).udp(5, 6),
        between().ipv6(v6(1), v6(2)).tcp(5, 6),
        between().ipv6(v6(1), v6(2)).neighbour_solicitation(v6(2)).nd_option(1, &HOST_A),
        between().ipv4(V4.0, V4.1).icmpv4(8, 0, [0, 1, 0, 1]).payload(&[9; 9]),
        between().ipv4(V4.0, V4.1).icmpv4(0, 0, [0, 1, 0, 1]).payload(&[9; 9]),
        between().ipv4([10, 9, 9, 9], V4.1).sctp(5, 6, 77).payload(&[9; 16]),
        between().ipv4(V4.0, V4.1).ipv4_options(&[1, 1, 1, 0]).tcp(7, 443).tcp_flags(0x10).payload(b"x"),
        between().ipv4([10, 9, 9, 9], V4.1).ipv4_fragment(8, true).proto(17).payload(&[4; 64]),
        group.udp(520, 520).tos(0x21).payload(&[0; 24]),
        between().ethertype(0x9000).payload(&[0; 46]),
        PacketBuilder::ethernet(HOST_B, HOST_A).snap().ipv4(V4.0, V4.1).udp(1, 2),
        between().ipv4(V4.0, V4.1).tcp(1, 443).tcp_flags(0x10).payload(&[6; 9_000]),
    ];
    builders.into_iter().map(PacketBuilder::build).collect()
}

trait NoChecksum {
    fn no_checksum_udp(self) -> Self;
}

impl NoChecksum for PacketBuilder {
    fn no_checksum_udp(self) -> Self {
        self.udp(1_000, 1_003).no_udp_checksum().payload(&[2; 12])
    }
}

/// Writes each packet in several forms: complete, cut short on the wire, and captured in part. Some packets
/// are out of order, and some are too short or too long for any switch.
pub fn write(path: &Path) {
    let mut writer = CaptureWriter::create(path).unwrap();
    let mut time_ns = 1_700_000_000_000 * MS;
    for round in 0..6_u64 {
        for (at, packet) in packets().iter().enumerate() {
            time_ns += if at % 11 == 0 { 3 * MS } else { 2 * US };
            let stamp = if at % 13 == 5 { time_ns - 5 * US } else { time_ns };
            let len = match round {
                1 => packet.len().min(14 + 7 * at % 60),
                _ => packet.len(),
            };
            let original = if round == 2 && at % 3 == 0 { len as u32 + 100 } else { len as u32 };
            writer.write(stamp, original, &packet[..len]).unwrap();
        }
        time_ns += 700 * MS;
    }
    for len in [0, 1, 13, 14, 65_600, 65_601, 200_000] {
        let mut bytes = vec![0; len];
        bytes.iter_mut().skip(12).take(2).zip([8, 0]).for_each(|(byte, to)| *byte = to);
        writer.write(time_ns, 0, &bytes).unwrap();
    }
    writer.finish().unwrap();
}

/// Writes a packet at each of these times, given in milliseconds. The boolean selects packets from the
/// receiver back to the sender.
pub fn write_at(path: &Path, packets: &[(u64, bool)]) {
    let mut writer = CaptureWriter::create(path).unwrap();
    for (time_ms, back) in packets {
        let (to, from) = if *back { (HOST_A, HOST_B) } else { (HOST_B, HOST_A) };
        let packet = PacketBuilder::ethernet(to, from).ipv4(V4.0, V4.1).udp(1, 2).build();
        writer.write(1_000_000 * MS + time_ms * MS, packet.len() as u32, &packet).unwrap();
    }
    writer.finish().unwrap();
}

/// Writes a pcapng file with three interfaces. `interfaces` holds the interface of each packet.
pub fn write_interfaces(path: &Path, interfaces: &[u32]) {
    let block = |kind: u32, body: &[u8]| {
        let len = (body.len() + 12) as u32;
        [&kind.to_le_bytes()[..], &len.to_le_bytes(), body, &len.to_le_bytes()].concat()
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut file = block(0x0a0d_0d0a, &words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    for _ in 0..3 {
        file.extend(block(1, &words(&[1, 0])));
    }
    let packet = udp(1, 2).payload(&[0; 2]).build();
    for (time_us, interface) in (1..).zip(interfaces) {
        let len = packet.len() as u32;
        let body = [words(&[*interface, 0, time_us, len, len]), packet.clone()].concat();
        assert_eq!(body.len() % 4, 0);
        file.extend(block(6, &body));
    }
    std::fs::write(path, file).unwrap();
}
