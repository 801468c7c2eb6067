// SPDX-License-Identifier: Apache-2.0
//! Stamps of frames that are about to be sent. A device may keep the frames that it accepts, so the stamps
//! are read before the frames are passed to it.

use arrayvec::ArrayVec;
use frame::{Frame, Lane, Meta};

/// Maximum number of runs (adjacent frames with the same stamp and lane).
const RUNS: usize = 32;

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

/// Stamps and lanes of adjacent frames. Each outbox reuses one value, because the value is too large to be
/// moved for each doorbell.
#[derive(Debug, Default)]
pub(crate) struct StampRuns {
    runs: ArrayVec<Run, RUNS>,
    frames: usize,
}

impl StampRuns {
    /// Reads the stamps of these frames, or of the first of them if the stamps change more than [`RUNS`]
    /// times. Returns the number of frames whose stamps were read.
    #[inline]
    pub fn read(&mut self, frames: &[Frame]) -> usize {
        self.runs.clear();
        // Usually all frames are from one burst and one lane.
        if let [first, rest @ ..] = frames {
            let all = first.meta.lane_stamp();
            let others = rest.iter().fold(0, |others, frame| others | (frame.meta.lane_stamp() ^ all));
            if others != 0 {
                return self.read_mixed(frames);
            }
            self.runs.push(Run::new(&first.meta, frames.len()));
        }
        self.frames = frames.len();
        self.frames
    }

    #[inline(never)]
    fn read_mixed(&mut self, frames: &[Frame]) -> usize {
        let alike = |a: &Frame, b: &Frame| a.meta.lane_stamp() == b.meta.lane_stamp();
        self.runs.extend(frames.chunk_by(alike).take(RUNS).map(|run| Run::new(&run[0].meta, run.len())));
        self.frames = self.runs.iter().map(|run| run.frames).sum();
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
        let mut runs = StampRuns::default();
        assert_eq!(runs.read(&frames), 7);
        let first = |runs: &StampRuns, count| {
            let mut seen = Vec::new();
            runs.first(count, |run| seen.push((run.stamp, run.frames)));
            seen
        };
        assert_eq!(first(&runs, 0), []);
        assert_eq!(first(&runs, 3), [(Some(5), 2), (Some(7), 1)]);
        assert_eq!(first(&runs, 7), [(Some(5), 2), (Some(7), 3), (None, 1), (Some(5), 1)]);
        assert_eq!(runs.read(&frames[2..5]), 3);
        assert_eq!(first(&runs, 3), [(Some(7), 3)]);
        assert_eq!(runs.read(&[]), 0);
        assert_eq!(first(&runs, 3), []);
    }

    #[test]
    fn frames_of_another_time_or_lane_form_a_separate_run() {
        let mut frames: Vec<Frame> = [5; 4].map(stamped).into();
        frames[1].meta.stamp_round = 1;
        frames[3].meta.lane = Lane::LowLatency;
        let mut runs = StampRuns::default();
        assert_eq!(runs.read(&frames), 4);
        let mut seen = Vec::new();
        runs.first(4, |run| seen.push((run.stamp, run.lane)));
        let (early, late) = (Some(5), Some(5 | 1 << u32::BITS));
        let normal = [early, late, early].map(|stamp| (stamp, Lane::Normal));
        assert_eq!((&seen[..3], seen[3]), (&normal[..], (early, Lane::LowLatency)));
    }

    #[test]
    fn stamps_that_change_too_often_cover_the_first_frames_only() {
        let frames: Vec<Frame> = (0..40).map(|at| stamped(1 + at / 2 * 2 % 64 + at % 2)).collect();
        assert_eq!(StampRuns::default().read(&frames), RUNS);
    }
}
