// SPDX-License-Identifier: Apache-2.0
//! The stage of stateless forwarding: removes tagged frames from a burst and forwards or drops them.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::probe::{Leaving, Probe, ProbeStep, Via};
use crate::slab::{PacketSlot, Slab};
use flow::{Outcome, PortNo};
use frame::{Frame, Lane};
use stateless::{StatelessForwarder, TOGETHER, TagVerdict};

impl<E: Egress> BurstContext<'_, E> {
    /// Forwards or drops tagged frames among the first `count` frames, if there is a stateless forwarder.
    /// Returns the number of the other frames. `slab` has a free slot.
    #[inline]
    pub(crate) fn stateless_stage<P: Probe>(
        &mut self,
        frames: &mut Vec<Frame>,
        count: usize,
        slab: &Slab,
        probe: &mut P,
    ) -> usize {
        let Some(forwarder) = self.stateless else { return count };
        let slot = slab.burst(1).first().copied().unwrap_or_default();
        let taken = self.pass_stateless(forwarder, frames, count, slot, probe);
        if taken > 0 {
            probe.mark(ProbeStep::Stateless, taken as u32);
        }
        count - taken
    }

    /// Forwards or drops tagged frames among the first `count` frames, and returns their number. The
    /// remaining frames keep their order. Probes see these packets one after the other, all of them in slot
    /// `slot`.
    #[inline]
    fn pass_stateless<P: Probe>(
        &mut self,
        forwarder: &StatelessForwarder,
        frames: &mut Vec<Frame>,
        count: usize,
        slot: PacketSlot,
        probe: &mut P,
    ) -> usize {
        let mut stay = 0;
        for from in (0..count).step_by(TOGETHER) {
            let to = count.min(from + TOGETHER);
            let facts = forwarder.facts(&frames[from..to]);
            for (at, facts) in (from..to).zip(facts) {
                let takes = facts.tag.is_some_and(|tag| {
                    let verdict = forwarder.forward_by_tag(self.ports, &frames[at], tag, facts.label);
                    self.take_stateless(verdict, &mut frames[at], slot, probe)
                });
                if !takes {
                    frames.swap(stay, at);
                    stay += 1;
                }
            }
        }
        frames.drain(stay..count);
        count - stay
    }

    /// Carries out the decision about one frame. Returns false if the frame goes to the tables.
    #[inline]
    fn take_stateless<P: Probe>(
        &mut self,
        verdict: TagVerdict,
        frame: &mut Frame,
        slot: PacketSlot,
        probe: &mut P,
    ) -> bool {
        if matches!(verdict, TagVerdict::Tables) {
            return false;
        }
        probe.arrives(slot, frame);
        probe.packet(PortNo(frame.meta.in_port), frame.meta.sequence);
        let sent = match verdict {
            TagVerdict::Send(port, queue, edit) => edit.make(frame).map(|()| (port, queue)),
            TagVerdict::Drop(reason) => Err(reason),
            // The early return above has handled this case.
            TagVerdict::Tables => return false,
        };
        probe.leaving(slot, &Leaving::only(sent.ok().map(|(port, _)| (port, &*frame))));
        let mut frame = std::mem::replace(frame, Frame::hollow());
        frame.meta.lane = Lane::LowLatency;
        let sent = match sent {
            Ok((port, queue)) => self.egress.transmit(port, queue, frame),
            Err(reason) => Err((frame, reason)),
        };
        let outcome = match sent {
            Ok(()) => {
                self.burst_counters.copies += 1;
                Outcome::Forwarded
            }
            Err((frame, reason)) => {
                self.egress.free(frame);
                Outcome::Dropped(reason)
            }
        };
        self.burst_counters.stateless += 1;
        self.count_outcome(outcome);
        probe.left(slot, outcome, Via::Stateless, &self.burst_counters);
        true
    }
}
