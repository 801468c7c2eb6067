// SPDX-License-Identifier: Apache-2.0
//! Access lists: `mask` compared with `rte_acl`.

use std::error::Error;

use engines::base::Engine;
use engines::mask::Mask;
use fastrand::Rng;
use flow::{Field, FieldMatch};
use shunt_bench::Bar;
use shunt_bench::paper::{AccessList, FiveTuple};

use super::{Case, KEYS, Rows, ether_type, exact_fields, tuple_fields};

/// Names of the lists, their sizes, and the names of their files.
pub const LISTS: &[(&str, &str, &str)] = &[
    ("acl1", "1k", "1k"),
    ("acl2", "1k", "1k"),
    ("fw1", "1k", "1k"),
    ("fw2", "1k", "1k"),
    ("ipc1", "1k", "1k"),
    ("acl1", "10k", "10k"),
    ("acl2", "10k", "10k"),
    ("fw1", "10k", "10k"),
    ("fw2", "10k", "10k"),
    ("ipc1", "10k", "10k"),
    ("acl1", "100k", "100k.gen"),
    ("fw1", "100k", "100k.gen"),
    ("ipc1", "100k", "100k.gen"),
];

impl Case {
    /// Creates a case from an access list in `ClassBench` format. Addresses are converted to IPv6 if needed.
    pub fn access_list(name: &str, text: &str, version: u8) -> Result<Self, Box<dyn Error>> {
        let list = AccessList::parse(text);
        let list = if version == 6 { list.to_ipv6() } else { list };
        let fields = tuple_fields(version)?;
        let mut rows = Rows::new(&fields)?;
        let ternary = list.rows();
        let ternary = ternary.as_rows();
        let each = ternary.values.chunks_exact(ternary.words).zip(ternary.masks.chunks_exact(ternary.words));
        for (value, mask) in each {
            let (value, mask) = (unpacked(value), unpacked(mask));
            let conditions = fields[1..].iter().zip(value).zip(mask);
            let looked_at = conditions.filter(|(_, mask)| *mask != 0);
            let conditions = looked_at.map(|((&field, value), mask)| FieldMatch { field, value, mask });
            rows.push([ether_type(version)].into_iter().chain(conditions));
        }
        let mut rng = Rng::with_seed(1);
        let packets: Vec<FiveTuple> = (0..KEYS).map(|_| list.draw(&mut rng)).collect();
        let engine = || Engine::Mask(Mask::new(&rows.plan, rows.len(), &rows.values, &rows.masks));
        let mut made = Self::new(name, rows.len(), engine, ("rte_acl", &["avx2", "avx512"]));
        made.batches = &[32, 8, 1];
        made.bars = [(32, 0.8), (8, 2.0), (1, 2.0)].map(|(batch, least)| (batch, Bar::AtLeast(least))).into();
        made.rules = ternary.ids.to_vec();
        made.keys_of(&rows.plan, packets.iter().map(|packet| key_of(&fields, version, packet)));
        made.file = list.library_file(&packets);
        Ok(made)
    }
}

/// Unpacks addresses, protocol and ports of a row in the layout of `AccessList`.
fn unpacked(row: &[u64]) -> [u128; 5] {
    let wide = |at: usize| u128::from(row[at]) << 64 | u128::from(row[at + 1]);
    let (source, destination) = match row.len() {
        2 => (u128::from(row[0] >> 32), u128::from(row[0] & 0xffff_ffff)),
        _ => (wide(0), wide(2)),
    };
    let last = u128::from(row[row.len() - 1]);
    [source, destination, last >> 56, last >> 40 & 0xffff, last >> 24 & 0xffff]
}

/// Returns the fields of a packet of an access list. The addresses in `packet` are left-aligned.
fn key_of(fields: &[Field; 6], version: u8, packet: &FiveTuple) -> Vec<FieldMatch> {
    let down = if version == 6 { 0 } else { 96 };
    let addresses = packet.addresses.map(|address| address >> down);
    exact_fields(fields, version, &FiveTuple { addresses, ..*packet })
}
