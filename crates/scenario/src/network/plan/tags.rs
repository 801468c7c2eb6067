// SPDX-License-Identifier: Apache-2.0
//! Plans that use tags: Tag-and-Forward in a fat tree.

use super::entries::{self, Selector};
use super::graph::{self, Graph};
use super::{Pair, PathPlanError, Setups, Way, wrong};
use flow::action::TfHeader;
use flow::stateless::{Gate, GateFlag, Gates, StatelessConfig};
use flow::{Action, GroupId, PortNo, TableId};
use serde::Deserialize;
use sim::network::{End, Hop, Setup};
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
    up_bits: u32,
    down_bits: u32,
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

/// Sizes of UP and DOWN in the wide header, in bits.
const WIDE_BITS: [u32; 2] = [29, 16];
/// Sizes of UP and DOWN in the paper's header, in bits.
const PAPER_BITS: [u32; 2] = [32, 13];

/// A plan that uses tags.
#[derive(Debug)]
pub struct TagPlan {
    pub graph: Graph,
    wide: bool,
    server_gate_max: u32,
    switches: Vec<Switch>,
    /// Gate of each host, by the host's index.
    gates: Vec<u16>,
    ups: Vec<Vec<u32>>,
    /// Indices of the core switches, by plane.
    cores: Vec<Vec<usize>>,
    /// Maximum number of paths per pair.
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
    /// Plane of the core switch, and index within the plane.
    Core(usize, usize),
}

/// Tag of a packet, and output port at the first switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    up: u32,
    down: u16,
    port: PortNo,
}

/// Checks that UP and DOWN fit into the header.
fn check_bits(
    header: &HeaderDocument,
    bits: [u32; 2],
    ups: &[Vec<u32>],
    lists: [(&str, &Vec<PlaceDocument>); 2],
) -> Result<(), PathPlanError> {
    let [up_bits, down_bits] = bits;
    if [header.up_bits, header.down_bits] != bits {
        let HeaderDocument { name, up_bits: up, down_bits: down } = header;
        let problem =
            format!("has {up} and {down} bits; UP and DOWN have {up_bits} and {down_bits} in {name}");
        return Err(wrong("header", problem));
    }
    for (plane, ups) in ups.iter().enumerate() {
        if let Some(up) = ups.iter().find(|up| **up == 0 || u64::from(**up) >> up_bits != 0) {
            return Err(wrong(
                format!("ups[{plane}]"),
                format!("has {up}; UP is at least 1 and has {up_bits} bits"),
            ));
        }
    }
    for (list, places) in lists {
        if let Some(at) = places.iter().position(|place| u32::from(place.gate) >> down_bits != 0) {
            let problem = format!("has the gate {}; DOWN has {down_bits} bits", places[at].gate);
            return Err(wrong(format!("{list}[{at}]"), problem));
        }
    }
    Ok(())
}

