// SPDX-License-Identifier: Apache-2.0
//! The daemon: opens the ports, starts the threads of workers, and keeps the model on the control thread.
//!
//! It must not decide how packets are forwarded. Begin with [`run`], then read `start` and `serve`.

mod change;
mod clock;
mod crew;
mod handover;
mod hangups;
mod kept_rules;
mod link_watch;
mod links;
mod load;
mod model_handle;
mod ports;
mod prepare;
mod reload;
#[cfg(test)]
mod restart_tests;
mod search;
mod serve;
mod service;
mod start;
mod stop;
mod storms;
mod thread;

pub(crate) use clock::MonotonicClock;
pub use ports::{OpenPort, open};
pub use reload::ConfigSource;
pub(crate) use reload::Reloader;
pub(crate) use service::report_main_process;
pub use start::{Daemon, check, check_access, check_certificates};
pub use stop::Stop;
pub(crate) use thread::Shared;

use crate::listener::ListenError;
use crate::mirror::MirrorError;
use crate::sandbox::{self, SandboxError, ThreadKind};
use crate::upgrade::{Predecessor, Successor, SuccessorError, Upgrade};
use config::flow_file::FlowFileError;
use config::{Config, Endpoint, Idle};
use crew::Crew;
use hangups::Hangups;
use metrics::Server;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use service::{DatapathWatch, Watchdog};
use std::io;
use std::net::SocketAddr;
use std::num::NonZero;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Number of lines about ready datapaths that are written together. The log holds a limited number of
/// lines, and loses further ones.
const READY_LINES: usize = 64;

