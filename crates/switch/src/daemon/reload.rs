// SPDX-License-Identifier: Apache-2.0
//! Changes of the configuration while the switch runs (docs/adr/0059).
//!
//! A change is prepared by a thread of its own: it reads the file, computes the difference, opens new devices
//! and binds new addresses. Only if all of this succeeds, each control thread applies its datapath's part,
//! which cannot fail. Begin with [`Reloader`].

use super::Daemon;
use super::clock::MonotonicClock;
use super::prepare::{PreparedChange, prepare};
use super::service;
use super::thread::ControlWake;
use crate::access::ResolvedAccess;
use crate::control::{ReloadReport, ReloadResult, ReloadWork};
use crate::sandbox::{self, ThreadKind};
use crate::upgrade::protocol::UpgradeLink;
use crate::upgrade::{Predecessor, UpgradeWay};
use config::{Config, ConfigChange, Difference, Mistake, difference};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Longest time until the control thread takes the result of an upgrade.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);

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
    /// Control socket given on the command line. It overrides that of the file.
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

/// A change that the thread makes.
enum Request {
    /// A client requested it. `wake` is woken when the result is there.
    Client { work: Box<ReloadWork>, result: Sender<ReloadResult>, wake: Arc<ControlWake> },
    /// SIGHUP requested it.
    Signal,
}

/// Makes changes of the configuration, one at a time, on a thread of its own. The thread keeps the
/// capabilities that open devices, which control threads have given up in part. It ends when all copies are
/// dropped.
#[derive(Clone)]
pub struct Reloader {
    path: Arc<Path>,
    requests: Sender<Request>,
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
    /// Control socket given on the command line. It overrides that of the file.
    pub control: Option<PathBuf>,
}

impl Reloader {
    /// Starts the thread that changes a running switch. `datapaths` has the ways to the control threads, in
    /// the order of `configs`.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it refuses the thread.
    pub fn start(
        source: ConfigSource,
        configs: Vec<Config>,
        datapaths: Vec<ReloadWay>,
        mut predecessor: Option<(Predecessor, Vec<UpgradeWay>)>,
    ) -> io::Result<Self> {
        let ConfigSource { path, text, control } = source;
        let path: Arc<Path> = path.into();
        let mut running = Running { path: Arc::clone(&path), text, control, configs, datapaths };
        let (requests, receiver) = channel();
        let is_signalled = Arc::new(AtomicBool::new(false));
        let waits = Arc::clone(&is_signalled);
        let run = move || {
            sandbox::enter(ThreadKind::Reload);
            while let Ok(request) = receiver.recv() {
                match request {
                    Request::Client { work, result, wake } if matches!(*work, ReloadWork::Upgrade { .. }) => {
                        let ReloadWork::Upgrade { program } = *work else { continue };
                        match upgrade(predecessor.as_mut(), program.as_deref()) {
                            Ok((report, link)) => {
                                drop(running);
                                end_process(predecessor, &link, report, &result, &wake);
                            }
                            Err(reason) => {
                                // The client may have gone.
                                let _ = result.send(Err(reason));
                                wake.wake.wake();
                            }
                        }
                    }
                    Request::Client { work, result, wake } => {
                        // The client may have gone.
                        let _ = result.send(running.make(&work));
                        wake.wake.wake();
                    }
                    Request::Signal => {
                        waits.store(false, Ordering::Release);
                        service::reloading();
                        let status = log_result(running.make(&ReloadWork::File));
                        service::reloaded(status);
                    }
                }
            }
        };
        std::thread::Builder::new().name("reload".into()).spawn(run)?;
        Ok(Self { path, requests, is_signalled })
    }

    /// Returns the path of the configuration file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Requests a change. `wake` is woken when the result is there.
    pub fn request(&self, work: ReloadWork, wake: Arc<ControlWake>) -> Receiver<ReloadResult> {
        let (result, receiver) = channel();
        let failed = result.clone();
        let work = Box::new(work);
        if self.requests.send(Request::Client { work, result, wake }).is_err() {
            let _ =
                failed.send(Err("the thread that changes the configuration has ended; this is a bug in \
                                     shunt; restart the switch"
                    .into()));
        }
        receiver
    }

