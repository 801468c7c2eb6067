// SPDX-License-Identifier: Apache-2.0
//! The walk: takes a burst's packets over the tables as far as LUT records carry them. Packets that pass all
//! tables leave; the others wait at the table where they left the path.

use super::lut::{Lut, Record};
use super::queue::Queue;
use super::{FastMode, Ffp};
use crate::cells::{Cell, Cells};
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::packet::{Packet, Path, State};
use crate::probe::{By, Probe, ProbeStep};
use crate::slab::BURST;
use flow::{EntryId, Limits};
use tables::{NONE, Table};

impl Ffp {
    /// Takes packets through the path. `keys` must have space for the rows of a burst.
    pub fn walk<E: Egress, P: Probe>(
        &mut self,
        context: &mut BurstContext<'_, E>,
        packets: &mut [Packet],
        burst: &[u16],
        keys: &mut [u64],
        probe: &mut P,
    ) {
        let mut queue = Queue::enter(packets, burst);
        let mut ids = [NONE; BURST];
        while let Some((number, waiting)) = queue.next(packets, burst) {
            let waiting = &waiting[..];
            let mode = &mut self.modes[usize::from(number)];
            let slot = context.tables[usize::from(number)].as_deref();
            let (Some((table, extractor)), false) = (slot, matches!(mode, FastMode::Closed)) else {
                for packet in waiting {
                    packets[usize::from(*packet)].path = Path::Tables;
                }
                continue;
            };
            let count = waiting.len() as u32;
            let ids = &mut ids[..waiting.len()];
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
                let mut cache_hits = [CacheHit::default(); BURST];
                let (generation, in_flux) = (lut.generation(), lut.is_in_flux(context.now));
                let mut doubtful = in_flux;
                lut.probe(keys, context.now, ids, |at, record| {
                    cache_hits[at] = CacheHit::of(record, cells);
                    doubtful |= record.generation != generation;
                });
                probe.mark(ProbeStep::Probe(number), count);
                if probe.compares() {
                    compare(table, keys, number, probe);
                }
                let cache_hits = &mut cache_hits[..waiting.len()];
                if doubtful {
                    let places = &ids[..];
                    resolve(
                        context,
                        (lut, table),
                        packets,
                        (waiting, places),
                        (keys, cache_hits),
                        (number, in_flux),
                        probe,
                    );
                }
                let rows = (&*keys, &mut self.rows[..]);
                let (lookups, passed) = pass(
                    context,
                    (lut, table),
                    packets,
                    (waiting, ids, cache_hits),
                    rows,
                    (number, &mut queue),
                    probe,
                );
                context.counters.add_table(number, lookups, passed);
                passed
            } else {
                table.lookup(keys, ids);
                probe.mark(ProbeStep::Lookup(number), count);
                let passed = share(context, table, packets, (waiting, ids), (number, &mut queue), probe);
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
    burst: &[u16],
    probe: &mut P,
) {
    for slot in burst {
        let slot = usize::from(*slot);
        let packet = &mut packets[slot];
        if packet.path == Path::Fast {
            context.finish(packet, slot, true, probe);
            context.burst_counters.fast += 1;
            packet.path = Path::Left;
        }
    }
}

/// Runs the entries of a shared table and returns the number of packets that hit one. Packets that hit a
/// normal entry leave the path.
fn share<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    table: &Table,
    packets: &mut [Packet],
    (waiting, ids): (&[u16], &[u32]),
    (number, queue): (u8, &mut Queue),
    probe: &mut P,
) -> u64 {
    let mut matches = 0;
    for (at, id) in waiting.iter().zip(ids) {
        let (id, by) = match packets[usize::from(*at)].state {
            State::Direct(_, index) => (table.at_index(index), By::Index),
            _ => (*id, By::Shared),
        };
        matches += u64::from(share_one(context, (id, by), packets, *at, (number, queue), probe));
    }
    matches
}

/// Runs the entry that a shared table or an index gives for a packet. Returns whether there is one.
#[inline(always)]
fn share_one<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    (id, by): (u32, By),
    packets: &mut [Packet],
    slot: u16,
    (number, queue): (u8, &mut Queue),
    probe: &mut P,
) -> bool {
    let packet = &mut packets[usize::from(slot)];
    probe.looked_up(usize::from(slot), number, by, id, packet.frame.len());
    let is_hit = context.hit(packet, number, id);
    if !packet.low_latency {
        packet.path = Path::Tables;
    } else if let Some(next) = packet.state.waits_for() {
        queue.add(slot, next);
    }
    is_hit
}

