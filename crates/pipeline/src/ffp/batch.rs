// SPDX-License-Identifier: Apache-2.0
//! The packets of a burst that wait for one table, and the entries found for them.

use super::lut::Record;
use crate::slab::PacketSlot;
use actions::{Cell, Cells};
use dataplane::FoundBy;
use flow::{EntryId, TableId};
use tables::Table;

/// Packets that wait for one table, with their keys and the results of their lookup: the entry of each
/// packet, or the place of its record in a LUT.
#[derive(Clone, Copy)]
pub(super) struct TableBatch<'a, R> {
    /// Number of the table.
    pub number: TableId,
    pub table: &'a Table,
    /// Slots of the packets.
    pub slots: &'a [PacketSlot],
    /// Keys of the packets, one row each.
    pub keys: &'a [u64],
    /// Results of the lookup, one for each packet.
    pub results: &'a [R],
}

/// Result of a LUT lookup for one packet.
#[derive(Clone, Copy)]
pub(super) struct CacheHit<'a> {
    /// Cell of the entry; `None` on a miss.
    pub cell: Option<&'a Cell>,
    pub id: EntryId,
    pub fence: u32,
    pub by: FoundBy,
}

impl<'a> CacheHit<'a> {
    /// Copies a record and prefetches the entry's cell.
    #[inline(always)]
    pub fn of(record: &Record, cells: &'a Cells) -> Self {
        Self { cell: cells.prefetched(record.id), id: record.id, fence: record.fence, by: FoundBy::Lut }
    }
}

impl Default for CacheHit<'_> {
    fn default() -> Self {
        Self { cell: None, id: EntryId::NONE, fence: 0, by: FoundBy::Lut }
    }
}
