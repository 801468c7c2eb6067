// SPDX-License-Identifier: Apache-2.0
//! Options of a replay.

use crate::replay::ReplayError;
use config::PortCacheMode;
use flow::{Nanos, PortNo, port_no};
use port_cache::SearcherKind;
use std::path::PathBuf;
use std::str::FromStr;

/// Maximum time in nanoseconds between the packets of a burst, about the duration of a poll iteration.
const BURST_WINDOW_NS: Nanos = Nanos(10_000);

/// Engine that forwards the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplayEngine {
    /// Pipeline of a worker, as in the switch.
    #[default]
    Worker,
    /// Reference interpreter of the flow model.
    Reference,
}

impl ReplayEngine {
    /// Returns the name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Reference => "reference",
        }
    }
}

impl FromStr for ReplayEngine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "worker" => Ok(Self::Worker),
            "reference" => Ok(Self::Reference),
            _ => Err(format!("\"{text}\" is not an engine; use \"worker\" or \"reference\"")),
        }
    }
}

/// Options of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Capture in the format pcap or pcapng. The file must be regular, because it is read twice.
    pub capture: PathBuf,
    /// Flow file in the syntax of `ovs-ofctl add-flows` with Shunt's extensions.
    pub flows: PathBuf,
    /// Output folder, which is created if it does not exist.
    pub out: PathBuf,
    /// Ingress port of all packets. If `None`, the ingress port is the number of the packet's pcapng
    /// interface plus 1.
    pub in_port: Option<PortNo>,
    /// Whether the fast-forwarding path is enabled.
    pub ffp: bool,
    /// Whether the express path is enabled.
    pub express: bool,
    /// Mode of the port caches. If it is not off, the express path is enabled as well.
    pub port_cache: PortCacheMode,
    /// What answers the searches of the port caches.
    pub searcher: SearcherKind,
    /// Engine that forwards the packets.
    pub engine: ReplayEngine,
    /// Maximum time in nanoseconds between the first and the last packet of a burst.
    pub burst_window_ns: Nanos,
}

impl Options {
    /// Returns the defaults of the command line.
    #[must_use]
    pub fn new(capture: impl Into<PathBuf>, flows: impl Into<PathBuf>, out: impl Into<PathBuf>) -> Self {
        Self {
            capture: capture.into(),
            flows: flows.into(),
            out: out.into(),
            in_port: None,
            ffp: true,
            express: false,
            port_cache: PortCacheMode::Off,
            searcher: SearcherKind::Own,
            engine: ReplayEngine::Worker,
            burst_window_ns: BURST_WINDOW_NS,
        }
    }

    /// Returns whether path records are used.
    #[must_use]
    pub fn has_records(&self) -> bool {
        self.express || self.port_cache != PortCacheMode::Off
    }

    /// Returns the ingress port for packets of a pcapng interface.
    #[must_use]
    pub fn port_of(&self, interface: u32) -> PortNo {
        self.in_port.unwrap_or(PortNo(interface.saturating_add(1)))
    }

    pub(crate) fn check(&self) -> Result<(), ReplayError> {
        if self.searcher == SearcherKind::Worker && self.port_cache == PortCacheMode::Off {
            return Err(ReplayError::Searcher);
        }
        match self.in_port.filter(|port| !port_no::is_real(*port)) {
            Some(port) => Err(ReplayError::InPort(port)),
            None => Ok(()),
        }
    }
}
