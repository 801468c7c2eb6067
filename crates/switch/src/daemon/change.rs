// SPDX-License-Identifier: Apache-2.0
//! Applies a prepared change to a running datapath, on its control thread. Ports, controllers and flows that
//! the change does not concern are not touched.

use super::links::{Known, describe};
use super::prepare::PreparedChange;
use super::reload::ReloadCommand;
use super::start::interface;
use super::{Daemon, OpenPort};
use crate::mirror::MirrorsUpdate;
use crate::plane::Plane;
use config::trace::TracedPlane;
use config::{ConfigChange, ConfiguredPort};
use flow::{Nanos, RuleVersion};
use model::{Model, PortDesc};
use std::sync::mpsc::Sender;
use worker::{PortQueues, PortsChanged, PortsUpdate};

/// A change that the workers are applying.
pub(super) struct PendingChange {
    version: RuleVersion,
    ports: Option<PortsChanged>,
    /// Interfaces that are in use after the change.
    interfaces: Vec<String>,
    /// Time at which the change began.
    begun: Nanos,
    done: Sender<()>,
}

impl Daemon {
    /// Applies a change. The model must be here. [`Daemon::end_change`] must be called until it returns true.
    pub(super) fn begin_change(&mut self, command: ReloadCommand) -> Option<PendingChange> {
        let PreparedChange { config, changes, opened, acceptors, mirrors, tls } = command.change;
        let now = self.clock.now();
        let model = self.model_handle.here()?;
        for change in &changes {
            let port = match change {
                ConfigChange::RemovePort(port) => port,
                ConfigChange::ReopenPort { before, .. } => before.as_ref(),
                _ => continue,
            };
            if model.remove_port(now, port.number).is_err() {
                tracing::error!(port = port.name, "the model did not have a port of the configuration");
            }
            self.links.retain(|known| known.port != port.number);
            self.handles.retain(|(number, _)| *number != port.number);
        }
        // A new port must never forward frames of VLANs that it does not carry.
        model.set_bridge(now, config.datapath.bridge());
        let (mut added, mut described) = (Vec::new(), Vec::new());
        for (mut port, mut link) in opened {
            let patch_end = port.patch_end();
            if let Some(end) = &patch_end {
                // The change cannot fail any more, so the port may be connected.
                end.start();
                link = port.poll_link();
            }
            let handle = port.handle();
            let OpenPort { number, name, queues, device_lock } = port;
            self.handles.extend(handle.map(|handle| (number, handle)));
            let settings = config.datapath.ports.iter().find(|port| port.number == number);
            let lock = settings.map(|port| port.device.clone()).zip(device_lock);
            self.device_locks.extend(lock);
            let egress = settings.map(|port| port.queues.clone()).unwrap_or_default();
            let interface = settings.and_then(interface);
            self.links.push(Known { port: number, interface, patch_end, link, downs: 0 });
            added.push(PortQueues { number, queues, egress });
            described.push((describe(number, name, &link), link));
        }
        let mirrors = self.mirrors.change(&changes, mirrors);
        let update = ports_update(&changes, &config.datapath, added, mirrors);
        let ports = update.zip(model.plane_mut().workers()).map(|(update, set)| set.change_ports(update));
        for (desc, link) in described {
            let name = desc.name.clone();
            if let Err(error) = model.add_port(now, desc, link.up) {
                tracing::error!(port = name, "the model refused a port: {error}");
            }
        }
        reserve_ports(model, now, &config.datapath);
        self.change_model(&config.datapath, &changes);
        self.channels.change(&config.datapath, acceptors, tls);
        self.change_fail_mode(&changes, config.datapath.openflow.standalone);
        let interfaces: Vec<String> = config.datapath.ports.iter().filter_map(interface).collect();
        if let Err(error) = self.link_thread.set_names(interfaces.clone()) {
            // The workers still poll the links.
            tracing::warn!("the ports' links are not watched: {error}");
        }
        let version = self.model_handle.here()?.barrier();
        Some(PendingChange { version, ports, interfaces, begun: now, done: command.done })
    }

