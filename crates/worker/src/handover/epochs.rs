// SPDX-License-Identifier: Apache-2.0
//! Two SPSC rings from one thread to another, for low-latency and normal items, with epochs that order the
//! items. Within an epoch, low-latency items are taken first. No item of an epoch is taken before all items
//! of earlier epochs.
//!
//! `loom/` checks this file under every interleaving.

use crate::sync::{Consumer, Producer, PushError, RingBuffer};
use frame::Lane;

/// An item, and the epoch in which it was sent.
#[derive(Debug)]
struct Stamped<T> {
    item: T,
    epoch: u32,
}

/// The sender's end, in separate cache lines. It is aligned to 128 bytes, because cores prefetch lines in
/// pairs.
#[repr(align(128))]
pub(crate) struct Sender<T> {
    low_latency: Producer<Stamped<T>>,
    normal: Producer<Stamped<T>>,
}

/// The receiver's end, aligned like the sender's.
#[repr(align(128))]
pub(crate) struct Receiver<T> {
    low_latency: Consumer<Stamped<T>>,
    normal: Consumer<Stamped<T>>,
    epoch: u32,
}

/// Creates both ends, with a capacity of `items` per ring (at least 1).
pub(crate) fn channel<T>(items: usize) -> (Sender<T>, Receiver<T>) {
    let (low_latency, low_latency_out) = RingBuffer::new(items.max(1));
    let (normal, other) = RingBuffer::new(items.max(1));
    (Sender { low_latency, normal }, Receiver { low_latency: low_latency_out, normal: other, epoch: 0 })
}

impl<T> Sender<T> {
    /// Sends an item through the ring of a lane. `epoch` must not decrease between calls. Returns the item if
    /// the ring is full.
    pub fn push(&mut self, item: T, lane: Lane, epoch: u32) -> Result<(), T> {
        let ring = match lane {
            Lane::LowLatency => &mut self.low_latency,
            Lane::Normal => &mut self.normal,
        };
        ring.push(Stamped { item, epoch }).map_err(|PushError::Full(stamped)| stamped.item)
    }

    /// Returns the number of items in a lane's ring, and the ring's capacity.
    pub fn usage(&self, lane: Lane) -> (usize, usize) {
        let ring = match lane {
            Lane::LowLatency => &self.low_latency,
            Lane::Normal => &self.normal,
        };
        let limit = ring.buffer().capacity();
        (limit - ring.slots(), limit)
    }

    /// Returns whether the receiver has not taken all items yet.
    pub fn is_awaited(&self) -> bool {
        [&self.low_latency, &self.normal].iter().any(|ring| ring.slots() < ring.buffer().capacity())
    }
}

impl<T> Receiver<T> {
    pub fn is_empty(&self) -> bool {
        self.low_latency.is_empty() && self.normal.is_empty()
    }

    /// Returns the number of items that can be taken now.
    pub fn len(&self) -> usize {
        self.low_latency.slots() + self.normal.slots()
    }

    /// Takes the next item. Also returns whether it is the first item of a new epoch.
    pub fn next(&mut self) -> Option<(T, bool)> {
        let (mut seen, mut begins) = (false, false);
        loop {
            let epoch = self.epoch;
            for ring in [&mut self.low_latency, &mut self.normal] {
                if ring.peek().is_ok_and(|stamped| stamped.epoch == epoch) {
                    return ring.pop().ok().map(|stamped| (stamped.item, begins));
                }
            }
            let heads = [self.low_latency.peek(), self.normal.peek()];
            let epochs = heads.into_iter().flatten().map(|stamped| stamped.epoch);
            let next = epochs.min_by_key(|next| next.wrapping_sub(epoch))?;
            // Look twice before the epoch advances. An item sent to one ring before an item of the other may
            // become visible only after the first look.
            if seen {
                (self.epoch, begins) = (next, true);
            }
            seen = !seen;
        }
    }
}
