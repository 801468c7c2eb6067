// SPDX-License-Identifier: Apache-2.0
//! Checks of a network scenario.

use super::file::NetworkSection;
use super::plan::{Numberings, PathPlan};
use super::{Names, NetworkScenario, acts, protection, traffic};
use config::mistakes::{Mistakes, wrong};
use config::value::{duration, in_range};
use flow::Nanos;
use sim::network::{Host, Network, NetworkLink, Node};
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
    seed: u64,
    mistakes: &mut Mistakes,
) -> Option<NetworkScenario> {
    let before = mistakes.len();
    let link_defaults = link_defaults(section, mistakes);
    let renumbered = section.renumber.is_some();
    let numberings = if renumbered { Numberings::Both } else { Numberings::Newest };
    mistakes.take(protection::check(&section.require, renumbered || !section.failure.is_empty()));

    let named = mistakes.needed("network.plan", section.plan.as_ref(), "plan = \"plan.json\"")?;
    let plan_path = path.parent().unwrap_or(Path::new(".")).join(named);
    let refuse = |problem: String| wrong("network.plan", format!("{}: {problem}", plan_path.display()));
    let mut plan = mistakes.take(PathPlan::open(&plan_path).map_err(|error| refuse(error.to_string())))?;

    if renumbered && !plan.renumbers() {
        let problem = "needs a plan of two epochs; write one with plan keyflow --renumber";
        mistakes.wrong("network.renumber", problem);
    }
    let traffic = mistakes.take(traffic::traffic(&section.traffic, &mut plan, seed));
    let mut acts = Vec::new();
    let detection_ns = link_defaults.as_ref().map_or(Nanos::ZERO, |link_defaults| link_defaults.detection_ns);
    for (n, failure) in section.failure.iter().enumerate() {
        let failed = acts::failure(n, failure, plan.graph(), detection_ns);
        acts.extend(mistakes.take(failed).into_iter().flatten());
    }
    let traffic = traffic.filter(|_| mistakes.len() == before)?;
    let stages = plan.stages(&traffic.pairs, numberings).map_err(|error| refuse(error.to_string()));
    let mut stages = mistakes.take(stages)?;
    let (flows, key_bits) = mistakes.take(traffic.flows(&plan, numberings, seed))?;
    let later = stages.split_off(1);
    let graph = plan.graph();
    if let Some(renumber) = &section.renumber {
        acts.extend(mistakes.take(acts::renumber(renumber, later, seed)).into_iter().flatten());
    }
    let LinkDefaults { delay_ns, detection_ns, rate_bps, queue_frames } = link_defaults?;
    let setups = stages.pop().unwrap_or_default();
    let nodes = graph.switches.iter().zip(&graph.ports).zip(setups);
    let nodes = nodes.map(|((name, ports), setup)| {
        let ports = ports.iter().copied().collect();
        Node { name: name.clone(), ports, layer: None, setup }
    });
    let link = |ends: &_| NetworkLink { ends: *ends, delay_ns, rate_bps, queue_frames };
    let network = Network {
        nodes: nodes.collect(),
        links: graph.links.iter().map(link).collect(),
        hosts: graph.hosts.iter().map(|host| Host { name: host.name.clone(), at: host.at }).collect(),
        flows,
        acts,
        detection_ns,
        seed,
        buffers: None,
    };
    Some(NetworkScenario {
        path: path.into(),
        plan_path: named.clone(),
        kind: plan.kind(),
        graph: Names::of(graph),
        network,
        key_bits,
        pairs: traffic.pairs.len(),
        numberings,
        require: section.require.clone(),
    })
}

/// Properties that all links have in common.
struct LinkDefaults {
    delay_ns: Nanos,
    detection_ns: Nanos,
    rate_bps: Option<u64>,
    queue_frames: usize,
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
