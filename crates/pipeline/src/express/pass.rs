// SPDX-License-Identifier: Apache-2.0
//! The stage of the express path: one lookup per packet finds a record of the packet's path through all
//! tables.
//!
//! Packets with a direct path leave before they are admitted. For other packets with a record, the entries'
//! instructions run without a lookup. Packets without a record take the fast-forwarding path or the tables.
//! Records are made after the burst, so either all packets of a flow in a burst have a record, or none of
//! them has.
//!
//! If lanes are on, the record also determines a packet's lane. Low-latency packets leave immediately. Normal
//! packets wait in the backlog, together with the list of the entries that they hit, or are dropped if it has
//! no room for them. If a short burst finds nothing waiting, normal packets with a direct path leave
//! immediately as well. When a low-latency record
//! is made, earlier packets of its flow may still wait. The record then has a fence ([`crate::lanes`]), and
//! later packets of the flow are held until the fence has passed.

use super::cache::{Express, Missed};
use super::paths::HotPaths;
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::lanes::{LaneState, Queued};
use crate::packet::{self, Packet, State};
use crate::probe::{Probe, ProbeStep, Via};
use crate::slab::{BURST, Burst, PacketSlot, first_bits};
use engines::NONE;
use flow::PortNo;
use frame::{Frame, Lane};
use keys::{HopList, Hops};
use wire::Depth;

/// Consecutive packets of a burst that passed the same tables.
#[derive(Default)]
pub(super) struct Passage {
    hops: Hops,
    packets: u64,
}

impl Passage {
    /// Counts a packet. Writes the counters of the tables when a packet has passed other tables than the
    /// previous packet.
    #[inline(always)]
    pub fn add<E>(&mut self, context: &BurstContext<'_, E>, hops: HopList<'_>) {
        if !self.hops.list().has_tables_of(hops) {
            self.end(context);
            self.hops.set(hops);
        }
        self.packets += 1;
    }

    pub fn end<E>(&mut self, context: &BurstContext<'_, E>) {
        let packets = std::mem::take(&mut self.packets);
        self.hops.list().tables().for_each(|table| context.counters.add_table(table, packets, packets));
    }
}

/// Result of a burst.
pub(crate) struct Passed {
    /// Packets without a record, in order. They take the fast-forwarding path or the tables.
    pub rest: Burst,
    /// Number of packets of the burst that have left.
    pub left: usize,
    /// Number of low-latency packets of the burst that have left.
    pub low_latency: usize,
}

