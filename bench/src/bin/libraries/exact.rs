// SPDX-License-Identifier: Apache-2.0
//! Exact values: `exact` compared with `rte_hash`.

use std::collections::HashSet;
use std::error::Error;

use engines::base::Engine;
use engines::exact::Exact;
use fastrand::Rng;
use flow::{Field, FieldMatch};
use shunt_bench::Bar;

use super::{BURST, Case, KEYS, Rows, head};

/// Number of keys between two clock readings. The lookups of a burst take no longer than one clock reading.
/// `bench/dpdk/libraries.c` uses the same number.
const TURN: usize = 256;

/// Fields of the entries, and the lengths of a row and of the library's key in bytes.
pub struct Layout {
    /// Name of the layout. In reports, it follows the number of entries.
    pub name: &'static str,
    fields: fn() -> Result<Vec<Field>, Box<dyn Error>>,
    row_bytes: usize,
    key_bytes: usize,
}

/// Measured layouts. A row of a 5-tuple has one word more than the library's key: the headers' presence bits.
pub const LAYOUTS: &[Layout] = &[
    Layout {
        name: "MAC pairs in VLANs, rows of 16 bytes by keys of 16",
        fields: || Ok(vec![Field::EthDst, Field::EthSrc, Field::VlanVid, Field::EthType]),
        row_bytes: 16,
        key_bytes: 16,
    },
    Layout {
        name: "5-tuples, IPv4, rows of 24 bytes by keys of 16",
        fields: || tuple(4),
        row_bytes: 24,
        key_bytes: 16,
    },
    Layout {
        name: "MAC pairs in tunnels with metadata, rows of 40 bytes by keys of 40",
        fields: || {
            use Field::{EthDst, EthSrc, EthType, InPort, Metadata, TunnelId, VlanVid};
            Ok(vec![EthDst, EthSrc, VlanVid, EthType, Metadata, TunnelId, InPort])
        },
        row_bytes: 40,
        key_bytes: 40,
    },
    Layout {
        name: "5-tuples, IPv6, rows of 48 bytes by keys of 40",
        fields: || tuple(6),
        row_bytes: 48,
        key_bytes: 40,
    },
];

/// Returns the fields of a 5-tuple: addresses, ports, protocol, and `EtherType`, which is constant.
fn tuple(version: u8) -> Result<Vec<Field>, Box<dyn Error>> {
    let [ether_type, source, destination, protocol, from, to] = super::tuple_fields(version)?;
    Ok(vec![source, destination, from, to, protocol, ether_type])
}

impl Case {
    /// Creates a case with `size` random entries of a layout, and as many keys drawn from the entries.
    pub fn exact(name: &str, layout: &Layout, size: usize) -> Result<Self, Box<dyn Error>> {
        let fields = (layout.fields)()?;
        let mut rows = Rows::new(&fields)?;
        let mut rng = Rng::with_seed(1);
        let mut seen = HashSet::new();
        let mut entries = Vec::new();
        while entries.len() < size {
            let values: Vec<u128> = fields.iter().map(|field| value(&mut rng, *field, layout)).collect();
            if seen.insert(values.clone()) {
                entries.push(values);
            }
        }
        let matches = |values: &[u128]| -> Vec<FieldMatch> {
            fields.iter().zip(values).map(|(field, value)| FieldMatch::exact(*field, *value)).collect()
        };
        entries.iter().for_each(|values| rows.push(matches(values)));
        let (words, len) = (rows.plan.words(), rows.len());
        if words * 8 != layout.row_bytes {
            return Err(format!("{name}: rows have {words} words").into());
        }
        let values = std::mem::take(&mut rows.values);
        let engine = || Engine::Exact(Exact::new(words, &rows.masks[..words], values, len, len));
        let mut made = Self::new(name, len, engine, ("rte_hash", &["bulk"]));
        made.batches = &[32, 8, 1];
        (made.turn, made.warm) = (TURN, true);
        let bar = match (layout.key_bytes, size) {
            (_, ..65_536) => None,
            (16, ..1_000_000) => Some(Bar::AtLeast(3.0)),
            _ => Some(Bar::AtLeast(2.0)),
        };
        made.bars.extend(bar.map(|bar| (BURST, bar)));
        let packets: Vec<&Vec<u128>> =
            (0..if size < 65_536 { KEYS } else { size }).map(|_| &entries[rng.usize(..size)]).collect();
        made.keys_of(&rows.plan, packets.iter().map(|values| matches(values)));
        made.file = head(if layout.key_bytes == 40 { b'H' } else { b'h' }, size, packets.len());
        for values in entries.iter().chain(packets) {
            made.file.extend(library_key(&fields, values, layout.key_bytes));
        }
        Ok(made)
    }
}

fn value(rng: &mut Rng, field: Field, layout: &Layout) -> u128 {
    match field {
        Field::EthType if layout.name.starts_with("5") => 0x0800,
        Field::IpProto => rng.choice([6, 17]).unwrap_or(6),
        Field::VlanVid => 0x1000 | rng.u128(..0x1000),
        field => rng.u128(..) & field.full_mask(),
    }
}

/// Concatenates the leading fields that fit into the library's key, and pads with zeros.
fn library_key(fields: &[Field], values: &[u128], bytes: usize) -> Vec<u8> {
    let mut key = Vec::new();
    for (field, value) in fields.iter().zip(values) {
        let from = 16 - usize::from(field.location().length_bits).div_ceil(8);
        key.extend(&value.to_be_bytes()[from..]);
    }
    key.resize(bytes, 0);
    key
}
