// SPDX-License-Identifier: Apache-2.0
//! Statistics. Long answers are produced in parts. A cursor holds the position between two parts, and stays
//! valid if the tables change.

use crate::kept_counts::{EntryRef, KeptCounts};
use crate::model::Model;
use crate::rules::Mark;
use crate::rules::carried::reported;
use crate::select::FlowFilter;
use dataplane::{DataPlane, Totals, TrafficCount};
use flow::{EntryFlags, EntryId, FlowEntry, Match, Nanos, TableId};
use std::sync::Arc;

/// An entry with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// The entry to which the statistics belong.
    pub entry: Arc<FlowEntry>,
    /// Packets that hit the entry; all ones if they are not counted.
    pub packets: u64,
    /// Bytes of these packets; all ones if they are not counted.
    pub bytes: u64,
    /// Time of the last hit, or 0 if there was none.
    pub used_ns: Nanos,
    /// Time since the entry was added, in nanoseconds.
    pub duration_ns: Nanos,
    /// Reasons that determine whether the entry is low-latency.
    pub mark: Mark,
}

/// Position of a walk over entries; the default is the start. The walk is ordered by table and by time of
/// addition. An entry present during the whole walk is visited exactly once. If an entry is replaced during
/// the walk, its replacement may be visited as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCursor {
    table: TableId,
    serial: u64,
    done: bool,
}

impl FlowCursor {
    /// Returns whether all entries were visited.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }
}

/// Sums of counters over entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// Packets that hit these entries.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Number of entries.
    pub flows: usize,
}

/// Statistics of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Number of the table.
    pub table: TableId,
    /// Number of entries in the table.
    pub active: usize,
    /// Number of packets looked up.
    pub lookups: u64,
    /// Number of packets that hit an entry.
    pub matches: u64,
}

impl<D: DataPlane> Model<D> {
    /// Returns the entries that the filter accepts among the next `work` entries (at least 1), and advances
    /// the cursor. The walk has ended when [`FlowCursor::is_done`] returns true.
    pub fn flows(
        &mut self,
        now: Nanos,
        filter: &FlowFilter,
        cursor: &mut FlowCursor,
        work: usize,
    ) -> Vec<FlowStats> {
        let ids = self.walk(filter, cursor, work);
        ids.into_iter().filter_map(|id| self.flow_stats(now, id)).collect()
    }

    /// Adds up the counters of entries that the filter accepts, in parts like [`Model::flows`].
    pub fn aggregate(
        &mut self,
        filter: &FlowFilter,
        cursor: &mut FlowCursor,
        work: usize,
        sum: &mut Aggregate,
    ) {
        for id in self.walk(filter, cursor, work) {
            let counters = self.rules.carried.counters_of(self.plane.get_mut(), id);
            let flags = self.rules.store.entry(id).map_or(EntryFlags::default(), |entry| entry.flags);
            if !flags.no_packet_counts {
                sum.packets = sum.packets.wrapping_add(counters.packets);
            }
            if !flags.no_byte_counts {
                sum.bytes = sum.bytes.saturating_add(counters.bytes);
            }
            sum.flows += 1;
        }
    }

    /// Returns the entry of a table with this priority and match.
    #[must_use]
    pub fn find(&self, table: TableId, priority: u16, matching: &Match) -> Option<EntryRef> {
        let id = self.rules.store.find(table, priority, matching)?;
        Some(EntryRef { id, serial: self.rules.store.slot(id)?.serial })
    }

    /// Returns whether the entry is still in its table.
    #[must_use]
    pub fn is_present(&self, entry: EntryRef) -> bool {
        self.rules.store.is_listed(entry.id, entry.serial)
    }

    /// Returns an entry, or `None` if it is no longer in its table.
    #[must_use]
    pub fn entry_of(&self, entry: EntryRef) -> Option<&Arc<FlowEntry>> {
        if self.is_present(entry) { self.rules.store.entry(entry.id) } else { None }
    }

    /// Returns an entry with its counters, or `None` if it is no longer in its table.
    pub fn entry_stats(&mut self, now: Nanos, entry: EntryRef) -> Option<FlowStats> {
        if self.is_present(entry) { self.flow_stats(now, entry.id) } else { None }
    }

    /// Requests the final counts of an entry in a table. They are kept from its release until
    /// [`Model::take_final_counts`] returns them.
    pub fn keep_counts(&mut self, entry: EntryRef) {
        if self.is_present(entry) {
            self.removals.kept.request(entry.id);
        }
    }

