// SPDX-License-Identifier: Apache-2.0
//! The control side of the express path's records: allocates them for each worker, and replaces them when the
//! plan of the keys changes.

use dataplane::{ExpressCounters, ExpressFigures};
use flow::{EntryChange, Field, Nanos, TableId};
use keys::{ExpressPlan, KeyFit, Permitted, PlanVersion};
use pipeline::{BypassLimits, Express, ExpressSize, PathChanges, Predecessor, Update};
use std::sync::Arc;

/// Time for which the records of the previous plan stay in use, in nanoseconds.
const SERVES_NS: Nanos = Nanos(2_000_000_000);

/// Time in which most flows get records of a new plan, in nanoseconds. If the plan changes again before that,
/// the records of the earlier plan stay in use instead of the new, nearly empty ones.
const WARM_NS: Nanos = Nanos(100_000_000);

/// State of one worker's path records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpressState {
    /// Counters of the worker.
    pub figures: ExpressFigures,
    /// Whether the worker looks up only a sample of its packets now, because hardly any has a record.
    pub is_bypassed: bool,
    /// Size of the worker's records. It is 0 if the express path is off, or if no record has room for the
    /// keys.
    pub size: ExpressSize,
}

/// Records of all workers.
#[derive(Debug)]
pub(crate) struct ExpressCaches {
    /// Number of records per worker, or 0 if the express path is off.
    records: usize,
    /// Limits that decide when a worker bypasses its records.
    bypass: BypassLimits,
    counters: Vec<Arc<ExpressCounters>>,
    /// Plan of the keys in use, or `None` before the first one.
    plan: Option<ExpressPlan>,
    /// Whether a LUT examines bits that the keys in use lack.
    are_coarse: bool,
    /// Plan of the previous records, while they are in use.
    previous: Option<ExpressPlan>,
    /// Time at which the records in use were made.
    made: Nanos,
    now: Nanos,
    /// Size of each worker's records.
    size: ExpressSize,
}

impl ExpressCaches {
    /// Creates the control side for `workers` workers with `records` records each. `bypass` has the limits
    /// that decide when workers bypass their records.
    pub fn new(workers: usize, records: usize, bypass: BypassLimits) -> Self {
        let counters = (0..workers).map(|_| Arc::default()).collect();
        let size = ExpressSize::default();
        Self {
            records,
            bypass,
            counters,
            plan: None,
            are_coarse: false,
            previous: None,
            made: Nanos(0),
            now: Nanos(0),
            size,
        }
    }

    /// Returns the number of records per worker, or 0 if the express path is off.
    pub fn records(&self) -> usize {
        self.records
    }

    /// Returns the version of the previous plan, while its records are in use.
    pub fn previous(&self) -> Option<PlanVersion> {
        self.previous.as_ref().map(ExpressPlan::version)
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

    /// Adds the entry changes that concern path records to each worker's updates. `is_reached` returns
    /// whether packets can reach a table under the new rules.
    pub fn note(
        &self,
        changes: &[EntryChange],
        is_reached: impl Fn(TableId) -> bool,
        parts: &mut [Vec<Update>],
    ) {
        if self.records == 0 {
            return;
        }
        let plans: Vec<&ExpressPlan> = self.plan.iter().chain(&self.previous).collect();
        let mut noted = PathChanges::new(&plans);
        for change in changes {
            match change {
                // No path contains a table that packets cannot reach.
                EntryChange::Add(entry) if !is_reached(entry.table) => {}
                EntryChange::Add(entry) => noted.add(entry, &plans),
                EntryChange::Modify { id, .. } => noted.remove_or_modify(*id),
                EntryChange::Remove { id, .. } => noted.remove_or_modify(*id),
            }
            if noted.is_full() {
                break;
            }
        }
        if !noted.is_empty() {
            let noted = Arc::new(noted);
            parts.iter_mut().for_each(|parts| parts.push(Update::PathChanges(Arc::clone(&noted))));
        }
    }

    /// Adds empty records for `plan` to each worker's updates, if the plan is new. `are_coarse` states
    /// whether a LUT examines bits that keys of this plan lack. Returns whether updates were added.
    pub fn follow(&mut self, plan: &ExpressPlan, are_coarse: bool, parts: &mut [Vec<Update>]) -> bool {
        if self.records == 0 {
            return false;
        }
        let is_new = self.plan.as_ref().is_none_or(|known| known.version() != plan.version());
        if is_new {
            self.replace(plan, parts);
            self.are_coarse = false;
        }
        let changes = std::mem::replace(&mut self.are_coarse, are_coarse) != are_coarse;
        if changes {
            parts.iter_mut().for_each(|parts| parts.push(Update::CoarseKeys(are_coarse)));
        }
        is_new || changes
    }

    /// Adds empty records for a new plan to each worker's updates.
    fn replace(&mut self, plan: &ExpressPlan, parts: &mut [Vec<Update>]) {
        let predecessor = self.predecessor(plan);
        let before = self.plan.replace(plan.clone());
        match predecessor {
            Predecessor::None => self.previous = None,
            Predecessor::Current => self.previous = before,
            Predecessor::Previous => {}
        }
        self.made = self.now;
        for (parts, counters) in parts.iter_mut().zip(&self.counters) {
            let express = Express::new(plan, self.records, Arc::clone(counters));
            let express =
                express.map(|express| express.with_predecessor(predecessor).with_bypass(self.bypass));
            self.size = express.as_ref().map(Express::size).unwrap_or_default();
            parts.push(Update::SwapExpress(express.map(Box::new)));
        }
    }

    /// Returns the records from which the records of a new plan copy paths.
    fn predecessor(&self, plan: &ExpressPlan) -> Predecessor {
        let suits = |known: &ExpressPlan| known.fit() != KeyFit::TooLong && known.has_ports_of(plan);
        let is_warm = self.now.saturating_sub(self.made) >= WARM_NS;
        match (&self.plan, &self.previous) {
            _ if plan.fit() == KeyFit::TooLong => Predecessor::None,
            (_, Some(previous)) if !is_warm && suits(previous) => Predecessor::Previous,
            (Some(current), _) if suits(current) => Predecessor::Current,
            _ => Predecessor::None,
        }
    }

    /// Ends the use of the previous records after `SERVES_NS`. Returns whether their use ended.
    pub fn tick(&mut self, now: Nanos, parts: &mut [Vec<Update>]) -> bool {
        self.now = now;
        let ends = self.previous.is_some() && now.saturating_sub(self.made) >= SERVES_NS;
        if ends {
            self.previous = None;
            parts.iter_mut().for_each(|parts| parts.push(Update::EndPrevious(None)));
        }
        ends
    }

    /// Returns the greatest changes after which the keys still determine the lookups in later tables.
    pub fn permitted(&self) -> Permitted {
        self.plan.as_ref().map_or(Permitted::WITHOUT_BITS, ExpressPlan::permitted)
    }

    /// Returns the bits of each field that the keys of the records in use hold.
    pub fn examined(&self) -> impl Iterator<Item = (Field, u128)> + '_ {
        self.plan.iter().chain(&self.previous).flat_map(|plan| plan.examined().iter().copied())
    }
}
