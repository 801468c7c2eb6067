// SPDX-License-Identifier: Apache-2.0
//! Packets that arrive one by one at a rate, and ports that count what they send.

use frame::Frame;
use port::mem::LoopQueue;
use port::{Capabilities, Link, Pools, Queue, Statistics};
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A port as its other side sees it.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Packets that have arrived and wait.
    pub waiting: AtomicUsize,
    /// Packets sent.
    pub sent: AtomicU64,
}

/// A queue of a port: hands out what has arrived, sends what it is given.
pub(super) struct Stream {
    queue: LoopQueue,
    line: Arc<Line>,
}

impl Stream {
    /// A queue over which these packets come round again and again.
    pub fn pair(number: u32, frames: Vec<Frame>) -> (Box<dyn Queue>, Arc<Line>) {
        let line = Arc::<Line>::default();
        (Box::new(Self { queue: LoopQueue::new(number, frames), line: Arc::clone(&line) }), line)
    }
}

impl Queue for Stream {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> usize {
        let waiting = self.line.waiting.load(Relaxed);
        let received = self.queue.receive(pools, burst, max.min(waiting));
        self.line.waiting.store(waiting - received, Relaxed);
        received
    }

    fn transmit(&mut self, frames: &mut VecDeque<Frame>, done: &mut Vec<Frame>) -> usize {
        let sent = self.queue.transmit(frames, done);
        self.line.sent.store(self.line.sent.load(Relaxed) + sent as u64, Relaxed);
        sent
    }

    fn capabilities(&self) -> Capabilities {
        self.queue.capabilities()
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.queue.descriptor()
    }

    fn statistics(&self) -> Statistics {
        self.queue.statistics()
    }

    fn poll_link(&mut self) -> Link {
        self.queue.poll_link()
    }
}
