// SPDX-License-Identifier: Apache-2.0
//! The control side of the flow statistics cells: pages for new IDs, sums over the workers, and pages retired
//! by large modify commands.

use actions::{Cell, CellPage, Cells, PAGE_CELLS, ProgramId};
use dataplane::EntryCounters;
use flow::{EntryId, Nanos, RuleVersion};
use pipeline::Update;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A page of cells that was replaced. The worker counts in this page until the operation that replaces it is
/// active.
#[derive(Debug)]
struct RetiredPage {
    worker: usize,
    version: RuleVersion,
    number: usize,
    page: Arc<CellPage>,
}

impl RetiredPage {
    /// Adds the page's counts of an entry. Packets and bytes counted in a page that was retired before the
    /// entry's reset are ignored. The time of the last use is kept, because a reset does not affect timeouts.
    fn add(&self, sum: &mut EntryCounters, id: EntryId, reset: &HashMap<EntryId, RuleVersion>) {
        let cell = &self.page.cells()[id.0 as usize % PAGE_CELLS];
        if reset.get(&id).is_none_or(|version| self.version > *version) {
            add(sum, cell);
        } else {
            let (_, _, used_ns) = cell.read();
            sum.used_ns = sum.used_ns.max(used_ns);
        }
    }
}

/// Appends empty pages up to this number of pages. A new page needs so much stack that checking the stack
/// would cost [`CellStore::prepare`] more than the rest of its work.
#[inline(never)]
fn grow(pages: &mut Vec<Arc<CellPage>>, count: usize) {
    pages.resize_with(count, Arc::default);
}

/// The cells of all workers.
#[derive(Debug)]
pub(crate) struct CellStore {
    workers: Vec<Vec<Arc<CellPage>>>,
    /// Number of workers whose counts are part of the sums. The others only search.
    counted: usize,
    retired: Vec<RetiredPage>,
    /// Counts of retired pages that were released.
    folded: HashMap<EntryId, EntryCounters>,
    /// By entry ID, the version at which the entry's counters restart at 0. Counts in pages retired up to
    /// this version are ignored.
    reset: HashMap<EntryId, RuleVersion>,
    grown: bool,
}

impl CellStore {
    /// Creates no cells for `workers` workers. Only the counts of the first `counted` workers are part of the
    /// sums.
    pub fn new(counted: usize, workers: usize) -> Self {
        Self {
            counted,
            workers: (0..workers).map(|_| Vec::new()).collect(),
            retired: Vec::new(),
            folded: HashMap::new(),
            reset: HashMap::new(),
            grown: false,
        }
    }

    /// Creates counter cells for an entry ID that no worker uses.
    pub fn prepare(&mut self, id: EntryId, program: ProgramId, priority: u16) {
        // A retired page may still hold counts of an earlier entry with this ID.
        if !(self.folded.is_empty() && self.reset.is_empty() && self.retired.is_empty()) {
            self.release(id);
        }
        let (number, place) = (id.0 as usize / PAGE_CELLS, id.0 as usize % PAGE_CELLS);
        for pages in &mut self.workers {
            if pages.len() <= number {
                grow(pages, number + 1);
                self.grown = true;
            }
            pages[number].cells()[place].prepare(program, priority);
        }
    }

    /// Replaces the pages of these entries. `running` returns the program of each entry from `version` on.
    /// Counts in the old pages are kept until `version` is active.
    pub fn replace(
        &mut self,
        ids: &[EntryId],
        running: impl Fn(EntryId) -> Option<ProgramId>,
        version: RuleVersion,
    ) {
        let numbers: BTreeSet<usize> = ids.iter().map(|id| id.0 as usize / PAGE_CELLS).collect();
        for &number in &numbers {
            for (worker, pages) in self.workers.iter_mut().enumerate() {
                let old = std::mem::take(&mut pages[number]);
                for (place, (new, old)) in pages[number].cells().iter().zip(old.cells()).enumerate() {
                    if let Some(program) = running(EntryId((number * PAGE_CELLS + place) as u32)) {
                        new.prepare(program, old.priority());
                        // The worker may record a path with the entry until it has the new page.
                        new.set_recorded();
                    }
                }
                self.retired.push(RetiredPage { worker, version, number, page: old });
            }
        }
        self.grown |= !numbers.is_empty();
    }

    /// If there are new pages, appends them to each worker's updates.
    pub fn updates(&mut self, parts: &mut [Vec<Update>]) {
        if std::mem::take(&mut self.grown) {
            for (parts, pages) in parts.iter_mut().zip(&self.workers) {
                parts.push(Update::SwapCells(Cells::new(pages.clone())));
            }
        }
    }

    /// Adds up the counts of retired pages that their worker no longer uses, and releases these pages.
    pub fn fold(&mut self, applied: impl Fn(usize) -> RuleVersion) {
        let (folded, reset, counted) = (&mut self.folded, &self.reset, self.counted);
        self.retired.retain(|retired| {
            if applied(retired.worker) < retired.version {
                return true;
            }
            if retired.worker >= counted {
                return false;
            }
            for (place, cell) in retired.page.cells().iter().enumerate() {
                let id = EntryId((retired.number * PAGE_CELLS + place) as u32);
                if cell.read() != (0, 0, Nanos(0)) {
                    retired.add(folded.entry(id).or_default(), id, reset);
                }
            }
            false
        });
        if self.retired.is_empty() {
            self.reset = HashMap::new();
        }
    }

