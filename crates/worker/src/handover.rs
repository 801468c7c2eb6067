// SPDX-License-Identifier: Apache-2.0
//! Handoff of frames from one worker to the worker that sends for their port, through two rings: low-latency
//! and normal. A rule change that may move a flow from one ring to the other begins a new epoch. No frame of
//! an epoch is taken before all frames of the previous one.

mod epochs;

use epochs::{Receiver, Sender};
use flow::{PortNo, QueueId};
use frame::{Frame, Lane};

/// A frame that is handed off.
#[derive(Debug)]
pub(crate) struct Handover {
    pub port: PortNo,
    /// Egress queue that was chosen for the frame.
    pub queue: QueueId,
    pub frame: Frame,
}

/// The sender's end of a handoff.
pub(crate) struct Peer(Sender<Handover>);

/// The receiver's end of a handoff.
pub(crate) type Arrivals = Receiver<Handover>;

/// A value in separate cache lines, for the end of a ring that one worker writes. It is aligned to 128 bytes,
/// because cores prefetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub T);

/// Creates both ends, with a capacity of `frames` per ring.
pub(crate) fn pair(frames: usize) -> (Peer, Arrivals) {
    let (sender, receiver) = epochs::channel(frames);
    (Peer(sender), receiver)
}

impl Peer {
    /// Hands off a frame through the ring of a lane. Returns the frame if the ring is full.
    pub fn push(&mut self, handover: Handover, lane: Lane, epoch: u32) -> Result<(), Frame> {
        self.0.push(handover, lane, epoch).map_err(|handover| handover.frame)
    }

    /// Returns the number of frames in a lane's ring, and the ring's capacity.
    pub fn usage(&self, lane: Lane) -> (usize, usize) {
        self.0.usage(lane)
    }

    /// Returns whether there are frames that the receiver has not taken yet.
    pub fn is_awaited(&self) -> bool {
        self.0.is_awaited()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Lane::{LowLatency, Normal};

    fn handover(port: u32) -> Handover {
        Handover { port: PortNo(port), queue: QueueId(0), frame: Frame::hollow() }
    }

    #[test]
    fn low_latency_frames_come_first_within_an_epoch() {
        let (mut peer, mut arrivals) = pair(8);
        let mut push = |port, lane, epoch| {
            assert!(peer.push(handover(port), lane, epoch).is_ok());
        };
        push(1, Normal, 0);
        push(2, LowLatency, 0);
        push(3, Normal, 4);
        push(4, LowLatency, 4);
        push(5, LowLatency, 5);
        push(6, Normal, 7);
        assert_eq!(arrivals.len(), 6);
        assert_eq!((peer.usage(LowLatency), peer.usage(Normal)), ((3, 8), (3, 8)));
        let order: Vec<_> = std::iter::from_fn(|| arrivals.next())
            .map(|(handover, begins)| (handover.port, begins))
            .collect();
        assert_eq!(
            order,
            [
                (PortNo(2), false),
                (PortNo(1), false),
                (PortNo(4), true),
                (PortNo(3), false),
                (PortNo(5), true),
                (PortNo(6), true)
            ]
        );
        assert!(arrivals.is_empty() && !peer.is_awaited());
    }

    #[test]
    fn each_lane_has_its_own_space() {
        let (mut peer, mut arrivals) = pair(3);
        for lane in [LowLatency, Normal] {
            for used in 0..3 {
                assert_eq!(peer.usage(lane), (used, 3));
                assert!(peer.push(handover(1), lane, 0).is_ok());
                assert!(peer.is_awaited());
            }
            assert!(peer.push(handover(1), lane, 0).is_err());
        }
        for left in (0..6).rev() {
            assert!(!arrivals.is_empty());
            assert!(arrivals.next().is_some());
            assert_eq!((arrivals.len(), arrivals.is_empty()), (left, left == 0));
        }
        assert!(arrivals.next().is_none());
    }
}
