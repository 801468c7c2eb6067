// SPDX-License-Identifier: Apache-2.0
//! Rule sets from files: access lists in the format of `ClassBench`, and routes with one prefix per line.

#[path = "ranges.rs"]
mod ranges;

use flow::{Field, FieldMatch, Match, Slice, SliceBase};
use ranges::range_prefixes;

/// Returns source and destination port as slices, because OpenFlow's port fields cannot be masked.
pub fn ports() -> Option<[Field; 2]> {
    let port = |offset| Slice::new(SliceBase::L4, offset, 16).ok().map(Field::Slice);
    Some([port(0)?, port(16)?])
}

/// Parses an access list and returns the matches of each rule, best rule first. OpenFlow has no port ranges,
/// so a rule has one match for each pair of prefixes in its two port ranges.
pub fn access_list(text: &str) -> Vec<Vec<Match>> {
    text.lines().filter(|line| line.starts_with('@')).filter_map(access_rule).collect()
}

/// Parses one line: `@src/len dst/len lo : hi lo : hi proto/mask ...`.
fn access_rule(line: &str) -> Option<Vec<Match>> {
    let parts: Vec<&str> = line[1..].split_whitespace().collect();
    let hex = |text: &str| u128::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let mut base = vec![FieldMatch::exact(Field::EthType, 0x0800)];
    base.push(prefix_match(Field::Ipv4Src, parts.first()?)?);
    base.push(prefix_match(Field::Ipv4Dst, parts.get(1)?)?);
    let (protocol, mask) = parts.get(8)?.split_once('/')?;
    let (protocol, mask) = (hex(protocol)?, hex(mask)?);
    if mask == 0xff {
        base.push(FieldMatch::exact(Field::IpProto, protocol));
    }
    if mask != 0xff || ![6, 17].contains(&protocol) {
        // OpenFlow can match ports only together with a protocol.
        return Some(vec![Match::new(base).ok()?]);
    }
    let [source, destination] = ports()?;
    let port_match =
        |field, (value, mask): (u16, u16)| FieldMatch { field, value: value.into(), mask: mask.into() };
    let port = |at: usize| parts.get(at)?.parse().ok();
    let mut made = Vec::new();
    for prefix in range_prefixes(port(2)?, port(4)?) {
        let source = port_match(source, prefix);
        for prefix in range_prefixes(port(5)?, port(7)?) {
            let destination = port_match(destination, prefix);
            made.push(Match::new(base.iter().copied().chain([source, destination])).ok()?);
        }
    }
    Some(made)
}

/// Parses routes, one `address/length` per line, IPv4 or IPv6.
pub fn routes(text: &str) -> Vec<Match> {
    text.lines().filter_map(route).collect()
}

fn route(line: &str) -> Option<Match> {
    let (ether_type, field) =
        if line.contains(':') { (0x86dd, Field::Ipv6Dst) } else { (0x0800, Field::Ipv4Dst) };
    Match::new([FieldMatch::exact(Field::EthType, ether_type), prefix_match(field, line)?]).ok()
}

/// Parses `address/length` as a field match.
fn prefix_match(field: Field, text: &str) -> Option<FieldMatch> {
    let (address, length) = text.trim().split_once('/')?;
    let value = match address.parse().ok()? {
        std::net::IpAddr::V4(address) => u128::from(u32::from(address)),
        std::net::IpAddr::V6(address) => u128::from(address),
    };
    let bits = u32::from(field.location().length_bits);
    let length: u32 = length.parse().ok()?;
    let full = field.full_mask();
    let mask = if length == 0 { 0 } else { full >> (bits - length) << (bits - length) };
    Some(FieldMatch { field, value: value & mask, mask })
}
