// SPDX-License-Identifier: Apache-2.0
//! Plans that use keys. There are three kinds: KeyFlow, PolKA's arithmetic with KeyFlow's header, and PolKA
//! with freeRtr's header.

use super::entries::{self, Failovers, HOSTS, POPPED, Selector};
use super::graph::{self, Graph};
use super::{Numberings, Pair, PathPlanError, Setups, Way, wrong};
use flow::action::{KeyHeader, PolkaHeader};
use flow::stateless::{Arithmetic, Bank, Label, NodeId, StatelessConfig};
use flow::{Action, PortNo, TableId};
use serde::Deserialize;
use sim::network::{End, Hop, Setup};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

#[derive(Debug, Deserialize)]
pub struct Document {
    network: graph::Document,
    switches: Vec<SwitchDocument>,
    plans: Vec<PlanDocument>,
}

#[derive(Debug, Deserialize)]
struct SwitchDocument {
    name: String,
    banks: Vec<BankDocument>,
}

#[derive(Debug, Deserialize)]
struct BankDocument {
    epoch: usize,
    id: u32,
    labels: Vec<LabelDocument>,
    backups: BTreeMap<PortNo, PortNo>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a port, or \"tables\"")]
enum LabelDocument {
    Port(PortNo),
    Word(String),
}

#[derive(Debug, Deserialize)]
struct PlanDocument {
    epoch: usize,
    arithmetic: String,
    width_bits: usize,
    routes: Vec<RouteDocument>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RouteDocument {
    pub from: String,
    pub to: String,
    pub segments: Vec<SegmentDocument>,
}

#[derive(Debug, Deserialize)]
pub(super) struct SegmentDocument {
    pub path: Vec<String>,
    pub out_port: PortNo,
    pub backup_port: Option<PortNo>,
    #[serde(default)]
    pub return_ports: Vec<PortNo>,
    pub key: String,
    pub bits: u32,
    pub hop_limit: u8,
    pub guards: Vec<String>,
}

/// Header format of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    KeyFlow,
    /// The header of freeRtr with this EtherType. A plan with this header has one epoch.
    Polka(u16),
}

/// A plan with one or two epochs. With two epochs, the network is renumbered.
#[derive(Debug)]
pub struct KeyflowPlan {
    pub graph: Graph,
    dialect: Dialect,
    /// Banks of each switch, by epoch.
    banks: Vec<[Option<Bank>; 2]>,
    /// Keys of each epoch, the older epoch first.
    pub plans: Vec<Numbering>,
}

/// Keys of one epoch.
#[derive(Debug)]
pub struct Numbering {
    epoch: u8,
    /// Segments of each route. The map's key holds the indices of the route's first and last switch.
    routes: HashMap<(usize, usize), Vec<Segment>>,
}

/// A part of a route that one key covers.
#[derive(Debug, PartialEq)]
struct Segment {
    first: usize,
    last: usize,
    out_port: PortNo,
    backup_port: Option<PortNo>,
    /// Ports by which the packets of the segment may be sent back to the waypoint at which the segment
    /// begins. The list is empty without such a waypoint.
    return_ports: Vec<PortNo>,
    key: KeyHeader,
    bits: u32,
    hops: Vec<Hop>,
}

/// What an entry does with its packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Task<'a> {
    /// Outputs to the port of a host at this switch.
    Local(PortNo),
    /// Pushes the key that leads to the host or to the next waypoint.
    Push(&'a Segment),
}

/// The switch that has an entry, and the packets that the entry matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    node: usize,
    selector: Selector,
}

impl Place {
    fn new(node: usize, table: TableId, host: usize) -> Self {
        Self { node, selector: Selector::to(table, host) }
    }

    /// Returns this place for packets from one ingress port only.
    fn by(mut self, port: PortNo) -> Self {
        self.selector.in_port = Some(port);
        self
    }

    /// Returns the place for packets from all ingress ports.
    fn by_any(mut self) -> Self {
        self.selector.in_port = None;
        self
    }
}

/// What each entry does with its packets.
type Tasks<'a> = BTreeMap<Place, Task<'a>>;

