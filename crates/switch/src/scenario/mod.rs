// SPDX-License-Identifier: Apache-2.0
//! `shunt sim`: a switch and its traffic as a file tells of them, run in virtual time, and what became of the packets.
//!
//! What runs is the worker itself ([`sim::arrivals`]); here the file is read and checked, packets are made, and the result
//! is put into rows. docs/simulation.md is the file's description.

mod check;
mod costs;
mod file;
mod network;
mod packets;
mod report;
mod run;
mod traffic;

pub use costs::StepCost;
pub use network::{
    ByEpochs, FailureMet, LinkHeader, Lost, Met, NetworkOutcome, NetworkScenario, Protected, Protection,
    Range, SwitchState, TableState,
};
pub use report::{Latency, Learned, Outcome, Part};

use crate::config::{FileMistakes, Mistake, read_text};
use costs::Costs;
use flow::PortNo;
use sim::arrivals::{Load, Marks};
use sim::cost::CostError;
use sim::network::NetworkError;
use std::path::{Path, PathBuf};

/// Ports of a simulated switch at most.
const PORTS: PortNo = 256;

/// Longest time in which packets arrive, ns: one hour.
const LONGEST_NS: f64 = 3.6e12;

/// Packets a second at most, of one sort and of all.
const RATE_PPS: f64 = 1e9;

/// A simulation.
#[derive(Debug)]
pub enum Scenario {
    /// One switch, and what arrives at it.
    Switch(SwitchScenario),
    /// A network.
    Network(NetworkScenario),
}

/// A simulation of one switch, and what arrives at it.
#[derive(Clone, Debug)]
pub struct SwitchScenario {
    path: PathBuf,
    seed: u64,
    /// The switch's flows, in flow syntax.
    rules: String,
    ports: PortNo,
    config: worker::Config,
    marks: Marks,
    costs: Costs,
    /// What arrives. While `factor` is there, rates are shares of what the switch carries.
    load: Load,
    /// What is offered, in parts of what the switch carries.
    factor: Option<f64>,
    /// Packets that are to arrive, in place of a time.
    packets: Option<u64>,
}

/// Why a scenario is refused.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file can not be read.
    #[error("{}: can not read the scenario: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its contents are wrong; a line for each mistake.
    #[error(transparent)]
    Wrong(FileMistakes),
    /// The switch could not be set up.
    #[error("the switch can not be set up: {0}")]
    SetUp(#[from] CostError),
    /// The network could not be set up.
    #[error("the network can not be set up: {0}")]
    Network(#[from] NetworkError),
    /// It carries nothing, so that no part of it can be offered.
    #[error(
        "{}: load.factor: the switch loses packets of this traffic at any rate; give load.rate_pps", .0.display()
    )]
    NoCapacity(PathBuf),
    /// So many packets would take longer than any run.
    #[error("{}: packets: would take {:.0} s to arrive; the longest run has {:.0} s", .0.display(), .1 / 1e9, LONGEST_NS / 1e9)]
    TooLong(PathBuf, f64),
    /// Costs that were measured are of no use.
    #[error("the measured costs are of no use: {0}; run it again, or give costs")]
    Costs(Mistake),
}

impl Scenario {
    /// Reads and checks a file; paths in it are relative to its folder. A seed replaces the file's.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn load(path: &Path, seed: Option<u64>) -> Result<Self, ScenarioError> {
        let read = read_text(path).map_err(|source| ScenarioError::Read { path: path.into(), source })?;
        read.map_err(|mistake| vec![mistake])
            .and_then(|text| check::any(path, &text, seed))
            .map_err(|mistakes| ScenarioError::Wrong(FileMistakes::new(path, mistakes)))
    }
}

#[cfg(test)]
mod tests;
