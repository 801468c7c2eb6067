// SPDX-License-Identifier: Apache-2.0
//! Egress queues of a port: they choose what goes next to its outbox ([ADR 0022](../../../../docs/adr/0022-egress-queues.md)).
//!
//! Of both lanes, first low-latency frames of any queue. Of the queues that have frames of the lane and are not over
//! their greatest rate: first those that have had less than their guaranteed rate, then those of the highest priority, and
//! of several such the one that has had the fewest bytes beyond its guarantee. A queue over its greatest rate waits with
//! both lanes.

mod bucket;
#[cfg(test)]
mod tests;

use bucket::Bucket;
use flow::{EgressQueue, Nanos};
use frame::Frame;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// What a queue has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueReport {
    /// Frames that left it.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Frames for which it had no room.
    pub dropped: u64,
    /// Frames that wait in it.
    pub waiting: usize,
}

/// Reports of a port's queues, by number.
pub(crate) type QueueReports = [QueueReport; EgressQueue::COUNT];

/// Frames of a lane, each with the epoch in which it came.
type Lane = VecDeque<(u64, Frame)>;

/// One queue.
#[derive(Debug)]
struct Line {
    settings: EgressQueue,
    normal: Lane,
    low_latency: Lane,
    min: Option<Bucket>,
    max: Option<Bucket>,
    /// Bytes that it was sent beyond its guarantee, and what it has missed while it did not send.
    progress: u64,
    /// Frames were left when the device was last given some.
    held: bool,
    report: QueueReport,
}

impl Line {
    fn new(settings: EgressQueue) -> Self {
        let [normal, low_latency] = [(); 2].map(|()| Lane::with_capacity(settings.limit_frames.into()));
        Self {
            settings,
            normal,
            low_latency,
            min: settings.min_rate_kbps.map(Bucket::new),
            max: settings.max_rate_kbps.map(Bucket::new),
            progress: 0,
            held: false,
            report: QueueReport::default(),
        }
    }

    fn len(&self) -> usize {
        self.normal.len() + self.low_latency.len()
    }

    fn is_full(&self, low_latency: bool) -> bool {
        let lane = if low_latency { &self.low_latency } else { &self.normal };
        lane.len() >= self.settings.limit_frames.into()
    }

    fn lane(&mut self, low_latency: bool) -> &mut Lane {
        if low_latency { &mut self.low_latency } else { &mut self.normal }
    }

    /// The epoch of the frame that is next in a lane.
    fn epoch(&self, low_latency: bool) -> Option<u64> {
        let lane = if low_latency { &self.low_latency } else { &self.normal };
        lane.front().map(|(epoch, _)| *epoch)
    }

    /// Whether it is not over its greatest rate.
    #[inline]
    fn may_send(&self) -> bool {
        self.max.is_none_or(|max| max.is_open())
    }

    /// Whether it is below its guaranteed rate.
    #[inline]
    fn is_guaranteed(&self) -> bool {
        self.min.is_some_and(|min| min.is_open())
    }
}

/// The queues of a port.
#[derive(Debug)]
pub(crate) struct Shaper {
    lines: Vec<Line>,
    /// The line of each queue's number.
    places: [u8; EgressQueue::COUNT],
    /// By priority, how far those have come that are sent what is beyond guarantees.
    progress: [u64; EgressQueue::PRIORITY_MAX as usize + 1],
    frames: usize,
    /// Changes of rules so far by which flows may have come to another queue or lane.
    epoch: u64,
    /// The last of them by which normal flows may have become low-latency.
    sealed: u64,
}

