// SPDX-License-Identifier: Apache-2.0
//! Statistics. Long answers come in parts: a cursor says where the next one goes on, whatever changed meanwhile.

use crate::data_plane::{DataPlane, Totals};
use crate::marking::Mark;
use crate::model::Model;
use crate::select::FlowFilter;
use flow::operation::MAC_TABLE;
use flow::{EntryFlags, EntryId, FlowEntry, Nanos};
use std::sync::Arc;

/// An entry with its counters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowStats {
    /// The entry.
    pub entry: Arc<FlowEntry>,
    /// Packets that hit it; all ones if they are not counted.
    pub packets: u64,
    /// Their bytes; all ones if they are not counted.
    pub bytes: u64,
    /// When it was last hit; 0: never.
    pub used_ns: Nanos,
    /// How long it has lived.
    pub duration_ns: Nanos,
    /// Why it is low-latency, or is not.
    pub mark: Mark,
}

/// Where a walk over entries goes on; the default is the start. Entries come by table and, within one, in order of
/// adding. An entry that lives all the time comes exactly once; one that is replaced comes once or twice, the second
/// time as its replacement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCursor {
    table: u8,
    serial: u64,
    done: bool,
}

impl FlowCursor {
    /// True when all entries were seen.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done
    }
}

/// Sums over entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// Packets that hit them.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many entries.
    pub flows: usize,
}

/// A table's statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableStats {
    /// Its number.
    pub table: u8,
    /// Entries in it.
    pub active: usize,
    /// Packets looked up.
    pub lookups: u64,
    /// Packets that hit an entry.
    pub matches: u64,
}

impl<D: DataPlane> Model<D> {
    /// Entries that the filter accepts, in parts: looks at `work` entries at most (1 or more) and moves the cursor on.
    /// The cursor says when all were seen.
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

    /// Sums over the entries that the filter accepts, in parts as [`Model::flows`].
    pub fn aggregate(
        &mut self,
        filter: &FlowFilter,
        cursor: &mut FlowCursor,
        work: usize,
        sum: &mut Aggregate,
    ) {
        for id in self.walk(filter, cursor, work) {
            let counters = self.counters_of(id);
            let flags = self.store.entry(id).map_or(EntryFlags::default(), |entry| entry.flags);
            if !flags.no_packet_counts {
                sum.packets = sum.packets.wrapping_add(counters.packets);
            }
            if !flags.no_byte_counts {
                sum.bytes = sum.bytes.wrapping_add(counters.bytes);
            }
            sum.flows += 1;
        }
    }

    /// Entries in the controller's tables.
    #[must_use]
    pub fn flow_count(&self) -> usize {
        self.store.live()
    }

    /// Entries that left their table and whose removal is not in force yet, or not worked off.
    #[must_use]
    pub fn pending_removals(&self) -> usize {
        self.dying.len()
    }

    /// Statistics of one table.
    pub fn table(&mut self, table: u8) -> TableStats {
        let counters = self.plane.table_counters(table);
        let active = self.store.table(table).len();
        TableStats { table, active, lookups: counters.lookups, matches: counters.matches }
    }

    /// Statistics of the controller's tables, by number.
    pub fn tables(&mut self) -> Vec<TableStats> {
        (0..MAC_TABLE).map(|table| self.table(table)).collect()
    }

    /// Counters of all packets.
    pub fn totals(&mut self) -> Totals {
        self.plane.totals()
    }

    fn flow_stats(&mut self, now: Nanos, id: EntryId) -> Option<FlowStats> {
        let slot = self.store.slot(id)?;
        let (entry, created_ns, mark) = (Arc::clone(slot.entry.as_ref()?), slot.created_ns, slot.mark);
        let counters = self.counters_of(id);
        let (packets, bytes) = counters.told(entry.flags);
        Some(FlowStats {
            entry,
            packets,
            bytes,
            used_ns: counters.used_ns,
            duration_ns: now.saturating_sub(created_ns),
            mark,
        })
    }

    fn walk(&self, filter: &FlowFilter, cursor: &mut FlowCursor, work: usize) -> Vec<EntryId> {
        let mut found = Vec::new();
        let mut left = work.max(1);
        let last = filter.table.unwrap_or(MAC_TABLE - 1);
        if let Some(table) = filter.table.filter(|&t| t > cursor.table) {
            *cursor = FlowCursor { table, ..FlowCursor::default() };
        }
        while !cursor.done {
            for (serial, id) in self.store.table(cursor.table).range_from(cursor.serial) {
                if left == 0 {
                    cursor.serial = serial;
                    return found;
                }
                left -= 1;
                if self.store.entry(id).is_some_and(|e| filter.accepts(e)) {
                    found.push(id);
                }
            }
            cursor.done = cursor.table >= last;
            cursor.table = cursor.table.saturating_add(1);
            cursor.serial = 0;
        }
        found
    }
}
