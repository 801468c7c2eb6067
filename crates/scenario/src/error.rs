// SPDX-License-Identifier: Apache-2.0
//! Errors that occur in scenarios.

use crate::limits::LONGEST_NS;
use config::{FileMistakes, Mistake};
use sim::cost::CostError;
use sim::network::NetworkError;
use std::path::PathBuf;

/// An error in a scenario.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("{}: cannot read the scenario: {source}", path.display())]
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
    #[error("the switch cannot be set up: {0}")]
    SetUp(#[from] CostError),
    /// The network could not be set up.
    #[error("the network cannot be set up: {0}")]
    Network(#[from] NetworkError),
    /// The capacity of the switch is 0, so a load relative to the capacity is impossible.
    #[error(
        "{}: load.factor: the switch loses packets of this traffic at any rate; give load.rate_pps", .0.display()
    )]
    NoCapacity(PathBuf),
    /// The given number of packets would take longer to arrive than the maximum duration of a run. The second
    /// field is the time that they would take, in ns.
    #[error("{}: packets: would take {:.0} s to arrive; a run has at most {:.0} s", .0.display(), .1 / 1e9, LONGEST_NS / 1e9)]
    TooLong(PathBuf, f64),
    /// The measured costs are invalid.
    #[error("the costs cannot be measured: {0}; run it again, or give costs")]
    Costs(Mistake),
}
