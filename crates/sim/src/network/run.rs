// SPDX-License-Identifier: Apache-2.0
//! Event loop of a network simulation.

use crate::network::buffered::{Buffered, RING_FULL};
use crate::network::events::Events;
use crate::network::exposure::Exposure;
use crate::network::instance::{Instance, InstanceState};
use crate::network::link_state::{LINK_DOWN, LinkState, QUEUE_FULL};
use crate::network::outages::{Outages, Trip, Visit};
use crate::network::packets::{self, Packet};
use crate::network::port::Sent;
use crate::network::report::{NetworkPlace, Report};
use crate::network::spec::{Act, End, Flow, Network, Setup};
use flow::{DropReason, Nanos, PortNo};
use hdrhistogram::CreationError;
use model::ModelError;
use std::collections::{HashMap, HashSet, VecDeque};

/// Start of virtual time for switches, in nanoseconds; 0 would mean that no time is set.
pub(super) const START_NS: Nanos = Nanos(1_000_000_000);
/// Upper bound on the number of links that a copy crosses.
const HOPS_MOST: u32 = 4_096;

/// Loss reason: the switch has failed.
const NODE_DOWN: &str = "node_down";
/// Loss reason: the frame was sent to a port without a link or host.
const UNCONNECTED: &str = "unconnected";
/// Loss reason: the frame arrived at a wrong host.
const MISDELIVERED: &str = "misdelivered";
/// Loss reason: the frame arrived with changed contents.
const DAMAGED: &str = "damaged";
/// Loss reason: the frame is in a forwarding loop.
const ENDLESS: &str = "endless";

/// Reason why a network cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// A switch refused its configuration.
    #[error("{node}: {source}")]
    Node {
        /// Name of the switch.
        node: String,
        /// Reason of the refusal.
        source: ModelError,
    },
    /// Two endpoints share a port, or an index is out of range.
    #[error("port {port} of {node}: {problem}")]
    Port {
        /// Name or index of the switch.
        node: String,
        /// Port number.
        port: PortNo,
        /// Description of the problem.
        problem: &'static str,
    },
    /// A flow or act refers to a missing host, link or switch.
    #[error("{what} {place} refers to a missing host, link or switch")]
    Place {
        /// "flow" or "act".
        what: &'static str,
        /// Index in the list of flows or acts.
        place: usize,
    },
    /// Something changes during the run although packets may wait in switches.
    #[error("switches with receive rings cannot fail or be reconfigured; remove the acts or the buffers")]
    Acts,
    /// A histogram could not be created.
    #[error(transparent)]
    Times(#[from] CreationError),
}

/// What is connected to a switch port.
#[derive(Clone, Copy, Debug)]
enum Peer {
    /// Index of a link, and index of the link's end at this port.
    Link(usize, usize),
    Host(usize),
}

/// A copy of a packet.
#[derive(Debug, Default)]
pub(super) struct Copy {
    pub packet: u64,
    pub hops: u32,
    /// Hash that identifies the copy's path.
    trail: u64,
    pub bytes: Vec<u8>,
    /// Path of the copy, recorded only if the run has failures.
    way: Vec<Visit>,
}

impl Copy {
    /// Returns the copy as it leaves a switch by a port, with these bytes.
    pub fn leaving(self, by: End, bytes: Vec<u8>) -> Self {
        Self { trail: packets::trail(self.trail, by.node, by.port.0), bytes, ..self }
    }
}

#[derive(Debug)]
pub(super) enum Event {
    /// The next packet of a flow is sent. The values are the flow's index and the number of packets sent
    /// before.
    Send(usize, u32),
    /// A copy arrives at an end of a link. `cuts` is the number of interruptions of the link when the copy
    /// was sent.
    Arrive { link: usize, end: usize, cuts: usize, copy: Copy },
    /// A copy arrives at the switch of the host that sent it.
    Enter { host: usize, copy: Copy },
    /// A copy arrives at a host.
    Reach { host: usize, copy: Copy },
    /// A search of this switch may have been answered.
    Wake(usize),
    /// The time that is counted begins or ends.
    Count { begins: bool },
    /// The ends of a link detect that it has come up or gone down.
    Detect { link: usize, up: bool },
    /// The act of the scenario with this index is carried out.
    Act(usize),
}

