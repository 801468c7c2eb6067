// SPDX-License-Identifier: Apache-2.0
//! Plans of tags: Tag-and-Forward in a fat tree.

use super::entries;
use super::graph::{self, Graph};
use super::{Pair, PlanError, Setups, Way, wrong};
use flow::action::TfHeader;
use flow::stateless::{Gate, GateFlag, Gates, Stateless};
use flow::{Action, PortNo};
use serde::Deserialize;
use sim::network::{End, Setup};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;

#[derive(Debug, Deserialize)]
pub struct Document {
    network: graph::Document,
    header: HeaderDocument,
    server_gate_max: u32,
    ups: Vec<Vec<u32>>,
    switches: Vec<SwitchDocument>,
    hosts: Vec<PlaceDocument>,
    external: Vec<PlaceDocument>,
}

#[derive(Debug, Deserialize)]
struct HeaderDocument {
    name: String,
}

#[derive(Debug, Deserialize)]
struct SwitchDocument {
    name: String,
    layer: String,
    pod: Option<usize>,
    plane: Option<usize>,
    down_d: u32,
    up_d: u32,
    external_d: u32,
    gates: Vec<(PortNo, u32, String, Option<String>)>,
    #[serde(default)]
    uplinks: Vec<PortNo>,
}

#[derive(Debug, Deserialize)]
struct PlaceDocument {
    name: Option<String>,
    switch: String,
    port: PortNo,
    gate: u16,
}

/// Bits of UP and DOWN in the wide form.
const WIDE_BITS: [u32; 2] = [29, 16];
/// And in the paper's.
const PAPER_BITS: [u32; 2] = [32, 13];

/// A plan of tags.
#[derive(Debug)]
pub struct Plan {
    pub graph: Graph,
    wide: bool,
    server_gate_max: u32,
    switches: Vec<Switch>,
    /// Each host's gate, by its place.
    gates: Vec<u16>,
    ups: Vec<Vec<u32>>,
    /// Paths of a pair that are used at most.
    pub paths_max: usize,
}

#[derive(Debug)]
struct Switch {
    layer: Layer,
    pod: Option<usize>,
    uplinks: Vec<PortNo>,
    gates: Gates,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layer {
    Edge,
    Aggregation,
    /// Its plane, and its place in it.
    Core(usize, usize),
}

/// A tag, and the port that it is sent by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    up: u32,
    down: u16,
    port: PortNo,
}

impl Plan {
    pub fn new(document: Document) -> Result<Self, PlanError> {
        let Document { network, header, server_gate_max, ups, switches, hosts, external } = document;
        let wide = match header.name.as_str() {
            "paper" => false,
            "wide" => true,
            other => {
                return Err(wrong(
                    "header.name",
                    format!("\"{other}\" is unknown; paper and wide are known"),
                ));
            }
        };
        let names = switches.iter().map(|switch| switch.name.clone()).collect();
        let graph = Graph::new(network, names)?;
        let mut cores: BTreeMap<usize, usize> = BTreeMap::new();
        let mut read = Vec::with_capacity(switches.len());
        for (at, switch) in switches.into_iter().enumerate() {
            let place = format!("switches[{at}] ({})", switch.name);
            let told = |problem: String| wrong(place.clone(), problem);
            let layer = match (switch.layer.as_str(), switch.plane) {
                ("edge", _) => Layer::Edge,
                ("aggregation", _) => Layer::Aggregation,
                ("core", Some(plane)) => {
                    let count = cores.entry(plane).or_default();
                    *count += 1;
                    if ups.get(plane).and_then(|ups| ups.get(*count - 1)).is_none() {
                        return Err(told(format!(
                            "is core {count} of plane {plane}, for which ups has no UP"
                        )));
                    }
                    Layer::Core(plane, *count - 1)
                }
                (other, _) => {
                    return Err(told(format!(
                        "is of the layer \"{other}\" or of no plane; core, aggregation and edge are layers"
                    )));
                }
            };
            if layer == Layer::Edge && switch.uplinks.len() != ups.len() {
                return Err(told(format!("has {} uplinks for {} planes", switch.uplinks.len(), ups.len())));
            }
            for port in &switch.uplinks {
                if !graph.trusted[at].contains(port) {
                    return Err(told(format!("has the uplink {port}, where no switch is")));
                }
            }
            let gates = read_gates(&graph, at, &switch, server_gate_max).map_err(told)?;
            read.push(Switch { layer, pod: switch.pod, uplinks: switch.uplinks, gates });
        }
        let mut plan = Self {
            wide,
            server_gate_max,
            switches: read,
            gates: Vec::new(),
            ups,
            paths_max: usize::MAX,
            graph,
        };
        plan.place(&hosts, &external)?;
        Ok(plan)
    }

