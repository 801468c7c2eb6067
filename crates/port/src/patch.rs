// SPDX-License-Identifier: Apache-2.0
//! Patch ports: two ports of this process, usually of two datapaths, which exchange frames through rings.
//!
//! The device of a patch port is the name of a cable. The first two started ports with the same cable are
//! connected; a third one waits until one of them is closed. Every queue sends over one ring with a single
//! producer and a single consumer.
//!
//! The control thread creates and frees all rings. A worker exchanges its rings for new ones when it polls
//! the link, and returns the old rings through [`PendingEnds`]. Begin with [`open`], then read
//! [`Cable::connect`].

use crate::rings::{LongFrames, Received, Receiver, Sender, direction};
use crate::{Capabilities, Link, Outstanding, Pools, PortDrop, PortError, Queue, Queues, SMALL_FRAME_BYTES};
use crate::{Spec, Statistics};
use frame::{Frame, Meta, Stamp};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Name of the driver.
pub const NAME: &str = "patch";

/// Capacity of a ring in frames of at most `SMALL_FRAME_BYTES`.
const RING_FRAMES: usize = 256;

/// Capacity of a ring in longer frames, beside the small ones.
const RING_LONG_FRAMES: usize = 32;

/// Maximum number of patch ports that a frame may pass. Without this limit, frames could circulate between
/// datapaths forever.
pub const HOPS_MAX: u8 = 64;

/// Maximum number of queues of a port.
const QUEUES_MAX: usize = 64;

/// Maximum length of a cable's name in bytes.
const NAME_BYTES: usize = 63;

/// All cables with at least one port, by name.
static CABLES: Mutex<BTreeMap<String, Cable>> = Mutex::new(BTreeMap::new());

/// ID of the next port.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Checks the device string and the number of queues.
///
/// # Errors
/// Returns an error for a wrong name or number.
pub fn check(spec: &Spec) -> Result<(), PortError> {
    if !(1..=QUEUES_MAX).contains(&spec.queues) {
        return Err(PortError::BadQueues {
            port: spec.name.clone(),
            driver: NAME,
            queues: spec.queues,
            expected: "1 to 64",
        });
    }
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if (1..=NAME_BYTES).contains(&spec.device.len()) && spec.device.bytes().all(legal) {
        return Ok(());
    }
    Err(PortError::BadDevice {
        port: spec.name.clone(),
        driver: NAME,
        device: spec.device.clone(),
        wrong: "not the name of a cable".into(),
        expected: "1 to 63 of the characters a-z A-Z 0-9 _ - .; the other port has the same name",
    })
}

/// Opens one end of a cable, and connects it.
///
/// # Errors
/// Returns the errors of [`check`].
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    let (queues, registration) = register(spec)?;
    registration.start();
    Ok(queues)
}

/// Opens one end of a cable, which is not connected before [`PatchEnd::start`]. Until then, the other ports
/// of the cable are not affected.
///
/// # Errors
/// Returns the errors of [`check`].
pub fn open_held(spec: &Spec) -> Result<Queues, PortError> {
    Ok(register(spec)?.0)
}

fn register(spec: &Spec) -> Result<(Queues, Arc<Registration>), PortError> {
    check(spec)?;
    let pending: Vec<Arc<PendingEnds>> = (0..spec.queues).map(|_| Arc::default()).collect();
    let peer_carrier = Arc::new(AtomicBool::new(true));
    let registration = Arc::new(Registration {
        cable: spec.device.clone(),
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        peer_carrier: Arc::clone(&peer_carrier),
        pending: pending.clone(),
    });
    let queue = |pending: &Arc<PendingEnds>| PatchQueue {
        pending: Arc::clone(pending),
        ends: None,
        next: 0,
        received: Received::at(spec.number),
        statistics: Statistics::default(),
        outstanding_most_bytes: spec.outstanding_bytes,
        registration: Arc::clone(&registration),
    };
    let queues = pending.iter().map(|pending| Box::new(queue(pending)) as Box<dyn Queue>).collect();
    let mut cables = cables();
    let cable = cables.entry(spec.device.clone()).or_default();
    cable.ports.push(CablePort { id: registration.id, is_started: false, peer_carrier, pending });
    Ok((queues, registration))
}

/// The control thread's access to a patch port. The port is closed with its last queue, even if this exists.
#[derive(Clone, Debug)]
pub struct PatchEnd(Weak<Registration>);

impl PatchEnd {
    /// Connects a port that was opened by [`open_held`]. Creates the rings, if the cable has two started
    /// ports.
    pub fn start(&self) {
        if let Some(registration) = self.0.upgrade() {
            registration.start();
        }
    }

    /// Sets the flag that the peer reads as its carrier. The control thread clears it while this port is down
    /// or blocked. It is initially set.
    pub fn set_peer_carrier(&self, up: bool) {
        if let Some(registration) = self.0.upgrade() {
            registration.peer_carrier.store(up, Ordering::Relaxed);
        }
    }

