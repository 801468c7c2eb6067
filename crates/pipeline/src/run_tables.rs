// SPDX-License-Identifier: Apache-2.0
//! The tables: packets are looked up table by table until none of them waits for a table.
//!
//! All packets that wait for a table are looked up together: first all keys are built, then one batch lookup
//! runs, and then the instructions of each packet. Outputs leave at the end, packet by packet.

use crate::cells::Cell;
use crate::context::BurstContext;
use crate::egress::Egress;
use crate::ffp::Ffp;
use crate::packet::{Packet, Path, State};
use crate::probe::{Probe, ProbeStep, Via};
use crate::slab::BURST;
use actions::Program;
use dataplane::FoundBy;
use flow::{DropReason, EntryId, Next};

/// Runs packets through the tables they wait for, and finishes all packets that have not left yet.
pub(crate) fn run_tables<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    ffp: &mut Ffp,
    packets: &mut [Packet],
    burst: &[u16],
    keys: &mut [u64],
    probe: &mut P,
) {
    let mut waiting = [0u16; BURST];
    let mut ids = [EntryId::NONE; BURST];
    // A burst begins at table 0, even if none of its packets waits there.
    let mut next = Some(0);
    while let Some(number) = next {
        let (waiting, known, mut later) = select_waiting(packets, burst, number, &mut waiting);
        let count = waiting.len() + known.len();
        if count == 0 {
            next = later;
            continue;
        }
        let ids = &mut ids[..waiting.len()];
        let slot = context.tables[usize::from(number)].as_deref();
        let mut words = 0;
        if let Some((table, extractor)) = slot.filter(|_| !waiting.is_empty()) {
            words = extractor.words();
            let keys = &mut keys[..waiting.len() * words];
            let recalled = ffp.recall(packets, waiting, keys, words);
            extractor.extract(packets, &waiting[recalled..], &mut keys[recalled * words..]);
            probe.mark(ProbeStep::Extract(number), waiting.len() as u32);
            table.lookup(keys, ids);
            probe.mark(ProbeStep::Lookup(number), waiting.len() as u32);
        } else {
            ids.fill(EntryId::NONE);
        }
        let mut matches = 0;
        for (at, (slot, id)) in waiting.iter().zip(ids).enumerate() {
            let slot = usize::from(*slot);
            let packet = &mut packets[slot];
            probe.looked_up(slot, number, FoundBy::Table, *id, packet.data.frame.len());
            let hit = context.hit(packet, number, *id);
            matches += u64::from(hit);
            if hit && packet.learns() {
                ffp.learn(
                    number,
                    packet,
                    &mut keys[at * words..(at + 1) * words],
                    context.cells,
                    context.window,
                );
            }
            later = min_table(later, packet.state.waits_for());
        }
        for place in known {
            let place = usize::from(*place);
            let packet = &mut packets[place];
            let (id, by) = match packet.state {
                State::Known(_) => (packet.known, FoundBy::Known),
                State::Waits(Next::Direct { index, .. }) => {
                    (slot.map_or(EntryId::NONE, |(table, _)| table.at_index(index)), FoundBy::Index)
                }
                _ => (EntryId::NONE, FoundBy::Table),
            };
            probe.looked_up(place, number, by, id, packet.data.frame.len());
            matches += u64::from(context.hit(packet, number, id));
            later = min_table(later, packet.state.waits_for());
        }
        context.counters.add_table(number, count as u64, matches);
        probe.mark(ProbeStep::Execute(number), count as u32);
        next = later;
    }
    for slot in burst {
        let slot = usize::from(*slot);
        let packet = &mut packets[slot];
        if packet.path != Path::Left {
            context.finish(packet, slot, Via::Tables, probe);
        }
    }
    probe.mark(ProbeStep::Finish, burst.len() as u32);
}

/// Lists the packets that wait for a lookup in table `number`, and the packets that wait for a known entry of
/// this table. Also returns the lowest other table that packets wait for.
fn select_waiting<'a>(
    packets: &[Packet],
    burst: &[u16],
    number: u8,
    places: &'a mut [u16; BURST],
) -> (&'a mut [u16], &'a [u16], Option<u8>) {
    let (mut waiting, mut known) = (0, BURST);
    let mut later = None;
    for slot in burst.iter().take(BURST) {
        match packets[usize::from(*slot)].state {
            State::Waits(Next::Table(table)) if table == number => {
                places[waiting] = *slot;
                waiting += 1;
            }
            State::Waits(Next::Direct { table, .. }) | State::Known(table) if table == number => {
                known -= 1;
                places[known] = *slot;
            }
            other => later = min_table(later, other.waits_for()),
        }
    }
    let (places, known) = places.split_at_mut(known);
    (&mut places[..waiting], known, later)
}

/// Returns the lower of two tables.
#[inline]
fn min_table(one: Option<u8>, other: Option<u8>) -> Option<u8> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

impl<E: Egress> BurstContext<'_, E> {
    /// Counts a hit and runs the entry's instructions. Returns false if there is no entry; the packet then
    /// ends.
    #[inline]
    pub(crate) fn hit(&mut self, packet: &mut Packet, table: u8, id: EntryId) -> bool {
        let Some((cell, program)) = (if id == EntryId::NONE { None } else { self.entry(id) }) else {
            packet.low_latency = false;
            packet.state = State::Done;
            self.fail(packet, DropReason::TableMiss);
            return false;
        };
        self.enter(packet, table, id, cell, program);
        true
    }

    /// Counts a hit, runs the entry's instructions and returns the packet's new state.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        packet: &mut Packet,
        table: u8,
        id: EntryId,
        cell: &Cell,
        program: &Program,
    ) -> State {
        cell.count(1, packet.data.frame.len() as u64, self.now);
        packet.table = table;
        packet.entry = id;
        self.instructions(packet, program)
    }
}
