// SPDX-License-Identifier: Apache-2.0
//! Rings that carry frames between two queues in memory. Neither side locks.
//!
//! A direction has one ring of full buffers, and one ring of empty buffers for each size. A sender waits if
//! no buffer of the size of its next frame is empty. Begin with [`direction`].

use crate::{LARGE_FRAME_BYTES, MIN_FRAME_BYTES, Pools, PortDrop, SMALL_FRAME_BYTES, Statistics};
use frame::{Frame, Meta, Stamp};
use rtrb::{Consumer, Producer, RingBuffer};

/// Buffers of a direction for frames that are longer than [`SMALL_FRAME_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongFrames {
    /// This number of buffers of [`LARGE_FRAME_BYTES`]. No buffer grows, so a sender never allocates memory.
    Buffers(usize),
    /// Every small buffer grows to the longest frame that it has carried.
    Grow,
}

/// A buffer in a ring.
pub(crate) struct Buffer {
    pub bytes: Vec<u8>,
    pub meta: Meta,
    is_large: bool,
}

impl Buffer {
    fn new(capacity_bytes: usize, is_large: bool) -> Self {
        Self { bytes: Vec::with_capacity(capacity_bytes), meta: Meta::default(), is_large }
    }

    fn set(&mut self, bytes: &[u8], meta: Meta) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.meta = meta;
    }
}

/// The sending end of a direction.
pub(crate) struct Sender {
    full: Producer<Buffer>,
    empty: Consumer<Buffer>,
    /// Empty large buffers, unless small buffers grow.
    empty_large: Option<Consumer<Buffer>>,
}

impl Sender {
    /// Sends a frame. Returns false if all buffers of the frame's size are in use.
    pub fn send(&mut self, bytes: &[u8], meta: Meta) -> bool {
        debug_assert!(bytes.len() <= LARGE_FRAME_BYTES || self.empty_large.is_none());
        let empty = match &mut self.empty_large {
            Some(large) if bytes.len() > SMALL_FRAME_BYTES => large,
            _ => &mut self.empty,
        };
        let Ok(mut buffer) = empty.pop() else { return false };
        buffer.set(bytes, meta);
        let sent = self.full.push(buffer);
        debug_assert!(sent.is_ok(), "the ring has room for all its buffers");
        true
    }

    /// Returns whether the receiver is gone.
    pub fn is_abandoned(&self) -> bool {
        self.full.is_abandoned()
    }

    /// Returns the number of frames that the receiver has not taken.
    pub fn in_flight(&self) -> usize {
        self.full.buffer().capacity() - self.full.slots()
    }
}

/// The receiving end of a direction.
pub(crate) struct Receiver {
    full: Consumer<Buffer>,
    empty: Producer<Buffer>,
    empty_large: Option<Producer<Buffer>>,
}

impl Receiver {
    /// Calls `take` with the oldest buffer and returns its result. After `None`, the buffer stays first in
    /// the ring.
    pub fn take<T>(&mut self, take: impl FnOnce(&Buffer) -> Option<T>) -> Option<T> {
        let answer = take(self.full.peek().ok()?)?;
        if let Ok(buffer) = self.full.pop() {
            let empty = match &mut self.empty_large {
                Some(large) if buffer.is_large => large,
                _ => &mut self.empty,
            };
            let returned = empty.push(buffer);
            debug_assert!(returned.is_ok(), "the ring has room for all its buffers");
        }
        Some(answer)
    }

    /// Returns whether no frame waits.
    pub fn is_empty(&self) -> bool {
        self.full.is_empty()
    }
}

/// Creates a ring with `count` empty buffers.
fn empty_buffers(count: usize, buffer: impl Fn() -> Buffer) -> (Producer<Buffer>, Consumer<Buffer>) {
    let (mut input, output) = RingBuffer::new(count);
    for _ in 0..count {
        let stocked = input.push(buffer());
        debug_assert!(stocked.is_ok());
    }
    (input, output)
}

/// Creates both ends of a direction for `small` frames, and for long frames beside them.
pub(crate) fn direction(small: usize, long: LongFrames) -> (Sender, Receiver) {
    let large = match long {
        LongFrames::Buffers(count) => count,
        LongFrames::Grow => 0,
    };
    let (full_in, full_out) = RingBuffer::new(small + large);
    let (empty_in, empty_out) = empty_buffers(small, || Buffer::new(SMALL_FRAME_BYTES, false));
    let (large_in, large_out) = match long {
        LongFrames::Buffers(_) => {
            let (input, output) = empty_buffers(large, || Buffer::new(LARGE_FRAME_BYTES, true));
            (Some(input), Some(output))
        }
        LongFrames::Grow => (None, None),
    };
    let sender = Sender { full: full_in, empty: empty_out, empty_large: large_out };
    (sender, Receiver { full: full_out, empty: empty_in, empty_large: large_in })
}

