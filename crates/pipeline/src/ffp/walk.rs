// SPDX-License-Identifier: Apache-2.0
//! The walk: takes a burst's packets over the tables as far as records carry them, and lets those leave that got
//! through. The others wait at the table where they left the path.

use super::lut::{Lut, Record};
use super::queue::Queue;
use super::{Ffp, Way};
use crate::burst::{BURST, Run};
use crate::cells::{Cell, Cells};
use crate::counters::Counters;
use crate::output::Egress;
use crate::packet::{Packet, Path, State};
use crate::probe::{By, Probe, Step};
use flow::{EntryId, Limits};
use tables::{NONE, Table};

impl Ffp {
    /// Takes packets through the path. `keys` has room for a burst's rows.
    pub fn walk<E: Egress, P: Probe>(
        &mut self,
        run: &mut Run<'_, E>,
        packets: &mut [Packet],
        burst: &[u16],
        keys: &mut [u64],
        counters: &Counters,
        probe: &mut P,
    ) {
        let mut queue = Queue::enter(packets, burst);
        let mut ids = [NONE; BURST];
        while let Some((number, waiting)) = queue.next(packets, burst) {
            let waiting = &waiting[..];
            let way = &mut self.ways[usize::from(number)];
            let slot = run.tables[usize::from(number)].as_deref();
            let (Some((table, extractor)), false) = (slot, matches!(way, Way::Closed)) else {
                for packet in waiting {
                    packets[usize::from(*packet)].path = Path::Tables;
                }
                continue;
            };
            let count = waiting.len() as u32;
            let ids = &mut ids[..waiting.len()];
            let keys = &mut keys[..waiting.len() * extractor.words()];
            let mask = if let Way::Lut(lut) = way { lut.mask() } else { &[] };
            extractor.extract_masked(packets, waiting, keys, mask, run.depth);
            probe.mark(Step::Extract(number), count);
            let passed = if let Way::Lut(lut) = way {
                let cleaned = lut.work();
                if cleaned > 0 {
                    probe.mark(Step::Clean, cleaned);
                }
                let cells = run.cells;
                let mut told = [Told::default(); BURST];
                let (generation, in_flux) = (lut.generation(), lut.is_in_flux(run.now));
                let mut doubtful = in_flux;
                lut.probe(keys, run.now, ids, |at, record| {
                    told[at] = Told::of(record, cells);
                    doubtful |= record.generation != generation;
                });
                probe.mark(Step::Probe(number), count);
                if probe.compares() {
                    compare(table, keys, number, probe);
                }
                let told = &mut told[..waiting.len()];
                if doubtful {
                    let places = &ids[..];
                    resolve(
                        run,
                        (lut, table),
                        packets,
                        (waiting, places),
                        (keys, told),
                        (number, in_flux),
                        probe,
                    );
                }
                let rows = (&*keys, &mut self.rows[..]);
                let (lookups, passed) =
                    pass(run, (lut, table), packets, (waiting, ids, told), rows, (number, &mut queue), probe);
                counters.add_table(number, lookups, passed);
                passed
            } else {
                table.lookup(keys, ids);
                probe.mark(Step::Lookup(number), count);
                let passed = share(run, table, packets, (waiting, ids), (number, &mut queue), probe);
                counters.add_table(number, u64::from(count), passed);
                passed
            };
            probe.mark(Step::Execute(number), passed as u32);
        }
        for slot in burst {
            let slot = usize::from(*slot);
            let packet = &mut packets[slot];
            if packet.path == Path::Fast {
                run.finish(packet, slot, true, probe);
                run.tally.fast += 1;
                packet.path = Path::Left;
            }
        }
    }
}

/// Runs the entries of a shared table; returns how many packets hit one. Those that hit a normal one leave the path.
fn share<E: Egress, P: Probe>(
    run: &mut Run<'_, E>,
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
        matches += u64::from(share_one(run, (id, by), packets, *at, (number, queue), probe));
    }
    matches
}

