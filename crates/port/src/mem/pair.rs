// SPDX-License-Identifier: Apache-2.0
//! In-memory queue pairs for tests and simulations.

use crate::rings::{LongFrames, Received, Receiver, Sender, direction};
use crate::{Capabilities, Link, Outstanding, Pools, Queue, SMALL_FRAME_BYTES, Statistics};
use frame::{Frame, Meta, Stamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Creates port `number` with `queues` queue pairs of `capacity` frames per direction, and the handle to its
/// other side.
#[must_use]
pub fn pair(number: u32, queues: usize, capacity: usize) -> (Vec<MemQueue>, MemHandle) {
    let up = Arc::new(AtomicBool::new(true));
    let mut sides = Vec::with_capacity(queues);
    let workers = (0..queues)
        .map(|_| {
            let (to_worker, from_handle) = direction(capacity, LongFrames::Grow);
            let (to_handle, from_worker) = direction(capacity, LongFrames::Grow);
            sides.push((to_worker, from_worker));
            MemQueue {
                rx: from_handle,
                tx: to_handle,
                received: Received::at(number),
                capabilities: Capabilities { partial_checksum: true, gso: true },
                statistics: Statistics::default(),
                up: Arc::clone(&up),
                outstanding_most_bytes: usize::MAX,
            }
        })
        .collect();
    (workers, MemHandle { sides, up })
}

/// The worker's side of an in-memory queue pair. Offload metadata is preserved in both directions.
pub struct MemQueue {
    rx: Receiver,
    tx: Sender,
    received: Received,
    capabilities: Capabilities,
    statistics: Statistics,
    up: Arc<AtomicBool>,
    outstanding_most_bytes: usize,
}

impl MemQueue {
    /// Sets which offloads `transmit` accepts (initially all).
    pub fn set_capabilities(&mut self, capabilities: Capabilities) {
        self.capabilities = capabilities;
    }
}

impl Queue for MemQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        self.rx.receive(&mut self.received, &mut self.statistics, pools, burst, max, stamp)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        self.tx.transmit(&mut self.statistics, frames, done, |meta| Ok(*meta))
    }

    /// Returns the outstanding bytes. Each frame that was not popped counts as [`SMALL_FRAME_BYTES`].
    fn outstanding(&self) -> Outstanding {
        Outstanding {
            bytes: self.tx.in_flight() * SMALL_FRAME_BYTES,
            most_bytes: self.outstanding_most_bytes,
        }
    }

    /// Sets the number of outstanding bytes at which normal frames begin to wait (initially no limit).
    fn set_outstanding(&mut self, most_bytes: usize) {
        self.outstanding_most_bytes = most_bytes;
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn poll_link(&mut self) -> Link {
        Link { up: self.up.load(Ordering::Relaxed), ..Link::default() }
    }
}

/// The other side of an in-memory port, used by a test or simulation. Queues are numbered from 0.
pub struct MemHandle {
    sides: Vec<(Sender, Receiver)>,
    up: Arc<AtomicBool>,
}

impl MemHandle {
    /// Returns the number of queue pairs.
    #[must_use]
    pub fn queues(&self) -> usize {
        self.sides.len()
    }

    /// Sends `bytes` to a queue of the port. Returns false if the queue is full or does not exist.
    pub fn push(&mut self, queue: usize, bytes: &[u8]) -> bool {
        self.sides.get_mut(queue).is_some_and(|(sender, _)| sender.send(bytes, Meta::default()))
    }

    /// Sends a copy of `frame` to a queue of the port, with its offload metadata. Returns false if the queue
    /// is full or does not exist.
    pub fn push_frame(&mut self, queue: usize, frame: &Frame) -> bool {
        let offloads = Meta { checksum: frame.meta.checksum, gso: frame.meta.gso, ..Meta::default() };
        self.sides.get_mut(queue).is_some_and(|(sender, _)| sender.send(frame.bytes(), offloads))
    }

    /// Takes the oldest frame that the queue has sent, if there is one.
    pub fn pop(&mut self, queue: usize) -> Option<Vec<u8>> {
        self.pop_with(queue, |bytes, _| bytes.to_vec())
    }

