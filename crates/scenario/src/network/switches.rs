// SPDX-License-Identifier: Apache-2.0
//! Settings of switches that forward by flow entries: receive rings, path records and the port cache.

use super::check::LinkDefaults;
use super::file::NetworkSection;
use super::plan::{Graph, Pair};
use crate::file::SwitchSection;
use config::forwarding::{ForwardingSections, forwarding};
use config::mistakes::{Mistakes, wrong};
use config::value::{duration, in_range};
use config::{Mistake, PortCacheMode, check_pool};
use flow::{Limits, Nanos};
use model::Change;
use port_cache::PortCacheConfig;
use sim::network::{ALL_BUCKETS, EcmpError, HostAddress, Network, SwitchBuffers, UNSERVED_MAX, ecmp};
use std::collections::BTreeSet;

/// Maximum number of packets that wait in the receive ring of a port.
const RING: i64 = 65_536;
/// Maximum duration of the warm-up, in ns.
const WARM_UP_NS: Nanos = Nanos(3_600_000_000_000);
/// Maximum number of packets in the receive rings of all ports.
const RING_PACKETS: usize = 1 << 22;
/// Maximum number of path records and of flow entries of all switches.
const RECORDS: usize = 1 << 22;
const ENTRIES: usize = 1 << 20;

/// Method by which switches forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardBy {
    /// Stateless methods of the plan.
    Plan,
    /// Flow entries for all shortest paths.
    Entries,
}

impl ForwardBy {
    /// Returns the name in scenario files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Entries => "entries",
        }
    }

    /// Reads the key `forwarding`, and refuses keys that belong to another method.
    pub fn read(
        section: &NetworkSection,
        datapaths: &[SwitchSection],
        mistakes: &mut Mistakes,
    ) -> Option<Self> {
        let by = match section.forwarding.as_deref() {
            None | Some("plan") => Self::Plan,
            Some("entries") => Self::Entries,
            Some(other) => {
                let problem = format!("\"{other}\" is unknown; use \"plan\" or \"entries\"");
                mistakes.wrong("network.forwarding", problem);
                return None;
            }
        };
        let entries_only = [
            ("datapath", !datapaths.is_empty()),
            ("network.ring", section.ring.is_some()),
            ("network.warm_up", section.warm_up.is_some()),
            ("network.traffic.flows", section.traffic.flows.is_some()),
        ];
        let require = &section.require;
        let plan_only = [
            ("network.failure", !section.failure.is_empty()),
            ("network.renumber", section.renumber.is_some()),
            ("network.state", section.state.is_some()),
            ("network.detection", section.detection.is_some()),
            ("network.traffic.paths", section.traffic.paths.is_some()),
            ("network.require.protected_links", require.protected_links.is_some()),
            ("network.require.protected_switches", require.protected_switches.is_some()),
        ];
        let (refused, remedy) = match by {
            Self::Plan => (&entries_only[..], "needs network.forwarding = \"entries\"; add it"),
            Self::Entries => {
                (&plan_only[..], "needs the forwarding of the plan; leave out forwarding = \"entries\"")
            }
        };
        for (key, _) in refused.iter().filter(|(_, is_there)| *is_there) {
            mistakes.wrong(*key, format!("{remedy}, or leave this key out"));
        }
        Some(by)
    }
}

/// Settings that all switches have in common.
#[derive(Clone, Copy, Debug)]
pub struct SwitchSettings {
    pub buffers: SwitchBuffers,
    pub mode: PortCacheMode,
}

