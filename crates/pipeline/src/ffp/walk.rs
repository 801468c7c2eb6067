// SPDX-License-Identifier: Apache-2.0
//! The walk: takes the packets of a burst through the tables as long as LUT records or shared tables give
//! their entries. Packets that pass all tables leave. All other packets wait at the table at which they left
//! the path.

use super::batch::{CacheHit, TableBatch};
use super::lut::Lut;
use super::queue::Queue;
use super::resolve::resolve;
use super::{FastMode, Ffp};
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::{Packet, Path, State};
use crate::probe::{Probe, ProbeStep, Via};
use crate::slab::{BURST, PacketSlot};
use dataplane::FoundBy;
use engines::NONE;
use flow::{EntryId, Limits, Next, TableId};
use tables::Table;

/// LUT of a table, and the rows of all packets that missed in any LUT.
struct Cache<'a> {
    lut: &'a mut Lut,
    rows: &'a mut [u64],
}

impl Ffp {
    /// Takes the packets of a burst through the path. `keys` must have space for the rows of a burst.
    pub fn walk<E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        packets: &mut [Packet],
        burst: &[PacketSlot],
        keys: &mut [u64],
        probe: &mut P,
    ) {
        let mut queue = Queue::enter(packets, burst);
        let mut places = [NONE; BURST];
        while let Some((number, waiting)) = queue.next(packets, burst) {
            let waiting = &waiting[..];
            let mode = &mut self.modes[number.index()];
            let slot = context.tables[number.index()].as_deref();
            let (Some((table, extractor)), false) = (slot, matches!(mode, FastMode::Closed)) else {
                for packet in waiting {
                    packets[packet.index()].path = Path::Tables;
                }
                continue;
            };
            let count = waiting.len() as u32;
            let keys = &mut keys[..waiting.len() * extractor.words()];
            let mask = if let FastMode::Lut(lut) = mode { lut.mask() } else { &[] };
            extractor.extract_masked(packets, waiting, keys, mask, context.depth);
            probe.mark(ProbeStep::Extract(number), count);
            let passed = if let FastMode::Lut(lut) = mode {
                let cleaned = lut.work();
                if cleaned > 0 {
                    probe.mark(ProbeStep::Clean, cleaned);
                }
                let cells = context.cells;
                let places = &mut places[..waiting.len()];
                let mut cache_hits = [CacheHit::default(); BURST];
                let generation = lut.generation();
                let mut doubtful = lut.is_in_flux(context.now);
                lut.probe(keys, context.now, places, |at, record| {
                    cache_hits[at] = CacheHit::of(record, cells);
                    doubtful |= record.generation != generation;
                });
                probe.mark(ProbeStep::Probe(number), count);
                if probe.compares() {
                    compare(table, keys, number, probe);
                }
                let cache_hits = &mut cache_hits[..waiting.len()];
                let batch = TableBatch { number, table, slots: waiting, keys, results: places };
                if doubtful {
                    resolve(context, lut, &batch, packets, cache_hits, probe);
                }
                let cache = Cache { lut, rows: &mut self.rows };
                let (lookups, passed) = pass(context, cache, &batch, packets, cache_hits, &mut queue, probe);
                context.counters.add_table(number, lookups, passed);
                passed
            } else {
                let mut ids = [EntryId::NONE; BURST];
                let ids = &mut ids[..waiting.len()];
                table.lookup(keys, ids);
                probe.mark(ProbeStep::Lookup(number), count);
                let batch = TableBatch { number, table, slots: waiting, keys, results: ids };
                let passed = share(context, &batch, packets, &mut queue, probe);
                context.counters.add_table(number, u64::from(count), passed);
                passed
            };
            probe.mark(ProbeStep::Execute(number), passed as u32);
        }
        finish_fast(context, packets, burst, probe);
    }
}

/// Transmits the packets that passed every table on the path.
#[inline]
fn finish_fast<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    packets: &mut [Packet],
    burst: &[PacketSlot],
    probe: &mut P,
) {
    let mut finished = 0;
    for slot in burst {
        let packet = &mut packets[slot.index()];
        if packet.path == Path::Fast {
            context.finish(packet, *slot, Via::FastPath, probe);
            finished += 1;
            packet.path = Path::Left;
        }
    }
    context.burst_counters.fast += finished;
    probe.mark(ProbeStep::Finish, finished as u32);
}

/// Runs the entries of a shared table and returns the number of packets that hit one. Packets that hit a
/// normal entry leave the path.
fn share<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    batch: &TableBatch<'_, EntryId>,
    packets: &mut [Packet],
    queue: &mut Queue,
    probe: &mut P,
) -> u64 {
    let TableBatch { number, table, slots, results: ids, .. } = *batch;
    let mut matches = 0;
    for (slot, id) in slots.iter().zip(ids) {
        let found = match packets[slot.index()].state {
            State::Waits(Next::Direct { index, .. }) => {
                Found { id: table.at_index(index), by: FoundBy::Index }
            }
            _ => Found { id: *id, by: FoundBy::Shared },
        };
        matches += u64::from(share_one(context, number, found, packets, *slot, queue, probe));
    }
    matches
}

/// Entry of a packet, and how it was found.
#[derive(Clone, Copy)]
struct Found {
    id: EntryId,
    by: FoundBy,
}

