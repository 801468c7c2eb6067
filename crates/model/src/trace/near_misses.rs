// SPDX-License-Identifier: Apache-2.0
//! Near misses: entries that a packet almost hit, and the fields in which they differ from the packet.

use flow::{FieldMatch, FlowEntry};
use reference::ReferencePacket;
use std::cmp::Reverse;
use std::sync::Arc;

/// Maximum number of near misses reported per lookup.
const NEAR: usize = 3;

/// Maximum number of fields in which a reported near miss differs from the packet.
const EXCLUDED: usize = 2;

/// Maximum number of entries examined per lookup.
pub(super) const LOOKED_AT: usize = 4_096;

/// An entry that the packet almost hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMiss {
    /// The entry that was not hit.
    pub entry: Arc<FlowEntry>,
    /// Conditions of the entry that the packet does not satisfy.
    pub excluded: Vec<Excluded>,
}

/// A condition of a match that the packet does not satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excluded {
    /// The condition of the entry.
    pub condition: FieldMatch,
    /// The packet's value of the field, or `None` if the packet has no such field.
    pub value: Option<u128>,
}

/// Returns the near misses among `tried`, and the number of entries examined. `tried` yields entries by
/// descending priority.
pub(super) fn nearest<'a>(
    tried: impl Iterator<Item = &'a FlowEntry>,
    packet: &ReferencePacket,
) -> (Vec<NearMiss>, usize) {
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
        // Among equally near entries, the one that was tried first is reported.
        let distance = (excluded.len(), Reverse(held), Reverse(agreeing));
        let at = nearest.partition_point(|(other, ..)| *other <= distance);
        if at < NEAR {
            nearest.truncate(NEAR - 1);
            nearest.insert(at, (distance, entry, excluded));
        }
    }
    let near_misses = |(_, entry, excluded): (_, &FlowEntry, Vec<Excluded>)| NearMiss {
        entry: Arc::new(entry.clone()),
        excluded,
    };
    (nearest.into_iter().map(near_misses).collect(), looked_at)
}

/// Returns the number of leading bits of the field that agree with the condition.
fn agreeing_bits(excluded: &Excluded) -> u32 {
    let Excluded { condition, value: Some(value) } = excluded else { return 0 };
    let length = u32::from(condition.field.location().length_bits);
    let wrong = (value ^ condition.value) & condition.mask;
    wrong.leading_zeros().saturating_sub(128 - length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::{EntryId, Field, Match, PortNo, TableId};

    /// Returns an Ethernet frame from 00:00:00:00:00:0a to 00:00:00:00:00:0b, received at port 1.
    fn packet() -> ReferencePacket {
        let mut bytes = [0; 60];
        (bytes[5], bytes[11]) = (0xb, 0xa);
        ReferencePacket::arriving(PortNo(1), &bytes)
    }

    /// Returns an entry with this ID that matches these values of ingress port, source and destination.
    fn entry(id: u32, values: [Option<u128>; 3]) -> FlowEntry {
        let fields = [Field::InPort, Field::EthSrc, Field::EthDst].into_iter().zip(values);
        let conditions = fields.filter_map(|(field, value)| Some(FieldMatch::exact(field, value?)));
        FlowEntry {
            id: EntryId(id),
            table: TableId(0),
            priority: 1,
            matching: Match::new(conditions).unwrap(),
            instructions: Arc::default(),
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            cookie: 0,
            flags: flow::EntryFlags::default(),
            low_latency: false,
        }
    }

    /// Returns the IDs of the reported entries, each with the number of fields that exclude it, and the
    /// number of entries examined.
    fn reported(entries: &[FlowEntry]) -> (Vec<(u32, usize)>, usize) {
        let (near_misses, looked_at) = nearest(entries.iter(), &packet());
        (
            near_misses
                .iter()
                .map(|near_misses| (near_misses.entry.id.0, near_misses.excluded.len()))
                .collect(),
            looked_at,
        )
    }

    #[test]
    fn entries_excluded_by_at_most_two_fields_are_reported() {
        let entries = [
            entry(1, [Some(1), Some(0xa), Some(0xb)]),
            entry(2, [Some(9), Some(0xa), Some(0xb)]),
            entry(3, [Some(9), Some(9), Some(0xb)]),
            entry(4, [Some(9), Some(9), Some(9)]),
        ];
        assert_eq!(reported(&entries), (vec![(2, 1), (3, 2)], 4));
        let (near_misses, _) = nearest(entries[2..3].iter(), &packet());
        let excluded = |field, value| Excluded { condition: FieldMatch::exact(field, 9), value: Some(value) };
        assert_eq!(near_misses[0].excluded, [excluded(Field::InPort, 1), excluded(Field::EthSrc, 0xa)]);
    }

    #[test]
    fn entries_that_agree_in_more_fields_and_bits_are_nearer() {
        let entries = [
            // The packet fails both conditions of entry 1, the only condition of entry 2, and one of three
            // conditions of entry 3.
            entry(1, [Some(9), Some(9), None]),
            entry(2, [Some(0), None, None]),
            entry(3, [Some(0), Some(0xa), Some(0xb)]),
        ];
        assert_eq!(reported(&entries).0, [(3, 1), (2, 1), (1, 2)]);
        // The packet's value is 0xa. It shares one more leading bit with 0xb than with 0x8, and the fewest
        // leading bits with 1 << 40.
        let sources = [1 << 40, 0x8, 0xb].map(|value| [None, Some(value), None]);
        let entries: Vec<_> = (1..).zip(sources).map(|(id, values)| entry(id, values)).collect();
        assert_eq!(reported(&entries).0, [(3, 1), (2, 1), (1, 1)]);
    }

    #[test]
    fn at_most_three_are_reported_and_the_first_of_equals() {
        let entries: Vec<_> = (1..=5).map(|id| entry(id, [Some(0), None, None])).collect();
        assert_eq!(reported(&entries), (vec![(1, 1), (2, 1), (3, 1)], 5));
        let nearer = entry(9, [Some(0), Some(0xa), None]);
        assert_eq!(reported(&[&entries[..], &[nearer]].concat()).0, [(9, 1), (1, 1), (2, 1)]);
    }
}
