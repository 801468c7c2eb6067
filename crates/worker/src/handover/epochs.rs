// SPDX-License-Identifier: Apache-2.0
//! Two SPSC rings from one thread to another, for low-latency and normal items, with epochs that order the
//! items. Within an epoch, low-latency items are taken first. No item of an epoch is taken before all items
//! of earlier epochs.
//!
//! `loom/` checks this file under every interleaving.

use crate::sync::{Consumer, Producer, PushError, RingBuffer};
use frame::{Lane, PerLane};

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
    rings: PerLane<Producer<Stamped<T>>>,
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
    let (low_latency_in, low_latency) = RingBuffer::new(items.max(1));
    let (normal_in, normal) = RingBuffer::new(items.max(1));
    let rings = PerLane::new(low_latency_in, normal_in);
    (Sender { rings }, Receiver { low_latency, normal, epoch: 0 })
}

impl<T> Sender<T> {
    /// Sends an item through the ring of a lane. `epoch` must not decrease between calls. Returns the item if
    /// the ring is full.
    pub fn push(&mut self, item: T, lane: Lane, epoch: u32) -> Result<(), T> {
        let pushed = self.rings[lane].push(Stamped { item, epoch });
        pushed.map_err(|PushError::Full(stamped)| stamped.item)
    }

    /// Returns the number of items in a lane's ring, and the ring's capacity.
    pub fn usage(&self, lane: Lane) -> (usize, usize) {
        let ring = &self.rings[lane];
        let limit = ring.buffer().capacity();
        (limit - ring.slots(), limit)
    }

    /// Returns whether there are items that the receiver has not taken yet.
    pub fn is_awaited(&self) -> bool {
        self.rings.iter().any(|ring| ring.slots() < ring.buffer().capacity())
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
            // Both rings are checked again before the epoch advances, because an item of this epoch may have
            // arrived in the ring that was checked first.
            if seen {
                (self.epoch, begins) = (next, true);
            }
            seen = !seen;
        }
    }
}
