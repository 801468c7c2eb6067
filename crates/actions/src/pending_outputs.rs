// SPDX-License-Identifier: Apache-2.0
//! Pending outputs of the packets in a worker.
//!
//! A burst is processed table by table, but its outputs leave packet by packet. This keeps the order of
//! packets of one flow, and of all packets of one receive queue, on every port.

use dataplane::{PacketInEvent, Question, Usage};
use flow::{PacketInReason, PortNo, QueueId};
use frame::{Frame, Lane};

/// Index that marks the end of a list.
const NOWHERE: u32 = u32::MAX;

/// Maximum number of pending copies and packet-ins of all packets in a worker. Frames that leave without
/// a copy do not count. Normal packets may use half of the places, which is enough for a burst of 32 packets
/// to flood 256 ports.
const PENDING_OUTPUTS: usize = 16_384;

/// Places reserved for low-latency packets. Normal packets may wait in the backlog with their outputs, and
/// must not use up the capacity that a low-latency burst needs.
const RESERVED: usize = PENDING_OUTPUTS / 2;

/// One pending output.
#[derive(Debug)]
pub enum PendingOutput {
    /// A frame for an egress queue of a port.
    Copy {
        /// Port by which the frame leaves.
        port: PortNo,
        /// Egress queue of the port.
        queue: QueueId,
        /// The frame.
        frame: Frame,
    },
    /// A packet for the controller.
    Report(PacketInEvent),
    /// The output was already taken.
    Gone,
}

/// A packet's list of pending outputs, as the indices of its first and its last output.
#[derive(Clone, Copy, Debug)]
pub struct OutputList {
    /// Index of the first output.
    pub first: u32,
    last: u32,
}

impl OutputList {
    /// Returns whether the packet has no pending copies or packet-ins.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        self.first == NOWHERE
    }
}

impl Default for OutputList {
    fn default() -> Self {
        Self { first: NOWHERE, last: NOWHERE }
    }
}

/// Pending outputs of all packets in a worker, as linked lists in one array.
#[derive(Debug)]
pub struct PendingOutputs {
    list: Vec<(PendingOutput, u32)>,
    /// First free place. The free places also form a linked list.
    free: u32,
    used: usize,
}

impl Default for PendingOutputs {
    fn default() -> Self {
        Self::new()
    }
}

impl PendingOutputs {
    /// Creates a list without outputs. All its memory is allocated.
    #[must_use]
    pub fn new() -> Self {
        Self { list: Vec::with_capacity(PENDING_OUTPUTS), free: NOWHERE, used: 0 }
    }

    /// Returns the number of places in use and their limit.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::of("copies", self.used, PENDING_OUTPUTS)
    }

    /// Appends an output to the list of a packet.
    ///
    /// # Errors
    /// Returns the output if no place is free for a packet of this lane.
    #[inline]
    pub fn push(
        &mut self,
        list: &mut OutputList,
        lane: Lane,
        out: PendingOutput,
    ) -> Result<(), PendingOutput> {
        let limit = match lane {
            Lane::LowLatency => PENDING_OUTPUTS,
            Lane::Normal => PENDING_OUTPUTS - RESERVED,
        };
        if self.used >= limit {
            return Err(out);
        }
        let at = if let Some(place) = self.list.get_mut(self.free as usize) {
            let at = std::mem::replace(&mut self.free, place.1);
            *place = (out, NOWHERE);
            at
        } else {
            self.list.push((out, NOWHERE));
            self.list.len() as u32 - 1
        };
        self.used += 1;
        match self.list.get_mut(list.last as usize) {
            Some((_, next)) => *next = at,
            None => list.first = at,
        }
        list.last = at;
        Ok(())
    }

    /// Takes the output at a place and frees the place. Returns the output and the index of the next output
    /// in its list.
    #[inline]
    pub fn take(&mut self, at: u32) -> Option<(PendingOutput, u32)> {
        let (out, next) = self.list.get_mut(at as usize)?;
        let next = std::mem::replace(next, std::mem::replace(&mut self.free, at));
        self.used -= 1;
        Some((std::mem::replace(out, PendingOutput::Gone), next))
    }

    /// Adds the question to the last packet-in of a list, so that the answer to it releases later packets of
    /// the flow after the answers to the other packet-ins.
    pub fn set_question(&mut self, list: OutputList, question: Question) {
        let (mut at, mut last) = (list.first, NOWHERE);
        while let Some((out, next)) = self.list.get(at as usize) {
            let is_no_match =
                matches!(out, PendingOutput::Report(report) if report.reason == PacketInReason::NoMatch);
            (at, last) = (*next, if is_no_match { at } else { last });
        }
        if let Some((PendingOutput::Report(report), _)) = self.list.get_mut(last as usize) {
            report.question = Some(question);
        }
    }

    /// Iterates over the outputs of a list in order. The list does not contain the frame that leaves without
    /// a copy.
    #[inline]
    pub fn of(&self, list: OutputList) -> impl Iterator<Item = &PendingOutput> {
        let mut at = list.first;
        std::iter::from_fn(move || {
            let (out, next) = self.list.get(at as usize)?;
            at = *next;
            Some(out)
        })
    }
}
