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

/// Homes with this bit are stocks for the controller.
pub(crate) const STOCK: u16 = 0x8000;

/// A frame on its way to the worker that sends for its port.
pub(crate) type Handover = (PortNo, Frame);

/// The ways out of one worker.
pub(crate) struct Dock {
    pub number: u16,
    pub routes: Routes,
    /// Frames for this worker's queues, in the order of its list.
    pub outboxes: Vec<VecDeque<Frame>>,
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
        if outbox.len() == OUTBOX_FRAMES {
            return Err(frame);
        }
        outbox.push_back(frame);
        Ok(())
    }

    fn report(&mut self, event: Event) -> Result<(), Event> {
        self.events.push(event).map_err(|rtrb::PushError::Full(event)| event)
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
            // The ring has room for all frames of that home: a push can only fail for a frame that is not from a
            // pool, which then is freed here.
            drop(ring.push(frame));
        }
    }
}
