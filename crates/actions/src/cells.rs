// SPDX-License-Identifier: Apache-2.0
//! Cells: the state of each entry in one worker, by entry id.
//!
//! A cell holds the entry's program number and counters. The control thread writes a cell only before the
//! worker begins to use it. From then on, only the worker writes the cell.

use flow::{EntryId, Nanos};
use frame::prefetch;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Number of cells in a page.
pub const PAGE_CELLS: usize = 4_096;

/// Number of a [`Program`](crate::Program), an entry's compiled instructions.
pub type ProgramId = u32;

/// State of one entry in one worker.
#[derive(Debug, Default)]
#[repr(align(32))]
pub struct Cell {
    program: AtomicU32,
    priority: AtomicU16,
    /// Whether a path with the entry was recorded.
    is_recorded: AtomicBool,
    packets: AtomicU64,
    bytes: AtomicU64,
    used_ns: AtomicU64,
}

impl Cell {
    /// Returns the number of the entry's program.
    #[must_use]
    #[inline]
    pub fn program(&self) -> ProgramId {
        self.program.load(Relaxed)
    }

    /// Returns the entry's priority.
    #[must_use]
    pub fn priority(&self) -> u16 {
        self.priority.load(Relaxed)
    }

    /// Returns whether a path with the entry was recorded. If not, no record depends on the entry.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.is_recorded.load(Relaxed)
    }

    /// Notes that a path with the entry is recorded. Called by the worker, or by the control thread for a new
    /// cell of an active entry.
    pub fn set_recorded(&self) {
        self.is_recorded.store(true, Relaxed);
    }

    /// Makes the entry run another program.
    pub fn set_program(&self, program: ProgramId) {
        self.program.store(program, Relaxed);
    }

    /// Counts packets and sets the time of last use. The worker is the only writer, so no locked instruction
    /// is needed.
    #[inline]
    pub fn count(&self, packets: u64, bytes: u64, now: Nanos) {
        self.packets.store(self.packets.load(Relaxed) + packets, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
        self.used_ns.store(now.0, Relaxed);
    }

    /// Takes back a hit of a packet of `bytes` bytes, which will be processed again. Only the worker may call
    /// this.
    pub fn uncount(&self, bytes: u64) {
        self.packets.store(self.packets.load(Relaxed).saturating_sub(1), Relaxed);
        self.bytes.store(self.bytes.load(Relaxed).saturating_sub(bytes), Relaxed);
    }

    /// Adds several hits, the last of them at time `used`. Does not move the time of last use back.
    pub fn add_hits(&self, packets: u64, bytes: u64, used: Nanos) {
        let later = Nanos(self.used_ns.load(Relaxed)).max(used);
        self.count(packets, bytes, later);
    }

    /// Resets the counters. Only the worker may call this.
    pub fn reset(&self) {
        self.packets.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }

    /// Sets the time of last use without counting.
    #[inline]
    pub fn touch(&self, now: Nanos) {
        self.used_ns.store(now.0, Relaxed);
    }

    /// Returns the numbers of packets and bytes, and the time of last use in ns. The time is 0 if the entry
    /// was never used.
    #[must_use]
    pub fn read(&self) -> (u64, u64, Nanos) {
        (self.packets.load(Relaxed), self.bytes.load(Relaxed), Nanos(self.used_ns.load(Relaxed)))
    }

    /// Resets the counters, sets program and priority, and notes that no path is recorded. The worker must
    /// not use the cell yet.
    pub fn prepare(&self, program: ProgramId, priority: u16) {
        self.program.store(program, Relaxed);
        self.priority.store(priority, Relaxed);
        self.is_recorded.store(false, Relaxed);
        self.packets.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
        self.used_ns.store(0, Relaxed);
    }
}

/// Cells of consecutive entry ids.
#[derive(Debug)]
pub struct CellPage {
    cells: [Cell; PAGE_CELLS],
}

impl Default for CellPage {
    fn default() -> Self {
        Self { cells: std::array::from_fn(|_| Cell::default()) }
    }
}

impl CellPage {
    /// Returns all cells of the page.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }
}

/// Pages of cells of one worker, by entry id.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    pages: Vec<Arc<CellPage>>,
}

impl Cells {
    /// Creates cells from pages, in the order of entry ids.
    #[must_use]
    pub fn new(pages: Vec<Arc<CellPage>>) -> Self {
        Self { pages }
    }

    /// Returns the cell of an entry, or `None` if the id is beyond the last page.
    #[must_use]
    #[inline]
    pub fn get(&self, id: EntryId) -> Option<&Cell> {
        self.pages.get(id.0 as usize / PAGE_CELLS).map(|page| &page.cells[id.0 as usize % PAGE_CELLS])
    }

    /// Returns the cell of an entry and prefetches it.
    #[inline]
    pub fn prefetched(&self, id: EntryId) -> Option<&Cell> {
        let cell = self.get(id)?;
        prefetch::of(cell);
        Some(cell)
    }

    /// Returns a view of the cells through which single packets are counted at time `now`.
    #[inline(always)]
    pub fn counting(&self, now: Nanos) -> Counting<'_> {
        Counting { pages: &self.pages, now }
    }

    /// Returns the pages, in the order of entry ids.
    #[must_use]
    pub fn pages(&self) -> &[Arc<CellPage>] {
        &self.pages
    }
}

/// A view that counts single packets in the cells of entries.
#[derive(Clone, Copy, Debug)]
pub struct Counting<'a> {
    pages: &'a [Arc<CellPage>],
    now: Nanos,
}

impl Counting<'_> {
    /// Sets the time of last use of an entry without counting.
    #[inline(always)]
    pub fn touch(self, id: EntryId) {
        if let Some(page) = self.pages.get(id.0 as usize / PAGE_CELLS) {
            page.cells[id.0 as usize % PAGE_CELLS].touch(self.now);
        }
    }

    /// Counts a packet of `bytes` bytes that hit an entry. Does nothing for `EntryId::NONE`.
    #[inline(always)]
    pub fn count(self, id: EntryId, bytes: usize) {
        if let Some(page) = self.pages.get(id.0 as usize / PAGE_CELLS) {
            page.cells[id.0 as usize % PAGE_CELLS].count(1, bytes as u64, self.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_by_id() {
        let cells = Cells::new(vec![Arc::default(), Arc::default()]);
        cells.get(EntryId(4_097)).unwrap().prepare(3, 9);
        cells.get(EntryId(4_097)).unwrap().count(2, 120, Nanos(9));
        assert_eq!(cells.get(EntryId(4_097)).unwrap().read(), (2, 120, Nanos(9)));
        assert_eq!(cells.get(EntryId(4_097)).unwrap().program(), 3);
        assert_eq!(cells.get(EntryId(1)).unwrap().read(), (0, 0, Nanos(0)));
        assert!(cells.get(EntryId(8_192)).is_none());
        let cell = cells.get(EntryId(5)).unwrap();
        cell.set_recorded();
        assert!(cell.is_recorded() && !cells.get(EntryId(6)).unwrap().is_recorded());
        cell.prepare(3, 9);
        assert!(!cell.is_recorded(), "another entry has the id");
        assert_eq!(size_of::<Cell>(), 32);
    }
}
