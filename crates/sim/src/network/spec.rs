// SPDX-License-Identifier: Apache-2.0
//! Inputs of a network simulation: switches, links, hosts, flows, and acts that change the network.

use flow::stateless::StatelessConfig;
use flow::{Nanos, PortNo};
use model::Change;
use port_cache::PortCacheConfig;
use std::sync::Arc;

/// A network, its traffic, and its changes. Times are relative to the start of the run.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Switches.
    pub nodes: Vec<Node>,
    /// Links between switches.
    pub links: Vec<NetworkLink>,
    /// Hosts, which send and receive packets.
    pub hosts: Vec<Host>,
    /// Flows between hosts.
    pub flows: Vec<Flow>,
    /// Changes of the network, with their times.
    pub acts: Vec<(Nanos, Act)>,
    /// Delay in nanoseconds after which both ends of a link detect a change of its state.
    pub detection_ns: Nanos,
    /// Seed for the contents of packets and for the switches' hashes.
    pub seed: u64,
    /// Receive rings, path records and port caches of all switches. If `None`, switches have none of them,
    /// and a packet leaves a switch at the time of its arrival.
    pub buffers: Option<SwitchBuffers>,
}

/// Receive rings, path records and port caches of each switch, and the time during which they are counted.
#[derive(Clone, Copy, Debug)]
pub struct SwitchBuffers {
    /// Settings of the port cache, or `None` if it is off.
    pub port_cache: Option<PortCacheConfig>,
    /// Number of path records of a switch. 0 turns the express path off.
    pub records: usize,
    /// Maximum number of packets that wait in the receive ring of a port.
    pub ring: usize,
    /// Rate in bit/s and queue capacity in frames of the links of hosts, in both directions. If `None`, they
    /// take no time.
    pub host_link: Option<(u64, usize)>,
    /// Begin of the time that is counted.
    pub begin_ns: Nanos,
    /// End of the time that is counted, or `None` for the end of the run.
    pub end_ns: Option<Nanos>,
}

/// Maximum number of unserved searches of a switch in a network, and of the experiments with port caches.
/// While there are as many, packets that do not wait for a search are dropped. Without this limit, packets
/// would leave at once although the searcher has no time for them.
pub const UNSERVED_MAX: u32 = 64;

/// Layer of a switch in a fat tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// Switches of hosts.
    Edge,
    /// Switches between edge and core switches of a pod.
    Aggregation,
    /// Switches between pods.
    Core,
}

impl Layer {
    /// Returns the name of the layer.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Aggregation => "aggregation",
            Self::Core => "core",
        }
    }
}

/// A switch of the network.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Name of the switch.
    pub name: String,
    /// Port numbers.
    pub ports: Vec<PortNo>,
    /// Layer of the switch, if the network is a fat tree.
    pub layer: Option<Layer>,
    /// Configuration that applies before the first packet.
    pub setup: Setup,
}

/// Configuration of a switch.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Changes of entries and groups, applied as one operation.
    pub changes: Vec<Change>,
    /// New stateless configuration, or `None` to keep the current one.
    pub stateless: Option<Arc<StatelessConfig>>,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// Index of the switch.
    pub node: usize,
    /// Port number at the switch.
    pub port: PortNo,
}

/// A link between two switches, with the same properties in both directions.
#[derive(Clone, Copy, Debug)]
pub struct NetworkLink {
    /// The two ends.
    pub ends: [End; 2],
    /// Delay in nanoseconds from the end of a frame's transmission to its arrival.
    pub delay_ns: Nanos,
    /// Rate in bit/s, including 24 bytes of preamble, FCS and gap per frame. If `None`, transmission takes no
    /// time.
    pub rate_bps: Option<u64>,
    /// Queue capacity per direction in frames, if there is a rate. Excess frames are lost.
    pub queue_frames: usize,
}

/// A host at a switch. The connection to the switch does not fail. It takes no time, unless the switches have
/// a [`SwitchBuffers::host_link`].
#[derive(Clone, Debug)]
pub struct Host {
    /// Name of the host.
    pub name: String,
    /// Switch port to which the host is connected.
    pub at: End,
}

/// A flow of packets from one host to another.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Index of the sending host.
    pub from: usize,
    /// Index of the receiving host.
    pub to: usize,
    /// Bytes of a packet, except for its unique payload.
    pub template: Arc<[u8]>,
    /// Offset of the payload: an 8-byte packet number followed by random bytes. No checksum covers it.
    pub payload_at: usize,
    /// Time of the first packet.
    pub first_ns: Nanos,
    /// Interval between packets in nanoseconds.
    pub interval_ns: Nanos,
    /// Number of packets.
    pub packets: u32,
    /// Times of all packets in ascending order, which replace `first_ns` and `interval_ns`.
    pub times: Option<Arc<[Nanos]>>,
    /// Maximum number of links that a packet may cross.
    pub hops_max: u32,
    /// Planned paths, each for a separate period; empty if the plan is unknown. The flow counts as protected
    /// from a failure only if the plan protects all of these paths.
    pub routes: Vec<Vec<Hop>>,
}

impl Flow {
    /// Returns the time of packet `number` of the flow.
    #[must_use]
    pub fn time_of(&self, number: u32) -> Nanos {
        match &self.times {
            Some(times) => times.get(number as usize).copied().unwrap_or_default(),
            None => self.first_ns.saturating_add(u64::from(number) * self.interval_ns),
        }
    }
}

/// A link on a planned path, with the failures at this link that cause no loss once they are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Index of the link.
    pub link: usize,
    /// Index of the switch to which the link leads.
    pub node: usize,
    /// Whether the plan protects against a failure of the link.
    pub link_guarded: bool,
    /// Whether the plan protects against a failure of the switch `node`.
    pub node_guarded: bool,
}

/// A change of the network during the run.
#[derive(Clone, Debug)]
pub enum Act {
    /// A link fails or is repaired.
    Link {
        /// Index of the link.
        link: usize,
        /// Whether the link works from now on.
        works: bool,
    },
    /// A switch fails with all its links, or returns with its last configuration.
    Node {
        /// Index of the switch.
        node: usize,
        /// Whether the switch works from now on.
        works: bool,
    },
    /// A switch is reconfigured.
    Configure {
        /// Index of the switch.
        node: usize,
        /// Configuration to apply in addition to the existing one.
        setup: Setup,
    },
}
