// SPDX-License-Identifier: Apache-2.0
//! An endless queue for benchmarks: receives the same frames in a loop and discards the frames it sends.

use crate::{Capabilities, Link, Pools, PortDrop, Queue, Statistics};
use frame::{CacheLine, Frame, Meta, Pool, Stamp, prefetch};
use std::slice::from_ref;

const LINE_BYTES: usize = size_of::<CacheLine>();

/// Distance in frames between the prefetched frame and the copied frame.
const AHEAD: usize = 16;

/// A frame of the set: its cache lines in the queue's memory, and its length in bytes.
#[derive(Clone, Copy, Debug)]
struct Source {
    first: usize,
    len: usize,
}

impl Source {
    /// Returns the index after the last line.
    fn end(self) -> usize {
        self.first + self.len.div_ceil(LINE_BYTES)
    }
}

/// A queue that returns copies of a preloaded set of frames in a loop. Transmitted frames are counted and
/// freed.
#[derive(Debug)]
pub struct LoopQueue {
    /// The frames of the set, followed by its first [`AHEAD`] frames again. The prefetch thus stays within
    /// the list.
    set: Vec<Source>,
    metas: Vec<Meta>,
    /// Length of the longest frame of the set in bytes.
    longest: usize,
    /// Whether no frame of the set has offloads. The metadata of its frames then differs only in the sequence
    /// number.
    is_plain: bool,
    /// Bytes of the set. Each frame begins at the start of a cache line.
    memory: Vec<u8>,
    /// Offset in `memory` at which the first cache line begins.
    aligned: usize,
    next: usize,
    /// Metadata for the next frame, if that frame has no offloads.
    meta: Meta,
    statistics: Statistics,
}

impl LoopQueue {
    /// Creates a queue of port `number` that receives `set` in a loop, or nothing if the set is empty.
    /// Received frames have the offload metadata of the set's frames.
    #[must_use]
    pub fn new(number: u32, set: Vec<Frame>) -> Self {
        let lines = |frame: &Frame| frame.len().div_ceil(LINE_BYTES) * LINE_BYTES;
        let mut memory = Vec::<u8>::with_capacity(set.iter().map(lines).sum::<usize>() + LINE_BYTES);
        let aligned = memory.as_ptr().align_offset(LINE_BYTES).min(LINE_BYTES);
        memory.resize(aligned, 0);
        let source = |frame: &Frame| {
            let start = memory.len();
            memory.extend_from_slice(frame.bytes());
            memory.resize(start + lines(frame), 0);
            Source { first: (start - aligned) / LINE_BYTES, len: frame.len() }
        };
        let sources: Vec<Source> = set.iter().map(source).collect();
        let count = if set.is_empty() { 0 } else { set.len() + AHEAD };
        Self {
            metas: set.iter().map(|frame| Meta { in_port: number, ..frame.meta }).collect(),
            longest: set.iter().map(Frame::len).max().unwrap_or(0),
            is_plain: set.iter().all(|frame| frame.meta.checksum.is_none() && frame.meta.gso.is_none()),
            set: sources.iter().cycle().take(count).copied().collect(),
            memory,
            aligned,
            next: 0,
            meta: Meta { in_port: number, ..Meta::NONE },
            statistics: Statistics::default(),
        }
    }
}

