// SPDX-License-Identifier: Apache-2.0
//! Changes of the configuration while the switch runs (docs/adr/0059).
//!
//! A change is prepared by a thread of its own: it reads the file, computes the difference, opens new devices
//! and binds new addresses. Only if all of this succeeds, each control thread applies its datapath's part,
//! which cannot fail. Begin with [`Reloader::start`].

use super::Daemon;
use super::clock::MonotonicClock;
use super::prepare::{PreparedChange, prepare};
use super::thread::ControlWake;
use crate::control::{ReloadReport, ReloadResult, ReloadWork};
use config::{Config, ConfigChange, Difference, Mistake, difference};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// Change of a datapath that its control thread applies, and where it reports that the change is complete.
pub struct ReloadCommand {
    pub change: PreparedChange,
    pub done: Sender<()>,
}

/// The running configuration.
struct Running {
    /// Path of the configuration file.
    path: Arc<Path>,
    /// Text of the running configuration.
    text: String,
    /// Control socket that replaces the one of the file.
    control: Option<PathBuf>,
    configs: Vec<Config>,
    /// For each datapath, the way to its control thread.
    datapaths: Vec<ReloadWay>,
}

/// The way to a datapath's control thread.
#[derive(Clone)]
pub struct ReloadWay {
    pub commands: Sender<ReloadCommand>,
    pub wake: Arc<ControlWake>,
    /// Clock of the datapath.
    pub clock: MonotonicClock,
}

/// Makes changes of the configuration, one at a time.
#[derive(Clone)]
pub struct Reloader {
    /// Path of the configuration file. It is not behind the lock, because a control thread must not wait for
    /// a change, which waits for control threads.
    path: Arc<Path>,
    running: Arc<Mutex<Running>>,
    /// Whether a change that SIGHUP requested waits for its turn.
    is_signalled: Arc<AtomicBool>,
}

/// The file with which a switch was started.
#[derive(Clone, Debug)]
pub struct ConfigSource {
    /// Absolute path of the file.
    pub path: PathBuf,
    /// Text of the file.
    pub text: String,
    /// Control socket that replaces the one of the file.
    pub control: Option<PathBuf>,
}

impl Reloader {
    /// Creates the reloader of a running switch. `datapaths` has the ways to the control threads, in the
    /// order of `configs`.
    pub fn new(source: ConfigSource, configs: Vec<Config>, datapaths: Vec<ReloadWay>) -> Self {
        let ConfigSource { path, text, control } = source;
        let path: Arc<Path> = path.into();
        let running = Running { path: Arc::clone(&path), text, control, configs, datapaths };
        Self { path, running: Arc::new(Mutex::new(running)), is_signalled: Arc::default() }
    }

    /// Returns the path of the configuration file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a change on a thread of its own. `wake` is woken when the result is there.
    pub fn start(&self, work: ReloadWork, wake: Arc<ControlWake>) -> Receiver<ReloadResult> {
        let (result, receiver) = channel();
        let reloader = self.clone();
        let failed = result.clone();
        let run = move || {
            // The client may have gone.
            let _ = result.send(reloader.run(&work));
            wake.wake.wake();
        };
        if let Err(error) = std::thread::Builder::new().name("reload".into()).spawn(run) {
            let _ =
                failed.send(Err(format!("the thread that changes the configuration cannot start: {error}")));
        }
        receiver
    }

    /// Reads the file again after SIGHUP, and logs the result. Signals that arrive while another waits for
    /// its turn have no further effect.
    pub fn start_signalled(&self) {
        if self.is_signalled.swap(true, Ordering::AcqRel) {
            return;
        }
        let reloader = self.clone();
        let run = move || {
            let mut running = reloader.running.lock().unwrap_or_else(PoisonError::into_inner);
            reloader.is_signalled.store(false, Ordering::Release);
            match running.make(&ReloadWork::File) {
                Ok(report) if report.changes.is_empty() => crate::log::say("shunt: SIGHUP: nothing changed"),
                Ok(report) => {
                    report.changes.iter().for_each(|line| crate::log::say(&format!("shunt: SIGHUP: {line}")));
                }
                Err(reasons) => {
                    crate::log::say("shunt: SIGHUP: the configuration was not changed:");
                    reasons.lines().for_each(|line| crate::log::say(&format!("shunt: {line}")));
                }
            }
        };
        if let Err(error) = std::thread::Builder::new().name("reload".into()).spawn(run) {
            self.is_signalled.store(false, Ordering::Release);
            tracing::error!("the configuration was not read after SIGHUP: {error}");
        }
    }

