// SPDX-License-Identifier: Apache-2.0
//! A port of the device: frames of its queue on one side, beats on the other.

use std::collections::VecDeque;
use std::os::fd::RawFd;

use frame::{Frame, Stamp};
use port::{Link, Pools, Queue};
use tracing::{info, warn};

use crate::beat::{self, Beat};
use crate::{ChannelCounters, DeviceChannel};

/// Maximum number of frames that one call takes from a queue. A super-frame becomes several frames.
const RECEIVE_MAX: usize = 32;
/// Maximum number of frames that wait for the queue. Then the channel accepts no more beats, and the device
/// drops frames for it (`tx_dropped`).
const WAITING_MAX: usize = 64;
/// A frame of at most this length gets no longer than one beat by an inserted tag.
const SHORT_BYTES: usize = 60;

/// A port of the device.
pub(super) struct Port {
    number: u8,
    queue: Box<dyn Queue>,
    /// Frames for the device, and the next beat of the first one.
    arrived: VecDeque<Vec<u8>>,
    at: usize,
    /// Frames for the queue.
    waiting: Vec<Frame>,
    link: Link,
    /// Frames that were lost here.
    lost: u64,
    counters: ChannelCounters,
}

impl Port {
    pub fn new(channel: DeviceChannel) -> Self {
        Self {
            number: channel.port,
            queue: channel.queue,
            arrived: VecDeque::new(),
            at: 0,
            waiting: Vec::new(),
            link: Link { up: true, ..Link::default() },
            lost: 0,
            counters: ChannelCounters { port: channel.port, ..ChannelCounters::default() },
        }
    }

    /// Number of the RTL's channel.
    pub fn channel(&self) -> usize {
        usize::from(self.number) - 1
    }

    pub fn counters(&self) -> ChannelCounters {
        let statistics = self.queue.statistics();
        let lost: u64 = statistics.named_drops().map(|(_, count)| count).sum();
        ChannelCounters { lost: lost + self.lost, ..self.counters }
    }

    /// Takes frames from the queue, unless some wait for the device.
    pub fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>) {
        if !self.arrived.is_empty() {
            return;
        }
        self.queue.receive(pools, burst, RECEIVE_MAX, Stamp::NONE);
        for frame in burst.drain(..) {
            if frame.meta.checksum.is_none() && frame.meta.gso.is_none() {
                self.arrived.push_back(frame.bytes().to_vec());
            } else {
                let mut copy = Frame::from_bytes(frame.bytes());
                copy.meta = frame.meta;
                match port::finished(copy) {
                    Some(frames) => self.arrived.extend(frames),
                    None => self.lost += 1,
                }
            }
            // A frame of a device's own memory is freed.
            drop(pools.put(frame));
        }
    }

    /// Returns whether frames wait for the device.
    pub fn has_arrived(&self) -> bool {
        !self.arrived.is_empty()
    }

    /// Takes the next beat for the device, and whether it ends a frame that may leave with one beat more.
    pub fn next_beat(&mut self) -> Option<(Beat, bool)> {
        let frame = self.arrived.front()?;
        let beat = beat::beat(frame, self.at);
        self.at += 1;
        let grows = beat.last && frame.len() > SHORT_BYTES;
        if beat.last {
            self.arrived.pop_front();
            self.at = 0;
            self.counters.received += 1;
        }
        Some((beat, grows))
    }

    /// Returns whether the channel accepts beats.
    pub fn is_ready(&self) -> bool {
        self.waiting.len() < WAITING_MAX
    }

    /// Returns whether frames wait for the queue.
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Stores a frame that has left the device.
    pub fn store(&mut self, pools: &mut Pools, bytes: &[u8]) {
        match pools.filled(bytes) {
            Some(frame) => self.waiting.push(frame),
            None => self.lost += 1,
        }
    }

    /// Passes stored frames to the queue. Returns whether it took any.
    pub fn flush(&mut self, pools: &mut Pools, done: &mut Vec<Frame>) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let count = self.queue.transmit(&mut self.waiting, done);
        for frame in done.drain(..) {
            drop(pools.put(frame));
        }
        self.counters.sent += count as u64;
        count > 0
    }

    /// The descriptor to wait for. Must be called before each sleep.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.queue.descriptor()
    }

    /// Queries the link.
    pub fn poll_link(&mut self) -> (u8, Link) {
        let link = self.queue.poll_link();
        if self.link.up && !link.up {
            self.counters.failures += 1;
            warn!(port = self.number, "the link of a port of the device is down");
        } else if link.up && !self.link.up {
            info!(port = self.number, "the link of a port of the device is up");
        }
        self.link = link;
        (self.number, link)
    }
}
