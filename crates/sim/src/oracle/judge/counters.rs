// SPDX-License-Identifier: Apache-2.0
//! Counters of entries, tables, groups and packets.

use super::Replay;
use crate::oracle::log::Record;
use flow::DropReason;

pub(super) fn check_counters(record: &Record, replay: &Replay) -> Result<usize, String> {
    let reference = &replay.reference;
    for (id, counters) in &record.entries {
        let expected = reference.entry_counters(*id).unwrap_or_default();
        if (counters.packets, counters.bytes) != expected {
            return Err(format!("entry {id} counted {counters:?}, expected {expected:?} (packets, bytes)"));
        }
    }
    for (table, counters) in &record.tables {
        let expected = reference.table_counters(*table);
        if (counters.lookups, counters.matches) != expected {
            return Err(format!(
                "table {table} counted {counters:?}, expected {expected:?} (lookups, matches)"
            ));
        }
    }
    for (id, counters) in &record.groups {
        let expected = reference.group_counters(*id).cloned().unwrap_or_default();
        if (counters.total, &counters.buckets) != (expected.total, &expected.buckets) {
            return Err(format!("group {id} counted {counters:?}, expected {expected:?}"));
        }
    }
    let totals = &record.totals;
    let sums = (totals.received, totals.forwarded, totals.consumed, totals.copies);
    let expected = (record.arrivals.len() as u64, replay.outcomes[0], replay.outcomes[1], replay.copies);
    if sums != expected {
        return Err(format!(
            "totals {sums:?}, expected {expected:?} (received, forwarded, consumed, copies)"
        ));
    }
    for (at, reason) in DropReason::ALL.iter().enumerate() {
        let expected = reference.drops().get(reason).copied().unwrap_or_default();
        let copies = reference.copy_drops().get(reason).copied().unwrap_or_default();
        let lack = matches!(
            reason,
            DropReason::NoBuffer
                | DropReason::PacketInFull
                | DropReason::TransmitFull
                | DropReason::QueueFull
        );
        if lack && totals.dropped[at] + totals.copies_dropped[at] != 0 {
            return Err(format!("{} in a run that has room for all", reason.name()));
        }
        if totals.dropped[at] != expected || totals.copies_dropped[at] != copies {
            return Err(format!(
                "{}: {} packets and {} copies dropped, expected {expected} and {copies}",
                reason.name(),
                totals.dropped[at],
                totals.copies_dropped[at]
            ));
        }
    }
    Ok(record.entries.len() + record.tables.len() + record.groups.len() + 2 * DropReason::ALL.len() + 4)
}
