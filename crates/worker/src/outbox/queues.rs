// SPDX-License-Identifier: Apache-2.0
//! The outbox of a port that has egress queues. The queues select the frames that move to the outbox. Only as
//! many frames move as the device can take soon, because the order within the outbox is fixed.

use super::{CHUNK_FRAMES, Outbox, charge_bytes};
use crate::shaper::{QueueReports, QueuedFrame};
use flow::{Nanos, QueueId};
use frame::{Frame, Lane, PerLane};
use port::Queue;

impl Outbox {
    /// Returns whether the port has egress queues.
    #[inline]
    pub fn has_queues(&self) -> bool {
        self.shaper.is_some()
    }

    /// Queues a frame. Returns the frame if its queue is full, or if it would have to wait while frames are
    /// `scarce`.
    pub fn enqueue(
        &mut self,
        queue: QueueId,
        frame: Frame,
        lane: Lane,
        scarce: bool,
        now: Nanos,
    ) -> Result<(), Frame> {
        // The limit of a queue counts only waiting frames, so frames that can be sent now are first moved out
        // of the queue.
        if self.shaper.as_ref().is_some_and(|shaper| shaper.is_full(queue, lane)) {
            self.release(now);
        }
        let stuck = self.is_stuck(lane);
        let Some(shaper) = &mut self.shaper else { return Err(frame) };
        let pushed = if scarce && (stuck || shaper.is_held(queue)) {
            Err(frame)
        } else {
            shaper.push(queue, frame, lane)
        };
        if pushed.is_err() {
            shaper.refuse(queue);
        }
        pushed
    }

    /// Returns whether a queue should be served before more frames are queued.
    pub fn is_queue_long(&self, queue: QueueId) -> bool {
        self.shaper.as_ref().is_some_and(|shaper| shaper.is_long(queue))
    }

    /// Moves frames that the device can take now from the queues to the outbox.
    pub fn fetch(&mut self, queue: &dyn Queue, now: Nanos) {
        if self.outstanding.bytes >= self.outstanding.most_bytes {
            self.outstanding = queue.outstanding();
        }
        self.release(now);
    }

    /// Called after the device has accepted as much of the outbox as it can. Returns whether to fetch more
    /// frames immediately.
    pub fn is_more(&mut self) -> bool {
        self.chunk = if self.is_empty() { CHUNK_FRAMES.min(2 * self.chunk) } else { 1 };
        self.is_empty() && self.shaper.as_ref().is_some_and(|shaper| shaper.is_ready())
    }

    /// Called when no more frames are fetched for now. From then on, frames left in the queues count as
    /// waiting.
    pub fn settle(&mut self) {
        if let Some(shaper) = &mut self.shaper {
            shaper.settle();
        }
    }

    /// Returns whether frames wait for the device.
    pub fn is_waiting(&self) -> bool {
        !self.is_empty() || self.shaper.as_ref().is_some_and(|shaper| shaper.is_ready())
    }

    /// Returns when the first queue above its maximum rate may send again, in nanoseconds.
    #[inline]
    pub fn opens_ns(&self) -> Option<Nanos> {
        self.shaper.as_ref()?.opens_ns()
    }

    /// Lets the queues exceed their maximum rates, or no longer.
    pub fn set_unlimited(&mut self, is_unlimited: bool) {
        if let Some(shaper) = &mut self.shaper {
            shaper.set_unlimited(is_unlimited);
        }
    }

    /// Returns the counters of the queues.
    pub fn reports(&self) -> QueueReports {
        self.shaper.as_ref().map(|shaper| shaper.reports()).unwrap_or_default()
    }

    /// Continues `old`, whose port is the same and whose egress queues may differ: takes over the frames in
    /// front of the device and the counters. The frames in the queues of `old` are moved one by one
    /// afterwards, by [`Self::pop_queued`] and [`Self::push_queued`].
    pub fn continue_from(&mut self, old: &mut Self) {
        old.merge();
        self.normal.append(&mut old.normal);
        (self.frozen, self.promoted, self.left) = (self.normal.len(), old.promoted, old.left);
        (old.frozen, old.promoted) = (0, 0);
        self.outstanding = old.outstanding;
        if let (Some(before), Some(shaper)) = (&old.shaper, &mut self.shaper) {
            shaper.continue_from(before);
        }
        self.spare = PerLane::default();
    }

    /// Takes the next frame out of the egress queues.
    pub fn pop_queued(&mut self) -> Option<QueuedFrame> {
        self.shaper.as_mut()?.pop_oldest()
    }

    /// Adds a frame that waited in other egress queues of the port. Returns the frame if there is no space.
    pub fn push_queued(&mut self, moved: QueuedFrame) -> Result<(), Frame> {
        let is_full = self.len() >= 2 * self.limit;
        match &mut self.shaper {
            Some(shaper) => shaper.push_moved(moved),
            None if is_full => Err(moved.frame),
            None => {
                // Without queues, the frames leave in the order in which they are moved.
                self.normal.push(moved.frame);
                self.frozen = self.normal.len();
                if moved.lane == Lane::LowLatency {
                    self.promoted = self.frozen;
                }
                Ok(())
            }
        }
    }

    fn release(&mut self, now: Nanos) {
        let Some(mut shaper) = self.shaper.take() else { return };
        shaper.fill(now);
        while self.len() < 2 * self.limit {
            let Some(frame) = shaper.next_urgent() else { break };
            self.low_latency.push(frame);
        }
        while self.wants() {
            let Some((frame, frozen)) = shaper.next_normal() else { break };
            if frozen { self.low_latency.push(frame) } else { self.normal.push(frame) }
        }
        self.shaper = Some(shaper);
    }

    /// Returns whether the device can take one more normal frame. Returns false while low-latency frames wait
    /// for space in the outbox.
    fn wants(&self) -> bool {
        if self.len() >= self.chunk.min(2 * self.limit) {
            return false;
        }
        let most_bytes = self.outstanding.most_bytes.max(1);
        let bytes: usize = self.normal.iter().chain(&self.low_latency).map(charge_bytes).sum();
        most_bytes == usize::MAX || self.outstanding.bytes + bytes < most_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::EgressQueue;

    #[test]
    fn normal_frames_wait_for_low_latency_ones_that_find_no_room() {
        let (mut queues, mut device) = port::mem::pair(1, 1, 64);
        let queue = &mut queues[0];
        let mut outbox = Outbox::behind(&[EgressQueue::new(QueueId(0))], queue.outstanding(), 1, 64);
        for number in 0..6 {
            let frame = Frame::from_bytes(&[number; 60]);
            let lane = if number < 5 { Lane::LowLatency } else { Lane::Normal };
            assert!(outbox.enqueue(QueueId(0), frame, lane, false, Nanos(0)).is_ok());
        }
        loop {
            outbox.fetch(queue, Nanos(0));
            outbox.send(queue, &mut Vec::new(), |_, _| {});
            if !outbox.is_more() {
                break;
            }
        }
        let sent = std::iter::from_fn(|| device.pop(0)).map(|bytes| bytes[0]);
        assert_eq!(sent.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }
}
