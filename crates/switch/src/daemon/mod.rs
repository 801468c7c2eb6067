// SPDX-License-Identifier: Apache-2.0
//! The daemon: opens ports, starts a thread for each worker, and keeps the model in the control thread.

mod claim;
mod clock;
mod home;
mod links;
mod load;
mod ports;
mod serve;
mod start;
mod stop;
mod thread;

pub use claim::Claim;
pub use ports::{OpenPort, open};
pub use start::{Daemon, check};
pub use stop::Stop;

use crate::config::{Config, Endpoint, Idle};
use crate::flow_file::FlowFileError;
use crate::listener::ListenError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why the daemon could not start, or had to end.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// A port could not be opened.
    #[error(transparent)]
    Port(#[from] port::PortError),
    /// Another switch serves the port's device.
    #[error(
        "port {port}: another switch serves the device \"{device}\" in this network namespace, and the two would feed \
         each other; stop it first, or give this port another device"
    )]
    Taken {
        /// The port's name.
        port: String,
        /// The device.
        device: String,
    },
    /// The control socket could not be made, or an address for OpenFlow connections can not be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The flow file can not be read.
    #[error("{}: can not read the flow file: {source}", path.display())]
    ReadFlows {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The flow file was refused; nothing of it is in force.
    #[error("{}: {mistakes}", path.display())]
    Flows {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        mistakes: FlowFileError,
    },
    /// A port that the model refuses.
    #[error(transparent)]
    Model(#[from] model::ModelError),
    /// A worker's thread ended by itself.
    #[error(
        "worker {0} ended unexpectedly; this is a mistake in shunt, please report it with what is printed above"
    )]
    WorkerEnded(usize),
    /// The thread that makes long changes ended by itself, and the model with it.
    #[error(
        "a change of many flows ended unexpectedly; this is a mistake in shunt, please report it with what is printed above"
    )]
    LongWorkEnded,
    /// The system refused.
    #[error("can not {what}: {source}")]
    Io {
        /// What was attempted.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl DaemonError {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// Runs a switch in the foreground until SIGTERM or SIGINT. Prints one line to stderr when it forwards.
///
/// # Errors
/// What keeps it from starting, or from going on.
pub fn run(config: &Config, flows: Option<&Path>) -> Result<(), DaemonError> {
    raise_descriptor_limit();
    let stop = Stop::on_signals().map_err(DaemonError::io("catch signals"))?;
    let Some(daemon) = Daemon::start(config, || open(config), flows, &stop)? else { return Ok(()) };
    // A closed stderr is no reason to stop forwarding.
    let _ = writeln!(io::stderr(), "shunt: ready, {}", ready_line(config, &daemon));
    daemon.serve(&stop)
}

/// Each connection of a controller takes a descriptor, and the usual limit has hardly room for the most there can be.
fn raise_descriptor_limit() {
    const DESCRIPTORS: u64 = 4_096;
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS));
    if limit.current.is_some_and(|now| now < wanted) {
        // Without it fewer are accepted, which is logged then.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

fn ready_line(config: &Config, daemon: &Daemon) -> String {
    let ports: Vec<String> =
        config.datapath.ports.iter().map(|port| format!("{}={}", port.number, port.name)).collect();
    let ports = if ports.is_empty() { "none".to_owned() } else { ports.join(" ") };
    let openflow: Vec<String> = daemon.openflow_addresses().iter().map(Endpoint::to_string).collect();
    let openflow =
        if openflow.is_empty() { String::new() } else { format!(", OpenFlow {}", openflow.join(" ")) };
    format!("control {}{openflow}, ports {ports}", config.control.display())
}

/// Whether a worker sleeps.
fn sleeps(idle: Idle) -> bool {
    idle == Idle::Adaptive
}
