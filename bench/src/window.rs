// SPDX-License-Identifier: Apache-2.0
//! Timing of one short window of work, and detection of preemption in it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{Error, ThreadCpu};

/// An iteration of a measured loop that takes longer counts as preempted. A burst takes 1 to 3 us.
pub const GAP_LIMIT: Duration = Duration::from_micros(20);

/// Work done in one window, and its cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Work done (packets, lookups, ...).
    pub units: u64,
    /// CPU time of the forwarding thread in nanoseconds.
    pub cpu_ns: u64,
    /// Wall-clock time in nanoseconds.
    pub wall_ns: u64,
    /// Number of iterations that exceeded the limit.
    pub gaps: u64,
    /// Total time in nanoseconds of the iterations that exceeded the limit, or the difference between
    /// wall-clock and CPU time if that is larger.
    pub stolen_ns: u64,
}

/// Which figure of each window is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Millions of units per second of CPU time, such as Mpps per CPU-second; more is better.
    MegaPerCpuSecond,
    /// Nanoseconds of CPU time per unit; less is better.
    CpuNsPerUnit,
    /// Wall-clock seconds, for windows in which several programs work; less is better.
    WallSeconds,
}

impl Measure {
    /// Returns the figure of `window`.
    #[must_use]
    #[allow(clippy::cast_precision_loss)] // A window's counts are far below 2^52.
    pub fn of(self, window: &Window) -> f64 {
        let (units, cpu_ns) = (window.units as f64, window.cpu_ns as f64);
        match self {
            Self::MegaPerCpuSecond => units * 1e3 / cpu_ns,
            Self::CpuNsPerUnit => cpu_ns / units,
            Self::WallSeconds => window.wall_ns as f64 / 1e9,
        }
    }
}

/// Times a window. The caller calls [`Stopwatch::turn`] after each iteration and [`Stopwatch::stop`] at the
/// end.
#[derive(Debug)]
pub struct Stopwatch {
    gap_limit: Duration,
    cpu: ThreadCpu,
    start: Instant,
    last: Instant,
    gaps: u64,
    stolen: Duration,
}

impl Stopwatch {
    /// Starts the stopwatch. An iteration longer than `gap_limit` counts as preempted.
    #[must_use]
    pub fn start(gap_limit: Duration) -> Self {
        let cpu = ThreadCpu::now();
        let start = Instant::now();
        Self { gap_limit, cpu, start, last: start, gaps: 0, stolen: Duration::ZERO }
    }

    /// Ends one iteration of the loop (a burst).
    #[inline]
    pub fn turn(&mut self) {
        let now = Instant::now();
        let took = now - self.last;
        self.last = now;
        if took > self.gap_limit {
            self.gaps += 1;
            self.stolen += took;
        }
    }