/// Runs the entry that a shared table or an index gives for a packet; returns whether there is one.
#[inline(always)]
fn share_one<E: Egress, P: Probe>(
    run: &mut Run<'_, E>,
    (id, by): (u32, By),
    packets: &mut [Packet],
    slot: u16,
    (number, queue): (u8, &mut Queue),
    probe: &mut P,
) -> bool {
    let packet = &mut packets[usize::from(slot)];
    probe.looked_up(usize::from(slot), number, by, id, packet.frame.len());
    let is_hit = run.hit(packet, number, id);
    if !packet.low_latency {
        packet.path = Path::Tables;
    } else if let Some(next) = packet.state.waits_for() {
        queue.add(slot, next);
    }
    is_hit
}

/// Runs the entry at an index of a table that has a LUT for its other entries; returns whether there is one.
#[inline(never)]
fn share_indexed<E: Egress, P: Probe>(
    run: &mut Run<'_, E>,
    (table, index): (&Table, u32),
    packets: &mut [Packet],
    slot: u16,
    place: (u8, &mut Queue),
    probe: &mut P,
) -> bool {
    share_one(run, (table.at_index(index), By::Index), packets, slot, place, probe)
}

/// What a LUT tells of a packet's value.
#[derive(Clone, Copy)]
struct Told<'a> {
    /// The entry's, if there is one.
    cell: Option<&'a Cell>,
    id: EntryId,
    fence: u32,
    by: By,
}

impl<'a> Told<'a> {
    /// Asks for the entry's cell before it is needed.
    #[inline(always)]
    fn of(record: &Record, cells: &'a Cells) -> Self {
        Self { cell: cells.prefetched(record.id), id: record.id, fence: record.fence, by: By::Lut }
    }
}

impl Default for Told<'_> {
    fn default() -> Self {
        Self { cell: None, id: NONE, fence: 0, by: By::Lut }
    }
}

