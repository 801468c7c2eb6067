// SPDX-License-Identifier: Apache-2.0
//! Converts an IPv4 access list to IPv6.
//!
//! The conversion preserves how prefixes nest, and which lengths and ports are combined:
//! - The first 16 bits of an IPv4 address select a route of at most 48 bits, which is padded to 48 bits.
//! - The last 16 bits follow, so a prefix of 16 + n bits becomes a prefix of 48 + n bits.
//! - A host address is followed by an interface identifier that is derived from the address.
//! - A prefix shorter than 16 bits becomes "any", because its parts belong to different routes.
//! - Port ranges become prefixes, so that one rule may become several entries.

use super::routes::Prefix;
use super::rule::{Condition, Field, Rule, mix};
use crate::ranges::range_prefixes;

/// Fields of the scenario that an access list examines.
#[derive(Clone, Copy)]
pub(super) struct FiveTuple {
    pub src: usize,
    pub dst: usize,
    pub proto: usize,
    pub src_port: usize,
    pub dst_port: usize,
}

/// Returns the entries of the access list, best first. `copy` numbers the copies of a list that is used
/// several times; each copy has different networks.
pub(super) fn parse(text: &str, at: FiveTuple, fields: &[Field], routes: &[Prefix], copy: u64) -> Vec<Rule> {
    let nets: Vec<Prefix> = routes.iter().copied().filter(|route| route.length <= 48).collect();
    let rule = |line| entries(line, at, fields, &nets, copy).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix('@')).flat_map(rule).collect()
}

/// Parses `src/len dst/len lo : hi lo : hi proto/mask ...`.
fn entries(line: &str, at: FiveTuple, fields: &[Field], nets: &[Prefix], copy: u64) -> Option<Vec<Rule>> {
    let parts: Vec<&str> = line.split_whitespace().collect();
    let hex = |text: &str| u128::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (proto, mask) = parts.get(8)?.split_once('/')?;
    let (proto, has_proto) = (hex(proto)?, hex(mask)? == 0xff);
    let mut base = Vec::new();
    let mut put = |field: usize, value: u128, mask: u128| {
        if mask != 0 {
            base.push(Condition { field, value: value & mask, mask });
        }
    };
    for (field, text) in [(at.src, parts.first()?), (at.dst, parts.get(1)?)] {
        let (value, length) = address(text, nets, copy)?;
        put(field, value, fields[field].prefix(length));
    }
    if has_proto {
        put(at.proto, proto, 0xff);
    }
    let rule = |conditions| Rule { conditions, priority: 0, low_latency: true, leaves: None };
    if !has_proto || ![6, 17].contains(&proto) {
        return Some(vec![rule(base)]);
    }
    let port = |at: usize| parts.get(at)?.parse().ok();
    let mut made = Vec::new();
    for src in range_prefixes(port(2)?, port(4)?) {
        for dst in range_prefixes(port(5)?, port(7)?) {
            let ports = [(at.src_port, src), (at.dst_port, dst)].into_iter();
            let ports = ports.filter(|(_, (_, mask))| *mask != 0);
            let ports = ports.map(|(field, (value, mask))| Condition {
                field,
                value: value.into(),
                mask: mask.into(),
            });
            made.push(rule(base.iter().copied().chain(ports).collect()));
        }
    }
    Some(made)
}

/// Converts `a.b.c.d/length` to an IPv6 address and length.
fn address(text: &str, nets: &[Prefix], copy: u64) -> Option<(u128, u32)> {
    let (address, length) = text.split_once('/')?;
    let address = u32::from(address.parse::<std::net::Ipv4Addr>().ok()?);
    let length: u32 = length.parse().ok().filter(|length| *length <= 32)?;
    if length < 16 || nets.is_empty() {
        return Some((0, 0));
    }
    let high = u64::from(address >> 16) | copy << 16;
    let net = nets[(mix(high) % nets.len() as u64) as usize];
    // The padding to 48 bits depends on the IPv4 prefix, so that two networks mapped to one route differ.
    let fill = u128::from(mix(!high)) << 64 >> net.length;
    let network = (net.address | fill) >> 80 << 80 | u128::from(address & 0xffff) << 64;
    let host = u128::from(mix(u64::from(address)));
    Some(if length == 32 { (network | host, 128) } else { (network, 32 + length) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_become_prefixes() {
        assert_eq!(range_prefixes(0, 65_535), [(0, 0)]);
        assert_eq!(range_prefixes(53, 53), [(53, 0xffff)]);
        let all = range_prefixes(1_024, 65_535);
        assert_eq!(all.len(), 6);
        assert!((0..=65_535).all(|port| all.iter().any(|(v, m)| port & m == *v) == (port >= 1_024)));
    }

    /// A converted prefix contains another one if and only if the IPv4 prefixes did.
    #[test]
    fn nesting_is_kept() {
        let nets = [
            Prefix { address: 0x2a00 << 112, length: 20 },
            Prefix { address: 0x2001_0db8 << 96, length: 44 },
        ];
        let field = Field::address("x");
        let mut rng = fastrand::Rng::with_seed(3);
        let prefixes: Vec<(u32, u32)> = (0..300)
            .map(|_| {
                let length = rng.u32(16..=32);
                let address = 0x0a00_0000 | rng.u32(0..4) << 16 | rng.u32(0..16) << 12 | rng.u32(0..4) << 4;
                (address >> (32 - length) << (32 - length), length)
            })
            .collect();
        let holds = |a: (u32, u32), b: (u32, u32)| a.1 <= b.1 && (a.0 ^ b.0) >> (32 - a.1) == 0;
        let mapped: Vec<(u128, u128, u32)> = prefixes
            .iter()
            .map(|(a, l)| {
                let text = format!("{}/{l}", std::net::Ipv4Addr::from(*a));
                let (value, length) = address(&text, &nets, 0).unwrap();
                assert_eq!(value & !field.prefix(length), 0, "{text}");
                (value, field.prefix(length), length)
            })
            .collect();
        for (a, old) in mapped.iter().zip(&prefixes) {
            for (b, other) in mapped.iter().zip(&prefixes) {
                assert_eq!(a.2 <= b.2 && (a.0 ^ b.0) & a.1 == 0, holds(*old, *other), "{old:?} {other:?}");
            }
        }
    }
}
