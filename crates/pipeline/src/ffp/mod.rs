// SPDX-License-Identifier: Apache-2.0
//! The fast-forwarding path (FFP): over the tables, for packets all of whose entries are low-latency.
//!
//! ```text
//! burst ──► LUT 0 ──► shared table 1 ──► LUT 2 ──► ... all hit: the packet leaves, before any other of its burst
//!             │ miss, or known normal      │
//!             ▼                            ▼
//!           table 0 ────────────────────► table 2 ──► ...   the table pipeline (burst.rs), from that table on
//!             └ learns: value ──► entry    └ learns
//! ```
//!
//! A table whose lookup is no slower than a LUT's is shared by both paths. The table pipeline learns: what a packet
//! that is still low-latency hits becomes a record ([`lut`]). No record is used beyond what it tells: it goes when
//! rules change ([`clean`]), or is held against them at its next hit ([`lazy`]).

mod admission;
mod clean;
mod counters;
mod inherit;
mod lazy;
mod lut;
mod queue;
mod walk;

use crate::burst::Slot;
use crate::cells::Cells;
use crate::lanes::Window;
use crate::packet::{Packet, Path};
use flow::Limits;
use tables::{NONE, Table};
use wire::Depth;

pub use clean::{Clean, Manner};
pub use counters::{LutCounters, LutFigures};
pub use inherit::Inheritance;
pub use lut::{Lut, Record};

/// How the fast-forwarding path passes a table.
#[derive(Debug, Default)]
pub enum Way {
    /// Not at all: no entry of the table is low-latency.
    #[default]
    Closed,
    /// By the table itself: its lookup is as fast.
    Shared,
    /// By its LUT.
    Lut(Box<Lut>),
}

/// A worker's fast-forwarding path.
#[derive(Debug)]
pub(crate) struct Ffp {
    ways: Box<[Way]>,
    /// For the packet in each slot, if it missed, the row that it was looked up with.
    rows: Box<[u64]>,
}

impl Ffp {
    pub fn new(tables: usize, packets: usize) -> Self {
        let mut ways = Vec::with_capacity(tables);
        ways.resize_with(tables, Way::default);
        let rows = vec![0; packets * Limits::KEY_WORDS].into_boxed_slice();
        Self { ways: ways.into_boxed_slice(), rows }
    }

    /// Changes a table's way and leaves in `way` what is no longer used.
    pub fn swap(&mut self, table: u8, way: &mut Way) {
        let current = &mut self.ways[usize::from(table)];
        std::mem::swap(current, way);
        if let (Way::Lut(new), Way::Lut(_)) = (current, &*way)
            && let Way::Lut(old) = std::mem::take(way)
            && let Some(unused) = new.inherit(old)
        {
            *way = Way::Lut(unused);
        }
    }

    /// The deepest that a table on the path looks into a packet.
    pub fn depth(&self, tables: &[Slot]) -> Depth {
        let open = self.ways.iter().zip(tables).filter(|(way, _)| !matches!(way, Way::Closed));
        open.filter_map(|(_, slot)| slot.as_deref())
            .map(|(_, extractor)| extractor.depth())
            .max()
            .unwrap_or_default()
    }

    /// Keeps a table's records right.
    pub fn clean(&mut self, table: u8, manner: Manner, clean: &mut Clean, view: Option<&Table>) {
        let Some(lut) = self.lut(table) else { return };
        if let (Clean::Added { priority, row, id, single: true, .. }, Some(view)) = (&mut *clean, view) {
            let (value, _) = row.split_at_mut(row.len() / 2);
            let mut found = [NONE];
            view.lookup(value, &mut found);
            if found[0] == *id {
                lut.learn(value, *id, *priority, true);
            }
        }
        lut.clean(manner, clean);
    }

    /// Sets how many extra rules of a record are still walked.
    pub fn set_list_max(&mut self, table: u8, rules: u32) {
        if let Some(lut) = self.lut(table) {
            lut.set_list_max(rules);
        }
    }

    /// A table's LUT.
    #[inline]
    pub fn lut(&mut self, table: u8) -> Option<&mut Lut> {
        match &mut self.ways[usize::from(table)] {
            Way::Lut(lut) => Some(lut),
            Way::Closed | Way::Shared => None,
        }
    }

    /// Learns from a packet that a table served: from its row and the entry it hit. Packets of its value may be among those
    /// that wait: the record's next ones must not overtake them.
    #[inline(never)]
    pub fn learn(&mut self, table: u8, packet: &mut Packet, key: &mut [u64], cells: &Cells, window: Window) {
        packet.path = Path::Tables;
        if let (Some(lut), Some(cell), Some(fence)) =
            (self.lut(table), cells.get(packet.entry), window.fence())
        {
            lut.learn_behind(key, packet.entry, cell.priority(), packet.low_latency, fence);
        }
    }

    /// Puts those packets of `waiting` first that have just left the path, gives each the row of `words` words that the
    /// LUT was asked about, and returns how many they are.
    #[inline]
    pub fn recall(&self, packets: &[Packet], waiting: &mut [u16], keys: &mut [u64], words: usize) -> usize {
        if self.is_open() { self.recall_rows(packets, waiting, keys, words) } else { 0 }
    }

    #[inline(never)]
    fn recall_rows(&self, packets: &[Packet], waiting: &mut [u16], keys: &mut [u64], words: usize) -> usize {
        let missed = |place: u16| packets[usize::from(place)].path == Path::Missed;
        let mut recalled = 0;
        for at in 0..waiting.len() {
            if missed(waiting[at]) {
                // Both kinds stay in the order of the burst.
                waiting[recalled..=at].rotate_right(1);
                let row = &self.rows[usize::from(waiting[recalled]) * Limits::KEY_WORDS..][..words];
                keys[recalled * words..][..words].copy_from_slice(row);
                recalled += 1;
            }
        }
        recalled
    }

    /// Whether any packet can get past the first table.
    #[inline]
    pub fn is_open(&self) -> bool {
        !matches!(self.ways[0], Way::Closed)
    }
}
