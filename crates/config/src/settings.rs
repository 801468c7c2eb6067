// SPDX-License-Identifier: Apache-2.0
//! Checked settings of a datapath and its workers. Begin with [`Config`].

use crate::device::ConfiguredDevice;
use crate::endpoint::Endpoint;
use crate::forwarding::Forwarding;
use crate::kept::KeptRules;
use crate::mirror_settings::ConfiguredMirror;
use crate::packet_in::PacketIns;
use crate::process::ProcessSettings;
use flow::{BridgeConfig, BridgePort, Nanos, StatelessConfig};
use pof::PofDialect;
use port::Spec;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use worker::WorkerSetConfig;

/// Default path of the control socket.
pub const DEFAULT_CONTROL: &str = "/run/shunt/s1.sock";

/// Checked settings of one datapath, with its workers and its control socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Path of the control socket.
    pub control: PathBuf,
    /// Whether lookups use portable code instead of the CPU's wide SIMD instructions.
    pub portable: bool,
    /// Settings of the process, which are the same for all datapaths of a file.
    pub process: ProcessSettings,
    /// Settings of DPDK, for ports with the driver `dpdk`.
    pub dpdk: port::dpdk::DpdkSettings,
    /// Workers of the datapath. Ports name them by their position in this list.
    pub workers: Vec<WorkerConfig>,
    /// All workers of the file, indexed by number.
    pub file_workers: Vec<WorkerConfig>,
    /// Timing of the workers' sleep. It has no key in the file.
    pub pace: Pace,
    /// The datapath.
    pub datapath: Datapath,
    /// Notes on settings that have no effect or may not be intended. Each note is one sentence.
    pub notes: Vec<String>,
}

/// Settings of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerConfig {
    /// Number of the worker in the file, from 0. Its thread runs the worker of this number of every datapath.
    pub number: usize,
    /// CPU to which the worker is pinned, if any.
    pub cpu: Option<usize>,
    /// Behaviour while there are no packets.
    pub idle: Idle,
}

/// Timing of a worker's sleep: how soon the worker sleeps, and when it wakes without a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Time that a worker spins after its last packet, in ns.
    pub spin_ns: Nanos,
    /// Time between two publications of links and counters, in ns.
    pub keeping_ns: Nanos,
    /// Time between two publications of links and counters, in ns, if packets arrived and the worker is about
    /// to sleep.
    pub keeping_soon_ns: Nanos,
}

impl Default for Pace {
    fn default() -> Self {
        Self { spin_ns: Nanos(50_000), keeping_ns: Nanos(100_000_000), keeping_soon_ns: Nanos(20_000_000) }
    }
}

/// Behaviour of a worker when there are no packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Idle {
    /// Spins for a short time, then sleeps until packets arrive.
    #[default]
    Adaptive,
    /// Never sleeps.
    Busy,
}

/// Files of a switch's TLS connections, in PEM form, and how peers are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate of the switch, followed by intermediate certificates.
    pub certificate: PathBuf,
    /// Private key of the certificate.
    pub private_key: PathBuf,
    /// Certificates of the authorities that issue the certificates of peers.
    pub ca: PathBuf,
    /// Whether the certificate of a controller must contain the IP address to which the switch connects.
    pub check_address: bool,
}

/// Settings of a datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datapath {
    /// Datapath ID, 1 or more.
    pub id: u64,
    /// Settings of OpenFlow connections.
    pub openflow: OpenFlow,
    /// Certificates of TLS connections. They are there if an endpoint uses TLS.
    pub tls: Option<TlsFiles>,
    /// Settings of POF connections, if the datapath has any.
    pub pof: Option<Pof>,
    /// Settings of the fast paths and lanes.
    pub forwarding: Forwarding,
    /// Flow file that is loaded before the first packet.
    pub flows: Option<PathBuf>,
    /// Where the rules are kept over restarts, if anywhere.
    pub kept_rules: Option<KeptRules>,
    /// Settings of the stateless forwarder, if there is one.
    pub stateless: Option<Arc<StatelessConfig>>,
    /// CPU to which the search worker of the port caches is pinned, if there is one.
    pub searcher_cpu: Option<usize>,
    /// The device that forwards the packets, or `None` if workers do.
    pub device: Option<ConfiguredDevice>,
    /// Ports in the order of the file.
    pub ports: Vec<ConfiguredPort>,
    /// Mirrors in the order of the file.
    pub mirrors: Vec<ConfiguredMirror>,
}

