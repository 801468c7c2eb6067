// SPDX-License-Identifier: Apache-2.0
//! Scheduler of a port's egress queues: it selects which frame goes to the port's outbox next ([ADR
//! 0022](../../../../docs/adr/0022-egress-queues.md)).
//!
//! Low-latency frames of any queue go before normal frames. Within a lane, only queues below their maximum
//! rate are considered. Queues below their guaranteed rate come first, then queues by descending priority.
//! Among equals, the queue that sent the fewest bytes beyond its guarantee comes first.

mod bucket;
#[cfg(test)]
mod tests;

use bucket::Bucket;
use flow::{EgressQueue, Nanos, QueueId};
use frame::{Frame, Lane, PerLane};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Counters of an egress queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueReport {
    /// Frames sent from the queue.
    pub tx_packets: u64,
    /// Bytes sent from the queue.
    pub tx_bytes: u64,
    /// Frames dropped because the queue was full.
    pub dropped: u64,
    /// Frames that wait in the queue.
    pub waiting: usize,
}

/// Counters of a port's egress queues, by queue number.
pub(crate) type QueueReports = [QueueReport; EgressQueue::COUNT];

/// Frames of a lane, each with the epoch in which it was queued.
type LaneQueue = VecDeque<(u64, Frame)>;

/// A frame that is moved from one set of egress queues to another.
#[derive(Debug)]
pub(crate) struct QueuedFrame {
    epoch: u64,
    queue: QueueId,
    pub lane: Lane,
    pub frame: Frame,
}

/// One egress queue with its token buckets.
#[derive(Debug)]
struct Line {
    settings: EgressQueue,
    lanes: PerLane<LaneQueue>,
    min: Option<Bucket>,
    max: Option<Bucket>,
    /// Bytes sent beyond the guarantee, including bytes that the queue could have sent while it was idle.
    progress: u64,
    /// Whether frames were left in the queue after the device was last served.
    held: bool,
    /// Whether the maximum rate is ignored.
    is_unlimited: bool,
    report: QueueReport,
}

impl Line {
    fn new(settings: EgressQueue) -> Self {
        let lane = || LaneQueue::with_capacity(settings.limit_frames.into());
        Self {
            settings,
            lanes: PerLane::new(lane(), lane()),
            min: settings.min_rate_kbps.map(Bucket::new),
            max: settings.max_rate_kbps.map(Bucket::new),
            progress: 0,
            held: false,
            is_unlimited: false,
            report: QueueReport::default(),
        }
    }

    fn len(&self) -> usize {
        self.lanes[Lane::LowLatency].len() + self.lanes[Lane::Normal].len()
    }

    fn is_full(&self, lane: Lane) -> bool {
        self.lanes[lane].len() >= self.settings.limit_frames.into()
    }

    /// Returns the epoch of the next frame in a lane.
    fn epoch(&self, lane: Lane) -> Option<u64> {
        self.lanes[lane].front().map(|(epoch, _)| *epoch)
    }

    /// Returns whether the queue is below its maximum rate, or may exceed it.
    #[inline]
    fn may_send(&self) -> bool {
        self.is_unlimited || self.max.is_none_or(|max| max.is_open())
    }

    /// Returns whether the queue is below its guaranteed rate.
    #[inline]
    fn is_guaranteed(&self) -> bool {
        self.min.is_some_and(|min| min.is_open())
    }
}

/// The egress queues of a port.
#[derive(Debug)]
pub(crate) struct Shaper {
    lines: Vec<Line>,
    /// Index in `lines` by queue number.
    places: [u8; EgressQueue::COUNT],
    /// For each priority, the highest `progress` of the queues that sent beyond their guarantees.
    progress: [u64; EgressQueue::PRIORITY_MAX as usize + 1],
    frames: usize,
    /// Number of rule changes so far that may have moved flows to another queue or lane.
    epoch: u64,
    /// Value of `epoch` at the last change that may have made normal flows low-latency.
    frozen: u64,
}

