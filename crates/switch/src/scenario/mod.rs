// SPDX-License-Identifier: Apache-2.0
//! Scenarios of `shunt sim`: reads a file, runs a simulation in virtual time, and reports the result.
//!
//! The simulation itself is [`sim::arrivals`], which runs the real worker. This module checks the file, makes
//! the packets and formats the result. docs/simulation.md describes the file. Begin with [`Scenario::load`].

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
    ByEpochs, FailureMet, LinkHeader, LossReport, Met, NetworkOutcome, NetworkScenario, Protected,
    Protection, Range, SwitchState, TableState,
};
pub use report::{Latency, LearnedFlows, ScenarioOutcome, TrafficShare};

use config::{FileMistakes, Mistake, text};
use costs::CostsSection;
use flow::PortNo;
use sim::arrivals::{Load, Marks};
use sim::cost::CostError;
use sim::network::NetworkError;
use std::path::{Path, PathBuf};

/// Maximum number of ports of a simulated switch.
const PORTS: PortNo = 256;

/// Longest time in which packets arrive, in ns: one hour.
const LONGEST_NS: f64 = 3.6e12;

/// Maximum rate of a traffic class and of all traffic, in packets per second.
const RATE_PPS: f64 = 1e9;

/// Scenario of one switch or of a network.
#[derive(Debug)]
pub enum Scenario {
    /// One switch and its traffic.
    Switch(SwitchScenario),
    /// Network of switches.
    Network(NetworkScenario),
}

/// Scenario of one switch and its traffic.
#[derive(Clone, Debug)]
pub struct SwitchScenario {
    path: PathBuf,
    seed: u64,
    /// Flows of the switch in flow syntax.
    rules: String,
    ports: PortNo,
    config: worker::WorkerSetConfig,
    marks: Marks,
    costs: CostsSection,
    /// Arriving packets. If `factor` is given, the rates are relative to the switch's capacity.
    load: Load,
    /// Offered load relative to the switch's capacity.
    factor: Option<f64>,
    /// Number of packets to arrive, instead of a duration.
    packets: Option<u64>,
}

/// Error of a scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{}: can not read the scenario: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The contents are wrong. Each mistake is one line.
    #[error(transparent)]
    Wrong(FileMistakes),
    /// The switch could not be set up.
    #[error("the switch can not be set up: {0}")]
    SetUp(#[from] CostError),
    /// The network could not be set up.
    #[error("the network can not be set up: {0}")]
    Network(#[from] NetworkError),
    /// The capacity of the switch is 0, so no load relative to it can be offered.
    #[error(
        "{}: load.factor: the switch loses packets of this traffic at any rate; give load.rate_pps", .0.display()
    )]
    NoCapacity(PathBuf),
    /// The number of packets would take longer than the longest run. The second field is the time in ns.
    #[error("{}: packets: would take {:.0} s to arrive; the longest run has {:.0} s", .0.display(), .1 / 1e9, LONGEST_NS / 1e9)]
    TooLong(PathBuf, f64),
    /// The measured costs are invalid.
    #[error("the measured costs are of no use: {0}; run it again, or give costs")]
    Costs(Mistake),
}

impl Scenario {
    /// Reads and checks a file. Paths in it are relative to its directory. `seed` replaces the file's seed.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or all mistakes in it.
    pub fn load(path: &Path, seed: Option<u64>) -> Result<Self, ScenarioError> {
        text::load(path, |text| check::any(path, text, seed))
            .map_err(|source| ScenarioError::Read { path: path.into(), source })?
            .map_err(ScenarioError::Wrong)
    }
}

#[cfg(test)]
mod tests;
