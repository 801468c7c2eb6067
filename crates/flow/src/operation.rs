// SPDX-License-Identifier: Apache-2.0
//! The operations that change a data plane. Model and data plane speak in these; a sequence of them, each with its
//! place among the packets, is what the law is about.

use crate::Action;
use crate::group::Group;
use crate::meter::Meter;
use crate::stateless::Stateless;
use crate::{EntryId, FlowEntry, Instructions, PortNo};
use std::sync::Arc;

/// Number of the internal table of learned MACs, behind the controller's 255 tables. Its entries match `vlan_vid`
/// under 0xfff and `dl_dst`, and apply one output.
pub const MAC_TABLE: u8 = 255;

/// One operation: takes effect as a whole, between two packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Changes of entries, in order.
    Entries(Vec<EntryChange>),
    /// A port was added or its state changed.
    Port(PortState),
    /// A port went away.
    RemovePort(PortNo),
    /// A group was added, or replaced with all that it had counted. The groups that it sends to or watches exist, and
    /// from none of them does a chain lead back to it.
    Group(Arc<Group>),
    /// A meter was added, or replaced with all that it had counted.
    Meter(Arc<Meter>),
    /// A meter went away. No entry uses it.
    RemoveMeter(u32),
    /// A packet of the controller's goes its way, judged by the version of this operation.
    PacketOut(Arc<PacketOut>),
    /// A group went away. No entry and no other group sends to it.
    RemoveGroup(u32),
    /// Other settings.
    Settings(Settings),
    /// The stateless lane, whole; none: there is none.
    Stateless(Option<Arc<Stateless>>),
    /// Several operations as one: no packet sees a part of them. What is promised of operations that they leave behind
    /// holds at the end. There are no packets of the controller's among them, and no further [`Operation::All`].
    All(Vec<Operation>),
}

impl Operation {
    /// The operations that this one stands for: itself, or those that it joins.
    #[must_use]
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::All(all) => all,
            one => std::slice::from_ref(one),
        }
    }
}

/// A packet from the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    /// The port it is taken to have come in by: a real one, or CONTROLLER for none.
    pub in_port: PortNo,
    /// Actions applied to it. An output to TABLE stands last, if at all: then the packet goes through the tables.
    pub actions: Vec<Action>,
    /// The frame.
    pub bytes: Vec<u8>,
}

/// A change of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// A new entry. Its id is free, no entry with its table, priority and match lives.
    Add(Arc<FlowEntry>),
    /// A living entry gets other instructions; its place among entries of its priority stays.
    Modify {
        /// The entry.
        id: EntryId,
        /// Its table.
        table: u8,
        /// What it does from now on.
        instructions: Arc<Instructions>,
        /// Whether it is low-latency from now on.
        low_latency: bool,
        /// It counts from 0 again.
        reset_counts: bool,
    },
    /// An entry goes. Its counters can be read until the id is used again.
    Remove {
        /// The entry.
        id: EntryId,
        /// Its table.
        table: u8,
    },
}

/// How packets are treated whatever they hit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Drop IP fragments as they come in (OFPC_FRAG_DROP).
    pub drop_fragments: bool,
    /// A packet whose TTL can not be decremented goes to the controller before it is dropped (OFPR_INVALID_TTL).
    pub report_invalid_ttl: bool,
}

/// What forwarding must know of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortState {
    /// Its number.
    pub number: PortNo,
    /// Link and administrative state.
    pub up: bool,
    /// Drop what comes in (OFPPC_NO_RECV).
    pub no_recv: bool,
    /// Drop what is sent here (OFPPC_NO_FWD).
    pub no_fwd: bool,
    /// Not part of a flood (OFPPC_NO_FLOOD of older versions; NORMAL and FLOOD heed it).
    pub no_flood: bool,
    /// No packet-ins for packets from here (OFPPC_NO_PACKET_IN).
    pub no_packet_in: bool,
}

impl PortState {
    /// A port that is up, without restrictions.
    #[must_use]
    pub fn up(number: PortNo) -> Self {
        Self { number, up: true, no_recv: false, no_fwd: false, no_flood: false, no_packet_in: false }
    }
}
