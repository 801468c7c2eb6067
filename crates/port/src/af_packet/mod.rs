// SPDX-License-Identifier: Apache-2.0
//! Linux network interfaces through AF_PACKET: a raw socket and a mapped receive ring for each queue.
//!
//! Version 2 of the ring (TPACKET_V2) delivers each packet immediately; version 3 would delay packets until a
//! block is full or a timer expires. Slots have the size of common packets. The kernel keeps a longer packet
//! (a GSO super-frame) whole in the socket's queue, and a system call fetches it.
//!
//! Virtual hosts leave checksums and segmentation to their device. With PACKET_VNET_HDR such packets are
//! received and sent with offload metadata, and the kernel completes them where necessary.

mod copies;
mod cut;
mod fanout;
mod program;
mod receive;
mod socket;
mod transmit;
mod vnet;

use crate::sys::SendBatch;
use crate::watch::Watch;
use crate::{
    Capabilities, Link, Outstanding, Pools, PortDrop, PortError, PortHandle, Queue, Queues, Spec, Statistics,
    interface,
};
use cut::Cutter;
pub use fanout::Fanout;
use fanout::Occasion;
use frame::{Frame, Stamp};
use socket::{Port, Socket};
use std::cell::Cell;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

/// Name of the driver.
pub const NAME: &str = "af_packet";

/// Checks the number of queues and whether an interface can have the device's name.
///
/// # Errors
/// Returns an error if the kernel would refuse the name, or if the number of queues is not 1 to 256, the
/// limits of a fan-out group. A port that is to take over from an older process shares the group with it.
pub fn check(spec: &Spec) -> Result<(), PortError> {
    let older = spec.handover.group().map_or(0, |group| usize::from(group.members));
    let expected = if fanout::members_with_newer(older, spec.queues) > fanout::MEMBERS_MAX {
        "1 to 256, together with the sockets of the process from which it takes over"
    } else if spec.queues == 0 {
        "1 to 256"
    } else {
        return interface::check_name(spec, NAME);
    };
    Err(PortError::BadQueues { port: spec.name.clone(), driver: NAME, queues: spec.queues, expected })
}

/// Opens `spec.queues` queues of the interface `spec.device` in the calling thread's network namespace, and
/// brings the interface up. With more than one queue, the kernel distributes packets by flow. A port that
/// takes over from an older process receives nothing before [`Fanout::take_over`].
///
/// # Errors
/// Returns the errors of [`check`], and an error if the interface does not exist or is not an Ethernet
/// interface, or if the process may not open raw sockets.
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    open_as(spec, Start::AtOnce)
}

/// Opens queues like [`open`], but the kernel discards the packets for each queue until [`Queue::start`]. So
/// two ports of one interface never receive the same packet. For a port that takes over from an older
/// process, this is the same as [`open`].
///
/// # Errors
/// Returns the errors of [`open`].
pub fn open_held(spec: &Spec) -> Result<Queues, PortError> {
    let start = if spec.handover.group().is_some() { Start::AtOnce } else { Start::Later };
    open_as(spec, start)
}

/// When a queue begins to receive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    AtOnce,
    Later,
}

fn open_as(spec: &Spec, start: Start) -> Result<Queues, PortError> {
    check(spec)?;
    let port = Port::new(spec);
    let sockets =
        (0..spec.queues).map(|_| Socket::open(&port, Occasion::Opening)).collect::<Result<Vec<_>, _>>()?;
    if start == Start::AtOnce {
        for socket in &sockets {
            socket.start(&port)?;
        }
    }
    sockets
        .into_iter()
        .map(|socket| {
            let mut watch = Watch::new().map_err(|e| port.error("listen to changes of links", e))?;
            watch.note(socket.link_report_at_opening(&port), Instant::now());
            let queue = PacketQueue::new(spec, Arc::clone(&port), socket, watch);
            Ok(Box::new(PacketQueue { is_held: start == Start::Later, ..queue }) as Box<dyn Queue>)
        })
        .collect()
}

/// One queue of a port. If the interface is replaced, the socket is replaced too.
struct PacketQueue {
    number: u32,
    port: Arc<Port>,
    socket: Socket,
    batch: SendBatch,
    cutter: Cutter,
    sequence: u64,
    generation: u64,
    watch: Watch,
    statistics: Statistics,
    /// Packets dropped by the kernel so far. Each reading resets the kernel's own counter.
    kernel_drops: Cell<u64>,
    outstanding_most_bytes: usize,
    /// Whether the kernel still discards the packets for this queue.
    is_held: bool,
}

impl PacketQueue {
    fn new(spec: &Spec, port: Arc<Port>, socket: Socket, watch: Watch) -> Self {
        Self {
            number: spec.number,
            port,
            socket,
            batch: SendBatch::new(),
            cutter: Cutter::new(),
            sequence: 0,
            generation: 0,
            watch,
            statistics: Statistics::default(),
            kernel_drops: Cell::new(0),
            outstanding_most_bytes: spec.outstanding_bytes,
            is_held: false,
        }
    }

    fn fetch_kernel_drops(&self) {
        self.kernel_drops.set(self.kernel_drops.get() + self.socket.take_drops());
    }

    /// Opens a new socket on the interface that now has the port's name. Packets in the old socket are
    /// counted as drops. On failure the old socket stays, and the next call tries again.
    fn reopen(&mut self) {
        let Ok(fresh) = Socket::open(&self.port, Occasion::Reopening) else { return };
        if !self.is_held && fresh.start(&self.port).is_err() {
            return;
        }
        self.fetch_kernel_drops();
        let lost = self.socket.drain();
        self.statistics.dropped_many(PortDrop::RxKernel, lost);
        if self.socket.replace(&self.port, fresh).is_ok() {
            self.generation += 1;
        }
    }
}

impl Queue for PacketQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        self.receive_burst(pools, burst, max, stamp)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        self.transmit_burst(frames, done)
    }

    /// Returns the bytes outstanding in the socket. Both lanes share the socket.
    fn outstanding(&self) -> Outstanding {
        Outstanding { bytes: self.socket.outstanding_bytes(), most_bytes: self.outstanding_most_bytes }
    }

    fn set_outstanding(&mut self, most_bytes: usize) {
        self.outstanding_most_bytes = most_bytes;
    }

    fn start(&mut self) {
        // The kernel refuses only a filter that was detached before. If it fails nevertheless, `poll_link`
        // tries again.
        self.is_held = self.is_held && self.socket.start(&self.port).is_err();
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { partial_checksum: true, gso: true }
    }

    fn descriptor(&self) -> Option<RawFd> {
        self.socket.take_error();
        Some(self.socket.descriptor())
    }

    fn handle(&self) -> Option<PortHandle> {
        Some(PortHandle::Fanout(self.port.fanout.clone()))
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn statistics(&self) -> Statistics {
        self.fetch_kernel_drops();
        let mut statistics = self.statistics;
        statistics.dropped_many(PortDrop::RxKernel, self.kernel_drops.get());
        statistics
    }

    fn poll_link(&mut self) -> Link {
        if self.watch.is_due(Instant::now()) {
            let generation = self.generation;
            if self.socket.is_stale(&self.port) {
                self.reopen();
            }
            let is_reopened = self.generation != generation;
            let ask = if is_reopened { Socket::link_report_at_opening } else { Socket::link_report };
            self.watch.note(ask(&self.socket, &self.port), Instant::now());
        }
        self.watch.link
    }
}