/// Asks again for the packets of whose values the LUT is not simply right.
#[inline(never)]
fn resolve<'a, E: Egress, P: Probe>(
    run: &Run<'a, E>,
    (lut, table): (&mut Lut, &Table),
    packets: &mut [Packet],
    (waiting, places): (&[u16], &[u32]),
    (keys, told): (&[u64], &mut [Told<'a>]),
    (number, in_flux): (u8, bool),
    probe: &mut P,
) {
    let words = lut.words();
    let mut moved = false;
    if in_flux && run.window.is_empty() {
        lut.barred = false;
    }
    for (at, told) in told.iter_mut().enumerate() {
        let (slot, place) = (waiting[at], places[at]);
        // Entries of a linear table have no value.
        if matches!(packets[usize::from(slot)].state, State::Direct(..)) {
            continue;
        }
        if !in_flux {
            // A packet before may have set its record right.
            let Some(record) = lut.record(place) else { continue };
            if record.generation == lut.generation() {
                *told = Told::of(record, run.cells);
                continue;
            }
        }
        let key = &keys[at * words..][..words];
        let found = doubt(run, (lut, table), packets, (slot, place, number), key, &mut moved, probe);
        *told = found.map_or_else(Told::default, |(by, record)| Told { by, ..Told::of(&record, run.cells) });
    }
}

/// Runs the entries that low-latency records and indexes give; returns how many packets it looked up and how many of them
/// hit an entry. The other packets leave the path.
fn pass<'a, E: Egress, P: Probe>(
    run: &mut Run<'a, E>,
    (lut, table): (&mut Lut, &Table),
    packets: &mut [Packet],
    (waiting, places, told): (&[u16], &[u32], &[Told<'a>]),
    (keys, rows): (&[u64], &mut [u64]),
    (number, queue): (u8, &mut Queue),
    probe: &mut P,
) -> (u64, u64) {
    let (mut hits, mut normal, mut held) = (0, 0, 0);
    let (mut indexed, mut indexed_hits) = (0, 0);
    // Of all packets before the first is served: then no load waits for another.
    let mut programs = [None; BURST];
    let count = waiting.len().min(BURST);
    let (waiting, told) = (&waiting[..count], &told[..count]);
    for at in 0..count {
        programs[at] = told[at].cell.and_then(|cell| run.program(cell));
    }
    for at in 0..count {
        let (slot, told, program) = (waiting[at], &told[at], programs[at]);
        let packet = &mut packets[usize::from(slot)];
        if let State::Direct(_, index) = packet.state {
            indexed_hits +=
                u64::from(share_indexed(run, (table, index), packets, slot, (number, queue), probe));
            indexed += 1;
            continue;
        }
        let (Some(cell), Some(program)) = (told.cell, program) else {
            probe.lut_missed(usize::from(slot), number);
            packet.path = Path::Missed;
            let (row, words) = (usize::from(slot) * Limits::KEY_WORDS, lut.words());
            rows[row..][..words].copy_from_slice(&keys[at * words..][..words]);
            continue;
        };
        if program.low_latency {
            if told.fence != 0 && is_held(run, lut, places[at], told.fence, packet) {
                held += 1;
                continue;
            }
            probe.looked_up(usize::from(slot), number, told.by, told.id, packet.frame.len());
            let state = run.enter(packet, number, told.id, cell, program);
            hits += 1;
            if let Some(next) = state.waits_for() {
                // A meter may have made it normal.
                if packet.low_latency {
                    queue.add(slot, next);
                } else {
                    packet.path = Path::Tables;
                }
            }
        } else {
            packet.low_latency = false;
            packet.path = Path::Tables;
            packet.state = State::Known(number, told.id);
            normal += 1;
        }
    }
    lut.count(hits, normal, waiting.len() as u64 - hits - normal - held - indexed);
    (hits + indexed, hits + indexed_hits)
}

/// Whether a packet must wait for earlier ones of its value. Lifts a fence that is passed.
#[inline(never)]
fn is_held<E>(run: &Run<'_, E>, lut: &mut Lut, place: u32, fence: u32, packet: &mut Packet) -> bool {
    if !run.window.waits(fence) {
        lut.lift_fence(place);
    } else if !run.released {
        packet.path = Path::Held;
        packet.fence = fence;
        return true;
    }
    false
}

/// What a packet's value resolves to while the LUT is not simply right: a change is under way, the LUT before serves
/// beside it, or the record is to be held against the table.
#[inline(never)]
fn doubt<E: Egress, P: Probe>(
    run: &Run<'_, E>,
    (lut, table): (&mut Lut, &Table),
    packets: &mut [Packet],
    (slot, place, number): (u16, u32, u8),
    key: &[u64],
    moved: &mut bool,
    probe: &mut P,
) -> Option<(By, Record)> {
    if place == NONE {
        // The packets of its value before this one have passed by a record that was inherited for them. So does this one,
        // whatever else was barred meanwhile: the next ones find that record.
        if *moved && let Some(record) = lut.record(lut.find(key, lut.hash(key))) {
            return Some((By::Inherited, *record));
        }
        if lut.barred {
            return None;
        }
        let inherited = lut.ask_previous(packets, slot, key, run.now);
        *moved |= inherited.is_some();
        return inherited.map(|record| (By::Inherited, record));
    }
    // What was learned meanwhile may stand where another record stood. Then its packets miss, and do not look for it
    // elsewhere: those of its value that came before may have missed, too, and must not be overtaken.
    if *moved && !lut.has(place, key) || lut.is_outdated(place) {
        // Nor may the next ones find it there while these wait.
        lut.barred = true;
        return None;
    }
    let record = lut.record(place).copied()?;
    if record.generation == lut.generation() {
        return Some((By::Lut, record));
    }
    probe.mark(Step::Execute(number), 0);
    let record = verify(run, lut, table, place, key);
    probe.mark(Step::Verify(number), 1);
    record.map(|record| (By::Verified, record))
}

/// Packets that are looked up for comparison.
const COMPARED: usize = 16;

/// Looks packets up that need not be, for whoever compares costs: twice, so that the table is as warm as its LUT.
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
    // Of no packet's: what was cold is nobody's time.
    probe.mark(Step::Lookup(number), 0);
    table.lookup(keys, ids);
    probe.mark(Step::Lookup(number), ids.len() as u32);
}

/// Holds a record against the table and corrects it; none when the value hits no entry any more.
#[inline(never)]
fn verify<E: Egress>(
    run: &Run<'_, E>,
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
    let entry = |id| run.entry(id).map(|(cell, program)| (cell.priority(), program.low_latency));
    lut.verify(place, key, search, entry)
}
