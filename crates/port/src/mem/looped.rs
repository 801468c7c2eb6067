// SPDX-License-Identifier: Apache-2.0
//! An endless queue for benchmarks: receives the same frames in a loop and discards the frames it sends.

use crate::{Capabilities, Link, Pools, PortDrop, Queue, Statistics};
use frame::{Frame, Meta, prefetch};

/// Size of a cache line in bytes.
const LINE_BYTES: usize = 64;

/// Number of frames by which the prefetch is ahead of the copy. A large set does not fit into a CPU cache.
const AHEAD: usize = 16;

/// A frame of the set: its metadata, and the range of its bytes in the queue's memory.
#[derive(Debug)]
struct Source {
    start: usize,
    /// End of the last cache line.
    end: usize,
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
            Source {
                start,
                end: memory.len(),
                len: frame.len(),
                meta: Meta { in_port: number, ..frame.meta },
            }
        };
        let set = set.iter().map(source).collect();
        Self { set, memory, next: 0, sequence: 0, statistics: Statistics::default() }
    }
}

/// Result of a run over the set.
#[derive(Clone, Copy, Default)]
struct Received {
    /// Frames of the set that were examined.
    examined: usize,
    frames: usize,
    bytes: usize,
    /// Whether the run ended because no buffer was free.
    lacks_buffer: bool,
}

impl LoopQueue {
    /// Receives up to `max` frames, but no further than the end of the set.
    #[inline]
    fn receive_run(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> Received {
        let begin = self.next;
        let end = self.set.len().min(begin + max);
        for later in self.set.iter().skip(begin + AHEAD).take(end - begin) {
            prefetch::element(&self.memory, later.start);
        }
        let mut received = Received::default();
        let mut sequence = self.sequence;
        for source in &mut self.set[begin..end] {
            source.meta.sequence = sequence;
            let bytes = &self.memory[source.start..source.end];
            if let Some(frame) = pools.receive(bytes, source.len, &source.meta) {
                burst.push(frame);
                received.bytes += source.len;
                sequence += 1;
            } else if pools.fits(source.len) {
                received.lacks_buffer = true;
                break;
            } else {
                self.statistics.dropped(PortDrop::RxOversized);
            }
            received.examined += 1;
        }
        received.frames = (sequence - self.sequence) as usize;
        self.sequence = sequence;
        self.next = if begin + received.examined == self.set.len() { 0 } else { begin + received.examined };
        received
    }
}

impl Queue for LoopQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> usize {
        // Examined frames are counted, so that the loop ends even if no frame of the set fits.
        let (mut left, mut all) = (max, Received::default());
        while left > 0 && !self.set.is_empty() {
            let received = self.receive_run(pools, burst, left);
            all.frames += received.frames;
            all.bytes += received.bytes;
            left -= received.examined;
            if received.lacks_buffer {
                break;
            }
        }
        self.statistics.received_many(all.frames, all.bytes);
        all.frames
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
