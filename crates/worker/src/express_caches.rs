// SPDX-License-Identifier: Apache-2.0
//! The control side of the express path's records: allocates them for each worker, and replaces them when the
//! plan of the keys changes.

use pipeline::{Express, ExpressCounters, ExpressFigures, ExpressPlan, PlanVersion, Update};
use std::sync::Arc;

/// Records of all workers.
#[derive(Debug)]
pub(crate) struct ExpressCaches {
    /// Number of records per worker, or 0 if the express path is off.
    records: usize,
    counters: Vec<Arc<ExpressCounters>>,
    /// Plan of the keys in use, or `None` before the first one.
    plan: Option<PlanVersion>,
}

impl ExpressCaches {
    /// Creates the control side for `workers` workers with `records` records each.
    pub fn new(workers: usize, records: usize) -> Self {
        Self { records, counters: (0..workers).map(|_| Arc::default()).collect(), plan: None }
    }

    /// Returns the number of records per worker, or 0 if the express path is off.
    pub fn records(&self) -> usize {
        self.records
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
            parts.push(Update::SwapExpress(express.map(Box::new)));
        }
        true
    }
}
