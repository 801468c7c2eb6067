// SPDX-License-Identifier: Apache-2.0
//! Linux network interfaces through AF_XDP. Packets reach a socket's ring before the network stack processes
//! them.
//!
//! Each queue of the port is a hardware queue of the interface, so the port needs as many workers as there
//! are hardware queues. Frames are copied between the memory shared with the kernel and the worker's pools.
//! XDP reports no offload metadata. Partial checksums of hosts on this machine are recognized in
//! `partial.rs`; transmitted frames are completed in software.
//!
//! In an upgrade, the sockets move to the new process with the packets in them (`handover.rs`).

mod handover;
mod partial;
mod receive;
mod socket;
mod transmit;

use crate::watch::Watch;
use crate::{
    Capabilities, Link, Outstanding, Pools, PortDrop, PortError, PortHandle, Queue, Queues, Spec, Statistics,
    interface,
};
use frame::{Frame, Stamp};
use handover::RingUse;
pub use handover::XdpRings;
use socket::{Patience, Port, Socket};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::Instant;

/// Name of the driver.
pub const NAME: &str = "af_xdp";

/// Checks the number of queues and whether an interface can have the device's name.
///
/// # Errors
/// Returns an error if the kernel would refuse the name, or if the number of queues is not 1 to 64, the
/// number of descriptors that a worker can wait for.
pub fn check(spec: &Spec) -> Result<(), PortError> {
    if spec.queues == 0 || spec.queues > 64 {
        return Err(PortError::BadQueues {
            port: spec.name.clone(),
            driver: NAME,
            queues: spec.queues,
            expected: "1 to 64",
        });
    }
    interface::check_name(spec, NAME)
}

/// Opens all hardware queues of the interface `spec.device` in the calling thread's network namespace and
/// brings the interface up. The interface must have `spec.queues` hardware queues. Waits up to a second for
/// resources that another process has just released.
///
/// # Errors
/// Returns the errors of [`check`], and an error in these cases: the interface does not exist or is not an
/// Ethernet interface, it has another number of hardware queues or too large an MTU, another XDP program is
/// attached to it, or the process may not attach a program.
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    check(spec)?;
    let port = Port::new(spec);
    let inherited = spec.handover.sockets();
    if let Some(sockets) = inherited
        && sockets.queues() != spec.queues
    {
        return Err(PortError::BadQueues {
            port: spec.name.clone(),
            driver: NAME,
            queues: spec.queues,
            expected: "as many as in the old process",
        });
    }
    (0..spec.queues as u32)
        .map(|number| {
            let socket = match inherited {
                Some(sockets) => Socket::inherit(&port, number, sockets)?,
                None => Socket::open(&port, number, None, Patience::Second)?,
            };
            port.rings.note_files(number, &socket.xsk);
            let mut watch = Watch::new().map_err(|e| port.error("listen to changes of links", e))?;
            watch.note(socket.link_report_at_opening(&port), Instant::now());
            Ok(Box::new(XdpQueue::new(spec, Arc::clone(&port), socket, watch)) as Box<dyn Queue>)
        })
        .collect()
}

/// One queue of a port. If the interface is replaced, the socket is replaced too.
struct XdpQueue {
    number: u32,
    port: Arc<Port>,
    socket: Socket,
    sequence: u64,
    generation: u64,
    watch: Watch,
    statistics: Statistics,
    /// Whether the device was down or gone when frames were last sent.
    is_down: bool,
    outstanding_most_bytes: usize,
    /// Whether the socket comes from an older process, and this process has not used its rings yet.
    is_inherited: bool,
    /// Number of changes of the port's [`RingUse`] that this queue has noticed.
    changes: u32,
    /// Whether another process may have moved the positions of the rings since this queue last used them.
    must_resume: bool,
}

impl XdpQueue {
    fn new(spec: &Spec, port: Arc<Port>, socket: Socket, watch: Watch) -> Self {
        Self {
            number: spec.number,
            port,
            socket,
            sequence: 0,
            generation: 0,
            watch,
            statistics: Statistics::default(),
            is_down: false,
            outstanding_most_bytes: spec.outstanding_bytes,
            is_inherited: spec.handover.sockets().is_some(),
            changes: 0,
            must_resume: false,
        }
    }

    /// Returns how this queue may use its rings. If another process may have used them, reads their positions
    /// again.
    fn ring_use(&mut self) -> RingUse {
        let (ring_use, changes) = self.port.rings.ring_use();
        if self.changes != changes {
            (self.changes, self.must_resume) = (changes, true);
            self.port.rings.note_changes(self.socket.queue(), changes);
        }
        if ring_use < RingUse::Paused && (self.must_resume || self.is_inherited) {
            if std::mem::take(&mut self.is_inherited) {
                self.socket.xsk.take_over();
            } else {
                self.socket.xsk.resume();
            }
            self.must_resume = false;
        }
        ring_use
    }

    /// Opens a new socket on the interface that now has the port's name. Packets in the old socket are
    /// counted as drops. On failure the old socket stays, and the next call tries again.
    fn reopen(&mut self) {
        let Ok(fresh) = self.socket.open_anew(&self.port) else { return };
        let lost = self.socket.xsk.kernel_drops() + self.socket.xsk.waiting();
        if self.socket.replace(fresh).is_ok() {
            self.statistics.dropped_many(PortDrop::RxKernel, lost);
            self.port.rings.note_files(self.socket.queue(), &self.socket.xsk);
            self.generation += 1;
        }
    }
}

impl Queue for XdpQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        self.receive_burst(pools, burst, max, stamp)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        self.transmit_burst(frames, done)
    }

    fn outstanding(&self) -> Outstanding {
        Outstanding { bytes: self.socket.xsk.outstanding_bytes(), most_bytes: self.outstanding_most_bytes }
    }

    fn set_outstanding(&mut self, most_bytes: usize) {
        self.outstanding_most_bytes = most_bytes;
    }

    fn handle(&self) -> Option<PortHandle> {
        self.port.can_be_handed_over().then(|| PortHandle::Rings(XdpRings(Arc::clone(&self.port.rings))))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { partial_checksum: true, gso: true }
    }

    fn descriptor(&self) -> Option<RawFd> {
        // No event reports space in the device, so the queue must be polled while frames wait for space.
        let descriptor = self.socket.descriptor();
        (!self.socket.xsk.has_unsent()).then_some(descriptor)
    }

    fn generation(&self) -> u64 {
        self.generation
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        let xsk = &self.socket.xsk;
        let is_released = self.port.rings.ring_use().0 >= RingUse::Paused;
        let drops = if is_released { xsk.kernel_drops_before_handover() } else { xsk.kernel_drops() };
        statistics.dropped_many(PortDrop::RxKernel, drops);
        statistics
    }

    fn poll_link(&mut self) -> Link {
        if self.watch.is_due(Instant::now()) {
            let generation = self.generation;
            // During an upgrade, leave a replaced interface to the process that has the port afterwards.
            let is_ours = !self.is_inherited && self.port.rings.ring_use().0 == RingUse::Full;
            if is_ours && self.socket.is_stale(&self.port) {
                self.reopen();
            }
            let is_reopened = self.generation != generation;
            let ask = if is_reopened { Socket::link_report_at_opening } else { Socket::link_report };
            self.watch.note(ask(&self.socket, &self.port), Instant::now());
        }
        self.watch.link
    }
}
