// SPDX-License-Identifier: Apache-2.0
//! A datapath's part of an upgrade: what its control thread hands over, and how a new process continues it.

use super::clock::MonotonicClock;
use super::kept_rules;
use super::start::start_workers;
use super::{Crew, Daemon, DaemonError, Stop};
use crate::upgrade::protocol::{DatapathOffer, PortOffer, PortWay};
use crate::upgrade::{FinalCounters, FrozenDatapath, PortAccess, Successor, UpgradeCommand, UpgradeWay};
use config::Config;
use flow::PortNo;
use port::{Fanout, PortHandle};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use worker::ShutdownLoss;

/// How much lower the priority of a new process is while it prepares itself, so that the old one keeps its
/// time on the CPUs.
const NICE: i32 = 15;
/// Maximum number of polls in which the last events of the workers are taken.
const LAST_POLLS: usize = 1_000;

impl Daemon {
    /// Returns the way of an upgrade to this datapath.
    pub(super) fn upgrade_way(&self) -> UpgradeWay {
        let control = Arc::clone(&self.control);
        UpgradeWay {
            commands: self.upgrade_commands.0.clone(),
            wake: Arc::new(move || control.wake.wake()),
            workers: Arc::clone(&self.workers),
        }
    }

    /// Executes a command of an upgrade, if there is one. The model must be here.
    pub(super) fn step_upgrade(&mut self) {
        match self.upgrade_commands.1.try_recv() {
            // An error means that the thread of the upgrade does not wait any more.
            Ok(UpgradeCommand::Freeze(answer)) => {
                let frozen = self.freeze();
                self.is_frozen = frozen.is_ok();
                let _ = answer.send(frozen);
            }
            Ok(UpgradeCommand::Thaw) => self.is_frozen = false,
            Ok(UpgradeCommand::Finish(answer)) => {
                let _ = answer.send(self.finish());
            }
            Err(_) => {}
        }
    }

    /// Returns everything that another process needs to continue this datapath.
    fn freeze(&mut self) -> Result<FrozenDatapath, String> {
        let model = self.model_handle.here().ok_or("a change of many flows is in progress; try again")?;
        let (mut ports, mut sockets, mut access) = (Vec::new(), Vec::new(), PortAccess::default());
        for port in model.ports() {
            let (number, name) = (port.desc.number, &port.desc.name);
            let known = self.links.iter().find(|known| known.port == number);
            if known.is_some_and(|known| known.patch_end.is_some()) {
                // The new process opens its own, and no frame is left in the rings of this one.
                continue;
            }
            let device = known.and_then(|known| known.interface.clone());
            let refused =
                |reason: &str| format!("port {name} cannot be handed over; {reason}, so restart the switch");
            let missing = || refused("its interface is missing");
            let handle = self.handles.iter().find(|(known, _)| *known == number).map(|(_, handle)| handle);
            let way = match handle {
                Some(PortHandle::Fanout(fanout)) => {
                    let no_group = || refused("either its interface is missing, or it had too many upgrades");
                    let group = fanout.group().ok_or_else(no_group)?;
                    access.fanouts.push(fanout.clone());
                    PortWay::Group { id: group.id, members: group.members }
                }
                Some(PortHandle::Rings(rings)) => {
                    let openings = rings.openings();
                    let of_port = rings.sockets().map_err(|error| refused(&error.to_string()))?;
                    let queues = of_port.queues();
                    sockets.push(of_port);
                    access.rings.push((rings.clone(), openings));
                    PortWay::Sockets { queues }
                }
                None => {
                    return Err(refused("only ports of the drivers af_packet, af_xdp and patch can be"));
                }
            };
            ports.push(PortOffer { device: device.ok_or_else(missing)?, way });
        }
        let (state, lost) = store::encode_handover(&model.kept_state(), self.datapath_id, self.clock.now());
        if lost > 0 {
            return Err(format!("{lost} rules cannot be handed over"));
        }
        let system = |error: std::io::Error| format!("a descriptor cannot be handed over: {error}");
        let listeners = self.channels.hand_over().map_err(system)?;
        let locks = self
            .device_locks
            .iter()
            .map(|(device, lock)| Ok((device.clone(), lock.as_fd().try_clone_to_owned().map_err(system)?)));
        let locks: Vec<_> = locks.collect::<Result<_, String>>()?;
        let (lock_names, locks) = locks.into_iter().unzip();
        let (listener_names, listeners) = listeners.into_iter().unzip();
        let offer = DatapathOffer {
            datapath: self.datapath_id,
            control: self.listener.path().display().to_string(),
            listeners: listener_names,
            locks: lock_names,
            ports,
        };
        let control = self.listener.descriptor().try_clone_to_owned().map_err(system)?;
        Ok(FrozenDatapath { offer, state, control, listeners, locks, sockets, access })
    }

