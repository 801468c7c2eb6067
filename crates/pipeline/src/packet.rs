// SPDX-License-Identifier: Apache-2.0
//! A packet on its way through the tables: its frame and everything the pipeline knows of it.

use crate::action_set::ActionSet;
use crate::outs::Chain;
use flow::{DropReason, EntryId, Ext, Next, PortNo};
use frame::Frame;
use wire::layers::header;
use wire::{Depth, Layers};

/// Where a packet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Waits for a lookup in this table.
    Lookup(u8),
    /// Waits for the entry with this index of a linear table.
    Direct(u8, u32),
    /// The entry that it hits in this table is known.
    Known(u8, EntryId),
    /// Its action set is to be executed.
    Finish,
    /// Nothing more happens to it.
    Done,
}

impl State {
    /// Of a packet that goes on to a table.
    #[inline]
    pub fn of(next: Next) -> Self {
        match next {
            Next::Table(table) => Self::Lookup(table),
            Next::Direct { table, index } => Self::Direct(table, index),
        }
    }

    /// The table that a packet in this state waits for.
    #[inline]
    pub fn waits_for(self) -> Option<u8> {
        match self {
            Self::Lookup(table) | Self::Direct(table, _) | Self::Known(table, _) => Some(table),
            Self::Finish | Self::Done => None,
        }
    }
}

/// Which path a packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// The fast-forwarding path.
    Fast,
    /// The tables; it was on the fast-forwarding path, and the LUT of the table it waits for does not know its value.
    Missed,
    /// The tables.
    Tables,
    /// The fast-forwarding path, once earlier packets of its value have left.
    Held,
    /// It got through the fast-forwarding path and has left.
    Left,
}

/// A packet on its way.
#[derive(Debug)]
pub(crate) struct Packet {
    /// The bytes; hollow once the frame has left.
    pub frame: Frame,
    /// The extended header. Its parser's part is as deep as `layers`.
    pub ext: Ext,
    /// The headers found so far.
    pub layers: Layers,
    /// Actions that wait for the end of the pipeline.
    pub set: ActionSet,
    /// Where it stands.
    pub state: State,
    /// The entry hit last, whose outputs these are.
    pub table: u8,
    /// Its id.
    pub entry: EntryId,
    /// It was the table-miss entry.
    pub miss_entry: bool,
    /// Every entry hit so far is low-latency.
    pub low_latency: bool,
    /// Which path it takes.
    pub path: Path,
    /// What it is held back for: packets that joined the backlog before this position.
    pub fence: u32,
    /// Egress queue.
    pub queue: u32,
    /// Copies and reports that it sends when the burst is through.
    pub outs: Chain,
    /// The port that the frame itself leaves by, after these.
    pub leaves: Option<PortNo>,
    /// Copies given to ports.
    pub sent: u32,
    /// Copies given to the controller.
    pub reported: u32,
    /// The last reason met for a copy or the packet to be dropped.
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
            outs: Chain::default(),
            leaves: None,
            sent: 0,
            reported: 0,
            reason: None,
        }
    }

    /// Sets up a packet that just arrived.
    #[inline]
    pub fn admit(&mut self, frame: Frame) {
        self.ext = Ext::arriving(frame.meta.in_port);
        self.frame = frame;
        self.layers = Layers::default();
        self.set.clear();
        self.state = State::Lookup(0);
        self.low_latency = true;
        self.path = Path::Tables;
        self.queue = 0;
        self.outs = Chain::default();
        self.leaves = None;
        self.sent = 0;
        self.reported = 0;
        self.reason = None;
    }

    /// Whether what it just hit is worth a record: it is still low-latency, or the next of its value may leave the
    /// fast-forwarding path knowing where to go on.
    #[inline]
    pub fn learns(&self) -> bool {
        self.low_latency || self.path == Path::Missed
    }

    /// Finds headers at least this deep.
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

    /// Forgets the headers: the next one to ask finds them anew.
    #[inline]
    pub fn forget_layers(&mut self) {
        self.layers = Layers::default();
    }

    /// Whether all these headers are there, after finding them.
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

    /// Takes the frame, leaving a hollow one.
    #[inline]
    pub fn take_frame(&mut self) -> Frame {
        std::mem::replace(&mut self.frame, Frame::hollow())
    }
}
