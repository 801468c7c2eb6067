// SPDX-License-Identifier: Apache-2.0
//! The stage of the express path: one lookup per packet finds a record of the packet's whole way.
//!
//! Packets with a direct way leave before they are admitted. For other packets with a record, the entries'
//! instructions run without a lookup. Packets without a record take the general way. Records are made when
//! the whole burst has left, so packets of one flow in a burst all have a record, or none has.
//!
//! If lanes are on, the record also says in which lane a packet is: low-latency packets leave now, and normal
//! ones wait in the backlog with the entries that they hit. Packets of one flow may wait although the flow
//! has a low-latency record: they arrived before it was made. The record then has a fence ([`crate::lanes`]),
//! and later packets of the flow are held until it has passed.

use super::cache::{Express, Missed, Store};
use super::look_up::{BurstKeys, locate};
use super::path::Path;
use super::records::Records;
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::hops::{Hop, Hops};
use crate::lanes::Queued;
use crate::packet::{self, Packet, State};
use crate::probe::{Leaving, Probe, ProbeStep, Via};
use crate::slab::{BURST, Burst, PacketSlot};
use dataplane::FoundBy;
use engines::NONE;
use flow::{Outcome, PortNo, QueueId};
use frame::{Frame, Lane};
use wire::Layers;
use wire::ethernet::ETHERNET_BYTES;

/// Packets of a burst that passed the same tables one after the other.
#[derive(Default)]
pub(super) struct Passage {
    hops: Hops,
    packets: u64,
}

impl Passage {
    /// Counts a packet. The counters of the tables are written when the tables change.
    #[inline(always)]
    pub fn add<E>(&mut self, context: &BurstContext<'_, E>, hops: &Hops) {
        if !self.hops.has_tables_of(hops) {
            self.end(context);
            self.hops = *hops;
        }
        self.packets += 1;
    }

    pub fn end<E>(&mut self, context: &BurstContext<'_, E>) {
        let packets = std::mem::take(&mut self.packets);
        self.hops.tables().for_each(|table| context.counters.add_table(table, packets, packets));
    }
}

/// Result of a burst.
pub(crate) struct Passed {
    /// Packets that take the general way, in order.
    pub rest: Burst,
    /// Number of packets of the burst that have left.
    pub left: usize,
    /// Number of low-latency packets among them.
    pub low_latency: usize,
}

impl Express {
    /// Looks up the frames of a burst. Frames with a direct way leave, except normal ones if `lanes_on`. All
    /// others stay in `frames`, in order. Returns the number of low-latency packets that have left. `slot` is
    /// a free slot for the packets that leave.
    pub(crate) fn pass_frames<E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        frames: &mut Vec<Frame>,
        slot: PacketSlot,
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
        if self.look_up(frames, context.now) {
            self.verify_outdated(context, count);
        }
        let mut found = self.burst.places[..count].iter().filter(|place| **place != NONE).count();
        if self.previous.is_some() {
            found += self.ask_previous(context, frames, queued);
        }
        if !self.bypass.acts(count, found, queued) {
            self.burst.places[..count].fill(NONE);
            self.takes_over = false;
        }
        self.counters.set_bypassed(self.bypass.is_on());
        probe.mark(ProbeStep::Express, count as u32);
        let Self { store, burst, kept, rest, counters, .. } = self;
        let mut passing = Passing { burst, kept, rest, slot, lanes_on, left: 0, low_latency: 0 };
        match store {
            Store::OneLine(records) => passing.pass(context, records, frames, probe),
            Store::TwoLines(records) => passing.pass(context, records, frames, probe),
        }
        let (left, low_latency) = (passing.left as u64, passing.low_latency);
        // Frames beyond a burst, if there are any, wait for the next call.
        rest.append(frames);
        std::mem::swap(frames, rest);
        context.burst_counters.express += left;
        counters.hits(left);
        probe.mark(ProbeStep::Leave, left as u32);
        low_latency
    }

    /// Takes the admitted packets of a burst through the express path. `burst` has a slot for each frame that
    /// [`Self::pass_frames`] left. If `lanes_on`, packets that must wait have their path and their state set.
    pub(crate) fn pass_packets<E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        packets: &mut [Packet],
        burst: &Burst,
        lanes_on: bool,
        probe: &mut P,
    ) -> Passed {
        if !self.asks {
            return Passed { rest: burst.clone(), left: 0, low_latency: 0 };
        }
        let mut passed = Passed { rest: Burst::new(), left: 0, low_latency: 0 };
        let mut hits = 0;
        for (slot, at) in burst.iter().zip(&self.kept) {
            let packet = &mut packets[slot.index()];
            // A packet that was dropped at its admission has no way.
            if packet.state == State::Done {
                passed.rest.push(*slot);
                continue;
            }
            packet.data.set_layers(&self.burst.layers[*at]);
            let place = self.burst.places[*at];
            let fence = if lanes_on { self.store.waits_for(place, context.window) } else { None };
            let Some(path) = self.store.path(place).or_else(|| self.previous_path(*at)) else {
                passed.rest.push(*slot);
                self.missed.push(Missed { slot: *slot, at: *at });
                continue;
            };
            hits += 1;
            packet.hops = path.hops;
            packet.record = place;
            packet.state = State::Recorded;
            if lanes_on && path.lane == Lane::Normal {
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
        self.counters.misses(self.missed.len() as u64);
        probe.mark(ProbeStep::Recorded, hits as u32);
        passed
    }
}

/// Frames of a burst that leave directly.
struct Passing<'a> {
    burst: &'a mut BurstKeys,
    kept: &'a mut arrayvec::ArrayVec<usize, BURST>,
    rest: &'a mut Vec<Frame>,
    slot: PacketSlot,
    lanes_on: bool,
    left: usize,
    low_latency: usize,
}

