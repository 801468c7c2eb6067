// SPDX-License-Identifier: Apache-2.0
//! How the sockets of a port move to another process with the packets in them.
//!
//! Only one process may use the rings of a socket at a time. The older process therefore stops in two steps.
//! It first stops receiving ([`XdpRings::hold`]), and its workers transmit what they have already received.
//! Then it stops using the rings altogether ([`XdpRings::release`]), and the newer process starts. Arriving
//! packets wait in the receive rings meanwhile.

use crate::handover::{DESCRIPTORS_OF_QUEUE, XdpSockets};
use crate::sys::{Attached, Redirect, Xsk};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How the queues of a port may use their rings, from the most to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RingUse {
    /// The queues receive and transmit.
    Full,
    /// The queues transmit, but do not receive.
    SendOnly,
    /// The queues do not access the rings, because another process may be using them. Frames to transmit wait
    /// in the worker.
    Paused,
    /// The queues never access the rings again. Frames to transmit are dropped.
    Abandoned,
}

/// The current [`RingUse`] of a port and the number of changes so far, in one word.
struct SharedRingUse(AtomicU32);

impl SharedRingUse {
    const BITS: u32 = 2;

    fn new() -> Self {
        Self(AtomicU32::new(RingUse::Full as u32))
    }

    fn change(&self, to: RingUse) {
        let changes = self.0.load(Ordering::Relaxed) >> Self::BITS;
        self.0.store(changes.wrapping_add(1) << Self::BITS | to as u32, Ordering::Release);
    }

    /// Returns the current use and the number of changes so far.
    fn get(&self) -> (RingUse, u32) {
        let word = self.0.load(Ordering::Acquire);
        let ring_use = match word & ((1 << Self::BITS) - 1) {
            0 => RingUse::Full,
            1 => RingUse::SendOnly,
            2 => RingUse::Paused,
            _ => RingUse::Abandoned,
        };
        (ring_use, word >> Self::BITS)
    }
}

/// An XDP program attached to an interface.
pub(super) struct Attachment {
    pub(super) ifindex: i32,
    pub(super) redirect: Redirect,
    pub(super) attached: Attached,
}

/// The descriptors of a queue. They close with the queue.
#[derive(Clone)]
struct QueueFiles {
    socket: Weak<OwnedFd>,
    memory: Weak<OwnedFd>,
}

impl QueueFiles {
    fn copies(&self) -> io::Result<[OwnedFd; DESCRIPTORS_OF_QUEUE]> {
        let closed = || io::Error::new(io::ErrorKind::NotFound, "a queue of the port is closed");
        let socket = self.socket.upgrade().ok_or_else(closed)?;
        Ok([socket.try_clone()?, self.memory.upgrade().ok_or_else(closed)?.try_clone()?])
    }
}

/// State that the queues of a port share with the control thread, which accesses it through [`XdpRings`].
pub(super) struct PortRings {
    ring_use: SharedRingUse,
    /// For each queue, the number of changes of `ring_use` that it noticed at its last call.
    noticed: Vec<AtomicU32>,
    /// Number of times that a queue was opened or reopened.
    openings: AtomicU32,
    /// The program. Locked only when a device is opened, reopened or handed over, or its link is queried.
    attachment: Mutex<Option<Arc<Attachment>>>,
    /// The descriptors of each queue, unless its memory is private. Locked only when a device is opened,
    /// reopened or handed over.
    queues: Mutex<Vec<Option<QueueFiles>>>,
}

impl PortRings {
    pub(super) fn new(queues: usize) -> Self {
        Self {
            ring_use: SharedRingUse::new(),
            noticed: (0..queues).map(|_| AtomicU32::new(0)).collect(),
            openings: AtomicU32::new(0),
            attachment: Mutex::new(None),
            queues: Mutex::new(vec![None; queues]),
        }
    }

    pub(super) fn attachment(&self) -> MutexGuard<'_, Option<Arc<Attachment>>> {
        self.attachment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the descriptors of a queue that was opened or reopened.
    pub(super) fn note_files(&self, queue: u32, xsk: &Xsk) {
        self.openings.fetch_add(1, Ordering::Relaxed);
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = queues.get_mut(queue as usize) {
            let socket = Arc::downgrade(&xsk.fd);
            *known = xsk.file().map(|memory| QueueFiles { socket, memory: Arc::downgrade(memory) });
        }
    }

    /// Returns how the queues may use their rings now, and the number of changes so far.
    pub(super) fn ring_use(&self) -> (RingUse, u32) {
        self.ring_use.get()
    }

    /// Stores the number of changes that a queue has noticed. The queue calls this while it uses no ring.
    pub(super) fn note_changes(&self, queue: u32, changes: u32) {
        if let Some(noticed) = self.noticed.get(queue as usize) {
            noticed.store(changes, Ordering::Release);
        }
    }
}

/// The control thread's access to the rings of an AF_XDP port.
#[derive(Clone)]
pub struct XdpRings(pub(super) Arc<PortRings>);

impl XdpRings {
    /// Returns copies of the descriptors of the port's sockets.
    ///
    /// # Errors
    /// Returns an error of the system, or an error if a queue is closed.
    pub fn sockets(&self) -> io::Result<XdpSockets> {
        let none = || io::Error::new(io::ErrorKind::NotFound, "the port has no XDP program on its interface");
        let attachment = self.0.attachment().clone().ok_or_else(none)?;
        let Attachment { redirect, attached, .. } = &*attachment;
        let program = [redirect.map.try_clone()?, redirect.program.try_clone()?, attached.0.try_clone()?];
        let mut all = Vec::from(program);
        for queue in &*self.0.queues.lock().unwrap_or_else(PoisonError::into_inner) {
            all.extend(queue.as_ref().ok_or_else(none)?.copies()?);
        }
        XdpSockets::new(all, self.0.noticed.len()).ok_or_else(none)
    }

    /// Returns the number of times that a queue of the port was opened or reopened. After a change, earlier
    /// results of [`XdpRings::sockets`] are outdated.
    #[must_use]
    pub fn openings(&self) -> u32 {
        self.0.openings.load(Ordering::Relaxed)
    }

    /// Makes the queues stop receiving. They still transmit.
    pub fn hold(&self) {
        self.0.ring_use.change(RingUse::SendOnly);
    }

    /// Makes the queues stop using their rings. Frames to transmit wait in the worker. Each queue stops at
    /// its next call, so the rings are unused once [`XdpRings::have_noticed`] returns true.
    pub fn release(&self) {
        self.0.ring_use.change(RingUse::Paused);
    }

    /// Makes the queues drop and count all frames to transmit, because another process has the rings for
    /// good. Must follow [`XdpRings::release`].
    pub fn abandon(&self) {
        self.0.ring_use.change(RingUse::Abandoned);
    }

    /// Returns whether all queues have noticed the last change.
    #[must_use]
    pub fn have_noticed(&self) -> bool {
        let (_, changes) = self.0.ring_use();
        self.0.noticed.iter().all(|noticed| noticed.load(Ordering::Acquire) == changes)
    }

    /// Lets the queues receive and transmit again. They continue at the current positions of the rings, which
    /// another process may have moved. Has no effect if the queues were not stopped.
    pub fn resume(&self) {
        if self.0.ring_use().0 != RingUse::Full {
            self.0.ring_use.change(RingUse::Full);
        }
    }
}
