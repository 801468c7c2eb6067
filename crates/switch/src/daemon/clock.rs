// SPDX-License-Identifier: Apache-2.0
//! The clock of the workers and the model.

use flow::Nanos;
use std::sync::OnceLock;
use std::time::Instant;

/// Reading of the clock at the start, in ns: 400 days. Counters use 0 for "never", and restored entries were
/// added before the start.
const START_NS: Nanos = Nanos(400 * 86_400 * 1_000_000_000);

/// Monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock(Instant);

impl MonotonicClock {
    pub fn new() -> Self {
        Self(Instant::now())
    }

    pub fn now(self) -> Nanos {
        START_NS + Nanos::from(self.0.elapsed())
    }
}

/// Returns the time since the first call, in nanoseconds. Workers use this clock as a stopwatch.
pub fn elapsed() -> Nanos {
    static START: OnceLock<Instant> = OnceLock::new();
    Nanos::from(START.get_or_init(Instant::now).elapsed())
}