/// Runs the entry that a shared table or an index gives for a packet. Returns whether there is such an entry.
#[inline(always)]
fn share_one<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    number: TableId,
    Found { id, by }: Found,
    packets: &mut [Packet],
    slot: PacketSlot,
    queue: &mut Queue,
    probe: &mut P,
) -> bool {
    let packet = &mut packets[slot.index()];
    probe.looked_up(slot, number, by, id, packet.data.frame.len());
    let state = context.hit(packet, number, id);
    if !packet.low_latency {
        packet.path = Path::Tables;
    } else if let Some(next) = state.and_then(State::waits_for) {
        queue.add(slot, next);
    }
    state.is_some()
}

/// Runs the entry at an index of a table whose other entries are served by a LUT. Returns whether this
/// entry exists.
#[inline(never)]
fn share_indexed<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    batch: &TableBatch<'_, u32>,
    index: u32,
    packets: &mut [Packet],
    slot: PacketSlot,
    queue: &mut Queue,
    probe: &mut P,
) -> bool {
    let found = Found { id: batch.table.at_index(index), by: FoundBy::Index };
    share_one(context, batch.number, found, packets, slot, queue, probe)
}

/// Runs the entries that records and indexes give. Returns the number of packets looked up, and the number of
/// packets that hit an entry. Packets that hit no entry leave the path.
fn pass<'a, E: Egress, P: Probe>(
    context: &mut BurstContext<'a, E>,
    Cache { lut, rows }: Cache<'_>,
    batch: &TableBatch<'_, u32>,
    packets: &mut [Packet],
    cache_hits: &[CacheHit<'a>],
    queue: &mut Queue,
    probe: &mut P,
) -> (u64, u64) {
    let TableBatch { number, slots, keys, results: places, .. } = *batch;
    let (mut hits, mut normal, mut held) = (0, 0, 0);
    let (mut indexed, mut indexed_hits) = (0, 0);
    // All programs are loaded before the first packet is processed, so that the cache misses overlap.
    let mut programs = [None; BURST];
    let count = slots.len().min(BURST);
    let (slots, cache_hits) = (&slots[..count], &cache_hits[..count]);
    for at in 0..count {
        programs[at] = cache_hits[at].cell.and_then(|cell| context.program(cell));
    }
    for at in 0..count {
        let (slot, cache_hit, program) = (slots[at], &cache_hits[at], programs[at]);
        let packet = &mut packets[slot.index()];
        if let State::Waits(Next::Direct { index, .. }) = packet.state {
            indexed_hits += u64::from(share_indexed(context, batch, index, packets, slot, queue, probe));
            indexed += 1;
            continue;
        }
        let (Some(cell), Some(program)) = (cache_hit.cell, program) else {
            probe.lut_missed(slot, number);
            packet.path = Path::Missed;
            let (row, words) = (slot.index() * Limits::KEY_WORDS, lut.words());
            rows[row..][..words].copy_from_slice(&keys[at * words..][..words]);
            continue;
        };
        if program.low_latency {
            if cache_hit.fence != 0 && is_held(context, lut, places[at], cache_hit.fence, packet) {
                held += 1;
                continue;
            }
            probe.looked_up(slot, number, cache_hit.by, cache_hit.id, packet.data.frame.len());
            let state = context.enter(packet, number, cache_hit.id, cell, program);
            hits += 1;
            if let Some(next) = state.waits_for() {
                // A meter may have made the packet normal.
                if packet.low_latency {
                    queue.add(slot, next);
                } else {
                    packet.path = Path::Tables;
                }
            }
        } else {
            packet.low_latency = false;
            packet.path = Path::Tables;
            packet.known = cache_hit.id;
            packet.state = State::Known(number);
            normal += 1;
        }
    }
    lut.count(hits, normal, slots.len() as u64 - hits - normal - held - indexed);
    (hits + indexed, hits + indexed_hits)
}

/// Returns whether a packet must wait for earlier packets of its value. Clears the record's fence if it has
/// passed.
#[inline(never)]
fn is_held<E>(
    context: &BurstContext<'_, E>,
    lut: &mut Lut,
    place: u32,
    fence: u32,
    packet: &mut Packet,
) -> bool {
    if !context.window.waits(fence) {
        lut.lift_fence(place);
    } else if !context.released {
        packet.path = Path::Held;
        packet.fence = fence;
        return true;
    }
    false
}

/// Maximum number of packets looked up for comparison.
const COMPARED: usize = 16;

/// Looks up packets in the table only to measure the cost of a lookup. The lookup runs twice, and only the
/// second run, with warm caches, is measured.
#[inline(never)]
fn compare<P: Probe>(table: &Table, keys: &[u64], number: TableId, probe: &mut P) {
    let words = table.plan().words();
    if words == 0 {
        return;
    }
    let keys = &keys[..keys.len().min(COMPARED * words)];
    let mut ids = [EntryId::NONE; COMPARED];
    let ids = &mut ids[..keys.len() / words];
    table.lookup(keys, ids);
    // Zero units: the time of the first, cold lookup is not charged to any packet.
    probe.mark(ProbeStep::Lookup(number), 0);
    table.lookup(keys, ids);
    probe.mark(ProbeStep::Lookup(number), ids.len() as u32);
}
