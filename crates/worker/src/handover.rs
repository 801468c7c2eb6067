// SPDX-License-Identifier: Apache-2.0
//! Frames on their way from one worker to the one that sends for their port: two rings, low-latency and normal. A flow may
//! change from one to the other when rules do. So each change begins a new epoch, and none of its frames is taken before all
//! of the epoch before.

use flow::PortNo;
use frame::Frame;
use rtrb::{Consumer, Producer, PushError, RingBuffer};

/// A frame on its way.
#[derive(Debug)]
pub(crate) struct Handover {
    pub port: PortNo,
    /// The egress queue that it chose.
    pub queue: u32,
    pub frame: Frame,
    epoch: u32,
}

/// The sender's end, in lines of its own.
#[repr(align(128))]
pub(crate) struct Peer {
    low_latency: Producer<Handover>,
    normal: Producer<Handover>,
}

/// The receiver's end, likewise.
#[repr(align(128))]
pub(crate) struct Arrivals {
    low_latency: Consumer<Handover>,
    normal: Consumer<Handover>,
    epoch: u32,
}

/// An end of a ring that one worker writes, apart from what others do: cores fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub T);

/// Makes both ends, with room for `frames` of each kind.
pub(crate) fn pair(frames: usize) -> (Peer, Arrivals) {
    let (low_latency, urgent) = RingBuffer::new(frames.max(1));
    let (normal, other) = RingBuffer::new(frames.max(1));
    (Peer { low_latency, normal }, Arrivals { low_latency: urgent, normal: other, epoch: 0 })
}

impl Peer {
    /// Hands a frame over, for a port and a queue of it. Given back without room.
    pub fn push(
        &mut self,
        to: (PortNo, u32),
        frame: Frame,
        low_latency: bool,
        epoch: u32,
    ) -> Result<(), Frame> {
        let ring = if low_latency { &mut self.low_latency } else { &mut self.normal };
        let (port, queue) = to;
        ring.push(Handover { port, queue, frame, epoch }).map_err(|PushError::Full(handover)| handover.frame)
    }

    /// Frames of a lane that have not been taken, and how many there may be.
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

impl Arrivals {
    pub fn is_empty(&self) -> bool {
        self.low_latency.is_empty() && self.normal.is_empty()
    }

    /// Frames that are there now.
    pub fn len(&self) -> usize {
        self.low_latency.slots() + self.normal.slots()
    }

    /// The next frame, and whether it is the first of a new epoch.
    pub fn next(&mut self) -> Option<(Handover, bool)> {
        let (mut seen, mut begins) = (false, false);
        loop {
            let epoch = self.epoch;
            for ring in [&mut self.low_latency, &mut self.normal] {
                if ring.peek().is_ok_and(|handover| handover.epoch == epoch) {
                    return ring.pop().ok().map(|handover| (handover, begins));
                }
            }
            let heads = [self.low_latency.peek(), self.normal.peek()];
            let epochs = heads.into_iter().flatten().map(|handover| handover.epoch);
            let next = epochs.min_by_key(|next| next.wrapping_sub(epoch))?;
            // What was put into the one ring before a frame of the other may have been there only after the first look.
            if seen {
                (self.epoch, begins) = (next, true);
            }
            seen = !seen;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_latency_frames_come_first_within_an_epoch() {
        let (mut peer, mut arrivals) = pair(8);
        let mut push = |name: PortNo, low_latency, epoch| {
            assert!(peer.push((name, 0), Frame::hollow(), low_latency, epoch).is_ok());
        };
        push(1, false, 0);
        push(2, true, 0);
        push(3, false, 4);
        push(4, true, 4);
        push(5, true, 5);
        push(6, false, 7);
        assert_eq!(arrivals.len(), 6);
        let order: Vec<_> = std::iter::from_fn(|| arrivals.next())
            .map(|(handover, begins)| (handover.port, begins))
            .collect();
        assert_eq!(order, [(2, false), (1, false), (4, true), (3, false), (5, true), (6, true)]);
        assert!(arrivals.is_empty() && !peer.is_awaited());
    }
}
