// SPDX-License-Identifier: Apache-2.0
//! A worker's queue, whose remote side is a replay in the same thread.

use frame::{Frame, Stamp};
use port::{Capabilities, Link, Pools, Queue, Statistics};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A frame with the number of its packet.
pub(super) type Numbered = (u64, Vec<u8>);

/// Frames between a queue and the replay.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub arriving: VecDeque<Numbered>,
    pub sent: Vec<Numbered>,
}

/// The replay's side of a queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Side(Arc<Mutex<Line>>);

impl Side {
    pub fn line(&self) -> MutexGuard<'_, Line> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The worker's side of a queue. The sequence number of a frame is the number of its packet in the replay.
pub(super) struct ReplayQueue {
    number: u32,
    side: Side,
    statistics: Statistics,
}

impl ReplayQueue {
    pub fn new(number: u32, side: Side) -> Self {
        Self { number, side, statistics: Statistics::default() }
    }
}

impl Queue for ReplayQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        let mut line = self.side.line();
        let before = burst.len();
        while burst.len() - before < max {
            let Some((sequence, bytes)) = line.arriving.front() else { break };
            let Some(mut frame) = pools.filled(bytes) else { break };
            frame.meta.arrive(self.number, *sequence, stamp);
            self.statistics.received(frame.len());
            burst.push(frame);
            line.arriving.pop_front();
        }
        burst.len() - before
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let mut line = self.side.line();
        let count = frames.len();
        for frame in frames.drain(..) {
            self.statistics.sent(frame.len());
            line.sent.push((frame.meta.sequence, frame.bytes().to_vec()));
            done.push(frame);
        }
        count
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { partial_checksum: true, gso: true }
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn poll_link(&mut self) -> Link {
        Link { up: true, ..Link::default() }
    }
}
