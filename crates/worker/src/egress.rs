// SPDX-License-Identifier: Apache-2.0
//! The transmit side of a worker. It passes frames to the worker's own queues, to other workers, to their
//! home pools, or to the control thread.

use crate::handover::{CachePadded, Handover, Peer};
use crate::outbox::{LONG_FRAMES, Outbox};
use crate::routes::{Route, Routes};
use arrayvec::ArrayVec;
use dataplane::{Event, Usage};
use flow::{DropReason, Nanos, PortNo, QueueId};
use frame::{FillLevel, Frame, Lane, Pool};
use pipeline::{BURST, BacklogShare, Egress};
use port::Pools;
use rtrb::{Consumer, Producer, RingBuffer};

/// Bit that is set in the home numbers of frames that are reserved for packets to the controller.
pub(crate) const STOCK: u16 = 0x8000;

/// Bit that is set in the home numbers of frames that wait in the port cache.
pub(crate) const ASIDE: u16 = 0x4000;

/// Usage of a worker's pools and of its rings to other workers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EgressUsage {
    /// Frames of the small pool that are not free.
    pub small_frames: Usage,
    /// Frames of the large pool that are not free.
    pub large_frames: Usage,
    /// Used buffers in the pool of the device that has the fewest free buffers.
    pub device_buffers: Usage,
    /// Frames with packets for the controller.
    pub controller_frames: Usage,
    /// Low-latency frames in the fullest ring to another worker.
    pub handovers_low_latency: Usage,
    /// Normal frames in the fullest ring to another worker.
    pub handovers_normal: Usage,
}

/// Routes, outboxes, rings and pools of one worker.
pub(crate) struct WorkerEgress {
    pub number: u16,
    pub routes: Routes,
    /// Outboxes of this worker's queues, in the order of the worker's list of queues.
    pub outboxes: Vec<Outbox>,
    /// Whether an outbox or an egress queue is so long that it must be served before the next burst.
    pub long: bool,
    /// Whether low-latency frames are sent before normal frames.
    pub lanes: bool,
    /// Number of rule changes so far that may have moved flows to another lane, modulo 2^32.
    pub epoch: u32,
    /// Time at which the current or the last poll iteration began.
    pub now: Nanos,
    /// Rings to the workers that send frames on behalf of this worker, indexed by worker number. `None` for
    /// this worker itself.
    pub peers: Vec<Option<Peer>>,
    /// Rings that return frames to their home workers, indexed by worker number.
    pub homes: Vec<Option<CachePadded<Producer<Frame>>>>,
    /// Rings that return frames to this worker.
    pub returned: Vec<CachePadded<Consumer<Frame>>>,
    /// Frames for received packets and copies.
    pub pools: Pools,
    /// Frames for packets to the controller.
    pub stock: Pools,
    /// Frames for packets that wait in the port cache.
    pub aside: Pools,
    pub events: Producer<Event>,
}

impl WorkerEgress {
    /// Puts frames that other threads have returned into their pools.
    pub fn collect(&mut self) {
        for at in 0..self.returned.len() {
            while let Ok(frame) = self.returned[at].0.pop() {
                self.free(frame);
            }
        }
    }

    /// Records a rule change that may have moved flows to another lane. With `promotes`, flows may also have
    /// become low-latency. With `requeues`, flows may have moved to another egress queue.
    pub fn change_lanes(&mut self, promotes: bool, requeues: bool) {
        self.epoch = self.epoch.wrapping_add(1);
        if promotes {
            self.freeze();
        } else if requeues {
            self.outboxes.iter_mut().for_each(Outbox::requeue);
        }
    }

    /// Sets a transmit barrier: frames queued before this call are sent before any frame queued after it, in
    /// either lane.
    pub fn freeze(&mut self) {
        for outbox in self.outboxes.iter_mut().filter(|outbox| !outbox.is_idle()) {
            outbox.freeze();
        }
    }