impl Event {
    /// Changes of the network precede packet events at the same time.
    fn rank(&self) -> u8 {
        match self {
            Self::Act(_) | Self::Count { .. } => 0,
            Self::Detect { .. } => 1,
            Self::Send(..)
            | Self::Arrive { .. }
            | Self::Enter { .. }
            | Self::Reach { .. }
            | Self::Wake(_) => 2,
        }
    }
}

/// Simulates a network until no packet is in flight.
///
/// # Errors
/// Returns an error if the network is invalid, or if a switch refuses its configuration.
pub fn run(network: &Network) -> Result<Report, NetworkError> {
    let mut running = Running::new(network)?;
    while let Some((at, event)) = running.events.pop() {
        running.now = at;
        running.happen(event)?;
    }
    Ok(running.finish())
}

pub(super) struct Running<'a> {
    pub network: &'a Network,
    pub switches: Vec<Instance>,
    /// Contents of the switches, if packets may wait in them.
    pub buffered: Option<Buffered>,
    /// Whether each switch works.
    works: Vec<bool>,
    link_states: Vec<LinkState>,
    peers: HashMap<End, Peer>,
    /// Indices of each switch's links.
    links_of: Vec<Vec<usize>>,
    events: Events<Event>,
    pub packets: Vec<Packet>,
    outages: Outages,
    paths: HashSet<u64>,
    /// Shortest distances from a switch to all other switches, in links.
    distances: HashMap<usize, Vec<u32>>,
    pub report: Report,
    pub sent: Vec<Sent>,
    pub now: Nanos,
}

impl<'a> Running<'a> {
    fn new(network: &'a Network) -> Result<Self, NetworkError> {
        check(network)?;
        let nodes = network.nodes.len();
        let mut running = Self {
            network,
            switches: Vec::with_capacity(nodes),
            buffered: network.buffers.map(|buffers| Buffered::new(network, buffers)).transpose()?,
            works: vec![true; nodes],
            link_states: network.links.iter().map(|link| LinkState::new(*link)).collect(),
            peers: peers(network)?,
            links_of: vec![Vec::new(); nodes],
            events: Events::default(),
            packets: Vec::new(),
            outages: Outages::of(network),
            paths: HashSet::new(),
            distances: HashMap::new(),
            report: Report::new(nodes)?,
            sent: Vec::new(),
            now: Nanos(0),
        };
        for (place, link) in network.links.iter().enumerate() {
            link.ends.iter().for_each(|end| running.links_of[end.node].push(place));
        }
        for (place, node) in network.nodes.iter().enumerate() {
            let made = Instance::new(node, network.buffers.as_ref(), START_NS);
            running
                .switches
                .push(made.map_err(|source| NetworkError::Node { node: node.name.clone(), source })?);
            running.configure(place, &node.setup)?;
        }
        for (place, (at, _)) in network.acts.iter().enumerate() {
            running.plan(*at, Event::Act(place));
        }
        for (place, flow) in network.flows.iter().enumerate() {
            running.report.hops_max.add(flow.hops_max.into());
            if flow.packets > 0 {
                running.plan(flow.time_of(0), Event::Send(place, 0));
            }
        }
        running.plan_counting();
        Ok(running)
    }

    pub(super) fn plan(&mut self, at: Nanos, event: Event) {
        self.events.push(at, event.rank(), event);
    }

