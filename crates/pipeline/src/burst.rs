// SPDX-License-Identifier: Apache-2.0
//! A packet's way: a burst comes in, and goes table by table until every packet has left.
//!
//! ```text
//! admit ──► table 0 ──► table 1 ──► ... ──► action sets ──► outcomes
//!             │ miss        │ miss
//!             └─────────────┴──► dropped as table_miss
//! ```
//!
//! All packets that wait for a table are looked up together: keys first, then one lookup of the batch, then each
//! packet's instructions. What packets send leaves at the end, packet by packet. Operations are
//! applied between bursts only, so a packet sees one version of all rules.

use crate::cells::{Cell, Cells};
use crate::counters::{Counters, Tally};
use crate::extract::Extractor;
use crate::ffp::Ffp;
use crate::groups::GroupTable;
use crate::lanes::{LaneLimits, Lanes, Window};
use crate::meters::MeterTable;
use crate::output::Egress;
use crate::outs::Outs;
use crate::packet::{Packet, Path, State};
use crate::ports::PortTable;
use crate::probe::{By, Leaving, Probe, Step};
use crate::program::Program;
use crate::slab::Slab;
use crate::stateless::StatelessLane;
use crate::update::{PacketOut, Update, Updates};
use flow::stateless::TagTypes;
use flow::{DropReason, EntryId, Limits, Nanos, Outcome, Settings};
use frame::Frame;
use std::sync::Arc;
use tables::{NONE, Table};
use wire::Depth;

/// Packets of a burst.
pub const BURST: usize = Limits::BURST_PACKETS;

/// Tables there are room for: the controller's and that of learned MACs.
const TABLES: usize = 256;

/// A table's view and what builds its keys; none while the table is empty.
pub(crate) type Slot = Option<Box<(Table, Extractor)>>;

/// One worker's forwarding state.
#[derive(Debug)]
pub struct Pipeline {
    pub(crate) rules: Rules,
    pub(crate) counters: Arc<Counters>,
    pub(crate) ffp: Ffp,
    pub(crate) slab: Slab,
    pub(crate) lanes: Lanes,
    pub(crate) keys: Box<[u64]>,
    pub(crate) outs: Outs,
}

/// What packets are judged by: nothing of it changes while one is under way.
#[derive(Debug)]
pub(crate) struct Rules {
    tables: Vec<Slot>,
    /// The deepest that a table on the fast-forwarding path looks into a packet.
    depth: Depth,
    programs: Vec<Option<Arc<Program>>>,
    cells: Cells,
    ports: Arc<PortTable>,
    groups: Arc<GroupTable>,
    meters: Arc<MeterTable>,
    stateless: Option<Arc<StatelessLane>>,
    settings: Settings,
}

impl Rules {
    /// Makes ready to run packets.
    #[inline]
    pub fn run<'a, E>(
        &'a self,
        egress: &'a mut E,
        outs: &'a mut Outs,
        window: Window,
        now: Nanos,
    ) -> Run<'a, E> {
        Run {
            tables: &self.tables,
            depth: self.depth,
            programs: &self.programs,
            cells: &self.cells,
            ports: &self.ports,
            groups: &self.groups,
            meters: &self.meters,
            stateless: self.stateless.as_deref(),
            settings: self.settings,
            egress,
            outs,
            tally: Tally::default(),
            window,
            released: false,
            now,
        }
    }
}

/// What is read and counted while a burst runs.
pub(crate) struct Run<'a, E> {
    pub tables: &'a [Slot],
    /// How deep packets on the fast-forwarding path are looked into: most get through, and one walk over the headers costs
    /// less than a shallow one and a deep one.
    pub depth: Depth,
    pub programs: &'a [Option<Arc<Program>>],
    pub cells: &'a Cells,
    pub ports: &'a PortTable,
    pub groups: &'a GroupTable,
    pub meters: &'a MeterTable,
    pub stateless: Option<&'a StatelessLane>,
    pub settings: Settings,
    pub egress: &'a mut E,
    pub outs: &'a mut Outs,
    pub tally: Tally,
    /// What waits in the backlog.
    pub window: Window,
    /// The packets were held back, and nothing of their flows waits any more that came before them.
    pub released: bool,
    pub now: Nanos,
}

