// SPDX-License-Identifier: Apache-2.0
//! Where frames leave a worker: to its own queues, over rings to other workers, home, or to the control thread.

use crate::handover::{Apart, Peer};
use crate::outbox::Outbox;
use crate::routes::{Route, Routes};
use flow::{DropReason, Nanos, PortNo};
use frame::{Frame, Lane, Pool};
use pipeline::{Egress, Event, Level};
use port::Pools;
use rtrb::{Consumer, Producer};

/// An outbox this long is sent before the next burst, so that bursts of other ports do not overflow it.
const LONG_FRAMES: usize = 128;

/// Homes with this bit are stocks for the controller.
pub(crate) const STOCK: u16 = 0x8000;

/// The ways out of one worker.
pub(crate) struct Dock {
    pub number: u16,
    pub routes: Routes,
    /// Frames for this worker's queues, in the order of its list.
    pub outboxes: Vec<Outbox>,
    /// An outbox has become long.
    pub long: bool,
    /// Low-latency frames go first.
    pub lanes: bool,
    /// Changes of rules so far after which flows may take another lane.
    pub epoch: u32,
    /// When the turn began, or the last one.
    pub now: Nanos,
    /// Rings to the workers that send for other ports; none to itself.
    pub peers: Vec<Option<Peer>>,
    /// Rings that bring frames home to other workers.
    pub homes: Vec<Option<Apart<Producer<Frame>>>>,
    /// Rings that bring frames home to this worker.
    pub returned: Vec<Apart<Consumer<Frame>>>,
    /// Frames for receiving and copying.
    pub pools: Pools,
    /// Frames for the controller.
    pub stock: Pools,
    pub events: Producer<Event>,
}

impl Dock {
    /// Takes home what other threads have given back.
    pub fn collect(&mut self) {
        for at in 0..self.returned.len() {
            while let Ok(frame) = self.returned[at].0.pop() {
                self.free(frame);
            }
        }
    }

    /// Rules have changed: flows may take another lane from now on. `promotes`: also from normal to low-latency;
    /// `requeues`: another egress queue.
    pub fn change_lanes(&mut self, promotes: bool, requeues: bool) {
        self.epoch = self.epoch.wrapping_add(1);
        if promotes {
            self.seal();
        } else if requeues {
            self.outboxes.iter_mut().for_each(Outbox::requeue);
        }
    }

    /// What waits for devices goes before whatever comes.
    pub fn seal(&mut self) {
        for outbox in self.outboxes.iter_mut().filter(|outbox| !outbox.is_idle()) {
            outbox.seal();
        }
    }

    /// What is in use of the frames, and of the fullest rings to other workers.
    pub fn levels(&self) -> [Level; 6] {
        let frames = |name, pool: &Pool| Level::of(name, pool.total() - pool.available(), pool.total());
        let [urgent, other] = [true, false].map(|low_latency| {
            let rings = self.peers.iter().flatten().map(|peer| peer.level(low_latency));
            let name = if low_latency { "handovers_low_latency" } else { "handovers_normal" };
            rings.max().map_or(Level::of(name, 0, 0), |(used, limit)| Level::of(name, used, limit))
        });
        [
            frames("small_frames", &self.pools.small),
            frames("large_frames", &self.pools.large),
            frames("frames_on_loan", &self.pools.shells),
            frames("controller_frames", &self.stock.small),
            urgent,
            other,
        ]
    }

    /// Whether the frame goes before normal ones.
    #[inline]
    fn is_urgent(&self, frame: &Frame) -> bool {
        self.lanes && frame.meta.lane == Lane::LowLatency
    }

    /// Gives a frame to the worker that sends for its port.
    #[inline(never)]
    fn hand_over(&mut self, port: PortNo, queue: u32, frame: Frame) -> Result<(), Frame> {
        let urgent = self.is_urgent(&frame);
        // Nor does what waits for a device of another worker.
        if !urgent && frame.home() == self.number && self.pools.is_scarce(&frame) {
            return Err(frame);
        }
        match self.routes.get(port) {
            Some(Route::Peer(worker)) => match &mut self.peers[usize::from(worker)] {
                Some(peer) => peer.push((port, queue), frame, urgent, self.epoch),
                None => Err(frame),
            },
            _ => Err(frame),
        }
    }

    /// Gives a frame to one of the queues of a port that has some.
    #[inline(never)]
    fn enqueue(
        &mut self,
        at: u16,
        queue: u32,
        frame: Frame,
        urgent: bool,
    ) -> Result<(), (Frame, DropReason)> {
        // Of another worker's frames that one knows.
        let scarce = frame.home() == self.number && self.pools.is_scarce(&frame);
        let outbox = &mut self.outboxes[usize::from(at)];
        outbox
            .enqueue(queue, frame, urgent, scarce, self.now)
            .map_err(|frame| (frame, DropReason::QueueFull))?;
        self.long |= outbox.is_queue_long(queue);
        Ok(())
    }
}

impl Egress for Dock {
    #[inline]
    fn buffer(&mut self, len: usize) -> Option<Frame> {
        self.pools.get(len)
    }

    fn controller_buffer(&mut self, len: usize, low_latency: bool) -> Option<Frame> {
        if self.lanes && !low_latency && self.stock.lacks(len) {
            return None;
        }
        self.stock.get(len)
    }

    #[inline]
    fn transmit(&mut self, port: PortNo, queue: u32, frame: Frame) -> Result<(), (Frame, DropReason)> {
        let full = |frame| (frame, DropReason::TransmitFull);
        let Some(Route::Own(at)) = self.routes.get(port) else {
            return self.hand_over(port, queue, frame).map_err(full);
        };
        let urgent = self.is_urgent(&frame);
        let outbox = &mut self.outboxes[usize::from(at)];
        if outbox.has_queues() {
            return self.enqueue(at, queue, frame, urgent);
        }
        // What waits for a stuck device never takes a pool's last quarter: other ports go on receiving.
        if outbox.is_stuck(urgent) && self.pools.is_scarce(&frame) {
            return Err(full(frame));
        }
        outbox.push(frame, urgent).map_err(full)?;
        self.long |= outbox.len() >= LONG_FRAMES;
        Ok(())
    }

    fn report(&mut self, event: Event) -> Result<(), Event> {
        let (free, all) = (self.events.slots(), self.events.buffer().capacity());
        let has_room = match &event {
            // Learning must not push packets for the controller out, nor normal ones those that are low-latency.
            Event::Learn(_) => free * 2 >= all,
            Event::PacketIn(report) => {
                !self.lanes || report.frame.meta.lane == Lane::LowLatency || free * 4 >= all
            }
        };
        if !has_room {
            return Err(event);
        }
        self.events.push(event).map_err(|rtrb::PushError::Full(event)| event)
    }

    #[inline]
    fn may_hold(&self, frame: &Frame, normal: bool) -> bool {
        frame.home() != self.number
            || !(if normal { self.pools.is_half_used(frame) } else { self.pools.is_scarce(frame) })
    }

    #[inline]
    fn free(&mut self, frame: Frame) {
        let home = frame.home();
        let stranger = if home == self.number {
            self.pools.put(frame).err()
        } else if home == self.number | STOCK {
            self.stock.put(frame).err()
        } else {
            Some(frame)
        };
        if let Some(frame) = stranger
            && let Some(Some(Apart(ring))) = self.homes.get_mut(usize::from(home & !STOCK))
        {
            // The ring has room for all frames of that home.
            let pushed = ring.push(frame);
            debug_assert!(pushed.is_ok(), "more frames come home than there are");
        }
    }
}
