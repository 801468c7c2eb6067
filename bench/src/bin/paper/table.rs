// SPDX-License-Identifier: Apache-2.0
//! Table under test: Shunt's trie, its keys, and the same data as a file for the DPDK libraries.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use fastrand::Rng;
use shunt_bench::paper::{AccessList, AclTrie, FiveTuple, LpmTrie, Route};

/// Number of distinct keys.
pub const KEYS: usize = 100_000;

/// Rules of the table.
pub enum Rules {
    /// Access list.
    Access(AccessList),
    /// IPv6 routes.
    Routes(Vec<Route>),
}

/// Trie of the table.
pub enum Trie {
    /// Trie for an access list.
    Acl(AclTrie),
    /// Trie for routes.
    Lpm(LpmTrie),
}

impl Trie {
    /// Builds the trie.
    pub fn new(rules: &Rules) -> Option<Self> {
        match rules {
            Rules::Access(list) => AclTrie::new(&list.rows().as_rows()).map(Self::Acl),
            Rules::Routes(routes) => LpmTrie::new(2, routes).map(Self::Lpm),
        }
    }

    /// Looks up keys.
    #[inline]
    pub fn lookup(&self, keys: &[u64], out: &mut [u32]) {
        match self {
            Self::Acl(trie) => trie.lookup(keys, out),
            Self::Lpm(trie) => trie.lookup(keys, out),
        }
    }

    /// Returns the size of the trie in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Acl(trie) => trie.bytes(),
            Self::Lpm(trie) => trie.bytes(),
        }
    }

    /// Returns the number of tries.
    pub fn tries(&self) -> usize {
        match self {
            Self::Acl(trie) => trie.tries(),
            Self::Lpm(_) => 1,
        }
    }
}

/// Keys that Shunt's trie and the DPDK library look up.
pub enum Packets {
    /// 5-tuples for an access list.
    Tuples(Vec<FiveTuple>),
    /// Addresses for routes.
    Addresses(Vec<u128>),
}

impl Rules {
    /// Draws a key for each of many random rules. Bits that the rule does not examine are random.
    pub fn draw(&self, rng: &mut Rng) -> Packets {
        match self {
            Self::Access(list) => Packets::Tuples((0..KEYS).map(|_| list.draw(rng)).collect()),
            Self::Routes(routes) => Packets::Addresses(
                (0..KEYS)
                    .map(|_| {
                        let route = routes[rng.usize(..routes.len())];
                        route.value | rng.u128(..).checked_shr(route.length.into()).unwrap_or(0)
                    })
                    .collect(),
            ),
        }
    }

    /// Returns the number of 64-bit words in the row of a key.
    pub fn words(&self) -> usize {
        match self {
            Self::Access(list) => list.words(),
            Self::Routes(_) => 2,
        }
    }

    /// Returns the number of rules.
    pub fn len(&self) -> usize {
        match self {
            Self::Access(list) => list.rules.len(),
            Self::Routes(routes) => routes.len(),
        }
    }

    /// Returns the keys in the form that Shunt's trie reads: a row of 64-bit words for each key.
    pub fn rows(&self, packets: &Packets) -> Vec<u64> {
        let mut rows = Vec::new();
        match (self, packets) {
            (Self::Access(list), Packets::Tuples(tuples)) => {
                tuples.iter().for_each(|tuple| list.push_row(tuple, &mut rows));
            }
            (_, Packets::Tuples(_)) => {}
            (_, Packets::Addresses(addresses)) => {
                rows.extend(addresses.iter().flat_map(|a| [(a >> 64) as u64, *a as u64]));
            }
        }
        rows
    }

    /// Writes rules and keys to a file that `bench/dpdk/libraries.c` reads.
    pub fn write(&self, packets: &Packets, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        match (self, packets) {
            (Self::Access(list), Packets::Tuples(tuples)) => file.write_all(&list.library_file(tuples))?,
            (Self::Routes(routes), Packets::Addresses(addresses)) => {
                for number in [u32::from(b'L'), self.len() as u32, KEYS as u32] {
                    file.write_all(&number.to_le_bytes())?;
                }
                for route in routes {
                    file.write_all(&route.value.to_be_bytes())?;
                    file.write_all(&u32::from(route.length).to_le_bytes())?;
                }
                addresses.iter().try_for_each(|address| file.write_all(&address.to_be_bytes()))?;
            }
            _ => return Err(io::Error::other("the packets are of another kind than the rules")),
        }
        file.flush()
    }
}
