// SPDX-License-Identifier: Apache-2.0
//! Entries that a packet nearly hit, and the fields that excluded them.

use flow::{FieldMatch, FlowEntry};
use reference::Packet;
use std::cmp::Reverse;
use std::sync::Arc;

/// Entries told of.
const NEAR: usize = 3;

/// Fields that may exclude an entry which is told of.
const EXCLUDED: usize = 2;

/// Entries looked at: a table may have millions, and others wait meanwhile.
pub(super) const LOOKED_AT: usize = 4_096;

/// An entry that was not hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Near {
    /// The entry.
    pub entry: Arc<FlowEntry>,
    /// What excluded it.
    pub excluded: Vec<Excluded>,
}

/// A condition that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excluded {
    /// The condition.
    pub condition: FieldMatch,
    /// The packet's value of the field; none if it has no such field.
    pub value: Option<u128>,
}

/// Those of `tried`, highest priority first, that failed by the least; and how many were looked at.
pub(super) fn nearest<'a>(tried: impl Iterator<Item = &'a FlowEntry>, packet: &Packet) -> (Vec<Near>, usize) {
    let mut nearest: Vec<(_, &FlowEntry, Vec<Excluded>)> = Vec::new();
    let mut looked_at = 0;
    for entry in tried {
        looked_at += 1;
        let mut held = 0_usize;
        let mut excluded = Vec::new();
        for condition in entry.matching.fields() {
            let value = packet.value(condition.field);
            match value {
                Some(value) if value & condition.mask == condition.value => held += 1,
                _ => excluded.push(Excluded { condition, value }),
            }
        }
        if excluded.is_empty() || excluded.len() > EXCLUDED {
            continue;
        }
        let agreeing: u32 = excluded.iter().map(agreeing_bits).sum();
        // Among equals the first tried is told of.
        let distance = (excluded.len(), Reverse(held), Reverse(agreeing));
        let at = nearest.partition_point(|(other, ..)| *other <= distance);
        if at < NEAR {
            nearest.truncate(NEAR - 1);
            nearest.insert(at, (distance, entry, excluded));
        }
    }
    let near = |(_, entry, excluded): (_, &FlowEntry, Vec<Excluded>)| Near {
        entry: Arc::new(entry.clone()),
        excluded,
    };
    (nearest.into_iter().map(near).collect(), looked_at)
}

/// First bits of the field that are as asked for.
fn agreeing_bits(excluded: &Excluded) -> u32 {
    let Excluded { condition, value: Some(value) } = excluded else { return 0 };
    let length = u32::from(condition.field.location().length_bits);
    let wrong = (value ^ condition.value) & condition.mask;
    wrong.leading_zeros().saturating_sub(128 - length)
}
