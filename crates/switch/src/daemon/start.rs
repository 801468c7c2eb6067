// SPDX-License-Identifier: Apache-2.0
//! From open ports to a running switch.

use super::clock::Clock;
use super::links::describe;
use super::thread::{self, ControlWake, Shared};
use super::{DaemonError, OpenPort};
use crate::config::Config;
use crate::control::Listener;
use crate::flow_file::{FlowFile, read_pieces};
use flow::PortNo;
use model::{Changed, Model};
use port::wait::Wake;
use port::{Link, PortError};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;
use worker::{PortQueues, WorkerSet};

/// Bytes of a flow file that are parsed at a time.
const PIECE_BYTES: usize = 64 * 1_024;

/// A switch that forwards.
pub struct Daemon {
    pub(super) model: Model<WorkerSet>,
    pub(super) clock: Clock,
    pub(super) listener: Listener,
    pub(super) workers: Arc<[Arc<Shared>]>,
    pub(super) threads: Vec<JoinHandle<()>>,
    pub(super) control: Arc<ControlWake>,
    /// Links as the model knows them.
    pub(super) links: Vec<(PortNo, Link)>,
}

impl Daemon {
    /// Starts forwarding over the ports that `open` opens: only once the control socket is ours, for a second daemon by
    /// the same configuration must not touch the devices of the first. With `flows`, packets meet these flows from the
    /// first on.
    ///
    /// # Errors
    /// The control socket can not be made, a port can not be opened, or the flow file is wrong.
    pub fn start(
        config: &Config,
        open: impl FnOnce() -> Result<Vec<OpenPort>, PortError>,
        flows: Option<&Path>,
    ) -> Result<Self, DaemonError> {
        let clock = Clock::new();
        let listener = Listener::bind(&config.control)?;
        let mut ports = open()?;
        let known: Vec<(PortNo, String, Link)> =
            ports.iter_mut().map(|port| (port.number, port.name.clone(), port.poll_link())).collect();
        let queues = ports.into_iter().map(|p| PortQueues { number: p.number, queues: p.queues }).collect();
        let sizes = worker::Config { workers: config.workers.len(), ..worker::Config::default() };
        let (mut plane, workers) = worker::build(&sizes, queues);
        let shared: Vec<Arc<Shared>> = workers
            .into_iter()
            .map(|worker| Shared::new(worker).map(Arc::new))
            .collect::<Result<_, _>>()
            .map_err(DaemonError::io("make a worker's wake-up"))?;
        for (number, shared) in shared.iter().enumerate() {
            let shared = Arc::clone(shared);
            plane.set_nudge(number, Box::new(move || shared.nudge()));
        }
        let mut model = Model::new(model_config(config), plane, clock.now());
        for (number, name, link) in &known {
            model.add_port(clock.now(), describe(*number, name.clone(), link), link.up)?;
        }
        if let Some(path) = flows {
            load(&mut model, clock, path)?;
        }
        let wake = Wake::new().map_err(DaemonError::io("make the control thread's wake-up"))?;
        let mut daemon = Self {
            model,
            clock,
            listener,
            workers: shared.into(),
            threads: Vec::new(),
            control: Arc::new(ControlWake { wake, asleep: AtomicBool::new(false) }),
            links: known.into_iter().map(|(number, _, link)| (number, link)).collect(),
        };
        for (number, worker) in config.workers.iter().enumerate() {
            let (all, control) = (Arc::clone(&daemon.workers), Arc::clone(&daemon.control));
            let thread = thread::start(number, *worker, clock, all, control);
            daemon.threads.push(thread.map_err(DaemonError::io("start a worker's thread"))?);
        }
        daemon.wait_until_applied()?;
        Ok(daemon)
    }

    fn wait_until_applied(&mut self) -> Result<(), DaemonError> {
        let barrier = self.model.barrier();
        while !self.model.is_applied(barrier) {
            self.check_threads()?;
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    pub(super) fn check_threads(&self) -> Result<(), DaemonError> {
        match self.threads.iter().position(JoinHandle::is_finished) {
            Some(worker) => Err(DaemonError::WorkerEnded(worker)),
            None => Ok(()),
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        for worker in self.workers.iter() {
            worker.stop();
        }
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a worker's thread had panicked");
            }
        }
    }
}

/// Checks a flow file against a configuration, without opening anything. Returns what loading it would change.
///
/// # Errors
/// What [`Daemon::start`] would say of it.
pub fn check(config: &Config, flows: &Path) -> Result<Changed, DaemonError> {
    let clock = Clock::new();
    let sizes = worker::Config { workers: 0, ..worker::Config::default() };
    let (plane, _) = worker::build(&sizes, Vec::new());
    let mut model = Model::new(model_config(config), plane, clock.now());
    for port in &config.datapath.ports {
        model.add_port(clock.now(), describe(port.number, port.name.clone(), &Link::default()), true)?;
    }
    load(&mut model, clock, flows)
}

fn model_config(config: &Config) -> model::Config {
    model::Config {
        datapath_id: config.datapath.id,
        standalone: config.datapath.standalone,
        low_latency_cookie: config.datapath.low_latency_cookie,
        ..model::Config::default()
    }
}

fn load(model: &mut Model<WorkerSet>, clock: Clock, path: &Path) -> Result<Changed, DaemonError> {
    let names = model.ports().map(|port| (port.desc.name.clone(), port.desc.number)).collect();
    let mut file = FlowFile::new(names);
    let read = File::open(path).and_then(|opened| {
        read_pieces(BufReader::new(opened), PIECE_BYTES, |piece| {
            file.push(piece);
            Ok(())
        })
    });
    read.map_err(|source| DaemonError::ReadFlows { path: path.into(), source })?;
    file.apply(model, clock.now()).map_err(|mistakes| DaemonError::Flows { path: path.into(), mistakes })
}