impl KeyflowPlan {
    pub fn new(document: Document) -> Result<Self, PathPlanError> {
        let Document { network, switches, plans } = document;
        let names = switches.iter().map(|switch| switch.name.clone()).collect();
        let graph = Graph::new(network, names)?;
        if plans.is_empty() || plans.len() > 2 {
            return Err(wrong(
                "plans",
                format!("are {}; a plan has one, or two if the network is renumbered", plans.len()),
            ));
        }
        let mut arithmetics = [None; 2];
        for (at, plan) in plans.iter().enumerate() {
            let arithmetic = match plan.arithmetic.as_str() {
                "integer" => Arithmetic::Integer,
                "polynomial" => Arithmetic::Polynomial,
                other => {
                    let problem = format!("\"{other}\" is unknown; use integer or polynomial");
                    return Err(wrong(format!("plans[{at}].arithmetic"), problem));
                }
            };
            match arithmetics.get_mut(plan.epoch) {
                Some(place @ None) => *place = Some(arithmetic),
                Some(_) => {
                    return Err(wrong(format!("plans[{at}].epoch"), "is also the epoch of the other plan"));
                }
                None => {
                    return Err(wrong(
                        format!("plans[{at}].epoch"),
                        format!("is {}, not 0 or 1", plan.epoch),
                    ));
                }
            }
        }
        let mut banks = vec![[None, None]; switches.len()];
        for (at, switch) in switches.into_iter().enumerate() {
            for (number, bank) in switch.banks.into_iter().enumerate() {
                let place = format!("switches[{at}].banks[{number}] ({})", switch.name);
                let Some(slot) = banks[at].get_mut(bank.epoch) else {
                    return Err(wrong(place, format!("has the epoch {}, not 0 or 1", bank.epoch)));
                };
                let Some(arithmetic) = arithmetics[bank.epoch] else {
                    return Err(wrong(
                        place,
                        format!("has the epoch {}, for which there is no plan", bank.epoch),
                    ));
                };
                if slot.is_some() {
                    return Err(wrong(place, "has the same epoch as an earlier bank"));
                }
                *slot =
                    Some(read_bank(&graph, at, bank, arithmetic).map_err(|problem| wrong(place, problem))?);
            }
        }
        let plans = plans.into_iter().enumerate().map(|(at, plan)| {
            let PlanDocument { epoch, width_bits, routes, .. } = plan;
            numbering(&graph, &banks, &format!("plans[{at}]."), epoch, width_bits, routes)
        });
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        Self::of(graph, Dialect::KeyFlow, banks, plans)
    }

    /// Creates a plan. If the network has no hosts, a host is added at each end of a route.
    pub(super) fn of(
        mut graph: Graph,
        dialect: Dialect,
        banks: Vec<[Option<Bank>; 2]>,
        plans: Vec<Numbering>,
    ) -> Result<Self, PathPlanError> {
        if graph.hosts.is_empty() {
            let ends: BTreeSet<usize> =
                plans.iter().flat_map(|plan| plan.routes.keys().flat_map(|(a, b)| [*a, *b])).collect();
            ends.into_iter().try_for_each(|node| graph.add_host(node))?;
        }
        Ok(Self { graph, dialect, banks, plans })
    }

