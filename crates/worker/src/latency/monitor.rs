// SPDX-License-Identifier: Apache-2.0
//! Latency measurement in the worker: reads the clock, provides stamps for received bursts, and counts sent
//! frames.

use super::cells::LatencyCells;
use super::gaps::Gaps;
use super::runs::{Run, StampRuns};
use crate::clock::Clock;
use frame::Stamp;
use pipeline::Probe;
use std::sync::Arc;

/// Maximum difference between the clocks of two cores in units. A frame stamped by another worker may seem to
/// be from the future.
const SKEW: u64 = 1 << 20;

/// Mask of the 48 bits of a stamp.
const ROUNDS: u64 = (1 << 48) - 1;

/// Measures the latency of one worker's frames.
#[derive(Debug)]
pub(crate) struct LatencyMonitor {
    clock: Clock,
    cells: Arc<LatencyCells>,
    gaps: Gaps,
    /// Last reading of the clock.
    last: u64,
    /// Packets received and frames sent since the last reading.
    work: u64,
    /// Whether the time since the last reading counts for the detection of preemption.
    attends: bool,
    /// Time at which the last preemption (gap) ended.
    gap_end: u64,
}

impl LatencyMonitor {
    pub fn new(clock: Clock, cells: Arc<LatencyCells>) -> Self {
        Self { clock, cells, gaps: Gaps::new(&clock), last: 0, work: 0, attends: false, gap_end: 0 }
    }

    /// Reads the clock and checks for a preemption (gap). With a virtual clock there are none.
    #[inline]
    fn read<P: Probe>(&mut self, probe: &P) -> u64 {
        let now = match probe.time_ns() {
            Some(now) => now.0,
            None => {
                let now = self.clock.now();
                // A clock of another core may be slightly behind.
                let span = now.saturating_sub(self.last);
                if self.attends {
                    let stolen = self.gaps.stolen(now, span, self.work);
                    if stolen > 0 {
                        self.stolen(now, stolen);
                    }
                }
                self.attends = true;
                now
            }
        };
        (self.last, self.work) = (now, 0);
        now
    }

    #[cold]
    fn stolen(&mut self, now: u64, stolen: u64) {
        self.cells.add_gap(stolen);
        self.gap_end = now;
    }

    /// Excludes the time until the next reading from the detection of preemption.
    pub fn rest(&mut self) {
        self.attends = false;
    }

    /// Called at the start of a poll iteration.
    #[inline]
    pub fn begin<P: Probe>(&mut self, probe: &P) {
        self.read(probe);
    }

    /// Called after operations were applied since the last reading.
    pub fn changed<P: Probe>(&mut self, probe: &P) {
        self.rest();
        let now = self.read(probe);
        self.gaps.changed(now);
    }

    /// Called before a queue is polled. Returns the stamp for the frames of this poll.
    #[inline]
    pub fn poll<P: Probe>(&mut self, probe: &P) -> Stamp {
        // Without work since the last reading, hardly any time has passed.
        if self.work > 0 {
            self.read(probe);
        }
        Stamp::new(self.last)
    }

    /// Counts packets received, or processed from the backlog, as work.
    #[inline]
    pub fn worked(&mut self, packets: usize) {
        self.work += packets as u64;
    }

    /// Counts the first `accepted` of these frames, which a device has accepted.
    #[inline]
    pub fn sent<P: Probe>(&mut self, runs: &StampRuns, accepted: usize, probe: &P) {
        if accepted == 0 {
            return;
        }
        self.work += accepted as u64;
        let now = self.read(probe);
        runs.first(accepted, |run| self.count(now, run));
    }

    /// Counts frames of one stamp and lane that were sent at this time.
    #[inline]
    fn count(&self, now: u64, run: Run) {
        // Packet-outs were not received, so they have no latency.
        let Some(stamp) = run.stamp else { return };
        let age = now.wrapping_sub(stamp) & ROUNDS;
        let age = if age > ROUNDS - SKEW { 0 } else { age };
        let in_gap = now.saturating_sub(age) < self.gap_end;
        // An age beyond 32 bits is counted as the maximum.
        self.cells.ages(run.lane, in_gap).record(age.try_into().unwrap_or(u32::MAX), run.frames as u64);
    }
}
