// SPDX-License-Identifier: Apache-2.0
//! The layout of a key: runs of examined bytes, and their positions.
//!
//! Runs that never occur in the same packet share bytes of the key, such as IPv4 and IPv6 addresses. The
//! presence bits show which of these runs a packet has. Likewise, the EtherType shares bytes with the headers
//! that imply it, and the protocol shares bytes with the ports.

use crate::conditions::{Condition, Facts, PROTO_GIVERS, SliceEnd, TYPE_GIVERS};
use flow::{FieldBase, FieldMatch, ext};

/// Maximum length of a key in a record of one cache line.
pub const ONE_LINE_BYTES: usize = 46;

/// Maximum length of a key in a record of two cache lines. Longer keys have no records.
pub const TWO_LINES_BYTES: usize = 110;

/// Maximum total length of the runs for which shared positions are searched. Longer keys do not fit into
/// records in any case.
const SEARCHED_BYTES_MAX: usize = 4 * TWO_LINES_BYTES;

/// Number of bytes of the extended header before the part that the parser writes. In an arriving packet, they
/// are the ingress port, which is in every key, and zeros.
pub(crate) const UNPARSED_BYTES: u16 = ext::ETH_TYPE_BIT / 8;

/// Consecutive bytes of a packet, each with at least one examined bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub base: FieldBase,
    /// Offset of the first byte from the base.
    pub byte: u16,
    /// Condition under which a packet has these bytes.
    pub when: Condition,
    /// Examined bits of each byte.
    pub masks: Vec<u8>,
}

/// Returns the bytes that the conditions examine, as runs. `slices` returns the fact for a slice end.
/// `headers` have presence bits in the key.
pub(crate) fn runs_of(
    conditions: &[FieldMatch],
    headers: u32,
    slices: impl Fn(SliceEnd) -> Facts,
) -> Vec<Run> {
    let mut bytes: Vec<((FieldBase, Condition, u16), u8)> = Vec::new();
    for condition in conditions {
        let location = condition.field.location();
        let end = SliceEnd::of(condition);
        for bit in 0..location.length_bits {
            if condition.mask >> (location.length_bits - 1 - bit) & 1 == 0 {
                continue;
            }
            let at = location.offset_bits + bit;
            let byte = at / 8;
            if location.base == FieldBase::Ext && byte < UNPARSED_BYTES {
                continue;
            }
            let when = match location.base {
                FieldBase::Ext => Condition { needs: 0, unless: implied_by(byte, headers) },
                _ => Condition { needs: end.map_or(location.needs.into(), &slices), unless: 0 },
            };
            bytes.push(((location.base, when, byte), 0x80 >> (at % 8)));
        }
    }
    bytes.sort_unstable();
    bytes.dedup_by(|later, kept| {
        let is_same = later.0 == kept.0;
        kept.1 |= if is_same { later.1 } else { 0 };
        is_same
    });
    let mut runs: Vec<Run> = Vec::new();
    for ((base, when, byte), mask) in bytes {
        match runs.last_mut() {
            Some(run)
                if (run.base, run.when) == (base, when)
                    && usize::from(run.byte) + run.masks.len() == usize::from(byte) =>
            {
                run.masks.push(mask);
            }
            _ => runs.push(Run { base, byte, when, masks: vec![mask] }),
        }
    }
    runs
}

/// Returns those of `headers` that imply the value of a byte of the extended header.
pub(crate) fn implied_by(byte: u16, headers: u32) -> Facts {
    const TYPE_FROM: u16 = ext::ETH_TYPE_BIT / 8;
    const TYPE_TO: u16 = TYPE_FROM + 1;
    const PROTO: u16 = ext::IP_PROTO_BIT / 8;
    let givers = match byte {
        TYPE_FROM | TYPE_TO => TYPE_GIVERS,
        PROTO => PROTO_GIVERS,
        _ => 0,
    };
    Facts::from(headers & givers)
}

/// Places the runs, beginning at the first byte of the key. Returns each run with its position, and the
/// number of bytes that the runs occupy together.
pub(crate) fn place(mut runs: Vec<Run>) -> (Vec<(Run, usize)>, usize) {
    // Short runs fill the gaps between long runs.
    runs.sort_by_key(|run| std::cmp::Reverse(run.masks.len()));
    let is_searched = runs.iter().map(|run| run.masks.len()).sum::<usize>() <= SEARCHED_BYTES_MAX;
    // For each byte of the key, the conditions of the runs that occupy it.
    let mut users: Vec<Vec<Condition>> = Vec::new();
    let mut placed = Vec::with_capacity(runs.len());
    for run in runs {
        let fits = |at: &usize| {
            let taken = users.iter().skip(*at).take(run.masks.len()).flatten();
            taken.into_iter().all(|user| user.excludes(run.when))
        };
        let first = if is_searched { 0 } else { users.len() };
        let at = (first..users.len()).find(fits).unwrap_or(users.len());
        let end = at + run.masks.len();
        if users.len() < end {
            users.resize(end, Vec::new());
        }
        users[at..end].iter_mut().for_each(|users| users.push(run.when));
        placed.push((run, at));
    }
    (placed, users.len())
}