    fn happen(&mut self, event: Event) -> Result<(), NetworkError> {
        match event {
            Event::Send(flow, before) => self.send(flow, before),
            Event::Arrive { link, end, cuts, copy } => {
                let link_state = &self.link_states[link];
                match link_state.cuts.get(cuts).copied() {
                    None => self.arrive(link_state.link.ends[end], copy),
                    Some(cut_ns) => self.lose(&copy, LINK_DOWN, NetworkPlace::Link(link), cut_ns),
                }
            }
            Event::Enter { host, copy } => self.arrive(self.network.hosts[host].at, copy),
            Event::Reach { host, copy } => self.deliver(host, &copy),
            Event::Wake(node) => self.wake(node),
            Event::Count { begins } => self.count(begins),
            Event::Detect { link, up } => {
                for end in self.network.links[link].ends {
                    let reported = self.switches[end.node].set_link(self.now + START_NS, end.port, up);
                    reported.map_err(|source| self.refused(end.node, source))?;
                }
            }
            Event::Act(place) => match &self.network.acts[place].1 {
                Act::Link { link, works } => {
                    self.link_states[*link].works = *works;
                    self.carrier(*link);
                }
                Act::Node { node, works } => {
                    self.works[*node] = *works;
                    self.links_of[*node].clone().into_iter().for_each(|link| self.carrier(link));
                }
                Act::Configure { node, setup } => self.configure(*node, setup)?,
            },
        }
        Ok(())
    }

    fn refused(&self, node: usize, source: ModelError) -> NetworkError {
        NetworkError::Node { node: self.network.nodes[node].name.clone(), source }
    }

    fn configure(&mut self, node: usize, setup: &Setup) -> Result<(), NetworkError> {
        let done = self.switches[node].configure(self.now + START_NS, setup);
        done.map_err(|source| self.refused(node, source))?;
        let (most, now) = (&mut self.report.states[node], self.switches[node].state());
        *most = InstanceState {
            entries: most.entries.max(now.entries),
            groups: most.groups.max(now.groups),
            labels: most.labels.max(now.labels),
            gates: most.gates.max(now.gates),
        };
        Ok(())
    }

    /// Updates the carrier state of a link, which its ends detect later.
    fn carrier(&mut self, link: usize) {
        let link_state = &mut self.link_states[link];
        let up = link_state.works && link_state.link.ends.iter().all(|end| self.works[end.node]);
        if link_state.set_up(self.now, up) {
            self.plan(self.now.saturating_add(self.network.detection_ns), Event::Detect { link, up });
        }
    }

    fn send(&mut self, place: usize, before: u32) {
        let flow = &self.network.flows[place];
        if before + 1 < flow.packets {
            self.plan(flow.time_of(before + 1).max(self.now), Event::Send(place, before + 1));
        }
        let number = self.packets.len() as u64;
        self.report.sent += 1;
        self.packets.push(Packet {
            flow: place as u32,
            copies: 1,
            sent_ns: self.now,
            arrived: false,
            strayed: false,
            epochs: 0,
        });
        let bytes = packets::bytes(flow, number, self.network.seed);
        let copy = Copy { packet: number, hops: 0, trail: 0, bytes, way: Vec::new() };
        match &mut self.buffered {
            Some(buffered) => {
                buffered.report.sent += u64::from(buffered.counts(self.now));
                self.enter(flow.from, copy);
            }
            None => self.arrive(self.network.hosts[flow.from].at, copy),
        }
    }

    /// Delivers a copy to a switch, and sends the resulting frames.
    fn arrive(&mut self, at: End, copy: Copy) {
        if !self.works[at.node] {
            return self.lose(&copy, NODE_DOWN, NetworkPlace::Node(at.node), self.now);
        }
        if self.buffered.is_some() {
            return self.receive(at, copy);
        }
        self.report.forwarded += 1;
        let Copy { packet, hops, trail, bytes, way } = copy;
        let mut sent = std::mem::take(&mut self.sent);
        let now = self.now + START_NS;
        let dropped = self.switches[at.node].forward(now, at.port, packet, bytes, &mut sent);
        if let Some(reason) = dropped {
            let gone = Copy { packet, hops, trail, bytes: Vec::new(), way: way.clone() };
            self.lose(&gone, reason, NetworkPlace::Node(at.node), self.now);
        } else if let Some(known) = self.packets.get_mut(packet as usize) {
            known.copies += sent.len() as u32 - 1;
        }
        for Sent { port, bytes, .. } in sent.drain(..) {
            let trail = packets::trail(trail, at.node, port.0);
            self.leave(End { port, ..at }, Copy { packet, hops, trail, bytes, way: way.clone() });
        }
        self.sent = sent;
    }

