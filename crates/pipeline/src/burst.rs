// SPDX-License-Identifier: Apache-2.0
//! Stages of a burst: packets are processed table by table until every packet has left.
//!
//! ```text
//! admit ──► table 0 ──► table 1 ──► ... ──► action sets ──► outcomes
//!             │ miss        │ miss
//!             └─────────────┴──► dropped as table_miss
//! ```
//!
//! All packets that wait for a table are looked up together: first all keys are built, then one batch lookup
//! runs, then each packet's instructions. Outputs leave at the end, packet by packet. Operations are applied
//! between bursts only, so a packet sees one version of all rules.

use crate::cells::{Cell, Cells};
use crate::counters::{BurstCounters, Counters};
use crate::egress::Egress;
use crate::extract::Extractor;
use crate::ffp::Ffp;
use crate::groups::GroupTable;
use crate::lanes::{LaneLimits, Lanes, Window};
use crate::meters::MeterTable;
use crate::packet::{Packet, Path, State};
use crate::pending_outputs::PendingOutputs;
use crate::ports::PortTable;
use crate::probe::{By, Leaving, Probe, ProbeStep};
use crate::program::Program;
use crate::slab::{BURST, Slab};
use crate::stateless::StatelessForwarder;
use crate::update::{CompiledPacketOut, Update, Updates};
use flow::stateless::TagTypes;
use flow::{DropReason, EntryId, Limits, Nanos, Outcome, Settings};
use frame::Frame;
use std::sync::Arc;
use tables::{NONE, Table};
use wire::Depth;

/// Number of tables: the controller's 255 and the table of learned MAC addresses.
const TABLES: usize = 256;

/// View of a table and the extractor that builds its keys; `None` while the table is empty.
pub(crate) type Slot = Option<Box<(Table, Extractor)>>;

/// Forwarding state of one worker.
#[derive(Debug)]
pub struct Pipeline {
    pub(crate) rules: Rules,
    pub(crate) counters: Arc<Counters>,
    pub(crate) ffp: Ffp,
    pub(crate) slab: Slab,
    pub(crate) lanes: Lanes,
    pub(crate) keys: Box<[u64]>,
    pub(crate) outputs: PendingOutputs,
}

/// Rules that packets are forwarded by. They do not change while a burst runs.
#[derive(Debug)]
pub(crate) struct Rules {
    tables: Vec<Slot>,
    /// Greatest header depth that a table on the fast-forwarding path needs.
    depth: Depth,
    programs: Vec<Option<Arc<Program>>>,
    cells: Cells,
    ports: Arc<PortTable>,
    groups: Arc<GroupTable>,
    meters: Arc<MeterTable>,
    stateless: Option<Arc<StatelessForwarder>>,
    settings: Settings,
}

impl Rules {
    /// Creates the context of a burst.
    #[inline]
    pub fn context<'a, E>(
        &'a self,
        egress: &'a mut E,
        outputs: &'a mut PendingOutputs,
        window: Window,
        now: Nanos,
    ) -> BurstContext<'a, E> {
        BurstContext {
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
            outputs,
            burst_counters: BurstCounters::default(),
            window,
            released: false,
            now,
        }
    }
}

/// Context of a burst: the rules it reads and the counters it writes.
pub(crate) struct BurstContext<'a, E> {
    pub tables: &'a [Slot],
    /// Depth to which headers are parsed on the fast-forwarding path. Most packets pass the whole path, and
    /// one deep parse costs less than a shallow one followed by a deep one.
    pub depth: Depth,
    pub programs: &'a [Option<Arc<Program>>],
    pub cells: &'a Cells,
    pub ports: &'a PortTable,
    pub groups: &'a GroupTable,
    pub meters: &'a MeterTable,
    pub stateless: Option<&'a StatelessForwarder>,
    pub settings: Settings,
    pub egress: &'a mut E,
    pub outputs: &'a mut PendingOutputs,
    pub burst_counters: BurstCounters,
    /// Positions of the packets in the backlog.
    pub window: Window,
    /// Whether the packets come from the hold queue, so that no earlier packet of their flows waits.
    pub released: bool,
    pub now: Nanos,
}