impl Shaper {
    /// Queues with different numbers, the default queue among them.
    pub fn new(queues: &[EgressQueue]) -> Self {
        let lines: Vec<Line> = queues.iter().map(|queue| Line::new(*queue)).collect();
        let place = |id| lines.iter().position(|line| line.settings.id == id);
        let default = place(EgressQueue::DEFAULT_ID).unwrap_or_default();
        let places = std::array::from_fn(|id| place(id as u32).unwrap_or(default) as u8);
        Self { lines, places, progress: Default::default(), frames: 0, epoch: 0, sealed: 0 }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    fn place(&self, queue: u32) -> usize {
        let default = self.places[EgressQueue::DEFAULT_ID as usize];
        self.places.get(queue as usize).copied().unwrap_or(default).into()
    }

    /// Whether a frame of this queue would wait longer than for the end of its burst.
    pub fn is_held(&self, queue: u32) -> bool {
        self.lines[self.place(queue)].held
    }

    /// Whether a queue has no room for a frame of this lane.
    pub fn is_full(&self, queue: u32, low_latency: bool) -> bool {
        self.lines[self.place(queue)].is_full(low_latency)
    }

    /// Whether half of the queue's room is taken: it is to be sent from before more comes.
    pub fn is_long(&self, queue: u32) -> bool {
        let line = &self.lines[self.place(queue)];
        2 * line.len() >= usize::from(line.settings.limit_frames)
    }

    /// Adds a frame. Given back without room.
    pub fn push(&mut self, queue: u32, frame: Frame, low_latency: bool) -> Result<(), Frame> {
        let at = self.place(queue);
        let line = &mut self.lines[at];
        if line.is_full(low_latency) {
            return Err(frame);
        }
        line.lane(low_latency).push_back((self.epoch, frame));
        self.frames += 1;
        Ok(())
    }

    /// Counts a frame that found no room.
    pub fn refuse(&mut self, queue: u32) {
        let at = self.place(queue);
        self.lines[at].report.dropped += 1;
    }

    /// Takes in what rates brought until now.
    pub fn fill(&mut self, now: Nanos) {
        for line in &mut self.lines {
            for bucket in [&mut line.min, &mut line.max].into_iter().flatten() {
                bucket.fill(now);
            }
        }
    }

    /// The next low-latency frame that may leave, or a normal one that must go before it.
    pub fn next_urgent(&mut self) -> Option<Frame> {
        let oldest = self.oldest(true)?;
        let normal = self.oldest(false).filter(|normal| *normal < oldest.min(self.sealed));
        let low_latency = normal.is_none();
        let epoch = normal.unwrap_or(oldest);
        let at = self.best(|line| line.epoch(low_latency) == Some(epoch))?;
        self.take(at, low_latency)
    }

    /// The next normal frame that may leave, and whether low-latency ones that come later must not overtake it.
    pub fn next_normal(&mut self) -> Option<(Frame, bool)> {
        let epoch = self.oldest(false)?;
        let at = self.best(|line| line.epoch(false) == Some(epoch))?;
        self.take(at, false).map(|frame| (frame, epoch < self.sealed))
    }

    /// The first epoch of which a lane has frames that may leave.
    fn oldest(&self, low_latency: bool) -> Option<u64> {
        let lines = self.lines.iter().filter(|line| line.may_send());
        lines.filter_map(|line| line.epoch(low_latency)).min()
    }

    /// Of the lines that may send and are wanted, the one whose turn it is.
    fn best(&self, wanted: impl Fn(&Line) -> bool) -> Option<usize> {
        let lines = self.lines.iter().enumerate().filter(|(_, line)| wanted(line) && line.may_send());
        let turn = |line: &Line| (line.is_guaranteed(), line.settings.priority, Reverse(line.progress));
        lines.max_by_key(|(_, line)| turn(line)).map(|(at, _)| at)
    }

    fn take(&mut self, at: usize, low_latency: bool) -> Option<Frame> {
        let line = &mut self.lines[at];
        let (_, frame) = line.lane(low_latency).pop_front()?;
        let bytes = frame.len();
        if line.is_guaranteed() {
            line.min.iter_mut().for_each(|min| min.take(bytes));
        } else {
            // What it did not send in time is lost to it.
            let progress = &mut self.progress[usize::from(line.settings.priority)];
            *progress = line.progress.max(*progress);
            line.progress = *progress + bytes as u64;
        }
        line.max.iter_mut().for_each(|max| max.take(bytes));
        line.report.tx_packets += 1;
        line.report.tx_bytes += bytes as u64;
        self.frames -= 1;
        Some(frame)
    }

    /// Whether frames wait for nothing but the device.
    pub fn is_ready(&self) -> bool {
        self.frames > 0 && self.lines.iter().any(|line| line.len() > 0 && line.may_send())
    }

    /// When the first of the queues that wait for their rate may send again.
    pub fn opens_ns(&self) -> Option<Nanos> {
        let waits = |line: &&Line| line.len() > 0 && !line.may_send();
        self.lines.iter().filter(waits).filter_map(|line| line.max.map(|max| max.opens_ns())).min()
    }

    /// The device was given what it takes: what is left waits.
    pub fn settle(&mut self) {
        for line in &mut self.lines {
            line.held = line.len() > 0;
        }
    }

    /// Flows may have come to another queue: what waits goes before normal frames that come. `promotes`: or have become
    /// low-latency; before those as well.
    pub fn change(&mut self, promotes: bool) {
        self.epoch += 1;
        if promotes {
            self.sealed = self.epoch;
        }
    }

    /// Takes out a frame that waits, whatever its turn.
    pub fn pop(&mut self) -> Option<Frame> {
        let mut lanes = self.lines.iter_mut().flat_map(|line| [&mut line.low_latency, &mut line.normal]);
        let (_, frame) = lanes.find_map(Lane::pop_front)?;
        self.frames -= 1;
        Some(frame)
    }

    /// What the queues have done, by number.
    pub fn reports(&self) -> QueueReports {
        let mut reports = QueueReports::default();
        for line in &self.lines {
            if let Some(report) = reports.get_mut(line.settings.id as usize) {
                *report = QueueReport { waiting: line.len(), ..line.report };
            }
        }
        reports
    }
}
