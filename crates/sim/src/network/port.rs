// SPDX-License-Identifier: Apache-2.0
//! Interface between a switch and the network: one arriving frame, and the frames that the switch sends.

use flow::PortNo;
use frame::{Frame, Stamp};
use port::{Capabilities, Link, Pools, Queue, Statistics};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// A sent frame: output port, packet number and bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub port: PortNo,
    pub packet: u64,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Frames {
    arriving: Option<(u64, Vec<u8>)>,
    sent: Vec<Sent>,
}

/// The remote side of all ports of a switch.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// Port on which a frame waits to be received, or 0 if there is none.
    arriving: AtomicU32,
    frames: Mutex<Frames>,
}

impl Side {
    /// Makes a frame arrive.
    pub fn arrive(&self, port: PortNo, packet: u64, bytes: Vec<u8>) {
        self.with(|frames| frames.arriving = Some((packet, bytes)));
        self.arriving.store(port.0, Relaxed);
    }

    /// Returns whether a frame has not been received yet.
    pub fn waits(&self) -> bool {
        self.arriving.load(Relaxed) != 0
    }

    /// Moves the sent frames to `into`, in order.
    pub fn take_sent(&self, into: &mut Vec<Sent>) {
        self.with(|frames| into.append(&mut frames.sent));
    }

    fn with<T>(&self, act: impl FnOnce(&mut Frames) -> T) -> T {
        act(&mut self.frames.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The worker's side of a port's queue.
pub(super) struct NetworkQueue {
    number: PortNo,
    side: Arc<Side>,
    statistics: Statistics,
}

impl NetworkQueue {
    pub fn new(number: PortNo, side: Arc<Side>) -> Self {
        Self { number, side, statistics: Statistics::default() }
    }
}

impl Queue for NetworkQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, _: usize, stamp: Stamp) -> usize {
        if self.side.arriving.load(Relaxed) != self.number.0 {
            return 0;
        }
        let taken = self.side.with(|frames| {
            let (_, bytes) = frames.arriving.as_ref()?;
            let frame = pools.filled(bytes)?;
            frames.arriving.take().map(|(packet, _)| (frame, packet))
        });
        let Some((mut frame, packet)) = taken else { return 0 };
        self.side.arriving.store(0, Relaxed);
        frame.meta.arrive(self.number.0, packet, stamp);
        self.statistics.received(frame.len());
        burst.push(frame);
        1
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let (number, statistics) = (self.number, &mut self.statistics);
        self.side.with(|line| {
            let count = frames.len();
            for frame in frames.drain(..) {
                statistics.sent(frame.len());
                let (packet, bytes) = (frame.meta.sequence, frame.bytes().to_vec());
                line.sent.push(Sent { port: number, packet, bytes });
                done.push(frame);
            }
            count
        })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn poll_link(&mut self) -> Link {
        Link { up: true, ..Link::default() }
    }
}