/// An error that prevents the daemon from starting or ends it.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// A port could not be opened.
    #[error(transparent)]
    Port(#[from] port::PortError),
    /// The control socket could not be created, or an OpenFlow endpoint could not be bound.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The flow file cannot be read.
    #[error("{}: cannot read the flow file: {source}", path.display())]
    ReadFlows {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The flow file was refused. None of its flows is active.
    #[error("{}", mistakes.of(path))]
    Flows {
        /// Path of the file.
        path: PathBuf,
        /// Mistakes in the file.
        mistakes: FlowFileError,
    },
    /// The store of the rules cannot be used.
    #[error(transparent)]
    Store(#[from] store::StoreError),
    /// The file of a mirror cannot be used.
    #[error(transparent)]
    Mirror(#[from] MirrorError),
    /// The model refused a port.
    #[error(transparent)]
    Model(#[from] model::ModelError),
    /// Several datapaths are configured, but a flow file applies to a single datapath.
    #[error(
        "{}: several datapaths are configured, but a flow file is for one; load each with `shunt --control PATH flows load`",
        .0.display()
    )]
    FlowsOfSeveral(PathBuf),
    /// A control thread ended unexpectedly.
    #[error(
        "a control thread ended unexpectedly; this is a bug in shunt; please report it with the output above"
    )]
    ControlEnded,
    /// A worker's thread ended unexpectedly.
    #[error("worker {0} ended unexpectedly; this is a bug in shunt; please report it with the output above")]
    WorkerEnded(usize),
    /// The thread of the simulated device ended unexpectedly.
    #[error(
        "the simulated device ended unexpectedly; this is a bug in shunt; please report it with the output above"
    )]
    DeviceEnded,
    /// The thread for long-running changes ended unexpectedly, and the model is lost with it.
    #[error(
        "a change of many flows ended unexpectedly; this is a bug in shunt; please report it with the output above"
    )]
    LongWorkEnded,
    /// This process cannot continue another one.
    #[error(transparent)]
    Successor(#[from] SuccessorError),
    /// The process cannot give up its privileges.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The metrics cannot be offered.
    #[error("cannot offer metrics on {address}: {source}; give `metrics` another address")]
    Metrics {
        /// IP address and TCP port.
        address: SocketAddr,
        /// Error of the system.
        source: io::Error,
    },
    /// The system refused an operation.
    #[error("cannot {what}: {source}")]
    Io {
        /// Operation that failed.
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

impl DaemonError {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

/// Runs a switch in the foreground until SIGTERM or SIGINT.
///
/// Each datapath gets a separate daemon, with a separate control socket. The datapaths share the threads of
/// workers and the control threads. When all daemons forward packets, the function prints one line per
/// datapath to stderr. A flow file is allowed only if there is a single datapath. `source` is the file of the
/// configurations; SIGHUP and clients make the switch read it again. `upgrade` has the ways to the process
/// that starts new programs, and to the process that this one continues.
///
/// # Errors
///
/// Returns an error if a daemon cannot start, or if one of its threads ends unexpectedly.
pub fn run(
    source: ConfigSource,
    configs: &[Config],
    flows: Option<&Path>,
    upgrade: Upgrade,
) -> Result<(), DaemonError> {
    let Upgrade { launcher, successor } = upgrade;
    if let (Some(path), [_, _, ..]) = (flows, configs) {
        return Err(DaemonError::FlowsOfSeveral(path.into()));
    }
    raise_descriptor_limit(configs.len());
    // A signal that arrives earlier takes effect when the switch is ready.
    let hangups = Hangups::catch().map_err(DaemonError::io("catch signals"))?;
    let (stop, end) = Stop::on_signals().map_err(DaemonError::io("catch signals"))?;
    let started = start_all(configs, flows, successor.as_deref(), &stop)?;
    let Some(mut daemons) = started else { return Ok(()) };
    let metrics = match start_metrics(configs, &daemons, successor.as_deref()) {
        Err(error) if successor.is_some() => {
            // The process forwards already.
            tracing::error!("{error}");
            None
        }
        started => started?,
    };
    for lines in configs.iter().zip(&daemons).collect::<Vec<_>>().chunks(READY_LINES) {
        for (config, daemon) in lines {
            crate::log::say(&format!("shunt: ready, {}", ready_line(config, daemon)));
        }
        crate::log::flush();
    }
    let ways = daemons.iter().map(Daemon::reload_way).collect();
    let ended = end.try_clone().map_err(DaemonError::io("copy a descriptor"))?;
    let predecessor = launcher.map(|launcher| {
        let ways = daemons.iter().map(Daemon::upgrade_way).collect();
        let metrics = metrics.as_ref().and_then(|metrics| metrics.listener().ok());
        (Predecessor { launcher, metrics, end: ended }, ways)
    });
    let reloader = Reloader::start(source, configs.to_vec(), ways, predecessor)
        .map_err(DaemonError::io("start the thread that changes the configuration"))?;
    daemons.iter_mut().for_each(|daemon| daemon.reloader = Some(reloader.clone()));
    hangups.start(reloader).map_err(DaemonError::io("start the thread that waits for SIGHUP"))?;
    if let Some(metrics) = &metrics {
        crate::log::say(&format!("shunt: metrics at http://{}/metrics", metrics.address()));
    }
    if let Some(watchdog) = Watchdog::from_environment(daemons.len()) {
        for (datapath, daemon) in daemons.iter_mut().enumerate() {
            daemon.watch = Some(DatapathWatch::new(Arc::clone(&watchdog), datapath));
        }
    }
    let ports = configs.iter().map(|config| config.datapath.ports.len()).sum::<usize>();
    service::ready(&format!("forwards packets; datapaths: {}, ports at the start: {ports}", configs.len()));
    serve_all(daemons, &stop, &end)
}

/// Starts the datapaths and their workers. Returns `None` if the process was stopped first.
fn start_all(
    configs: &[Config],
    flows: Option<&Path>,
    successor: Option<&Successor>,
    stop: &Stop,
) -> Result<Option<Vec<Daemon>>, DaemonError> {
    let mut crew = Crew::default();
    if let Some(successor) = successor {
        let prepared = handover::prepare_all(configs, successor, stop, &mut crew)?;
        let Some(mut daemons) = prepared else { return Ok(None) };
        handover::take_over(configs, successor, crew, &mut daemons)?;
        return Ok(Some(daemons));
    }
    let mut daemons = Vec::with_capacity(configs.len());
    let mut opened = Vec::with_capacity(configs.len());
    for config in configs {
        if stop.is_requested() {
            return Ok(None);
        }
        opened.push(Daemon::open(config, || open(config), &mut crew)?);
    }
    for (config, opened) in configs.iter().zip(opened) {
        let flows = flows.or(config.datapath.flows.as_deref());
        let prepared = Daemon::prepare(config, opened, flows, stop, &mut crew)?;
        let Some(daemon) = prepared else { return Ok(None) };
        daemons.push(daemon);
    }
    if let Some(config) = configs.first() {
        start::start_workers(crew, config, &mut daemons)?;
    }
    Ok(Some(daemons))
}

/// Offers the metrics of all datapaths, if the configuration names an address.
fn start_metrics(
    configs: &[Config],
    daemons: &[Daemon],
    successor: Option<&Successor>,
) -> Result<Option<Server>, DaemonError> {
    let Some(address) = configs.first().and_then(|config| config.process.metrics) else { return Ok(None) };
    let sources = daemons.iter().map(Daemon::metrics_source).collect();
    let started = match successor.and_then(|successor| successor.take_metrics(address)) {
        Some(listener) => crate::metrics::start_on(listener, sources),
        None => crate::metrics::start(address, sources),
    };
    started.map(Some).map_err(|source| DaemonError::Metrics { address, source })
}

/// Serves all datapaths until they are stopped. If one datapath fails, all other datapaths are stopped.
///
/// There are as many control threads as CPUs, or as datapaths if these are fewer.
fn serve_all(daemons: Vec<Daemon>, stop: &Stop, end: &UnixStream) -> Result<(), DaemonError> {
    let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
    let mut groups: Vec<Vec<Daemon>> = (0..cpus.min(daemons.len())).map(|_| Vec::new()).collect();
    for (number, daemon) in daemons.into_iter().enumerate() {
        groups[number % cpus].push(daemon);
    }
    let mut groups = groups.into_iter();
    let Some(first) = groups.next() else { return Ok(()) };
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        let mut served = Ok(());
        for group in groups {
            let thread = std::thread::Builder::new().name("control".into());
            let spawned = thread.spawn_scoped(scope, move || {
                let _ending = Ending(end);
                sandbox::enter(ThreadKind::Control);
                serve::serve(group, stop)
            });
            match spawned {
                Ok(thread) => others.push(thread),
                Err(source) => {
                    drop(Ending(end));
                    served = Err(DaemonError::Io { what: "start a control thread", source });
                }
            }
        }
        let ending = Ending(end);
        sandbox::enter(ThreadKind::Control);
        served = served.and(serve::serve(first, stop));
        service::stopping();
        drop(ending);
        others
            .into_iter()
            .map(|thread| thread.join().unwrap_or(Err(DaemonError::ControlEnded)))
            .fold(served, Result::and)
    })
}

/// Guard that stops all datapaths when it is dropped.
struct Ending<'a>(&'a UnixStream);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        // If the buffer of the stream is full, it already contains the signal to stop.
        let _ = rustix::io::write(self.0, &[0]);
    }
}