    /// See [`super::PathPlan::kind`].
    pub fn kind(&self) -> &'static str {
        match self.dialect {
            Dialect::KeyFlow => "keyflow",
            Dialect::Polka(_) => "polka-freertr",
        }
    }

    fn switches_of(&self, (from, to): Pair) -> (usize, usize) {
        (self.graph.hosts[from].at.node, self.graph.hosts[to].at.node)
    }

    /// Returns the numberings that a run uses, in order of use.
    fn used(&self, numberings: Numberings) -> &[Numbering] {
        let first = match numberings {
            Numberings::Both => 0,
            Numberings::Newest => self.plans.len().saturating_sub(1),
        };
        self.plans.get(first..).unwrap_or_default()
    }

    /// Returns whether every numbering has a route for the pair.
    pub fn has(&self, pair: Pair) -> bool {
        let ends = self.switches_of(pair);
        ends.0 == ends.1 || self.plans.iter().all(|plan| plan.routes.contains_key(&ends))
    }

    /// See [`super::PathPlan::targets`].
    pub fn targets(&self) -> BTreeMap<usize, Rc<[usize]>> {
        let mut targets: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for (from, to) in self.plans.iter().flat_map(|plan| plan.routes.keys()) {
            targets.entry(*from).or_default().insert(*to);
        }
        targets.into_iter().map(|(from, to)| (from, to.into_iter().collect())).collect()
    }

    /// See [`super::PathPlan::way`].
    pub fn way(&self, pair: Pair, numberings: Numberings) -> Way {
        let ends = self.switches_of(pair);
        let mut way = Way::default();
        let mut split = false;
        let mut most = Vec::new();
        for plan in self.used(numberings) {
            let segments = plan.routes.get(&ends).map(Vec::as_slice).unwrap_or_default();
            way.routes.push(segments.iter().flat_map(|segment| &segment.hops).copied().collect());
            way.key_bits.extend(segments.iter().map(|segment| segment.bits));
            most.push(segments.iter().map(|segment| 1 + u32::from(segment.key.hops)).sum::<u32>());
            split |= segments.len() > 1;
        }
        // During a renumbering, a packet may reach a waypoint with a key of one numbering and continue with a
        // key of the other.
        way.hops_max = if split { most.iter().sum() } else { most.iter().max().copied().unwrap_or(0) };
        way
    }

    /// See [`super::PathPlan::stages`].
    pub fn stages(&self, pairs: &[Pair], numberings: Numberings) -> Result<Vec<Setups>, PathPlanError> {
        let tagged = match self.dialect {
            Dialect::KeyFlow => wire::keyflow::ETHERTYPE,
            Dialect::Polka(eth_type) => eth_type,
        };
        let used = self.used(numberings);
        let tasks = used.iter().map(|plan| self.tasks(plan, pairs)).collect::<Result<Vec<_>, _>>()?;
        let nodes = self.graph.switches.len();
        let mut failovers: Vec<Failovers> = (0..nodes).map(|_| Failovers::default()).collect();
        let mut doors = vec![false; nodes];
        let mut stages = Vec::new();
        let mut stage = |tasks: &Tasks<'_>, epochs: Option<&[u8]>| -> Result<(), PathPlanError> {
            let mut setups: Setups = vec![Setup::default(); nodes];
            for (&Place { node, selector }, task) in tasks {
                let changes = &mut setups[node].changes;
                if !std::mem::replace(&mut doors[node], true) {
                    changes.extend(entries::doors(tagged, Action::PopKey)?);
                }
                let actions = match task {
                    Task::Local(port) => vec![Action::output(*port)],
                    Task::Push(segment) => {
                        let Segment { out_port, backup_port, key, .. } = segment;
                        let output =
                            failovers[node].output(*out_port, *backup_port, selector.in_port, changes);
                        vec![self.push(key), output]
                    }
                };
                changes.push(entries::entry(selector, actions)?);
            }
            if let Some(epochs) = epochs {
                setups
                    .iter_mut()
                    .enumerate()
                    .for_each(|(node, setup)| setup.stateless = Some(self.stateless_config(node, epochs)));
            }
            stages.push(setups);
            Ok(())
        };
        match (&used, &tasks[..]) {
            ([old, new], [before, after]) => {
                stage(before, Some(&[old.epoch]))?;
                let is_new = |place: &Place| !before.contains_key(&place.by_any());
                let added = after.iter().filter(|(place, _)| place.selector.table == POPPED && is_new(place));
                stage(&added.map(|(place, task)| (*place, *task)).collect(), Some(&[old.epoch, new.epoch]))?;
                let changed = after.iter().filter(|(place, task)| before.get(*place) != Some(*task));
                stage(&changed.map(|(place, task)| (*place, *task)).collect(), None)?;
                stage(&Tasks::new(), Some(&[new.epoch]))?;
                for place in before.keys().filter(|place| !after.contains_key(*place)) {
                    if let [.., change, end] = &mut stages[..] {
                        // If the entry for one port were kept, it would take precedence over the changed
                        // entry for all ports.
                        let stage = if after.contains_key(&place.by_any()) { change } else { end };
                        stage[place.node].changes.push(entries::without(place.selector)?);
                    }
                }
            }
            _ => used.iter().zip(&tasks).try_for_each(|(plan, tasks)| stage(tasks, Some(&[plan.epoch])))?,
        }
        Ok(stages)
    }

    fn push(&self, key: &KeyHeader) -> Action {
        match self.dialect {
            Dialect::KeyFlow => Action::PushKey(key.clone()),
            Dialect::Polka(_) => Action::PushPolka(PolkaHeader {
                key: key.key.iter().fold(0, |key, byte| key << 8 | u128::from(*byte)),
                // Switches drop a packet with a TTL of 1, but they forward a packet with a hop limit of 1.
                ttl: key.hops.saturating_add(1),
            }),
        }
    }

    /// Returns the tasks of all switches for one numbering.
    fn tasks<'a>(&'a self, plan: &'a Numbering, pairs: &[Pair]) -> Result<Tasks<'a>, PathPlanError> {
        let mut tasks = Tasks::new();
        for &pair in pairs {
            let ((from, to), host) = (self.switches_of(pair), pair.1);
            let local = Task::Local(self.graph.hosts[host].at.port);
            if from == to {
                tasks.insert(Place::new(from, HOSTS, host), local);
                continue;
            }
            let Some(segments) = plan.routes.get(&(from, to)) else { continue };
            tasks.insert(Place::new(to, POPPED, host), local);
            for (at, segment) in segments.iter().enumerate() {
                let place = Place::new(segment.first, if at == 0 { HOSTS } else { POPPED }, host);
                let task = Task::Push(segment);
                if let Some(other) = tasks.insert(place, task).filter(|other| *other != task) {
                    debug_assert!(at > 0, "a pair has one route: {other:?}");
                    let (waypoint, to) = (&self.graph.switches[segment.first], &self.graph.switches[to]);
                    let problem = format!(
                        "two keys lead from the waypoint {waypoint} to {to}; an entry can push only one"
                    );
                    return Err(wrong(format!("routes of the epoch {}", plan.epoch), problem));
                }
                tasks.extend(segment.return_ports.iter().map(|port| (place.by(*port), task)));
            }
        }
        Ok(tasks)
    }

    fn stateless_config(&self, node: usize, epochs: &[u8]) -> Arc<StatelessConfig> {
        let mut config =
            StatelessConfig { trusted: self.graph.trusted[node].clone(), ..StatelessConfig::default() };
        match self.dialect {
            Dialect::KeyFlow => {
                for &epoch in epochs {
                    let epoch = usize::from(epoch);
                    config.banks[epoch].clone_from(&self.banks[node][epoch]);
                }
            }
            Dialect::Polka(eth_type) => {
                config.types.polka = eth_type;
                config.polka.clone_from(&self.banks[node][0]);
            }
        }
        Arc::new(config)
    }
}

