// SPDX-License-Identifier: Apache-2.0
//! The server scenario: destination MAC and EtherType (mask), an IPv6 5-tuple ACL (mask), an IPv6 FIB (lpm).

use fastrand::Rng;
use std::fmt::Write;
use std::net::Ipv6Addr;
use wire::PacketBuilder;

/// Rules and packets.
pub struct Scenario {
    pub flows: String,
    pub packets: Vec<Vec<u8>>,
}

/// `rules` entries in the ACL and as many routes; `flows` different packets of `bytes` bytes, each of which hits
/// low-latency entries only.
pub fn server(rules: usize, flows: usize, bytes: usize, seed: u64) -> Scenario {
    let mut rng = Rng::with_seed(seed);
    let mut text = String::new();
    let macs: Vec<u64> = (0..64).map(|n| 0x0200_0000_0000 | n << 20).collect();
    for mac in &macs {
        let [.., a, b, c, d, e, f] = mac.to_be_bytes();
        let _ = writeln!(
            text,
            "low_latency,priority=20,ipv6,dl_dst={a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}/ff:ff:ff:f0:00:00,actions=goto_table:1"
        );
        let _ =
            writeln!(text, "priority=10,dl_dst={a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x},actions=drop");
    }
    let prefix = |rng: &mut Rng, lengths: &[u32]| {
        let length = lengths[rng.usize(0..lengths.len())];
        let mask = u128::MAX.checked_shl(128 - length).unwrap_or(0);
        ((0x2001_0db8 << 96 | rng.u128(..) >> 32) & mask, mask, length)
    };
    let mut acl = Vec::new();
    for n in 0..rules {
        let src = prefix(&mut rng, &[0, 32, 40, 48, 56, 64, 64, 96, 128]);
        let dst = prefix(&mut rng, &[32, 40, 48, 48, 56, 64, 64, 96, 128, 128]);
        let proto = if rng.bool() { "tcp6" } else { "udp6" };
        let port = rng.u16(1..1_024);
        let to = match rng.u8(0..4) {
            0 => String::new(),
            _ => format!(",tp_dst={port}"),
        };
        let _ = writeln!(
            text,
            "low_latency,table=1,priority={},{proto},ipv6_src={}/{},ipv6_dst={}/{}{to},actions=goto_table:2",
            60_000 - n % 50_000,
            Ipv6Addr::from(src.0),
            src.2,
            Ipv6Addr::from(dst.0),
            dst.2
        );
        acl.push((src, dst, proto == "tcp6", port));
        let route = prefix(&mut rng, &[32, 36, 40, 44, 48, 48, 48, 56, 64]);
        let _ = writeln!(
            text,
            "low_latency,table=2,priority={},ipv6,ipv6_dst={}/{},actions=output:2",
            100 + route.2,
            Ipv6Addr::from(route.0),
            route.2
        );
    }
    let _ = writeln!(text, "low_latency,table=2,priority=1,ipv6,actions=output:2");
    let packets = (0..flows)
        .map(|_| {
            let (src, dst, is_tcp, port) = acl[rng.usize(0..acl.len())];
            let mac = macs[rng.usize(0..macs.len())] | rng.u64(1..1 << 16);
            let [_, _, mac @ ..] = mac.to_be_bytes();
            let src = (src.0 | rng.u128(..) & !src.1).to_be_bytes();
            let dst = (dst.0 | rng.u128(..) & !dst.1).to_be_bytes();
            let packet = PacketBuilder::ethernet(mac, [2, 0, 0, 0, 0, 9]).ipv6(src, dst);
            let packet =
                if is_tcp { packet.tcp(rng.u16(1_024..), port) } else { packet.udp(rng.u16(1_024..), port) };
            let mut packet = packet.build();
            packet.resize(bytes.max(packet.len()), 0);
            packet
        })
        .collect();
    Scenario { flows: text, packets }
}
