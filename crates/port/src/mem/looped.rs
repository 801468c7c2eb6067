// SPDX-License-Identifier: Apache-2.0
//! An endless queue for benchmarks: receives the same frames in a loop and discards the frames it sends.

use crate::{Capabilities, Link, Pools, PortDrop, Queue, Statistics};
use frame::{Frame, Meta, prefetch};
use std::os::fd::RawFd;

/// Size of a cache line in bytes.
const LINE_BYTES: usize = 64;

/// Distance in frames between the frame copied and the frame prefetched. A large set does not fit into a
/// cache.
const AHEAD: usize = 16;

/// A frame of the set: its metadata, and the range of its bytes in the queue's memory.
#[derive(Debug)]
struct Source {
    start: usize,
    len: usize,
    meta: Meta,
}

/// A queue that returns copies of a preloaded set in a loop. Transmitted frames are counted and freed.
#[derive(Debug)]
pub struct LoopQueue {
    set: Vec<Source>,
    /// Bytes of the set. Each frame begins a cache line, as in most devices' buffers.
    memory: Vec<u8>,
    next: usize,
    sequence: u64,
    statistics: Statistics,
}

impl LoopQueue {
    /// Creates a queue of port `number` that receives `set` in a loop, or nothing if the set is empty.
    /// Received frames have the offload metadata of the set's frames.
    #[must_use]
    pub fn new(number: u32, set: Vec<Frame>) -> Self {
        let lines = |frame: &Frame| frame.len().div_ceil(LINE_BYTES) * LINE_BYTES;
        let mut memory = Vec::<u8>::with_capacity(set.iter().map(lines).sum::<usize>() + LINE_BYTES);
        let first = memory.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES);
        memory.resize(first, 0);
        let source = |frame: &Frame| {
            let start = memory.len();
            memory.extend_from_slice(frame.bytes());
            memory.resize(start + lines(frame), 0);
            Source { start, len: frame.len(), meta: Meta { in_port: number, ..frame.meta } }
        };
        let set = set.iter().map(source).collect();
        Self { set, memory, next: 0, sequence: 0, statistics: Statistics::default() }
    }
}

impl Queue for LoopQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> usize {
        let Self { set, memory, next, .. } = self;
        let (mut count, mut received_bytes, mut sequence) = (0, 0, self.sequence);
        // Counts examined frames, so that the loop ends even if no frame of the set fits.
        for _ in 0..max {
            let Some(source) = set.get(*next) else { break };
            let bytes = &memory[source.start..source.start + source.len];
            if let Some(later) = set.get(*next + AHEAD) {
                prefetch::element(memory, later.start);
            }
            if let Some(mut frame) = pools.get(bytes.len()) {
                let copied = frame.fill(bytes);
                debug_assert!(copied, "the pool was chosen by length");
                let meta = &mut frame.meta;
                *meta = source.meta;
                meta.sequence = sequence;
                burst.push(frame);
                received_bytes += bytes.len();
                sequence += 1;
                count += 1;
            } else if pools.fits(bytes.len()) {
                break;
            } else {
                self.statistics.dropped(PortDrop::RxOversized);
            }
            *next += 1;
            if *next == set.len() {
                *next = 0;
            }
        }
        self.sequence = sequence;
        self.statistics.received_many(count, received_bytes);
        count
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let count = frames.len();
        self.statistics.sent_many(count, frames.iter().map(Frame::len).sum());
        done.append(frames);
        count
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { partial_checksum: true, gso: true }
    }

    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn poll_link(&mut self) -> Link {
        Link { up: true, ..Link::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_comes_round_and_waits_for_buffers() {
        let mut queue = LoopQueue::new(4, vec![Frame::from_bytes(&[1; 60]), Frame::from_bytes(&[2; 70])]);
        let mut pools = Pools::new(0, 3, 0);
        let mut burst = Vec::new();
        assert_eq!(queue.receive(&mut pools, &mut burst, 8), 3);
        let seen: Vec<_> =
            burst.iter().map(|f| (f.bytes()[0], f.len(), f.meta.in_port, f.meta.sequence)).collect();
        assert_eq!(seen, [(1, 60, 4, 0), (2, 70, 4, 1), (1, 60, 4, 2)]);
        let mut out = std::mem::take(&mut burst);
        let mut done = Vec::new();
        assert_eq!(queue.transmit(&mut out, &mut done), 3);
        assert!(done.drain(..).all(|frame| pools.put(frame).is_ok()));
        assert_eq!(queue.receive(&mut pools, &mut burst, 1), 1);
        assert_eq!((burst[0].bytes()[0], burst[0].meta.sequence), (2, 3));
        assert_eq!((queue.statistics().tx_packets, queue.statistics().tx_bytes), (3, 190));
    }

    #[test]
    fn a_frame_for_which_there_is_no_pool_is_a_counted_drop() {
        let mut queue = LoopQueue::new(1, vec![Frame::from_bytes(&[1; 3000])]);
        let mut burst = Vec::new();
        assert_eq!(queue.receive(&mut Pools::new(0, 3, 0), &mut burst, 8), 0);
        assert_eq!(queue.statistics().drops(PortDrop::RxOversized), 8);
        assert_eq!(LoopQueue::new(1, Vec::new()).receive(&mut Pools::new(0, 3, 0), &mut burst, 8), 0);
    }
}