/// Runs the entry at an index of a table whose other entries are served by a LUT. Returns whether there is
/// one.
#[inline(never)]
fn share_indexed<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    (table, index): (&Table, u32),
    packets: &mut [Packet],
    slot: u16,
    place: (u8, &mut Queue),
    probe: &mut P,
) -> bool {
    share_one(context, (table.at_index(index), By::Index), packets, slot, place, probe)
}

/// Result of a LUT lookup for one packet.
#[derive(Clone, Copy)]
struct CacheHit<'a> {
    /// Cell of the entry; `None` on a miss.
    cell: Option<&'a Cell>,
    id: EntryId,
    fence: u32,
    by: By,
}

impl<'a> CacheHit<'a> {
    /// Copies a record and prefetches the entry's cell.
    #[inline(always)]
    fn of(record: &Record, cells: &'a Cells) -> Self {
        Self { cell: cells.prefetched(record.id), id: record.id, fence: record.fence, by: By::Lut }
    }
}

impl Default for CacheHit<'_> {
    fn default() -> Self {
        Self { cell: None, id: NONE, fence: 0, by: By::Lut }
    }
}

/// Looks again at packets whose record is not known to be right.
#[inline(never)]
fn resolve<'a, E: Egress, P: Probe>(
    context: &BurstContext<'a, E>,
    (lut, table): (&mut Lut, &Table),
    packets: &mut [Packet],
    (waiting, places): (&[u16], &[u32]),
    (keys, cache_hits): (&[u64], &mut [CacheHit<'a>]),
    (number, in_flux): (u8, bool),
    probe: &mut P,
) {
    let words = lut.words();
    let mut moved = false;
    if in_flux && context.window.is_empty() {
        lut.barred = false;
    }
    for (at, cache_hits) in cache_hits.iter_mut().enumerate() {
        let (slot, place) = (waiting[at], places[at]);
        // An entry reached by its index has no value, so it has no record.
        if matches!(packets[usize::from(slot)].state, State::Direct(..)) {
            continue;
        }
        if !in_flux {
            // An earlier packet of the burst may have corrected this packet's record.
            let Some(record) = lut.record(place) else { continue };
            if record.generation == lut.generation() {
                *cache_hits = CacheHit::of(record, context.cells);
                continue;
            }
        }
        let key = &keys[at * words..][..words];
        let found = doubt(context, (lut, table), packets, (slot, place, number), key, &mut moved, probe);
        *cache_hits = found.map_or_else(CacheHit::default, |(by, record)| CacheHit {
            by,
            ..CacheHit::of(&record, context.cells)
        });
    }
}

/// Runs the entries that records and indexes give. Returns the number of packets looked up and of those that
/// hit an entry. All other packets leave the path.
fn pass<'a, E: Egress, P: Probe>(
    context: &mut BurstContext<'a, E>,
    (lut, table): (&mut Lut, &Table),
    packets: &mut [Packet],
    (waiting, places, cache_hits): (&[u16], &[u32], &[CacheHit<'a>]),
    (keys, rows): (&[u64], &mut [u64]),
    (number, queue): (u8, &mut Queue),
    probe: &mut P,
) -> (u64, u64) {
    let (mut hits, mut normal, mut held) = (0, 0, 0);
    let (mut indexed, mut indexed_hits) = (0, 0);
    // All programs are loaded before the first packet is processed, so that the cache misses overlap.
    let mut programs = [None; BURST];
    let count = waiting.len().min(BURST);
    let (waiting, cache_hits) = (&waiting[..count], &cache_hits[..count]);
    for at in 0..count {
        programs[at] = cache_hits[at].cell.and_then(|cell| context.program(cell));
    }
    for at in 0..count {
        let (slot, cache_hits, program) = (waiting[at], &cache_hits[at], programs[at]);
        let packet = &mut packets[usize::from(slot)];
        if let State::Direct(_, index) = packet.state {
            indexed_hits +=
                u64::from(share_indexed(context, (table, index), packets, slot, (number, queue), probe));
            indexed += 1;
            continue;
        }
        let (Some(cell), Some(program)) = (cache_hits.cell, program) else {
            probe.lut_missed(usize::from(slot), number);
            packet.path = Path::Missed;
            let (row, words) = (usize::from(slot) * Limits::KEY_WORDS, lut.words());
            rows[row..][..words].copy_from_slice(&keys[at * words..][..words]);
            continue;
        };
        if program.low_latency {
            if cache_hits.fence != 0 && is_held(context, lut, places[at], cache_hits.fence, packet) {
                held += 1;
                continue;
            }
            probe.looked_up(usize::from(slot), number, cache_hits.by, cache_hits.id, packet.frame.len());
            let state = context.enter(packet, number, cache_hits.id, cell, program);
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
            packet.state = State::Known(number, cache_hits.id);
            normal += 1;
        }
    }
    lut.count(hits, normal, waiting.len() as u64 - hits - normal - held - indexed);
    (hits + indexed, hits + indexed_hits)
}

/// Returns whether a packet must wait for earlier packets of its value. Clears a fence that has passed.
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

/// Resolves a packet's value while the LUT alone cannot: a change is in progress, the previous LUT serves as
/// well, or the record must be verified.
#[inline(never)]
fn doubt<E: Egress, P: Probe>(
    context: &BurstContext<'_, E>,
    (lut, table): (&mut Lut, &Table),
    packets: &mut [Packet],
    (slot, place, number): (u16, u32, u8),
    key: &[u64],
    moved: &mut bool,
    probe: &mut P,
) -> Option<(By, Record)> {
    if place == NONE {
        // Earlier packets of this value in the burst passed by a record inherited for them. This packet uses
        // the same record, even if `barred` was set since, because later packets will find that record, too.
        if *moved && let Some(record) = lut.record(lut.find(key, lut.hash(key))) {
            return Some((By::Inherited, *record));
        }
        if lut.barred {
            return None;
        }
        let inherited = lut.ask_previous(packets, slot, key, context.now);
        *moved |= inherited.is_some();
        return inherited.map(|record| (By::Inherited, record));
    }
    // A newly learned record may have replaced the one found at `place`. The packet then misses, and does not
    // search for its value elsewhere: earlier packets of the value may have missed as well and must not be
    // overtaken.
    if *moved && !lut.has(place, key) || lut.is_outdated(place) {
        // Later packets must not inherit a record either while these wait.
        lut.barred = true;
        return None;
    }
    let record = lut.record(place).copied()?;
    if record.generation == lut.generation() {
        return Some((By::Lut, record));
    }
    probe.mark(ProbeStep::Execute(number), 0);
    let record = verify(context, lut, table, place, key);
    probe.mark(ProbeStep::Verify(number), 1);
    record.map(|record| (By::Verified, record))
}

/// Maximum number of packets looked up for comparison.
const COMPARED: usize = 16;

/// Looks up packets in the table only to measure its cost. The lookup runs twice, so that the table is as
/// warm as its LUT when it is measured.
#[inline(never)]
fn compare<P: Probe>(table: &Table, keys: &[u64], number: u8, probe: &mut P) {
    let words = table.plan().words();
    if words == 0 {
        return;
    }
    let keys = &keys[..keys.len().min(COMPARED * words)];
    let mut ids = [NONE; COMPARED];
    let ids = &mut ids[..keys.len() / words];
    table.lookup(keys, ids);
    // Zero units: the time of the cold lookup is charged to no packet.
    probe.mark(ProbeStep::Lookup(number), 0);
    table.lookup(keys, ids);
    probe.mark(ProbeStep::Lookup(number), ids.len() as u32);
}

/// Verifies a record against the table and corrects it. Returns `None` if the value no longer hits an entry.
#[inline(never)]
fn verify<E: Egress>(
    context: &BurstContext<'_, E>,
    lut: &mut Lut,
    table: &Table,
    place: u32,
    key: &[u64],
) -> Option<Record> {
    let search = || {
        let mut id = [NONE];
        table.lookup(key, &mut id);
        (id[0] != NONE).then_some(id[0])
    };
    let entry = |id| context.entry(id).map(|(cell, program)| (cell.priority(), program.low_latency));
    lut.verify(place, key, search, entry)
}