fn read_bank(graph: &Graph, node: usize, bank: BankDocument, arithmetic: Arithmetic) -> Result<Bank, String> {
    let id = NodeId::new(arithmetic, bank.id)
        .ok_or_else(|| format!("has the id {}; the minimum is 2", bank.id))?;
    let check = |port: PortNo| match graph.ports[node].contains(&port) {
        true => Ok(port),
        false => Err(format!("names port {port}, which the network does not have")),
    };
    let label = |label| match label {
        LabelDocument::Port(port) => check(port).map(Label::Port),
        LabelDocument::Word(word) if word == "tables" => Ok(Label::Tables),
        LabelDocument::Word(word) => {
            Err(format!("has the label \"{word}\"; a label is a port or \"tables\""))
        }
    };
    let labels = bank.labels.into_iter().map(label).collect::<Result<Vec<_>, _>>()?;
    let backups = bank.backups.into_iter().map(|(port, backup)| Ok((check(port)?, check(backup)?)));
    let backups = backups.collect::<Result<BTreeMap<_, _>, String>>()?;
    Ok(Bank { id, labels: (0..).zip(labels).collect(), backups })
}

/// Checks the routes of a document. `place` is the path of the routes in the document, for error messages.
pub(super) fn numbering(
    graph: &Graph,
    banks: &[[Option<Bank>; 2]],
    place: &str,
    epoch: usize,
    width_bits: usize,
    routes: Vec<RouteDocument>,
) -> Result<Numbering, PathPlanError> {
    if ![64, 128, 192, 256].contains(&width_bits) {
        return Err(wrong(format!("{place}width_bits"), format!("is {width_bits}, not 64, 128, 192 or 256")));
    }
    let mut known = HashMap::with_capacity(routes.len());
    for (number, route) in routes.into_iter().enumerate() {
        let place = format!("{place}routes[{number}] ({} to {})", route.from, route.to);
        let refuse = |problem: String| wrong(place.clone(), problem);
        let ends = [&route.from, &route.to].map(|name| graph.place(name));
        let [Some(from), Some(to)] = ends else {
            return Err(refuse("does not begin and end at switches".into()));
        };
        let mut segments = Vec::with_capacity(route.segments.len());
        for segment in route.segments {
            if segments.is_empty() && !segment.return_ports.is_empty() {
                return Err(refuse(
                    "has return ports where it begins; only waypoints have return ports".into(),
                ));
            }
            segments.push(read_segment(graph, banks, segment, epoch, width_bits).map_err(refuse)?);
        }
        let mut at = from;
        for segment in &segments {
            if std::mem::replace(&mut at, segment.last) != segment.first {
                return Err(refuse(
                    "has a segment that does not begin where the previous segment ends".into(),
                ));
            }
        }
        if at != to || from == to {
            return Err(refuse("does not lead to its destination".into()));
        }
        if known.insert((from, to), segments).is_some() {
            return Err(refuse("is given twice".into()));
        }
    }
    Ok(Numbering { epoch: epoch as u8, routes: known })
}