/// Reads the settings of switches that forward by entries.
pub fn settings(
    section: &NetworkSection,
    datapaths: &[SwitchSection],
    graph: &Graph,
    links: &LinkDefaults,
    mistakes: &mut Mistakes,
) -> Option<SwitchSettings> {
    let ring = mistakes.at("network.ring", in_range(section.ring.unwrap_or(1_024), 1..=RING));
    let ports: usize = graph.ports.iter().map(BTreeSet::len).sum();
    let most = RING_PACKETS / ports.max(1);
    if let Some(ring) = ring.filter(|ring| *ring as usize > most) {
        mistakes
            .wrong("network.ring", format!("{ring} packets for each of {ports} ports; use at most {most}"));
    }
    let warm_up = duration(section.warm_up.as_deref().unwrap_or("0us")).and_then(|ns| match ns {
        ns if ns <= WARM_UP_NS => Ok(ns),
        _ => Err("is too long; use at most \"1h\"".to_owned()),
    });
    let begin_ns = mistakes.at("network.warm_up", warm_up);
    let default = SwitchSection::default();
    let datapath = match datapaths {
        [] => &default,
        [one] => one,
        more => {
            let problem = format!("there are {}; give one, whose settings all switches have", more.len());
            mistakes.wrong("datapath", problem);
            return None;
        }
    };
    for (key, _) in datapath.unused_in_networks().into_iter().filter(|(_, is_there)| *is_there) {
        let problem = "cannot be set in a network; switches have the entries of their shortest paths, express and port_cache; leave it out";
        mistakes.wrong(format!("datapath.{key}"), problem);
    }
    let SwitchSection { low_latency, ffp, express, lanes, port_cache, .. } = datapath;
    let sections = ForwardingSections { low_latency, ffp, express, lanes, port_cache };
    let forwarding = forwarding("datapath", sections, mistakes)?;
    let switches = graph.switches.len().max(1);
    if forwarding.express_records * switches > RECORDS {
        let problem = format!(
            "{} for each of {switches} switches; use at most {}",
            forwarding.express_records,
            RECORDS / switches
        );
        mistakes.wrong("datapath.express.records", problem);
    }
    if let Some(cache) = &forwarding.port_cache {
        // The limit for the pools of one switch is the limit for all switches of a simulation.
        check_pool("datapath", cache, ports, 1, mistakes);
    }
    let unserved_max = Some(UNSERVED_MAX.into());
    let buffers = SwitchBuffers {
        port_cache: forwarding.port_cache.map(|cache| PortCacheConfig { unserved_max, ..cache }),
        records: forwarding.express_records,
        ring: ring? as usize,
        host_link: links.rate_bps.map(|rate_bps| (rate_bps, links.queue_frames)),
        begin_ns: begin_ns?,
        end_ns: None,
    };
    Some(SwitchSettings { buffers, mode: PortCacheMode::of(forwarding.port_cache.as_ref()) })
}

/// Returns the entries of all switches for the packets of these pairs.
pub fn entries(
    network: &Network,
    pairs: &[Pair],
    address: fn(usize) -> [u8; 4],
) -> Result<Vec<Vec<Change>>, Mistake> {
    let hosts: BTreeSet<usize> = pairs.iter().map(|pair| pair.1).collect();
    let count = hosts.len() * network.nodes.len();
    if count > ENTRIES {
        let (hosts, switches) = (hosts.len(), network.nodes.len());
        let most = ENTRIES / switches.max(1);
        let problem = format!(
            "has packets to {hosts} hosts, whose entries in {switches} switches are more than {ENTRIES}; use pairs with at most {most} receiving hosts"
        );
        return Err(wrong("network.traffic", problem));
    }
    let hosts: Vec<usize> = hosts.into_iter().collect();
    ecmp(network, &hosts, |host| HostAddress(address(host))).map_err(|error| refusal(&error, network))
}

/// Returns the message about entries that cannot be made.
fn refusal(error: &EcmpError, network: &Network) -> Mistake {
    match error {
        EcmpError::Match(error) => wrong("network.forwarding", error.to_string()),
        EcmpError::Buckets { node, hosts } => {
            let name = network.nodes.get(*node).map_or("", |node| &node.name);
            let remedy = match hosts {
                0 => "use a plan with fewer switches".to_owned(),
                _ => format!("give sample, or pairs with {hosts} receiving hosts, which fit here"),
            };
            let (groups, buckets) = (Limits::GROUPS_PER_TYPE, Limits::BUCKETS);
            let problem = format!(
                "needs more groups for shortest paths than fit: {name} would have more than {groups} groups or {buckets} buckets, or all switches more than {ALL_BUCKETS} buckets; {remedy}"
            );
            wrong("network.traffic", problem)
        }
    }
}

#[cfg(test)]
mod tests;