    /// Returns the counts of an entry that is in its table, or was removed and is not released yet, or whose
    /// final counts are kept. For other entries, the result is `None`.
    pub fn kept_counts(&mut self, entry: EntryRef) -> Option<TrafficCount> {
        if let Some(last) = self.removals.kept.of_released(entry) {
            return Some(last);
        }
        self.rules.store.slot(entry.id).filter(|slot| slot.serial == entry.serial)?;
        let counters = self.rules.carried.counters_of(self.plane.get_mut(), entry.id);
        Some(TrafficCount { packets: counters.packets, bytes: counters.bytes })
    }

    /// Takes the final counts of a released entry, if any are kept.
    pub fn take_final_counts(&mut self) -> Option<(EntryRef, TrafficCount)> {
        self.removals.kept.take()
    }

    /// Ends all requests of [`Model::keep_counts`], and discards all kept counts.
    pub fn forget_kept_counts(&mut self) {
        self.removals.kept = KeptCounts::default();
    }

    /// Returns the number of entries in a table.
    #[must_use]
    pub fn entries_in(&self, table: TableId) -> usize {
        self.rules.store.table(table).len()
    }

    /// Returns the number of entries in the controller's tables.
    #[must_use]
    pub fn flow_count(&self) -> usize {
        self.rules.store.live()
    }

    /// Returns the number of removed entries that are not released yet.
    #[must_use]
    pub fn pending_removals(&self) -> usize {
        self.removals.len()
    }

    /// Returns the statistics of one table.
    pub fn table(&mut self, table: TableId) -> TableStats {
        let counters = self.plane.get_mut().table_counters(table);
        let active = self.rules.store.table(table).len();
        TableStats { table, active, lookups: counters.lookups, matches: counters.matches }
    }

    /// Returns the statistics of the controller's tables, in order of their numbers.
    pub fn tables(&mut self) -> Vec<TableStats> {
        TableId::of_controllers().map(|table| self.table(table)).collect()
    }

    /// Returns the counters of all packets.
    pub fn totals(&mut self) -> Totals {
        self.plane.get_mut().totals()
    }

    fn flow_stats(&mut self, now: Nanos, id: EntryId) -> Option<FlowStats> {
        let slot = self.rules.store.slot(id)?;
        let (entry, created_ns, mark) = (Arc::clone(slot.entry.as_ref()?), slot.created_ns, slot.mark);
        let counters = self.rules.carried.counters_of(self.plane.get_mut(), id);
        let TrafficCount { packets, bytes } = reported(counters, entry.flags);
        Some(FlowStats {
            entry,
            packets,
            bytes,
            used_ns: counters.used_ns,
            duration_ns: now.saturating_sub(created_ns),
            mark,
        })
    }

    /// Returns the accepted entries among the next `work` ones. If the index of matches excludes most entries
    /// of a table, the others are examined at once.
    fn walk(&self, filter: &FlowFilter, cursor: &mut FlowCursor, work: usize) -> Vec<EntryId> {
        let mut found = Vec::new();
        let work = work.max(1);
        let mut left = work;
        let accepts = |id: &EntryId| self.rules.store.entry(*id).is_some_and(|entry| filter.accepts(entry));
        let last = filter.table.unwrap_or(TableId::LAST);
        if let Some(table) = filter.table.filter(|&t| t > cursor.table) {
            *cursor = FlowCursor { table, ..FlowCursor::default() };
        }
        while !cursor.done {
            let table = self.rules.store.table(cursor.table);
            let cost =
                if cursor.serial == 0 { table.covered_cost_within(&filter.matching, work) } else { None };
            match cost {
                Some(cost) if cost > left => return found,
                Some(cost) => {
                    left -= cost;
                    let ids = table.covered(self.rules.store.slots(), &filter.matching);
                    found.extend(ids.into_iter().filter(|id| accepts(id)));
                }
                None => {
                    for (serial, id) in table.range_from(cursor.serial) {
                        if left == 0 {
                            cursor.serial = serial;
                            return found;
                        }
                        left -= 1;
                        found.extend(Some(id).filter(accepts));
                    }
                }
            }
            cursor.done = cursor.table >= last;
            cursor.table = TableId(cursor.table.0.saturating_add(1));
            cursor.serial = 0;
        }
        found
    }
}
