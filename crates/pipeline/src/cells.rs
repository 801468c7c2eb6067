// SPDX-License-Identifier: Apache-2.0
//! Cells: what hangs off an entry's id in one worker. Which program it runs, and its counters. Only the worker writes
//! a live cell; the control thread writes a cell before its id is known to the worker, and reads at any time.

use flow::{EntryId, Nanos};
use frame::prefetch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Cells in a page.
pub const PAGE_CELLS: usize = 4_096;

/// Number of a program, see [`crate::program`].
pub type ProgramId = u32;

/// One entry in one worker.
#[derive(Debug, Default)]
#[repr(align(32))]
pub struct Cell {
    program: AtomicU32,
    priority: AtomicU16,
    packets: AtomicU64,
    bytes: AtomicU64,
    used_ns: AtomicU64,
}

impl Cell {
    /// The program the entry runs.
    #[must_use]
    #[inline]
    pub fn program(&self) -> ProgramId {
        self.program.load(Relaxed)
    }

    /// The entry's priority.
    #[must_use]
    pub fn priority(&self) -> u16 {
        self.priority.load(Relaxed)
    }

    /// Makes the entry run another program.
    pub fn set_program(&self, program: ProgramId) {
        self.program.store(program, Relaxed);
    }

    /// Counts packets. One writer: no locked instruction.
    #[inline]
    pub fn count(&self, packets: u64, bytes: u64, now: Nanos) {
        self.packets.store(self.packets.load(Relaxed) + packets, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes, Relaxed);
        self.used_ns.store(now, Relaxed);
    }

    /// Counts from 0 again. By the worker, as all it counts.
    pub fn reset(&self) {
        self.packets.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
    }

    /// Notes that the entry was used, without counting.
    #[inline]
    pub fn touch(&self, now: Nanos) {
        self.used_ns.store(now, Relaxed);
    }

    /// Packets, bytes and when it was last used (0: never).
    #[must_use]
    pub fn read(&self) -> (u64, u64, Nanos) {
        (self.packets.load(Relaxed), self.bytes.load(Relaxed), self.used_ns.load(Relaxed))
    }

    /// Empties the counters and sets program and priority, for an id that no worker knows.
    pub fn prepare(&self, program: ProgramId, priority: u16) {
        self.program.store(program, Relaxed);
        self.priority.store(priority, Relaxed);
        self.packets.store(0, Relaxed);
        self.bytes.store(0, Relaxed);
        self.used_ns.store(0, Relaxed);
    }
}

/// Cells of consecutive ids.
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
    /// All cells.
    #[must_use]
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }
}

/// The pages of one worker, by id.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    pages: Vec<Arc<CellPage>>,
}

impl Cells {
    /// The pages.
    #[must_use]
    pub fn new(pages: Vec<Arc<CellPage>>) -> Self {
        Self { pages }
    }

    /// The cell of an entry; none if it has no page.
    #[must_use]
    #[inline]
    pub fn get(&self, id: EntryId) -> Option<&Cell> {
        self.pages.get(id as usize / PAGE_CELLS).map(|page| &page.cells[id as usize % PAGE_CELLS])
    }

    /// The same, and asks for it before it is needed.
    #[inline]
    pub(crate) fn prefetched(&self, id: EntryId) -> Option<&Cell> {
        let cell = self.get(id)?;
        prefetch::of(cell);
        Some(cell)
    }

    /// Pages.
    #[must_use]
    pub fn pages(&self) -> &[Arc<CellPage>] {
        &self.pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_by_id() {
        let cells = Cells::new(vec![Arc::default(), Arc::default()]);
        cells.get(4_097).unwrap().prepare(3, 9);
        cells.get(4_097).unwrap().count(2, 120, 9);
        assert_eq!(cells.get(4_097).unwrap().read(), (2, 120, 9));
        assert_eq!(cells.get(4_097).unwrap().program(), 3);
        assert_eq!(cells.get(1).unwrap().read(), (0, 0, 0));
        assert!(cells.get(8_192).is_none());
        assert_eq!(size_of::<Cell>(), 32);
    }
}