/// Raises the limit of open descriptors, because each controller connection needs a descriptor.
fn raise_descriptor_limit(datapaths: usize) {
    const DESCRIPTORS: u64 = 4_096;
    let most_wanted = DESCRIPTORS.saturating_mul(datapaths as u64);
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(most_wanted, |most| most.min(most_wanted));
    if limit.current.is_some_and(|now| now < wanted) {
        // If this fails, fewer connections can be accepted, and each failure is logged.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
    }
}

fn ready_line(config: &Config, daemon: &Daemon) -> String {
    let ports: Vec<String> =
        config.datapath.ports.iter().map(|port| format!("{}={}", port.number, port.name)).collect();
    let ports = if ports.is_empty() { "none".to_owned() } else { ports.join(" ") };
    let list = |protocol: &str, all: Vec<Endpoint>| {
        let all: Vec<String> = all.iter().map(Endpoint::to_string).collect();
        if all.is_empty() { String::new() } else { format!(", {protocol} {}", all.join(" ")) }
    };
    let (openflow, pof) =
        (list("OpenFlow", daemon.openflow_addresses()), list("POF", daemon.pof_addresses()));
    format!("control {}{openflow}{pof}, ports {ports}", config.control.display())
}

/// Returns whether a worker with this setting sleeps while there are no packets.
fn sleeps(idle: Idle) -> bool {
    idle == Idle::Adaptive
}
