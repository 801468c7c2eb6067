// SPDX-License-Identifier: Apache-2.0
//! Random frames with few distinct values, so that entries hit.

use fastrand::Rng;
use wire::PacketBuilder;

pub fn mac(rng: &mut Rng) -> [u8; 6] {
    match rng.u8(0..6) {
        0 => [1, 0, 0x5e, 0, 0, rng.u8(0..2)],
        _ => [2, 0, 0, 0, 0, rng.u8(1..5)],
    }
}

pub fn ipv6(rng: &mut Rng) -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
    (address[7], address[15]) = (rng.u8(0..3), rng.u8(0..3));
    address
}

fn l4(rng: &mut Rng) -> u16 {
    [53, 80, 443][rng.usize(0..3)]
}

/// Returns whether the RTL's parser finds other headers than the software: at most 2 VLAN tags, no SNAP, and
/// no IPv6 extension headers.
pub fn is_beyond_parser(frame: &[u8]) -> bool {
    let word = |at: usize| frame.get(at..at + 2).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]));
    let mut at = 12;
    let mut tags = 0;
    while matches!(word(at), 0x8100 | 0x88a8 | 0x9100) && frame.len() >= at + 6 {
        at += 4;
        tags += 1;
    }
    let snap = word(at) < 0x600 && frame.get(at + 2..at + 8) == Some(&[0xaa, 0xaa, 3, 0, 0, 0]);
    let extended = word(at) == 0x86dd
        && frame.get(at + 8).is_some_and(|next| matches!(next, 0 | 43 | 44 | 51 | 60 | 135));
    tags > 2 || snap || extended
}

pub fn frame(rng: &mut Rng) -> Vec<u8> {
    let mut b = PacketBuilder::ethernet(mac(rng), mac(rng));
    for _ in 0..[0, 0, 0, 1, 1, 2][rng.usize(0..6)] {
        b = b.vlan([0x8100, 0x88a8][rng.usize(0..2)], rng.u16(0..3) | u16::from(rng.u8(0..16)) << 12);
    }
    let ttl = [0, 1, 2, 64, 255][rng.usize(0..5)];
    b = match rng.u8(0..8) {
        0 => b.arp(rng.u16(1..3), mac(rng), [10, 0, 0, rng.u8(0..3)], mac(rng), [10, 0, 0, rng.u8(0..3)]),
        1 => b.ethertype([0x88b9, 0x0600, 0x8847, 0x0806, 0x0800][rng.usize(0..5)]),
        2 | 3 => b.ipv6(ipv6(rng), ipv6(rng)).tos(rng.u8(..)).ttl(ttl),
        _ => {
            let (net, host) = (rng.u8(0..3), rng.u8(0..3));
            let b = b.ipv4([10, 0, net, host], [10, rng.u8(0..2), rng.u8(0..3), rng.u8(0..3)]);
            let b = b.tos(rng.u8(0..4) << 2 | rng.u8(0..2)).ttl(ttl);
            match rng.u8(0..8) {
                0 => b.ipv4_fragment([0, 185][rng.usize(0..2)], true),
                1 => b.ipv4_options(&[1, 1, 1, 1]),
                _ => b,
            }
        }
    };
    b = match rng.u8(0..8) {
        0 => b.udp(l4(rng), l4(rng)).no_udp_checksum(),
        1 | 2 => b.udp(l4(rng), l4(rng)),
        3 => b.payload(&[rng.u8(0..3), rng.u8(0..3), rng.u8(0..3), 9, 9]),
        _ => b.tcp(l4(rng), l4(rng)),
    };
    let length = [0, 0, 20, 46, 100, 1300][rng.usize(0..6)];
    let payload: Vec<u8> = (0..length).map(|_| rng.u8(..)).collect();
    let mut frame = b.payload(&payload).build();
    // The headers of cut frames claim more than there is. An IP header behind two tags is not cut: after a
    // pop, the software would complete it by padding.
    if rng.u8(0..10) == 0 {
        frame.truncate(rng.usize(14..140).max(64));
    }
    // Minimum length of an Ethernet frame without FCS.
    frame.resize(frame.len().max(60), 0);
    frame
}
