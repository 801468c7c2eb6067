// SPDX-License-Identifier: Apache-2.0
//! What the packets of a burst send. A burst goes table by table, but what its packets send leaves packet by packet:
//! so packets of one flow, and all others of a queue, keep their order on every port.

use crate::PacketIn;
use crate::level::Level;
use crate::packet::Packet;
use flow::PortNo;
use frame::Frame;

/// No place in the list.
const NOWHERE: u32 = u32::MAX;

/// Copies and reports of all packets in the pipeline at most; frames that leave themselves apart. A burst floods 256 ports.
const OUTS: usize = 16_384;

/// So many of them are for low-latency packets only: others, which may wait with what they send, leave room for a burst.
const RESERVED: usize = OUTS / 2;

/// One thing sent.
#[derive(Debug)]
pub(crate) enum Out {
    /// A frame for a port's queue.
    Copy { port: PortNo, queue: u32, frame: Frame },
    /// A packet for the controller.
    Report(PacketIn),
    /// Has left.
    Gone,
}

/// A packet's part of the list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    pub first: u32,
    last: u32,
}

impl Chain {
    /// True for a packet that sends nothing but itself.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.first == NOWHERE
    }
}

impl Default for Chain {
    fn default() -> Self {
        Self { first: NOWHERE, last: NOWHERE }
    }
}

/// All that packets in the pipeline send, chained by packet.
#[derive(Debug)]
pub(crate) struct Outs {
    list: Vec<(Out, u32)>,
    /// The first of the places that are free again, chained as well.
    free: u32,
    used: usize,
}

impl Outs {
    pub fn new() -> Self {
        Self { list: Vec::with_capacity(OUTS), free: NOWHERE, used: 0 }
    }

    /// How much of the list is in use.
    pub fn level(&self) -> Level {
        Level::of("copies", self.used, OUTS)
    }

    /// Adds to what the packet sends; given back without room.
    pub fn push(&mut self, packet: &mut Packet, out: Out) -> Result<(), Out> {
        if self.used >= OUTS - if packet.low_latency { 0 } else { RESERVED } {
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
        match self.list.get_mut(packet.outs.last as usize) {
            Some((_, next)) => *next = at,
            None => packet.outs.first = at,
        }
        packet.outs.last = at;
        Ok(())
    }

    /// Takes what stands at a place, which is free then, and tells the packet's next one.
    pub fn take(&mut self, at: u32) -> Option<(Out, u32)> {
        let (out, next) = self.list.get_mut(at as usize)?;
        let next = std::mem::replace(next, std::mem::replace(&mut self.free, at));
        self.used -= 1;
        Some((std::mem::replace(out, Out::Gone), next))
    }

    /// What a packet sends, in order, beside the frame that leaves itself.
    pub fn of(&self, packet: &Packet) -> impl Iterator<Item = &Out> {
        let mut at = packet.outs.first;
        std::iter::from_fn(move || {
            let (out, next) = self.list.get(at as usize)?;
            at = *next;
            Some(out)
        })
    }
}
