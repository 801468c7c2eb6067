// SPDX-License-Identifier: Apache-2.0
//! An in-memory queue with a descriptor, so that the queue's worker can sleep until a packet arrives.

use frame::{Frame, Stamp};
use port::mem::MemQueue;
use port::wait::Wake;
use port::{Capabilities, Link, Outstanding, Pools, Queue, Statistics};
use std::os::fd::RawFd;
use std::sync::Arc;

pub struct BellQueue {
    pub inner: MemQueue,
    /// Eventfd that the sender must signal after it pushes a packet.
    pub bell: Arc<Wake>,
}

impl Queue for BellQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        self.bell.clear();
        let count = self.inner.receive(pools, burst, max, stamp);
        if count == max {
            // Wake the worker again, because there may be more packets.
            self.bell.wake();
        }
        count
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        self.inner.transmit(frames, done)
    }

    fn outstanding(&self) -> Outstanding {
        self.inner.outstanding()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn descriptor(&self) -> Option<RawFd> {
        Some(self.bell.descriptor())
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn poll_link(&mut self) -> Link {
        self.inner.poll_link()
    }
}
