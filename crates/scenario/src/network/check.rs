// SPDX-License-Identifier: Apache-2.0
//! Checks of a network scenario.

use super::file::NetworkSection;
use super::plan::{Graph, Numberings, PathPlan, Setups};
use super::switches::{self, ForwardBy, SwitchSettings};
use super::traffic::{self, Traffic};
use super::{Names, NetworkScenario, acts, dumped, protection};
use crate::file::SwitchSection;
use config::mistakes::{Mistakes, wrong};
use config::value::{duration, in_range};
use config::{Mistake, PortCacheMode};
use flow::Nanos;
use sim::network::{Host, Network, NetworkLink, Node, Setup};
use std::path::Path;

/// Maximum link delay and detection time, in ns.
const LONGEST_NS: Nanos = Nanos(60_000_000_000);
/// Maximum number of frames that wait for a link.
const QUEUE: i64 = 1_000_000;

/// Reads the section and the plan that it names, and builds the simulated network. Returns `None` if there
/// are any mistakes.
pub fn scenario(
    path: &Path,
    section: &NetworkSection,
    datapaths: &[SwitchSection],
    seed: u64,
    mistakes: &mut Mistakes,
) -> Option<NetworkScenario> {
    let before = mistakes.len();
    let by = ForwardBy::read(section, datapaths, mistakes);
    let link_defaults = link_defaults(section, mistakes);
    let renumbered = section.renumber.is_some();
    let numberings = if renumbered { Numberings::Both } else { Numberings::Newest };
    mistakes.take(protection::check(&section.require, renumbered || !section.failure.is_empty()));

    let named = mistakes.needed("network.plan", section.plan.as_ref(), "plan = \"plan.json\"")?;
    let plan_path = path.parent().unwrap_or(Path::new(".")).join(named);
    let refuse = |problem: String| wrong("network.plan", format!("{}: {problem}", plan_path.display()));
    let mut plan = mistakes.take(PathPlan::open(&plan_path).map_err(|error| refuse(error.to_string())))?;

    check_renumber(section, &plan, mistakes);
    let links = link_defaults.as_ref().filter(|_| by == Some(ForwardBy::Entries));
    let settings = links.and_then(|l| switches::settings(section, datapaths, plan.graph(), l, mistakes));
    let flows = by.filter(|by| *by == ForwardBy::Entries).map(|_| section.traffic.flows.unwrap_or(1));
    let traffic = mistakes.take(traffic::traffic(&section.traffic, flows, &mut plan, seed));
    let mut acts = Vec::new();
    let detection_ns = link_defaults.as_ref().map_or(Nanos::ZERO, |link_defaults| link_defaults.detection_ns);
    for (n, failure) in section.failure.iter().enumerate() {
        let failed = acts::failure(n, failure, plan.graph(), detection_ns);
        acts.extend(mistakes.take(failed).into_iter().flatten());
    }
    let traffic = traffic.filter(|_| mistakes.len() == before)?;
    let link_defaults = link_defaults?;
    if by? == ForwardBy::Entries {
        let network = by_entries(&plan, &traffic, &link_defaults, settings?, seed);
        let network = mistakes.take(network)?;
        return Some(NetworkScenario {
            path: path.into(),
            plan_path: named.clone(),
            kind: plan.kind(),
            forwarding: ForwardBy::Entries,
            port_cache: settings?.mode,
            graph: Names::of(plan.graph()),
            network,
            key_bits: Vec::new(),
            pairs: traffic.pairs.len(),
            numberings,
            require: section.require.clone(),
        });
    }
    let stages = plan.stages(&traffic.pairs, numberings).map_err(|error| refuse(error.to_string()));
    let mut stages = mistakes.take(stages)?;
    let (flows, key_bits) = mistakes.take(traffic.flows(&plan, numberings, seed))?;
    let later = stages.split_off(1);
    let graph = plan.graph();
    if let Some(renumber) = &section.renumber {
        acts.extend(mistakes.take(acts::renumber(renumber, later, seed)).into_iter().flatten());
    }
    let setups = mistakes.take(setups(section, path, graph, stages))?;
    let mut network = Network { flows, acts, ..switches_and_links(&plan, &link_defaults, seed) };
    network.nodes.iter_mut().zip(setups).for_each(|(node, setup)| node.setup = setup);
    Some(NetworkScenario {
        path: path.into(),
        plan_path: named.clone(),
        kind: plan.kind(),
        forwarding: ForwardBy::Plan,
        port_cache: PortCacheMode::Off,
        graph: Names::of(graph),
        network,
        key_bits,
        pairs: traffic.pairs.len(),
        numberings,
        require: section.require.clone(),
    })
}