/// Result of handling a buffer in `receive`.
enum Arrival {
    Frame(Frame),
    Dropped(PortDrop),
}

/// Number of frames that a queue has received, and the port to which it belongs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    number: u32,
    sequence: u64,
}

impl Received {
    /// Creates the counter of a queue of port `number`.
    pub fn at(number: u32) -> Self {
        Self { number, sequence: 0 }
    }
}

impl Receiver {
    /// Receives frames as [`Queue::receive`](crate::Queue::receive) does.
    pub fn receive(
        &mut self,
        received: &mut Received,
        statistics: &mut Statistics,
        pools: &mut Pools,
        burst: &mut Vec<Frame>,
        max: usize,
        stamp: Stamp,
    ) -> usize {
        let mut count = 0;
        while count < max {
            let arrival = self.take(|buffer| {
                if buffer.bytes.len() < MIN_FRAME_BYTES {
                    return Some(Arrival::Dropped(PortDrop::RxRunt));
                }
                let Some(mut frame) = pools.filled(&buffer.bytes) else {
                    return (!pools.fits(buffer.bytes.len()))
                        .then_some(Arrival::Dropped(PortDrop::RxOversized));
                };
                frame.meta = buffer.meta;
                Some(Arrival::Frame(frame))
            });
            match arrival {
                Some(Arrival::Frame(mut frame)) => {
                    frame.meta.arrive(received.number, received.sequence, stamp);
                    received.sequence += 1;
                    statistics.received(frame.len());
                    burst.push(frame);
                    count += 1;
                }
                Some(Arrival::Dropped(reason)) => statistics.dropped(reason),
                None => break,
            }
        }
        count
    }
}

impl Sender {
    /// Transmits frames as [`Queue::transmit`](crate::Queue::transmit) does. `pass` returns the metadata that
    /// the receiver gets, or the reason for which a frame is dropped.
    pub fn transmit(
        &mut self,
        statistics: &mut Statistics,
        frames: &mut Vec<Frame>,
        done: &mut Vec<Frame>,
        pass: impl Fn(&Meta) -> Result<Meta, PortDrop>,
    ) -> usize {
        let mut count = 0;
        for frame in &*frames {
            match pass(&frame.meta) {
                _ if frame.len() < MIN_FRAME_BYTES => statistics.dropped(PortDrop::TxRunt),
                Err(reason) => statistics.dropped(reason),
                Ok(meta) if self.send(frame.bytes(), meta) => statistics.sent(frame.len()),
                Ok(_) => break,
            }
            count += 1;
        }
        move_first(frames, count, done);
        count
    }
}

/// Moves the first `count` frames to `done`.
#[inline]
fn move_first(frames: &mut Vec<Frame>, count: usize, done: &mut Vec<Frame>) {
    if count >= frames.len() {
        done.append(frames);
    } else {
        done.extend(frames.drain(..count));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_never_grow_and_each_size_has_its_own_limit() {
        let (mut sender, mut receiver) = direction(3, LongFrames::Buffers(2));
        let long = vec![7; LARGE_FRAME_BYTES];
        let mut capacities = Vec::new();
        for _ in 0..50 {
            let sent: Vec<_> = (0..3).map(|_| sender.send(&long, Meta::default())).collect();
            assert_eq!(sent, [true, true, false]);
            let sent: Vec<_> =
                (0..4).map(|_| sender.send(&[1; SMALL_FRAME_BYTES], Meta::default())).collect();
            assert_eq!(sent, [true, true, true, false]);
            assert_eq!(sender.in_flight(), 5);
            let take = |buffer: &Buffer| Some((buffer.bytes.len(), buffer.bytes.capacity()));
            capacities.extend(std::iter::from_fn(|| receiver.take(take)));
            assert!(receiver.is_empty() && sender.in_flight() == 0);
        }
        assert_eq!(capacities.len(), 250);
        for (length, capacity) in capacities {
            assert!(length == capacity, "a frame of {length} bytes has a buffer of {capacity} bytes");
        }
    }
}
