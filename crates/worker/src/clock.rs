// SPDX-License-Identifier: Apache-2.0
//! The clock for latencies: cheap, with a resolution of about 1 ns. Only differences between its readings are
//! meaningful.

use crate::tsc;
use flow::Nanos;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Duration of the rate measurement.
const CALIBRATION: Duration = Duration::from_millis(10);

/// Number of paired readings of both clocks. The pair that took the shortest time is used, because other
/// pairs may have been interrupted.
const TRIES: usize = 32;

/// Plausible rates of the counter in GHz. A rate outside this range means that the measurement was disturbed.
const RATES_GHZ: std::ops::RangeInclusive<f64> = 0.1..=10.0;

/// A clock that counts in units of 1 to 2 ns (longer only for counters slower than 1 GHz).
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    read: fn() -> u64,
    /// Counter ticks per unit, as a power of two.
    shift: u32,
    unit_ns: f64,
}

impl Clock {
    /// Returns a clock that never advances: all latencies are 0.
    #[must_use]
    pub const fn stopped() -> Self {
        Self { read: || 1, shift: 0, unit_ns: 1.0 }
    }

    /// Returns a clock that calls `read`, which must count nanoseconds and never go backwards.
    #[must_use]
    pub fn counting_ns(read: fn() -> u64) -> Self {
        Self { read, shift: 0, unit_ns: 1.0 }
    }

    /// Begins to calibrate the counter of [`Clock::of_machine`].
    pub fn begin_calibration() {
        begun();
    }

    /// Returns the best clock of this machine: the time stamp counter if its rate is constant, otherwise the
    /// monotonic clock. The first call calibrates the counter against the monotonic clock, which takes 10 ms
    /// from [`Clock::begin_calibration`], if that was called before.
    #[must_use]
    pub fn of_machine() -> Self {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(|| counter().unwrap_or_else(|| Self::counting_ns(monotonic_ns)))
    }

    /// Returns the current time in units.
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        (self.read)() >> self.shift
    }

    /// Converts a duration from units to nanoseconds.
    pub(crate) fn ns(&self, units: u64) -> Nanos {
        Nanos((units as f64 * self.unit_ns).round() as u64)
    }

    /// Converts a duration from nanoseconds to units.
    pub(crate) fn units(&self, ns: Nanos) -> u64 {
        (ns.0 as f64 / self.unit_ns).round() as u64
    }
}

/// Returns the number of nanoseconds since the first call, plus 1.
fn monotonic_ns() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    1 + START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Returns the readings of both clocks from the beginning of the calibration. The first call begins it.
fn begun() -> (u64, Instant) {
    static BEGUN: OnceLock<(u64, Instant)> = OnceLock::new();
    *BEGUN.get_or_init(both)
}

/// Calibrates the time stamp counter. Returns `None` if it is not usable as a clock.
fn counter() -> Option<Clock> {
    if !tsc::is_invariant() {
        return None;
    }
    let (start_ticks, start) = begun();
    while start.elapsed() < CALIBRATION {
        std::hint::spin_loop();
    }
    let (end_ticks, end) = both();
    let span_ns = end.saturating_duration_since(start).as_nanos() as f64;
    let ghz = end_ticks.wrapping_sub(start_ticks) as f64 / span_ns;
    RATES_GHZ.contains(&ghz).then(|| {
        let shift = ghz.log2().ceil().max(0.0) as u32;
        Clock { read: tsc::read, shift, unit_ns: f64::from(1 << shift) / ghz }
    })
}

/// Reads both clocks at almost the same time.
fn both() -> (u64, Instant) {
    let once = || {
        let before = tsc::read();
        let now = Instant::now();
        let width = tsc::read().wrapping_sub(before);
        (width, before.wrapping_add(width / 2), now)
    };
    let (_, ticks, now) = (1..TRIES).fold(once(), |best, _| {
        let other = once();
        if other.0 < best.0 { other } else { best }
    });
    (ticks, now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_this_machine_advances_in_units_of_about_1_ns() {
        let clock = Clock::of_machine();
        assert!(clock.unit_ns >= 1.0 && clock.unit_ns <= 10.0, "{clock:?}");
        let (start, real) = (clock.now(), Instant::now());
        while real.elapsed() < Duration::from_millis(2) {}
        let measured_ns = clock.ns(clock.now() - start);
        assert!(measured_ns >= Nanos(1_900_000), "{measured_ns} ns in 2 ms or more by {clock:?}");
        assert!(clock.units(measured_ns).abs_diff(clock.now() - start) < clock.now() - start + 2);
    }

    #[test]
    fn a_nanosecond_clock_returns_its_readings() {
        let clock = Clock::counting_ns(|| 7);
        assert_eq!((clock.now(), clock.ns(9), clock.units(Nanos(9))), (7, Nanos(9), 9));
        assert_eq!(Clock::stopped().now(), Clock::stopped().now());
    }
}