    /// Resets the counters of entries to 0 from `version` on.
    pub fn reset(&mut self, ids: &[EntryId], version: RuleVersion) {
        for id in ids {
            if let Some(had) = self.folded.get_mut(id) {
                *had = EntryCounters { used_ns: had.used_ns, ..EntryCounters::default() };
            }
            if !self.retired.is_empty() {
                self.reset.insert(*id, version);
            }
        }
    }

    /// Returns an entry's counters, summed over the workers that forward packets.
    pub fn counters(&self, id: EntryId) -> EntryCounters {
        let (number, place) = (id.0 as usize / PAGE_CELLS, id.0 as usize % PAGE_CELLS);
        let mut sum = self.folded.get(&id).copied().unwrap_or_default();
        for page in self.workers.iter().take(self.counted).filter_map(|pages| pages.get(number)) {
            add(&mut sum, &page.cells()[place]);
        }
        let counts = |retired: &&RetiredPage| retired.number == number && retired.worker < self.counted;
        for retired in self.retired.iter().filter(counts) {
            retired.add(&mut sum, id, &self.reset);
        }
        sum
    }

    /// Removes an entry's counters. No worker may use the entry's cells any longer, including cells in
    /// retired pages.
    pub fn release(&mut self, id: EntryId) {
        self.folded.remove(&id);
        self.reset.remove(&id);
        let (number, place) = (id.0 as usize / PAGE_CELLS, id.0 as usize % PAGE_CELLS);
        for retired in self.retired.iter().filter(|retired| retired.number == number) {
            retired.page.cells()[place].prepare(0, 0);
        }
    }
}

fn add(sum: &mut EntryCounters, cell: &Cell) {
    let (packets, bytes, used_ns) = cell.read();
    sum.packets += packets;
    sum.bytes += bytes;
    sum.used_ns = sum.used_ns.max(used_ns);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_page_keeps_its_counts_before_and_after_it_is_folded() {
        let mut store = CellStore::new(2, 2);
        store.prepare(EntryId(5), 1, 0);
        store.prepare(EntryId(6), 1, 0);
        let old = Arc::clone(&store.workers[0][0]);
        old.cells()[5].count(2, 100, Nanos(7));
        store.replace(&[EntryId(5)], |id| Some(if id == EntryId(5) { 9 } else { 1 }), RuleVersion(3));
        // The worker first counts in the old page, and then in the new one.
        old.cells()[5].count(1, 10, Nanos(8));
        store.workers[0][0].cells()[5].count(1, 1, Nanos(9));
        let all = EntryCounters { packets: 4, bytes: 111, used_ns: Nanos(9) };
        assert_eq!(store.counters(EntryId(5)), all);
        assert_eq!(store.workers[1][0].cells()[5].program(), 9);
        assert_eq!(store.workers[1][0].cells()[6].program(), 1);
        store.fold(|_| RuleVersion(2));
        assert_eq!(store.retired.len(), 2);
        store.fold(|_| RuleVersion(3));
        assert_eq!((store.retired.len(), store.counters(EntryId(5))), (0, all));
        store.release(EntryId(5));
        assert_eq!(store.counters(EntryId(5)).packets, 1);
    }

    #[test]
    fn a_reset_drops_the_counts_of_every_page_and_keeps_the_last_use() {
        let mut store = CellStore::new(1, 1);
        store.prepare(EntryId(5), 1, 0);
        let first = Arc::clone(&store.workers[0][0]);
        first.cells()[5].count(2, 100, Nanos(7));
        store.replace(&[EntryId(5)], |_| Some(1), RuleVersion(3));
        // The entry's counters restart at 0 with version 4. The worker is still at version 2 and counts in
        // the first page.
        store.reset(&[EntryId(5)], RuleVersion(4));
        store.replace(&[EntryId(5)], |_| Some(1), RuleVersion(5));
        first.cells()[5].count(1, 10, Nanos(8));
        let used = EntryCounters { used_ns: Nanos(8), ..EntryCounters::default() };
        assert_eq!(store.counters(EntryId(5)), used);
        store.fold(|_| RuleVersion(3));
        assert_eq!(store.counters(EntryId(5)), used);
        // From version 4 on, the worker counts in the second page until it gets the page of version 5.
        let second = store
            .retired
            .iter()
            .find(|retired| retired.version == RuleVersion(5))
            .map(|r| Arc::clone(&r.page))
            .unwrap();
        second.cells()[5].reset();
        second.cells()[5].count(1, 60, Nanos(9));
        assert_eq!(store.counters(EntryId(5)).packets, 1);
        store.fold(|_| RuleVersion(5));
        assert_eq!((store.counters(EntryId(5)).packets, store.reset.len()), (1, 0));
    }

    #[test]
    fn an_entry_released_before_its_page_is_folded_leaves_nothing_behind() {
        let mut store = CellStore::new(1, 1);
        store.prepare(EntryId(5), 1, 0);
        store.workers[0][0].cells()[5].count(2, 100, Nanos(7));
        store.replace(&[EntryId(6)], |_| Some(9), RuleVersion(3));
        store.release(EntryId(5));
        store.replace(&[EntryId(6)], |_| Some(8), RuleVersion(4));
        store.prepare(EntryId(5), 2, 0);
        store.fold(|_| RuleVersion(4));
        assert_eq!(store.counters(EntryId(5)), EntryCounters::default());
    }
}