    /// Requests that the file is read again after SIGHUP. The result is logged. Signals that arrive while
    /// another waits for its turn have no further effect.
    pub fn request_signalled(&self) {
        if self.is_signalled.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.requests.send(Request::Signal).is_err() {
            tracing::error!("the configuration was not read after SIGHUP: the thread for it has ended");
        }
    }
}

/// Hands over to a new program. Returns a report, and the link to the new process.
fn upgrade(
    predecessor: Option<&mut (Predecessor, Vec<UpgradeWay>)>,
    program: Option<&Path>,
) -> Result<(ReloadReport, UpgradeLink), String> {
    let Some((predecessor, ways)) = predecessor else {
        return Err(
            "upgrades are off; set `upgrade = true` in the configuration, and restart the switch once".into(),
        );
    };
    let (changes, link) = predecessor.hand_over(program, ways)?;
    Ok((ReloadReport { changes }, link))
}

/// Answers the client, and ends all control threads. Does not return, so that the kernel closes the link to
/// the new process when this process has ended, after all its devices are closed.
fn end_process(
    predecessor: Option<(Predecessor, Vec<UpgradeWay>)>,
    _link: &UpgradeLink,
    report: ReloadReport,
    result: &Sender<ReloadResult>,
    wake: &ControlWake,
) -> ! {
    let answered = result.send(Ok(report));
    wake.wake.wake();
    // The control thread takes one result for its client. It then has no receiver any more.
    let end = Instant::now() + ANSWER_LIMIT;
    while answered.is_ok() && result.send(Ok(ReloadReport::default())).is_ok() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The ways to the datapaths keep workers, whose devices must be closed before the process ends.
    if let Some((Predecessor { launcher: _launcher, end, .. }, ways)) = predecessor {
        drop(ways);
        // If the buffer of the stream is full, it already contains the signal to stop.
        let _ = rustix::io::write(&end, &[0]);
    }
    loop {
        std::thread::park();
    }
}

/// Logs the result of a change that SIGHUP requested. Returns a line for the service manager.
fn log_result(result: ReloadResult) -> &'static str {
    match result {
        Ok(report) if report.changes.is_empty() => {
            crate::log::say("shunt: SIGHUP: nothing changed");
            "forwards packets; the last reload changed nothing"
        }
        Ok(report) => {
            report.changes.iter().for_each(|line| crate::log::say(&format!("shunt: SIGHUP: {line}")));
            "forwards packets; the configuration was changed"
        }
        Err(reasons) => {
            crate::log::say("shunt: SIGHUP: the configuration was not changed:");
            reasons.lines().for_each(|line| crate::log::say(&format!("shunt: {line}")));
            "forwards packets; the last reload was refused, see the log"
        }
    }
}

impl Daemon {
    /// Lets clients change the configuration of this daemon, which is the only one of its file.
    ///
    /// # Errors
    ///
    /// Returns the error of the system if it refuses a thread.
    pub fn reload_from(&mut self, source: ConfigSource, config: Config) -> io::Result<()> {
        self.reloader = Some(Reloader::start(source, vec![config], vec![self.reload_way()], None)?);
        Ok(())
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
            // The thread hands it over before.
            ReloadWork::File | ReloadWork::Upgrade { .. } => None,
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
            // Mistakes are reported without their places, because no file contains the edited text.
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
        self.give_access(&changes, &configs)?;
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

impl Running {
    /// Gives the control sockets another owner, group or mode, if these change. If this fails, all sockets
    /// are as they were.
    fn give_access(&self, changes: &[Vec<ConfigChange>], configs: &[Config]) -> Result<(), String> {
        let is_changed = |change: &ConfigChange| matches!(change, ConfigChange::SocketAccess(_));
        if !changes.iter().flatten().any(is_changed) {
            return Ok(());
        }
        let give = |config: &Config| ResolvedAccess::find(&config.process.control)?.apply(&config.control);
        for (n, config) in configs.iter().enumerate() {
            if let Err(error) = give(config) {
                // These were possible before.
                self.configs.iter().take(n).for_each(|before| drop(give(before)));
                return Err(error.to_string());
            }
        }
        Ok(())
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