impl Pipeline {
    /// An empty pipeline that counts in `counters`.
    #[must_use]
    pub fn new(counters: Arc<Counters>, limits: LaneLimits) -> Self {
        let mut tables = Vec::with_capacity(TABLES);
        tables.resize_with(TABLES, || None);
        let packets = limits.packets();
        Self {
            rules: Rules {
                tables,
                depth: Depth::None,
                programs: Vec::new(),
                cells: Cells::default(),
                ports: Arc::default(),
                groups: Arc::default(),
                meters: Arc::default(),
                stateless: None,
                settings: Settings::default(),
            },
            counters,
            ffp: Ffp::new(TABLES, packets),
            slab: Slab::new(packets),
            lanes: Lanes::new(limits),
            keys: vec![0; BURST * Limits::KEY_WORDS].into_boxed_slice(),
            outs: Outs::new(),
        }
    }

    /// Puts an operation in force. What is no longer used is left in `updates`.
    pub fn apply<P: Probe>(&mut self, updates: &mut Updates, probe: &mut P) {
        for update in &mut updates.parts {
            let swaps = update.is_swap();
            self.apply_part(update);
            probe.mark(if swaps { Step::Swap } else { Step::Change }, 1);
        }
        probe.applied(updates.version);
    }

    fn apply_part(&mut self, update: &mut Update) {
        match update {
            Update::Table(number, change) => {
                if let Some((table, _)) = self.rules.tables[usize::from(*number)].as_deref_mut() {
                    table.apply(change);
                }
            }
            Update::SwapTable(number, slot) => {
                std::mem::swap(&mut self.rules.tables[usize::from(*number)], slot);
                self.rules.depth = self.ffp.depth(&self.rules.tables);
            }
            Update::SwapWay(number, way) => {
                self.ffp.swap(*number, way);
                self.rules.depth = self.ffp.depth(&self.rules.tables);
            }
            Update::Clean(number, manner, clean) => {
                let view = self.rules.tables[usize::from(*number)].as_deref().map(|(table, _)| table);
                self.ffp.clean(*number, *manner, clean, view);
            }
            Update::ListMax(number, rules) => self.ffp.set_list_max(*number, *rules),
            Update::Program(id, program) => {
                if let Some(place) = self.rules.programs.get_mut(*id as usize) {
                    std::mem::swap(place, program);
                }
            }
            Update::SwapPrograms(programs) => std::mem::swap(&mut self.rules.programs, programs),
            Update::Entry(id, program) => {
                if let Some(cell) = self.rules.cells.get(*id) {
                    cell.set_program(*program);
                }
            }
            Update::ResetCounts(id) => {
                if let Some(cell) = self.rules.cells.get(*id) {
                    cell.reset();
                }
            }
            Update::Settings(settings) => self.rules.settings = *settings,
            Update::SwapCells(cells) => std::mem::swap(&mut self.rules.cells, cells),
            Update::SwapPorts(ports) => std::mem::swap(&mut self.rules.ports, ports),
            Update::SwapGroups(groups) => std::mem::swap(&mut self.rules.groups, groups),
            Update::SwapMeters(meters) => std::mem::swap(&mut self.rules.meters, meters),
            Update::SwapStateless(lane) => std::mem::swap(&mut self.rules.stateless, lane),
            // The worker's: it does the first two when the whole operation is in force, and keeps the other.
            Update::PacketOut(_) | Update::Lanes { .. } | Update::Record(_) => {}
        }
    }