impl TagPlan {
    pub fn new(document: Document) -> Result<Self, PathPlanError> {
        let Document { network, header, server_gate_max, ups, switches, hosts, external } = document;
        let (wide, bits) = match header.name.as_str() {
            "paper" => (false, PAPER_BITS),
            "wide" => (true, WIDE_BITS),
            other => {
                return Err(wrong("header.name", format!("\"{other}\" is unknown; use paper or wide")));
            }
        };
        check_bits(&header, bits, &ups, [("hosts", &hosts), ("external", &external)])?;
        let names = switches.iter().map(|switch| switch.name.clone()).collect();
        let graph = Graph::new(network, names)?;
        let mut cores = vec![Vec::new(); ups.len()];
        let mut read = Vec::with_capacity(switches.len());
        for (at, switch) in switches.into_iter().enumerate() {
            let place = format!("switches[{at}] ({})", switch.name);
            let refuse = |problem: String| wrong(place.clone(), problem);
            let layer = match (switch.layer.as_str(), switch.plane) {
                ("edge", _) => Layer::Edge,
                ("aggregation", _) => Layer::Aggregation,
                ("core", Some(plane)) => {
                    let count = cores.get(plane).map_or(0, Vec::len) + 1;
                    if ups.get(plane).and_then(|ups| ups.get(count - 1)).is_none() {
                        return Err(refuse(format!(
                            "is core switch {count} of plane {plane}, for which ups has no value"
                        )));
                    }
                    cores[plane].push(at);
                    Layer::Core(plane, count - 1)
                }
                (other, _) => {
                    return Err(refuse(format!(
                        "has the layer \"{other}\", or no plane; the layers are core, aggregation and edge"
                    )));
                }
            };
            if layer == Layer::Edge && switch.uplinks.len() != ups.len() {
                return Err(refuse(format!("has {} uplinks for {} planes", switch.uplinks.len(), ups.len())));
            }
            for port in &switch.uplinks {
                if !graph.trusted[at].contains(port) {
                    return Err(refuse(format!("has the uplink {port}, which leads to no switch")));
                }
            }
            let gates = read_gates(&graph, at, &switch, server_gate_max).map_err(refuse)?;
            read.push(Switch { layer, pod: switch.pod, uplinks: switch.uplinks, gates });
        }
        let mut plan = Self {
            wide,
            server_gate_max,
            switches: read,
            gates: Vec::new(),
            ups,
            cores,
            paths_max: usize::MAX,
            graph,
        };
        plan.place(&hosts, &external)?;
        Ok(plan)
    }

    /// Looks up the gate of each host.
    fn place(&mut self, hosts: &[PlaceDocument], external: &[PlaceDocument]) -> Result<(), PathPlanError> {
        let mut gate_at = HashMap::new();
        for (list, places) in [("hosts", hosts), ("external", external)] {
            for (at, place) in places.iter().enumerate().filter(|(_, place)| place.name.is_some()) {
                let Some(node) = self.graph.place(&place.switch) else {
                    return Err(wrong(
                        format!("{list}[{at}]"),
                        format!("is at {}, which is not a switch", place.switch),
                    ));
                };
                gate_at.insert(End { node, port: place.port }, place.gate);
            }
        }
        for host in &self.graph.hosts {
            let Some(gate) = gate_at.get(&host.at) else {
                let switch = &self.graph.switches[host.at.node];
                let problem = format!(
                    "have no gate for port {} of {switch}, where {} is connected",
                    host.at.port, host.name
                );
                return Err(wrong("hosts and external", problem));
            };
            self.gates.push(*gate);
        }
        Ok(())
    }

    fn ends(&self, (from, to): Pair) -> (End, End) {
        (self.graph.hosts[from].at, self.graph.hosts[to].at)
    }

    /// Returns the layer of a switch.
    pub fn layer(&self, node: usize) -> Option<sim::network::Layer> {
        let layer = match self.switches.get(node)?.layer {
            Layer::Edge => sim::network::Layer::Edge,
            Layer::Aggregation => sim::network::Layer::Aggregation,
            Layer::Core(..) => sim::network::Layer::Core,
        };
        Some(layer)
    }

    /// Returns whether there is a route. There is no route between external ports of two core switches.
    pub fn has(&self, pair: Pair) -> bool {
        self.shares(pair) > 0
    }

    /// See [`super::PathPlan::targets`].
    pub fn targets(&self) -> BTreeMap<usize, Rc<[usize]>> {
        let nodes: BTreeSet<usize> = self.graph.hosts.iter().map(|host| host.at.node).collect();
        let all: Rc<[usize]> = nodes.iter().copied().collect();
        nodes.into_iter().map(|node| (node, Rc::clone(&all))).collect()
    }

    /// See [`super::PathPlan::way`].
    pub fn way(&self, pair: Pair, share: usize) -> Way {
        let Some(Choice { up, down, .. }) = self.choice(pair, share) else {
            return Way { routes: vec![Vec::new()], ..Way::default() };
        };
        let routes: Vec<_> = self.route(pair, share).into_iter().collect();
        // A packet goes up as far as needed and then down. It is never sent back.
        let hops_max = self.layers_between(pair);
        let bits = |number: u32| u32::BITS - number.leading_zeros();
        Way { routes, hops_max, key_bits: vec![bits(up) + bits(down.into())] }
    }

