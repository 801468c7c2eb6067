// SPDX-License-Identifier: Apache-2.0
//! Operations: the changes that the control plane (`model`) applies to a data plane. Each takes effect at one
//! position among the packets.

use crate::bridge::BridgeConfig;
use crate::group::Group;
use crate::meter::Meter;
use crate::stateless::StatelessConfig;
use crate::{Action, EntryId, FlowEntry, GroupId, Instructions, MeterId, PortNo, TableId};
use std::sync::Arc;

/// Number of the internal table of learned MAC addresses. Its entries match `dl_dst`, and `vlan_vid` under
/// the mask 0xfff. Each entry outputs to one port.
pub const MAC_TABLE: TableId = TableId(TableId::LAST.0 + 1);

/// A change of the data plane. It takes effect as a whole, between two packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Changes of entries, applied in order.
    Entries(Vec<EntryChange>),
    /// A port was added or its state changed.
    Port(PortState),
    /// A port was removed.
    RemovePort(PortNo),
    /// A group was added or replaced. Its counters start at 0. All groups that it sends to or watches exist,
    /// and no chain of groups leads back to it.
    Group(Arc<Group>),
    /// A meter was added or replaced. Its counters start at 0.
    Meter(Arc<Meter>),
    /// A meter was removed. No entry uses it.
    RemoveMeter(MeterId),
    /// A packet of the controller (packet-out), processed under the version of this operation.
    PacketOut(Arc<PacketOut>),
    /// The controller will not answer these packet-ins, because it did not get them. The packets that wait
    /// for the answers are released.
    EndWaits(Vec<HeldFlow>),
    /// A group was removed. No entry and no other group sends to it.
    RemoveGroup(GroupId),
    /// New values of the general settings.
    Settings(Settings),
    /// The complete configuration of stateless forwarding, or `None` to disable it.
    Stateless(Option<Arc<StatelessConfig>>),
    /// The complete settings of the ports for NORMAL, or `None` if all ports have the default settings.
    Bridge(Option<Arc<BridgeConfig>>),
    /// Several operations applied as one, between two packets. The preconditions of the parts must hold for
    /// the combined result. The list has no packet-out, no [`Operation::EndWaits`] and no other
    /// [`Operation::All`].
    All(Vec<Operation>),
}

impl Operation {
    /// Returns the joined operations of [`Operation::All`], or the operation itself.
    #[must_use]
    pub fn parts(&self) -> &[Self] {
        match self {
            Self::All(all) => all,
            one => std::slice::from_ref(one),
        }
    }
}

/// Packet-out of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketOut {
    /// Ingress port with which the packet is processed: a real port, or CONTROLLER.
    pub in_port: PortNo,
    /// Actions applied to the packet. An output to TABLE is last, and sends the packet through the tables.
    pub actions: Vec<Action>,
    /// Bytes of the frame.
    pub bytes: Vec<u8>,
    /// Packets that have waited for the controller's answer to a packet-in, and are released by this one.
    pub releases: Releases,
}

/// Packets that a packet-out releases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Releases {
    /// Those that wait for the answer to a packet-in about the same flow, because the packet-out has no
    /// buffer ID.
    #[default]
    SameFlow,
    /// Those that wait for the answer to the packet-in with the buffer ID of the packet-out.
    Held(HeldFlow),
    /// None, because the packet-in with the buffer ID of the packet-out was not quenched.
    Nothing,
}

impl From<Option<HeldFlow>> for Releases {
    /// Returns the packets that a packet-out with a buffer ID releases.
    fn from(flow: Option<HeldFlow>) -> Self {
        flow.map_or(Self::Nothing, Self::Held)
    }
}

/// Identifies the packets of a flow that wait in the port cache of a worker for an answer of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeldFlow {
    /// Number of the worker.
    pub worker: u16,
    /// Number of the flow's slot in the port cache.
    pub slot: u32,
    /// Generation of the slot. If the slot has another generation, the answer came too late.
    pub generation: u32,
}

/// Change of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// Adds an entry. Its ID is unused, and there is no entry with the same table, priority and match.
    Add(Arc<FlowEntry>),
    /// Gives an existing entry new instructions. Its order among entries of equal priority does not change.
    Modify {
        /// ID of the entry.
        id: EntryId,
        /// Table of the entry.
        table: TableId,
        /// New instructions.
        instructions: Arc<Instructions>,
        /// Whether the entry is low-latency.
        low_latency: bool,
        /// Whether the counters are reset to 0.
        reset_counts: bool,
    },
    /// Removes an entry. Its counters can be read until the ID is released.
    Remove {
        /// ID of the entry.
        id: EntryId,
        /// Table of the entry.
        table: TableId,
    },
}

/// Settings that apply to every packet, whatever entries it hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Settings {
    /// Whether IP fragments are dropped at ingress (OFPC_FRAG_DROP).
    pub drop_fragments: bool,
    /// Whether a packet whose TTL cannot be decremented is sent to the controller before it is dropped
    /// (OFPR_INVALID_TTL).
    pub report_invalid_ttl: bool,
    /// Whether a controller takes packet-ins of table-miss entries (OFPR_NO_MATCH). Otherwise no packet waits
    /// for the answer to one.
    pub ask_controller: bool,
}

/// The part of a port's state that forwarding needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortState {
    /// Port number.
    pub number: PortNo,
    /// Whether the link is up and the port is administratively enabled.
    pub up: bool,
    /// Whether the port is administratively disabled (OFPPC_PORT_DOWN).
    pub disabled: bool,
    /// Drop packets received on the port (OFPPC_NO_RECV).
    pub no_recv: bool,
    /// Drop packets sent to the port (OFPPC_NO_FWD).
    pub no_fwd: bool,
    /// Exclude the port from NORMAL and FLOOD (OFPPC_NO_FLOOD of older versions).
    pub no_flood: bool,
    /// Send no packet-ins for packets received on the port (OFPPC_NO_PACKET_IN).
    pub no_packet_in: bool,
}

impl PortState {
    /// Returns the state of a port that is up and has no restrictions.
    #[must_use]
    pub fn up(number: PortNo) -> Self {
        Self {
            number,
            up: true,
            disabled: false,
            no_recv: false,
            no_fwd: false,
            no_flood: false,
            no_packet_in: false,
        }
    }
}
