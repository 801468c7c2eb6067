// SPDX-License-Identifier: Apache-2.0
//! Collects the frames of a burst by output port, so that each port gets all its frames at once.
//!
//! The frames of a flow leave by one port in one lane, so they keep their order.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::probe::{Probe, Via};
use crate::slab::{BURST, Burst, PacketSlot};
use flow::{Outcome, PortNo, QueueId};
use frame::{Frame, Lane};

/// Number of remembered batches. The low bits of a port number select one.
const GUESSES: usize = 256;

/// Frames that leave by one port in one lane, in order. The alignment makes the size a power of two, so that
/// a shift gives the address of a batch.
#[derive(Debug)]
#[repr(align(128))]
struct PortBatch {
    way: Way,
    /// At most [`BURST`] frames.
    frames: Vec<Frame>,
    /// Slots of the packets, if a probe listens.
    slots: Burst,
}

/// Port and lane of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way(u64);

impl Way {
    /// Value of an unused batch. No port and lane have this value.
    const NONE: Self = Self(u64::MAX);

    #[inline(always)]
    fn new(port: PortNo, lane: Lane) -> Self {
        Self(u64::from(port.0) << 1 | lane as u64)
    }

    fn port(self) -> PortNo {
        PortNo((self.0 >> 1) as u32)
    }

    fn lane(self) -> Lane {
        if self.0 & 1 == Lane::LowLatency as u64 { Lane::LowLatency } else { Lane::Normal }
    }
}

/// Frames of a burst, collected by port and lane.
#[derive(Debug)]
pub(crate) struct PortBatches {
    /// One batch for each frame of a burst. Between two bursts, all batches are empty and unused.
    batches: Box<[PortBatch; BURST]>,
    /// Number of batches in use. They are in the order of their first frames.
    used: usize,
    /// Index of the batch used last, by the low bits of the port number. The batch may belong to another port
    /// or lane now.
    guesses: [u8; GUESSES],
}

impl PortBatches {
    pub fn new() -> Self {
        let batch = |_| PortBatch { way: Way::NONE, frames: Vec::with_capacity(BURST), slots: Burst::new() };
        Self { batches: Box::new(std::array::from_fn(batch)), used: 0, guesses: [0; GUESSES] }
    }

    /// Adds a frame, which leaves by a port in a lane. At most [`BURST`] frames are added before they are
    /// [sent](Self::send).
    #[inline(always)]
    pub fn add<P: Probe>(&mut self, frame: Frame, slot: PacketSlot, port: PortNo, lane: Lane) {
        let way = Way::new(port, lane);
        let guess = usize::from(self.guesses[port.0 as usize % GUESSES]) % BURST;
        let at = if self.batches[guess].way == way { guess } else { self.find(way) };
        let batch = &mut self.batches[at % BURST];
        batch.frames.push(frame);
        if P::LISTENS {
            batch.slots.push(slot);
        }
    }

    /// Returns the index of the batch for a port and lane, and starts the batch if there is none.
    #[inline(never)]
    fn find(&mut self, way: Way) -> usize {
        let at = self.batches.iter().take(self.used).position(|batch| batch.way == way);
        let at = at.unwrap_or_else(|| {
            // The frames of a burst need at most one batch each.
            let at = self.used.min(BURST - 1);
            self.batches[at].way = way;
            self.used = at + 1;
            at
        });
        self.guesses[way.port().0 as usize % GUESSES] = at as u8;
        at
    }

    /// Gives all collected frames to the egress, and counts their outcomes. Returns the number of low-latency
    /// frames.
    #[inline]
    pub fn send<E: Egress, P: Probe>(&mut self, context: &mut BurstContext<'_, E>, probe: &mut P) -> usize {
        let mut low_latency = 0;
        for batch in self.batches.iter_mut().take(std::mem::take(&mut self.used)) {
            let way = std::mem::replace(&mut batch.way, Way::NONE);
            let count = batch.frames.len();
            low_latency += if way.lane() == Lane::LowLatency { count } else { 0 };
            if !context.egress.transmit_all(way.port(), way.lane(), &mut batch.frames) {
                batch.send_singly(way.port(), context, probe);
                continue;
            }
            context.burst_counters.copies += count as u64;
            context.burst_counters.forwarded += count as u64;
            if P::LISTENS {
                for slot in batch.slots.drain(..) {
                    probe.left(slot, Outcome::Forwarded, Via::Express, &context.burst_counters);
                }
            }
        }
        low_latency
    }
}

impl PortBatch {
    /// Gives the frames to the egress one by one, because it may not take all of them.
    #[inline(never)]
    fn send_singly<E: Egress, P: Probe>(
        &mut self,
        port: PortNo,
        context: &mut BurstContext<'_, E>,
        probe: &mut P,
    ) {
        let mut slots = self.slots.drain(..);
        for frame in self.frames.drain(..) {
            let outcome = match context.egress.transmit(port, QueueId(0), frame) {
                Ok(()) => {
                    context.burst_counters.copies += 1;
                    Outcome::Forwarded
                }
                Err((frame, reason)) => {
                    context.egress.free(frame);
                    Outcome::Dropped(reason)
                }
            };
            context.burst_counters.outcome(outcome);
            if let Some(slot) = slots.next() {
                probe.left(slot, outcome, Via::Express, &context.burst_counters);
            }
        }
    }
}
