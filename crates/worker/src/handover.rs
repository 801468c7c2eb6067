// SPDX-License-Identifier: Apache-2.0
//! Frames on their way from one worker to the one that sends for their port: two rings, low-latency and normal. A flow may
//! change from one to the other when rules do. So each change begins a new epoch, and none of its frames is taken before all
//! of the epoch before.

mod epochs;

use epochs::{Receiver, Sender};
use flow::PortNo;
use frame::Frame;

/// A frame on its way.
#[derive(Debug)]
pub(crate) struct Handover {
    pub port: PortNo,
    /// The egress queue that it chose.
    pub queue: u32,
    pub frame: Frame,
}

/// The sender's end.
pub(crate) struct Peer(Sender<Handover>);

/// The receiver's end.
pub(crate) type Arrivals = Receiver<Handover>;

/// An end of a ring that one worker writes, apart from what others do: cores fetch lines in pairs.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Apart<T>(pub T);

/// Makes both ends, with room for `frames` of each kind.
pub(crate) fn pair(frames: usize) -> (Peer, Arrivals) {
    let (sender, receiver) = epochs::channel(frames);
    (Peer(sender), receiver)
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
        let (port, queue) = to;
        let handover = Handover { port, queue, frame };
        self.0.push(handover, low_latency, epoch).map_err(|handover| handover.frame)
    }

    /// Frames of a lane that have not been taken, and how many there may be.
    pub fn level(&self, low_latency: bool) -> (usize, usize) {
        self.0.level(low_latency)
    }

    /// Whether some have not been taken.
    pub fn is_awaited(&self) -> bool {
        self.0.is_awaited()
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
