// SPDX-License-Identifier: Apache-2.0
//! The worker's side: reads the clock, stamps bursts, counts what left.

use super::cells::LatencyCells;
use super::gaps::Gaps;
use crate::clock::Clock;
use frame::{Frame, Meta};
use pipeline::Probe;
use std::sync::Arc;

/// Clocks of two cores may differ by so many units: a frame that another worker stamped may seem to come from the future.
const SKEW: u64 = 1 << 20;

/// Stamps have 48 bits.
const ROUNDS: u64 = (1 << 48) - 1;

/// Frames whose metadata are looked at together.
const ROW: usize = 4;

/// Measures one worker's frames.
#[derive(Debug)]
pub(crate) struct Watch {
    clock: Clock,
    cells: Arc<LatencyCells>,
    gaps: Gaps,
    /// The last reading.
    last: u64,
    /// Packets received and frames sent since.
    work: u64,
    /// What passed since the last reading may have been stolen.
    attends: bool,
    /// When the last gap ended.
    gap_end: u64,
}

impl Watch {
    pub fn new(clock: Clock, cells: Arc<LatencyCells>) -> Self {
        Self { clock, cells, gaps: Gaps::new(&clock), last: 0, work: 0, attends: false, gap_end: 0 }
    }

    /// Reads the clock. Time is never stolen from a virtual one.
    #[inline]
    fn read<P: Probe>(&mut self, probe: &P) -> u64 {
        let now = match probe.time_ns() {
            Some(now) => now,
            None => {
                let now = self.clock.now();
                // A clock of another core may be a little behind.
                let span = now.saturating_sub(self.last);
                if self.attends {
                    let stolen = self.gaps.judge(now, span, self.work);
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

    /// What passes until the next reading is spent on purpose, on other things than packets.
    pub fn rest(&mut self) {
        self.attends = false;
    }

    /// A turn begins.
    #[inline]
    pub fn begin<P: Probe>(&mut self, probe: &P) {
        self.read(probe);
    }

    /// Operations were applied since the last reading.
    pub fn changed<P: Probe>(&mut self, probe: &P) {
        self.rest();
        let now = self.read(probe);
        self.gaps.changed(now);
    }

    /// A queue is polled next.
    #[inline]
    pub fn poll<P: Probe>(&mut self, probe: &P) {
        // The time has hardly moved while nothing came.
        if self.work > 0 {
            self.read(probe);
        }
    }

    /// Stamps the burst that the poll brought with the time before it.
    #[inline]
    pub fn stamp(&mut self, burst: &mut [Frame]) {
        self.work += burst.len() as u64;
        let (stamp, round) = ((self.last as u32).max(1), (self.last >> u32::BITS) as u16);
        let mark = |frame: &mut Frame| (frame.meta.stamp, frame.meta.stamp_round) = (stamp, round);
        let (rows, rest) = burst.as_chunks_mut::<ROW>();
        rows.iter_mut().flatten().for_each(mark);
        rest.iter_mut().for_each(mark);
    }

    /// So many packets that had waited were worked off.
    #[inline]
    pub fn worked(&mut self, packets: usize) {
        self.work += packets as u64;
    }

    /// A device has taken these frames: counts them.
    #[inline]
    pub fn sent<P: Probe>(&mut self, frames: &[Frame], probe: &P) {
        let Some(first) = frames.first().map(|frame| &frame.meta) else { return };
        self.work += frames.len() as u64;
        let now = self.read(probe);
        // Most are of one burst: what they have in common is counted once. Bursts a whole round apart have other stamps.
        let other = |frame: &Frame| {
            (frame.meta.stamp ^ first.stamp) | u32::from(frame.meta.lane as u8 ^ first.lane as u8)
        };
        let (rows, rest) = frames.as_chunks::<ROW>();
        let others =
            rows.iter().fold(0, |others, row| row.iter().fold(others, |others, frame| others | other(frame)));
        if rest.iter().fold(others, |others, frame| others | other(frame)) == 0 {
            self.count(now, first, frames.len());
        } else {
            self.sent_mixed(now, frames);
        }
    }

    /// Counts frames of several bursts or lanes, those in a row that are alike together.
    #[inline(never)]
    fn sent_mixed(&self, now: u64, frames: &[Frame]) {
        let alike = |a: &Frame, b: &Frame| a.meta.stamp == b.meta.stamp && a.meta.lane == b.meta.lane;
        frames.chunk_by(alike).for_each(|run| self.count(now, &run[0].meta, run.len()));
    }

    /// Counts frames of one stamp and one lane that left at this time.
    #[inline]
    fn count(&self, now: u64, meta: &Meta, frames: usize) {
        // Frames of the controller's were not received.
        if meta.stamp == 0 {
            return;
        }
        let stamp = u64::from(meta.stamp_round) << u32::BITS | u64::from(meta.stamp);
        let age = now.wrapping_sub(stamp) & ROUNDS;
        let age = if age > ROUNDS - SKEW { 0 } else { age };
        let in_gap = now.saturating_sub(age) < self.gap_end;
        // What took longer than can be told took at least that long.
        self.cells.ages(meta.lane, in_gap).record(age.try_into().unwrap_or(u32::MAX), frames as u64);
    }
}
