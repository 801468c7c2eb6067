// SPDX-License-Identifier: Apache-2.0
//! An endless queue for benchmarks: receives the same frames in a loop and discards the frames it sends.

use crate::{Capabilities, Link, Pools, PortDrop, Queue, Statistics};
use frame::{Frame, Memory, Meta, prefetch};
use std::collections::VecDeque;
use std::ops::Range;
use std::os::fd::RawFd;

/// Distance in frames between the frame copied and the frame prefetched. A large set does not fit into a
/// cache.
const AHEAD: usize = 16;

/// A frame of the set. Its bytes stay where they were allocated, so the set keeps its distribution over
/// memory. The other fields of all frames are in one array.
#[derive(Debug)]
struct Source {
    memory: Memory,
    range: Range<usize>,
    meta: Meta,
}

impl Source {
    fn new(frame: Frame) -> Self {
        let (memory, range, meta) = frame.into_parts();
        Self { memory, range, meta }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

/// A queue that returns copies of a preloaded set in a loop. Transmitted frames are counted and freed.
#[derive(Debug)]
pub struct LoopQueue {
    number: u32,
    set: Vec<Source>,
    next: usize,
    sequence: u64,
    statistics: Statistics,
}

impl LoopQueue {
    /// Creates a queue of port `number` that receives `set` in a loop, or nothing if the set is empty.
    /// Received frames have the offload metadata of the set's frames.
    #[must_use]
    pub fn new(number: u32, set: Vec<Frame>) -> Self {
        let set = set.into_iter().map(Source::new).collect();
        Self { number, set, next: 0, sequence: 0, statistics: Statistics::default() }
    }
}

impl Queue for LoopQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> usize {
        let mut count = 0;
        // Counts examined frames, so that the loop ends even if no frame of the set fits.
        for _ in 0..if self.set.is_empty() { 0 } else { max } {
            let source = &self.set[self.next];
            let bytes = source.bytes();
            if let Some(later) = self.set.get(self.next + AHEAD) {
                prefetch::element(&later.memory, later.range.start);
                prefetch::element(&later.memory, later.range.start + 63);
            }
            let Some(mut frame) = pools.get(bytes.len()) else {
                if pools.fits(bytes.len()) {
                    break;
                }
                self.statistics.dropped(PortDrop::RxOversized);
                self.next = if self.next + 1 == self.set.len() { 0 } else { self.next + 1 };
                continue;
            };
            let copied = frame.fill(bytes);
            debug_assert!(copied);
            self.statistics.received(bytes.len());
            frame.meta = Meta { in_port: self.number, sequence: self.sequence, ..source.meta };
            burst.push(frame);
            self.sequence += 1;
            count += 1;
            self.next = if self.next + 1 == self.set.len() { 0 } else { self.next + 1 };
        }
        count
    }

    fn transmit(&mut self, frames: &mut VecDeque<Frame>, done: &mut Vec<Frame>) -> usize {
        let count = frames.len();
        for frame in frames.drain(..) {
            self.statistics.sent(frame.len());
            done.push(frame);
        }
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
        let mut out: VecDeque<_> = burst.drain(..).collect();
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
