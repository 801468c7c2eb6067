// SPDX-License-Identifier: Apache-2.0
//! The network of a plan: switches, links and hosts.

use super::{PathPlanError, wrong};
use flow::{Limits, PortNo, port_no};
use serde::Deserialize;
use sim::network::End;
use std::collections::{BTreeSet, HashMap, HashSet};

/// Maximum number of switches and hosts of a network.
const NODES: usize = 1 << 20;

/// The `network` object in the file of a plan.
#[derive(Debug, Deserialize)]
pub struct Document {
    #[serde(default)]
    name: String,
    nodes: Vec<NodeDocument>,
    links: Vec<LinkDocument>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a name, or an object with a name")]
enum NodeDocument {
    Name(String),
    Node { name: String },
}

#[derive(Debug, Deserialize)]
struct LinkDocument {
    a: String,
    a_port: PortNo,
    b: String,
    b_port: PortNo,
}

/// A host with its name and its port. In a plan without hosts, each end of a route gets a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAt {
    pub name: String,
    pub at: End,
}

/// The network of a plan. Vectors with one element per switch have the order of `switches`.
#[derive(Debug, Default)]
pub struct Graph {
    pub name: String,
    pub switches: Vec<String>,
    /// Ports of each switch.
    pub ports: Vec<BTreeSet<PortNo>>,
    /// Ports of each switch that lead to other switches.
    pub trusted: Vec<BTreeSet<PortNo>>,
    pub links: Vec<[End; 2]>,
    pub hosts: Vec<HostAt>,
    /// For each end of a link, the link's index in `links`.
    pub link_at: HashMap<End, usize>,
    places: HashMap<String, usize>,
}

impl Graph {
    /// Builds the network. `switches` are the names of the switches. All other nodes are hosts.
    pub fn new(document: Document, switches: Vec<String>) -> Result<Self, PathPlanError> {
        let Document { name, nodes, links } = document;
        if nodes.len() > NODES {
            return Err(wrong("network.nodes", format!("are {}; the maximum is {NODES}", nodes.len())));
        }
        let mut known = HashSet::new();
        for (at, node) in nodes.iter().enumerate() {
            let (NodeDocument::Name(name) | NodeDocument::Node { name }) = node;
            if !known.insert(name.as_str()) {
                return Err(wrong(format!("network.nodes[{at}]"), format!("{name} is given twice")));
            }
        }
        let count = switches.len();
        let mut graph = Self {
            name,
            ports: vec![BTreeSet::new(); count],
            trusted: vec![BTreeSet::new(); count],
            ..Self::default()
        };
        for (at, name) in switches.iter().enumerate() {
            if !known.contains(name.as_str()) {
                return Err(wrong(format!("switches[{at}]"), format!("{name} is not a node of the network")));
            }
            if graph.places.insert(name.clone(), at).is_some() {
                return Err(wrong(format!("switches[{at}]"), format!("{name} is given twice")));
            }
        }
        graph.switches = switches;
        let mut hosts: HashMap<&str, usize> = HashMap::new();
        for (at, link) in links.iter().enumerate() {
            let refuse = |problem: String| wrong(format!("network.links[{at}]"), problem);
            for name in [&link.a, &link.b] {
                if !known.contains(name.as_str()) {
                    return Err(refuse(format!("{name} is not a node of the network")));
                }
            }
            let ends = [(&link.a, link.a_port), (&link.b, link.b_port)];
            let places = ends.map(|(name, port)| Some(End { node: *graph.places.get(name)?, port }));
            for end in places.iter().flatten() {
                graph.take_port(*end).map_err(refuse)?;
            }
            match places {
                [Some(a), Some(b)] if a.node == b.node => {
                    return Err(refuse(format!("{} is linked to itself", link.a)));
                }
                [Some(a), Some(b)] => {
                    for end in [a, b] {
                        graph.trusted[end.node].insert(end.port);
                        graph.link_at.insert(end, graph.links.len());
                    }
                    graph.links.push([a, b]);
                }
                [Some(at), None] | [None, Some(at)] => {
                    let name = if places[0].is_none() { &link.a } else { &link.b };
                    if hosts.insert(name, graph.hosts.len()).is_some() {
                        return Err(refuse(format!(
                            "{name} is not a switch and has two links; a host has one"
                        )));
                    }
                    graph.hosts.push(HostAt { name: name.clone(), at });
                }
                [None, None] => {
                    return Err(refuse(format!("neither {} nor {} is a switch", link.a, link.b)));
                }
            }
        }
        Ok(graph)
    }

    fn take_port(&mut self, end: End) -> Result<(), String> {
        let (name, ports) = (&self.switches[end.node], &mut self.ports[end.node]);
        if !port_no::is_real(end.port) {
            return Err(format!("{} is not a port number", end.port));
        }
        if !ports.insert(end.port) {
            return Err(format!("port {} of {name} has two links", end.port));
        }
        if ports.len() > Limits::PORTS {
            return Err(format!("{name} has more than {} ports, which is the maximum", Limits::PORTS));
        }
        Ok(())
    }

    /// Returns the index of a switch.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// Adds a host at the lowest free port of a switch. The host gets the switch's name.
    pub fn add_host(&mut self, node: usize) -> Result<(), PathPlanError> {
        let taken = &self.ports[node];
        let port = (1..).map(PortNo).find(|port| !taken.contains(port)).unwrap_or_default();
        let name = self.switches[node].clone();
        let end = End { node, port };
        self.take_port(end).map_err(|problem| wrong("network", problem))?;
        self.hosts.push(HostAt { name, at: end });
        Ok(())
    }

    /// Returns the other end of the link at this port, if there is one.
    pub fn peer(&self, end: End) -> Option<End> {
        let ends = self.links[*self.link_at.get(&end)?];
        ends.into_iter().find(|other| *other != end)
    }
}
