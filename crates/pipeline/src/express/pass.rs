// SPDX-License-Identifier: Apache-2.0
//! The stage of the express path: one lookup per packet finds a record of the packet's whole way.
//!
//! Packets with a direct way leave before they are admitted. For other packets with a record, the entries'
//! instructions run without a lookup. Packets without a record take the general way. Records are made when
//! the whole burst has left, so packets of one flow in a burst all have a record, or none has.

use super::cache::{Express, Missed, Store};
use super::key::ExpressKey;
use super::path::{Direct, Path};
use super::records::Records;
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::hops::{Hop, Hops};
use crate::packet::{Packet, State};
use crate::probe::{Leaving, Probe, ProbeStep, Via};
use crate::slab::{BURST, Burst, PacketSlot};
use dataplane::FoundBy;
use engines::NONE;
use flow::{Nanos, Outcome, PortNo, QueueId};
use frame::Frame;
use wire::ethernet::ETHERNET_BYTES;
use wire::{Depth, Layers};

/// Packets of a burst that passed the same tables one after the other.
#[derive(Default)]
struct Passage {
    hops: Hops,
    packets: u64,
}

impl Passage {
    /// Counts a packet. The counters of the tables are written when the tables change.
    #[inline(always)]
    fn add<E>(&mut self, context: &BurstContext<'_, E>, hops: &Hops) {
        if !self.hops.has_tables_of(hops) {
            self.end(context);
            self.hops = *hops;
        }
        self.packets += 1;
    }

    fn end<E>(&mut self, context: &BurstContext<'_, E>) {
        let packets = std::mem::take(&mut self.packets);
        self.hops.tables().iter().for_each(|table| context.counters.add_table(*table, packets, packets));
    }
}

impl Express {
    /// Looks up the frames of a burst. Frames with a direct way leave. All others stay in `frames`, in order.
    /// No packet may wait in the backlog. Returns the number of low-latency packets that have left.
    /// `slot` is a free slot for the packets that leave.
    pub(crate) fn pass_frames<E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        frames: &mut Vec<Frame>,
        slot: PacketSlot,
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
        let Self { reader, store, version, keys, hashes, layers, places, .. } = self;
        for (at, frame) in frames.iter().enumerate().take(count) {
            let (bytes, layers) = (frame.bytes(), &mut layers[at]);
            *layers = Layers::default();
            locate(bytes, reader.depth(), layers);
            reader.key_of_located(bytes, layers, PortNo(frame.meta.in_port), &mut keys[at]);
            hashes[at] = reader.hash(&keys[at]);
        }
        match store {
            Store::OneLine(records) => {
                find(records, &hashes[..count], &keys[..], *version, context.now, places)
            }
            Store::TwoLines(records) => {
                find(records, &hashes[..count], &keys[..], *version, context.now, places)
            }
        }
        probe.mark(ProbeStep::Express, count as u32);
        let (mut direct, mut low_latency) = (0, 0);
        let mut passage = Passage::default();
        // Nearly always all frames of a burst are from one port.
        let mut ingress = (PortNo(0), false);
        for (at, frame) in frames.drain(..).enumerate() {
            let in_port = PortNo(frame.meta.in_port);
            if in_port != ingress.0 {
                ingress = (in_port, context.receives(in_port));
            }
            let is_received = ingress.1 && frame.len() >= ETHERNET_BYTES;
            let Some(Path { hops, direct: Some(way) }) = path_at(store, places[at]).filter(|_| is_received)
            else {
                self.rest.push(frame);
                self.kept.push(at);
                continue;
            };
            match leave(context, frame, way, hops, &mut layers[at], slot, probe) {
                Ok(()) => {
                    passage.add(context, hops);
                    direct += 1;
                    low_latency += usize::from(way.low_latency);
                }
                Err(frame) => {
                    self.rest.push(frame);
                    self.kept.push(at);
                }
            }
        }
        passage.end(context);
        std::mem::swap(frames, &mut self.rest);
        context.burst_counters.express += direct as u64;
        self.counters.hits(direct as u64);
        self.hits = direct;
        low_latency
    }

    /// Takes the admitted packets of a burst through the express path. `burst` has a slot for each frame that
    /// [`Self::pass_frames`] left. Returns the packets that take the general way, in order, and the number of
    /// low-latency packets that have left.
    pub(crate) fn pass_packets<E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        packets: &mut [Packet],
        burst: &Burst,
        probe: &mut P,
    ) -> (Burst, usize) {
        if !self.asks {
            return (burst.clone(), 0);
        }
        let (mut rest, mut hits, mut low_latency) = (Burst::new(), 0, 0);
        for (slot, at) in burst.iter().zip(&self.kept) {
            let packet = &mut packets[slot.index()];
            // A packet that was dropped at its admission has no way.
            let is_waiting = packet.state != State::Done;
            let path = path_at(&self.store, self.places[*at]).filter(|_| is_waiting);
            if let Some(path) = path {
                packet.data.set_layers(&self.layers[*at]);
                follow(context, packet, *slot, &path.hops, probe);
                low_latency += usize::from(packet.low_latency);
                hits += 1;
                continue;
            }
            rest.push(*slot);
            if is_waiting {
                packet.data.set_layers(&self.layers[*at]);
                self.missed.push(Missed { slot: *slot, at: *at });
            }
        }
        context.burst_counters.express += hits as u64;
        self.hits += hits;
        self.bypass.saw(self.hits + self.missed.len(), self.hits);
        self.counters.set_bypassed(self.bypass.is_on());
        self.counters.hits(hits as u64);
        self.counters.misses(self.missed.len() as u64);
        (rest, low_latency)
    }

    /// Makes records for the packets of the burst that have taken the general way.
    #[inline]
    pub(crate) fn learn<E>(&mut self, context: &BurstContext<'_, E>, packets: &[Packet]) {
        for number in 0..self.missed.len() {
            let Missed { slot, at } = self.missed[number];
            let packet = &packets[slot.index()];
            if let Some(path) = Path::of(context, &packet.hops, packet.data.ext.in_port()) {
                self.learn_path(at, &path);
            }
        }
        self.missed.clear();
    }
}

