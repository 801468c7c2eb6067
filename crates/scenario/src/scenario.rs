// SPDX-License-Identifier: Apache-2.0
//! Reads a scenario file and decides whether it describes a switch or a network. Begin with
//! [`Scenario::load`].

use crate::error::ScenarioError;
use crate::network::{self, NetworkScenario};
use crate::run::SwitchScenario;
use crate::{check, file};
use config::mistakes::Mistakes;
use config::value::in_range;
use config::{Mistake, PortCacheMode, text};
use std::path::Path;

/// A scenario of switches without links, or of a network.
#[derive(Debug)]
pub enum Scenario {
    /// One switch, or several that get the same traffic.
    Switch(Box<SwitchScenario>),
    /// A network of switches.
    Network(Box<NetworkScenario>),
}

/// Settings that replace the settings of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Seed of all random values.
    pub seed: Option<u64>,
    /// Whether each switch has an express path. A scenario without `[[datapath]]` does not accept this
    /// setting.
    pub express: Option<bool>,
    /// Mode of each switch's port cache. A scenario without `[[datapath]]` does not accept this setting.
    pub port_cache: Option<PortCacheMode>,
}

impl Scenario {
    /// Reads and checks a file. Paths in the file are relative to its directory.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or an error that lists all mistakes in the file.
    pub fn load(path: &Path, overrides: &Overrides) -> Result<Self, ScenarioError> {
        text::load(path, |text| parse(path, text, overrides))
            .map_err(|source| ScenarioError::Read { path: path.into(), source })?
            .map_err(ScenarioError::Wrong)
    }
}

/// Checks the text of a scenario of one switch or of a network.
pub(crate) fn parse(path: &Path, text: &str, overrides: &Overrides) -> Result<Scenario, Vec<Mistake>> {
    text::parse(text, file::SCENARIO, |file, mistakes| scenario(path, file, overrides, mistakes))
}

fn scenario(
    path: &Path,
    mut file: file::ScenarioFile,
    overrides: &Overrides,
    mistakes: &mut Mistakes,
) -> Option<Scenario> {
    let seed = match overrides.seed {
        Some(seed) => seed,
        None => mistakes.at("seed", in_range(file.seed.unwrap_or(1), 0..=i64::MAX))?,
    };
    // Tables use hashes, so the seed must be fixed before the first table is created.
    sim::fix_hashes(seed);
    if let Some(express) = overrides.express {
        file.datapath.iter_mut().for_each(|datapath| datapath.express.set_enabled(express));
    }
    if let Some(mode) = overrides.port_cache {
        file.datapath.iter_mut().for_each(|datapath| datapath.port_cache.set_mode(mode));
    }
    let Some(network) = &file.network else {
        return check::switches(path, file, seed, mistakes).map(Box::new).map(Scenario::Switch);
    };
    let others = [
        ("warm_up", file.warm_up.is_some()),
        ("duration", file.duration.is_some()),
        ("packets", file.packets.is_some()),
        ("ring", file.ring.is_some()),
        ("io", file.io.is_some()),
        ("costs", file.costs.is_some()),
        ("load", file.load.is_some()),
        ("traffic", !file.traffic.is_empty()),
    ];
    for (key, _) in others.into_iter().filter(|(_, is_there)| *is_there) {
        mistakes.wrong(key, "is for one switch and cannot be combined with [network]; give one of them");
    }
    let switches =
        [("--express", overrides.express.is_some()), ("--port-cache", overrides.port_cache.is_some())];
    if file.datapath.is_empty() {
        for (key, _) in switches.into_iter().filter(|(_, is_there)| *is_there) {
            let problem = "needs [[datapath]] in a network with forwarding = \"entries\"; add it, or leave this option out";
            mistakes.wrong(key, problem);
        }
    }
    network::scenario(path, network, &file.datapath, seed, mistakes).map(Box::new).map(Scenario::Network)
}