    /// Frees the rings that the queues have exchanged for new ones.
    pub fn free_replaced(&self) {
        for pending in self.0.upgrade().iter().flat_map(|registration| &registration.pending) {
            drop(pending.take_replaced());
        }
    }
}

fn cables() -> MutexGuard<'static, BTreeMap<String, Cable>> {
    CABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cable, and the ports that are open on it.
#[derive(Default)]
struct Cable {
    /// The open ports. The first two that are started are connected.
    ports: Vec<CablePort>,
    /// IDs of the ports that are connected.
    connected: Option<[u64; 2]>,
}

/// A port of a cable.
struct CablePort {
    id: u64,
    /// Whether the port may be connected.
    is_started: bool,
    /// See [`PatchEnd::set_peer_carrier`].
    peer_carrier: Arc<AtomicBool>,
    /// The pending ends of each queue.
    pending: Vec<Arc<PendingEnds>>,
}

impl Cable {
    /// Connects the first two started ports by new rings, unless they are connected already.
    fn connect(&mut self) {
        let mut started = self.ports.iter().filter(|port| port.is_started);
        let (Some(one), Some(other)) = (started.next(), started.next()) else { return };
        let wanted = Some([one.id, other.id]);
        if self.connected == wanted {
            return;
        }
        self.connected = wanted;
        let (of_one, of_other) = (&one.pending, &other.pending);
        let (senders, receivers) = rings(of_one.len(), of_other.len());
        let (senders_back, receivers_back) = rings(of_other.len(), of_one.len());
        for (pending, (tx, rx)) in of_one.iter().zip(senders.into_iter().zip(receivers_back)) {
            pending.put(Ends::new(tx, rx, &other.peer_carrier));
        }
        for (pending, (tx, rx)) in of_other.iter().zip(senders_back.into_iter().zip(receivers)) {
            pending.put(Ends::new(tx, rx, &one.peer_carrier));
        }
    }
}

/// Creates a ring for each of `from` sending queues. Returns the receiving ends of each of `to` queues.
fn rings(from: usize, to: usize) -> (Vec<Sender>, Vec<Vec<Receiver>>) {
    let mut senders = Vec::with_capacity(from);
    let mut receivers: Vec<Vec<Receiver>> = (0..to).map(|_| Vec::new()).collect();
    for number in 0..from {
        let (sender, receiver) = direction(RING_FRAMES, LongFrames::Buffers(RING_LONG_FRAMES));
        senders.push(sender);
        receivers[number % to].push(receiver);
    }
    (senders, receivers)
}

/// A port on a cable, shared by its queues. The last queue that is closed takes the port off the cable.
#[derive(Debug)]
struct Registration {
    cable: String,
    id: u64,
    peer_carrier: Arc<AtomicBool>,
    pending: Vec<Arc<PendingEnds>>,
}

impl Registration {
    /// Allows that the port is connected.
    fn start(&self) {
        let mut cables = cables();
        let Some(cable) = cables.get_mut(&self.cable) else { return };
        cable.ports.iter_mut().filter(|port| port.id == self.id).for_each(|port| port.is_started = true);
        cable.connect();
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut cables = cables();
        let Some(cable) = cables.get_mut(&self.cable) else { return };
        cable.ports.retain(|port| port.id != self.id);
        if cable.ports.is_empty() {
            cables.remove(&self.cable);
        } else {
            cable.connect();
        }
    }
}

/// Returns the metadata with which the other port receives a frame: the work that is left to a device, and
/// one hop more. Everything else belongs to the sender.
fn pass(meta: &Meta) -> Result<Meta, PortDrop> {
    if meta.hops >= HOPS_MAX {
        return Err(PortDrop::TxHopLimit);
    }
    Ok(Meta { checksum: meta.checksum, gso: meta.gso, hops: meta.hops + 1, ..Meta::NONE })
}

/// A queue's ends of the rings to and from the other port.
struct Ends {
    tx: Sender,
    rx: Vec<Receiver>,
    /// Whether the other port is neither down nor blocked.
    carrier: Arc<AtomicBool>,
    /// Whether it is known that the other port is closed.
    is_closed: bool,
}

impl Ends {
    fn new(tx: Sender, rx: Vec<Receiver>, carrier: &Arc<AtomicBool>) -> Self {
        Self { tx, rx, carrier: Arc::clone(carrier), is_closed: false }
    }

    /// Returns whether all frames of the other port have been received.
    fn is_drained(&self) -> bool {
        self.rx.iter().all(Receiver::is_empty)
    }
}

/// New rings for a queue, and the rings that it had before.
#[derive(Default)]
struct PendingEnds {
    is_fresh: AtomicBool,
    slot: Mutex<PendingSlot>,
}

#[derive(Default)]
struct PendingSlot {
    /// Rings that the queue has not taken. The earlier ones may have frames of ports that are closed.
    fresh: VecDeque<Ends>,
    /// Has space for as many rings as the queue can return.
    replaced: Vec<Ends>,
}

