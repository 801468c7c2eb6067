// SPDX-License-Identifier: Apache-2.0
//! The trait by which forwarding gives frames and events to the worker.

use crate::slab::BURST;
use arrayvec::ArrayVec;
use backlog::BacklogShare;
use dataplane::Event;
use flow::{DropReason, PortNo, QueueId};
use frame::{Frame, Lane};

/// Services that forwarding needs from the worker. The pipeline calls these functions on the worker's thread.
pub trait Egress {
    /// Returns an empty frame with space for `len` bytes, or `None` if the pool has none.
    fn buffer(&mut self, len: usize) -> Option<Frame>;
    /// Returns an empty frame from the pool for packet-ins, or `None` if it has none. Part of the pool is
    /// reserved for low-latency packets.
    fn controller_buffer(&mut self, len: usize, lane: Lane) -> Option<Frame>;
    /// Queues a frame for a port, in the egress queue with this number if the port has such a queue.
    ///
    /// # Errors
    /// Returns the frame and the drop reason to count if the frame cannot be queued.
    fn transmit(&mut self, port: PortNo, queue: QueueId, frame: Frame) -> Result<(), (Frame, DropReason)>;
    /// Queues all `frames` for a port, in order, and empties the list. All of them are in `lane`. Returns
    /// false, and takes no frame, if the port has egress queues or might refuse a frame. The caller then
    /// calls [`Egress::transmit`] for each frame.
    fn transmit_all(&mut self, port: PortNo, lane: Lane, frames: &mut ArrayVec<Frame, BURST>) -> bool;
    /// Reports an event to the control thread. Part of the ring is reserved for packet-ins whose frame is in
    /// the low-latency lane.
    ///
    /// # Errors
    /// Returns the event if the ring has no space for it.
    fn report(&mut self, event: Event) -> Result<(), Event>;
    /// Copies a frame into memory in which it may wait for long, and frees the original.
    ///
    /// # Errors
    /// Returns the frame if there is no such memory.
    fn set_aside(&mut self, frame: Frame) -> Result<Frame, Frame>;
    /// Returns a frame to its pool.
    fn free(&mut self, frame: Frame);
    /// Returns whether a frame may wait in the backlog: whether enough frames of its size are left for
    /// receiving. More must be left if the packet is known to be normal, because unknown packets must still
    /// reach the tables to be learned.
    fn may_hold(&self, frame: &Frame, share: BacklogShare) -> bool;
}
