// SPDX-License-Identifier: Apache-2.0
//! Scenarios of `shunt sim`: reads a file, runs a simulation in virtual time, and reports the result.
//!
//! The simulation itself is [`sim::arrivals`] for one switch and [`sim::network`] for a network. Both run the
//! worker's real code. This crate checks the file, generates the packets and formats the result. It must not
//! forward packets itself. docs/simulation.md describes the file. Begin with [`Scenario::load`], then read
//! `check`, `switch` and `run` for switches without links, or `network` for a network.

mod check;
mod costs;
mod error;
mod figures;
mod file;
mod limits;
mod network;
mod packets;
mod report;
mod run;
mod scenario;
mod switch;
mod traffic;

pub use costs::StepCost;
pub use error::ScenarioError;
pub use figures::Latency;
pub use network::{
    ByEpochs, FailureMet, LayerOutcome, LinkHeader, LossReport, Met, NetworkOutcome, NetworkScenario,
    Protected, Protection, Range, SwitchState, SwitchesOutcome, TableState,
};
pub use report::{CacheUse, LearnedFlows, ScenarioOutcome, TrafficShare};
pub use run::SwitchScenario;
pub use scenario::{Overrides, Scenario};

#[cfg(test)]
mod tests;