fn read_segment(
    graph: &Graph,
    banks: &[[Option<Bank>; 2]],
    segment: SegmentDocument,
    epoch: usize,
    width_bits: usize,
) -> Result<Segment, String> {
    let SegmentDocument { path, out_port, backup_port, return_ports, key, bits, hop_limit, guards } = segment;
    let nodes = path.iter().map(|name| graph.place(name).ok_or_else(|| format!("{name} is not a switch")));
    let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
    let (Some(&first), Some(&last)) = (nodes.first(), nodes.last()) else {
        return Err("has an empty path".into());
    };
    if guards.len() + 1 != nodes.len() {
        return Err(format!("has {} guards for a path of {} switches", guards.len(), nodes.len()));
    }
    let leads = |port: PortNo| graph.peer(End { node: first, port }).map(|peer| peer.node);
    if leads(out_port) != nodes.get(1).copied() {
        return Err(format!("has the port {out_port}, which does not lead to the next switch of its path"));
    }
    if let Some(backup) = backup_port.filter(|backup| leads(*backup).is_none()) {
        return Err(format!("has the backup port {backup}, which leads to no switch"));
    }
    if let Some(port) = return_ports.iter().find(|port| **port != out_port && Some(**port) != backup_port) {
        return Err(format!("has the return port {port}, which is neither its port nor its backup port"));
    }
    let key = read_key(&key, width_bits / 8)?;
    let own_bits = 8 * key.len() as u32 - leading_zeros(&key);
    if bits < own_bits || bits as usize > width_bits {
        return Err(format!(
            "has {bits} bits for a key of {own_bits} bits; give the size of the largest key with the same IDs, at most {width_bits}"
        ));
    }
    let mut hops = Vec::with_capacity(guards.len());
    for (at, (pair, guard)) in nodes.windows(2).zip(&guards).enumerate() {
        let leads = |port: &PortNo| {
            graph.peer(End { node: pair[0], port: *port }).is_some_and(|peer| peer.node == pair[1])
        };
        let port = if at == 0 {
            Some(out_port)
        } else {
            // Of several parallel links, the route uses the link that the key selects. If the key selects
            // none, the first link is used here, and the run reports the fault.
            let chosen = banks[pair[0]][epoch].as_ref().and_then(|bank| output(bank, &key));
            chosen.filter(leads).or_else(|| graph.trusted[pair[0]].iter().copied().find(leads))
        };
        let link = port.and_then(|port| graph.link_at.get(&End { node: pair[0], port }));
        let Some(&link) = link else {
            return Err(format!("has no link from {} to {}", path[at], path[at + 1]));
        };
        let (link_guarded, node_guarded) = match guard.as_str() {
            "" => (false, false),
            "link" => (true, false),
            "node" => (false, true),
            "link+node" => (true, true),
            other => {
                return Err(format!(
                    "has the guard \"{other}\"; use link, node, link+node or an empty string"
                ));
            }
        };
        hops.push(Hop { link, node: pair[1], link_guarded, node_guarded });
    }
    let key = KeyHeader { key: key.into(), hops: hop_limit, epoch: epoch as u8 };
    Ok(Segment { first, last, out_port, backup_port, return_ports, key, bits, hops })
}

