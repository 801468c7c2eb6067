// SPDX-License-Identifier: Apache-2.0
//! The clock of the worker's thread. It stops while the thread is off its core, so that other programs on the
//! machine affect no figure.

use std::time::Instant;

use shunt_bench::ThreadCpu;

/// First reading in nanoseconds. It is not 0, because counters use 0 for "never".
const START_NS: u64 = 1_000_000_000;

/// The clock compares wall-clock time with CPU time if two readings are at least this far apart.
const SUSPECT_NS: u64 = 5_000;

/// Longest time between two comparisons, which limits how far small errors of the CPU time add up.
const COMPARE_NS: u64 = 50_000;

/// Minimum difference of wall-clock and CPU time that counts as preemption. Reading both clocks takes less
/// time.
const GAP_NS: u64 = 2_000;

/// A clock that only the calling thread may read.
#[derive(Debug)]
pub struct ActiveClock {
    start: Instant,
    cpu: ThreadCpu,
    /// Wall-clock time of the last reading.
    last_ns: u64,
    /// Wall-clock time and CPU time of the last comparison.
    compared_ns: (u64, u64),
    /// Time during which the clock stood still.
    off_ns: u64,
    gap_end_ns: u64,
    gaps: u64,
}

impl ActiveClock {
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            cpu: ThreadCpu::now(),
            last_ns: 0,
            compared_ns: (0, 0),
            off_ns: 0,
            gap_end_ns: 0,
            gaps: 0,
        }
    }

    pub fn now_ns(&mut self) -> u64 {
        let wall_ns = self.wall_ns();
        let is_suspect = wall_ns - self.last_ns > SUSPECT_NS;
        self.last_ns = wall_ns;
        if is_suspect || wall_ns - self.compared_ns.0 > COMPARE_NS {
            self.compare();
        }
        START_NS + self.last_ns - self.off_ns
    }

    /// Excludes the time since the last reading, in which the thread did other work.
    pub fn resume(&mut self) {
        let wall_ns = self.wall_ns();
        self.off_ns += wall_ns - self.last_ns;
        self.last_ns = wall_ns;
        self.compared_ns = (wall_ns, self.cpu.elapsed_ns());
    }

    /// Excludes the time since the last reading, in which the thread slept, and counts the sleep as a
    /// preemption.
    pub fn pause(&mut self) {
        self.resume();
        self.note_gap();
    }

    /// Excludes the time since the last reading, in which the thread recorded results.
    pub fn skip(&mut self) {
        let wall_ns = self.wall_ns();
        if wall_ns - self.last_ns > SUSPECT_NS {
            // The excluded time may contain a preemption. `resume` compares the clocks again, so this
            // preemption is not excluded twice.
            return self.resume();
        }
        self.off_ns += wall_ns - self.last_ns;
        self.last_ns = wall_ns;
    }

    /// Returns the number of preemptions so far.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Returns the time at which the last preemption ended.
    pub fn gap_end_ns(&self) -> u64 {
        self.gap_end_ns
    }

    fn wall_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    #[cold]
    fn compare(&mut self) {
        let (cpu_ns, wall_ns) = (self.cpu.elapsed_ns(), self.wall_ns());
        let (wall_before_ns, cpu_before_ns) = self.compared_ns;
        let off_ns = (wall_ns - wall_before_ns).saturating_sub(cpu_ns - cpu_before_ns);
        self.last_ns = wall_ns;
        self.compared_ns = (wall_ns, cpu_ns);
        if off_ns > GAP_NS {
            self.off_ns += off_ns;
            self.note_gap();
        }
    }

    fn note_gap(&mut self) {
        self.gaps += 1;
        self.gap_end_ns = START_NS + self.last_ns - self.off_ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn sleep_is_a_gap() {
        let mut clock = ActiveClock::new();
        let before_ns = clock.now_ns();
        std::thread::sleep(Duration::from_millis(30));
        let after_ns = clock.now_ns();
        assert!(clock.gaps() >= 1);
        assert!(clock.gap_end_ns() <= after_ns && clock.gap_end_ns() >= before_ns);
    }
}