    /// Creates the transmit side of a worker without ports, whose packets and events go nowhere. It has one
    /// frame.
    pub fn silent() -> Self {
        let (events, _) = RingBuffer::new(1);
        Self {
            number: 0,
            routes: Routes::new(Vec::new()),
            outboxes: Vec::new(),
            long: false,
            lanes: false,
            epoch: 0,
            now: Nanos(0),
            peers: Vec::new(),
            homes: Vec::new(),
            returned: Vec::new(),
            pools: Pools::new(0, 1, 0),
            stock: Pools::new(STOCK, 0, 0),
            aside: Pools::new(ASIDE, 0, 0),
            events,
        }
    }

    /// Returns the usage of the pools, and of the fullest rings to other workers. `devices` are the fill
    /// levels of the pools of the worker's devices.
    pub fn usage(&self, devices: impl Iterator<Item = FillLevel>) -> EgressUsage {
        let fullest =
            devices.filter(|level| level.total > 0).min_by_key(|level| level.free).unwrap_or_default();
        let frames = |name, pool: &Pool| Usage::of(name, pool.total() - pool.available(), pool.total());
        let handovers = |name, lane| {
            let rings = self.peers.iter().flatten().map(|peer| peer.usage(lane));
            rings.max().map_or(Usage::of(name, 0, 0), |(used, limit)| Usage::of(name, used, limit))
        };
        EgressUsage {
            small_frames: frames("small_frames", &self.pools.small),
            large_frames: frames("large_frames", &self.pools.large),
            device_buffers: Usage::of("device_buffers", fullest.total - fullest.free, fullest.total),
            controller_frames: frames("controller_frames", &self.stock.small),
            handovers_low_latency: handovers("handovers_low_latency", Lane::LowLatency),
            handovers_normal: handovers("handovers_normal", Lane::Normal),
        }
    }

    /// Frees these frames. Usually all of them are small frames of this worker.
    #[inline]
    pub fn free_all(&mut self, frames: &mut Vec<Frame>) {
        if !self.pools.small.put_all(frames) {
            frames.drain(..).for_each(|frame| self.free(frame));
        }
    }

    /// Queues a frame as [`Egress::transmit`] does, but handles all cases: egress queues, ports of other
    /// workers, a stuck device, and an outbox that is long or full.
    #[inline(never)]
    fn transmit_checked(
        &mut self,
        port: PortNo,
        queue: QueueId,
        frame: Frame,
    ) -> Result<(), (Frame, DropReason)> {
        let full = |frame| (frame, DropReason::TransmitFull);
        let Some(Route::Own(at)) = self.routes.get(port) else {
            return self.hand_over(port, queue, frame).map_err(full);
        };
        let lane = self.lane_of(&frame);
        let outbox = &mut self.outboxes[usize::from(at)];
        if outbox.has_queues() {
            return self.enqueue(at, queue, frame, lane);
        }
        // Frames that wait for a stuck device must not take the last quarter of a pool, so that other ports
        // can still receive.
        if outbox.is_stuck(lane) && self.pools.is_scarce(&frame) {
            return Err(full(frame));
        }
        outbox.push(frame, lane).map_err(full)?;
        self.long |= outbox.len() >= LONG_FRAMES;
        Ok(())
    }

    /// Frees a frame that is not a small frame of this worker.
    #[inline(never)]
    fn free_other(&mut self, frame: Frame) {
        let home = frame.home();
        let stranger = if home == self.number {
            self.pools.put(frame).err()
        } else if home == self.number | STOCK {
            self.stock.put(frame).err()
        } else if home == self.number | ASIDE {
            self.aside.put(frame).err()
        } else {
            Some(frame)
        };
        // A device's buffer has no home worker. It returns to its device when the frame is dropped.
        if let Some(frame) = stranger
            && let Some(Some(CachePadded(ring))) = self.homes.get_mut(usize::from(home & !(STOCK | ASIDE)))
        {
            // The ring's capacity is the number of frames that the home worker owns.
            let pushed = ring.push(frame);
            debug_assert!(pushed.is_ok(), "more frames are returned than exist");
        }
    }

    /// Returns the lane in which a frame is sent. If low-latency frames are not sent first, all frames are
    /// normal.
    #[inline]
    fn lane_of(&self, frame: &Frame) -> Lane {
        if self.lanes { frame.meta.lane } else { Lane::Normal }
    }