    /// Ends the workers, and returns the final counters. Another process owns the sockets from now on.
    fn finish(&mut self) -> FinalCounters {
        self.end_workers();
        self.listener.leave();
        self.channels.leave();
        let now = self.clock.now();
        let Some(model) = self.model_handle.here() else { return FinalCounters::default() };
        for _ in 0..LAST_POLLS {
            if !model.poll(now) {
                break;
            }
        }
        let mut counters = FinalCounters::of(model, now);
        counters.files = self.mirrors.finish();
        counters
    }

    /// Waits until the threads release the workers, and ends the workers.
    fn end_workers(&mut self) {
        self.workers.iter().for_each(|worker| worker.stop());
        for released in self.released.drain(..) {
            // An error means that the thread has panicked.
            let _ = released.recv();
        }
        for (number, worker) in self.workers.iter().enumerate() {
            let ShutdownLoss { packets, frames } = worker.end();
            if packets + frames > 0 {
                tracing::warn!("worker {number} ended with {packets} waiting packets and {frames} frames");
            }
            worker.keep_house();
        }
    }
}

/// Returns the fan-out groups of these ports.
fn fanouts_of(handles: &[(PortNo, PortHandle)]) -> impl Iterator<Item = &Fanout> {
    handles.iter().filter_map(|(_, handle)| match handle {
        PortHandle::Fanout(fanout) => Some(fanout),
        PortHandle::Rings(_) => None,
    })
}

/// Opens and prepares the datapaths that this process continues, at a low priority. Returns `None` if the
/// process was stopped first.
pub(super) fn prepare_all(
    configs: &[Config],
    successor: &Successor,
    stop: &Stop,
    crew: &mut Crew,
) -> Result<Option<Vec<Daemon>>, DaemonError> {
    let mut inherited = successor.receive()?;
    thread::scope(|scope| {
        let prepare = move || {
            // A process that may not lower its priority prepares itself at the usual one.
            let _ = rustix::process::nice(NICE);
            let mut opened = Vec::with_capacity(configs.len());
            for config in configs {
                let at = inherited.iter().position(|one| one.offer.datapath == config.datapath.id);
                opened.push(match at.map(|at| inherited.remove(at)) {
                    Some(one) => Daemon::open_inherited(config, one, crew)?,
                    None => Daemon::open(config, || super::open(config), crew)?,
                });
            }
            // Both ends of a patch cable must be open before the link of either end is read.
            let mut daemons = Vec::with_capacity(configs.len());
            for (config, opened) in configs.iter().zip(opened) {
                let flows = config.datapath.flows.as_deref();
                let Some(daemon) = Daemon::prepare(config, opened, flows, stop, crew)? else {
                    return Ok(None);
                };
                daemons.push(daemon);
            }
            Ok(Some(daemons))
        };
        let thread = thread::Builder::new().name("prepare".into()).spawn_scoped(scope, prepare);
        let thread = thread.map_err(DaemonError::io("start the thread that prepares the switch"))?;
        thread.join().unwrap_or(Err(DaemonError::ControlEnded))
    })
}

/// Takes over the packets from the old process, starts the workers, and continues its counters and stores.
pub(super) fn take_over(
    configs: &[Config],
    successor: &Successor,
    crew: Crew,
    daemons: &mut [Daemon],
) -> Result<(), DaemonError> {
    let Some(config) = configs.first() else { return Ok(()) };
    let fanouts: Vec<Fanout> =
        daemons.iter().flat_map(|daemon| fanouts_of(&daemon.handles)).cloned().collect();
    let interruption = successor.take_over(&fanouts, || start_workers(crew, config, daemons.iter_mut()))?;
    successor.report_running(interruption);
    // From here on, this process forwards, so nothing may end it.
    let mut files = Vec::new();
    let received = successor.receive_counters(|datapath, counters| {
        files.extend_from_slice(&counters.files);
        if let Some(daemon) = daemons.iter_mut().find(|daemon| daemon.datapath_id == datapath) {
            daemon.continue_counters(counters);
        }
    });
    if let Err(error) = received {
        tracing::error!("counters of the old program are lost: {error}");
    }
    let has_ended = successor.has_predecessor_ended();
    if !has_ended {
        tracing::error!("the old program does not end, so the next upgrade is not possible");
    }
    for (config, daemon) in configs.iter().zip(daemons) {
        daemon.attach_store(config);
        daemon.mirrors.continue_files(&files);
        // While sockets of the old process exist, the program of a settled group could select them.
        let settled = if has_ended { &daemon.handles[..] } else { &[] };
        for fanout in fanouts_of(settled) {
            if let Err(error) = fanout.settle() {
                tracing::error!("the next upgrade is not possible: {error}");
            }
        }
    }
    Ok(())
}

impl Daemon {
    fn continue_counters(&mut self, counters: &FinalCounters) {
        let now = self.clock.now();
        if let Some(model) = self.model_handle.here() {
            counters.continue_in(model, now);
        }
    }

    fn attach_store(&mut self, config: &Config) {
        let clock: MonotonicClock = self.clock;
        let Some(model) = self.model_handle.here() else { return };
        match kept_rules::attach(config, clock, model) {
            Ok(store) => self.store = store,
            Err(error) => tracing::error!("rules are not kept until the switch is restarted: {error}"),
        }
    }
}