    /// Sets the settings of the model that change.
    fn change_model(&mut self, datapath: &config::Datapath, changes: &[ConfigChange]) {
        let now = self.clock.now();
        let Some(model) = self.model_handle.here() else { return };
        for change in changes {
            match change {
                ConfigChange::RenamePort { number, after, .. } => {
                    let Some(port) = model.port(*number) else { continue };
                    let desc = PortDesc { name: after.clone(), ..port.desc.clone() };
                    // The port exists.
                    let _ = model.set_port_desc(now, desc);
                }
                ConfigChange::LowLatencyCookie => {
                    model.set_low_latency_cookie(now, datapath.forwarding.low_latency_cookie);
                }
                ConfigChange::Learning => model.set_learning(now, datapath.forwarding.learning),
                ConfigChange::Stateless => {
                    if let Err(error) = model.set_stateless(now, datapath.stateless.clone()) {
                        tracing::error!("the stateless forwarder was not changed: {error}");
                    }
                }
                _ => {}
            }
        }
    }

    /// Sets the fail mode of a datapath without controllers. With controllers, the mode takes effect when
    /// they are connected, or have not been connected for a while.
    fn change_fail_mode(&mut self, changes: &[ConfigChange], standalone: bool) {
        let is_changed = changes.iter().any(|change| matches!(change, ConfigChange::FailMode(_)));
        if !is_changed || self.channels.has_controllers() {
            return;
        }
        let now = self.clock.now();
        if let Some(model) = self.model_handle.here() {
            model.set_fail_mode(now, standalone);
        }
    }

    /// Returns whether the workers have applied a change and its devices are closed. Then reports this.
    pub(super) fn end_change(&mut self, change: &PendingChange) -> bool {
        let Some(model) = self.model_handle.here() else { return false };
        // The call also frees what the workers gave back, which closes the devices.
        let is_applied = model.is_applied(change.version);
        if !is_applied || change.ports.as_ref().is_some_and(|ports| !ports.is_complete()) {
            return false;
        }
        if !self.mirrors.has_ended(change.begun, self.clock.now()) {
            return false;
        }
        // Workers may sleep on the devices of before.
        self.workers.iter().for_each(|worker| worker.wake());
        self.device_locks.retain(|(device, _)| change.interfaces.contains(device));
        // The thread that waits may have ended.
        let _ = change.done.send(());
        true
    }
}

/// Reserves the output ports of mirrors, and ends all other reservations.
pub(super) fn reserve_ports(model: &mut Model<Plane>, now: Nanos, datapath: &config::Datapath) {
    for port in &datapath.ports {
        let is_reserved = datapath.mirrors.iter().any(|mirror| mirror.reserved_port() == Some(port.number));
        if let Err(error) = model.reserve_port(now, port.number, is_reserved) {
            tracing::error!(port = port.name, "the model did not reserve a port: {error}");
        }
    }
}

/// Returns the change of the workers' ports, if there is one.
fn ports_update(
    changes: &[ConfigChange],
    datapath: &config::Datapath,
    added: Vec<PortQueues>,
    mirrors: MirrorsUpdate,
) -> Option<PortsUpdate> {
    let mut is_needed = !mirrors.removed.is_empty() || !mirrors.added.is_empty();
    let mut update = PortsUpdate {
        added,
        mirrors_removed: mirrors.removed,
        mirrors_added: mirrors.added,
        ..PortsUpdate::default()
    };
    let has_device = |port: &ConfiguredPort| !port.workers.is_empty();
    for change in changes {
        match change {
            ConfigChange::RemovePort(port) => update.removed.push(port.number),
            ConfigChange::ReopenPort { before, .. } => update.removed.push(before.number),
            ConfigChange::AddPort(_) => {}
            ConfigChange::SetQueues(port) if has_device(port) => {
                update.egress.push((port.number, port.queues.clone()));
            }
            ConfigChange::SetOutstanding(port) if has_device(port) => {
                update.outstanding.push((port.number, port.outstanding_bytes));
            }
            ConfigChange::PacketInRates => {
                update.packet_in_rates = Some(datapath.openflow.packet_ins.rates);
            }
            _ => continue,
        }
        is_needed = true;
    }
    is_needed.then_some(update)
}
