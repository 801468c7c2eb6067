// SPDX-License-Identifier: Apache-2.0
//! The tables: packets are looked up table by table until none of them waits for a table.
//!
//! All packets that wait for a table are looked up together: first all keys are built, then one batch lookup
//! runs, and then the instructions of each packet. Outputs leave at the end, packet by packet.

use crate::context::BurstContext;
use crate::egress::Egress;
use crate::ffp::Ffp;
use crate::packet::{Packet, Path, State};
use crate::probe::{Probe, ProbeStep, Via};
use crate::slab::{BURST, PacketSlot};
use actions::{Cell, Program};
use dataplane::FoundBy;
use flow::{DropReason, EntryId, Next, TableId};
use keys::PathHop;

/// Where the packets of a burst wait before the first lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Every packet waits for a lookup in table 0.
    First,
    /// Packets may wait for different tables, or for none.
    Anywhere,
}

impl Waiting {
    /// Lists all packets of the burst if each of them waits for a lookup in table 0. Returns the length of
    /// the list, or `None` if packets may wait elsewhere.
    #[inline]
    fn list(self, burst: &[PacketSlot], list: &mut [PacketSlot; BURST]) -> Option<usize> {
        let list = list.get_mut(..burst.len()).filter(|_| self == Self::First)?;
        list.copy_from_slice(burst);
        Some(burst.len())
    }
}

/// Runs packets through the tables they wait for, and finishes all packets that have not left yet.
pub(crate) fn run_tables<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    ffp: &mut Ffp,
    packets: &mut [Packet],
    burst: &[PacketSlot],
    where_waiting: Waiting,
    keys: &mut [u64],
    probe: &mut P,
) {
    let mut list = [PacketSlot(0); BURST];
    let mut ids = [EntryId::NONE; BURST];
    let mut listed = where_waiting.list(burst, &mut list);
    // A burst begins at table 0, even if none of its packets waits there.
    let mut next = Some(TableId(0));
    while let Some(number) = next {
        // If a list was already made, it contains all waiting packets, and each of them waits for a lookup in
        // this table.
        let (waiting, known, mut later) = match listed.take() {
            Some(count) => (&mut list[..count], &[][..], None),
            None => select_waiting(packets, burst, number, &mut list),
        };
        let is_whole = known.is_empty() && later.is_none();
        let count = waiting.len() + known.len();
        if count == 0 {
            next = later;
            continue;
        }
        let ids = &mut ids[..waiting.len()];
        let slot = context.tables[number.index()].as_deref();
        let mut words = 0;
        let mut recalled = 0;
        if let Some((table, extractor)) = slot.filter(|_| !waiting.is_empty()) {
            words = extractor.words();
            let keys = &mut keys[..waiting.len() * words];
            recalled = if ffp.is_open() { ffp.recall(packets, waiting, keys, words) } else { 0 };
            extractor.extract(packets, &waiting[recalled..], &mut keys[recalled * words..]);
            probe.mark(ProbeStep::Extract(number), waiting.len() as u32);
            table.lookup(keys, ids);
            probe.mark(ProbeStep::Lookup(number), waiting.len() as u32);
        } else {
            ids.fill(EntryId::NONE);
        }
        let mut matches = 0;
        let mut onward = Onward::default();
        for at in 0..waiting.len().min(ids.len()) {
            let (slot, id) = (waiting[at], ids[at]);
            let packet = &mut packets[slot.index()];
            probe.looked_up(slot, number, FoundBy::Table, id, packet.data.frame.len());
            let Some(state) = context.hit(packet, number, id) else { continue };
            matches += 1;
            if packet.learns() {
                ffp.learn(
                    number,
                    packet,
                    &mut keys[at * words..(at + 1) * words],
                    context.cells,
                    context.window,
                );
            }
            if onward.add(state) {
                waiting[onward.count] = slot;
                onward.count += 1;
            }
        }
        later = min_table(later, onward.lowest());
        let (known_matches, known_onward) = run_known(context, packets, number, known, probe);
        matches += known_matches;
        later = min_table(later, known_onward);
        context.counters.add_table(number, count as u64, matches);
        probe.mark(ProbeStep::Execute(number), count as u32);
        // If no other packet waits, the list contains all packets that continue, in the order of the burst,
        // and is used for the next table.
        listed = (is_whole && recalled == 0 && onward.is_uniform()).then_some(onward.count);
        next = later;
    }
    finish_burst(context, packets, burst, probe);
}

/// Finishes the packets that have not left yet.
#[inline(always)]
fn finish_burst<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    packets: &mut [Packet],
    burst: &[PacketSlot],
    probe: &mut P,
) {
    let mut finished = 0;
    for slot in burst {
        let packet = &mut packets[slot.index()];
        if packet.path != Path::Left {
            let via = if packet.path == Path::Recorded { Via::Express } else { Via::Tables };
            context.finish(packet, *slot, via, probe);
            finished += 1;
        }
    }
    probe.mark(ProbeStep::Finish, finished);
}

