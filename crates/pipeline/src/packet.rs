// SPDX-License-Identifier: Apache-2.0
//! A packet in the pipeline: its frame, its headers and its forwarding state.

use crate::action_set::ActionSet;
use crate::pending_outputs::OutputList;
use flow::{DropReason, EntryId, Ext, Next, PortNo};
use frame::{Frame, Lane};
use wire::layers::header;
use wire::{Depth, Layers};

/// Position of a packet in the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Waits for a lookup in this table.
    Lookup(u8),
    /// Waits for the entry at this index of a linear table.
    Direct(u8, u32),
    /// Waits for its entry in this table to run. The entry is known without a lookup.
    Known(u8, EntryId),
    /// Waits for its action set to run.
    Finish,
    /// All instructions are done.
    Done,
}

impl State {
    /// Returns the state of a packet that continues with `next`.
    #[inline]
    pub fn of(next: Next) -> Self {
        match next {
            Next::Table(table) => Self::Lookup(table),
            Next::Direct { table, index } => Self::Direct(table, index),
        }
    }

    /// Returns the table that a packet in this state waits for.
    #[inline]
    pub fn waits_for(self) -> Option<u8> {
        match self {
            Self::Lookup(table) | Self::Direct(table, _) | Self::Known(table, _) => Some(table),
            Self::Finish | Self::Done => None,
        }
    }
}

/// Path that a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// The fast-forwarding path.
    Fast,
    /// The tables, after the fast-forwarding path: the LUT of the table it waits for has no record of its
    /// value.
    Missed,
    /// The tables.
    Tables,
    /// The fast-forwarding path, after earlier packets of its value have left.
    Held,
    /// The packet passed the whole fast-forwarding path and has left.
    Left,
}

/// What an output takes of a packet.
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
    /// Bytes of the packet. The frame is hollow once it has been given away.
    pub frame: Frame,
    /// Extended header. Its parsed part is as deep as `layers`.
    pub ext: Ext,
    /// Headers found so far.
    pub layers: Layers,
    /// Actions that run at the end of the pipeline.
    pub set: ActionSet,
    /// Position in the pipeline.
    pub state: State,
    /// Table of the entry hit last, to which packet-ins are attributed.
    pub table: u8,
    /// Id of the entry hit last, or `NONE`.
    pub entry: EntryId,
    /// Whether the entry hit last is a table-miss entry.
    pub miss_entry: bool,
    /// Whether every entry hit so far is low-latency.
    pub low_latency: bool,
    /// Path that the packet takes.
    pub path: Path,
    /// Backlog position that must drain before this packet may leave, if it is held.
    pub fence: u32,
    /// Egress queue of later outputs.
    pub queue: u32,
    /// Pending copies and reports, which leave when the burst is finished.
    pub outputs: OutputList,
    /// Port by which the frame itself leaves, after all copies.
    pub leaves: Option<PortNo>,
    /// Number of copies given to ports.
    pub sent: u32,
    /// Number of copies given to the controller.
    pub reported: u32,
    /// Latest reason for which the packet or a copy of it was dropped.
    pub reason: Option<DropReason>,
}

impl Packet {
    pub fn empty() -> Self {
        Self {
            frame: Frame::hollow(),
            ext: Ext::default(),
            layers: Layers::default(),
            set: ActionSet::default(),
            state: State::Done,
            table: 0,
            entry: 0,
            miss_entry: false,
            low_latency: true,
            path: Path::Tables,
            fence: 0,
            queue: 0,
            outputs: OutputList::default(),
            leaves: None,
            sent: 0,
            reported: 0,
            reason: None,
        }
    }

    /// Sets up the slot for a frame that has just arrived.
    #[inline]
    pub fn admit(&mut self, frame: Frame) {
        self.ext = Ext::arriving(PortNo(frame.meta.in_port));
        self.frame = frame;
        self.layers = Layers::default();
        self.set.clear();
        self.state = State::Lookup(0);
        self.low_latency = true;
        self.path = Path::Tables;
        self.queue = 0;
        self.outputs = OutputList::default();
        self.leaves = None;
        self.sent = 0;
        self.reported = 0;
        self.reason = None;
    }

    /// Returns the transmit lane of the packet's frames.
    #[inline]
    pub fn lane(&self) -> Lane {
        if self.low_latency { Lane::LowLatency } else { Lane::Normal }
    }

    /// Returns whether the entry just hit is worth a LUT record.
    ///
    /// This is so for low-latency packets, and for packets that missed a LUT. A record of a normal entry
    /// spares the next packet of that value a table lookup.
    #[inline]
    pub fn learns(&self) -> bool {
        self.low_latency || self.path == Path::Missed
    }

    /// Parses headers until they are known at least to this depth.
    #[inline]
    pub fn locate(&mut self, depth: Depth) {
        if self.layers.depth < depth {
            self.locate_anew(depth);
        }
    }

    #[inline]
    fn locate_anew(&mut self, depth: Depth) {
        wire::deepen(self.frame.bytes(), depth, &mut self.layers);
        self.ext.set_layers(&self.layers);
    }

    /// Invalidates the parsed headers. The next user parses them again.
    #[inline]
    pub fn forget_layers(&mut self) {
        self.layers = Layers::default();
    }

    /// Returns whether the packet has all of `headers`, a mask of `wire::layers::header` bits. Parses as deep
    /// as needed.
    #[inline]
    pub fn has(&mut self, headers: u32) -> bool {
        let deep = header::TCP | header::UDP | header::SCTP | header::ICMPV4 | header::ICMPV6;
        let deep = deep | header::ND | header::ND_SLL | header::ND_TLL;
        self.locate(match headers {
            0 => Depth::None,
            header::VLAN => Depth::L2,
            _ if headers & deep != 0 => Depth::L4,
            _ => Depth::L3,
        });
        self.layers.present & headers == headers
    }

    /// Takes the frame and leaves a hollow one.
    #[inline]
    pub fn take_frame(&mut self) -> Frame {
        std::mem::replace(&mut self.frame, Frame::hollow())
    }
}
