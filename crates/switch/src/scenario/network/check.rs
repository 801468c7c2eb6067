// SPDX-License-Identifier: Apache-2.0
//! What a scenario of a network says, checked and made ready.

use super::file::Section;
use super::plan::Plan;
use super::{Names, NetworkScenario, acts, protection, traffic};
use crate::config::Mistake;
use crate::config::check::{at, wrong};
use crate::config::value::{duration, in_range};
use flow::Nanos;
use sim::network::{Host, Link, Network, Node};
use std::path::Path;

/// Longest delay and time of detection, ns.
const LONGEST_NS: Nanos = 60_000_000_000;
/// Frames that wait for a link at most.
const QUEUE: i64 = 1_000_000;

/// Reads what the section names, and makes of it what is run.
pub fn scenario(path: &Path, section: &Section, seed: u64) -> Result<NetworkScenario, Mistake> {
    let time = |name: &str, text: &Option<String>, usual: &str| {
        let key = format!("network.{name}");
        match at(key.clone(), duration(text.as_deref().unwrap_or(usual)))? {
            ns @ ..=LONGEST_NS => Ok(ns),
            _ => Err(wrong(key, "is too long; use at most \"1m\"")),
        }
    };
    let delay_ns = time("delay", &section.delay, "10us")?;
    let detection_ns = time("detection", &section.detection, "1ms")?;
    let rate_bps =
        section.rate_bps.map(|rate| at("network.rate_bps", in_range(rate, 1_000..=1_000_000_000_000)));
    let rate_bps = rate_bps.transpose()?;
    if section.queue.is_some() && rate_bps.is_none() {
        return Err(wrong("network.queue", "has no effect without rate_bps: nothing waits; leave it away"));
    }
    let queue_frames = at("network.queue", in_range(section.queue.unwrap_or(1_000), 0..=QUEUE))? as usize;

    let plan_path = path.parent().unwrap_or(Path::new(".")).join(&section.plan);
    let told = |problem: String| wrong("network.plan", format!("{}: {problem}", plan_path.display()));
    let mut plan = Plan::open(&plan_path).map_err(|error| told(error.to_string()))?;

    let renumbered = section.renumber.is_some();
    if renumbered && !plan.renumbers() {
        return Err(wrong(
            "network.renumber",
            "needs a plan of two epochs, as plan keyflow --renumber writes it",
        ));
    }
    protection::check(&section.require, renumbered || !section.failure.is_empty())?;
    let traffic = traffic::traffic(&section.traffic, &mut plan, seed)?;
    let mut stages = plan.stages(&traffic.pairs, renumbered).map_err(|error| told(error.to_string()))?;
    let (flows, key_bits) = traffic.flows(&plan, renumbered, seed)?;
    let later = stages.split_off(1);
    let graph = plan.graph();

    let mut acts = Vec::new();
    for (n, failure) in section.failure.iter().enumerate() {
        acts.extend(acts::failure(n, failure, graph, detection_ns)?);
    }
    if let Some(renumber) = &section.renumber {
        acts.extend(acts::renumber(renumber, later, seed)?);
    }
    let setups = stages.pop().unwrap_or_default();
    let nodes = graph.switches.iter().zip(&graph.ports).zip(setups);
    let nodes = nodes.map(|((name, ports), setup)| {
        let ports = ports.iter().copied().collect();
        Node { name: name.clone(), ports, setup }
    });
    let link = |ends: &_| Link { ends: *ends, delay_ns, rate_bps, queue_frames };
    let network = Network {
        nodes: nodes.collect(),
        links: graph.links.iter().map(link).collect(),
        hosts: graph.hosts.iter().map(|host| Host { name: host.name.clone(), at: host.at }).collect(),
        flows,
        acts,
        detection_ns,
        seed,
    };
    Ok(NetworkScenario {
        path: path.into(),
        plan_path: section.plan.clone(),
        kind: plan.kind(),
        graph: Names::of(graph),
        network,
        key_bits,
        pairs: traffic.pairs.len(),
        renumbered,
        require: section.require.clone(),
    })
}