/// Returns the port to which a switch forwards packets with this key.
fn output(bank: &Bank, key: &[u8]) -> Option<PortNo> {
    let modulus = u64::from(bank.id.modulus());
    let residue = match bank.id.arithmetic() {
        Arithmetic::Integer => key.iter().fold(0, |rest, byte| (rest << 8 | u64::from(*byte)) % modulus),
        Arithmetic::Polynomial => {
            let bits = key.iter().flat_map(|byte| (0..8).rev().map(move |bit| u64::from(byte >> bit & 1)));
            bits.fold(0, |rest, bit| {
                let rest = rest << 1 | bit;
                if rest >> modulus.ilog2() == 0 { rest } else { rest ^ modulus }
            })
        }
    };
    match bank.labels.get(&u32::try_from(residue).ok()?)? {
        Label::Port(port) => Some(*port),
        Label::Tables => None,
    }
}

fn leading_zeros(key: &[u8]) -> u32 {
    let zeros = key.iter().take_while(|byte| **byte == 0).count();
    8 * zeros as u32 + key.get(zeros).map_or(0, |byte| byte.leading_zeros())
}

/// Parses a key of `bytes` bytes.
fn read_key(text: &str, bytes: usize) -> Result<Vec<u8>, String> {
    let wrong = || format!("has the key \"{text}\", which is not a hexadecimal number with 0x");
    let digits = text.strip_prefix("0x").filter(|digits| !digits.is_empty()).ok_or_else(wrong)?;
    let digits = digits.trim_start_matches('0');
    if digits.len() > 2 * bytes {
        return Err(format!("has the key \"{text}\", which does not fit into {} bits", 8 * bytes));
    }
    let mut key = vec![0; bytes];
    for (at, digit) in digits.bytes().rev().enumerate() {
        let value = char::from(digit).to_digit(16).ok_or_else(wrong)? as u8;
        key[bytes - 1 - at / 2] |= value << (4 * (at % 2));
    }
    Ok(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_residue_of_a_key_selects_the_port() {
        let port = |arithmetic, id, key: &[u8]| {
            let labels =
                [(0, Label::Tables), (1, Label::Port(PortNo(7))), (2, Label::Port(PortNo(9)))].into();
            let id = NodeId::new(arithmetic, id).unwrap();
            output(&Bank { id, labels, backups: BTreeMap::new() }, key)
        };
        // 25 is 1 modulo 4, 1 modulo 3 and 0 modulo 5. 256 * 25 is 2 modulo 7.
        assert_eq!(
            [4, 3, 5].map(|id| port(Arithmetic::Integer, id, &[0, 25])),
            [Some(PortNo(7)), Some(PortNo(7)), None]
        );
        assert_eq!(
            [7, 3].map(|id| port(Arithmetic::Integer, id, &[0, 25, 0])),
            [Some(PortNo(9)), Some(PortNo(7))]
        );
        // Modulo x^2 + x + 1, x^3 is 1. Therefore x^4 is x, x^4 + x + 1 is 1, and x^8 is x^2, which equals x
        // + 1.
        let keys: [&[u8]; 4] = [&[0x10], &[0x13], &[1, 0], &[7]];
        assert_eq!(
            keys.map(|key| port(Arithmetic::Polynomial, 7, key)),
            [Some(PortNo(9)), Some(PortNo(7)), None, None]
        );
    }
}
