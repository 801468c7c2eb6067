// SPDX-License-Identifier: Apache-2.0
//! How the sockets of a port move to another process with the packets in them.
//!
//! The rings of a socket have one user on this side. So the older process stops using them before the newer
//! one starts: it first only stops to receive ([`XdpRings::hold`]), so that its workers can send what they
//! have received, and then uses the rings no more ([`XdpRings::release`]). Meanwhile packets wait in the
//! receive rings.

use crate::handover::{DESCRIPTORS_OF_QUEUE, XdpSockets};
use crate::sys::{Attached, Redirect, Xsk};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How a port's queues may use their rings. The order matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RingUse {
    /// Without a limit.
    All,
    /// They may send, but not receive.
    Send,
    /// Not at all, because another process may use them. Frames to send wait.
    None,
    /// Never again. Frames to send are dropped.
    Gone,
}

/// The current [`RingUse`] of a port, with the number of its changes.
struct SharedUse(AtomicU32);

impl SharedUse {
    const BITS: u32 = 2;

    fn new() -> Self {
        Self(AtomicU32::new(RingUse::All as u32))
    }

    fn change(&self, to: RingUse) {
        let changes = self.0.load(Ordering::Relaxed) >> Self::BITS;
        self.0.store(changes.wrapping_add(1) << Self::BITS | to as u32, Ordering::Release);
    }

    /// Returns the use, and the number of changes so far.
    fn get(&self) -> (RingUse, u32) {
        let word = self.0.load(Ordering::Acquire);
        let ring_use = match word & ((1 << Self::BITS) - 1) {
            0 => RingUse::All,
            1 => RingUse::Send,
            2 => RingUse::None,
            _ => RingUse::Gone,
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

/// A queue's descriptors, as long as the queue exists.
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

/// What the queues of a port share with its [`XdpRings`].
pub(super) struct PortRings {
    ring_use: SharedUse,
    /// For each queue, the number of changes of `ring_use` that it has noticed.
    noticed: Vec<AtomicU32>,
    /// How often a queue was opened or reopened.
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
            ring_use: SharedUse::new(),
            noticed: (0..queues).map(|_| AtomicU32::new(0)).collect(),
            openings: AtomicU32::new(0),
            attachment: Mutex::new(None),
            queues: Mutex::new(vec![None; queues]),
        }
    }

    pub(super) fn attachment(&self) -> MutexGuard<'_, Option<Arc<Attachment>>> {
        self.attachment.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the descriptors of a queue's socket.
    pub(super) fn note_files(&self, queue: u32, xsk: &Xsk) {
        self.openings.fetch_add(1, Ordering::Relaxed);
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = queues.get_mut(queue as usize) {
            let socket = Arc::downgrade(&xsk.fd);
            *known = xsk.file().map(|memory| QueueFiles { socket, memory: Arc::downgrade(memory) });
        }
    }

    /// Returns how the queues may use their rings, and the number of changes so far.
    pub(super) fn ring_use(&self) -> (RingUse, u32) {
        self.ring_use.get()
    }

    /// Records that a queue has noticed this many changes, and has ended all earlier uses of its rings.
    pub(super) fn note_changes(&self, queue: u32, changes: u32) {
        if let Some(noticed) = self.noticed.get(queue as usize) {
            noticed.store(changes, Ordering::Release);
        }
    }
}

/// Access to the rings of a port from any thread.
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
        Ok(XdpSockets::of(all))
    }

    /// Returns how often queues of the port were opened. If the number changes, descriptors of
    /// [`XdpRings::sockets`] are outdated.
    #[must_use]
    pub fn openings(&self) -> u32 {
        self.0.openings.load(Ordering::Relaxed)
    }

    /// Lets the queues receive nothing more. They can still send.
    pub fn hold(&self) {
        self.0.ring_use.change(RingUse::Send);
    }

    /// Lets the queues use their rings no more. Frames to send wait. A queue obeys at its next call, so wait
    /// for [`XdpRings::have_obeyed`].
    pub fn release(&self) {
        self.0.ring_use.change(RingUse::None);
    }

    /// Gives the rings up for good after [`XdpRings::release`]. Frames to send are dropped and counted.
    pub fn abandon(&self) {
        self.0.ring_use.change(RingUse::Gone);
    }

    /// Returns whether all queues obey the last change.
    #[must_use]
    pub fn have_obeyed(&self) -> bool {
        let (_, changes) = self.0.ring_use();
        self.0.noticed.iter().all(|noticed| noticed.load(Ordering::Acquire) == changes)
    }

    /// Lets the queues use their rings again, from where another process has left them. Has no effect if they
    /// were not limited.
    pub fn resume(&self) {
        if self.0.ring_use().0 != RingUse::All {
            self.0.ring_use.change(RingUse::All);
        }
    }
}
