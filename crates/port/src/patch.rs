// SPDX-License-Identifier: Apache-2.0
//! Patch ports: two ports of this process, usually of two datapaths, which exchange frames through rings.
//!
//! The device of a patch port is the name of a cable. The two ports with the same cable are connected; a
//! third one waits until one of them is closed. Every queue sends over one ring with a single producer and a
//! single consumer. Begin with [`open`], then read [`Cable::connect`].

use crate::rings::{LongFrames, Received, Receiver, Sender, direction};
use crate::{Capabilities, Link, Outstanding, Pools, PortDrop, PortError, Queue, Queues, SMALL_FRAME_BYTES};
use crate::{Spec, Statistics};
use frame::{Frame, Meta, Stamp};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// Opens one end of a cable.
///
/// # Errors
/// Returns the errors of [`check`].
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    check(spec)?;
    let pending: Vec<Arc<PendingEnds>> = (0..spec.queues).map(|_| Arc::default()).collect();
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    let carrier = Arc::new(AtomicBool::new(true));
    let registration =
        Arc::new(Registration { cable: spec.device.clone(), id, carrier: Arc::clone(&carrier) });
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
    cable.ports.push(CablePort { id, carrier, pending });
    cable.connect();
    Ok(queues)
}

fn cables() -> MutexGuard<'static, BTreeMap<String, Cable>> {
    CABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A cable, and the ports that are open on it.
#[derive(Default)]
struct Cable {
    /// The open ports. The first two are connected.
    ports: Vec<CablePort>,
    /// IDs of the ports that are connected.
    connected: Option<[u64; 2]>,
}

/// A port of a cable.
struct CablePort {
    id: u64,
    /// The carrier of the other port.
    carrier: Arc<AtomicBool>,
    /// The pending ends of each queue.
    pending: Vec<Arc<PendingEnds>>,
}

impl Cable {
    /// Connects the first two ports by new rings, unless they are connected already.
    fn connect(&mut self) {
        let [one, other, ..] = &self.ports[..] else { return };
        let wanted = Some([one.id, other.id]);
        if self.connected == wanted {
            return;
        }
        self.connected = wanted;
        let (of_one, of_other) = (&one.pending, &other.pending);
        let (senders, receivers) = rings(of_one.len(), of_other.len());
        let (senders_back, receivers_back) = rings(of_other.len(), of_one.len());
        for (pending, (tx, rx)) in of_one.iter().zip(senders.into_iter().zip(receivers_back)) {
            pending.put(Ends { tx, rx, carrier: Arc::clone(&other.carrier) });
        }
        for (pending, (tx, rx)) in of_other.iter().zip(senders_back.into_iter().zip(receivers)) {
            pending.put(Ends { tx, rx, carrier: Arc::clone(&one.carrier) });
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
struct Registration {
    cable: String,
    id: u64,
    /// The carrier of the other port.
    carrier: Arc<AtomicBool>,
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
    /// Whether the other port is not set down.
    carrier: Arc<AtomicBool>,
}

/// New rings for a queue, which it takes when it polls its link.
#[derive(Default)]
struct PendingEnds {
    is_fresh: AtomicBool,
    ends: Mutex<Option<Ends>>,
}

impl PendingEnds {
    fn put(&self, ends: Ends) {
        *self.ends.lock().unwrap_or_else(PoisonError::into_inner) = Some(ends);
        self.is_fresh.store(true, Ordering::Release);
    }

    fn take(&self) -> Option<Ends> {
        let is_fresh = self.is_fresh.swap(false, Ordering::AcqRel);
        is_fresh.then(|| self.ends.lock().unwrap_or_else(PoisonError::into_inner).take()).flatten()
    }
}

/// A queue of a patch port.
struct PatchQueue {
    pending: Arc<PendingEnds>,
    /// Rings to and from the other port, if it is open.
    ends: Option<Ends>,
    /// Ring that is read first.
    next: usize,
    received: Received,
    statistics: Statistics,
    outstanding_most_bytes: usize,
    registration: Arc<Registration>,
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
                self.next = ring + 1;
                break;
            }
        }
        count
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        if let Some(ends) = &mut self.ends {
            return ends.tx.transmit(&mut self.statistics, frames, done, pass);
        }
        let count = frames.len();
        self.statistics.dropped_many(PortDrop::TxLinkDown, count as u64);
        done.append(frames);
        count
    }