    /// Finds each host's gate.
    fn place(&mut self, hosts: &[PlaceDocument], external: &[PlaceDocument]) -> Result<(), PlanError> {
        let mut gate_at = HashMap::new();
        for (list, places) in [("hosts", hosts), ("external", external)] {
            for (at, place) in places.iter().enumerate().filter(|(_, place)| place.name.is_some()) {
                let Some(node) = self.graph.place(&place.switch) else {
                    return Err(wrong(
                        format!("{list}[{at}]"),
                        format!("is at {}, which is no switch", place.switch),
                    ));
                };
                gate_at.insert(End { node, port: place.port }, place.gate);
            }
        }
        for host in &self.graph.hosts {
            let Some(gate) = gate_at.get(&host.at) else {
                let switch = &self.graph.switches[host.at.node];
                let problem =
                    format!("have none at port {} of {switch}, where {} is", host.at.port, host.name);
                return Err(wrong("hosts and external", problem));
            };
            self.gates.push(*gate);
        }
        Ok(())
    }

    fn ends(&self, (from, to): Pair) -> (End, End) {
        (self.graph.hosts[from].at, self.graph.hosts[to].at)
    }

    /// Whether there is a way: not from one core's outside to another's.
    pub fn has(&self, pair: Pair) -> bool {
        let (from, to) = self.ends(pair);
        from.node == to.node || !self.choices(pair).is_empty()
    }

    /// See [`super::Plan::targets`]. That there is a way is to be asked.
    pub fn targets(&self) -> BTreeMap<usize, Rc<[usize]>> {
        let nodes: BTreeSet<usize> = self.graph.hosts.iter().map(|host| host.at.node).collect();
        let all: Rc<[usize]> = nodes.iter().copied().collect();
        nodes.into_iter().map(|node| (node, Rc::clone(&all))).collect()
    }

    /// See [`super::Plan::way`].
    pub fn way(&self, pair: Pair) -> Way {
        let (from, to) = self.ends(pair);
        if from.node == to.node {
            return Way { routes: vec![Vec::new()], choices: 1, ..Way::default() };
        }
        let layers = [from, to].map(|end| self.switches[end.node].layer);
        let hops_max = match layers {
            [Layer::Edge, Layer::Edge] if self.switches[from.node].pod != self.switches[to.node].pod => 4,
            _ => 2,
        };
        let [up_bits, down_bits] = if self.wide { WIDE_BITS } else { PAPER_BITS };
        let key_bits = vec![up_bits + down_bits];
        Way { routes: Vec::new(), hops_max, key_bits, choices: self.choices(pair).len() }
    }

    /// The tags by which one switch leads to a host at another, and how they set out: of many, some that are spread over all.
    fn choices(&self, pair: Pair) -> Vec<Choice> {
        let mut all = self.all_choices(pair);
        if all.len() > self.paths_max {
            let (count, from) = (all.len(), self.graph.hosts[pair.0].at.node);
            let first = (31 * from + pair.1) % count;
            all = (0..self.paths_max).map(|n| all[(first + n * count / self.paths_max) % count]).collect();
        }
        all
    }

