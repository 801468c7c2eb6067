// SPDX-License-Identifier: Apache-2.0
//! Copies of the frames that a device accepts.
//!
//! A device may keep an accepted frame, so the copies are made before the frames are offered. Copies of
//! frames that the device did not accept are freed, because these frames will be offered again.

use super::{CopyOutcome, Mirrors, Output, copy_of, put, vlan_of};
use flow::{Nanos, Passage, PortNo};
use frame::{FillLevel, Frame, Stamp};
use port::{Capabilities, Link, Outstanding, Pools, Queue, Statistics};

/// Number of frames that are offered to a device at once. A device that accepts none costs this many copies.
pub(super) const PART_FRAMES: usize = 32;

/// Maximum number of copies for ports that wait until a device has been served.
pub(super) const COPIES: usize = 1_024;

/// A copy of an offered frame.
pub(super) struct PendingCopy {
    /// Place of the mirror in the worker's list.
    pub mirror: usize,
    /// Place of the original among the offered frames.
    pub original: usize,
    /// The copy, or `None` if no frame was free for it.
    pub frame: Option<Frame>,
}

/// A queue whose accepted frames are copied.
pub(crate) struct MirroredQueue<'a> {
    pub queue: &'a mut dyn Queue,
    pub port: PortNo,
    /// Egress mirrors of the port.
    pub mask: u32,
    pub mirrors: &'a mut Mirrors,
    pub pools: &'a mut Pools,
    pub now: Nanos,
}

impl MirroredQueue<'_> {
    /// Copies the first `count` of `frames`.
    fn copy(&mut self, frames: &[Frame], count: usize) {
        for (original, frame) in frames.iter().take(count).enumerate() {
            let vlan = vlan_of(frame.bytes());
            for (mirror, of_worker) in self.mirrors.list.iter().enumerate() {
                if self.mask >> mirror & 1 == 0 || !of_worker.selects(vlan) {
                    continue;
                }
                let frame = copy_of(frame, self.pools);
                self.mirrors.offered.push(PendingCopy { mirror, original, frame });
            }
        }
    }

    /// Passes on the copies of the first `taken` offered frames, and frees all others.
    fn settle(&mut self, taken: usize) {
        let Mirrors { list, offered, copies, .. } = &mut *self.mirrors;
        for mut copy in offered.drain(..) {
            let Some(mirror) = list.get_mut(copy.mirror) else { continue };
            let is_taken = copy.original < taken;
            let outcome = match (&mut mirror.output, &copy.frame) {
                _ if !is_taken => CopyOutcome::Ended,
                (_, None) => CopyOutcome::NoBuffer,
                (Output::Capture(inlet), Some(frame)) => {
                    put(inlet, frame, self.port, Passage::Egress, self.now)
                }
                (Output::Port(_), Some(_)) if copies.len() == copies.capacity() => CopyOutcome::OutputFull,
                (Output::Port(_), Some(_)) => {
                    copies.push(copy);
                    continue;
                }
            };
            mirror.cells.count(outcome);
            if let Some(frame) = copy.frame.take() {
                let freed = self.pools.put(frame);
                debug_assert!(freed.is_ok(), "copies come from the worker's own pools");
            }
        }
    }
}

impl Queue for MirroredQueue<'_> {
    fn receive(&mut self, pools: &mut Pools, burst: &mut Vec<Frame>, max: usize, stamp: Stamp) -> usize {
        self.queue.receive(pools, burst, max, stamp)
    }

    fn transmit(&mut self, frames: &mut Vec<Frame>, done: &mut Vec<Frame>) -> usize {
        let mut sent = 0;
        while !frames.is_empty() {
            let count = frames.len().min(PART_FRAMES);
            self.copy(frames, count);
            let taken = if count == frames.len() {
                self.queue.transmit(frames, done)
            } else {
                let mut part = std::mem::take(&mut self.mirrors.part);
                part.extend(frames.drain(..count));
                let taken = self.queue.transmit(&mut part, done);
                frames.splice(..0, part.drain(..));
                self.mirrors.part = part;
                taken
            };
            self.settle(taken);
            sent += taken;
            if taken < count {
                break;
            }
        }
        sent
    }

    fn buffers(&self) -> FillLevel {
        self.queue.buffers()
    }

    fn outstanding(&self) -> Outstanding {
        self.queue.outstanding()
    }

    fn capabilities(&self) -> Capabilities {
        self.queue.capabilities()
    }

    fn statistics(&self) -> Statistics {
        self.queue.statistics()
    }

    fn poll_link(&mut self) -> Link {
        self.queue.poll_link()
    }
}