impl PendingSlot {
    fn take_replaced(&mut self) -> Vec<Ends> {
        std::mem::replace(&mut self.replaced, Vec::with_capacity(self.fresh.len()))
    }
}

impl PendingEnds {
    /// Offers new rings to the queue. Frees the rings that the queue has returned.
    fn put(&self, ends: Ends) {
        let mut slot = self.lock();
        slot.fresh.retain(|ends| !ends.tx.is_abandoned() || !ends.is_drained());
        slot.fresh.push_back(ends);
        self.is_fresh.store(true, Ordering::Release);
        let replaced = slot.take_replaced();
        drop(slot);
        drop(replaced);
    }

    /// Exchanges the rings of the queue for new ones, if there are some. Never waits and frees nothing.
    fn exchange(&self, ends: &mut Option<Ends>) {
        if !self.is_fresh.load(Ordering::Acquire) {
            return;
        }
        let Ok(mut slot) = self.slot.try_lock() else { return };
        if let Some(replaced) = slot.fresh.pop_front().and_then(|fresh| ends.replace(fresh)) {
            debug_assert!(slot.replaced.len() < slot.replaced.capacity());
            slot.replaced.push(replaced);
        }
        self.is_fresh.store(!slot.fresh.is_empty(), Ordering::Relaxed);
    }

    fn take_replaced(&self) -> Vec<Ends> {
        self.lock().take_replaced()
    }

    fn lock(&self) -> MutexGuard<'_, PendingSlot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PendingEnds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("PendingEnds").field("is_fresh", &self.is_fresh).finish_non_exhaustive()
    }
}

/// A queue of a patch port.
struct PatchQueue {
    pending: Arc<PendingEnds>,
    /// Rings to and from the other port, if there has been one.
    ends: Option<Ends>,
    /// Ring that is read first.
    next: usize,
    received: Received,
    statistics: Statistics,
    outstanding_most_bytes: usize,
    /// Is dropped after the rings, so that the other port finds them closed when it is connected again.
    registration: Arc<Registration>,
}

impl PatchQueue {
    /// Notices that the other port was closed. Frames that it had not received are lost and counted.
    fn notice_closed(&mut self) {
        let Some(ends) = self.ends.as_mut().filter(|ends| !ends.is_closed) else { return };
        if ends.tx.is_abandoned() {
            ends.is_closed = true;
            self.statistics.dropped_many(PortDrop::TxLinkDown, ends.tx.in_flight() as u64);
        }
    }

    /// Takes new rings, if there are some and all frames of the earlier ones have been received.
    fn take_fresh(&mut self) {
        if self.ends.as_ref().is_none_or(|ends| ends.is_closed && ends.is_drained()) {
            self.pending.exchange(&mut self.ends);
            self.notice_closed();
        }
    }
}

impl Queue for PatchQueue {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        let Some(ends) = &mut self.ends else { return 0 };
        let mut count = 0;
        for at in 0..ends.rx.len() {
            let ring = (self.next + at) % ends.rx.len();
            let (received, statistics) = (&mut self.received, &mut self.statistics);
            count += ends.rx[ring].receive(received, statistics, pools, burst, max - count, stamp);
            if count == max {
                break;
            }
        }
        // Each ring comes first in turn, so none is starved if the pools have few buffers.
        self.next = self.next.wrapping_add(1);
        count
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        self.notice_closed();
        if let Some(ends) = self.ends.as_mut().filter(|ends| !ends.is_closed) {
            return ends.tx.transmit(&mut self.statistics, frames, done, pass);
        }
        let count = frames.len();
        self.statistics.dropped_many(PortDrop::TxLinkDown, count as u64);
        done.append(frames);
        count
    }

    /// Returns the outstanding bytes. Each frame that was not received counts as [`SMALL_FRAME_BYTES`].
    fn outstanding(&self) -> Outstanding {
        let open = self.ends.as_ref().filter(|ends| !ends.is_closed);
        let frames = open.map_or(0, |ends| ends.tx.in_flight());
        Outstanding { bytes: frames * SMALL_FRAME_BYTES, most_bytes: self.outstanding_most_bytes }
    }

    fn set_outstanding(&mut self, most_bytes: usize) {
        self.outstanding_most_bytes = most_bytes;
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { partial_checksum: true, gso: true }
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }

    fn patch_end(&self) -> Option<PatchEnd> {
        Some(PatchEnd(Arc::downgrade(&self.registration)))
    }

    /// The link is up while the other port is open, and neither down nor blocked.
    fn poll_link(&mut self) -> Link {
        self.notice_closed();
        self.take_fresh();
        let open = self.ends.as_ref().filter(|ends| !ends.is_closed);
        let up = open.is_some_and(|ends| ends.carrier.load(Ordering::Relaxed));
        Link { up, ..Link::default() }
    }
}

#[cfg(test)]
mod tests;
