// SPDX-License-Identifier: Apache-2.0
//! The trait that every driver implements.

use crate::af_packet::Fanout;
use crate::af_xdp::XdpRings;
use crate::patch::PatchEnd;
use crate::{Pools, Statistics};
use frame::{FillLevel, Frame, Stamp};
use std::os::fd::RawFd;

/// Offloads that `transmit` accepts. Other offloads must be completed in software first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether frames with a partial checksum (`meta.checksum`) are accepted.
    pub partial_checksum: bool,
    /// Whether super-frames (`meta.gso`) are accepted.
    pub gso: bool,
}

/// Amount of data that a device has accepted but not sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// Outstanding bytes, as far as the driver can determine. Some drivers also count the overhead of
    /// buffers.
    pub bytes: usize,
    /// Watermark in bytes. At or above it, the worker passes no normal frame to the device, except a single
    /// frame if the device has none. Low-latency frames cannot overtake frames that the device has already
    /// accepted.
    pub most_bytes: usize,
}

impl Outstanding {
    /// The value for a device with no outstanding data, or for a device that itself sends low-latency frames
    /// first.
    pub const NONE: Self = Self { bytes: 0, most_bytes: usize::MAX };
}

/// State of a port's link, as far as the driver can determine it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Whether packets can pass: the device exists, is up and has a carrier.
    pub up: bool,
    /// Speed in Mbit/s.
    pub speed_mbps: Option<u32>,
    /// MAC address of the device.
    pub mac: Option<[u8; 6]>,
    /// MTU: maximum number of bytes after the Ethernet header of a frame.
    pub mtu: Option<u32>,
    /// Index of the kernel's network interface to which the queue is bound, if there is one.
    pub index: Option<i32>,
}

/// The control thread's access to a port for an upgrade of the process.
#[derive(Clone)]
pub enum PortHandle {
    /// The kernel directs the port's packets to one of two processes (`af_packet`).
    Fanout(Fanout),
    /// The port's sockets move to another process (`af_xdp`).
    Rings(XdpRings),
}

/// A receive/transmit queue pair of a port, served by one worker. All methods are called by the thread that
/// owns the queue.
pub trait Queue: Send {
    /// Appends up to `max` received frames to `burst` and returns their number. Never blocks.
    ///
    /// The driver sets the ingress port, the sequence and the stamp of each frame ([`Meta::arrive`]). The
    /// sequence counts the frames returned by this queue, from 0. `stamp` is the time of this poll.
    ///
    /// While `pools` are empty, packets wait in the device. A packet that can never be returned (runt,
    /// truncated, oversized) is counted as a drop. A device may also drop a long frame while only the pool of
    /// large frames is empty.
    ///
    /// [`Meta::arrive`]: frame::Meta::arrive
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize;

    /// Passes frames from the front of `frames` to the device and returns their number. Never blocks, and
    /// makes at most one system call per batch.
    ///
    /// Accepted frames are removed from `frames`. If the device sends from a frame's own buffer, it keeps the
    /// frame. All other accepted frames are moved to `done`, and the worker returns them to their pools.
    /// Frames that were not accepted stay in `frames`, and the caller retries them. A frame that can never be
    /// sent is accepted and counted as a drop.
    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize;

    /// Returns the fill level of the pool of buffers into which the device receives. Drivers that copy
    /// packets into the worker's pools return 0 of 0 buffers.
    fn buffers(&self) -> FillLevel {
        FillLevel::default()
    }

    /// Returns the amount of data that the device has not sent yet. May make a system call, so it is not
    /// called for every packet.
    fn outstanding(&self) -> Outstanding {
        Outstanding::NONE
    }

    /// Sets the watermark of [`Queue::outstanding`] in bytes; `usize::MAX` means no limit. Drivers that do
    /// not know how much their devices have not sent yet ignore the call.
    fn set_outstanding(&mut self, _most_bytes: usize) {}

    /// Begins to receive, if the queue was opened by [`open_held`](crate::open_held). The thread that serves
    /// the queue calls this when it takes the queue.
    fn start(&mut self) {}

    /// Returns the offloads that `transmit` accepts.
    fn capabilities(&self) -> Capabilities;

    /// Returns a descriptor that is readable when packets wait. `None` means that the queue must be polled,
    /// either permanently or for now.
    ///
    /// The thread that serves the queue must call this before each sleep, because the call clears a pending
    /// error that would end the sleep immediately. The number of the descriptor never changes, even when
    /// `poll_link` reopens the device.
    fn descriptor(&self) -> Option<RawFd> {
        None
    }

    /// Returns the control thread's access to the port, if it is a patch port.
    fn patch_end(&self) -> Option<PatchEnd> {
        None
    }

    /// Returns the control thread's access to the port for an upgrade, or `None` if the port cannot be handed
    /// over.
    fn handle(&self) -> Option<PortHandle> {
        None
    }

    /// Returns how often `poll_link` has reopened the device. After that, the thread that called `poll_link`
    /// must wake the thread that sleeps on the descriptor, because the sleeping thread still waits for the
    /// old device.
    fn generation(&self) -> u64 {
        0
    }

    /// Returns the counters since the queue was opened.
    fn statistics(&self) -> Statistics;

    /// Returns the link's state, and reopens a device that was removed and has come back. Each call makes at
    /// least one system call, so it is called periodically and not per packet.
    fn poll_link(&mut self) -> Link;
}

impl<Q: Queue + ?Sized> Queue for Box<Q> {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        (**self).receive(pools, burst, max, stamp)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        (**self).transmit(frames, done)
    }

    fn buffers(&self) -> FillLevel {
        (**self).buffers()
    }

    fn outstanding(&self) -> Outstanding {
        (**self).outstanding()
    }

    fn set_outstanding(&mut self, most_bytes: usize) {
        (**self).set_outstanding(most_bytes);
    }

    fn start(&mut self) {
        (**self).start();
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn descriptor(&self) -> Option<RawFd> {
        (**self).descriptor()
    }

    fn patch_end(&self) -> Option<PatchEnd> {
        (**self).patch_end()
    }

    fn handle(&self) -> Option<PortHandle> {
        (**self).handle()
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

pub(crate) fn take_first(frames: &mut Vec<Frame>) -> Option<Frame> {
    (!frames.is_empty()).then(|| frames.remove(0))
}
