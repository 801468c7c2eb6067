// SPDX-License-Identifier: Apache-2.0
//! A packet in the pipeline: its frame, its headers and its forwarding state.

use actions::{ActionSet, OutputList, PacketData};
use backlog::BacklogShare;
use engines::NONE;
use flow::{DropReason, EntryId, Next, PortNo, TableId};
use frame::{Frame, Lane};
use keys::{Hops, KeyedPacket, Stations};

/// Position of a packet in the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Waits for its entry in a table. A lookup or an index gives the entry.
    Waits(Next),
    /// Waits until its entry in this table runs. The entry is [`Packet::known`].
    Known(TableId),
    /// Waits until the entries of its path run. They are in [`Packet::hops`] and come from a path record.
    Recorded,
    /// Waits for its action set to run.
    Finish,
    /// All instructions are done.
    Done,
}

/// A state is written and read as one word.
const _: () = assert!(size_of::<State>() == 8);

impl State {
    /// Returns the table that a packet in this state waits for.
    #[inline]
    pub fn waits_for(self) -> Option<TableId> {
        match self {
            Self::Waits(next) => Some(next.table()),
            Self::Known(table) => Some(table),
            Self::Recorded | Self::Finish | Self::Done => None,
        }
    }
}

/// Path that a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// The fast-forwarding path.
    Fast,
    /// The tables, after a miss on the fast-forwarding path: the LUT of a table had no record for the
    /// packet's key.
    Missed,
    /// The tables. The packet was never on the fast-forwarding path, or hit a normal entry.
    Tables,
    /// The entries of a path record.
    Recorded,
    /// The fast-forwarding path or the express path, but the packet waits until earlier packets of its flow
    /// have left.
    Held,
    /// The packet passed the whole fast-forwarding path or the express path, and has left.
    Left,
}

/// What an output sends: a copy of the packet, or the packet's own frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// A copy, because the packet is still needed.
    Copy,
    /// The frame itself, because nothing happens to the packet afterwards.
    Frame,
}

/// A packet in the pipeline. It stays in one slot of the slab until it leaves.
#[derive(Debug)]
pub(crate) struct Packet {
    /// Bytes, headers and registers of the packet.
    pub data: PacketData,
    /// Actions that run at the end of the pipeline.
    pub set: ActionSet,
    /// Position in the pipeline.
    pub state: State,
    /// Id of the entry that the packet waits for in state `Known`.
    pub known: EntryId,
    /// Table of the entry hit last. Packet-ins name this table.
    pub table: TableId,
    /// Id of the entry hit last, or [`EntryId::NONE`].
    pub entry: EntryId,
    /// Tables that the packet has passed, or will pass if its state is `Recorded`, with the entry hit in
    /// each.
    pub hops: Hops,
    /// Learned addresses by which the port NORMAL has forwarded the packet, or will forward it if its state
    /// is `Recorded`.
    pub stations: Stations,
    /// Index of the path record that gave the packet's hops. By the time the packet leaves the backlog,
    /// another path record may have this index.
    pub record: u32,
    /// Whether a path record is to be made when the packet leaves the backlog.
    pub awaits_record: bool,
    /// Whether the entry hit last is a table-miss entry.
    pub miss_entry: bool,
    /// Whether every entry hit so far is low-latency.
    pub low_latency: bool,
    /// Path that the packet takes.
    pub path: Path,
    /// For a held packet: the backlog must drain up to this position before the packet may leave.
    pub fence: u32,
    /// Pending copies and packet-ins, which leave when the burst is finished.
    pub outputs: OutputList,
    /// Port by which the frame itself leaves, after all copies.
    pub leaves: Option<PortNo>,
    /// Latest reason why the packet or a copy of it was dropped.
    pub reason: Option<DropReason>,
    /// Whether the packet or a copy of it was dropped for lack of space.
    pub scarce: bool,
}

impl KeyedPacket for Packet {
    #[inline(always)]
    fn data(&self) -> &PacketData {
        &self.data
    }

    #[inline(always)]
    fn data_mut(&mut self) -> &mut PacketData {
        &mut self.data
    }
}

impl Packet {
    pub fn empty() -> Self {
        Self {
            data: PacketData::empty(),
            set: ActionSet::default(),
            state: State::Done,
            known: EntryId(0),
            table: TableId(0),
            entry: EntryId(0),
            hops: Hops::NONE,
            stations: Stations::NONE,
            record: NONE,
            awaits_record: false,
            miss_entry: false,
            low_latency: true,
            path: Path::Tables,
            fence: 0,
            outputs: OutputList::default(),
            leaves: None,
            reason: None,
            scarce: false,
        }
    }

    /// Sets up the slot for a frame that has just arrived at a port.
    #[inline(always)]
    pub fn admit(&mut self, frame: Frame, in_port: PortNo) {
        self.data.admit(frame, in_port);
        self.set.clear();
        self.state = State::Waits(Next::Table(TableId(0)));
        self.hops.clear();
        self.awaits_record = false;
        self.low_latency = true;
        self.path = Path::Tables;
        self.outputs = OutputList::default();
        self.leaves = None;
        self.reason = None;
        self.scarce = false;
    }

    /// Returns the table in which the packet continues, or `None` if it has passed all tables.
    pub fn waits_for(&self) -> Option<TableId> {
        match self.state {
            State::Recorded => self.hops.list().tables().next(),
            state => state.waits_for(),
        }
    }

    /// Returns the transmit lane of the packet's frames.
    #[inline]
    pub fn lane(&self) -> Lane {
        if self.low_latency { Lane::LowLatency } else { Lane::Normal }
    }

    /// Returns the share of the backlog in which the packet is counted.
    #[inline]
    pub fn share(&self) -> BacklogShare {
        if self.path == Path::Missed { BacklogShare::Unknown } else { BacklogShare::Normal }
    }

    /// Returns whether a LUT record should be made for the entry just hit.
    ///
    /// This is the case for low-latency packets, and for packets that missed a LUT. A LUT record of a normal
    /// entry saves later packets a lookup in the table.
    #[inline]
    pub fn learns(&self) -> bool {
        self.low_latency || self.path == Path::Missed
    }
}
