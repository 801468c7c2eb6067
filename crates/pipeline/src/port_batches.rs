// SPDX-License-Identifier: Apache-2.0
//! Collects the frames of a burst by output port and lane, so that each port gets all its frames at once.
//!
//! The frames of a flow leave by one port in one lane, so they keep their order.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::probe::{Probe, Via};
use crate::slab::{BURST, Burst, PacketSlot};
use arrayvec::ArrayVec;
use flow::{Limits, Outcome, PortNo, QueueId};
use frame::{Frame, Lane};

/// Maximum number of ways (pairs of port and lane).
const WAYS: usize = 2 * Limits::PORTS;

/// Number of guesses for the index of a way (port and lane). The low bits of the port number select a guess.
const GUESSES: usize = 256;

/// Value for a way (port and lane) that has no batch in the present burst.
const NO_BATCH: u8 = u8::MAX;

/// Port and lane by which frames leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    port: PortNo,
    lane: Lane,
}

/// Index of a pair of port and lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WayIndex(u16);

impl WayIndex {
    pub const FIRST: Self = Self(0);
}

/// Frames of a burst that leave by one port in one lane, in order.
#[derive(Debug)]
struct PortBatch {
    way: WayIndex,
    frames: ArrayVec<Frame, BURST>,
    /// Slots of the packets, if a probe listens.
    slots: Burst,
}

/// Frames of a burst, collected by port and lane. Between two bursts, all batches are empty.
#[derive(Debug)]
pub(crate) struct PortBatches {
    /// One batch for each frame of a burst. The batches in use are the first ones, in the order of their
    /// first frames.
    batches: [PortBatch; BURST],
    used: usize,
    /// Index of each way's batch in the present burst, or [`NO_BATCH`]. A way is a pair of port and lane.
    batch_of: [u8; WAYS],
    /// Ports and lanes that have an index.
    ways: Vec<Way>,
    /// The index that was looked up last, for each value of a port number's low bits.
    guesses: [u16; GUESSES],
}

impl PortBatches {
    pub fn new() -> Self {
        let batch = |_| PortBatch { way: WayIndex::FIRST, frames: ArrayVec::new(), slots: Burst::new() };
        Self {
            batches: std::array::from_fn(batch),
            used: 0,
            batch_of: [NO_BATCH; WAYS],
            ways: Vec::with_capacity(WAYS),
            guesses: [0; GUESSES],
        }
    }

    /// Returns the index of a port and a lane. The index stays valid until [`Self::forget`]. Returns `None`
    /// if no index is free.
    pub fn index_of(&mut self, port: PortNo, lane: Lane) -> Option<WayIndex> {
        let way = Way { port, lane };
        let guess = &mut self.guesses[port.0 as usize % GUESSES];
        if self.ways.get(usize::from(*guess)) != Some(&way) {
            let known = self.ways.iter().position(|known| *known == way);
            let at = known.unwrap_or(self.ways.len());
            if known.is_none() {
                if at == WAYS {
                    return None;
                }
                self.ways.push(way);
            }
            *guess = at as u16;
        }
        Some(WayIndex(*guess))
    }

    /// Frees all indices. The caller must not use any of them again.
    pub fn forget(&mut self) {
        debug_assert_eq!(self.used, 0, "indices are freed between bursts");
        self.ways.clear();
    }

    /// Adds a frame to the batch of this port and lane. At most [`BURST`] frames are added before they are
    /// [sent](Self::send).
    #[inline(always)]
    pub fn add<P: Probe>(&mut self, frame: Frame, slot: PacketSlot, to: WayIndex) {
        let at = &mut self.batch_of[usize::from(to.0) % WAYS];
        if *at == NO_BATCH {
            *at = self.used as u8;
            self.batches[self.used % BURST].way = to;
            self.used += 1;
        }
        let batch = &mut self.batches[usize::from(*at) % BURST];
        batch.frames.push(frame);
        if P::LISTENS {
            batch.slots.push(slot);
        }
    }

    /// Gives all collected frames to the egress, and counts their outcomes. Returns the number of low-latency
    /// frames.
    #[inline]
    pub fn send<E: Egress, P: Probe>(&mut self, context: &mut BurstContext<'_, E>, probe: &mut P) -> usize {
        let mut low_latency = 0;
        for batch in self.batches.iter_mut().take(std::mem::take(&mut self.used)) {
            let way = usize::from(batch.way.0) % WAYS;
            self.batch_of[way] = NO_BATCH;
            low_latency += batch.send(self.ways[way], context, probe);
        }
        low_latency
    }
}

impl PortBatch {
    /// Gives the frames to the egress. Returns the number of low-latency frames.
    #[inline]
    fn send<E: Egress, P: Probe>(
        &mut self,
        Way { port, lane }: Way,
        context: &mut BurstContext<'_, E>,
        probe: &mut P,
    ) -> usize {
        let count = self.frames.len();
        let is_low_latency = lane == Lane::LowLatency;
        // A received frame is already marked as normal.
        if is_low_latency {
            self.frames.iter_mut().for_each(|frame| frame.meta.lane = Lane::LowLatency);
        }
        debug_assert!(self.frames.iter().all(|frame| frame.meta.lane == lane));
        if context.egress.transmit_all(port, lane, &mut self.frames) {
            context.burst_counters.copies += count as u64;
            context.burst_counters.forwarded += count as u64;
            if P::LISTENS {
                for slot in self.slots.drain(..) {
                    probe.left(slot, Outcome::Forwarded, Via::Express, &context.burst_counters);
                }
            }
        } else {
            self.send_singly(port, context, probe);
        }
        if is_low_latency { count } else { 0 }
    }

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
            context.count_outcome(outcome);
            if let Some(slot) = slots.next() {
                probe.left(slot, outcome, Via::Express, &context.burst_counters);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_and_lane_has_an_index_of_its_own() {
        let mut batches = PortBatches::new();
        // Ports whose numbers have equal low bits share a guess.
        let ports = || (0..Limits::PORTS as u32).map(|number| PortNo(number * GUESSES as u32 / 4));
        let ways = || ports().flat_map(|port| [(port, Lane::Normal), (port, Lane::LowLatency)]);
        let indices: Vec<_> = ways().map(|(port, lane)| batches.index_of(port, lane).unwrap()).collect();
        assert!(indices.iter().zip(0..).all(|(index, number)| *index == WayIndex(number)));
        let again: Vec<_> = ways().map(|(port, lane)| batches.index_of(port, lane).unwrap()).collect();
        assert_eq!(indices, again);
        assert_eq!(batches.index_of(PortNo(7), Lane::Normal), None, "all indices belong to other ways");
        batches.forget();
        assert_eq!(batches.index_of(PortNo(7), Lane::Normal), Some(WayIndex(0)));
        assert_eq!(batches.index_of(PortNo(7), Lane::LowLatency), Some(WayIndex(1)));
    }
}