    /// Sends a copy through a port.
    pub(super) fn leave(&mut self, by: End, mut copy: Copy) {
        match self.peers.get(&by).copied() {
            None => self.lose(&copy, UNCONNECTED, NetworkPlace::Node(by.node), self.now),
            Some(Peer::Host(host)) if self.buffered.is_some() => self.reach(host, copy),
            Some(Peer::Host(host)) => self.deliver(host, &copy),
            Some(Peer::Link(link, end)) => {
                let link_state = &mut self.link_states[link];
                match link_state.send(self.now, end, copy.bytes.len()) {
                    Err(reason) => {
                        if let Some(buffered) = &mut self.buffered {
                            buffered.drops(by.node, reason, self.now);
                        }
                        self.lose(&copy, reason, NetworkPlace::Link(link), self.now);
                    }
                    Ok(at) => {
                        let (cuts, node) = (link_state.cuts.len(), link_state.link.ends[1 - end].node);
                        self.cross(&copy);
                        if copy.hops >= HOPS_MOST {
                            return self.lose(&copy, ENDLESS, NetworkPlace::Link(link), self.now);
                        }
                        copy.hops += 1;
                        if !self.outages.is_empty() {
                            copy.way.push(Visit { link, node, at_ns: at });
                        }
                        self.plan(at, Event::Arrive { link, end: 1 - end, cuts, copy });
                    }
                }
            }
        }
    }

    /// Counts a link that a copy crosses.
    fn cross(&mut self, copy: &Copy) {
        let Some(packet) = self.packets.get_mut(copy.packet as usize) else { return };
        let flow = &self.network.flows[packet.flow as usize];
        let added = copy.bytes.len().saturating_sub(flow.template.len());
        self.report.added_bits.add(8 * added as u64);
        packet.epochs |= packets::epoch(&copy.bytes).map_or(0, |epoch| 1 << epoch);
        if copy.hops + 1 > flow.hops_max && !std::mem::replace(&mut packet.strayed, true) {
            self.report.strayed += 1;
        }
    }

    fn deliver(&mut self, host: usize, copy: &Copy) {
        let Some(packet) = self.packets.get(copy.packet as usize).copied() else { return };
        let flow = &self.network.flows[packet.flow as usize];
        if host != flow.to {
            self.report.misdelivered += 1;
            return self.lose(copy, MISDELIVERED, NetworkPlace::Host(host), self.now);
        }
        if copy.bytes != packets::bytes(flow, copy.packet, self.network.seed) {
            self.report.damaged += 1;
            return self.lose(copy, DAMAGED, NetworkPlace::Host(host), self.now);
        }
        self.packets[copy.packet as usize].copies -= 1;
        if packet.arrived {
            self.report.duplicated += 1;
            return;
        }
        self.packets[copy.packet as usize].arrived = true;
        let exposure = self.over(flow, &packet, copy, None, self.now);
        let least = self.distance(self.network.hosts[flow.from].at.node, self.network.hosts[flow.to].at.node);
        let report = &mut self.report;
        report.delivered += 1;
        report.ends.entry(exposure).or_default().delivered += 1;
        report.by_epochs[usize::from(packet.epochs)] += 1;
        report.hops.add(copy.hops.into());
        report.detours.add(copy.hops.saturating_sub(least).into());
        report.latency.add((self.now - packet.sent_ns).0 as f64);
        if let Some(buffered) = &mut self.buffered
            && buffered.counts(packet.sent_ns)
        {
            buffered.report.delivered += 1;
            buffered.report.latency.add((self.now - packet.sent_ns).0 as f64);
        }
        self.paths.insert(packets::trail(copy.trail, flow.from, host as u32));
    }