/// Runs the entries of packets that need no lookup in a table. Returns the number of entries that ran, and
/// the lowest table that a packet goes on to.
#[inline]
fn run_known<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    packets: &mut [Packet],
    number: TableId,
    known: &[PacketSlot],
    probe: &mut P,
) -> (u64, Option<TableId>) {
    let (mut matches, mut later) = (0, None);
    for slot in known {
        let packet = &mut packets[slot.index()];
        let (id, by) = match packet.state {
            State::Known(_) => (packet.known, FoundBy::Known),
            State::Waits(Next::Direct { index, .. }) => {
                let table = context.tables[number.index()].as_deref();
                (table.map_or(EntryId::NONE, |(table, _)| table.at_index(index)), FoundBy::Index)
            }
            _ => (EntryId::NONE, FoundBy::Table),
        };
        probe.looked_up(*slot, number, by, id, packet.data.frame.len());
        let state = context.hit(packet, number, id);
        matches += u64::from(state.is_some());
        later = min_table(later, state.and_then(State::waits_for));
    }
    (matches, later)
}

/// Tables to which packets go on after a lookup.
#[derive(Default)]
struct Onward {
    /// Number of packets that go on to a lookup in a table.
    count: usize,
    /// Lowest and highest table that packets go on to for a lookup.
    tables: Option<(TableId, TableId)>,
    /// Lowest table that a packet goes on to without a lookup.
    direct: Option<TableId>,
}

impl Onward {
    /// Notes the new state of a packet. Returns whether the packet waits for a lookup.
    #[inline(always)]
    fn add(&mut self, state: State) -> bool {
        let State::Waits(Next::Table(table)) = state else {
            if let Some(table) = state.waits_for() {
                self.direct = min_table(self.direct, Some(table));
            }
            return false;
        };
        self.tables = match self.tables {
            Some((lowest, highest)) => Some((lowest.min(table), highest.max(table))),
            None => Some((table, table)),
        };
        true
    }

    /// Returns whether all packets that go on wait for a lookup in one table.
    fn is_uniform(&self) -> bool {
        self.direct.is_none() && self.tables.is_some_and(|(lowest, highest)| lowest == highest)
    }

    /// Returns the lowest table that a packet goes on to.
    fn lowest(&self) -> Option<TableId> {
        min_table(self.direct, self.tables.map(|(lowest, _)| lowest))
    }
}

/// Returns the packets that wait for a lookup in table `number`, the packets that get an entry of this table
/// without a lookup, and the lowest other table that packets wait for.
fn select_waiting<'a>(
    packets: &[Packet],
    burst: &[PacketSlot],
    number: TableId,
    places: &'a mut [PacketSlot; BURST],
) -> (&'a mut [PacketSlot], &'a [PacketSlot], Option<TableId>) {
    let (mut waiting, mut known) = (0, BURST);
    let mut later = None;
    for slot in burst.iter().take(BURST) {
        match packets[slot.index()].state {
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
fn min_table(one: Option<TableId>, other: Option<TableId>) -> Option<TableId> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

impl<E: Egress> BurstContext<'_, E> {
    /// Counts a hit and runs the entry's instructions. Returns the packet's new state, or `None` for a
    /// table-miss, which ends the packet.
    #[inline(always)]
    pub(crate) fn hit(&mut self, packet: &mut Packet, table: TableId, id: EntryId) -> Option<State> {
        // [`EntryId::NONE`] has no cell, because it is higher than any id in a page of cells.
        let Some((cell, program)) = self.entry(id) else {
            self.note(packet, PathHop { table, entry: EntryId::NONE });
            self.miss(packet);
            return None;
        };
        Some(self.enter(packet, table, id, cell, program))
    }

    /// Stores the entry that a packet hits in a table, if path records may be made.
    #[inline(always)]
    fn note(&self, packet: &mut Packet, hop: PathHop) {
        if self.notes_hops {
            packet.hops.push(hop);
        }
    }

    /// Ends the processing of a packet at a table-miss.
    #[inline(never)]
    fn miss(&mut self, packet: &mut Packet) {
        packet.low_latency = false;
        packet.state = State::Done;
        self.fail(packet, DropReason::TableMiss);
    }

    /// Counts a hit, runs the entry's instructions and returns the packet's new state.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        packet: &mut Packet,
        table: TableId,
        id: EntryId,
        cell: &Cell,
        program: &Program,
    ) -> State {
        cell.count(1, packet.data.frame.len() as u64, self.now);
        packet.table = table;
        packet.entry = id;
        self.note(packet, PathHop { table, entry: id });
        self.instructions(packet, program)
    }
}
