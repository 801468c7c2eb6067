// SPDX-License-Identifier: Apache-2.0
//! Opens the ports of a configuration.

use super::DaemonError;
use crate::upgrade::InheritedDatapath;
use config::{Config, ConfiguredPort};
use port::patch::PatchEnd;
use port::{DeviceLock, Handover, Link, PortError, PortHandle, Queue, Queues, Spec};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Maximum number of threads that are started to open ports.
const OPENERS_MAX: usize = 16;

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
    let open = |port: &ConfiguredPort| open_as(port, Claim::Take, handover.clone(), port::open);
    open_all(&config.datapath.ports, &open)
}

/// Opens ports, those on network interfaces by several threads: the kernel takes about 15 ms to set up the
/// rings of a socket, mostly waiting. This thread opens the others, because calls of DPDK must not be made by
/// several threads.
fn open_all(
    ports: &[ConfiguredPort],
    open: &(dyn Fn(&ConfiguredPort) -> Result<OpenPort, DaemonError> + Sync),
) -> Result<Vec<OpenPort>, DaemonError> {
    let (waiting, here): (Vec<_>, Vec<_>) =
        ports.iter().enumerate().partition(|(_, port)| port::is_of_interfaces(&port.driver));
    let (next, first_failed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
    let opened = Mutex::new(Vec::with_capacity(ports.len()));
    let open_into = |at: usize, port| {
        // Only ports before one that failed can change the error that is returned.
        if at > first_failed.load(Ordering::Relaxed) {
            return;
        }
        let result = open(port);
        if result.is_err() {
            first_failed.fetch_min(at, Ordering::Relaxed);
        }
        opened.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
    };
    let open_waiting = || {
        while let Some(&(at, port)) = waiting.get(next.fetch_add(1, Ordering::Relaxed)) {
            open_into(at, port);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..waiting.len().min(OPENERS_MAX) {
            // This thread opens the ports for which the system allows no thread.
            let _ = std::thread::Builder::new().name("open-port".into()).spawn_scoped(scope, open_waiting);
        }
        here.iter().for_each(|&(at, port)| open_into(at, port));
        open_waiting();
    });
    let mut opened = opened.into_inner().unwrap_or_else(PoisonError::into_inner);
    opened.sort_by_key(|(at, _)| *at);
    opened.into_iter().map(|(_, result)| result).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Returns ports 1 to `count`, every fourth of which is on no network interface.
    fn ports(count: u16) -> Vec<ConfiguredPort> {
        let port = |n| {
            let driver = if n % 4 == 0 { "mem" } else { "af_packet" };
            let device = format!("driver = \"{driver}\"\ndevice = \"d{n}\"\n");
            format!("[[datapath.port]]\nnumber = {n}\nname = \"p{n}\"\nworkers = [0]\n{device}")
        };
        let text: String = (1..=count).map(port).collect();
        Config::parse(&format!("[[worker]]\n[[datapath]]\nid = 1\n{text}")).unwrap().datapath.ports
    }

    fn opened(port: &ConfiguredPort) -> OpenPort {
        OpenPort { number: port.number, name: port.name.clone(), queues: Vec::new(), device_lock: None }
    }

    #[test]
    fn ports_are_opened_once_and_others_than_interfaces_by_the_calling_thread() {
        let this = std::thread::current().id();
        for count in [0, 1, 3, 40] {
            let ports = ports(count);
            let calls = Mutex::new(Vec::new());
            let open = |port: &ConfiguredPort| {
                let thread = std::thread::current().id();
                assert!(port.driver != "mem" || thread == this);
                calls.lock().unwrap().push((port.number, thread));
                std::thread::sleep(std::time::Duration::from_millis(u64::from(port.number.0 % 3)));
                Ok(opened(port))
            };
            let opened = open_all(&ports, &open).unwrap();
            let numbers: Vec<_> = opened.iter().map(|port| port.number).collect();
            assert!(numbers.iter().eq(ports.iter().map(|port| &port.number)), "{numbers:?}");
            let (mut called, threads): (Vec<_>, HashSet<_>) = calls.into_inner().unwrap().into_iter().unzip();
            called.sort_unstable();
            assert_eq!(called, numbers);
            assert_eq!(threads.len() > 1, count > 2, "{count} ports");
        }
    }

    #[test]
    fn the_first_error_is_returned_and_few_more_ports_are_opened() {
        let calls = AtomicUsize::new(0);
        let open = |port: &ConfiguredPort| {
            calls.fetch_add(1, Ordering::Relaxed);
            // The port that fails last is the first in order.
            let is_fast = port.number.0 == 7 || port.number.0 == 8;
            std::thread::sleep(std::time::Duration::from_millis(if is_fast { 1 } else { 20 }));
            let broken = (5..9).contains(&port.number.0);
            let error = || DaemonError::io("open")(std::io::Error::other(port.number.to_string()));
            if broken { Err(error()) } else { Ok(opened(port)) }
        };
        let error = open_all(&ports(100), &open).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains('5') && !error.contains('7'), "{error}");
        assert!(calls.into_inner() < 30, "no port after the first that fails need be opened");
    }
}