    /// Takes the oldest frame that the queue has sent, and calls `look` with its bytes and metadata.
    pub fn pop_with<T>(&mut self, queue: usize, look: impl FnOnce(&[u8], &Meta) -> T) -> Option<T> {
        self.sides.get_mut(queue)?.1.take(|buffer| Some(look(&buffer.bytes, &buffer.meta)))
    }

    /// Sets the link state that the queues' `poll_link` returns. Frames pass in either state.
    pub fn set_link(&mut self, up: bool) {
        self.up.store(up, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PortDrop;
    use frame::PartialChecksum;

    #[test]
    fn frames_pass_both_ways_and_a_full_queue_refuses() {
        let (mut queues, mut handle) = pair(7, 2, 2);
        let mut pools = Pools::new(0, 8, 1);
        assert!(handle.push(1, &[1; 60]) && handle.push(1, &[2; 3000]) && !handle.push(1, &[3; 60]));
        assert!(!handle.push(2, &[3; 60]));
        let mut burst = Vec::new();
        assert_eq!(queues[0].receive(&mut pools, &mut burst, 8, Stamp::NONE), 0);
        assert_eq!(queues[1].receive(&mut pools, &mut burst, 8, Stamp::new(9)), 2);
        assert!(burst.iter().all(|frame| frame.meta.stamp == 9));
        assert_eq!((burst[1].len(), burst[1].meta.in_port, burst[1].meta.sequence), (3000, 7, 1));
        assert!(handle.push(1, &[3; 60]), "buffers are returned");

        burst.push(Frame::from_bytes(&[9; 60]));
        let mut out = std::mem::take(&mut burst);
        let mut done = Vec::new();
        assert_eq!(queues[1].transmit(&mut out, &mut done), 2);
        assert_eq!((out.len(), done.len()), (1, 2));
        assert_eq!(handle.pop(1).unwrap(), [1; 60]);
        assert_eq!(queues[1].transmit(&mut out, &mut done), 1);
        assert_eq!((handle.pop(1).unwrap().len(), handle.pop(1).unwrap()), (3000, vec![9; 60]));
        assert!(handle.pop(1).is_none() && handle.pop(0).is_none());
        let total = queues[1].statistics();
        assert_eq!((total.rx_packets, total.rx_bytes, total.tx_packets), (2, 3060, 3));
    }

    #[test]
    fn without_a_buffer_frames_wait_and_without_a_pool_they_are_dropped() {
        let (mut queues, mut handle) = pair(1, 1, 8);
        let mut pools = Pools::new(0, 1, 0);
        let mut burst = Vec::new();
        for bytes in [&[0; 13][..], &[1; 60], &[2; 2049], &[3; 60]] {
            assert!(handle.push(0, bytes));
        }
        assert_eq!(queues[0].receive(&mut pools, &mut burst, 8, Stamp::NONE), 1);
        assert!(pools.put(burst.remove(0)).is_ok());
        assert_eq!(queues[0].receive(&mut pools, &mut burst, 8, Stamp::NONE), 1);
        assert_eq!((burst[0].bytes()[0], burst[0].meta.sequence), (3, 1));
        let statistics = queues[0].statistics();
        assert_eq!((statistics.drops(PortDrop::RxRunt), statistics.drops(PortDrop::RxOversized)), (1, 1));
    }

    #[test]
    fn offload_metadata_and_link_state_pass() {
        let (mut queues, mut handle) = pair(1, 1, 8);
        let mut frame = Frame::from_bytes(&[1; 60]);
        frame.meta.checksum = Some(PartialChecksum { start: 34, offset: 16 });
        frame.meta.in_port = 99;
        assert!(handle.push_frame(0, &frame));
        let mut burst = Vec::new();
        assert_eq!(queues[0].receive(&mut Pools::new(0, 1, 0), &mut burst, 1, Stamp::NONE), 1);
        assert_eq!((burst[0].meta.checksum, burst[0].meta.in_port), (frame.meta.checksum, 1));
        queues[0].transmit(&mut burst, &mut Vec::new());
        assert_eq!(handle.pop_with(0, |_, meta| meta.checksum), Some(frame.meta.checksum));
        assert!(queues[0].poll_link().up);
        handle.set_link(false);
        assert!(!queues[0].poll_link().up);
    }
}
