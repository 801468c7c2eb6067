// SPDX-License-Identifier: Apache-2.0
//! The clock of workers and model.

use flow::Nanos;
use std::sync::OnceLock;
use std::time::Instant;

/// Time at the start: not 0, which means "never" in counters.
const START_NS: Nanos = 1_000_000_000;

/// A clock that never goes back.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    pub fn new() -> Self {
        Self(Instant::now())
    }

    pub fn now(self) -> Nanos {
        START_NS + self.0.elapsed().as_nanos() as Nanos
    }
}

/// Nanoseconds since this was first asked: for stopwatches.
pub fn elapsed() -> Nanos {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as Nanos
}
