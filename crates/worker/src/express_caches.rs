// SPDX-License-Identifier: Apache-2.0
//! The control side of the express path's records: allocates them for each worker, and replaces them when the
//! plan of the keys changes.

use flow::operation::MAC_TABLE;
use flow::{EntryChange, TableId};
use pipeline::{Express, ExpressCounters, ExpressFigures, ExpressPlan, ExpressSize, PathChanges, Update};
use std::sync::Arc;

/// State of one worker's path records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpressState {
    /// Counters of the worker.
    pub figures: ExpressFigures,
    /// Whether the worker looks up only a sample of its packets now, because hardly any has a record.
    pub is_bypassed: bool,
    /// Size of its records. It is 0 if the express path is off, or if no record has room for the keys.
    pub size: ExpressSize,
}

/// Records of all workers.
#[derive(Debug)]
pub(crate) struct ExpressCaches {
    /// Number of records per worker, or 0 if the express path is off.
    records: usize,
    counters: Vec<Arc<ExpressCounters>>,
    /// Plan of the keys in use, or `None` before the first one.
    plan: Option<ExpressPlan>,
    /// Size of each worker's records.
    size: ExpressSize,
}

impl ExpressCaches {
    /// Creates the control side for `workers` workers with `records` records each.
    pub fn new(workers: usize, records: usize) -> Self {
        let counters = (0..workers).map(|_| Arc::default()).collect();
        Self { records, counters, plan: None, size: ExpressSize::default() }
    }

    /// Returns the number of records per worker, or 0 if the express path is off.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Returns the state of each worker's records.
    pub fn states(&self) -> impl Iterator<Item = ExpressState> + '_ {
        self.counters.iter().map(|counters| ExpressState {
            figures: counters.read(),
            is_bypassed: counters.is_bypassed(),
            size: self.size,
        })
    }

    /// Returns the counters, summed over the workers.
    pub fn figures(&self) -> ExpressFigures {
        let mut sum = ExpressFigures::default();
        self.counters.iter().for_each(|counters| sum.add(&counters.read()));
        sum
    }

    /// Adds the changes of entries that concern paths to each worker's updates. `is_reached` returns whether
    /// packets can reach a table, by the new rules.
    pub fn note(
        &self,
        changes: &[EntryChange],
        is_reached: impl Fn(TableId) -> bool,
        parts: &mut [Vec<Update>],
    ) {
        let plans: Vec<&ExpressPlan> = self.plan.iter().collect();
        let mut noted = PathChanges::new(&plans);
        for change in changes {
            match change {
                // NORMAL looks learned addresses up anew for each packet.
                EntryChange::Add(entry) if entry.table == MAC_TABLE => {}
                EntryChange::Modify { table: MAC_TABLE, .. }
                | EntryChange::Remove { table: MAC_TABLE, .. } => {}
                // No path leads over a table that packets cannot reach.
                EntryChange::Add(entry) if !is_reached(entry.table) => {}
                EntryChange::Add(entry) => noted.add(entry, &plans),
                EntryChange::Modify { id, .. } => noted.remove_or_modify(*id),
                EntryChange::Remove { id, .. } => noted.remove_or_modify(*id),
            }
        }
        if self.records > 0 && !noted.is_empty() {
            let noted = Arc::new(noted);
            parts.iter_mut().for_each(|parts| parts.push(Update::PathChanges(Arc::clone(&noted))));
        }
    }

    /// Adds empty records for `plan` to each worker's updates, if the plan is new. Returns whether it is.
    pub fn follow(&mut self, plan: &ExpressPlan, parts: &mut [Vec<Update>]) -> bool {
        let is_known = self.plan.as_ref().is_some_and(|known| known.version() == plan.version());
        if self.records == 0 || is_known {
            return false;
        }
        self.plan = Some(plan.clone());
        for (parts, counters) in parts.iter_mut().zip(&self.counters) {
            let express = Express::new(plan, self.records, Arc::clone(counters));
            self.size = express.as_ref().map(Express::size).unwrap_or_default();
            parts.push(Update::SwapExpress(express.map(Box::new)));
        }
        true
    }
}
