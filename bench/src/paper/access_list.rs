// SPDX-License-Identifier: Apache-2.0
//! Access lists of 5-tuples, parsed from the `ClassBench` format. The lists are for IPv4 and can be converted
//! to IPv6, or to ternary rows for a trie.

use fastrand::Rng;

use super::TernaryRows;
use crate::ranges::range_prefixes;

/// Inclusive range of ports.
pub type Ports = (u16, u16);

/// Prefix: left-aligned bits of an address, and the prefix length.
pub type Prefix = (u128, u8);

/// Rule of an access list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessRule {
    /// Prefixes of source and destination address.
    pub addresses: [Prefix; 2],
    /// Ranges of source and destination port.
    pub ports: [Ports; 2],
    /// Protocol, or `None` for any protocol.
    pub protocol: Option<u8>,
}

/// Fields of a packet that a rule examines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FiveTuple {
    /// Source and destination address, left-aligned.
    pub addresses: [u128; 2],
    /// Source and destination port.
    pub ports: [u16; 2],
    /// Upper-layer protocol.
    pub protocol: u8,
}

/// Rules of one address family, best first.
#[derive(Clone, Debug)]
pub struct AccessList {
    /// Length of an address in bits: 32 or 128.
    pub address_bits: u8,
    /// Rules, best first.
    pub rules: Vec<AccessRule>,
}

impl AccessList {
    /// Parses a list with one rule per line: `@src/len dst/len lo : hi lo : hi proto/mask ...`. Other lines
    /// are ignored.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        Self { address_bits: 32, rules: text.lines().filter_map(parse_rule).collect() }
    }

    /// Converts the list to IPv6: each IPv4 prefix follows 2001:db8::/32. Hosts get an interface identifier
    /// that depends only on their address.
    #[must_use]
    pub fn to_ipv6(&self) -> Self {
        let address = |(bits, length): Prefix| {
            let host = u64::from((bits >> 96) as u32 ^ 0x9e37).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            match length {
                32 => (0x2001_0db8 << 96 | bits >> 32 | u128::from(host), 128),
                _ => (0x2001_0db8 << 96 | bits >> 32, length + 32),
            }
        };
        let rule = |rule: &AccessRule| AccessRule { addresses: rule.addresses.map(address), ..*rule };
        Self { address_bits: 128, rules: self.rules.iter().map(rule).collect() }
    }

    /// Returns the number of words per row.
    #[must_use]
    pub fn words(&self) -> usize {
        if self.address_bits == 32 { 2 } else { 5 }
    }

    /// Returns ternary rows with values, masks and ids (a rule's index). A rule has a row for each
    /// combination of the prefixes into which its port ranges are divided.
    #[must_use]
    pub fn rows(&self) -> Rows {
        let mut rows = Rows { words: self.words(), values: Vec::new(), masks: Vec::new(), ids: Vec::new() };
        for (id, rule) in (0..).zip(&self.rules) {
            let [sources, destinations] = rule.ports.map(|(low, high)| range_prefixes(low, high));
            for &(source, source_mask) in &sources {
                for &(destination, destination_mask) in &destinations {
                    let value = FiveTuple {
                        addresses: rule.addresses.map(|address| address.0),
                        ports: [source, destination],
                        protocol: rule.protocol.unwrap_or(0),
                    };
                    let mask = FiveTuple {
                        addresses: rule.addresses.map(|address| prefix_mask(address.1)),
                        ports: [source_mask, destination_mask],
                        protocol: if rule.protocol.is_some() { u8::MAX } else { 0 },
                    };
                    self.push_row(&value, &mut rows.values);
                    self.push_row(&mask, &mut rows.masks);
                    rows.ids.push(id);
                }
            }
        }
        rows
    }

    /// Appends a packet's row: addresses, then protocol and ports.
    pub fn push_row(&self, packet: &FiveTuple, row: &mut Vec<u64>) {
        let [source, destination] = packet.addresses;
        match self.address_bits {
            32 => row.push((source >> 64) as u64 | (destination >> 96) as u64),
            _ => row.extend([source, destination].into_iter().flat_map(|a| [(a >> 64) as u64, a as u64])),
        }
        let [source, destination] = packet.ports.map(u64::from);
        row.push(u64::from(packet.protocol) << 56 | source << 40 | destination << 24);
    }

    /// Returns a packet for a random rule, which may hit a better rule instead.
    #[must_use]
    pub fn draw(&self, rng: &mut Rng) -> FiveTuple {
        let Some(rule) = rng.choice(&self.rules) else {
            return FiveTuple { addresses: [0; 2], ports: [0; 2], protocol: 0 };
        };
        let family = prefix_mask(self.address_bits);
        FiveTuple {
            addresses: rule
                .addresses
                .map(|(bits, length)| bits | rng.u128(..) & !prefix_mask(length) & family),
            ports: rule.ports.map(|(low, high)| rng.u16(low..=high)),
            protocol: rule.protocol.unwrap_or_else(|| rng.u8(..)),
        }
    }

    /// Returns the list and packets in the format of `bench/dpdk/libraries.c`.
    #[must_use]
    pub fn library_file(&self, packets: &[FiveTuple]) -> Vec<u8> {
        let kind = if self.address_bits == 32 { b'4' } else { b'6' };
        let mut file = Vec::new();
        for number in [u32::from(kind), self.rules.len() as u32, packets.len() as u32] {
            file.extend(number.to_le_bytes());
        }
        for rule in &self.rules {
            file.extend(rule.addresses.iter().flat_map(|(bits, _)| bits.to_be_bytes()));
            let (protocol, mask) = rule.protocol.map_or((0, 0), |protocol| (protocol, u8::MAX));
            let [(_, source), (_, destination)] = rule.addresses;
            file.extend([source, destination, protocol, mask]);
            file.extend(
                rule.ports.iter().flat_map(|(low, high)| [low.to_le_bytes(), high.to_le_bytes()]).flatten(),
            );
        }
        for packet in packets {
            file.extend(packet.addresses.iter().flat_map(|bits| bits.to_be_bytes()));
            file.extend(packet.ports.iter().flat_map(|port| port.to_be_bytes()));
            file.extend([packet.protocol, 0, 0, 0]);
        }
        file
    }

    /// Returns the first rule that a packet matches, by linear search.
    #[must_use]
    pub fn first(&self, packet: &FiveTuple) -> Option<u32> {
        let at = self.rules.iter().position(|rule| rule.matches(packet))?;
        u32::try_from(at).ok()
    }
}