/// Result of [`LoopQueue::receive_run`].
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
    /// Returns the cache lines of the set.
    #[inline]
    fn lines(&self) -> &[CacheLine] {
        self.memory.get(self.aligned..).unwrap_or_default().as_chunks().0
    }

    /// Receives up to `max` frames of a set that is not empty.
    #[inline(never)]
    fn receive_runs(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        // Examined frames are counted, so that the loop ends even if no frame of the set fits.
        self.meta.arrive(self.meta.in_port, self.meta.sequence, stamp);
        let (mut left, mut all) = (max, Received::default());
        while left > 0 {
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

    /// Receives up to `max` frames, but no further than the end of the set.
    #[inline]
    fn receive_run(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> Received {
        let begin = self.next;
        let end = self.metas.len().min(begin + max);
        let received = if self.is_plain && self.longest <= pools.small.capacity_bytes() {
            let (frames, bytes) = self.receive_plain(&mut pools.small, burst, begin, end);
            self.meta.sequence += frames as u64;
            Received { examined: frames, frames, bytes, lacks_buffer: frames < end - begin }
        } else {
            self.receive_each(pools, burst, begin, end)
        };
        self.next = if begin + received.examined == self.metas.len() { 0 } else { begin + received.examined };
        received
    }

    /// Receives frames that fit into this pool and have no offloads. Returns the number of frames and of
    /// their bytes.
    #[inline(never)]
    fn receive_plain(
        &self,
        pool: &mut Pool,
        burst: &mut Vec<Frame>,
        begin: usize,
        end: usize,
    ) -> (usize, usize) {
        let lines = self.lines();
        let later = &self.set[begin + AHEAD..end + AHEAD];
        let set = self.set[begin..end].iter().zip(later).map(|(source, later)| {
            prefetch::element(lines, later.first);
            source
        });
        if self.longest <= LINE_BYTES {
            let packets = set.map(|source| (from_ref(&lines[source.first]), source.len));
            return pool.receive_burst(burst, &self.meta, packets);
        }
        let packets = set.map(|source| (&lines[source.first..source.end()], source.len));
        pool.receive_burst(burst, &self.meta, packets)
    }

    /// Receives frames of any length, with or without offloads.
    fn receive_each(
        &mut self,
        pools: &mut Pools,
        burst: &mut Vec<Frame>,
        begin: usize,
        end: usize,
    ) -> Received {
        let mut received = Received::default();
        for (source, meta) in self.set[begin..end].iter().zip(&self.metas[begin..end]) {
            let meta = Meta { checksum: meta.checksum, gso: meta.gso, ..self.meta };
            if let Some(frame) = pools.receive(&self.lines()[source.first..source.end()], source.len, &meta) {
                burst.push(frame);
                received.frames += 1;
                received.bytes += source.len;
                self.meta.sequence += 1;
            } else if pools.fits(source.len) {
                received.lacks_buffer = true;
                break;
            } else {
                self.statistics.dropped(PortDrop::RxOversized);
            }
            received.examined += 1;
        }
        received
    }
}

impl Queue for LoopQueue {
    #[inline]
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        if self.metas.is_empty() { 0 } else { self.receive_runs(pools, burst, max, stamp) }
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
    fn the_set_is_repeated_and_waits_for_buffers() {
        let mut queue = LoopQueue::new(4, vec![Frame::from_bytes(&[1; 60]), Frame::from_bytes(&[2; 70])]);
        let mut pools = Pools::new(0, 3, 0);
        let mut burst = Vec::new();
        assert_eq!(queue.receive(&mut pools, &mut burst, 8, Stamp::new(9 | 1 << 32)), 3);
        assert!(burst.iter().all(|frame| (frame.meta.stamp, frame.meta.stamp_round) == (9, 1)));
        let seen: Vec<_> =
            burst.iter().map(|f| (f.bytes()[0], f.len(), f.meta.in_port, f.meta.sequence)).collect();
        assert_eq!(seen, [(1, 60, 4, 0), (2, 70, 4, 1), (1, 60, 4, 2)]);
        let mut out = std::mem::take(&mut burst);
        let mut done = Vec::new();
        assert_eq!(queue.transmit(&mut out, &mut done), 3);
        assert!(done.drain(..).all(|frame| pools.put(frame).is_ok()));
        assert_eq!(queue.receive(&mut pools, &mut burst, 1, Stamp::NONE), 1);
        assert_eq!((burst[0].bytes()[0], burst[0].meta.sequence), (2, 3));
        assert_eq!((queue.statistics().tx_packets, queue.statistics().tx_bytes), (3, 190));
    }

    #[test]
    fn a_frame_for_which_there_is_no_pool_is_a_counted_drop() {
        let mut queue = LoopQueue::new(1, vec![Frame::from_bytes(&[1; 3000])]);
        let mut burst = Vec::new();
        assert_eq!(queue.receive(&mut Pools::new(0, 3, 0), &mut burst, 8, Stamp::NONE), 0);
        assert_eq!(queue.statistics().drops(PortDrop::RxOversized), 8);
        assert_eq!(
            LoopQueue::new(1, Vec::new()).receive(&mut Pools::new(0, 3, 0), &mut burst, 8, Stamp::NONE),
            0
        );
    }
}
