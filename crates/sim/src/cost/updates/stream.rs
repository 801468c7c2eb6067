// SPDX-License-Identifier: Apache-2.0
//! Ports that count transmitted packets, and at which packets arrive one by one at a given rate.

use frame::{Frame, Stamp};
use port::mem::LoopQueue;
use port::{Capabilities, Link, Pools, Queue, Statistics};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// State shared between a port and the harness.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Number of packets that have arrived and have not been received yet.
    pub waiting: AtomicUsize,
    /// Number of packets sent.
    pub sent: AtomicU64,
}

/// Queue of a port that returns arrived packets and transmits frames.
pub(super) struct Stream {
    queue: LoopQueue,
    line: Arc<Line>,
}

impl Stream {
    /// Creates a queue whose arriving packets repeat these frames endlessly.
    pub fn pair(number: u32, frames: Vec<Frame>) -> (Box<dyn Queue>, Arc<Line>) {
        let line = Arc::<Line>::default();
        (Box::new(Self { queue: LoopQueue::new(number, frames), line: Arc::clone(&line) }), line)
    }
}

impl Queue for Stream {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        let waiting = self.line.waiting.load(Relaxed);
        let received = self.queue.receive(pools, burst, max.min(waiting), stamp);
        self.line.waiting.store(waiting - received, Relaxed);
        received
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let sent = self.queue.transmit(frames, done);
        self.line.sent.store(self.line.sent.load(Relaxed) + sent as u64, Relaxed);
        sent
    }

    fn capabilities(&self) -> Capabilities {
        self.queue.capabilities()
    }

    fn statistics(&self) -> Statistics {
        self.queue.statistics()
    }

    fn poll_link(&mut self) -> Link {
        self.queue.poll_link()
    }
}
