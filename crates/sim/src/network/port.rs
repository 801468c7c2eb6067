// SPDX-License-Identifier: Apache-2.0
//! Interface between a switch and the network: the frames that arrive, and those that the switch sends.

use flow::PortNo;
use frame::{Frame, Stamp};
use port::{Capabilities, Link, Pools, Queue, Statistics};
use std::collections::VecDeque;
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
    /// For each port, packet numbers and bytes of the frames that wait to be received.
    rings: Vec<VecDeque<(u64, Vec<u8>)>>,
    sent: Vec<Sent>,
}

/// The remote side of all ports of a switch.
#[derive(Debug)]
pub(super) struct Side {
    /// Port numbers, in the order of the rings.
    ports: Box<[PortNo]>,
    /// For each port, the number of frames that wait to be received.
    waiting: Box<[AtomicU32]>,
    frames: Mutex<Frames>,
}

impl Side {
    pub fn new(ports: &[PortNo]) -> Self {
        let rings = ports.iter().map(|_| VecDeque::new()).collect();
        Self {
            ports: ports.into(),
            waiting: ports.iter().map(|_| AtomicU32::new(0)).collect(),
            frames: Mutex::new(Frames { rings, sent: Vec::new() }),
        }
    }

    /// Makes a frame arrive. Returns false if the port does not exist, or has `ring` waiting frames already.
    pub fn arrive(&self, port: PortNo, packet: u64, bytes: Vec<u8>, ring: usize) -> bool {
        let Some(at) = self.ports.iter().position(|number| *number == port) else { return false };
        let count = self.waiting[at].load(Relaxed);
        if count as usize >= ring {
            return false;
        }
        self.with(|frames| frames.rings[at].push_back((packet, bytes)));
        self.waiting[at].store(count + 1, Relaxed);
        true
    }

    /// Returns whether a frame has not been received yet.
    pub fn waits(&self) -> bool {
        self.waiting.iter().any(|count| count.load(Relaxed) > 0)
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
    /// Index of the port's ring.
    at: usize,
    side: Arc<Side>,
    statistics: Statistics,
}

impl NetworkQueue {
    /// Creates the queue of the port with this index.
    pub fn new(at: usize, side: Arc<Side>) -> Self {
        Self { number: side.ports[at], at, side, statistics: Statistics::default() }
    }
}

impl Queue for NetworkQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        if self.side.waiting[self.at].load(Relaxed) == 0 {
            return 0;
        }
        let (number, statistics) = (self.number.0, &mut self.statistics);
        let (count, left) = self.side.with(|frames| {
            let (ring, mut count) = (&mut frames.rings[self.at], 0);
            while count < max
                && let Some((packet, bytes)) = ring.front()
                && let Some(mut frame) = pools.filled(bytes)
            {
                frame.meta.arrive(number, *packet, stamp);
                statistics.received(frame.len());
                burst.push(frame);
                ring.pop_front();
                count += 1;
            }
            (count, ring.len() as u32)
        });
        self.side.waiting[self.at].store(left, Relaxed);
        count
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