    /// Sends a packet of the controller's its way. It counts as received. Nothing waits in the backlog.
    pub fn packet_out<E: Egress, P: Probe>(
        &mut self,
        out: &PacketOut,
        now: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) {
        let mut frame = egress.buffer(out.bytes.len()).unwrap_or_else(Frame::hollow);
        let copied = frame.fill(&out.bytes);
        frame.meta.in_port = out.in_port;
        let Self { rules, counters, ffp, slab, lanes, keys, outs } = self;
        let mut run = rules.run(egress, outs, lanes.window(), now);
        let burst = slab.burst(1);
        let packets = &mut slab.packets[..];
        let Some(packet) = burst.first().and_then(|slot| packets.get_mut(usize::from(*slot))) else { return };
        let short = frame.len() < ETHERNET_BYTES;
        packet.admit(frame);
        (packet.table, packet.entry, packet.miss_entry) = (0, NONE, false);
        packet.state = State::Done;
        if short || !copied {
            packet.reason = Some(if copied { DropReason::Runt } else { DropReason::NoBuffer });
        } else if run.steps(packet, &out.steps, !out.to_tables, 0) && out.to_tables {
            packet.state = State::Lookup(0);
        }
        if ffp.is_open() {
            ffp.walk(&mut run, packets, &burst, keys, counters, probe);
        }
        through(&mut run, ffp, packets, &burst, keys, counters, probe);
        run.tally.received = 1;
        counters.add(&run.tally);
    }
}

/// Takes packets that wait for tables through them, and all out that have not left yet.
pub(crate) fn through<E: Egress, P: Probe>(
    run: &mut Run<'_, E>,
    ffp: &mut Ffp,
    packets: &mut [Packet],
    burst: &[u16],
    keys: &mut [u64],
    counters: &Counters,
    probe: &mut P,
) {
    let mut waiting = [0u16; BURST];
    let mut ids = [NONE; BURST];
    // Where a burst begins; none may wait there.
    let mut next = Some(0);
    while let Some(number) = next {
        let (waiting, known, mut later) = gather(packets, burst, number, &mut waiting);
        let count = waiting.len() + known.len();
        if count == 0 {
            next = later;
            continue;
        }
        let ids = &mut ids[..waiting.len()];
        let slot = run.tables[usize::from(number)].as_deref();
        let mut words = 0;
        if let Some((table, extractor)) = slot.filter(|_| !waiting.is_empty()) {
            words = extractor.words();
            let keys = &mut keys[..waiting.len() * words];
            let recalled = ffp.recall(packets, waiting, keys, words);
            extractor.extract(packets, &waiting[recalled..], &mut keys[recalled * words..]);
            probe.mark(Step::Extract(number), waiting.len() as u32);
            table.lookup(keys, ids);
            probe.mark(Step::Lookup(number), waiting.len() as u32);
        } else {
            ids.fill(NONE);
        }
        let mut matches = 0;
        for (at, (slot, id)) in waiting.iter().zip(ids).enumerate() {
            let slot = usize::from(*slot);
            let packet = &mut packets[slot];
            probe.looked_up(slot, number, By::Table, *id, packet.frame.len());
            let hit = run.hit(packet, number, *id);
            matches += u64::from(hit);
            if hit && packet.learns() {
                ffp.learn(number, packet, &mut keys[at * words..(at + 1) * words], run.cells, run.window);
            }
            later = sooner(later, packet.state.waits_for());
        }
        for place in known {
            let place = usize::from(*place);
            let packet = &mut packets[place];
            let (id, by) = match packet.state {
                State::Known(_, id) => (id, By::Known),
                State::Direct(_, index) => (slot.map_or(NONE, |(table, _)| table.at_index(index)), By::Index),
                _ => (NONE, By::Table),
            };
            probe.looked_up(place, number, by, id, packet.frame.len());
            matches += u64::from(run.hit(packet, number, id));
            later = sooner(later, packet.state.waits_for());
        }
        counters.add_table(number, count as u64, matches);
        probe.mark(Step::Execute(number), count as u32);
        next = later;
    }
    for slot in burst {
        let slot = usize::from(*slot);
        let packet = &mut packets[slot];
        if packet.path != Path::Left {
            run.finish(packet, slot, false, probe);
        }
    }
    probe.mark(Step::Finish, burst.len() as u32);
}

/// Lists the packets that wait for a lookup in a table, those that wait for an entry of it which needs none, and tells
/// the first of the other tables that packets wait for.
fn gather<'a>(
    packets: &[Packet],
    burst: &[u16],
    number: u8,
    places: &'a mut [u16; BURST],
) -> (&'a mut [u16], &'a [u16], Option<u8>) {
    let (mut waiting, mut known) = (0, BURST);
    let mut later = None;
    for slot in burst.iter().take(BURST) {
        match packets[usize::from(*slot)].state {
            State::Lookup(table) if table == number => {
                places[waiting] = *slot;
                waiting += 1;
            }
            State::Direct(table, _) | State::Known(table, _) if table == number => {
                known -= 1;
                places[known] = *slot;
            }
            other => later = sooner(later, other.waits_for()),
        }
    }
    let (places, known) = places.split_at_mut(known);
    (&mut places[..waiting], known, later)
}

