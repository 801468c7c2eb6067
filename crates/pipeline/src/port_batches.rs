// SPDX-License-Identifier: Apache-2.0
//! Frames of a burst that leave, collected by port, so that each port gets all of them at once.
//!
//! The frames of a flow leave by one port in one lane, so they keep their order.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::probe::{Probe, Via};
use crate::slab::{BURST, Burst, PacketSlot};
use arrayvec::ArrayVec;
use flow::{Outcome, PortNo, QueueId};
use frame::{Frame, Lane};

/// Number of low port numbers for which the batch used last is remembered.
const GUESSES: usize = 256;

/// Batch of a frame that stays.
const STAYS: u8 = BURST as u8;

/// Frames that leave by one port in one lane, in order.
#[derive(Debug)]
struct PortBatch {
    /// At most [`BURST`] frames.
    frames: Vec<Frame>,
    /// Slots of the packets, if a probe listens.
    slots: Burst,
}

/// Port and lane of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way(u64);

impl Way {
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
    /// Ways of the batches in use, in the order of their first frames.
    ways: ArrayVec<Way, BURST>,
    /// Room for a batch per frame. All are empty between two bursts.
    batches: Box<[PortBatch]>,
    /// Index of the batch that was used last for each low port number. The batch may have another way.
    guesses: [u8; GUESSES],
    /// Index of the batch of each frame, or [`STAYS`].
    assigned: [u8; BURST],
}

impl PortBatches {
    pub fn new() -> Self {
        let batch = || PortBatch { frames: Vec::with_capacity(BURST), slots: Burst::new() };
        Self {
            ways: ArrayVec::new(),
            batches: (0..BURST).map(|_| batch()).collect(),
            guesses: [0; GUESSES],
            assigned: [STAYS; BURST],
        }
    }

    /// Lets the frame with this index leave by a port in a lane.
    #[inline(always)]
    pub fn assign(&mut self, at: usize, port: PortNo, lane: Lane) {
        let way = Way::new(port, lane);
        let guess = self.guesses[port.0 as usize % GUESSES];
        let is_right = self.ways.get(usize::from(guess)) == Some(&way);
        self.assigned[at % BURST] = if is_right { guess } else { self.find(way) };
    }

    /// Lets the frame with this index stay.
    #[inline(always)]
    pub fn keep(&mut self, at: usize) {
        self.assigned[at % BURST] = STAYS;
    }

    /// Returns the index of the batch with a way, and begins the batch if there is none.
    #[inline(never)]
    fn find(&mut self, way: Way) -> u8 {
        let known = self.ways.iter().position(|known| *known == way);
        let at = known.unwrap_or(self.ways.len());
        if known.is_none() {
            // There are at most as many ways as frames in a burst.
            let _ = self.ways.try_push(way);
        }
        self.guesses[way.port().0 as usize % GUESSES] = at as u8;
        at as u8
    }

    /// Collects the first `count` frames of a burst, each of which was assigned to a batch or stays. Calls
    /// `stays` with each frame that stays, and with its index.
    #[inline(always)]
    pub fn collect<P: Probe>(
        &mut self,
        frames: &mut Vec<Frame>,
        count: usize,
        slots: &[PacketSlot],
        mut stays: impl FnMut(usize, Frame),
    ) {
        let Self { ways, batches, assigned, .. } = self;
        if let ([_], [batch, ..]) = (&ways[..], &mut batches[..])
            && !P::LISTENS
            && count == frames.len()
            && assigned.iter().take(count).all(|assigned| *assigned == 0)
        {
            return batch.frames.append(frames);
        }
        for (at, frame) in frames.drain(..count).enumerate() {
            match batches.get_mut(usize::from(assigned[at % BURST])) {
                Some(batch) => {
                    batch.frames.push(frame);
                    if P::LISTENS {
                        batch.slots.push(slots.get(at).copied().unwrap_or_default());
                    }
                }
                None => stays(at, frame),
            }
        }
    }

    /// Gives all collected frames to the egress, and counts their outcomes. Returns the number of low-latency
    /// frames.
    #[inline]
    pub fn send<E: Egress, P: Probe>(&mut self, context: &mut BurstContext<'_, E>, probe: &mut P) -> usize {
        let mut low_latency = 0;
        for (way, batch) in self.ways.drain(..).zip(&mut self.batches) {
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
