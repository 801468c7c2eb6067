// SPDX-License-Identifier: Apache-2.0
//! Use of the fast-forwarding path: which packets must stay on it, and where the other packets left it.

use super::{Replay, numbers, refused};
use crate::PathUse;
use crate::log::{Arrival, Entry, Left, Lookup, Record, TAG_BYTES, Walker};
use dataplane::FoundBy;
use flow::operation::MAC_TABLE;
use flow::{EntryChange, EntryId, Operation, PortNo, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// Number of leading bytes in which packets of one flow may differ, for example in their TTL.
const FIRST_BYTES: usize = 64;

/// The values of a packet that tables may examine: its port, its flow and its first bytes.
type Value<'a> = (PortNo, u64, &'a [u8]);

fn value(arrival: &Arrival) -> Value<'_> {
    let untagged = arrival.bytes.len().saturating_sub(TAG_BYTES);
    (arrival.port, arrival.flow, &arrival.bytes[..untagged.min(FIRST_BYTES)])
}

/// Evaluates the repeated packets of each worker. Packets that leave the path at an entry with a reused ID
/// are not evaluated ([`ReusedIds`]).
pub(super) fn path_use(record: &Record, replay: &Replay) -> PathUse {
    let (numbers, refused) = (numbers(record), refused(record));
    let mut used = PathUse::default();
    for (worker, log) in record.logs.iter().enumerate() {
        let left: BTreeMap<Walker, &Left> =
            record.outcomes[worker].iter().map(|left| (left.walker, left)).collect();
        // For each value, the time at which its first packet since the last change of rules was finished.
        let mut finished: BTreeMap<Value<'_>, u64> = BTreeMap::new();
        let mut reused = ReusedIds::default();
        for (entry, moment) in log.iter().zip(&record.moments[worker]) {
            let (port, sequence) = match *entry {
                Entry::Packet { port, sequence } => (port, sequence),
                Entry::Applied(version) => {
                    let operation = &record.operations[version.0 as usize - 1];
                    reused.note(operation);
                    if changes_rules(operation) {
                        finished.clear();
                    }
                    continue;
                }
                Entry::Refused { .. } | Entry::Returned => continue,
            };
            let walker = Walker::Arrived { port, sequence };
            let place = (port, worker, sequence);
            let (Some(number), Some(left)) = (numbers.get(&place), left.get(&walker)) else { continue };
            if refused.contains_key(&place) {
                continue;
            }
            let value = value(&record.arrivals[*number]);
            let is_repeated = finished.get(&value).is_some_and(|place| *place < moment.place);
            let first = finished.entry(value).or_insert(left.moment.place);
            *first = left.moment.place.min(*first);
            let Some(processed) = &replay.processed[*number] else { continue };
            if is_repeated && processed.low_latency && !processed.hits.is_empty() {
                let lookups = replay.lookups.get(&(worker, walker)).map_or(&[][..], Vec::as_slice);
                let left_at = left_path_at(left, lookups);
                if processed.hits.iter().any(|(table, id)| Some(*table) == left_at && reused.contains(*id)) {
                    continue;
                }
                let on_path = lookups.iter().take_while(|lookup| Some(lookup.table) != left_at);
                let passed: Vec<_> = on_path.map(|lookup| (lookup.table, way(lookup.by))).collect();
                used.note(&passed, left_at);
            }
        }
    }
    used
}

/// IDs of entries that belonged to other entries before.
///
/// The cleaning of a LUT after a deletion removes each record with the entry's ID, also new records of the
/// next entry with this ID, until it has passed the whole LUT. For a large LUT, a case has too few packets
/// for this. So packets that hit such an entry may leave the path.
#[derive(Debug, Default)]
struct ReusedIds {
    removed: BTreeSet<EntryId>,
    reused: BTreeSet<EntryId>,
}

impl ReusedIds {
    fn note(&mut self, operation: &Operation) {
        for part in operation.parts() {
            let Operation::Entries(changes) = part else { continue };
            for change in changes {
                match change {
                    EntryChange::Add(entry) if self.removed.contains(&entry.id) => {
                        self.reused.insert(entry.id);
                    }
                    EntryChange::Remove { id, .. } => {
                        self.removed.insert(*id);
                    }
                    _ => {}
                }
            }
        }
    }

    fn contains(&self, id: Option<EntryId>) -> bool {
        id.is_some_and(|id| self.reused.contains(&id))
    }
}

/// Returns whether an operation may cause LUT records to be learned again. The path does not use the table of
/// learned addresses.
fn changes_rules(operation: &Operation) -> bool {
    operation.parts().iter().any(|part| match part {
        Operation::Entries(changes) => changes.iter().any(|change| {
            let table = match change {
                EntryChange::Add(entry) => entry.table,
                EntryChange::Modify { table, .. } | EntryChange::Remove { table, .. } => *table,
            };
            table != MAC_TABLE
        }),
        _ => false,
    })
}

/// Returns the table at which a packet left the path, or `None` if it stayed on the path. A lookup by index
/// does not show whether the packet was on the path. If no other lookup shows where it left, the first table
/// looked up by index is returned.
fn left_path_at(left: &Left, lookups: &[Lookup]) -> Option<TableId> {
    if left.fast {
        return None;
    }
    let off_path = |lookup: &&Lookup| matches!(lookup.by, FoundBy::Table | FoundBy::Known | FoundBy::Index);
    left.missed.or_else(|| lookups.iter().find(off_path).map(|lookup| lookup.table))
}

/// Returns the name of the method by which an entry was found.
fn way(by: FoundBy) -> &'static str {
    match by {
        FoundBy::Index => "index",
        FoundBy::Shared => "the table itself",
        FoundBy::Lut | FoundBy::Verified | FoundBy::Inherited => "LUT",
        FoundBy::Table | FoundBy::Known => "none",
        FoundBy::Express => "record of the path",
    }
}