    /// Returns the outstanding bytes. Each frame that was not received counts as [`SMALL_FRAME_BYTES`].
    fn outstanding(&self) -> Outstanding {
        let frames = self.ends.as_ref().map_or(0, |ends| ends.tx.in_flight());
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

    fn carrier(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.registration.carrier))
    }

    /// The link is up while the other port is open and not set down.
    fn poll_link(&mut self) -> Link {
        if let Some(ends) = self.pending.take() {
            self.ends = Some(ends);
        }
        self.ends.take_if(|ends| ends.tx.is_abandoned());
        let up = self.ends.as_ref().is_some_and(|ends| ends.carrier.load(Ordering::Relaxed));
        Link { up, ..Link::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn port(number: u32, cable: &str, queues: usize) -> Queues {
        let spec = Spec {
            number,
            name: format!("p{number}"),
            driver: NAME.into(),
            device: format!("{cable}-{}", std::process::id()),
            queues,
            outstanding_bytes: usize::MAX,
        };
        open(&spec).unwrap()
    }

    /// Sends a frame with this name. Returns whether the queue took it.
    fn send(queue: &mut Box<dyn Queue>, name: u8) -> bool {
        let mut frames = vec![Frame::from_bytes(&[name; 60])];
        queue.transmit(&mut frames, &mut Vec::new()) == 1
    }

    /// Returns the names of the received frames, and the port at which they arrived.
    fn names(queue: &mut Box<dyn Queue>) -> Vec<(u32, u8)> {
        let (mut pools, mut burst) = (Pools::new(0, 64, 0), Vec::new());
        queue.receive(&mut pools, &mut burst, 32, Stamp::NONE);
        burst.iter().map(|frame| (frame.meta.in_port, frame.bytes()[0])).collect()
    }

    #[test]
    fn all_queues_of_both_ports_are_connected() {
        let mut one = port(1, "all", 3);
        assert!(!one[0].poll_link().up, "there is no other port");
        let mut other = port(2, "all", 2);
        for queue in one.iter_mut().chain(&mut other) {
            assert!(queue.poll_link().up);
        }
        assert!(
            (0..3).all(|n| send(&mut one[n], n as u8)) && (0..2).all(|n| send(&mut other[n], 10 + n as u8))
        );
        let mut came: Vec<_> = other.iter_mut().flat_map(names).collect();
        came.sort_unstable();
        assert_eq!(came, [(2, 0), (2, 1), (2, 2)]);
        let mut came: Vec<_> = one.iter_mut().flat_map(names).collect();
        came.sort_unstable();
        assert_eq!(came, [(1, 10), (1, 11)]);
    }

    #[test]
    fn a_full_ring_refuses_frames_and_metadata_passes() {
        let (mut one, mut other) = (port(1, "full", 1), port(2, "full", 1));
        assert!(one[0].poll_link().up && other[0].poll_link().up);
        let sent = (0..1_000).take_while(|_| send(&mut one[0], 7)).count();
        assert_eq!(sent, RING_FRAMES);
        let mut frame = Frame::from_bytes(&[1; 60]);
        frame.meta.lane = frame::Lane::LowLatency;
        frame.meta.checksum = Some(frame::PartialChecksum { start: 34, offset: 16 });
        let mut frames = vec![frame];
        assert_eq!(other[0].transmit(&mut frames, &mut Vec::new()), 1);
        let (mut pools, mut burst) = (Pools::new(0, 64, 0), Vec::new());
        assert_eq!(one[0].receive(&mut pools, &mut burst, 32, Stamp::NONE), 1);
        let meta = burst[0].meta;
        assert!(meta.checksum.is_some() && meta.lane == frame::Lane::Normal, "{meta:?}");
        assert_eq!(meta.hops, 1);
    }

    #[test]
    fn a_port_that_is_set_down_takes_the_link_of_the_other_port_down() {
        let (mut one, mut other) = (port(1, "carrier", 2), port(2, "carrier", 1));
        let far = port(3, "another", 1)[0].carrier().unwrap();
        let near = other[0].carrier().unwrap();
        let mut links = || [one[0].poll_link().up, one[1].poll_link().up, other[0].poll_link().up];
        assert_eq!(links(), [true; 3]);
        far.store(false, Ordering::Relaxed);
        assert_eq!(links(), [true; 3]);
        near.store(false, Ordering::Relaxed);
        assert_eq!(links(), [false, false, true]);
        near.store(true, Ordering::Relaxed);
        assert_eq!(links(), [true; 3]);
    }

    #[test]
    fn a_frame_passes_at_most_64_patch_ports() {
        let (mut one, mut other) = (port(1, "hops", 1), port(2, "hops", 1));
        assert!(one[0].poll_link().up && other[0].poll_link().up);
        let mut frames = vec![Frame::from_bytes(&[1; 60])];
        let mut pools = Pools::new(0, 4, 0);
        let mut passed = 0;
        let (mut from, mut to) = (&mut one[0], &mut other[0]);
        while !frames.is_empty() && passed < 1_000 {
            let mut done = Vec::new();
            assert_eq!(from.transmit(&mut frames, &mut done), 1);
            for frame in done {
                drop(pools.put(frame));
            }
            passed += to.receive(&mut pools, &mut frames, 32, Stamp::NONE);
            (from, to) = (to, from);
        }
        assert_eq!(passed, 64);
        let dropped = [&one[0], &other[0]].map(|queue| queue.statistics().drops(PortDrop::TxHopLimit));
        assert_eq!(dropped, [1, 0]);
    }

    #[test]
    fn the_link_follows_the_other_port_and_a_third_port_waits() {
        let (mut one, mut other) = (port(1, "third", 1), port(2, "third", 1));
        let mut third = port(3, "third", 1);
        assert!(one[0].poll_link().up && other[0].poll_link().up && !third[0].poll_link().up);
        drop(one);
        assert!(other[0].poll_link().up && third[0].poll_link().up);
        assert!(send(&mut other[0], 5));
        assert_eq!(names(&mut third[0]), [(3, 5)]);
        drop(third);
        assert!(!other[0].poll_link().up);
        assert!(send(&mut other[0], 6));
        assert_eq!(other[0].statistics().drops(PortDrop::TxLinkDown), 1);
    }
}