impl Datapath {
    /// Returns the settings of the ports for NORMAL, or `None` if all ports have the default settings.
    #[must_use]
    pub fn bridge(&self) -> Option<Arc<BridgeConfig>> {
        let usual = BridgePort::default();
        let ports = self.ports.iter().filter(|port| port.bridge != usual);
        let ports: BTreeMap<_, _> = ports.map(|port| (port.number, port.bridge.clone())).collect();
        (!ports.is_empty()).then(|| Arc::new(BridgeConfig { ports }))
    }

    /// Returns the configuration of a set of workers with these settings and defaults.
    #[must_use]
    pub fn worker_set(&self) -> WorkerSetConfig {
        self.openflow.packet_ins.worker_set(&self.forwarding)
    }
}

/// Settings of OpenFlow connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenFlow {
    /// Controllers to connect to. Failed attempts are repeated with increasing pauses.
    pub controllers: Vec<Endpoint>,
    /// Endpoints that controllers and tools can connect to.
    pub listen: Vec<Endpoint>,
    /// Whether the datapath acts as a learning switch while it is connected to none of `controllers`.
    pub standalone: bool,
    /// Quenching and rate limits of packet-ins.
    pub packet_ins: PacketIns,
}

/// Settings of POF connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pof {
    /// Controllers to connect to. Failed attempts are repeated with increasing pauses.
    pub controllers: Vec<Endpoint>,
    /// Endpoints that controllers can connect to.
    pub listen: Vec<Endpoint>,
    /// Dialect of all POF connections.
    pub dialect: PofDialect,
    /// Number of tables of each type: masked, longest prefix, exact, linear.
    pub tables: [u8; 4],
    /// Number by which controllers know the switch.
    pub device_id: u32,
    /// Treatment of packets that hit no entry.
    pub miss: PofMiss,
}

/// Treatment of packets that hit no entry of a POF table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PofMiss {
    /// The packet is dropped.
    #[default]
    Drop,
    /// The packet is sent to the controllers.
    Controller,
}

/// Settings of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredPort {
    /// Port number.
    pub number: flow::PortNo,
    /// Port name.
    pub name: String,
    /// Name of a driver in [`port::DRIVERS`], or empty for a channel of a device outside this process.
    pub driver: String,
    /// Device, in the notation of the driver.
    pub device: String,
    /// Numbers of the workers that serve the port's queues.
    pub workers: Vec<usize>,
    /// Watermark in bytes. Normal frames wait while more bytes are outstanding in the device. `usize::MAX`
    /// means no limit.
    pub outstanding_bytes: usize,
    /// Number of packets for which the receive ring of each queue has space; `None` is the driver's usual
    /// number.
    pub receive_ring: Option<usize>,
    /// Egress queues. Without queues, frames leave in the order of their output.
    pub queues: Vec<flow::EgressQueue>,
    /// Settings of the port for NORMAL.
    pub bridge: BridgePort,
}

impl ConfiguredPort {
    /// Returns the specification with which the driver opens the port.
    #[must_use]
    pub fn spec(&self) -> Spec {
        Spec {
            number: self.number.0,
            name: self.name.clone(),
            driver: self.driver.clone(),
            device: self.device.clone(),
            queues: self.workers.len(),
            outstanding_bytes: self.outstanding_bytes,
            receive_ring: self.receive_ring,
            handover: port::Handover::Never,
        }
    }
}
