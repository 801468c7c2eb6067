// SPDX-License-Identifier: Apache-2.0
//! Opens the ports of a configuration.

use super::DaemonError;
use crate::upgrade::InheritedDatapath;
use config::{Config, ConfiguredPort};
use port::patch::PatchEnd;
use port::{DeviceLock, Handover, Link, PortError, PortHandle, Queue, Queues, Spec};

/// A port whose device is open.
pub struct OpenPort {
    /// Port number.
    pub number: flow::PortNo,
    /// Port name.
    pub name: String,
    /// The port's queues, each with the number of the worker that serves it. A port of a device outside this
    /// process has none, and its link is up.
    pub queues: Vec<(usize, Box<dyn Queue>)>,
    /// Claim on the interface, which prevents other switches from serving the interface.
    pub device_lock: Option<DeviceLock>,
}

impl OpenPort {
    /// Returns the control thread's access to the port, if it is a patch port.
    pub(super) fn patch_end(&self) -> Option<PatchEnd> {
        self.queues.first().and_then(|(_, queue)| queue.patch_end())
    }

    /// Returns the control thread's access to the port for an upgrade, if the port can be handed over.
    pub(super) fn handle(&self) -> Option<PortHandle> {
        self.queues.first().and_then(|(_, queue)| queue.handle())
    }

    /// Returns the link of the port, which is up only if every queue reports it as up.
    pub(super) fn poll_link(&mut self) -> Link {
        let mut link = Link { up: self.queues.is_empty(), ..Link::default() };
        for (n, (_, queue)) in self.queues.iter_mut().enumerate() {
            let reported = queue.poll_link();
            link = if n == 0 {
                reported
            } else {
                Link {
                    up: link.up && reported.up,
                    index: link.index.filter(|_| link.index == reported.index),
                    ..link
                }
            };
        }
        link
    }
}

/// Opens all ports of a configuration.
///
/// # Errors
///
/// Returns the error of the first port that cannot be opened or that another switch serves.
pub fn open(config: &Config) -> Result<Vec<OpenPort>, DaemonError> {
    port::dpdk::log_to(crate::log::say);
    port::dpdk::configure(config.dpdk.clone());
    let handover = handover_of(config);
    let open = |port| open_as(port, Claim::Take, handover.clone(), port::open);
    config.datapath.ports.iter().map(open).collect()
}

/// Opens all ports like [`open`]. Ports of an earlier process get no packets until they take over.
///
/// # Errors
///
/// Returns the error of the first port that cannot be opened or that another switch serves.
pub(super) fn open_inherited(
    config: &Config,
    inherited: &mut InheritedDatapath,
) -> Result<Vec<OpenPort>, DaemonError> {
    let mut opened = Vec::with_capacity(config.datapath.ports.len());
    for port in &config.datapath.ports {
        let of_port = inherited.port(&port.device, &port.driver);
        let lock = of_port.as_ref().and_then(|_| inherited.take_lock(&port.device));
        let claim = if lock.is_some() { Claim::Keep } else { Claim::Take };
        let handover = of_port.map_or_else(|| handover_of(config), Handover::From);
        let mut open = open_as(port, claim, handover, port::open)?;
        open.device_lock = lock.map(DeviceLock::from).or(open.device_lock);
        opened.push(open);
    }
    Ok(opened)
}

/// Opens a port for workers that run already. The port receives no packets before the workers take its
/// queues. With `is_claimed`, this process has claimed the interface already.
///
/// # Errors
///
/// Returns an error if the port cannot be opened, or if another switch serves it.
pub(super) fn open_port(
    config: &Config,
    port: &ConfiguredPort,
    is_claimed: bool,
) -> Result<OpenPort, DaemonError> {
    let claim = if is_claimed { Claim::Keep } else { Claim::Take };
    open_as(port, claim, handover_of(config), port::open_held)
}

/// Returns whether the ports of a configuration can be handed over to a newer process.
fn handover_of(config: &Config) -> Handover {
    if config.process.upgrade { Handover::Possible } else { Handover::Never }
}

/// Whether an interface must be claimed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    Take,
    Keep,
}

fn open_as(
    port: &ConfiguredPort,
    claim: Claim,
    handover: Handover,
    open: fn(&Spec) -> Result<Queues, PortError>,
) -> Result<OpenPort, DaemonError> {
    let (number, name) = (port.number, port.name.clone());
    if port.driver.is_empty() {
        // The device outside this process has the port's channel.
        return Ok(OpenPort { number, name, queues: Vec::new(), device_lock: None });
    }
    let spec = Spec { handover, ..port.spec() };
    let device_lock = if claim == Claim::Take { DeviceLock::take(&spec)? } else { None };
    let queues = port.workers.iter().copied().zip(open(&spec)?).collect();
    Ok(OpenPort { number, name, queues, device_lock })
}