/// Checks whether the network can be renumbered, if the scenario does so.
fn check_renumber(section: &NetworkSection, plan: &PathPlan, mistakes: &mut Mistakes) {
    if section.renumber.is_none() {
        return;
    }
    if !plan.renumbers() {
        let problem = "needs a plan of two epochs; write one with plan keyflow --renumber";
        mistakes.wrong("network.renumber", problem);
    }
    if section.state.is_some() {
        let problem =
            "has the state of one moment, so the network cannot be renumbered; leave out network.renumber";
        mistakes.wrong("network.state", problem);
    }
}

/// Returns the settings of all switches before the first packet: the dumped state, or else the first stage of
/// the plan.
fn setups(
    section: &NetworkSection,
    path: &Path,
    graph: &Graph,
    mut stages: Vec<Setups>,
) -> Result<Setups, Mistake> {
    match &section.state {
        Some(folder) => dumped::setups(&path.parent().unwrap_or(Path::new(".")).join(folder), graph),
        None => Ok(stages.pop().unwrap_or_default()),
    }
}

/// Returns the network of a plan, without entries, flows and acts.
fn switches_and_links(plan: &PathPlan, links: &LinkDefaults, seed: u64) -> Network {
    let LinkDefaults { delay_ns, detection_ns, rate_bps, queue_frames } = *links;
    let graph = plan.graph();
    let nodes = graph.switches.iter().zip(&graph.ports).enumerate().map(|(at, (name, ports))| Node {
        name: name.clone(),
        ports: ports.iter().copied().collect(),
        layer: plan.layer(at),
        setup: Setup::default(),
    });
    let link = |ends: &_| NetworkLink { ends: *ends, delay_ns, rate_bps, queue_frames };
    Network {
        nodes: nodes.collect(),
        links: graph.links.iter().map(link).collect(),
        hosts: graph.hosts.iter().map(|host| Host { name: host.name.clone(), at: host.at }).collect(),
        detection_ns,
        seed,
        ..Network::default()
    }
}

/// Returns a network whose switches forward by entries for all shortest paths.
fn by_entries(
    plan: &PathPlan,
    traffic: &Traffic,
    links: &LinkDefaults,
    settings: SwitchSettings,
    seed: u64,
) -> Result<Network, Mistake> {
    let mut network = switches_and_links(plan, links, seed);
    network.buffers = Some(settings.buffers);
    let changes = switches::entries(&network, &traffic.pairs, traffic::address)?;
    network.nodes.iter_mut().zip(changes).for_each(|(node, changes)| node.setup.changes = changes);
    network.flows = traffic.flows_by_entries(&network, seed)?;
    Ok(network)
}

/// Properties that all links have in common.
pub struct LinkDefaults {
    pub delay_ns: Nanos,
    pub detection_ns: Nanos,
    pub rate_bps: Option<u64>,
    pub queue_frames: usize,
}

fn link_defaults(section: &NetworkSection, mistakes: &mut Mistakes) -> Option<LinkDefaults> {
    let mut time = |name: &str, text: &Option<String>, usual: &str| {
        let checked = duration(text.as_deref().unwrap_or(usual)).and_then(|ns| {
            if ns <= LONGEST_NS { Ok(ns) } else { Err("is too long; use at most \"1m\"".to_owned()) }
        });
        mistakes.at(format!("network.{name}"), checked)
    };
    let delay_ns = time("delay", &section.delay, "10us");
    let detection_ns = time("detection", &section.detection, "1ms");
    let rate_bps = match section.rate_bps {
        Some(rate) => mistakes.at("network.rate_bps", in_range(rate, 1_000..=1_000_000_000_000)).map(Some),
        None => Some(None),
    };
    if section.queue.is_some() && section.rate_bps.is_none() {
        mistakes
            .wrong("network.queue", "has no effect without rate_bps, because no frame waits; leave it out");
    }
    let queue_frames = mistakes.at("network.queue", in_range(section.queue.unwrap_or(1_000), 0..=QUEUE));
    Some(LinkDefaults {
        delay_ns: delay_ns?,
        detection_ns: detection_ns?,
        rate_bps: rate_bps?,
        queue_frames: queue_frames? as usize,
    })
}