    /// Returns the number of links between the switches of a pair.
    fn layers_between(&self, pair: Pair) -> u32 {
        let (from, to) = self.ends(pair);
        match [from, to].map(|end| self.switches[end.node].layer) {
            _ if from.node == to.node => 0,
            [Layer::Edge, Layer::Edge] if self.switches[from.node].pod != self.switches[to.node].pod => 4,
            _ => 2,
        }
    }

    /// Returns the hops of a share's path, all of them unprotected. Returns `None` if the network lacks a
    /// link of the path.
    fn route(&self, pair: Pair, share: usize) -> Option<Vec<Hop>> {
        let (from, to) = self.ends(pair);
        let [source, target] = [&self.switches[from.node], &self.switches[to.node]];
        let above = |node: usize, plane: usize| {
            let port = *self.switches[node].uplinks.get(plane)?;
            self.graph.peer(End { node, port }).map(|peer| peer.node)
        };
        let nodes = match (source.layer, target.layer, self.plane_and_core(pair, share)?) {
            (Layer::Edge, Layer::Edge, (plane, Some(core))) => {
                let core = *self.cores.get(plane)?.get(core)?;
                vec![from.node, above(from.node, plane)?, core, above(to.node, plane)?, to.node]
            }
            (Layer::Core(..), _, (plane, _)) => vec![from.node, above(to.node, plane)?, to.node],
            (_, _, (plane, _)) => vec![from.node, above(from.node, plane)?, to.node],
        };
        let hop = |pair: &[usize]| {
            let ports = self.graph.trusted[pair[0]].iter().map(|port| End { node: pair[0], port: *port });
            let leads = |end: &End| self.graph.peer(*end).is_some_and(|peer| peer.node == pair[1]);
            let link = *self.graph.link_at.get(&ports.into_iter().find(leads)?)?;
            Some(Hop { link, node: pair[1], link_guarded: false, node_guarded: false })
        };
        nodes.windows(2).map(hop).collect()
    }

    /// Returns the number of paths from the source switch to the host, at most `paths_max`: 1 if both hosts
    /// are at the same switch, and 0 if there is no path.
    pub fn shares(&self, pair: Pair) -> usize {
        self.all_shares(pair).min(self.paths_max)
    }

    fn all_shares(&self, pair: Pair) -> usize {
        let (from, to) = self.ends(pair);
        let (source, target) = (&self.switches[from.node], &self.switches[to.node]);
        match (source.layer, target.layer) {
            _ if from.node == to.node => 1,
            (Layer::Edge, Layer::Edge) if source.pod == target.pod => source.uplinks.len(),
            (Layer::Edge, Layer::Edge) => self.ups.iter().map(Vec::len).sum(),
            (Layer::Edge, Layer::Core(..)) => 1,
            (Layer::Core(..), Layer::Edge) => {
                usize::from(self.way_down(from.node, self.gates[pair.1]).is_some())
            }
            _ => 0,
        }
    }

    /// Returns the plane of a share, and the index of the core switch if the path crosses the core.
    fn plane_and_core(&self, pair: Pair, share: usize) -> Option<(usize, Option<usize>)> {
        let (from, to) = self.ends(pair);
        let (source, target) = (&self.switches[from.node], &self.switches[to.node]);
        let all = self.all_shares(pair);
        let mut share = match all > self.paths_max {
            true => ((31 * from.node + pair.1) % all + share * all / self.paths_max) % all,
            false => share,
        };
        match (source.layer, target.layer) {
            (Layer::Edge, Layer::Edge) if source.pod == target.pod => Some((share, None)),
            (Layer::Edge, Layer::Edge) => {
                for (plane, ups) in self.ups.iter().enumerate() {
                    match share.checked_sub(ups.len()) {
                        Some(rest) => share = rest,
                        None => return Some((plane, Some(share))),
                    }
                }
                None
            }
            (Layer::Core(plane, _), _) | (_, Layer::Core(plane, _)) => Some((plane, None)),
            _ => None,
        }
    }

