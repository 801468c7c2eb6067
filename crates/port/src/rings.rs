// SPDX-License-Identifier: Apache-2.0
//! Rings that carry frames between two queues in memory. Each direction has two bounded SPSC rings: one
//! carries full buffers, the other returns empty buffers. Neither side locks. A buffer allocates memory only
//! for the first frame that is longer than a small frame and all earlier frames of the buffer.

use crate::queue::move_first;
use crate::{MIN_FRAME_BYTES, Pools, PortDrop, SMALL_FRAME_BYTES, Statistics};
use frame::{Frame, Meta, Stamp};
use rtrb::{Consumer, Producer, RingBuffer};

/// A buffer in a ring, which grows to the longest frame that it has carried.
pub(crate) struct Buffer {
    pub bytes: Vec<u8>,
    pub meta: Meta,
}

impl Buffer {
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
}

impl Sender {
    /// Sends a frame. Returns false if all buffers are in use.
    pub fn send(&mut self, bytes: &[u8], meta: Meta) -> bool {
        let Ok(mut buffer) = self.empty.pop() else { return false };
        buffer.set(bytes, meta);
        let sent = self.full.push(buffer);
        debug_assert!(sent.is_ok(), "the ring has room for all its buffers");
        true
    }

    /// Returns whether the receiver is gone.
    pub fn is_abandoned(&self) -> bool {
        self.full.is_abandoned()
    }

    /// Returns the number of buffers that the receiver has not returned.
    pub fn in_flight(&self) -> usize {
        self.empty.buffer().capacity() - self.empty.slots()
    }
}

/// The receiving end of a direction.
pub(crate) struct Receiver {
    full: Consumer<Buffer>,
    empty: Producer<Buffer>,
}

impl Receiver {
    /// Calls `take` with the oldest buffer and returns its result. After `None`, the buffer stays first in
    /// the ring.
    pub fn take<T>(&mut self, take: impl FnOnce(&Buffer) -> Option<T>) -> Option<T> {
        let answer = take(self.full.peek().ok()?)?;
        if let Ok(buffer) = self.full.pop() {
            let returned = self.empty.push(buffer);
            debug_assert!(returned.is_ok(), "the ring has room for all its buffers");
        }
        Some(answer)
    }
}

/// Creates both ends of a direction for `capacity` frames.
pub(crate) fn direction(capacity: usize) -> (Sender, Receiver) {
    let (full_in, full_out) = RingBuffer::new(capacity);
    let (mut empty_in, empty_out) = RingBuffer::new(capacity);
    for _ in 0..capacity {
        let buffer = Buffer { bytes: Vec::with_capacity(SMALL_FRAME_BYTES), meta: Meta::default() };
        let stocked = empty_in.push(buffer);
        debug_assert!(stocked.is_ok());
    }
    (Sender { full: full_in, empty: empty_out }, Receiver { full: full_out, empty: empty_in })
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
