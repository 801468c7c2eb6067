// SPDX-License-Identifier: Apache-2.0
//! The one trait of all drivers.

use crate::{Pools, Statistics};
use frame::Frame;
use std::collections::VecDeque;
use std::os::fd::RawFd;

/// What `transmit` accepts unfinished. Frames that a queue does not accept so must be finished in software first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Frames with `meta.checksum`.
    pub partial_checksum: bool,
    /// Frames with `meta.gso`.
    pub gso: bool,
}

/// What a device has been given to send and has not sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// Bytes of the buffers that it takes up, as far as the driver can tell.
    pub bytes: usize,
    /// No more normal frames are to be given to it from so many on; one always when there are none. What a device has is
    /// not overtaken by low-latency frames.
    pub most_bytes: usize,
}

impl Outstanding {
    /// Nothing, or a device that sends low-latency frames first by itself.
    pub const NONE: Self = Self { bytes: 0, most_bytes: usize::MAX };
}

/// A port's link as far as its driver knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Packets can pass: the device exists, is up and has a carrier.
    pub up: bool,
    /// Speed in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// The device's own MAC address.
    pub mac: Option<[u8; 6]>,
    /// Most bytes behind the Ethernet header in one frame.
    pub mtu: Option<u32>,
    /// Index of the kernel's network interface that the queue is bound to; none if there is no such interface, or it is
    /// gone.
    pub index: Option<i32>,
}

/// One receive/transmit queue pair of a port, served by one worker.
pub trait Queue: Send {
    /// Appends up to `max` received frames to `burst` and returns how many. `meta.in_port` and `meta.sequence` are set:
    /// the sequence counts the frames this queue has handed out, from 0. Never blocks. When `pools` are used up, frames
    /// stay in the device. What can never be handed out (runt, truncated, oversized) is a counted drop; so is, in a
    /// device, a long frame while only large frames are used up, for those behind it.
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> usize;

    /// Takes from the front of `frames` as many as the device accepts and returns how many; they are moved to `done`,
    /// for the worker to bring home. What is not taken stays in `frames`, to be tried again. A frame that can never be
    /// sent is taken and is a counted drop. Never blocks; one system call a batch.
    fn transmit(&mut self, frames: &mut VecDeque<Frame>, done: &mut Vec<Frame>) -> usize;

    /// What the device has not sent yet. To be asked for now and then, not per packet: it may be a system call.
    fn outstanding(&self) -> Outstanding {
        Outstanding::NONE
    }

    /// What `transmit` accepts unfinished.
    fn capabilities(&self) -> Capabilities;

    /// A descriptor that is readable when packets wait; none for a driver that must be polled, always or just now. To be asked for before
    /// each sleep, by who serves the queue: that takes off a pending error, which would end the sleep at once. The number
    /// stays the queue's as long as the queue lives, also when `poll_link` reopens the device.
    fn descriptor(&self) -> Option<RawFd>;

    /// How often `poll_link` has reopened the device. Who calls it for a thread that sleeps on the descriptor must wake
    /// that thread when this has grown: its sleep is on the old device.
    fn generation(&self) -> u64 {
        0
    }

    /// Counters since the queue was opened.
    fn statistics(&self) -> Statistics;

    /// The link's state: to be called now and then, not per packet, for it makes a system call, and more after a change.
    /// Reopens a device that vanished and came back.
    fn poll_link(&mut self) -> Link;
}

impl<Q: Queue + ?Sized> Queue for Box<Q> {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize) -> usize {
        (**self).receive(pools, burst, max)
    }

    fn transmit(&mut self, frames: &mut VecDeque<Frame>, done: &mut Vec<Frame>) -> usize {
        (**self).transmit(frames, done)
    }

    fn outstanding(&self) -> Outstanding {
        (**self).outstanding()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn descriptor(&self) -> Option<RawFd> {
        (**self).descriptor()
    }

    fn generation(&self) -> u64 {
        (**self).generation()
    }

    fn statistics(&self) -> Statistics {
        (**self).statistics()
    }

    fn poll_link(&mut self) -> Link {
        (**self).poll_link()
    }
}
