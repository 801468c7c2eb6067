// SPDX-License-Identifier: Apache-2.0
//! Configuration of stateless forwarding: how a switch computes the output port of a tagged packet. The
//! semantics are in `reference::stateless`. docs/planning.md describes the plans that controllers make.

mod check;
mod section;

pub use check::StatelessError;
pub use section::{StatelessChange, StatelessSection};

use crate::PortNo;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

/// Stateless forwarding of one switch. Tagged packets are accepted from `trusted` ports only. Without this
/// configuration, a switch treats tagged packets like all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatelessConfig {
    /// EtherTypes that identify tagged packets.
    pub types: TagTypes,
    /// Ports that lead to other switches of the network.
    pub trusted: BTreeSet<PortNo>,
    /// MTU of each port in bytes, after the Ethernet header. A port without an entry has no limit.
    pub mtu_bytes: BTreeMap<PortNo, usize>,
    /// KeyFlow: the configuration bank of each key epoch.
    pub banks: [Option<Bank>; 2],
    /// freeRtr's PolKA. Its labels are indices of next nodes.
    pub polka: Option<Bank>,
    /// Tag-and-Forward.
    pub gates: Option<Gates>,
}

/// EtherTypes of the stateless headers. If two are equal, the first one in this order applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagTypes {
    /// KeyFlow.
    pub keyflow: u16,
    /// freeRtr's PolKA.
    pub polka: u16,
    /// Tag-and-Forward in its published form.
    pub tf: u16,
    /// Tag-and-Forward in the wide form.
    pub tf_wide: u16,
}

impl TagTypes {
    /// Default EtherTypes.
    pub const USUAL: Self = Self {
        keyflow: wire::keyflow::ETHERTYPE,
        polka: wire::polka::ETHERTYPE,
        tf: wire::tf::ETHERTYPE,
        tf_wide: wire::tf::ETHERTYPE_WIDE,
    };
}

impl Default for TagTypes {
    fn default() -> Self {
        Self::USUAL
    }
}

/// Configuration for keys. The residue of a key modulo the switch's ID is a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bank {
    /// ID of the switch.
    pub id: NodeId,
    /// What each label selects. Packets with other labels are dropped.
    pub labels: BTreeMap<u32, Label>,
    /// Backup of each port, used if the port is down or is the packet's ingress port.
    pub backups: BTreeMap<PortNo, PortNo>,
}

/// What a label selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// Process the packet in the switch's own tables.
    Tables,
    /// Send the packet to this port.
    Port(PortNo),
}

/// ID of a switch: the modulus of keys, at least 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId {
    modulus: u32,
    arithmetic: Arithmetic,
}

/// Arithmetic of keys and IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// Integers (KeyFlow).
    Integer,
    /// Polynomials over GF(2), written as numbers whose bits are the coefficients (PolKA).
    Polynomial,
}

impl NodeId {
    /// Returns an ID, or `None` if `modulus` is below 2.
    #[must_use]
    pub fn new(arithmetic: Arithmetic, modulus: u32) -> Option<Self> {
        (modulus >= 2).then_some(Self { modulus, arithmetic })
    }

    /// Returns the modulus, at least 2.
    #[must_use]
    pub fn modulus(self) -> u32 {
        self.modulus
    }

    /// Returns the number of residues, which exceeds every label.
    #[must_use]
    pub fn residues(self) -> u32 {
        match self.arithmetic {
            Arithmetic::Integer => self.modulus,
            Arithmetic::Polynomial => 1 << self.modulus.ilog2(),
        }
    }

    /// Returns the arithmetic of the ID.
    #[must_use]
    pub fn arithmetic(self) -> Arithmetic {
        self.arithmetic
    }
}

/// Gates of a switch for Tag-and-Forward. The gate numbers of a kind are multiples of a common difference
/// (d), or there are no gates if d is 0. The value in a tag is rounded up to the next multiple of d, which is
/// the number of the output gate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// Difference between the numbers of neighbouring downward gates.
    pub down_d: u32,
    /// Difference between the numbers of neighbouring upward gates.
    pub up_d: u32,
    /// Difference between the numbers of a core switch's neighbouring external gates.
    pub external_d: u32,
    /// Highest gate number of a server. In a switch with external gates, a DOWN value above it selects an
    /// external gate.
    pub server_gate_max: u32,
    /// Gate of each port. If two gate numbers are equal, the port with the lower number is used.
    pub ports: BTreeMap<PortNo, Gate>,
}

/// Gate of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gate {
    /// Number of the gate.
    pub number: NonZeroU32,
    /// Special role of the gate.
    pub flag: GateFlag,
}

/// Special role of a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GateFlag {
    /// No special role.
    #[default]
    None,
    /// G_SRV: the gate leads to a server. Tags are popped.
    Server,
    /// G_EXT: the gate leads out of the network. Tags are popped.
    External,
    /// G_ASS: the gate of an aggregation switch towards an edge switch. Packets received on it may be sent to
    /// upward gates.
    Assists,
}
