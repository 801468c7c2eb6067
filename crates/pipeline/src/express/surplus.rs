// SPDX-License-Identifier: Apache-2.0
//! Drops known normal packets for which the backlog has no room. Before admission, a drop costs least, and
//! under overload most packets are dropped.

use super::cache::Express;
use super::leave::put_back;
use super::paths::HotPaths;
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::probe::{Leaving, Probe, ProbeStep, Via};
use crate::slab::{BURST, PacketSlot};
use backlog::BacklogShare;
use engines::NONE;
use flow::{Outcome, PortNo};
use frame::{Frame, Lane, take_each};
use keys::HopList;
use wire::Depth;

impl Express {
    /// Drops known normal frames, except the first `room` of them. A frame is known if it has a plain record.
    /// `slots` has a free slot for each frame if a probe listens.
    #[inline(never)]
    pub(super) fn drop_surplus<E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        frames: &mut Vec<Frame>,
        slots: &[PacketSlot],
        mut room: usize,
        probe: &mut P,
    ) {
        let reason = BacklogShare::Normal.refused();
        let Self { store, paths, burst, kept, rest, unsettled, counters, .. } = self;
        let indices = std::mem::take(kept);
        take_each(frames, indices.len(), |number, frame| {
            let at = indices[number] % BURST;
            let place = burst.places[at];
            // A bypassed burst has no places.
            let is_settled = place != NONE && *unsettled >> at & 1 == 0;
            // Admission drops a fragment as such.
            let is_refused = context.settings.drop_fragments && burst.layers(at, &frame, Depth::L4).fragment;
            let is_normal = is_settled && !is_refused && {
                let effect = &store.hot_path(place).effect;
                // A packet whose TTL expires may leave the fast-forwarding path at a low-latency entry.
                let expires =
                    || !effect.is_direct() || !effect.may_rewrite(&frame, burst.located_ttl(at, &frame));
                effect.lane == Lane::Normal && !(effect.decrements_ttl() && expires())
            };
            if !is_normal || room > 0 {
                room -= usize::from(is_normal);
                kept.push(at);
                return rest.push(frame);
            }
            let outcome = Outcome::Dropped(reason);
            context.count_outcome(outcome);
            if P::LISTENS {
                let place = place as usize;
                let hops = HopList { first: &paths.entries[place].first, more: &paths.more[place] };
                let slot = slots.get(at).copied().unwrap_or_default();
                probe.arrives(slot, &frame);
                probe.packet(PortNo(frame.meta.in_port), frame.meta.sequence);
                probe.refused(&frame, hops.tables().next(), reason);
                probe.leaving(slot, &Leaving::only(None));
                probe.left(slot, outcome, Via::Tables, &context.burst_counters);
            }
            context.egress.free(frame);
        });
        let dropped = (indices.len() - kept.len()) as u64;
        put_back(frames, rest);
        context.burst_counters.express += dropped;
        counters.hits(dropped);
        probe.mark(ProbeStep::Surplus, dropped as u32);
    }
}
