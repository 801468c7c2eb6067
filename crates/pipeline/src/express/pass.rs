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
//! packets wait in the backlog, together with the list of the entries that they hit. When a low-latency
//! record is made, earlier packets of its flow may still wait. The record then has a fence
//! ([`crate::lanes`]), and later packets of the flow are held until the fence has passed.

use super::cache::{Express, Missed, Store};
use super::look_up::BurstKeys;
use super::path::{Directness, Effect};
use super::paths::Paths;
use super::records::Records;
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::lanes::Queued;
use crate::packet::{self, Packet, State};
use crate::port_batches::PortBatches;
use crate::probe::{Leaving, Probe, ProbeStep, Via};
use crate::slab::{BURST, Burst, PacketSlot};
use actions::TtlSpot;
use arrayvec::ArrayVec;
use dataplane::FoundBy;
use engines::NONE;
use flow::PortNo;
use frame::{Frame, Lane, prefetch, take_each};
use keys::{HopList, Hops, PathHop};
use wire::Depth;

/// Packets of a burst that passed the same tables one after the other.
#[derive(Default)]
pub(super) struct Passage {
    hops: Hops,
    packets: u64,
}

impl Passage {
    /// Counts a packet. The counters of the tables are written when the tables change.
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
    /// except normal ones if `lanes_on`. All others stay in `frames`, in order. Returns the number of
    /// low-latency packets that have left. `slots` has a free slot for each frame if a probe listens.
    pub(crate) fn pass_frames<E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        frames: &mut Vec<Frame>,
        slots: &[PacketSlot],
        lanes_on: bool,
        queued: Queued,
        probe: &mut P,
    ) -> usize {
        self.kept.clear();
        self.missed.clear();
        self.asks = self.bypass.asks();
        if !self.asks {
            self.counters.bypassed(frames.len() as u64);
            return 0;
        }
        let count = frames.len().min(BURST);
        let found = self.look_up(frames, context.now);
        let mut hits = found.hits;
        if found.outdated {
            hits -= self.verify_outdated(context, count);
        }
        if self.previous.is_some() && hits < count {
            hits += self.ask_previous(context, frames, queued);
        }
        self.acts = self.bypass.acts(count, hits, queued);
        if !self.acts {
            self.burst.places[..count].fill(NONE);
            self.takes_over = false;
        }
        self.counters.set_bypassed(self.bypass.is_on());
        probe.mark(ProbeStep::Express, count as u32);
        let in_port = PortNo(frames.first().map_or(0, |frame| frame.meta.in_port));
        if !context.receives(in_port) {
            // The port does not receive packets, so they are dropped at their admission.
            self.burst.places[..count].fill(NONE);
        }
        let Self { store, paths, burst, batches, kept, rest, counters, .. } = self;
        let mut passing = Passing { burst, paths, batches, kept, rest, slots };
        match (store, lanes_on) {
            (Store::OneLine(records), false) => {
                passing.pass::<_, false, _, _>(context, records, frames, probe)
            }
            (Store::OneLine(records), true) => passing.pass::<_, true, _, _>(context, records, frames, probe),
            (Store::TwoLines(records), false) => {
                passing.pass::<_, false, _, _>(context, records, frames, probe)
            }
            (Store::TwoLines(records), true) => {
                passing.pass::<_, true, _, _>(context, records, frames, probe)
            }
        }
        let left = count - kept.len();
        paths.uncounted.add_packets(left as u64);
        let low_latency = batches.send(context, probe);
        // Frames beyond a burst, if there are any, wait for the next call.
        rest.append(frames);
        std::mem::swap(frames, rest);
        context.burst_counters.express += left as u64;
        counters.hits(left as u64);
        probe.mark(ProbeStep::Leave, left as u32);
        low_latency
    }

    /// Returns whether the burst was looked up. Most bursts are not looked up while the path is bypassed.
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
            let Some(path) = self.paths.path(place).or_else(|| self.previous_path(*at)) else {
                passed.rest.push(*slot);
                self.missed.push(Missed { slot: *slot, at: *at });
                continue;
            };
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
        probe.mark(ProbeStep::Recorded, hits as u32);
        passed
    }
}

/// Frames of a burst, of which some leave directly.
struct Passing<'a> {
    burst: &'a BurstKeys,
    paths: &'a mut Paths,
    batches: &'a mut PortBatches,
    /// Indices of the frames that stay.
    kept: &'a mut ArrayVec<usize, BURST>,
    /// The frames that stay.
    rest: &'a mut Vec<Frame>,
    slots: &'a [PacketSlot],
}

impl Passing<'_> {
    /// Rewrites and counts the frames with a direct path, and moves them to the batches of their ports. All
    /// others stay. If `LANES`, normal frames stay, too.
    #[inline(never)]
    fn pass<const WORDS: usize, const LANES: bool, E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        records: &mut Records<WORDS>,
        frames: &mut Vec<Frame>,
        probe: &mut P,
    ) {
        let least = if LANES { Directness::LowLatency } else { Directness::Normal };
        take_each(frames, BURST, |at, mut frame| {
            let place = &self.burst.places[at % BURST];
            let slot =
                if P::LISTENS { self.slots.get(at).copied().unwrap_or_default() } else { PacketSlot(0) };
            let waits = LANES && records.waits_for(*place, context.window).is_some();
            let Paths { hot, entries, more, uncounted } = &mut *self.paths;
            let path = hot.get_mut(*place as usize);
            let path = path.filter(|path| path.effect.directness() >= least && !waits);
            let found =
                path.and_then(|path| ttl(self.burst, at, &frame, &path.effect).map(|ttl| (path, ttl)));
            let Some((path, ttl)) = found else {
                prefetch::element(entries, *place as usize);
                self.kept.push(at);
                self.rest.push(frame);
                return;
            };
            if P::LISTENS {
                probe.arrives(slot, &frame);
                probe.packet(PortNo(frame.meta.in_port), frame.meta.sequence);
                let at = *place as usize;
                for PathHop { table, entry } in
                    (HopList { first: &entries[at].first, more: &more[at] }).iter()
                {
                    probe.looked_up(slot, table, FoundBy::Express, entry, frame.len());
                }
            }
            uncounted.note(path, *place, frame.len(), context.now);
            let effect = &path.effect;
            effect.rewrite(&mut frame, ttl);
            if frame.meta.lane != effect.lane {
                frame.meta.lane = effect.lane;
            }
            if P::LISTENS {
                probe.leaving(slot, &Leaving::only(Some((effect.output, &frame))));
            }
            self.batches.add::<P>(frame, slot, effect.output, effect.lane);
        });
    }
}

/// Returns the place of a frame's TTL, or an arbitrary place if its path does not decrement the TTL. Returns
/// `None` if the TTL expires or the frame is not IP. The entries' instructions then determine what happens.
#[inline(always)]
fn ttl(burst: &BurstKeys, at: usize, frame: &Frame, effect: &Effect) -> Option<TtlSpot> {
    if !effect.decrements_ttl() {
        return Some(TtlSpot::UNKNOWN);
    }
    let mut ttl = burst.ttl(at);
    if ttl == TtlSpot::UNKNOWN {
        ttl = TtlSpot::of(&burst.layers(at, frame, Depth::L3));
    }
    frame.start().is_some_and(|start| ttl.can_decrement(start)).then_some(ttl)
}