/// The lower of two tables.
#[inline]
pub(crate) fn sooner(one: Option<u8>, other: Option<u8>) -> Option<u8> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

/// Whether a packet is an IP fragment, the first included.
#[inline(never)]
fn is_fragment(packet: &mut Packet) -> bool {
    packet.locate(Depth::L4);
    packet.layers.fragment
}

/// Bytes of an Ethernet header: what is shorter is no packet.
pub(crate) const ETHERNET_BYTES: usize = 14;

impl<'a, E: Egress> Run<'a, E> {
    /// Sets a packet up, or drops it at the door.
    #[inline]
    pub(crate) fn admit(&mut self, packet: &mut Packet, frame: Frame) {
        let receives = self.ports.get(frame.meta.in_port).is_some_and(|port| port.up && !port.no_recv);
        let short = frame.len() < ETHERNET_BYTES;
        packet.admit(frame);
        if short || !receives {
            packet.state = State::Done;
            packet.reason = Some(if short { DropReason::Runt } else { DropReason::PortNotReceiving });
        } else if self.settings.drop_fragments && is_fragment(packet) {
            packet.state = State::Done;
            packet.reason = Some(DropReason::Fragment);
        }
    }

    /// EtherTypes of stateless forwarding.
    #[inline]
    pub(crate) fn tag_types(&self) -> &TagTypes {
        self.stateless.map_or(&TagTypes::USUAL, StatelessLane::types)
    }

    /// What an entry runs, and what it counts in.
    #[inline]
    pub(crate) fn entry(&self, id: EntryId) -> Option<(&'a Cell, &'a Program)> {
        let cells = self.cells;
        let cell = cells.get(id)?;
        Some((cell, self.program(cell)?))
    }

    /// What an entry runs.
    #[inline]
    pub(crate) fn program(&self, cell: &Cell) -> Option<&'a Program> {
        let programs = self.programs;
        programs.get(cell.program() as usize)?.as_deref()
    }

    /// Counts a hit and runs the entry's instructions; false for a miss, which ends the packet.
    #[inline]
    pub(crate) fn hit(&mut self, packet: &mut Packet, table: u8, id: EntryId) -> bool {
        let Some((cell, program)) = (if id == NONE { None } else { self.entry(id) }) else {
            packet.low_latency = false;
            packet.state = State::Done;
            self.fail(packet, DropReason::TableMiss);
            return false;
        };
        self.enter(packet, table, id, cell, program);
        true
    }

    /// Counts a hit and runs the entry's instructions; returns where the packet goes on.
    #[inline(always)]
    pub(crate) fn enter(
        &mut self,
        packet: &mut Packet,
        table: u8,
        id: EntryId,
        cell: &Cell,
        program: &Program,
    ) -> State {
        cell.count(1, packet.frame.len() as u64, self.now);
        packet.table = table;
        packet.entry = id;
        self.instructions(packet, program)
    }

    /// Executes the action set, counts the outcome and brings the frame home.
    #[inline]
    pub(crate) fn finish<P: Probe>(&mut self, packet: &mut Packet, slot: usize, fast: bool, probe: &mut P) {
        if packet.state == State::Finish {
            self.action_set(packet);
        }
        probe.leaving(slot, &Leaving::of(packet, self.outs));
        self.release(packet);
        let outcome = match packet.reason {
            _ if packet.sent > 0 => Outcome::Forwarded,
            _ if packet.reported > 0 => Outcome::Consumed,
            reason => Outcome::Dropped(reason.unwrap_or(DropReason::NoOutput)),
        };
        if let (Outcome::Forwarded | Outcome::Consumed, Some(reason)) = (outcome, packet.reason) {
            self.tally.copy_dropped(reason);
        }
        self.tally.outcome(outcome);
        probe.left(slot, outcome, fast, &self.tally);
        if !packet.frame.is_hollow() {
            self.egress.free(packet.take_frame());
        }
    }
}
