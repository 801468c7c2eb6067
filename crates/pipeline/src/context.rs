// SPDX-License-Identifier: Apache-2.0
//! The state that the stages of a burst share: the rules that they read and the context that they write.
//!
//! Many stages are methods of [`BurstContext`], with an `impl` block in the stage's file. The methods in this
//! file are called by several stages.

use crate::bridge::Bridge;
use crate::full_ports::FullPorts;
use crate::packet::Packet;
use crate::slab::{BURST, PacketSlot};
use actions::{Cell, Cells, GroupTable, MeterTable, PacketInLimits, PendingOutputs, Program};
use arrayvec::ArrayVec;
use backlog::Window;
use dataplane::{BurstCounters, Counters, PortTable};
use flow::stateless::TagTypes;
use flow::{DropReason, EntryId, Nanos, Outcome, Settings};
use keys::Extractor;
use port_cache::QuenchedTables;
use stateless::StatelessForwarder;
use std::sync::Arc;
use tables::Table;
use wire::Depth;

/// Number of tables: the controller's 255 and the table of learned MAC addresses.
pub(crate) const TABLES: usize = 256;

/// View of a table and the extractor that builds its keys; `None` while the table is empty.
pub(crate) type TableSlot = Option<Box<(Table, Extractor)>>;

/// Rules by which packets are forwarded. They do not change while a burst is processed.
#[derive(Debug)]
pub(crate) struct Rules {
    pub tables: Vec<TableSlot>,
    /// Greatest depth to which any table on the fast-forwarding path needs headers parsed.
    pub depth: Depth,
    pub programs: Vec<Option<Arc<Program>>>,
    pub cells: Cells,
    pub ports: Arc<PortTable>,
    pub groups: Arc<GroupTable>,
    pub meters: Arc<MeterTable>,
    pub stateless: Option<Arc<StatelessForwarder>>,
    /// Settings of the ports for NORMAL, if there are any.
    pub bridge: Option<Arc<Bridge>>,
    /// Ports at which NORMAL learns no more addresses.
    pub full_ports: Arc<FullPorts>,
    pub settings: Settings,
    pub packet_in_limits: Arc<PacketInLimits>,
    /// Tables whose table-miss entries send one packet-in per flow at a time.
    pub quench: QuenchedTables,
}

impl Rules {
    /// Creates rules without entries, ports, groups and meters.
    pub fn new() -> Self {
        let mut tables = Vec::with_capacity(TABLES);
        tables.resize_with(TABLES, || None);
        Self {
            tables,
            depth: Depth::None,
            programs: Vec::new(),
            cells: Cells::default(),
            ports: Arc::default(),
            groups: Arc::default(),
            meters: Arc::default(),
            stateless: None,
            bridge: None,
            full_ports: Arc::default(),
            settings: Settings::default(),
            packet_in_limits: Arc::default(),
            quench: QuenchedTables::default(),
        }
    }

    /// Creates the context of a burst.
    #[inline]
    pub fn context<'a, E>(
        &'a self,
        egress: &'a mut E,
        outputs: &'a mut PendingOutputs,
        counters: &'a Counters,
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
            bridge: self.bridge.as_deref(),
            full_ports: &self.full_ports,
            settings: self.settings,
            packet_in_limits: &self.packet_in_limits,
            quench: &self.quench,
            quenches: false,
            egress,
            outputs,
            counters,
            burst_counters: BurstCounters::default(),
            asking: ArrayVec::new(),
            unsent: false,
            notes_hops: false,
            window,
            released: false,
            now,
        }
    }
}

/// Where hits of path records are counted: the entries' counter cells, and the counters of the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HitCounters<'a> {
    pub cells: &'a Cells,
    pub counters: &'a Counters,
}

/// Context of a burst: the rules it reads and the counters it writes.
pub(crate) struct BurstContext<'a, E> {
    pub tables: &'a [TableSlot],
    /// Depth to which headers are parsed on the fast-forwarding path. One deep parse costs less than a
    /// shallow parse followed by a deep one.
    pub depth: Depth,
    pub programs: &'a [Option<Arc<Program>>],
    pub cells: &'a Cells,
    pub ports: &'a PortTable,
    pub groups: &'a GroupTable,
    pub meters: &'a MeterTable,
    pub stateless: Option<&'a StatelessForwarder>,
    pub bridge: Option<&'a Bridge>,
    pub full_ports: &'a FullPorts,
    pub settings: Settings,
    pub packet_in_limits: &'a PacketInLimits,
    pub quench: &'a QuenchedTables,
    /// Whether packets that lead to a packet-in of a table in `quench` are listed in `asking`, and are not
    /// finished.
    pub quenches: bool,
    pub egress: &'a mut E,
    pub outputs: &'a mut PendingOutputs,
    /// Counters of the worker. The counters of the burst are added to them at its end.
    pub counters: &'a Counters,
    pub burst_counters: BurstCounters,
    /// Packets that are to be finished by [`crate::pipeline`] because their packet-ins may be quenched.
    pub asking: ArrayVec<PacketSlot, BURST>,
    /// Whether the last packet-in was not sent.
    pub unsent: bool,
    /// Whether the entries that a packet hits are stored in [`Packet::hops`], so that a path record can be
    /// made from them.
    pub notes_hops: bool,
    /// Positions of the packets that wait in the backlog.
    pub window: Window,
    /// Whether the packets come from the hold queue, so that no earlier packet of their flows waits.
    pub released: bool,
    pub now: Nanos,
}

impl<'a, E> BurstContext<'a, E> {
    /// Returns the EtherTypes of stateless forwarding.
    #[inline]
    pub fn tag_types(&self) -> &TagTypes {
        self.stateless.map_or(&TagTypes::USUAL, StatelessForwarder::types)
    }

    /// Returns an entry's counter cell and compiled program.
    #[inline]
    pub fn entry(&self, id: EntryId) -> Option<(&'a Cell, &'a Program)> {
        let cells = self.cells;
        let cell = cells.get(id)?;
        Some((cell, self.program(cell)?))
    }

    /// Returns where hits of path records are counted.
    pub fn hit_counters(&self) -> HitCounters<'a> {
        HitCounters { cells: self.cells, counters: self.counters }
    }

    /// Returns the program of the entry to which a counter cell belongs.
    #[inline]
    pub fn program(&self, cell: &Cell) -> Option<&'a Program> {
        let programs = self.programs;
        programs.get(cell.program() as usize)?.as_deref()
    }

    /// Notes that an output failed. The reason is counted when the packet's outcome is known: as a drop of
    /// the packet if none of its copies was sent, else as a dropped copy.
    pub fn fail(&mut self, packet: &mut Packet, reason: DropReason) {
        packet.scarce |= reason.is_scarcity();
        if let Some(earlier) = packet.reason.replace(reason) {
            self.count_dropped_copy(earlier);
        }
    }

    /// Counts the outcome of a packet.
    #[inline]
    pub fn count_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Forwarded => self.burst_counters.forwarded += 1,
            Outcome::Consumed => self.burst_counters.consumed += 1,
            Outcome::Dropped(reason) => {
                self.burst_counters.scarce |= reason.is_scarcity();
                self.counters.add_dropped(reason);
            }
        }
    }

    /// Counts a dropped copy of a packet that is not itself dropped.
    pub fn count_dropped_copy(&mut self, reason: DropReason) {
        self.burst_counters.scarce |= reason.is_scarcity();
        self.counters.add_copies_dropped(reason, 1);
    }

    /// Adds the counters of the burst to those of the worker.
    pub fn add_counters(&self) {
        self.counters.add(&self.burst_counters);
    }
}
