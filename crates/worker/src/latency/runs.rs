// SPDX-License-Identifier: Apache-2.0
//! Stamps of frames that are about to be sent. A device may keep the frames that it accepts, so their stamps
//! are read before.

use arrayvec::ArrayVec;
use frame::{Frame, Lane, Meta};

/// Maximum number of runs.
const RUNS: usize = 32;

/// Number of frames whose metadata is compared at once.
const ROW: usize = 4;

/// Adjacent frames with the same stamp and lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// Time of the receive poll in units of the clock, modulo 2^48; `None` for frames that were not received.
    pub stamp: Option<u64>,
    pub lane: Lane,
    pub frames: usize,
}

impl Run {
    #[inline]
    fn new(meta: &Meta, frames: usize) -> Self {
        let stamp = u64::from(meta.stamp_round) << u32::BITS | u64::from(meta.stamp);
        Self { stamp: (meta.stamp != 0).then_some(stamp), lane: meta.lane, frames }
    }
}

/// Stamps and lanes of adjacent frames.
#[derive(Debug, Default)]
pub(crate) struct StampRuns {
    runs: ArrayVec<Run, RUNS>,
    frames: usize,
}

impl StampRuns {
    /// Returns the stamps of these frames, or of the first of them if the stamps change more than [`RUNS`]
    /// times.
    #[inline]
    pub fn of(frames: &[Frame]) -> Self {
        let Some(first) = frames.first().map(|frame| &frame.meta) else { return Self::default() };
        // Usually all frames are from one burst and one lane. Equal stamps of different rounds would be
        // exactly 2^32 units apart, which does not happen in practice.
        let other = |frame: &Frame| {
            (frame.meta.stamp ^ first.stamp) | u32::from(frame.meta.lane as u8 ^ first.lane as u8)
        };
        let (rows, rest) = frames.as_chunks::<ROW>();
        let others =
            rows.iter().fold(0, |others, row| row.iter().fold(others, |others, frame| others | other(frame)));
        if rest.iter().fold(others, |others, frame| others | other(frame)) != 0 {
            return Self::mixed(frames);
        }
        let mut runs = ArrayVec::new();
        runs.push(Run::new(first, frames.len()));
        Self { runs, frames: frames.len() }
    }

    #[inline(never)]
    fn mixed(frames: &[Frame]) -> Self {
        let alike = |a: &Frame, b: &Frame| a.meta.stamp == b.meta.stamp && a.meta.lane == b.meta.lane;
        let runs: ArrayVec<Run, RUNS> =
            frames.chunk_by(alike).take(RUNS).map(|run| Run::new(&run[0].meta, run.len())).collect();
        Self { frames: runs.iter().map(|run| run.frames).sum(), runs }
    }

    /// Returns the number of frames.
    #[inline]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Calls `each` with the runs of the first `frames` frames.
    #[inline]
    pub(super) fn first(&self, frames: usize, mut each: impl FnMut(Run)) {
        let mut rest = frames;
        for run in &self.runs {
            let frames = run.frames.min(rest);
            if frames == 0 {
                break;
            }
            each(Run { frames, ..*run });
            rest -= frames;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamped(stamp: u32) -> Frame {
        let mut frame = Frame::hollow();
        frame.meta.stamp = stamp;
        frame
    }

    #[test]
    fn a_prefix_of_the_frames_has_a_prefix_of_the_runs() {
        let frames: Vec<Frame> = [5, 5, 7, 7, 7, 0, 5].map(stamped).into();
        let runs = StampRuns::of(&frames);
        assert_eq!(runs.frames(), 7);
        let first = |count| {
            let mut seen = Vec::new();
            runs.first(count, |run| seen.push((run.stamp, run.frames)));
            seen
        };
        assert_eq!(first(0), []);
        assert_eq!(first(3), [(Some(5), 2), (Some(7), 1)]);
        assert_eq!(first(7), [(Some(5), 2), (Some(7), 3), (None, 1), (Some(5), 1)]);
        assert_eq!(StampRuns::of(&frames[2..5]).frames(), 3);
    }

    #[test]
    fn stamps_that_change_too_often_cover_the_first_frames_only() {
        let frames: Vec<Frame> = (0..40).map(|at| stamped(1 + at / 2 * 2 % 64 + at % 2)).collect();
        assert_eq!(StampRuns::of(&frames).frames(), RUNS);
    }
}
