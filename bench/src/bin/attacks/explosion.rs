// SPDX-License-Identifier: Apache-2.0
//! Traffic crafted to touch every mask. For each bit of a rule, one packet agrees with the rule up to that
//! bit and differs in it. In a switch with a wildcard cache, these packets create a mask for each bit, and
//! later lookups search all masks.

use std::fmt::Write;

use fastrand::Rng;
use shunt_bench::paper::{AccessList, AccessRule, FiveTuple, Prefix};
use wire::PacketBuilder;

/// Returns the rules that can be expressed without port ranges: each port is exact or a wildcard.
pub fn sayable(list: &AccessList) -> Vec<AccessRule> {
    let is_sayable = |rule: &&AccessRule| {
        let ports = rule.ports.iter().all(|(low, high)| low == high || (*low, *high) == (0, u16::MAX));
        ports && matches!(rule.protocol, Some(6 | 17))
    };
    list.rules.iter().filter(is_sayable).copied().collect()
}

/// Formats the rules as low-latency entries, best first, followed by a normal entry for other traffic. All
/// entries output to port 2.
pub fn flows(rules: &[AccessRule]) -> String {
    let mut text = String::from("priority=1,ip,actions=output:2\n");
    for (n, rule) in rules.iter().enumerate() {
        let protocol = if rule.protocol == Some(6) { "tcp" } else { "udp" };
        // Formatting to a string cannot fail.
        let _ = write!(text, "low_latency,priority={},{protocol}", 60_000 - n);
        for (name, (bits, length)) in ["nw_src", "nw_dst"].into_iter().zip(rule.addresses) {
            if length > 0 {
                let _ = write!(text, ",{name}={}/{length}", std::net::Ipv4Addr::from((bits >> 96) as u32));
            }
        }
        for (name, (low, high)) in ["tp_src", "tp_dst"].into_iter().zip(rule.ports) {
            if low == high {
                let _ = write!(text, ",{name}={low}");
            }
        }
        text += ",actions=output:2\n";
    }
    text
}

/// Returns a packet that hits a rule.
pub fn hitting(rng: &mut Rng, rule: &AccessRule) -> FiveTuple {
    let address = |rng: &mut Rng, (bits, length): Prefix| {
        bits | u128::from(rng.u32(..).checked_shr(length.into()).unwrap_or(0)) << 96
    };
    FiveTuple {
        addresses: [address(rng, rule.addresses[0]), address(rng, rule.addresses[1])],
        ports: rule.ports.map(|(low, high)| rng.u16(low..=high)),
        protocol: rule.protocol.unwrap_or(17),
    }
}

/// Returns, for each rule and each bit it examines, a packet that agrees with the rule up to that bit only.
pub fn crafted(rng: &mut Rng, rules: &[AccessRule]) -> Vec<FiveTuple> {
    let mut made = Vec::new();
    for rule in rules {
        for side in 0..2 {
            for bit in 0..rule.addresses[side].1 {
                let mut packet = hitting(rng, rule);
                let behind = (u128::MAX >> bit >> 1) >> 96 << 96;
                packet.addresses[side] ^= (1 << (127 - bit)) | rng.u128(..) & behind;
                made.push(packet);
            }
            if rule.ports[side].0 == rule.ports[side].1 {
                for bit in 0..16 {
                    let mut packet = hitting(rng, rule);
                    packet.ports[side] ^= 1 << bit;
                    made.push(packet);
                }
            }
        }
    }
    made
}

/// Returns a packet of an ordinary new flow.
pub fn ordinary(rng: &mut Rng) -> FiveTuple {
    let mut address = || u128::from(rng.u32(..)) << 96;
    let addresses = [address(), address()];
    FiveTuple { addresses, ports: [rng.u16(..), rng.u16(..)], protocol: if rng.bool() { 6 } else { 17 } }
}

/// Returns the bytes of a packet: 64 bytes on the wire.
pub fn bytes(packet: &FiveTuple) -> Vec<u8> {
    let [source, destination] = packet.addresses.map(|address| ((address >> 96) as u32).to_be_bytes());
    let made = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ipv4(source, destination);
    let [from, to] = packet.ports;
    let made = if packet.protocol == 6 { made.tcp(from, to) } else { made.udp(from, to) };
    made.pad_to(60).build()
}