    /// Records the loss of a copy, and the loss of the packet if this was its last copy.
    pub(super) fn lose(&mut self, copy: &Copy, reason: &'static str, place: NetworkPlace, at: Nanos) {
        let Some(packet) = self.packets.get_mut(copy.packet as usize) else { return };
        packet.copies -= 1;
        if packet.copies > 0 || packet.arrived {
            return;
        }
        let packet = *packet;
        let flow = &self.network.flows[packet.flow as usize];
        *self.report.lost.entry((reason, place)).or_default() += 1;
        if let Some(buffered) = &mut self.buffered
            && buffered.counts(packet.sent_ns)
        {
            *buffered.report.lost.entry(reason).or_default() += 1;
        }
        let exposure = self.over(flow, &packet, copy, Some(place), at);
        let ends = self.report.ends.entry(exposure).or_default();
        let is_crowd = [QUEUE_FULL, RING_FULL].contains(&reason)
            || DropReason::SCARCITY.iter().any(|scarcity| scarcity.name() == reason);
        *(if is_crowd { &mut ends.crowded_out } else { &mut ends.lost }) += 1;
    }

    /// Records the end of a packet, and classifies the packet by the failures that it encountered.
    fn over(
        &mut self,
        flow: &Flow,
        packet: &Packet,
        copy: &Copy,
        lost_at: Option<NetworkPlace>,
        ended_ns: Nanos,
    ) -> Exposure {
        self.report.end_ns = self.report.end_ns.max(ended_ns);
        let trip = Trip { sent_ns: packet.sent_ns, ended_ns, way: &copy.way, lost_at };
        self.outages.exposure(self.network, flow, trip)
    }

    /// Returns the length of the shortest path between two switches if nothing fails.
    fn distance(&mut self, from: usize, to: usize) -> u32 {
        let (links, links_of) = (&self.network.links, &self.links_of);
        let distances = self.distances.entry(from).or_insert_with(|| {
            let mut found = vec![u32::MAX; links_of.len()];
            found[from] = 0;
            let mut next = VecDeque::from([from]);
            while let Some(node) = next.pop_front() {
                let ends = links_of[node].iter().flat_map(|link| links[*link].ends);
                for End { node: peer, .. } in ends {
                    if found[peer] == u32::MAX {
                        found[peer] = found[node] + 1;
                        next.push_back(peer);
                    }
                }
            }
            found
        });
        distances[to]
    }

    fn finish(mut self) -> Report {
        self.report.paths = self.paths.len() as u64;
        self.report.failures = self.outages.failures();
        self.report.buffers = self.buffered.map(|mut buffered| {
            buffered.end(&mut self.switches);
            buffered.report
        });
        self.report
    }
}

/// Checks that every host, link and switch to which flows and acts refer exists.
fn check(network: &Network) -> Result<(), NetworkError> {
    if network.buffers.is_some() && !network.acts.is_empty() {
        return Err(NetworkError::Acts);
    }
    let (hosts, links, nodes) = (network.hosts.len(), network.links.len(), network.nodes.len());
    if let Some(place) = network.flows.iter().position(|flow| flow.from >= hosts || flow.to >= hosts) {
        return Err(NetworkError::Place { what: "flow", place });
    }
    let is_there = |act: &Act| match act {
        Act::Link { link, .. } => *link < links,
        Act::Node { node, .. } | Act::Configure { node, .. } => *node < nodes,
    };
    match network.acts.iter().position(|(_, act)| !is_there(act)) {
        Some(place) => Err(NetworkError::Place { what: "act", place }),
        None => Ok(()),
    }
}

/// Returns what is connected to each port.
fn peers(network: &Network) -> Result<HashMap<End, Peer>, NetworkError> {
    let mut peers = HashMap::new();
    let links = network
        .links
        .iter()
        .enumerate()
        .flat_map(|(place, link)| (0..2).map(move |end| (link.ends[end], Peer::Link(place, end))));
    let hosts = network.hosts.iter().enumerate().map(|(place, host)| (host.at, Peer::Host(place)));
    for (end, peer) in links.chain(hosts) {
        let node = network.nodes.get(end.node);
        let wrong = |problem| {
            let node = node.map_or_else(|| end.node.to_string(), |node| node.name.clone());
            NetworkError::Port { node, port: end.port, problem }
        };
        if !node.is_some_and(|node| node.ports.contains(&end.port)) {
            return Err(wrong("the switch has no such port"));
        }
        if peers.insert(end, peer).is_some() {
            return Err(wrong("two links or hosts use this port; give each a separate port"));
        }
    }
    Ok(peers)
}
