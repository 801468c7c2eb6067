// SPDX-License-Identifier: Apache-2.0
//! Rules of table 2: routes of a real table by destination address, or hosts by destination MAC address.

use std::net::Ipv6Addr;

use super::rule::{Condition, Field, Rule, mix};
use super::{BLOCKS, PORTS};

/// Prefix of IPv6 addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    pub address: u128,
    pub length: u32,
}

/// Parses routes, one `address/length` per line.
pub(super) fn parse(text: &str) -> Vec<Prefix> {
    let prefix = |line: &str| {
        let (address, length) = line.trim().split_once('/')?;
        let address = u128::from(address.parse::<Ipv6Addr>().ok()?);
        Some(Prefix { address, length: length.parse().ok().filter(|length| (1..=128).contains(length))? })
    };
    text.lines().filter_map(prefix).collect()
}

/// Returns `count` elements that are evenly spread over the list, or the whole list if it is shorter.
pub(super) fn spread<T: Copy>(all: &[T], count: usize) -> Vec<T> {
    let count = count.min(all.len());
    (0..count).map(|n| all[n * all.len() / count.max(1)]).collect()
}

/// Returns the MAC address of one of 16 neighbours at random, and the port that leads there.
fn leaves(seed: u64) -> Option<(u128, u32)> {
    let word = mix(seed);
    let port = 2 + (word % u64::from(PORTS)) as u32;
    Some((0x0600_0000_0000 | u128::from(port) << 8 | u128::from(word >> 32 & 15), port))
}

/// Returns a forwarding table of prefixes, longest first, with a default route at the end.
pub(super) fn by_prefix(routes: &[Prefix], field: usize, of: Field) -> Vec<Rule> {
    let mut routes = routes.to_vec();
    routes.sort_by_key(|route| (std::cmp::Reverse(route.length), route.address));
    let mut rules: Vec<Rule> = routes
        .iter()
        .map(|route| Rule {
            conditions: vec![Condition { field, value: route.address, mask: of.prefix(route.length) }],
            priority: 100 + route.length as u16,
            low_latency: true,
            leaves: leaves((route.address >> 64) as u64),
        })
        .collect();
    rules.push(Rule { conditions: Vec::new(), priority: 1, low_latency: true, leaves: leaves(0) });
    rules
}

/// Returns the MAC address of host `n`, in one of the blocks of table 0.
pub(super) fn host(n: usize) -> u128 {
    let block = n as u128 % BLOCKS;
    // These 20 bits identify a host of a block. Multiplication by an odd factor scatters successive hosts,
    // one-to-one.
    let within = (n as u128 / BLOCKS).wrapping_mul(0x9_e377) & 0xf_ffff;
    0x0200_0000_0000 | block << 20 | within
}

/// Returns a forwarding table of destination MAC addresses.
pub(super) fn by_host(count: usize, field: usize, of: Field) -> Vec<Rule> {
    (0..count)
        .map(|n| Rule {
            conditions: vec![Condition { field, value: host(n), mask: of.full() }],
            priority: 100,
            low_latency: true,
            leaves: leaves(n as u64),
        })
        .collect()
}