impl AccessRule {
    fn matches(&self, packet: &FiveTuple) -> bool {
        let mut addresses = self.addresses.iter().zip(packet.addresses);
        let mut ports = self.ports.iter().zip(packet.ports);
        addresses.all(|((bits, length), address)| address & prefix_mask(*length) == *bits)
            && ports.all(|((low, high), port)| (low..=high).contains(&&port))
            && self.protocol.is_none_or(|protocol| protocol == packet.protocol)
    }
}

/// Ternary rows that own their memory.
#[derive(Clone, Debug)]
pub struct Rows {
    words: usize,
    values: Vec<u64>,
    masks: Vec<u64>,
    ids: Vec<u32>,
}

impl Rows {
    /// Returns the rows in the form that a trie accepts.
    #[must_use]
    pub fn as_rows(&self) -> TernaryRows<'_> {
        TernaryRows { words: self.words, values: &self.values, masks: &self.masks, ids: &self.ids }
    }
}

fn parse_rule(line: &str) -> Option<AccessRule> {
    let parts: Vec<&str> = line.strip_prefix('@')?.split_whitespace().collect();
    let address = |text: &str| {
        let (address, length) = text.split_once('/')?;
        let (address, length) = (address.parse::<std::net::Ipv4Addr>().ok()?, length.parse().ok()?);
        (length <= 32).then(|| (u128::from(u32::from(address)) << 96 & prefix_mask(length), length))
    };
    let port = |at: usize| Some((parts.get(at)?.parse().ok()?, parts.get(at + 2)?.parse().ok()?));
    let hex = |text: &str| u8::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    let (protocol, mask) = parts.get(8)?.split_once('/')?;
    Some(AccessRule {
        addresses: [address(parts.first()?)?, address(parts.get(1)?)?],
        ports: [port(2)?, port(5)?],
        protocol: if hex(mask)? == u8::MAX { Some(hex(protocol)?) } else { None },
    })
}

fn prefix_mask(length: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}
