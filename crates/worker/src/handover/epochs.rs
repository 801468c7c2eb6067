// SPDX-License-Identifier: Apache-2.0
//! Two rings from one thread to another, low-latency and normal, and the epochs that order their items. Within an epoch,
//! low-latency items are taken first. No item of an epoch is taken before all items of earlier epochs.
//!
//! `loom/` checks this file under every interleaving.

use crate::sync::{Consumer, Producer, PushError, RingBuffer};

/// An item and the epoch in which it was sent.
#[derive(Debug)]
struct Stamped<T> {
    item: T,
    epoch: u32,
}

/// The sender's end, in lines of its own: cores fetch lines in pairs.
#[repr(align(128))]
pub(crate) struct Sender<T> {
    low_latency: Producer<Stamped<T>>,
    normal: Producer<Stamped<T>>,
}

/// The receiver's end, likewise.
#[repr(align(128))]
pub(crate) struct Receiver<T> {
    low_latency: Consumer<Stamped<T>>,
    normal: Consumer<Stamped<T>>,
    epoch: u32,
}

/// Makes both ends, with room for `items` of each kind.
pub(crate) fn channel<T>(items: usize) -> (Sender<T>, Receiver<T>) {
    let (low_latency, urgent) = RingBuffer::new(items.max(1));
    let (normal, other) = RingBuffer::new(items.max(1));
    (Sender { low_latency, normal }, Receiver { low_latency: urgent, normal: other, epoch: 0 })
}

impl<T> Sender<T> {
    /// Sends an item. Epochs never decrease. Given back without room.
    pub fn push(&mut self, item: T, low_latency: bool, epoch: u32) -> Result<(), T> {
        let ring = if low_latency { &mut self.low_latency } else { &mut self.normal };
        ring.push(Stamped { item, epoch }).map_err(|PushError::Full(stamped)| stamped.item)
    }

    /// Items of a kind that have not been taken, and how many there may be.
    pub fn level(&self, low_latency: bool) -> (usize, usize) {
        let ring = if low_latency { &self.low_latency } else { &self.normal };
        let limit = ring.buffer().capacity();
        (limit - ring.slots(), limit)
    }

    /// Whether some have not been taken.
    pub fn is_awaited(&self) -> bool {
        [&self.low_latency, &self.normal].iter().any(|ring| ring.slots() < ring.buffer().capacity())
    }
}

impl<T> Receiver<T> {
    pub fn is_empty(&self) -> bool {
        self.low_latency.is_empty() && self.normal.is_empty()
    }

    /// Items that are there now.
    pub fn len(&self) -> usize {
        self.low_latency.slots() + self.normal.slots()
    }

    /// The next item, and whether it is the first of a new epoch.
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
            // What was put into the one ring before an item of the other may have been there only after the first look.
            if seen {
                (self.epoch, begins) = (next, true);
            }
            seen = !seen;
        }
    }
}
