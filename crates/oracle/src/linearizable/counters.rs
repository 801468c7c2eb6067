// SPDX-License-Identifier: Apache-2.0
//! Checks the counters of entries, tables, groups and packets.

use super::Replay;
use super::outcomes::{COPY_LOSSES, Sums};
use crate::log::Record;
use dataplane::TrafficCount;
use flow::DropReason;

/// Compares counters with the reference, and returns their number. If no frame is free for a bucket, the
/// worker counts the bucket, but not the groups to which the bucket refers.
pub(super) fn check_counters(record: &Record, replay: &Replay) -> Result<usize, String> {
    let buckets_lost = record.totals.dropped_in_all(DropReason::NoBuffer) > 0;
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
        let pair = |count: &TrafficCount| (count.packets, count.bytes);
        let at_most = |counted: (u64, u64), most: (u64, u64)| counted.0 <= most.0 && counted.1 <= most.1;
        let (total, buckets): (_, Vec<_>) =
            (pair(&counters.total), counters.buckets.iter().map(pair).collect());
        let fewer = at_most(total, expected.total)
            && buckets.iter().zip(&expected.buckets).all(|(counted, most)| at_most(*counted, *most));
        let same = (total, &buckets) == (expected.total, &expected.buckets);
        if !(same || buckets_lost && fewer) {
            return Err(format!("group {id} counted {counters:?}, expected {expected:?}"));
        }
    }
    Ok(record.entries.len() + record.tables.len() + record.groups.len())
}

/// Compares the totals with the outcome of each packet.
pub(super) fn check_totals(record: &Record, replay: &Replay, sums: &Sums) -> Result<usize, String> {
    let totals = &record.totals;
    let reported = (totals.received, totals.forwarded, totals.consumed, totals.held);
    let expected = (record.arrivals.len() as u64, sums.forwarded, sums.consumed, 0);
    if reported != expected {
        return Err(format!(
            "totals {reported:?}, expected {expected:?} (received, forwarded, consumed, held)"
        ));
    }
    // A frame handed to another worker counts as sent, and may be lost there.
    let out: u64 = record.sent.iter().map(|(_, _, frames)| frames.len() as u64).sum();
    let most = if record.logs.len() > 1 { replay.copies } else { out };
    if !(out..=most).contains(&totals.copies) {
        return Err(format!("{} copies counted, {out} came out, {} expected", totals.copies, replay.copies));
    }
    let buckets_lost = record.totals.dropped_in_all(DropReason::NoBuffer) > 0;
    for reason in DropReason::ALL {
        let (dropped, copies) = (totals.dropped.of(*reason), totals.copies_dropped.of(*reason));
        let expected = sums.dropped.get(reason).copied().unwrap_or_default();
        if dropped != expected {
            return Err(format!("{}: {dropped} packets dropped, expected {expected}", reason.name()));
        }
        if COPY_LOSSES.contains(reason) || *reason == DropReason::PacketInFull {
            if record.room.is_ample() && dropped + copies > 0 {
                return Err(format!("losses as {} although all space suffices", reason.name()));
            }
            continue;
        }
        let of = |counts: &std::collections::BTreeMap<DropReason, u64>| counts.get(reason).copied();
        let reference = &replay.reference;
        let met = of(reference.drops()).unwrap_or_default() + of(reference.copy_drops()).unwrap_or_default();
        if dropped + copies != met && !(buckets_lost && dropped + copies < met) {
            return Err(format!(
                "{}: {dropped} packets and {copies} copies dropped, expected {met} in total",
                reason.name()
            ));
        }
    }
    Ok(2 * DropReason::ALL.len() + 5)
}