    /// Hands a frame off to the worker that sends for its port. Returns the frame on failure.
    #[inline(never)]
    fn hand_over(&mut self, port: PortNo, queue: QueueId, frame: Frame) -> Result<(), Frame> {
        let lane = self.lane_of(&frame);
        // Normal frames that wait for another worker must not take the last quarter of a pool.
        if lane == Lane::Normal && frame.home() == self.number && self.pools.is_scarce(&frame) {
            return Err(frame);
        }
        match self.routes.get(port) {
            Some(Route::Peer(worker)) => match &mut self.peers[usize::from(worker)] {
                Some(peer) => peer.push(Handover { port, queue, frame }, lane, self.epoch),
                None => Err(frame),
            },
            _ => Err(frame),
        }
    }

    /// Queues a frame in an egress queue of a port.
    #[inline(never)]
    fn enqueue(
        &mut self,
        at: u16,
        queue: QueueId,
        frame: Frame,
        lane: Lane,
    ) -> Result<(), (Frame, DropReason)> {
        // The worker can check only its own pools. Frames of other workers do not count as scarce.
        let scarce = frame.home() == self.number && self.pools.is_scarce(&frame);
        let outbox = &mut self.outboxes[usize::from(at)];
        outbox
            .enqueue(queue, frame, lane, scarce, self.now)
            .map_err(|frame| (frame, DropReason::QueueFull))?;
        self.long |= outbox.is_queue_long(queue);
        Ok(())
    }
}

impl Egress for WorkerEgress {
    #[inline]
    fn buffer(&mut self, len: usize) -> Option<Frame> {
        self.pools.get(len)
    }

    fn controller_buffer(&mut self, len: usize, lane: Lane) -> Option<Frame> {
        if self.lanes && lane == Lane::Normal && self.stock.lacks(len) {
            return None;
        }
        self.stock.get(len)
    }

    #[inline(always)]
    fn transmit(&mut self, port: PortNo, queue: QueueId, frame: Frame) -> Result<(), (Frame, DropReason)> {
        let lane = self.lane_of(&frame);
        if let Some(Route::Own(at)) = self.routes.get(port)
            && let Some(outbox) = self.outboxes.get_mut(usize::from(at))
            && outbox.takes(lane)
        {
            outbox.push_taken(frame, lane);
            return Ok(());
        }
        self.transmit_checked(port, queue, frame)
    }

    #[inline]
    fn transmit_all(&mut self, port: PortNo, lane: Lane, frames: &mut ArrayVec<Frame, BURST>) -> bool {
        let lane = if self.lanes { lane } else { Lane::Normal };
        if let Some(Route::Own(at)) = self.routes.get(port)
            && let Some(outbox) = self.outboxes.get_mut(usize::from(at))
        {
            return outbox.push_all(frames, lane);
        }
        false
    }

    fn report(&mut self, event: Event) -> Result<(), Event> {
        let (free, all) = (self.events.slots(), self.events.buffer().capacity());
        let has_room = match &event {
            // Learning must leave space for packet-ins, and normal packet-ins must leave space for
            // low-latency ones.
            Event::Learn(_) | Event::MacRefused(_) | Event::Storm(_) => free * 2 >= all,
            Event::Searcher(_) => true,
            Event::PacketIn(report) => {
                !self.lanes || report.frame.meta.lane == Lane::LowLatency || free * 4 >= all
            }
        };
        if !has_room {
            return Err(event);
        }
        self.events.push(event).map_err(|rtrb::PushError::Full(event)| event)
    }

    fn set_aside(&mut self, frame: Frame) -> Result<Frame, Frame> {
        let Some(mut copy) = self.aside.get(frame.room_len()) else { return Err(frame) };
        if !copy.copy_with_room(&frame) {
            self.free(copy);
            return Err(frame);
        }
        self.free(frame);
        Ok(copy)
    }

    #[inline]
    fn may_hold(&self, frame: &Frame, share: BacklogShare) -> bool {
        frame.home() != self.number
            || !match share {
                BacklogShare::Normal => self.pools.is_half_used(frame),
                BacklogShare::Unknown => self.pools.is_scarce(frame),
            }
    }

    #[inline]
    fn free(&mut self, frame: Frame) {
        if let Err(frame) = self.pools.small.put(frame) {
            self.free_other(frame);
        }
    }
}