impl Shaper {
    /// Creates the queues. Their numbers must be distinct and include the default queue.
    pub fn new(queues: &[EgressQueue]) -> Self {
        let lines: Vec<Line> = queues.iter().map(|queue| Line::new(*queue)).collect();
        let place = |id| lines.iter().position(|line| line.settings.id == id);
        let default = place(EgressQueue::DEFAULT_ID).unwrap_or_default();
        let places = std::array::from_fn(|id| place(QueueId(id as u32)).unwrap_or(default) as u8);
        Self { lines, places, progress: Default::default(), frames: 0, epoch: 0, frozen: 0 }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames == 0
    }

    fn place(&self, queue: QueueId) -> usize {
        let default = self.places[EgressQueue::DEFAULT_ID.0 as usize];
        self.places.get(queue.0 as usize).copied().unwrap_or(default).into()
    }

    /// Returns whether a new frame for this queue would have to wait, because frames were left in the queue
    /// after the device was last served.
    pub fn is_held(&self, queue: QueueId) -> bool {
        self.lines[self.place(queue)].held
    }

    /// Returns whether a queue has no space for a frame of this lane.
    pub fn is_full(&self, queue: QueueId, lane: Lane) -> bool {
        self.lines[self.place(queue)].is_full(lane)
    }

    /// Returns whether the queue is at least half full; then it should be served before more frames are
    /// queued.
    pub fn is_long(&self, queue: QueueId) -> bool {
        let line = &self.lines[self.place(queue)];
        2 * line.len() >= usize::from(line.settings.limit_frames)
    }

    /// Queues a frame. Returns the frame if the queue is full.
    pub fn push(&mut self, queue: QueueId, frame: Frame, lane: Lane) -> Result<(), Frame> {
        let at = self.place(queue);
        let line = &mut self.lines[at];
        if line.is_full(lane) {
            return Err(frame);
        }
        line.lanes[lane].push_back((self.epoch, frame));
        self.frames += 1;
        Ok(())
    }

    /// Counts a dropped frame of a queue.
    pub fn refuse(&mut self, queue: QueueId) {
        let at = self.place(queue);
        self.lines[at].report.dropped += 1;
    }

    /// Lets all queues exceed their maximum rates, or no longer. Frames that are sent meanwhile still take
    /// tokens.
    pub fn set_unlimited(&mut self, is_unlimited: bool) {
        self.lines.iter_mut().for_each(|line| line.is_unlimited = is_unlimited);
    }

    /// Adds the tokens that all rates have yielded until `now`.
    pub fn fill(&mut self, now: Nanos) {
        for line in &mut self.lines {
            for bucket in [&mut line.min, &mut line.max].into_iter().flatten() {
                bucket.fill(now);
            }
        }
    }

    /// Takes the next low-latency frame that may be sent, or a normal frame that must go before it.
    pub fn next_urgent(&mut self) -> Option<Frame> {
        let oldest = self.oldest(Lane::LowLatency)?;
        let normal = self.oldest(Lane::Normal).filter(|normal| *normal < oldest.min(self.frozen));
        let (lane, epoch) = match normal {
            Some(epoch) => (Lane::Normal, epoch),
            None => (Lane::LowLatency, oldest),
        };
        let at = self.best(|line| line.epoch(lane) == Some(epoch))?;
        self.take(at, lane)
    }

    /// Takes the next normal frame that may be sent. Also returns whether later low-latency frames must not
    /// overtake it.
    pub fn next_normal(&mut self) -> Option<(Frame, bool)> {
        let epoch = self.oldest(Lane::Normal)?;
        let at = self.best(|line| line.epoch(Lane::Normal) == Some(epoch))?;
        self.take(at, Lane::Normal).map(|frame| (frame, epoch < self.frozen))
    }

    /// Returns the earliest epoch of a lane's frames that may be sent.
    fn oldest(&self, lane: Lane) -> Option<u64> {
        let lines = self.lines.iter().filter(|line| line.may_send());
        lines.filter_map(|line| line.epoch(lane)).min()
    }

    /// Returns the index of the next queue to serve among the queues that may send and for which `wanted` is
    /// true.
    fn best(&self, wanted: impl Fn(&Line) -> bool) -> Option<usize> {
        let lines = self.lines.iter().enumerate().filter(|(_, line)| wanted(line) && line.may_send());
        let turn = |line: &Line| (line.is_guaranteed(), line.settings.priority, Reverse(line.progress));
        lines.max_by_key(|(_, line)| turn(line)).map(|(at, _)| at)
    }

