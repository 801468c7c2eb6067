// SPDX-License-Identifier: Apache-2.0
//! The transmit side of the search worker. It sends nothing and reports nothing.

use arrayvec::ArrayVec;
use dataplane::Event;
use flow::{DropReason, PortNo, QueueId};
use frame::{Frame, Lane};
use pipeline::{BURST, BacklogShare, Egress};
use port::SMALL_FRAME_BYTES;

/// Keeps the frame of the packet that is searched.
#[derive(Debug)]
pub(crate) struct SearchEgress {
    /// The frame, unless it is in the pipeline.
    spare: Option<Frame>,
}

impl SearchEgress {
    pub fn new() -> Self {
        Self { spare: Some(Frame::with_capacity(SMALL_FRAME_BYTES, 0)) }
    }

    /// Takes the frame, with default metadata.
    pub fn take(&mut self) -> Option<Frame> {
        let mut frame = self.spare.take()?;
        frame.reset();
        Some(frame)
    }
}

impl Egress for SearchEgress {
    /// A copy would not be sent, so none is made.
    fn buffer(&mut self, _len: usize) -> Option<Frame> {
        None
    }

    fn controller_buffer(&mut self, _len: usize, _lane: Lane) -> Option<Frame> {
        None
    }

    fn transmit(&mut self, _port: PortNo, _queue: QueueId, frame: Frame) -> Result<(), (Frame, DropReason)> {
        self.free(frame);
        Ok(())
    }

    fn transmit_all(&mut self, _port: PortNo, _lane: Lane, frames: &mut ArrayVec<Frame, BURST>) -> bool {
        frames.drain(..).for_each(|frame| self.free(frame));
        true
    }

    fn report(&mut self, _event: Event) -> Result<(), Event> {
        Ok(())
    }

    fn set_aside(&mut self, frame: Frame) -> Result<Frame, Frame> {
        Err(frame)
    }

    fn free(&mut self, frame: Frame) {
        debug_assert!(self.spare.is_none(), "one packet is searched at a time");
        self.spare = Some(frame);
    }

    fn may_hold(&self, _frame: &Frame, _share: BacklogShare) -> bool {
        true
    }
}
