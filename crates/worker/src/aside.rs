// SPDX-License-Identifier: Apache-2.0
//! What listens to single bursts, beside the worker's own probe: a burst that nothing here wants to hear is forwarded by
//! code that knows nothing of it.

use crate::stopwatch::Stopwatch;
use pipeline::{Probe, Step};

/// A worker's instruments for single bursts.
#[derive(Debug)]
pub(crate) struct Aside {
    stopwatch: Option<Stopwatch>,
}

impl Aside {
    pub fn new(stopwatch: Option<Stopwatch>) -> Self {
        Self { stopwatch }
    }

    /// Whether something listens to the burst that is forwarded next. Asked once a burst.
    #[inline]
    pub fn listens(&mut self) -> bool {
        self.stopwatch.as_mut().is_some_and(Stopwatch::is_due)
    }
}

impl Probe for Aside {
    fn compares(&self) -> bool {
        self.stopwatch.as_ref().is_some_and(Stopwatch::compares)
    }

    fn mark(&mut self, step: Step, units: u32) {
        if let Some(stopwatch) = &mut self.stopwatch {
            stopwatch.mark(step, units);
        }
    }
}