impl Express {
    /// Looks up the frames of a burst, all of which are from one port. Frames with a direct path leave,
    /// except normal ones if these wait. Known normal frames for which the backlog has no room are dropped.
    /// All others stay in `frames`, in order. Returns the number of low-latency packets that have left.
    /// `slots` has a free slot for each frame if a probe listens.
    pub(crate) fn pass_frames<E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        frames: &mut Vec<Frame>,
        slots: &[PacketSlot],
        lanes: LaneState,
        probe: &mut P,
    ) -> usize {
        let LaneState { queued, normal_waits, normal_room } = lanes;
        self.kept.clear();
        self.missed.clear();
        self.negative = 0;
        self.takes_over = false;
        self.asks = self.bypass.asks();
        if !self.asks {
            self.counters.bypassed(frames.len() as u64);
            return 0;
        }
        let count = frames.len().min(BURST);
        self.read_keys(frames, context.now);
        probe.mark(ProbeStep::Express, count as u32);
        let in_port = PortNo(frames.first().map_or(0, |frame| frame.meta.in_port));
        let receives = context.receives(in_port);
        // Packets with a plain record leave at once, unless the path is bypassed.
        if receives && !self.bypass.is_on() {
            self.leave_plain(context, frames, slots, normal_waits, probe);
        } else {
            self.kept.extend(0..count);
            self.unsettled = first_bits(count);
        }
        let settled = count - self.unsettled.count_ones() as usize;
        let found = if self.unsettled == 0 { 0 } else { self.find_unsettled(context, frames, queued) };
        self.acts = self.bypass.acts(count, settled + found, queued);
        self.counters.set_bypassed(self.bypass.is_on());
        if !self.acts || !receives {
            // Packets of a port that does not receive are dropped at their admission.
            self.burst.places[..count].fill(NONE);
        } else if found > 0 {
            self.leave_found(context, frames, slots, normal_waits, probe);
        }
        let left = count - self.kept.len();
        let Self { paths, batches, counters, .. } = self;
        paths.uncounted.add_packets(left as u64);
        let low_latency = batches.send(context, probe);
        context.burst_counters.express += left as u64;
        counters.hits(left as u64);
        probe.mark(ProbeStep::Leave, left as u32);
        if self.kept.len() > normal_room {
            self.drop_surplus(context, frames, slots, normal_room, probe);
        }
        low_latency
    }

    /// Finds the records of the unsettled packets. Returns the number of packets with a record of the present
    /// version.
    #[inline(never)]
    fn find_unsettled<E: Egress>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        frames: &[Frame],
        queued: Queued,
    ) -> usize {
        let count = self.unsettled.count_ones() as usize;
        let found = self.find(self.unsettled);
        let mut hits = found.hits;
        if found.outdated {
            hits -= self.verify_outdated(context, BURST - self.unsettled.leading_zeros() as usize);
        }
        if self.previous.is_some() && hits < count {
            let kept = self.kept.clone();
            hits += self.ask_previous(context, frames, &kept, queued);
        }
        hits
    }

    /// Returns whether the burst was looked up.
    #[inline]
    pub(crate) fn asks(&self) -> bool {
        self.asks
    }

    /// Processes the admitted packets of a burst that was looked up. `burst` has a slot for each frame that
    /// [`Self::pass_frames`] left in `frames`. If `lanes_on`, the path and the state of packets that must
    /// wait are set.
    pub(crate) fn pass_packets<E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        packets: &mut [Packet],
        burst: &Burst,
        lanes_on: bool,
        probe: &mut P,
    ) -> Passed {
        let mut passed = Passed { rest: Burst::new(), left: 0, low_latency: 0 };
        let mut hits = 0;
        for (slot, at) in burst.iter().zip(&self.kept) {
            let packet = &mut packets[slot.index()];
            // A packet that was dropped at its admission needs no path.
            if packet.state == State::Done {
                passed.rest.push(*slot);
                continue;
            }
            packet.data.set_layers(&self.burst.layers(*at, &packet.data.frame, Depth::None));
            let place = self.burst.places[*at];
            let fence = if lanes_on { self.store.waits_for(place, context.window) } else { None };
            if self.notes_use && place != NONE {
                self.store.hot_path(place).touch(context.now);
            }
            let Some(path) = self.path(place).or_else(|| self.previous_path(*at)) else {
                passed.rest.push(*slot);
                self.missed.push(Missed { slot: *slot, at: *at });
                continue;
            };
            // If lanes are on, a packet whose TTL expires at a low-latency entry uses no record. Otherwise
            // packets with and without a record could overtake each other.
            if lanes_on && path.expires(context, packet) {
                passed.rest.push(*slot);
                continue;
            }
            hits += 1;
            packet.hops.set(path.hops);
            packet.stations = path.stations;
            packet.record = place;
            packet.state = State::Recorded;
            if lanes_on && path.effect.lane == Lane::Normal {
                packet.low_latency = false;
                packet.path = packet::Path::Recorded;
            } else if let Some(fence) = fence {
                packet.path = packet::Path::Held;
                packet.fence = fence;
            } else {
                context.run_recorded(packet, *slot, probe);
                context.finish(packet, *slot, Via::Express, probe);
                packet.path = packet::Path::Left;
                passed.left += 1;
                passed.low_latency += usize::from(packet.low_latency);
            }
        }
        context.burst_counters.express += hits;
        self.counters.hits(hits);
        let missed = self.missed.len() as u64;
        if self.acts {
            self.counters.misses(missed)
        } else {
            self.counters.bypassed(missed)
        }
        probe.mark(if lanes_on { ProbeStep::Assign } else { ProbeStep::Recorded }, hits as u32);
        passed
    }
}
