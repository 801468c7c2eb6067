// SPDX-License-Identifier: Apache-2.0
//! The outbox of a port that has egress queues: they choose what comes to it, and no more than the device takes soon, for what
//! is in the outbox has its place.

use super::{CHUNK_FRAMES, Outbox, charge_bytes};
use crate::shaper::QueueReports;
use flow::Nanos;
use frame::Frame;
use port::Queue;

impl Outbox {
    /// Whether the port has egress queues.
    #[inline]
    pub fn has_queues(&self) -> bool {
        self.shaper.is_some()
    }

    /// Adds a frame to one of them. Given back if that has no room, or if it would wait while frames are `scarce`.
    pub fn enqueue(
        &mut self,
        queue: u32,
        frame: Frame,
        low_latency: bool,
        scarce: bool,
        now: Nanos,
    ) -> Result<(), Frame> {
        // What may leave makes room: a queue's limit is for those that must wait.
        if self.shaper.as_ref().is_some_and(|shaper| shaper.is_full(queue, low_latency)) {
            self.release(now);
        }
        let stuck = self.is_stuck(low_latency);
        let Some(shaper) = &mut self.shaper else { return Err(frame) };
        let pushed = if scarce && (stuck || shaper.is_held(queue)) {
            Err(frame)
        } else {
            shaper.push(queue, frame, low_latency)
        };
        if pushed.is_err() {
            shaper.refuse(queue);
        }
        pushed
    }

    /// Whether a queue should be sent from before more comes.
    pub fn is_queue_long(&self, queue: u32) -> bool {
        self.shaper.as_ref().is_some_and(|shaper| shaper.is_long(queue))
    }

    /// Takes over from the queues what the device may be given now.
    pub fn fetch(&mut self, queue: &dyn Queue, now: Nanos) {
        if self.outstanding.bytes >= self.outstanding.most_bytes {
            self.outstanding = queue.outstanding();
        }
        self.release(now);
    }

    /// What was fetched has been sent, as far as the device took it. Whether more is to be fetched at once.
    pub fn is_more(&mut self) -> bool {
        self.chunk = if self.is_empty() { CHUNK_FRAMES.min(2 * self.chunk) } else { 1 };
        self.is_empty() && self.shaper.as_ref().is_some_and(|shaper| shaper.is_ready())
    }

    /// Nothing more is fetched now: what is left in the queues waits.
    pub fn settle(&mut self) {
        if let Some(shaper) = &mut self.shaper {
            shaper.settle();
        }
    }

    /// Whether frames wait for the device.
    pub fn is_waiting(&self) -> bool {
        !self.is_empty() || self.shaper.as_ref().is_some_and(|shaper| shaper.is_ready())
    }

    /// When the first queue that waits for its rate may send again.
    pub fn opens_ns(&self) -> Option<Nanos> {
        self.shaper.as_ref()?.opens_ns()
    }

    /// What the queues have done.
    pub fn reports(&self) -> QueueReports {
        self.shaper.as_ref().map(|shaper| shaper.reports()).unwrap_or_default()
    }

    fn release(&mut self, now: Nanos) {
        let Some(mut shaper) = self.shaper.take() else { return };
        shaper.fill(now);
        while self.len() < 2 * self.limit {
            let Some(frame) = shaper.next_urgent() else { break };
            self.low_latency.push_back(frame);
        }
        while self.wants() {
            let Some((frame, sealed)) = shaper.next_normal() else { break };
            if sealed { self.low_latency.push_back(frame) } else { self.normal.push_back(frame) }
        }
        self.shaper = Some(shaper);
    }

    /// Whether the device would be given one more normal frame. Not while low-latency ones found no room.
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
        let mut outbox = Outbox::behind(&[EgressQueue::new(0)], queue, 1, 64);
        for number in 0..6 {
            let frame = Frame::from_bytes(&[number; 60]);
            assert!(outbox.enqueue(0, frame, number < 5, false, 0).is_ok());
        }
        loop {
            outbox.fetch(queue, 0);
            outbox.send(queue, &mut Vec::new(), |_| {});
            if !outbox.is_more() {
                break;
            }
        }
        let sent = std::iter::from_fn(|| device.pop(0)).map(|bytes| bytes[0]);
        assert_eq!(sent.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }
}
