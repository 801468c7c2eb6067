// SPDX-License-Identifier: Apache-2.0
//! The fast-forwarding path (FFP), for packets that hit only low-latency entries.
//!
//! ```text
//! burst ──► LUT 0 ──► shared table 1 ──► LUT 2 ──► ... all hit: leaves before the rest of its burst
//!             │ miss, or known normal      │
//!             ▼                            ▼
//!           table 0 ────────────────────► table 2 ──► ...   the table pipeline, from that table on
//!             └ learns: value ──► entry    └ learns
//! ```
//!
//! A lookup table (LUT) is the exact-match cache of one flow table. A table whose own lookup is as fast as a
//! LUT is shared by this path and the table pipeline. The table pipeline fills the LUTs: the value of a
//! packet and the entry that it hit become a record ([`lut`]). Records that a rule change concerns are
//! removed ([`clean`]) or verified at their next hit ([`lazy`]).

mod admission;
mod batch;
mod change;
mod clean;
mod inherit;
mod lazy;
mod lut;
mod queue;
mod recent;
mod resolve;
mod walk;

use crate::context::TableSlot;
use crate::packet::{Packet, Path};
use crate::slab::PacketSlot;
use actions::Cells;
use backlog::Window;
use flow::{EntryId, Limits, TableId};
use tables::Table;
use wire::Depth;

pub use change::{Clean, Coherence};
pub use lut::{Inheritance, Lut};

/// Method by which the fast-forwarding path passes a table.
#[derive(Debug, Default)]
pub enum FastMode {
    /// The path is closed at this table, because none of its entries is low-latency.
    #[default]
    Closed,
    /// By the table's own lookup, which is as fast as a LUT.
    Shared,
    /// By the table's LUT.
    Lut(Box<Lut>),
}

/// Fast-forwarding path of a worker.
#[derive(Debug)]
pub(crate) struct Ffp {
    modes: Box<[FastMode]>,
    /// For each slot: the lookup key (row) for which a LUT had no record.
    rows: Box<[u64]>,
}

impl Ffp {
    pub fn new(tables: usize, packets: usize) -> Self {
        let mut modes = Vec::with_capacity(tables);
        modes.resize_with(tables, FastMode::default);
        let rows = vec![0; packets * Limits::KEY_WORDS].into_boxed_slice();
        Self { modes: modes.into_boxed_slice(), rows }
    }

    /// Replaces a table's mode and leaves the previous one in `mode`, for the control thread to free.
    pub fn swap(&mut self, table: TableId, mode: &mut FastMode) {
        let current = &mut self.modes[table.index()];
        std::mem::swap(current, mode);
        if let (FastMode::Lut(new), FastMode::Lut(_)) = (current, &*mode)
            && let FastMode::Lut(old) = std::mem::take(mode)
            && let Some(unused) = new.inherit(old)
        {
            *mode = FastMode::Lut(unused);
        }
    }

    /// Returns the greatest header depth that a table on the path needs.
    pub fn depth(&self, tables: &[TableSlot]) -> Depth {
        let open = self.modes.iter().zip(tables).filter(|(mode, _)| !matches!(mode, FastMode::Closed));
        open.filter_map(|(_, slot)| slot.as_deref())
            .map(|(_, extractor)| extractor.depth())
            .max()
            .unwrap_or_default()
    }

    /// Adjusts a table's LUT to a change of its rules. `view` is the table after the change.
    pub fn clean(&mut self, table: TableId, coherence: Coherence, clean: &mut Clean, view: Option<&Table>) {
        let Some(lut) = self.lut(table) else { return };
        if let (Clean::Added { priority, row, id, single: true, .. }, Some(view)) = (&mut *clean, view) {
            let (value, _) = row.split_at_mut(row.len() / 2);
            let mut found = [EntryId::NONE];
            view.lookup(value, &mut found);
            if found[0] == *id {
                lut.learn(value, *id, *priority, true);
            }
        }
        lut.clean(coherence, clean);
    }

    /// Sets the maximum number of extra rules against which a record is checked one by one.
    pub fn set_list_max(&mut self, table: TableId, rules: u32) {
        if let Some(lut) = self.lut(table) {
            lut.set_list_max(rules);
        }
    }

    /// Returns a table's LUT, if it has one.
    #[inline]
    pub fn lut(&mut self, table: TableId) -> Option<&mut Lut> {
        match &mut self.modes[table.index()] {
            FastMode::Lut(lut) => Some(lut),
            FastMode::Closed | FastMode::Shared => None,
        }
    }

    /// Creates a LUT record that resolves a packet's key to the entry that the packet has just hit in the
    /// table. The record's fence keeps later packets with this key behind earlier ones that are still
    /// waiting.
    #[inline(never)]
    pub fn learn(
        &mut self,
        table: TableId,
        packet: &mut Packet,
        key: &mut [u64],
        cells: &Cells,
        window: Window,
    ) {
        packet.path = Path::Tables;
        if let (Some(lut), Some(cell), Some(fence)) =
            (self.lut(table), cells.get(packet.entry), window.fence())
        {
            lut.learn_behind(key, packet.entry, cell.priority(), packet.low_latency, fence);
        }
    }

    /// Moves the packets that have just missed in the table's LUT to the front of `waiting`, and copies their
    /// rows of `words` words into `keys`. Returns the number of these packets.
    #[inline(never)]
    pub fn recall(
        &self,
        packets: &[Packet],
        waiting: &mut [PacketSlot],
        keys: &mut [u64],
        words: usize,
    ) -> usize {
        let missed = |slot: PacketSlot| packets[slot.index()].path == Path::Missed;
        let mut recalled = 0;
        for at in 0..waiting.len() {
            if missed(waiting[at]) {
                // The rotation keeps both groups in the order of the burst.
                waiting[recalled..=at].rotate_right(1);
                let row = &self.rows[waiting[recalled].index() * Limits::KEY_WORDS..][..words];
                keys[recalled * words..][..words].copy_from_slice(row);
                recalled += 1;
            }
        }
        recalled
    }

    /// Returns whether the first table is open on this path.
    #[inline]
    pub fn is_open(&self) -> bool {
        !matches!(self.modes[0], FastMode::Closed)
    }
}
