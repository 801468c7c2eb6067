// SPDX-License-Identifier: Apache-2.0
//! Where frames leave a worker: to its own queues, over rings to other workers, home, or to the control thread.

use crate::routes::{Route, Routes};
use flow::PortNo;
use frame::Frame;
use pipeline::{Egress, Event};
use port::Pools;
use rtrb::{Consumer, Producer};
use std::collections::VecDeque;

/// Frames that wait for a port's device at most. Beyond it they are dropped as `transmit_full`.
pub(crate) const OUTBOX_FRAMES: usize = 512;

/// An outbox this long is sent before the next burst, so that bursts of other ports do not overflow it.
const LONG_FRAMES: usize = 128;

/// Frames that wait for one device.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub frames: VecDeque<Frame>,
    /// The device did not take all when it was last asked.
    pub stuck: bool,
}

impl Default for Outbox {
    fn default() -> Self {
        Self { frames: VecDeque::with_capacity(OUTBOX_FRAMES), stuck: false }
    }
}

/// Homes with this bit are stocks for the controller.
pub(crate) const STOCK: u16 = 0x8000;

/// A frame on its way to the worker that sends for its port.
pub(crate) type Handover = (PortNo, Frame);

/// The ways out of one worker.
pub(crate) struct Dock {
    pub number: u16,
    pub routes: Routes,
    /// Frames for this worker's queues, in the order of its list.
    pub outboxes: Vec<Outbox>,
    /// An outbox has become long.
    pub long: bool,
    /// Rings to the workers that send for other ports; none to itself.
    pub peers: Vec<Option<Producer<Handover>>>,
    /// Rings that bring frames home to other workers.
    pub homes: Vec<Option<Producer<Frame>>>,
    /// Rings that bring frames home to this worker.
    pub returned: Vec<Consumer<Frame>>,
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
            while let Ok(frame) = self.returned[at].pop() {
                self.free(frame);
            }
        }
    }

    /// Gives a frame to the worker that sends for its port.
    #[inline(never)]
    fn hand_over(&mut self, port: PortNo, frame: Frame) -> Result<(), Frame> {
        match self.routes.get(port) {
            Some(Route::Peer(worker)) => match &mut self.peers[usize::from(worker)] {
                Some(ring) => ring.push((port, frame)).map_err(|rtrb::PushError::Full((_, frame))| frame),
                None => Err(frame),
            },
            _ => Err(frame),
        }
    }
}

impl Egress for Dock {
    #[inline]
    fn buffer(&mut self, len: usize) -> Option<Frame> {
        self.pools.get(len)
    }

    fn controller_buffer(&mut self, len: usize) -> Option<Frame> {
        self.stock.get(len)
    }

    #[inline]
    fn transmit(&mut self, port: PortNo, _queue: u32, frame: Frame) -> Result<(), Frame> {
        let Some(Route::Own(at)) = self.routes.get(port) else { return self.hand_over(port, frame) };
        let outbox = &mut self.outboxes[usize::from(at)];
        // What waits for a stuck device never takes a pool's last quarter: other ports go on receiving.
        if outbox.frames.len() == OUTBOX_FRAMES || (outbox.stuck && self.pools.is_scarce(&frame)) {
            return Err(frame);
        }
        outbox.frames.push_back(frame);
        self.long |= outbox.frames.len() >= LONG_FRAMES;
        Ok(())
    }

    fn report(&mut self, event: Event) -> Result<(), Event> {
        // Learning must not push packets for the controller out.
        if matches!(event, Event::Learn(_)) && self.events.slots() * 2 < self.events.buffer().capacity() {
            return Err(event);
        }
        self.events.push(event).map_err(|rtrb::PushError::Full(event)| event)
    }

    #[inline]
    fn may_hold(&self, frame: &Frame) -> bool {
        frame.home() != self.number || !self.pools.is_scarce(frame)
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
            && let Some(Some(ring)) = self.homes.get_mut(usize::from(home & !STOCK))
        {
            // The ring has room for all frames of that home.
            let pushed = ring.push(frame);
            debug_assert!(pushed.is_ok(), "more frames come home than there are");
        }
    }
}
