// SPDX-License-Identifier: Apache-2.0
//! The configuration file: TOML in, checked settings out. Every mistake is a sentence that says what is wrong, where,
//! and what would be right.

mod check;
mod endpoint;
pub(crate) mod file;
pub(crate) mod forwarding;
mod machine;
pub(crate) mod mistakes;
mod places;
mod ports;
pub(crate) mod text;
pub(crate) mod value;

pub use endpoint::Endpoint;
pub use machine::Scope;
pub(crate) use machine::spec;
pub use mistakes::{FileMistakes, Mistake};
pub use places::Place;

use flow::{Nanos, Stateless};
use pipeline::LaneLimits;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use worker::Quanta;

/// Where the control socket is when nothing else is said.
pub const DEFAULT_CONTROL: &str = "/run/shunt/s1.sock";

/// Longest configuration file.
const FILE_BYTES: u64 = 16 * 1_024 * 1_024;

/// Checked settings of one datapath's daemon: a process runs one for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Path of the control socket.
    pub control: PathBuf,
    /// Forwards without the wide instructions that the core has.
    pub portable: bool,
    /// How DPDK is started, for ports of its driver.
    pub dpdk: port::dpdk::Settings,
    /// The workers, by number.
    pub workers: Vec<WorkerConfig>,
    /// How soon workers sleep, and for how long. No file sets it.
    pub pace: Pace,
    /// The datapath.
    pub datapath: Datapath,
    /// What is accepted but has no effect, one sentence each.
    pub notes: Vec<String>,
}

/// One worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerConfig {
    /// The CPU it is pinned to, if any.
    pub cpu: Option<usize>,
    /// What it does without packets.
    pub idle: Idle,
}

/// How soon a worker without work sleeps, and when it wakes by itself. Production uses the default; tests of the threads make
/// workers sleep at once and wake only when something wakes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How long a worker spins after its last packet.
    pub spin_ns: Nanos,
    /// Between two publications of links and counters.
    pub keeping_ns: Nanos,
    /// The same when packets came since the last publication and the worker is about to sleep.
    pub keeping_soon_ns: Nanos,
}

impl Default for Pace {
    fn default() -> Self {
        Self { spin_ns: 50_000, keeping_ns: 100_000_000, keeping_soon_ns: 20_000_000 }
    }
}

/// What a worker does without packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Spins for a moment, then sleeps until packets come.
    #[default]
    Adaptive,
    /// Never sleeps.
    Busy,
}

/// One datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datapath {
    /// Its number.
    pub id: u64,
    /// Its channels to controllers.
    pub openflow: OpenFlow,
    /// Value and mask of the cookies whose entries are low-latency.
    pub low_latency_cookie: Option<(u64, u64)>,
    /// When entries are learned to be low-latency; none: never.
    pub learning: Option<model::Learning>,
    /// Records of each LUT of the fast-forwarding path in each worker; 0: the path is off.
    pub lut_entries: usize,
    /// How their records are kept right while rules change.
    pub consistency: worker::Consistency,
    /// What may wait in each worker, and how much of it is worked off at once.
    pub lanes: (LaneLimits, Quanta),
    /// A flow file that is in force from the first packet on.
    pub flows: Option<PathBuf>,
    /// Its stateless lane.
    pub stateless: Option<Arc<Stateless>>,
    /// Its ports, in the order of the file.
    pub ports: Vec<PortConfig>,
}

/// How a datapath forwards, whatever its ports and controllers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forwarding {
    /// See [`Datapath`].
    pub low_latency_cookie: Option<(u64, u64)>,
    /// See [`Datapath`].
    pub learning: Option<model::Learning>,
    /// See [`Datapath`].
    pub lut_entries: usize,
    /// See [`Datapath`].
    pub consistency: worker::Consistency,
    /// See [`Datapath`].
    pub lanes: (LaneLimits, Quanta),
    /// See [`PortConfig`]; of ports that say nothing else.
    pub outstanding_bytes: usize,
}

/// Channels to controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlow {
    /// Controllers to connect to, tried for ever.
    pub controllers: Vec<Endpoint>,
    /// Where controllers and tools may connect to.
    pub listen: Vec<Endpoint>,
    /// Forwards by learned MACs while no controller of the list is connected.
    pub standalone: bool,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Its number.
    pub number: flow::PortNo,
    /// Its name.
    pub name: String,
    /// A driver of [`port::DRIVERS`].
    pub driver: String,
    /// The device in the driver's notation.
    pub device: String,
    /// Numbers of the workers that serve its queues.
    pub workers: Vec<usize>,
    /// Bytes outstanding at the device from which on normal frames wait in the switch; `usize::MAX`: they never do.
    pub outstanding_bytes: usize,
    /// Its egress queues; none: frames leave as they come.
    pub queues: Vec<flow::EgressQueue>,
}

/// Why a configuration was refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file can not be read.
    #[error("{}: can not read the configuration: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its contents are wrong; a line for each mistake.
    #[error(transparent)]
    Wrong(FileMistakes),
}

impl Config {
    /// Reads and checks a file: one datapath's settings, or those of several.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn load(path: &Path) -> Result<Vec<Self>, ConfigError> {
        Self::load_for(path, Scope::File)
    }

    /// As [`Config::load`], with as much beside the file as `scope` says.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn load_for(path: &Path, scope: Scope) -> Result<Vec<Self>, ConfigError> {
        let read = read_text(path).map_err(|source| ConfigError::Read { path: path.into(), source })?;
        let parsed = read.map_err(|mistake| vec![mistake]).and_then(|text| Self::parse_for(&text, scope));
        parsed.map_err(|mistakes| ConfigError::Wrong(FileMistakes::new(path, mistakes)))
    }

    /// Checks a file's text.
    ///
    /// # Errors
    /// All that is wrong, in the order of the text.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, Vec<Mistake>> {
        Self::parse_for(text, Scope::File)
    }

    fn parse_for(text: &str, scope: Scope) -> Result<Vec<Self>, Vec<Mistake>> {
        let text::Reading { tree, file, mut mistakes } = text::read(text, text::CONFIGURATION);
        let configs = file.map(|file| check::configs(file, scope, &mut mistakes));
        match configs {
            Some(configs) if mistakes.is_empty() => Ok(configs),
            _ => Err(mistakes.in_order(text, &tree)),
        }
    }

    /// Checks the text of a file of one datapath.
    ///
    /// # Errors
    /// All that is wrong, or that there are several.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let [one] = <[Self; 1]>::try_from(Self::parse_all(text)?).map_err(|all| {
            vec![mistakes::wrong("datapath", format!("there are {}, and one is asked for", all.len()))]
        })?;
        Ok(one)
    }
}

/// A file's text, if it is one that may be read at all.
pub(crate) fn read_text(path: &Path) -> std::io::Result<Result<String, Mistake>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES {
        let problem = format!("is longer than {FILE_BYTES} bytes; name a TOML file");
        return Ok(Err(mistakes::wrong("", problem)));
    }
    Ok(text::decode(bytes))
}

#[cfg(test)]
mod tests;
