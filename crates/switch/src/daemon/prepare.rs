// SPDX-License-Identifier: Apache-2.0
//! Prepares a change of a datapath: opens its new devices and binds its new addresses. A failure leaves
//! everything as it was.

use super::DaemonError;
use super::clock::MonotonicClock;
use super::ports::{OpenPort, open_port};
use crate::channels::{Acceptor, Tls, bind_added, open_tls};
use crate::mirror::{self, PreparedMirror};
use config::{Config, ConfigChange, ConfiguredPort};
use port::Link;

/// A change of a datapath that can be applied without a failure.
pub struct PreparedChange {
    /// The configuration after the change.
    pub config: Config,
    pub changes: Vec<ConfigChange>,
    /// Added ports and ports that are opened again, with their links.
    pub opened: Vec<(OpenPort, Link)>,
    /// Sockets that are bound to new addresses.
    pub acceptors: Vec<Acceptor>,
    /// Mirrors to add.
    pub mirrors: Vec<PreparedMirror>,
    /// Certificates of TLS connections, if they change; `None` inside if there are no such connections.
    pub tls: Option<Option<Tls>>,
}

/// Prepares the changes of a datapath.
///
/// # Errors
///
/// Returns the error of the first device that cannot be opened, of the first address that cannot be bound, of
/// certificates that cannot be used, or of a mirror's file.
pub fn prepare(
    before: &Config,
    after: &Config,
    changes: &[ConfigChange],
    clock: MonotonicClock,
) -> Result<PreparedChange, DaemonError> {
    let acceptors = bind_added(changes)?;
    let tls = changes.contains(&ConfigChange::Tls).then(|| open_tls(&after.datapath)).transpose()?;
    let mut opened = Vec::new();
    for change in changes {
        let (ConfigChange::AddPort(port) | ConfigChange::ReopenPort { after: port, .. }) = change else {
            continue;
        };
        // The datapath has claimed the interface already if another of its ports uses the interface now.
        let is_claimed =
            |other: &ConfiguredPort| port::is_of_interfaces(&other.driver) && other.device == port.device;
        let mut open = open_port(after, port, before.datapath.ports.iter().any(is_claimed))?;
        let link = open.poll_link();
        opened.push((open, link));
    }
    // Files come last, because opening one empties it.
    let mut mirrors = Vec::new();
    for change in changes {
        let (ConfigChange::AddMirror(mirror) | ConfigChange::ChangeMirror(mirror)) = change else { continue };
        let (ports, workers) = (&after.datapath.ports, after.workers.len());
        mirrors.push(mirror::prepare(mirror, ports, workers, clock)?);
    }
    Ok(PreparedChange { config: after.clone(), changes: changes.to_vec(), opened, acceptors, mirrors, tls })
}
