// SPDX-License-Identifier: Apache-2.0
//! What actions changed in a frame.

use flow::{Base, Field, PortNo};
use reference::Packet;
use std::ops::Range;
use wire::layers::header;
use wire::{Depth, Layers};

/// Runs of bytes told of.
const RUNS: usize = 8;

/// A difference between two frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A field has another value, came or went.
    Field {
        /// The field.
        field: Field,
        /// Its value before.
        before: Option<u128>,
        /// Its value after.
        after: Option<u128>,
    },
    /// The TTL of IPv4, or the hop limit of IPv6, has another value.
    Ttl {
        /// Its value before.
        before: u8,
        /// Its value after.
        after: u8,
    },
    /// Bytes that are no part of these have other values, in frames of equal length.
    Bytes {
        /// The first.
        at: usize,
        /// Before.
        before: Vec<u8>,
        /// After.
        after: Vec<u8>,
    },
    /// The frame is longer or shorter.
    Length {
        /// Bytes before.
        before: usize,
        /// Bytes after.
        after: usize,
    },
}

/// What changed: fields first, then length or bytes.
pub(super) fn changes(in_port: PortNo, before: &[u8], after: &[u8]) -> Vec<Change> {
    if before == after {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let mut told = Vec::new();
    let layers = wire::locate(after, Depth::L4);
    // What is too short to be a packet has no fields.
    if before.len() >= 14 && after.len() >= 14 {
        let (old, new) = (Packet::arriving(in_port, before), Packet::arriving(in_port, after));
        let differs = |field: &&Field| old.value(**field) != new.value(**field);
        changes.extend(Field::NAMED.iter().filter(differs).map(|field| Change::Field {
            field: *field,
            before: old.value(*field),
            after: new.value(*field),
        }));
        told.extend(Field::NAMED.iter().filter(differs).filter_map(|field| bytes_of(*field, &layers)));
        if let (Some((_, old)), Some((at, new))) = (ttl(before), ttl(after))
            && old != new
        {
            changes.push(Change::Ttl { before: old, after: new });
            told.push(at..at + 1);
        }
    }
    if before.len() == after.len() {
        let is_told = |at: usize| told.iter().any(|range| range.contains(&at));
        changes.extend(runs(before, after, is_told).take(RUNS).map(|run| Change::Bytes {
            at: run.start,
            before: before[run.clone()].to_vec(),
            after: after[run].to_vec(),
        }));
    } else {
        changes.push(Change::Length { before: before.len(), after: after.len() });
    }
    changes
}

/// The bytes in which a field stands.
fn bytes_of(field: Field, layers: &Layers) -> Option<Range<usize>> {
    let location = field.location();
    let start = usize::from(match location.base {
        Base::Frame => 0,
        Base::L3 => layers.l3,
        Base::L4 => layers.l4,
        Base::Ext | Base::NdSll | Base::NdTll => return None,
    });
    let (first, length) = (usize::from(location.offset_bits), usize::from(location.length_bits));
    Some(start + first / 8..start + (first + length).div_ceil(8))
}

/// Where the TTL stands, and its value.
fn ttl(frame: &[u8]) -> Option<(usize, u8)> {
    let layers = wire::locate(frame, Depth::L3);
    let at = match layers.present & (header::IPV4 | header::IPV6) {
        header::IPV4 => 8,
        header::IPV6 => 7,
        _ => return None,
    };
    let at = usize::from(layers.l3) + at;
    Some((at, *frame.get(at)?))
}

/// Where bytes differ that nothing else tells of.
fn runs<'a>(
    before: &'a [u8],
    after: &'a [u8],
    is_told: impl Fn(usize) -> bool + 'a,
) -> impl Iterator<Item = Range<usize>> + 'a {
    let differs = move |at: &usize| before[*at] != after[*at] && !is_told(*at);
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = (from..before.len()).find(&differs)?;
        let end = (start..before.len()).find(|at| !differs(at)).unwrap_or(before.len());
        from = end;
        Some(start..end)
    })
}