impl Pipeline {
    /// Creates an empty pipeline that counts in `counters`.
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
            outputs: PendingOutputs::new(),
        }
    }

    /// Applies an operation between two bursts. Objects that are no longer used are left in `updates`, for
    /// the control thread to free.
    pub fn apply<P: Probe>(&mut self, updates: &mut Updates, probe: &mut P) {
        for update in &mut updates.parts {
            let swaps = update.is_swap();
            self.apply_part(update);
            probe.mark(if swaps { ProbeStep::Swap } else { ProbeStep::Change }, 1);
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
            Update::SwapFastMode(number, mode) => {
                self.ffp.swap(*number, mode);
                self.rules.depth = self.ffp.depth(&self.rules.tables);
            }
            Update::Clean(number, coherence, clean) => {
                let view = self.rules.tables[usize::from(*number)].as_deref().map(|(table, _)| table);
                self.ffp.clean(*number, *coherence, clean, view);
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
            Update::SwapStateless(new) => std::mem::swap(&mut self.rules.stateless, new),
            // The worker handles these parts: the first two when the whole operation is applied, and `Record`
            // by keeping the recorder.
            Update::PacketOut(_) | Update::Lanes { .. } | Update::Record(_) => {}
        }
    }

    /// Forwards a packet-out of the controller, which counts as received. The backlog must be empty.
    pub fn packet_out<E: Egress, P: Probe>(
        &mut self,
        out: &CompiledPacketOut,
        now: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) {
        let mut frame = egress.buffer(out.bytes.len()).unwrap_or_else(Frame::hollow);
        let copied = frame.fill(&out.bytes);
        frame.meta.in_port = out.in_port;
        let Self { rules, counters, ffp, slab, lanes, keys, outputs } = self;
        let mut context = rules.context(egress, outputs, lanes.window(), now);
        let burst = slab.burst(1);
        let packets = &mut slab.packets[..];
        let Some(packet) = burst.first().and_then(|slot| packets.get_mut(usize::from(*slot))) else { return };
        let short = frame.len() < ETHERNET_BYTES;
        packet.admit(frame);
        (packet.table, packet.entry, packet.miss_entry) = (0, NONE, false);
        packet.state = State::Done;
        if short || !copied {
            packet.reason = Some(if copied { DropReason::Runt } else { DropReason::NoBuffer });
        } else if context.steps(packet, &out.steps, !out.to_tables, 0) && out.to_tables {
            packet.state = State::Lookup(0);
        }
        if ffp.is_open() {
            ffp.walk(&mut context, packets, &burst, keys, counters, probe);
        }
        run_tables(&mut context, ffp, packets, &burst, keys, counters, probe);
        context.burst_counters.received = 1;
        counters.add(&context.burst_counters);
    }
}

/// Runs packets through the tables they wait for, and finishes all packets that have not left yet.
pub(crate) fn run_tables<E: Egress, P: Probe>(
    context: &mut BurstContext<'_, E>,
    ffp: &mut Ffp,
    packets: &mut [Packet],
    burst: &[u16],
    keys: &mut [u64],
    counters: &Counters,
    probe: &mut P,
) {
    let mut waiting = [0u16; BURST];
    let mut ids = [NONE; BURST];
    // A burst begins at table 0, although no packet may wait there.
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
            ids.fill(NONE);
        }
        let mut matches = 0;
        for (at, (slot, id)) in waiting.iter().zip(ids).enumerate() {
            let slot = usize::from(*slot);
            let packet = &mut packets[slot];
            probe.looked_up(slot, number, By::Table, *id, packet.frame.len());
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
                State::Known(_, id) => (id, By::Known),
                State::Direct(_, index) => (slot.map_or(NONE, |(table, _)| table.at_index(index)), By::Index),
                _ => (NONE, By::Table),
            };
            probe.looked_up(place, number, by, id, packet.frame.len());
            matches += u64::from(context.hit(packet, number, id));
            later = min_table(later, packet.state.waits_for());
        }
        counters.add_table(number, count as u64, matches);
        probe.mark(ProbeStep::Execute(number), count as u32);
        next = later;
    }
    for slot in burst {
        let slot = usize::from(*slot);
        let packet = &mut packets[slot];
        if packet.path != Path::Left {
            context.finish(packet, slot, false, probe);
        }
    }
    probe.mark(ProbeStep::Finish, burst.len() as u32);
}

