// SPDX-License-Identifier: Apache-2.0
//! Routing tables: `lpm` compared with `rte_fib` and `rte_fib6`.

use std::collections::HashSet;
use std::error::Error;
use std::net::IpAddr;

use engines::BitSet;
use engines::base::{Engine, Lookup};
use engines::lpm::{Lpm, Piece, Prefixes};
use engines::simd::Level;
use fastrand::Rng;
use flow::{Field, FieldMatch};
use shunt_bench::Bar;

use super::{BURST, Case, KEYS, Rows, ether_type, head};

/// Number of next hops, if several routes share a next hop.
const HOPS: u32 = 256;

/// Prefixes that lead to shared next hops, and are therefore not deletable rules.
#[derive(Debug)]
struct Shared(Prefixes);

impl Lookup for Shared {
    fn lookup(&self, keys: &[u64], _: &BitSet, slots: &mut [u32]) {
        self.0.lookup(keys, slots);
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

impl Case {
    /// Creates a case with `size` routes, evenly spread over a routing table. Keys are distinct addresses
    /// within the routes. With `shared`, routes lead to 256 next hops; otherwise each leads to its own entry.
    pub fn routes(
        name: &str,
        text: &str,
        version: u8,
        size: usize,
        shared: bool,
    ) -> Result<Self, Box<dyn Error>> {
        let (field, bits) = if version == 6 { (Field::Ipv6Dst, 128_u32) } else { (Field::Ipv4Dst, 32) };
        let all: Vec<(u128, u32)> = text.lines().filter_map(route).collect();
        let step = (all.len() / size).max(1);
        let mut routes: Vec<(u128, u32)> = all.into_iter().step_by(step).take(size).collect();
        routes.sort_by_key(|route| std::cmp::Reverse(route.1));
        let mut rows = Rows::new(&[Field::EthType, field])?;
        let mask_of = |length: u32| u128::MAX.checked_shl(bits - length).unwrap_or(0) & field.full_mask();
        for &(value, length) in &routes {
            rows.push([ether_type(version), FieldMatch { field, value, mask: mask_of(length) }]);
        }
        let (words, len) = (rows.plan.words(), rows.len());
        let pieces = Piece::of_field(&rows.plan, field);
        let hops: Vec<u32> = (0..len as u32).map(|route| route % HOPS).collect();
        let engine = || match shared {
            true => Engine::Foreign(Box::new(Shared(Prefixes::new(
                Level::found(),
                words,
                &pieces,
                &rows.values,
                &rows.masks,
                &hops,
            )))),
            false => Engine::Lpm(Lpm::new(words, &pieces, len, &rows.values, &rows.masks)),
        };
        let library = if version == 6 { "rte_fib6" } else { "rte_fib" };
        let mut made = Self::new(name, len, engine, (library, &["scalar", "avx512"]));
        made.batches = &[32, 8, 1];
        if size == usize::MAX && !shared {
            made.bars.push((BURST, Bar::AtLeast(1.2)));
        }
        let mut rng = Rng::with_seed(1);
        let (mut known, mut addresses) = (HashSet::new(), Vec::with_capacity(KEYS));
        while addresses.len() < KEYS {
            let (value, length) = routes[rng.usize(..routes.len())];
            let address = value | rng.u128(..) & field.full_mask() & !mask_of(length);
            // A table that covers few addresses has too few distinct addresses, so it may repeat some.
            if known.insert(address) || rng.u8(..64) == 0 {
                addresses.push(address);
            }
        }
        let exact = |&value: &u128| vec![ether_type(version), FieldMatch::exact(field, value)];
        made.keys_of(&rows.plan, addresses.iter().map(exact));
        let kind = match (version, shared) {
            (6, false) => b'F',
            (6, true) => b'S',
            (_, false) => b'f',
            (_, true) => b's',
        };
        made.file = head(kind, len, KEYS);
        // The library's input has left-aligned addresses.
        let up = 128 - bits;
        for (value, length) in &routes {
            made.file.extend((value << up).to_be_bytes());
            made.file.extend(length.to_le_bytes());
        }
        let bytes = bits as usize / 8;
        addresses.iter().for_each(|value| made.file.extend(&(value << up).to_be_bytes()[..bytes]));
        Ok(made)
    }
}

/// Parses `address/length`.
fn route(line: &str) -> Option<(u128, u32)> {
    let (address, length) = line.trim().split_once('/')?;
    let value = match address.parse().ok()? {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    };
    Some((value, length.parse().ok()?))
}
