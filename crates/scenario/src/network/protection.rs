// SPDX-License-Identifier: Apache-2.0
//! Protection: which links and switches a plan promises to protect, which of them a run exercised, and the
//! checks of `[network.require]`.

use super::file::Require;
use super::plan::Numberings;
use config::Mistake;
use config::mistakes::wrong;
use serde::Serialize;
use sim::network::{FailureReport, Hop, Network, NetworkPlace, Report};
use std::collections::{HashMap, HashSet};

/// Counts of protected links and switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Protection {
    /// Counts of links.
    pub links: Protected,
    /// Counts of switches.
    pub switches: Protected,
}

/// Counts of parts, which are either links or switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Protected {
    /// Number of links, or of switches, in the network.
    pub total: usize,
    /// Number of parts that planned paths of this run cross. A path does not cross the switches at its ends.
    pub used: usize,
    /// Number of used parts whose failure causes no loss on any path that crosses them.
    pub protected: usize,
    /// Number of used parts that failed in this run.
    pub failed: usize,
    /// Number of protected parts whose failure packets encountered after its detection.
    pub exercised: usize,
}

/// Checks the values of `[network.require]`.
pub fn check(require: &Require, has_acts: bool) -> Result<(), Mistake> {
    let key = |name: &str| format!("network.require.{name}");
    let Require { delivered, protected_links, protected_switches, exercised } = *require;
    let shares = [
        ("delivered", delivered),
        ("protected_links", protected_links),
        ("protected_switches", protected_switches),
    ];
    for (name, share) in shares {
        if let Some(share) = share.filter(|share| !(0.0..=1.0).contains(share)) {
            return Err(wrong(key(name), format!("{share} is out of range; use a share, 0 to 1")));
        }
    }
    if exercised && !has_acts {
        let problem = "has no effect without [[network.failure]] or [network.renumber]; leave it out";
        return Err(wrong(key("exercised"), problem));
    }
    Ok(())
}

/// Links and switches that planned paths cross. The value is true if every path that crosses the part
/// protects it.
struct Parts(HashMap<NetworkPlace, bool>);

impl Parts {
    fn of(network: &Network) -> Self {
        let mut used = HashMap::new();
        let mut take = |part, guarded| {
            used.entry(part).and_modify(|all| *all &= guarded).or_insert(guarded);
        };
        for flow in &network.flows {
            let to = network.hosts[flow.to].at.node;
            for &Hop { link, node, link_guarded, node_guarded } in flow.routes.iter().flatten() {
                take(NetworkPlace::Link(link), link_guarded);
                if node != to {
                    take(NetworkPlace::Node(node), node_guarded);
                }
            }
        }
        Self(used)
    }

    fn count(
        &self,
        failures: &[FailureReport],
        total: usize,
        is_one: fn(&NetworkPlace) -> bool,
    ) -> Protected {
        let parts_of = |which: fn(&&FailureReport) -> bool| -> HashSet<NetworkPlace> {
            failures.iter().filter(which).map(|failure| failure.part).collect()
        };
        let (failed, met) = (parts_of(|_| true), parts_of(|failure| failure.guarded > 0));
        let mut counts = Protected { total, ..Protected::default() };
        for (part, protected) in self.0.iter().filter(|(part, _)| is_one(part)) {
            counts.used += 1;
            counts.protected += usize::from(*protected);
            counts.failed += usize::from(failed.contains(part));
            counts.exercised += usize::from(*protected && met.contains(part));
        }
        counts
    }
}

/// Counts the parts that a run protected and exercised.
pub fn protection(network: &Network, found: &Report) -> Protection {
    let parts = Parts::of(network);
    Protection {
        links: parts
            .count(&found.failures, network.links.len(), |part| matches!(part, NetworkPlace::Link(_))),
        switches: parts
            .count(&found.failures, network.nodes.len(), |part| matches!(part, NetworkPlace::Node(_))),
    }
}

/// Returns the requirements that were not met, each as a sentence.
pub fn missed(
    require: &Require,
    numberings: Numberings,
    network: &Network,
    found: &Report,
    protection: &Protection,
    name: impl Fn(&NetworkPlace) -> String,
) -> Vec<String> {
    let mut missed = Vec::new();
    let mut share = |key: &str, least: Option<f64>, part: u64, all: u64, what: &str| {
        if let Some(least) = least.filter(|least| part as f64 / (all as f64) < *least) {
            missed.push(format!("{key}: {part} of {all} {what}; the required share is {least}"));
        }
    };
    share("delivered", require.delivered, found.delivered, found.sent, "packets were delivered");
    let Protection { links, switches } = *protection;
    for (key, least, of, what) in [
        ("protected_links", require.protected_links, links, "used links are protected"),
        ("protected_switches", require.protected_switches, switches, "crossed switches are protected"),
    ] {
        share(key, least, of.protected as u64, of.used as u64, what);
    }
    if !require.exercised {
        return missed;
    }
    let parts = Parts::of(network);
    let ends = network.flows.iter().flat_map(|flow| [flow.from, flow.to]);
    let ends: HashSet<NetworkPlace> =
        ends.map(|host| NetworkPlace::Node(network.hosts[host].at.node)).collect();
    let mut report = |what: &str, which: &dyn Fn(&FailureReport) -> bool| {
        let failures: Vec<_> = found.failures.iter().filter(|failure| which(failure)).collect();
        if let Some(first) = failures.first() {
            let ms = first.from_ns.0 as f64 / 1e6;
            let more = match failures.len() - 1 {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            missed.push(format!("exercised: {what}: {} at {ms:.3} ms{more}", name(&first.part)));
        }
    };
    report("no packet encountered a failure", &|failure| {
        failure.met == 0 && (parts.0.contains_key(&failure.part) || ends.contains(&failure.part))
    });
    let is_exercised = |part| found.failures.iter().any(|other| other.part == part && other.guarded > 0);
    report("no packet encountered a failure of a protected part after its detection", &|failure| {
        failure.met > 0 && parts.0.get(&failure.part) == Some(&true) && !is_exercised(failure.part)
    });
    if !found.failures.is_empty() && links.exercised + switches.exercised == 0 {
        missed.push("exercised: no protected part failed while packets reached it".into());
    }
    for (epoch, delivered) in found.by_epochs[1..3].iter().enumerate() {
        if numberings == Numberings::Both && *delivered == 0 {
            missed.push(format!("exercised: no delivered packet had a key of epoch {epoch}"));
        }
    }
    missed
}
