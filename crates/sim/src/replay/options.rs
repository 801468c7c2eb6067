// SPDX-License-Identifier: Apache-2.0
//! What to replay, and how.

use crate::replay::ReplayError;
use flow::{Nanos, PortNo, port_no};
use std::path::PathBuf;
use std::str::FromStr;

/// Packets that arrive within this time of one another may be forwarded as one burst: about what queues up while a
/// worker takes a turn.
const BURST_WINDOW_NS: Nanos = 10_000;

/// Who forwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The pipeline of a worker, as in the switch.
    #[default]
    Worker,
    /// The plain interpreter of the flow model.
    Reference,
}

impl Engine {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Reference => "reference",
        }
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "worker" => Ok(Self::Worker),
            "reference" => Ok(Self::Reference),
            _ => Err(format!("\"{text}\" is no engine; \"worker\" and \"reference\" are")),
        }
    }
}

/// How a port's cache works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortCache {
    /// There is none.
    #[default]
    Off,
    /// One miss of each flow goes on, its followers wait.
    Nonblocking,
    /// Everything behind a miss waits.
    Blocking,
}

impl PortCache {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Nonblocking => "nonblocking",
            Self::Blocking => "blocking",
        }
    }
}

impl FromStr for PortCache {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::Off),
            "nonblocking" => Ok(Self::Nonblocking),
            "blocking" => Ok(Self::Blocking),
            _ => Err(format!(
                "\"{text}\" is no port cache mode; \"off\", \"nonblocking\" and \"blocking\" are"
            )),
        }
    }
}

/// What to replay, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The capture, pcap or pcapng: a regular file, for it is read twice.
    pub capture: PathBuf,
    /// The flows, in the syntax of `ovs-ofctl add-flows` with extensions.
    pub flows: PathBuf,
    /// The folder for the captures that come out; made if it is not there.
    pub out: PathBuf,
    /// The port by which all packets come in; none: each by the number of its pcapng interface + 1.
    pub in_port: Option<PortNo>,
    /// Fast-forwarding path on.
    pub ffp: bool,
    /// The ports' caches.
    pub port_cache: PortCache,
    /// Who forwards.
    pub engine: Engine,
    /// Packets up to this much later than a burst's first one may belong to it.
    pub burst_window_ns: Nanos,
}

impl Options {
    /// The defaults of the command line.
    #[must_use]
    pub fn new(capture: impl Into<PathBuf>, flows: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            capture: capture.into(),
            flows: flows.into(),
            out: out.into(),
            in_port: None,
            ffp: true,
            port_cache: PortCache::Off,
            engine: Engine::Worker,
            burst_window_ns: BURST_WINDOW_NS,
        }
    }

    /// The port by which packets of an interface come in.
    #[must_use]
    pub fn port_of(&self, interface: u32) -> PortNo {
        self.in_port.unwrap_or(interface.saturating_add(1))
    }

    pub(crate) fn check(&self) -> Result<(), ReplayError> {
        if self.port_cache != PortCache::Off {
            return Err(ReplayError::NoPortCache(self.port_cache.name()));
        }
        match self.in_port.filter(|port| !port_no::is_real(*port)) {
            Some(port) => Err(ReplayError::InPort(port)),
            None => Ok(()),
        }
    }
}