    fn all_choices(&self, pair: Pair) -> Vec<Choice> {
        let (from, to) = self.ends(pair);
        let (source, target) = (&self.switches[from.node], &self.switches[to.node]);
        let down = self.gates[pair.1];
        match (source.layer, target.layer) {
            (Layer::Edge, Layer::Edge) if source.pod == target.pod => {
                source.uplinks.iter().map(|port| Choice { up: 0, down, port: *port }).collect()
            }
            (Layer::Edge, Layer::Edge) => {
                let planes = self.ups.iter().zip(&source.uplinks);
                planes
                    .flat_map(|(ups, port)| ups.iter().map(|up| Choice { up: *up, down, port: *port }))
                    .collect()
            }
            (Layer::Edge, Layer::Core(plane, at)) => {
                vec![Choice { up: self.ups[plane][at], down, port: source.uplinks[plane] }]
            }
            (Layer::Core(..), Layer::Edge) => {
                let gates = &source.gates;
                let number = u32::from(down).checked_next_multiple_of(gates.down_d.max(1));
                let out = gates.ports.iter().find(|(_, gate)| Some(gate.number.get()) == number);
                out.map(|(port, _)| Choice { up: 0, down, port: *port }).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// What switches are configured with, by switch.
    pub fn setups(&self, pairs: &[Pair]) -> Result<Setups, PlanError> {
        let mut setups: Setups = (0..self.switches.len()).map(|node| self.lane(node)).collect();
        let mut groups: HashMap<usize, u32> = HashMap::new();
        // The same host of each source switch: of its hosts there may be several.
        let mut done = HashSet::new();
        for &pair in pairs {
            let (from, to) = self.ends(pair);
            if !done.insert((from.node, pair.1)) {
                continue;
            }
            let changes = &mut setups[from.node].changes;
            if from.node == to.node {
                changes.push(entries::entry(0, pair.1, vec![Action::output(to.port)])?);
                continue;
            }
            let mut lists =
                self.choices(pair).into_iter().map(|choice| self.actions(choice)).collect::<Vec<_>>();
            let actions = if lists.len() > 1 {
                let id = groups.entry(from.node).or_default();
                *id += 1;
                changes.push(entries::choice(*id, lists));
                vec![Action::Group(*id)]
            } else {
                lists.pop().unwrap_or_default()
            };
            changes.push(entries::entry(0, pair.1, actions)?);
        }
        Ok(setups)
    }

    fn actions(&self, Choice { up, down, port }: Choice) -> Vec<Action> {
        let header = TfHeader { qid: 0, up, down };
        let push = if self.wide { Action::PushTfWide(header) } else { Action::PushTf(header) };
        vec![push, Action::output(port)]
    }

    fn lane(&self, node: usize) -> Setup {
        let trusted = self.graph.trusted[node].clone();
        let gates = Gates { server_gate_max: self.server_gate_max, ..self.switches[node].gates.clone() };
        let lane = Stateless { trusted, gates: Some(gates), ..Stateless::default() };
        Setup { changes: Vec::new(), lane: Some(Arc::new(lane)) }
    }
}

fn read_gates(
    graph: &Graph,
    node: usize,
    switch: &SwitchDocument,
    server_gate_max: u32,
) -> Result<Gates, String> {
    let mut ports = BTreeMap::new();
    for (port, number, flag, name) in &switch.gates {
        let flag = match flag.as_str() {
            "" => GateFlag::None,
            "G_SRV" => GateFlag::Server,
            "G_EXT" => GateFlag::External,
            "G_ASS" => GateFlag::Assists,
            other => return Err(format!("has the flag \"{other}\", not G_SRV, G_EXT, G_ASS or nothing")),
        };
        // Gates of what is not there yet are at ports that are not there yet.
        if name.is_some() && !graph.ports[node].contains(port) {
            return Err(format!("has a gate at port {port}, which the network does not have"));
        }
        let number = NonZeroU32::new(*number)
            .ok_or_else(|| format!("has the gate 0 at port {port}; 1 is the least"))?;
        if ports.insert(*port, Gate { number, flag }).is_some() {
            return Err(format!("has two gates at port {port}"));
        }
    }
    let SwitchDocument { down_d, up_d, external_d, .. } = *switch;
    Ok(Gates { down_d, up_d, external_d, server_gate_max, ports })
}