/// Lists the packets that wait for a lookup in table `number`, and the packets that wait for an entry of it
/// without a lookup. Also returns the lowest other table that packets wait for.
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
            State::Lookup(table) if table == number => {
                places[waiting] = *slot;
                waiting += 1;
            }
            State::Direct(table, _) | State::Known(table, _) if table == number => {
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
pub(crate) fn min_table(one: Option<u8>, other: Option<u8>) -> Option<u8> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

/// Returns whether a packet is an IP fragment, including the first.
#[inline(never)]
fn is_fragment(packet: &mut Packet) -> bool {
    packet.locate(Depth::L4);
    packet.layers.fragment
}

/// Length of an Ethernet header, bytes. Shorter frames are dropped as runts.
pub(crate) const ETHERNET_BYTES: usize = 14;

impl<'a, E: Egress> BurstContext<'a, E> {
    /// Sets up a packet. Drops runts, packets of ports that do not receive, and fragments if the settings say
    /// so.
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

    /// Returns the EtherTypes of stateless forwarding.
    #[inline]
    pub(crate) fn tag_types(&self) -> &TagTypes {
        self.stateless.map_or(&TagTypes::USUAL, StatelessForwarder::types)
    }

    /// Returns an entry's cell and program.
    #[inline]
    pub(crate) fn entry(&self, id: EntryId) -> Option<(&'a Cell, &'a Program)> {
        let cells = self.cells;
        let cell = cells.get(id)?;
        Some((cell, self.program(cell)?))
    }

    /// Returns the program that a cell's entry runs.
    #[inline]
    pub(crate) fn program(&self, cell: &Cell) -> Option<&'a Program> {
        let programs = self.programs;
        programs.get(cell.program() as usize)?.as_deref()
    }

    /// Counts a hit and runs the entry's instructions. Returns false for a table-miss, which ends the packet.
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
        cell.count(1, packet.frame.len() as u64, self.now);
        packet.table = table;
        packet.entry = id;
        self.instructions(packet, program)
    }

    /// Runs the action set, sends the pending outputs, counts the outcome and frees the frame if it was not
    /// sent.
    #[inline]
    pub(crate) fn finish<P: Probe>(&mut self, packet: &mut Packet, slot: usize, fast: bool, probe: &mut P) {
        if packet.state == State::Finish {
            self.action_set(packet);
        }
        probe.leaving(slot, &Leaving::of(packet, self.outputs));
        self.release(packet);
        let outcome = match packet.reason {
            _ if packet.sent > 0 => Outcome::Forwarded,
            _ if packet.reported > 0 => Outcome::Consumed,
            reason => Outcome::Dropped(reason.unwrap_or(DropReason::NoOutput)),
        };
        if let (Outcome::Forwarded | Outcome::Consumed, Some(reason)) = (outcome, packet.reason) {
            self.burst_counters.copy_dropped(reason);
        }
        self.burst_counters.outcome(outcome);
        probe.left(slot, outcome, fast, &self.burst_counters);
        if !packet.frame.is_hollow() {
            self.egress.free(packet.take_frame());
        }
    }
}