    fn take(&mut self, at: usize, lane: Lane) -> Option<Frame> {
        let line = &mut self.lines[at];
        let (_, frame) = line.lanes[lane].pop_front()?;
        let bytes = frame.len();
        if line.is_guaranteed() {
            line.min.iter_mut().for_each(|min| min.take(bytes));
        } else {
            // A queue gets no credit for the time in which it was idle.
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

    /// Returns whether frames wait only for the device, and not for their queue's maximum rate.
    pub fn is_ready(&self) -> bool {
        self.frames > 0 && self.lines.iter().any(|line| line.len() > 0 && line.may_send())
    }

    /// Returns when the first of the queues above their maximum rate may send again, in nanoseconds.
    pub fn opens_ns(&self) -> Option<Nanos> {
        let waits = |line: &&Line| line.len() > 0 && !line.may_send();
        self.lines.iter().filter(waits).filter_map(|line| line.max.map(|max| max.opens_ns())).min()
    }

    /// Records that the device accepts no more frames now. Frames that are still queued count as waiting.
    pub fn settle(&mut self) {
        for line in &mut self.lines {
            line.held = line.len() > 0;
        }
    }

    /// Records a rule change that may have moved flows to another queue. Frames queued before it are sent
    /// before later normal frames. If `promotes` is true, flows may also have become low-latency, and later
    /// low-latency frames wait as well.
    pub fn change(&mut self, promotes: bool) {
        self.epoch += 1;
        if promotes {
            self.frozen = self.epoch;
        }
    }

    /// Takes over the counters of `old`'s queues, and the token buckets of those whose rates are the same.
    /// Called before frames of `old` are moved here.
    pub fn continue_from(&mut self, old: &Self) {
        (self.epoch, self.frozen) = (old.epoch, old.frozen);
        for line in &mut self.lines {
            let Some(before) = old.lines.iter().find(|other| other.settings.id == line.settings.id) else {
                continue;
            };
            line.report = before.report;
            if line.settings.min_rate_kbps == before.settings.min_rate_kbps {
                line.min = before.min;
            }
            if line.settings.max_rate_kbps == before.settings.max_rate_kbps {
                line.max = before.max;
            }
        }
    }

    /// Takes one of the frames that were queued in the earliest epoch. Frames of a queue and lane keep their
    /// order.
    pub fn pop_oldest(&mut self) -> Option<QueuedFrame> {
        let of_line = |(at, line): (usize, &Line)| {
            [Lane::Normal, Lane::LowLatency]
                .map(|lane| line.epoch(lane).map(|epoch| (epoch, at, lane as usize)))
        };
        let (_, at, lane) = self.lines.iter().enumerate().flat_map(of_line).flatten().min()?;
        let lane = if lane == Lane::Normal as usize { Lane::Normal } else { Lane::LowLatency };
        let line = self.lines.get_mut(at)?;
        let (epoch, frame) = line.lanes[lane].pop_front()?;
        self.frames -= 1;
        Some(QueuedFrame { epoch, queue: line.settings.id, lane, frame })
    }

    /// Queues a frame that waited in other egress queues of the port. Returns the frame if its queue is full,
    /// and counts it as dropped.
    pub fn push_moved(&mut self, moved: QueuedFrame) -> Result<(), Frame> {
        let QueuedFrame { epoch, queue, lane, frame } = moved;
        let at = self.place(queue);
        let line = &mut self.lines[at];
        if line.is_full(lane) {
            line.report.dropped += 1;
            return Err(frame);
        }
        line.lanes[lane].push_back((epoch, frame));
        self.frames += 1;
        Ok(())
    }

    /// Removes one of the waiting frames, regardless of the schedule.
    pub fn pop(&mut self) -> Option<Frame> {
        let mut lanes = self.lines.iter_mut().flat_map(|line| line.lanes.iter_mut());
        let (_, frame) = lanes.find_map(LaneQueue::pop_front)?;
        self.frames -= 1;
        Some(frame)
    }

    /// Returns the counters of the queues, by queue number.
    pub fn reports(&self) -> QueueReports {
        let mut reports = QueueReports::default();
        for line in &self.lines {
            if let Some(report) = reports.get_mut(line.settings.id.0 as usize) {
                *report = QueueReport { waiting: line.len(), ..line.report };
            }
        }
        reports
    }
}
