// SPDX-License-Identifier: Apache-2.0
//! Scenarios of networks: all switches of a plan, hosts that send packets, failures, and a renumbering.
//!
//! The simulation itself is [`sim::network`]. From the plan and the scenario, this module derives switch
//! settings, traffic and scheduled changes. Begin with `check`, then read `plan`.

mod acts;
mod check;
mod dumped;
pub mod file;
mod plan;
mod protection;
mod report;
mod switches;
mod traffic;

pub use protection::{Protected, Protection};
pub use report::{
    ByEpochs, FailureMet, LayerOutcome, LinkHeader, LossReport, Met, NetworkOutcome, Range, SwitchState,
    SwitchesOutcome, TableState,
};

use crate::error::ScenarioError;
use config::PortCacheMode;
use plan::{Graph, Numberings};
use sim::network::{End, Network};
use std::collections::HashMap;
use std::path::PathBuf;
use switches::ForwardBy;

pub(super) use check::scenario;

/// A network scenario.
#[derive(Debug)]
pub struct NetworkScenario {
    path: PathBuf,
    plan_path: String,
    kind: &'static str,
    forwarding: ForwardBy,
    port_cache: PortCacheMode,
    graph: Names,
    network: Network,
    /// Sizes of the keys of all flows, in bits.
    key_bits: Vec<u32>,
    pairs: usize,
    numberings: Numberings,
    require: file::Require,
}

/// Names of the network and its links. Links have the same indices as in the simulated network.
#[derive(Debug)]
struct Names {
    network: String,
    links: Vec<String>,
}

impl Names {
    fn of(graph: &Graph) -> Self {
        let mut counts: HashMap<[usize; 2], usize> = HashMap::new();
        let nodes = |[a, b]: &[End; 2]| [a.node.min(b.node), a.node.max(b.node)];
        graph.links.iter().for_each(|link| *counts.entry(nodes(link)).or_default() += 1);
        let name = |link: &[End; 2]| {
            let [a, b] = link.map(|end| &graph.switches[end.node]);
            match counts.get(&nodes(link)) {
                Some(2..) => format!("{a}-{b} (port {} of {a})", link[0].port),
                _ => format!("{a}-{b}"),
            }
        };
        Self { network: graph.name.clone(), links: graph.links.iter().map(name).collect() }
    }
}

impl NetworkScenario {
    /// Runs the simulation. The same file and seed give the same outcome.
    ///
    /// # Errors
    ///
    /// Returns an error if a switch refuses the settings of the plan.
    pub fn run(&self) -> Result<NetworkOutcome, ScenarioError> {
        sim::fix_hashes(self.network.seed);
        let found = sim::network::run(&self.network)?;
        Ok(report::outcome(self, &found))
    }
}

#[cfg(test)]
mod tests;
