// SPDX-License-Identifier: Apache-2.0
//! The control side of the express path's records: allocates them for each worker, and replaces them when the
//! plan of the keys changes.

use pipeline::{Express, ExpressCounters, ExpressFigures, ExpressPlan, ExpressSize, PlanVersion, Update};
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
    plan: Option<PlanVersion>,
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

    /// Adds empty records for `plan` to each worker's updates, if the plan is new. Returns whether it is.
    pub fn follow(&mut self, plan: &ExpressPlan, parts: &mut [Vec<Update>]) -> bool {
        if self.records == 0 || self.plan == Some(plan.version()) {
            return false;
        }
        self.plan = Some(plan.version());
        for (parts, counters) in parts.iter_mut().zip(&self.counters) {
            let express = Express::new(plan, self.records, Arc::clone(counters));
            self.size = express.as_ref().map(Express::size).unwrap_or_default();
            parts.push(Update::SwapExpress(express.map(Box::new)));
        }
        true
    }
}
