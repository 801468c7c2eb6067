// SPDX-License-Identifier: Apache-2.0
//! The configuration file: reads TOML and returns checked settings.
//!
//! Every mistake becomes a sentence with its place, its key and a fix. The module must not open devices or
//! start threads. Begin with [`Config::load`], then read `check`.

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
pub use places::TextPlace;

use flow::{Nanos, StatelessConfig};
use pipeline::LaneLimits;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use worker::Quanta;

/// Default path of the control socket.
pub const DEFAULT_CONTROL: &str = "/run/shunt/s1.sock";

/// Maximum size of a configuration file, in bytes.
const FILE_BYTES: u64 = 16 * 1_024 * 1_024;

/// Checked settings of the daemon of one datapath. A process runs one daemon per datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Path of the control socket.
    pub control: PathBuf,
    /// Whether lookups use portable code instead of the CPU's wide SIMD instructions.
    pub portable: bool,
    /// Settings of DPDK, for ports of its driver.
    pub dpdk: port::dpdk::DpdkSettings,
    /// Workers, indexed by number.
    pub workers: Vec<WorkerConfig>,
    /// Timing of the workers' sleep. No file sets it.
    pub pace: Pace,
    /// The datapath.
    pub datapath: Datapath,
    /// Notes on settings that are accepted but have no effect, one sentence each.
    pub notes: Vec<String>,
}

/// Settings of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerConfig {
    /// CPU that the worker is pinned to, if any.
    pub cpu: Option<usize>,
    /// Behaviour while there are no packets.
    pub idle: Idle,
}

/// Timing of a worker's sleep: how soon it sleeps, and when it wakes without a signal. Production uses the
/// default. Tests of the threads make workers sleep at once and wake only when they are woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time that a worker spins after its last packet, in ns.
    pub spin_ns: Nanos,
    /// Time between two publications of links and counters, in ns.
    pub keeping_ns: Nanos,
    /// Shorter time between two publications, in ns. It applies if packets came since the last publication
    /// and the worker is about to sleep.
    pub keeping_soon_ns: Nanos,
}

impl Default for Pace {
    fn default() -> Self {
        Self { spin_ns: 50_000, keeping_ns: 100_000_000, keeping_soon_ns: 20_000_000 }
    }
}

/// Behaviour of a worker while there are no packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Spins for a short time, then sleeps until packets arrive.
    #[default]
    Adaptive,
    /// Never sleeps.
    Busy,
}

/// Settings of a datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datapath {
    /// Datapath ID, 1 or more.
    pub id: u64,
    /// Settings of OpenFlow connections.
    pub openflow: OpenFlow,
    /// Value and mask of the cookies whose entries are low-latency.
    pub low_latency_cookie: Option<(u64, u64)>,
    /// Learning of low-latency entries. `None`: off.
    pub learning: Option<model::Learning>,
    /// Number of records per LUT and worker. 0: the fast-forwarding path is off.
    pub lut_entries: usize,
    /// Consistency mode of LUT records while rules change.
    pub consistency: worker::Consistency,
    /// Capacities of a worker's backlog and hold queue, and the quanta of the backlog.
    pub lanes: (LaneLimits, Quanta),
    /// Flow file that is loaded before the first packet.
    pub flows: Option<PathBuf>,
    /// Settings of the stateless forwarder, if there is one.
    pub stateless: Option<Arc<StatelessConfig>>,
    /// Ports in the order of the file.
    pub ports: Vec<ConfiguredPort>,
}

/// Forwarding settings of a datapath, without ports and controllers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forwarding {
    /// See [`Datapath::low_latency_cookie`].
    pub low_latency_cookie: Option<(u64, u64)>,
    /// See [`Datapath::learning`].
    pub learning: Option<model::Learning>,
    /// See [`Datapath::lut_entries`].
    pub lut_entries: usize,
    /// See [`Datapath::consistency`].
    pub consistency: worker::Consistency,
    /// See [`Datapath::lanes`].
    pub lanes: (LaneLimits, Quanta),
    /// Default of [`ConfiguredPort::outstanding_bytes`].
    pub outstanding_bytes: usize,
}

/// Settings of OpenFlow connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlow {
    /// Controllers to connect to. Failed attempts are repeated without end, with growing pauses.
    pub controllers: Vec<Endpoint>,
    /// Endpoints that controllers and tools can connect to.
    pub listen: Vec<Endpoint>,
    /// Whether the datapath forwards by learned MACs while no controller of the list is connected.
    pub standalone: bool,
}

/// Settings of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredPort {
    /// Port number.
    pub number: flow::PortNo,
    /// Port name.
    pub name: String,
    /// Name of a driver in [`port::DRIVERS`].
    pub driver: String,
    /// Device, in the notation of the driver.
    pub device: String,
    /// Numbers of the workers that serve the port's queues.
    pub workers: Vec<usize>,
    /// Watermark in bytes. While the device has more outstanding, normal frames wait in the switch.
    /// `usize::MAX`: they never wait.
    pub outstanding_bytes: usize,
    /// Egress queues. Empty: frames leave in the order of output.
    pub queues: Vec<flow::EgressQueue>,
}

/// Error of [`Config::load`].
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{}: can not read the configuration: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The contents are wrong. Each mistake is one line.
    #[error(transparent)]
    Wrong(FileMistakes),
}

impl Config {
    /// Reads and checks a file, which may configure several datapaths. Checks nothing outside the file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or all mistakes in it.
    pub fn load(path: &Path) -> Result<Vec<Self>, ConfigError> {
        Self::load_for(path, Scope::File)
    }

    /// Reads and checks a file as [`Config::load`] does, with the additional checks of `scope`.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or all mistakes in it.
    pub fn load_for(path: &Path, scope: Scope) -> Result<Vec<Self>, ConfigError> {
        let read = read_text(path).map_err(|source| ConfigError::Read { path: path.into(), source })?;
        let parsed = read.map_err(|mistake| vec![mistake]).and_then(|text| Self::parse_for(&text, scope));
        parsed.map_err(|mistakes| ConfigError::Wrong(FileMistakes::new(path, mistakes)))
    }

    /// Checks the text of a file, which may configure several datapaths.
    ///
    /// # Errors
    ///
    /// Returns all mistakes in the order of the text.
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

    /// Checks the text of a file that configures one datapath.
    ///
    /// # Errors
    ///
    /// Returns all mistakes in the order of the text, or an error if the number of datapaths is not one.
    pub fn parse(text: &str) -> Result<Self, Vec<Mistake>> {
        let [one] = <[Self; 1]>::try_from(Self::parse_all(text)?).map_err(|all| {
            vec![mistakes::wrong("datapath", format!("there are {}, and one is asked for", all.len()))]
        })?;
        Ok(one)
    }
}

/// Reads a file of at most `FILE_BYTES`. The inner error is a mistake in the contents, such as text that is
/// not UTF-8.
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