    /// Ends the window. `units` is the work done in it. A thread that was off its core for longer than the
    /// limit counts as preempted.
    #[must_use]
    pub fn stop(self, units: u64) -> Window {
        let wall = self.start.elapsed();
        let cpu_ns = self.cpu.elapsed_ns();
        let off_core = wall.saturating_sub(Duration::from_nanos(cpu_ns));
        let unseen = self.gaps == 0 && off_core > self.gap_limit;
        Window {
            units,
            cpu_ns,
            wall_ns: nanoseconds(wall),
            gaps: self.gaps + u64::from(unseen),
            stolen_ns: if self.gaps > 0 || unseen { nanoseconds(self.stolen.max(off_core)) } else { 0 },
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Performs one window of work on request.
pub trait Contender {
    /// Performs one window of work.
    ///
    /// # Errors
    /// Returns an error if the work could not be done or timed.
    fn window(&mut self) -> Result<Window, Error>;
}

/// A closure that measures its own window is a contender.
impl<F: FnMut() -> Result<Window, Error>> Contender for F {
    fn window(&mut self) -> Result<Window, Error> {
        self()
    }
}

/// Contender in this thread, which calls a closure a fixed number of times. A call performs one burst and
/// returns its units.
pub struct Loop<F> {
    turns: u32,
    gap_limit: Duration,
    burst: F,
}

impl<F: FnMut() -> u64> Loop<F> {
    /// Creates a contender with windows of `turns` bursts.
    pub fn new(turns: u32, burst: F) -> Self {
        Self { turns, gap_limit: GAP_LIMIT, burst }
    }

    /// Sets the time limit of a burst that usually takes longer than [`GAP_LIMIT`].
    #[must_use]
    pub fn gap_limit(self, gap_limit: Duration) -> Self {
        Self { gap_limit, ..self }
    }
}

impl<F: FnMut() -> u64> Contender for Loop<F> {
    fn window(&mut self) -> Result<Window, Error> {
        let mut stopwatch = Stopwatch::start(self.gap_limit);
        let mut units = 0;
        for _ in 0..self.turns {
            units += (self.burst)();
            stopwatch.turn();
        }
        Ok(stopwatch.stop(units))
    }
}

/// Contender in a separate program, run once per window on the caller's core. Its last output line is its
/// [`Window`] as JSON.
#[derive(Clone, Debug)]
pub struct Program {
    words: Vec<String>,
}

impl Program {
    /// Creates a contender from the program and its arguments.
    pub fn new<S: Into<String>>(words: impl IntoIterator<Item = S>) -> Self {
        Self { words: words.into_iter().map(Into::into).collect() }
    }

    fn fault(&self, fault: impl Into<String>) -> Error {
        Error::Program { command: self.words.join(" "), fault: fault.into() }
    }
}

impl Contender for Program {
    fn window(&mut self) -> Result<Window, Error> {
        let (program, arguments) = self.words.split_first().ok_or_else(|| self.fault("has no name"))?;
        let output = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| self.fault(format!("could not be started: {error}")))?;
        if !output.status.success() {
            return Err(self.fault(format!("failed: {}", output.status)));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().last().unwrap_or_default();
        serde_json::from_str(line)
            .map_err(|error| self.fault(format!("ended with `{line}`, which is not a window: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_are_ratios_of_work_and_cpu_time() {
        let window = Window { units: 2_000, cpu_ns: 1_000_000, wall_ns: 9, gaps: 0, stolen_ns: 0 };
        assert!((Measure::MegaPerCpuSecond.of(&window) - 2.0).abs() < 1e-12);
        assert!((Measure::CpuNsPerUnit.of(&window) - 500.0).abs() < 1e-12);
        assert!((Measure::WallSeconds.of(&window) - 9e-9).abs() < 1e-18);
    }

    #[test]
    fn a_loop_counts_its_units_and_its_cpu_time() {
        let cpu = ThreadCpu::now();
        let window = Loop::new(10, || {
            let burst = ThreadCpu::now();
            while burst.elapsed_ns() < 100_000 {}
            32
        })
        .window()
        .unwrap();
        assert_eq!(window.units, 320);
        assert!(window.cpu_ns >= 1_000_000 && window.cpu_ns <= cpu.elapsed_ns(), "{window:?}");
        // Every iteration exceeds the limit.
        assert_eq!(window.gaps, 10);
        assert!(window.stolen_ns >= 1_000_000);
    }

    #[test]
    fn a_gap_in_one_turn_is_seen() {
        let mut turn = 0;
        let mut contender = Loop::new(10, || {
            turn += 1;
            if turn == 5 {
                std::thread::sleep(Duration::from_millis(60));
            }
            1
        })
        .gap_limit(Duration::from_millis(50));
        let window = contender.window().unwrap();
        assert!(window.gaps >= 1 && window.stolen_ns >= 50_000_000, "{window:?}");
    }

    #[test]
    fn time_off_the_core_is_a_gap_even_between_the_turns() {
        let stopwatch = Stopwatch::start(Duration::from_millis(10));
        std::thread::sleep(Duration::from_millis(30));
        let window = stopwatch.stop(1);
        assert_eq!(window.gaps, 1);
        assert!(window.stolen_ns >= 20_000_000, "{window:?}");
    }

    #[test]
    fn the_last_line_of_a_program_is_its_window() {
        let line = r#"{"units":5,"cpu_ns":7,"wall_ns":8,"gaps":0,"stolen_ns":0}"#;
        let mut program = Program::new(["sh", "-c", &format!("echo warming up; echo '{line}'")]);
        assert_eq!(program.window().unwrap().units, 5);
        for (script, says) in [("exit 3", "failed: exit status: 3"), ("echo hello", "ended with `hello`")] {
            let error = Program::new(["sh", "-c", script]).window().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