/// Locates headers at least to this depth. Common packets are parsed to the greatest depth at once.
#[inline]
fn locate(bytes: &[u8], depth: Depth, layers: &mut Layers) {
    if depth < Depth::L3 || !wire::locate_common(bytes, layers) {
        wire::deepen(bytes, depth, layers);
    }
}

/// Looks up keys. Stores the place of each key's record, or [`NONE`].
#[inline]
fn find<const WORDS: usize>(
    records: &mut Records<WORDS>,
    hashes: &[u64],
    keys: &[ExpressKey],
    version: u64,
    now: Nanos,
    places: &mut [u32; BURST],
) {
    records.begin(now);
    places.fill(NONE);
    hashes.iter().for_each(|hash| records.prefetch(*hash));
    for (place, hash) in places.iter_mut().zip(hashes) {
        *place = records.candidate(*hash);
    }
    for ((place, hash), key) in places.iter_mut().zip(hashes).zip(keys) {
        *place = records.find(*place, *hash, key, version);
    }
}

#[inline(always)]
fn path_at(store: &Store, place: u32) -> Option<&Path> {
    match store {
        Store::OneLine(records) => records.path(place),
        Store::TwoLines(records) => records.path(place),
    }
}

/// Rewrites a frame and sends it. Returns the unchanged frame if its TTL expires or it is not IP: the
/// entries' instructions then say what happens.
#[inline(always)]
fn leave<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    mut frame: Frame,
    way: &Direct,
    hops: &Hops,
    layers: &mut Layers,
    slot: PacketSlot,
    probe: &mut P,
) -> Result<(), Frame> {
    let (bytes, route) = (frame.len(), way.route());
    if route.dec_ttl && layers.depth < Depth::L3 {
        locate(frame.bytes(), Depth::L3, layers);
    }
    if !route.suits(frame.bytes(), layers) {
        return Err(frame);
    }
    probe.arrives(slot, &frame);
    probe.packet(PortNo(frame.meta.in_port), frame.meta.sequence);
    for Hop { table, entry } in hops.iter() {
        probe.looked_up(slot, table, FoundBy::Express, entry, bytes);
        if let Some(cell) = context.cells.get(entry) {
            cell.count(1, bytes as u64, context.now);
        }
    }
    route.rewrite(frame.bytes_mut(), layers);
    frame.meta.lane = if way.low_latency { frame::Lane::LowLatency } else { frame::Lane::Normal };
    probe.leaving(slot, &Leaving::only(Some((way.output, &frame))));
    let outcome = match context.egress.transmit(way.output, QueueId(0), frame) {
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

/// Runs the entries of a path, and lets the packet leave.
#[inline]
fn follow<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    packet: &mut Packet,
    slot: PacketSlot,
    hops: &Hops,
    probe: &mut P,
) {
    for Hop { table, entry } in hops.iter() {
        probe.looked_up(slot, table, FoundBy::Express, entry, packet.data.frame.len());
        let state = context.hit(packet, table, entry);
        context.counters.add_table(table, 1, u64::from(state.is_some()));
        // An action may end a packet early, for example a decrement of a TTL that expires.
        if state.and_then(State::waits_for).is_none() {
            break;
        }
    }
    debug_assert!(packet.state.waits_for().is_none(), "the last entry of a path leads to no table");
    context.finish(packet, slot, Via::Express, probe);
}
