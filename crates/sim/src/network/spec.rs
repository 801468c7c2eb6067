// SPDX-License-Identifier: Apache-2.0
//! A network as it is given: switches, links, hosts, what hosts send, and what happens to it meanwhile.

use flow::stateless::Stateless;
use flow::{Nanos, PortNo};
use model::Change;
use std::sync::Arc;

/// A network, its traffic, and what happens to it. Times are from the beginning of the run.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Switches.
    pub nodes: Vec<Node>,
    /// What joins them.
    pub links: Vec<Link>,
    /// What sends and receives.
    pub hosts: Vec<Host>,
    /// What is sent.
    pub flows: Vec<Flow>,
    /// What happens, and when.
    pub acts: Vec<(Nanos, Act)>,
    /// From a change of a link to both its ends' knowing of it, ns.
    pub detection_ns: Nanos,
    /// Of the packets' contents and the switches' hashes.
    pub seed: u64,
}

/// A switch.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its ports.
    pub ports: Vec<PortNo>,
    /// What it is configured with before the first packet.
    pub setup: Setup,
}

/// Configuration of a switch.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Changes of entries and groups, as one.
    pub changes: Vec<Change>,
    /// The stateless lane, if it is to be another one.
    pub lane: Option<Arc<Stateless>>,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct End {
    /// Place of the switch in the list.
    pub node: usize,
    /// Its port.
    pub port: PortNo,
}

/// A link between two switches, the same in both directions.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Its ends.
    pub ends: [End; 2],
    /// From the end of a frame's transmission to its arrival, ns.
    pub delay_ns: Nanos,
    /// Bits a second, with 24 bytes of preamble, FCS and gap for each frame; none: transmission takes no time.
    pub rate_bps: Option<u64>,
    /// Frames that wait for transmission in one direction, at most; more are lost. Without a rate none waits.
    pub queue_frames: usize,
}

/// A host at a switch. What joins the two takes no time and does not fail.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub at: End,
}

/// Packets of one host for another.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Place of the sender in the list of hosts.
    pub from: usize,
    /// Place of the receiver.
    pub to: usize,
    /// A packet, but for what tells it from others.
    pub template: Arc<[u8]>,
    /// From here on its bytes are its number, 8 of them, and noise. No checksum covers them.
    pub payload_at: usize,
    /// When the first is sent.
    pub first_ns: Nanos,
    /// From one to the next, ns.
    pub interval_ns: Nanos,
    /// How many.
    pub packets: u32,
    /// Links that a packet may cross at most.
    pub hops_max: u32,
    /// The paths that are planned, each for a time of its own; none if nothing is known of them. What is promised holds for all.
    pub routes: Vec<Vec<Hop>>,
}

/// A link that a path crosses, and what may fail there without loss once it is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Place of the link in the list.
    pub link: usize,
    /// The switch that it leads to.
    pub node: usize,
    /// The link may fail.
    pub link_guarded: bool,
    /// The switch that it leads to may fail.
    pub node_guarded: bool,
}

/// Something that happens.
#[derive(Clone, Debug)]
pub enum Act {
    /// A link fails, or is repaired.
    Link {
        /// Its place in the list.
        link: usize,
        /// It works from now on.
        works: bool,
    },
    /// A switch fails with all its links, or is back with what it was configured with.
    Node {
        /// Its place in the list.
        node: usize,
        /// It works from now on.
        works: bool,
    },
    /// A switch is configured.
    Configure {
        /// Its place in the list.
        node: usize,
        /// With what, beside what it has.
        setup: Setup,
    },
}