    /// Returns the tag of a share and the first output port. Returns `None` if both hosts are at the same
    /// switch.
    fn choice(&self, pair: Pair, share: usize) -> Option<Choice> {
        let (from, to) = self.ends(pair);
        if from.node == to.node {
            return None;
        }
        let (source, down) = (&self.switches[from.node], self.gates[pair.1]);
        let (plane, core) = self.plane_and_core(pair, share)?;
        if let Layer::Core(..) = source.layer {
            return Some(Choice { up: 0, down, port: self.way_down(from.node, down)? });
        }
        let up = match (core, self.switches[to.node].layer) {
            (Some(core), _) | (None, Layer::Core(_, core)) => self.ups[plane][core],
            _ => 0,
        };
        Some(Choice { up, down, port: *source.uplinks.get(plane)? })
    }

    /// Returns the port through which a core switch sends packets downwards to the gate `down`.
    fn way_down(&self, core: usize, down: u16) -> Option<PortNo> {
        let gates = &self.switches[core].gates;
        let number = u32::from(down).checked_next_multiple_of(gates.down_d.max(1));
        gates.ports.iter().find(|(_, gate)| Some(gate.number.get()) == number).map(|(port, _)| *port)
    }

    /// Returns the settings of all switches.
    pub fn setups(&self, pairs: &[Pair]) -> Result<Setups, PathPlanError> {
        let mut setups: Setups = (0..self.switches.len()).map(|node| self.setup(node)).collect();
        let mut groups: HashMap<usize, GroupId> = HashMap::new();
        // A source switch needs only one entry per destination host, because its hosts share entries.
        let mut done = HashSet::new();
        for &pair in pairs {
            let (from, to) = self.ends(pair);
            if !done.insert((from.node, pair.1)) {
                continue;
            }
            let changes = &mut setups[from.node].changes;
            if from.node == to.node {
                changes
                    .push(entries::entry(Selector::to(TableId(0), pair.1), vec![Action::output(to.port)])?);
                continue;
            }
            let mut lists = (0..self.shares(pair))
                .filter_map(|share| self.choice(pair, share))
                .map(|choice| self.actions(choice))
                .collect::<Vec<_>>();
            let actions = if lists.len() > 1 {
                let id = groups.entry(from.node).or_default();
                id.0 += 1;
                changes.push(entries::choice(*id, lists));
                vec![Action::Group(*id)]
            } else {
                lists.pop().unwrap_or_default()
            };
            changes.push(entries::entry(Selector::to(TableId(0), pair.1), actions)?);
        }
        Ok(setups)
    }

    fn actions(&self, Choice { up, down, port }: Choice) -> Vec<Action> {
        let header = TfHeader { qid: 0, up, down };
        let push = if self.wide { Action::PushTfWide(header) } else { Action::PushTf(header) };
        vec![push, Action::output(port)]
    }

    fn setup(&self, node: usize) -> Setup {
        let trusted = self.graph.trusted[node].clone();
        let gates = Gates { server_gate_max: self.server_gate_max, ..self.switches[node].gates.clone() };
        let config = StatelessConfig { trusted, gates: Some(gates), ..StatelessConfig::default() };
        Setup { changes: Vec::new(), stateless: Some(Arc::new(config)) }
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
            other => {
                return Err(format!("has the flag \"{other}\"; use G_SRV, G_EXT, G_ASS or an empty string"));
            }
        };
        // A gate with a name must be at an existing port. Gates without names are reserved for ports that do
        // not exist yet.
        if name.is_some() && !graph.ports[node].contains(port) {
            return Err(format!("has a gate at port {port}, which the network does not have"));
        }
        let number = NonZeroU32::new(*number)
            .ok_or_else(|| format!("has the gate 0 at port {port}; the minimum is 1"))?;
        if ports.insert(*port, Gate { number, flag }).is_some() {
            return Err(format!("has two gates at port {port}"));
        }
    }
    let SwitchDocument { down_d, up_d, external_d, .. } = *switch;
    Ok(Gates { down_d, up_d, external_d, server_gate_max, ports })
}
