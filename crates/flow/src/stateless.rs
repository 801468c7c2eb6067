// SPDX-License-Identifier: Apache-2.0
//! Configuration of the stateless lane: what a switch computes a tagged packet's port from. What it does with it is the
//! law's, in `reference::stateless`; what plans are made for is in docs/planning.md.

mod check;
mod section;

pub use check::StatelessError;
pub use section::{LaneChange, Section};

use crate::PortNo;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;

/// The lane of one switch. Ports that are not `trusted` may not send tagged packets at all, whatever the rest says. At a switch
/// without a lane tagged packets are like any others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stateless {
    /// What tells tagged packets.
    pub types: TagTypes,
    /// Ports that lead to other switches of the network.
    pub trusted: BTreeSet<PortNo>,
    /// What a port can carry behind its Ethernet header, bytes; ports that are not here carry anything.
    pub mtu_bytes: BTreeMap<PortNo, usize>,
    /// KeyFlow: the bank of each epoch.
    pub banks: [Option<Bank>; 2],
    /// freeRtr's PolKA: labels are indices of next nodes.
    pub polka: Option<Bank>,
    /// Tag-and-Forward.
    pub gates: Option<Gates>,
}

/// EtherTypes of the headers that the lane and its actions know. They differ; if two are the same, the first counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagTypes {
    /// KeyFlow.
    pub keyflow: u16,
    /// freeRtr's PolKA.
    pub polka: u16,
    /// Tag-and-Forward, the paper's form.
    pub tf: u16,
    /// Tag-and-Forward, the wide form.
    pub tf_wide: u16,
}

impl TagTypes {
    /// Those that are used unless it is said otherwise.
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

/// What a switch is in keys: it takes the key's residue by its ID for a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bank {
    /// The ID.
    pub id: NodeId,
    /// What labels stand for. Packets with others are dropped.
    pub labels: BTreeMap<u32, Label>,
    /// The port to take in place of one that is down, or by which the packet has come.
    pub backups: BTreeMap<PortNo, PortNo>,
}

/// What a label stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// The switch's own tables.
    Tables,
    /// A port.
    Port(PortNo),
}

/// The modulus of a switch, under which a key leaves something else at another switch. Never 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NodeId {
    modulus: u32,
    arithmetic: Arithmetic,
}

/// What keys and IDs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// Integers (KeyFlow).
    Integer,
    /// Polynomials over GF(2), written as numbers whose bits are the coefficients (PolKA).
    Polynomial,
}

impl NodeId {
    /// An ID, if there are two residues at least.
    #[must_use]
    pub fn new(arithmetic: Arithmetic, modulus: u32) -> Option<Self> {
        (modulus >= 2).then_some(Self { modulus, arithmetic })
    }

    /// The number, 2 and more.
    #[must_use]
    pub fn modulus(self) -> u32 {
        self.modulus
    }

    /// How many residues there are: labels are below it.
    #[must_use]
    pub fn residues(self) -> u32 {
        match self.arithmetic {
            Arithmetic::Integer => self.modulus,
            Arithmetic::Polynomial => 1 << self.modulus.ilog2(),
        }
    }

    /// What it is one of.
    #[must_use]
    pub fn arithmetic(self) -> Arithmetic {
        self.arithmetic
    }
}

/// The gates of a switch. A difference (d) of 0: it has no gates of that kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gates {
    /// Difference of the gates downwards.
    pub down_d: u32,
    /// Difference of the gates upwards.
    pub up_d: u32,
    /// Difference of a core's gates to the outside.
    pub external_d: u32,
    /// DOWN above it is a gate to the outside, at a switch that has some.
    pub server_gate_max: u32,
    /// The gate of each port. They differ; if two have the same number, the lower port's counts.
    pub ports: BTreeMap<PortNo, Gate>,
}

/// A port's gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gate {
    /// Its number.
    pub number: NonZeroU32,
    /// What is special about it.
    pub flag: GateFlag,
}

/// What is special about a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GateFlag {
    /// Nothing.
    #[default]
    None,
    /// G_SRV: a server is there. Tags are popped.
    Server,
    /// G_EXT: leads to the outside. Tags are popped.
    External,
    /// G_ASS: of an aggregation switch, to an edge switch. What comes in by it may go up.
    Assists,
}