    fn run(&self, work: &ReloadWork) -> ReloadResult {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).make(work)
    }
}

impl Daemon {
    /// Lets clients change the configuration of this daemon, which is the only one of its file.
    pub fn reload_from(&mut self, source: ConfigSource, config: Config) {
        self.reloader = Some(Reloader::new(source, vec![config], vec![self.reload_way()]));
    }

    /// Returns the way to the control thread.
    pub(super) fn reload_way(&self) -> ReloadWay {
        ReloadWay {
            commands: self.reload_commands.0.clone(),
            wake: Arc::clone(&self.control),
            clock: self.clock,
        }
    }
}

impl Running {
    /// Returns new configurations with the control socket of the command line.
    fn adjusted(&self, mut wanted: Vec<Config>) -> Vec<Config> {
        if let (Some(control), [only]) = (&self.control, &mut wanted[..]) {
            only.control.clone_from(control);
        }
        wanted
    }

    /// Makes a change, and returns when it is complete. If it is refused, nothing has changed.
    fn make(&mut self, work: &ReloadWork) -> ReloadResult {
        let edited = match work {
            ReloadWork::File => None,
            ReloadWork::Port { datapath, edit } => Some(edit.apply(&self.text, *datapath)?),
            ReloadWork::Mirror { datapath, edit } => Some(edit.apply(&self.text, *datapath)?),
        };
        let (text, difference) = match edited {
            None => {
                let text = Config::read(&self.path).map_err(|error| error.to_string())?;
                let wanted = Config::parse_file(&self.path, &text).map_err(|error| error.to_string())?;
                let difference =
                    Difference::of_file(&self.configs, &self.adjusted(wanted), &self.path, &text);
                (text, difference.map_err(|restarts| restarts.to_string())?)
            }
            // The places of mistakes would be those of a text that nobody sees.
            Some(text) => {
                let wanted = Config::parse_all(&text).map_err(|mistakes| lines(&mistakes))?;
                let difference = difference(&self.configs, &self.adjusted(wanted));
                (text, difference.map_err(|restarts| lines(&restarts))?)
            }
        };
        let Difference { datapaths: changes, configs } = difference;
        let mut prepared = Vec::new();
        let datapaths = self.configs.iter().zip(&configs).zip(&self.datapaths);
        for (changes, ((before, after), way)) in changes.iter().zip(datapaths) {
            let change =
                (!changes.is_empty()).then(|| prepare(before, after, changes, way.clock)).transpose();
            prepared.push(change.map_err(|error| error.to_string())?);
        }
        // From here on, nothing fails.
        let report = report(&changes, &configs);
        let mut waits = Vec::new();
        for (change, way) in prepared.into_iter().zip(&self.datapaths) {
            let Some(change) = change else { continue };
            let (done, is_done) = channel();
            if way.commands.send(ReloadCommand { change, done }).is_ok() {
                way.wake.wake.wake();
                waits.push(is_done);
            }
        }
        (self.configs, self.text) = (configs, text);
        for is_done in waits {
            // An error means that the switch has ended.
            let _ = is_done.recv();
        }
        Ok(report)
    }
}

/// Returns one line for each mistake, without its place.
fn lines(mistakes: &[Mistake]) -> String {
    mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Returns a sentence for each change. With several datapaths, each sentence names its datapath.
fn report(changes: &[Vec<ConfigChange>], configs: &[Config]) -> ReloadReport {
    let mut sentences = Vec::new();
    for (changes, config) in changes.iter().zip(configs) {
        for change in changes {
            sentences.push(match configs.len() {
                1 => change.to_string(),
                _ => format!("datapath {}: {change}", config.datapath.id),
            });
        }
    }
    ReloadReport { changes: sentences }
}