impl Passing<'_> {
    /// Sends the frames with a direct way, and moves all others to `rest`.
    #[inline(never)]
    fn pass<const WORDS: usize, E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        records: &mut Records<WORDS>,
        frames: &mut Vec<Frame>,
        probe: &mut P,
    ) {
        let (slot, lanes_on) = (self.slot, self.lanes_on);
        let mut passage = Passage::default();
        // Nearly always all frames of a burst are from one port.
        let mut ingress = (PortNo(0), false);
        let (mut left, mut low_latency) = (0, 0);
        let count = frames.len().min(BURST);
        for (at, frame) in frames.drain(..count).enumerate() {
            let in_port = PortNo(frame.meta.in_port);
            if in_port != ingress.0 {
                ingress = (in_port, context.receives(in_port));
            }
            let is_received = ingress.1 && frame.len() >= ETHERNET_BYTES;
            let place = self.burst.places[at % BURST];
            let waits = lanes_on && is_received && records.waits_for(place, context.window).is_some();
            let path = records.path(place).filter(|path| path.is_direct() && is_received && !waits);
            let Some(path) = path.filter(|path| !(lanes_on && path.lane == Lane::Normal)) else {
                self.keep(frame, at);
                continue;
            };
            match leave(context, frame, path, &mut self.burst.layers[at % BURST], slot, probe) {
                Ok(()) => {
                    passage.add(context, &path.hops);
                    left += 1;
                    low_latency += usize::from(path.lane == Lane::LowLatency);
                }
                Err(unchanged) => self.keep(unchanged, at),
            }
        }
        passage.end(context);
        (self.left, self.low_latency) = (left, low_latency);
    }

    fn keep(&mut self, frame: Frame, at: usize) {
        self.rest.push(frame);
        self.kept.push(at);
    }
}

/// Rewrites a frame and sends it. Returns the unchanged frame if its TTL expires or it is not IP: the
/// entries' instructions then say what happens.
#[inline(always)]
fn leave<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    mut frame: Frame,
    path: &Path,
    layers: &mut Layers,
    slot: PacketSlot,
    probe: &mut P,
) -> Result<(), Frame> {
    let bytes = frame.len();
    if layers.depth < path.depth() {
        locate(&frame, path.depth(), layers);
    }
    if !path.suits(&frame, layers) {
        return Err(frame);
    }
    probe.arrives(slot, &frame);
    probe.packet(PortNo(frame.meta.in_port), frame.meta.sequence);
    count(context, path, bytes, slot, probe);
    path.rewrite(&mut frame, layers);
    frame.meta.lane = path.lane;
    probe.leaving(slot, &Leaving::only(Some((path.output, &frame))));
    let outcome = match context.egress.transmit(path.output, QueueId(0), frame) {
        Ok(()) => {
            context.burst_counters.copies += 1;
            context.burst_counters.forwarded += 1;
            Outcome::Forwarded
        }
        Err((frame, reason)) => {
            context.egress.free(frame);
            context.burst_counters.outcome(Outcome::Dropped(reason));
            Outcome::Dropped(reason)
        }
    };
    probe.left(slot, outcome, Via::Express, &context.burst_counters);
    Ok(())
}

/// Counts a packet of `bytes` bytes in the entries of its path.
#[inline(always)]
pub(super) fn count<E, P: Probe>(
    context: &BurstContext<'_, E>,
    path: &Path,
    bytes: usize,
    slot: PacketSlot,
    probe: &mut P,
) {
    for Hop { table, entry } in path.hops.iter() {
        probe.looked_up(slot, table, FoundBy::Express, entry, bytes);
        if let Some(cell) = context.cells.get(entry) {
            cell.count(1, bytes as u64, context.now);
        }
    }
}
