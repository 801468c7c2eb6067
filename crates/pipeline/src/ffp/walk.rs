// SPDX-License-Identifier: Apache-2.0
//! The walk: takes a burst's packets over the tables as far as records carry them, and lets those leave that got
//! through. The others wait at the table where they left the path.

use super::lut::{Lut, Record};
use super::{Ffp, Way};
use crate::burst::{BURST, Run, sooner};
use crate::counters::Counters;
use crate::output::Egress;
use crate::packet::{Packet, Path, State};
use crate::probe::{Probe, Step};
use tables::{NONE, Table};

impl Ffp {
    /// Takes packets through the path. `keys` has room for a burst's rows.
    pub fn walk<E: Egress, P: Probe>(
        &mut self,
        run: &mut Run<'_, E>,
        packets: &mut [Packet],
        keys: &mut [u64],
        counters: &Counters,
        probe: &mut P,
    ) {
        for packet in packets.iter_mut().filter(|packet| packet.state.waits_for().is_some()) {
            packet.path = Path::Fast;
        }
        let mut waiting = [0u8; BURST];
        let mut ids = [NONE; BURST];
        while let Some(number) = first_table(packets) {
            let waiting = gather(packets, number, &mut waiting);
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
            extractor.extract(packets, waiting, keys);
            probe.mark(Step::Extract(number), count);
            let passed = if let Way::Lut(lut) = way {
                let cleaned = lut.work();
                if cleaned > 0 {
                    probe.mark(Step::Clean, cleaned);
                }
                lut.probe(keys, run.now, ids);
                probe.mark(Step::Probe(number), count);
                let passed = pass(run, (lut, table), packets, (waiting, ids), keys, number, probe);
                counters.add_table(number, passed, passed);
                passed
            } else {
                table.lookup(keys, ids);
                probe.mark(Step::Lookup(number), count);
                let passed = share(run, table, packets, (waiting, ids), number);
                counters.add_table(number, u64::from(count), passed);
                passed
            };
            probe.mark(Step::Execute(number), passed as u32);
        }
        for packet in packets.iter_mut().filter(|packet| packet.path == Path::Fast) {
            run.finish(packet);
            run.tally.fast += 1;
            packet.path = Path::Left;
        }
    }
}

/// The lowest table that packets of the path wait for.
fn first_table(packets: &[Packet]) -> Option<u8> {
    let fast = packets.iter().filter(|packet| packet.path == Path::Fast);
    fast.fold(None, |first, packet| sooner(first, packet.state.waits_for()))
}

/// Lists the packets of the path that wait for a table.
fn gather<'a>(packets: &[Packet], number: u8, waiting: &'a mut [u8; BURST]) -> &'a [u8] {
    let mut count = 0;
    for (at, packet) in packets.iter().enumerate().take(BURST) {
        if packet.path == Path::Fast && packet.state.waits_for() == Some(number) {
            waiting[count] = at as u8;
            count += 1;
        }
    }
    &waiting[..count]
}

/// Runs the entries of a shared table; returns how many packets hit one. Those that hit a normal one leave the path.
fn share<E: Egress>(
    run: &mut Run<'_, E>,
    table: &Table,
    packets: &mut [Packet],
    (waiting, ids): (&[u8], &[u32]),
    number: u8,
) -> u64 {
    let mut matches = 0;
    for (packet, id) in waiting.iter().zip(ids) {
        let packet = &mut packets[usize::from(*packet)];
        let id = match packet.state {
            State::Direct(_, index) => table.at_index(index),
            _ => *id,
        };
        matches += u64::from(run.hit(packet, number, id));
        if !packet.low_latency {
            packet.path = Path::Tables;
        }
    }
    matches
}

/// Runs the entries that low-latency records tell; returns how many. The other packets leave the path.
fn pass<E: Egress, P: Probe>(
    run: &mut Run<'_, E>,
    (lut, table): (&mut Lut, &Table),
    packets: &mut [Packet],
    (waiting, places): (&[u8], &[u32]),
    keys: &[u64],
    number: u8,
    probe: &mut P,
) -> u64 {
    let words = lut.words();
    let (mut hits, mut normal) = (0, 0);
    let mut moved = false;
    for (at, (slot, place)) in waiting.iter().zip(places).enumerate() {
        let key = &keys[at * words..(at + 1) * words];
        // What was learned meanwhile may stand where another record stood.
        let place = if moved { lut.place(key) } else { *place };
        let inherited = if place == NONE && lut.has_previous() {
            lut.ask_previous(packets, *slot, key, run.now)
        } else {
            None
        };
        moved |= inherited.is_some();
        let packet = &mut packets[usize::from(*slot)];
        // Entries of a linear table have no value.
        let is_direct = matches!(packet.state, State::Direct(..));
        let outdated = place != NONE && lut.is_outdated(place);
        let record =
            if is_direct || outdated { None } else { inherited.or_else(|| lut.record(place).copied()) };
        let record = match record {
            Some(record) if record.generation != lut.generation() => {
                probe.mark(Step::Execute(number), 0);
                let record = verify(run, lut, table, place, key);
                probe.mark(Step::Verify(number), 1);
                record
            }
            record => record,
        };
        let Some((record, (cell, program))) = record.and_then(|record| Some((record, run.entry(record.id)?)))
        else {
            packet.path = Path::Missed;
            continue;
        };
        if program.low_latency {
            run.enter(packet, number, record.id, cell, program);
            hits += 1;
        } else {
            packet.low_latency = false;
            packet.path = Path::Tables;
            packet.state = State::Known(number, record.id);
            normal += 1;
        }
    }
    lut.count(hits, normal, waiting.len() as u64 - hits - normal);
    hits
}

/// Holds a record against what changed and corrects it; none when the value hits no entry any more.
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
