// SPDX-License-Identifier: Apache-2.0
//! The difference between the running configuration and a new one, as changes that a running switch can make
//! (docs/adr/0059). Begin with [`difference`], which is a pure function.

mod report;
mod restart;
#[cfg(test)]
mod tests;

use crate::mirror_settings::ConfiguredMirror;
use crate::mistakes::{FileMistakes, Mistake};
use crate::security::SocketAccess;
use crate::settings::{Config, ConfiguredPort, Datapath};
use crate::text::locate;
use crate::{ConnectionProtocol, Endpoint};
use flow::PortNo;
use restart::Restarts;
use std::collections::BTreeMap;
use std::path::Path;

/// The difference between two configurations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Changes of each datapath, in the order of the running configuration. The list of a datapath without
    /// changes is empty.
    pub datapaths: Vec<Vec<ConfigChange>>,
    /// The configuration after the changes, in the order of the running configuration. Workers have the
    /// numbers of the running configuration.
    pub configs: Vec<Config>,
}

/// A change of a running datapath. Its `Display` is a sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigChange {
    /// A port is added.
    AddPort(ConfiguredPort),
    /// A port is removed.
    RemovePort(ConfiguredPort),
    /// A port is removed and added again under its number, because its device, driver, workers or
    /// receive rings change.
    ReopenPort {
        /// Settings before the change.
        before: Box<ConfiguredPort>,
        /// Settings after the change.
        after: ConfiguredPort,
    },
    /// A port gets another name.
    RenamePort {
        /// Number of the port.
        number: PortNo,
        /// Name before the change.
        before: String,
        /// Name after the change.
        after: String,
    },
    /// A port gets other egress queues.
    SetQueues(ConfiguredPort),
    /// A port gets other settings for NORMAL.
    SetBridge(ConfiguredPort),
    /// The limit on outstanding bytes of a port changes.
    SetOutstanding(ConfiguredPort),
    /// The list of controllers to connect to changes.
    Controllers(EndpointChange),
    /// The list of addresses for connections of controllers changes.
    Listen(EndpointChange),
    /// New connections use the certificates of other files.
    Tls,
    /// The fail mode changes. The value is true for `standalone`.
    FailMode(bool),
    /// The rate limits of packet-ins change.
    PacketInRates,
    /// The cookie of low-latency flows changes.
    LowLatencyCookie,
    /// The learning of low-latency flows changes.
    Learning,
    /// The settings of the stateless forwarder change.
    Stateless,
    /// A mirror is added.
    AddMirror(ConfiguredMirror),
    /// The mirror of this name is removed.
    RemoveMirror(String),
    /// A mirror is removed and added again under its name, with other settings.
    ChangeMirror(ConfiguredMirror),
    /// Another flow file is loaded at the next start.
    FlowFile,
    /// Other users may connect to the control socket.
    SocketAccess(SocketAccess),
}

/// Change of a list of endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointChange {
    /// Protocol of the connections.
    pub protocol: ConnectionProtocol,
    /// Endpoints that are added.
    pub added: Vec<Endpoint>,
    /// Endpoints that are removed.
    pub removed: Vec<Endpoint>,
}

impl Difference {
    /// Returns the difference between the running configuration and the one in the file at `path`, which has
    /// this text.
    ///
    /// # Errors
    ///
    /// Returns all changes that need a restart, with their places in the file.
    pub fn of_file(
        running: &[Config],
        wanted: &[Config],
        path: &Path,
        text: &str,
    ) -> Result<Self, FileMistakes> {
        difference(running, wanted).map_err(|restarts| FileMistakes::new(path, locate(text, restarts)))
    }

    /// Returns whether nothing changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.datapaths.iter().all(Vec::is_empty)
    }
}

/// Returns the difference between the running configuration and a new one, both of which must be valid.
///
/// # Errors
///
/// Returns a mistake for each change that needs a restart, with the key in the new file. The mistakes have no
/// places.
pub fn difference(running: &[Config], wanted: &[Config]) -> Result<Difference, Vec<Mistake>> {
    let mut restarts = Restarts::of_process(running, wanted);
    let by_id: BTreeMap<u64, (usize, &Config)> =
        wanted.iter().enumerate().map(|(n, config)| (config.datapath.id, (n, config))).collect();
    let (mut datapaths, mut configs) = (Vec::new(), Vec::new());
    for before in running {
        let Some((n, after)) = by_id.get(&before.datapath.id) else { continue };
        let key = if wanted.len() == 1 { "datapath".to_owned() } else { format!("datapath[{n}]") };
        restarts.of_datapath(&key, before, after);
        let after = with_running_workers(&key, before, after, &mut restarts);
        let mut changes = changes(&before.datapath, &after.datapath);
        let access = (&before.process.control, &after.process.control);
        if access.0 != access.1 {
            changes.push(ConfigChange::SocketAccess(access.1.clone()));
        }
        restarts.of_changes(&key, before, &after, &changes);
        datapaths.push(changes);
        configs.push(after);
    }
    restarts.of_moves(running, &datapaths, wanted);
    let restarts = restarts.into_mistakes();
    if restarts.is_empty() { Ok(Difference { datapaths, configs }) } else { Err(restarts) }
}

/// Returns the new configuration of a datapath with the workers of the running one. A file with several
/// datapaths numbers only the workers that serve a port of a datapath.
fn with_running_workers(key: &str, before: &Config, after: &Config, restarts: &mut Restarts) -> Config {
    let mut config = after.clone();
    for (n, port) in config.datapath.ports.iter_mut().enumerate() {
        for worker in &mut port.workers {
            let Some(number) = after.workers.get(*worker).map(|worker| worker.number) else { continue };
            match before.workers.iter().position(|running| running.number == number) {
                Some(at) => *worker = at,
                None => restarts.no_such_worker(&format!("{key}.port[{n}].workers"), number),
            }
        }
    }
    config.workers.clone_from(&before.workers);
    config
}

/// Returns the changes of a datapath. Ports that are removed come first.
fn changes(before: &Datapath, after: &Datapath) -> Vec<ConfigChange> {
    let mut changes = Vec::new();
    let port = |ports: &[ConfiguredPort], number| ports.iter().position(|port| port.number == number);
    for old in &before.ports {
        if port(&after.ports, old.number).is_none() {
            changes.push(ConfigChange::RemovePort(old.clone()));
        }
    }
    for new in &after.ports {
        match port(&before.ports, new.number).and_then(|at| before.ports.get(at)) {
            Some(old) => changes.extend(port_changes(old, new)),
            None => changes.push(ConfigChange::AddPort(new.clone())),
        }
    }
    mirror_changes(before, after, &mut changes);
    channel_changes(before, after, &mut changes);
    let (old, new) = (&before.forwarding, &after.forwarding);
    let packet_ins = (before.openflow.packet_ins.rates, after.openflow.packet_ins.rates);
    for (is_changed, change) in [
        (packet_ins.0 != packet_ins.1, ConfigChange::PacketInRates),
        (old.low_latency_cookie != new.low_latency_cookie, ConfigChange::LowLatencyCookie),
        (old.learning != new.learning, ConfigChange::Learning),
        (before.stateless != after.stateless, ConfigChange::Stateless),
        (before.flows != after.flows, ConfigChange::FlowFile),
    ] {
        changes.extend(is_changed.then_some(change));
    }
    changes
}

/// Returns the changes of a port that keeps its number.
fn port_changes(old: &ConfiguredPort, new: &ConfiguredPort) -> Vec<ConfigChange> {
    let device = |port: &ConfiguredPort| {
        (port.driver.clone(), port.device.clone(), port.workers.clone(), port.receive_ring)
    };
    if device(old) != device(new) {
        return vec![ConfigChange::ReopenPort { before: Box::new(old.clone()), after: new.clone() }];
    }
    let mut changes = Vec::new();
    if old.name != new.name {
        let (before, after) = (old.name.clone(), new.name.clone());
        changes.push(ConfigChange::RenamePort { number: new.number, before, after });
    }
    if old.queues != new.queues {
        changes.push(ConfigChange::SetQueues(new.clone()));
    }
    if old.bridge != new.bridge {
        changes.push(ConfigChange::SetBridge(new.clone()));
    }
    if old.outstanding_bytes != new.outstanding_bytes {
        changes.push(ConfigChange::SetOutstanding(new.clone()));
    }
    changes
}

fn mirror_changes(before: &Datapath, after: &Datapath, changes: &mut Vec<ConfigChange>) {
    for old in &before.mirrors {
        if !after.mirrors.iter().any(|new| new.name == old.name) {
            changes.push(ConfigChange::RemoveMirror(old.name.clone()));
        }
    }
    for new in &after.mirrors {
        match before.mirrors.iter().find(|old| old.name == new.name) {
            Some(old) if old == new => {}
            Some(_) => changes.push(ConfigChange::ChangeMirror(new.clone())),
            None => changes.push(ConfigChange::AddMirror(new.clone())),
        }
    }
}

fn channel_changes(before: &Datapath, after: &Datapath, changes: &mut Vec<ConfigChange>) {
    let (old, new) = (&before.openflow, &after.openflow);
    let openflow = ConnectionProtocol::OpenFlow;
    changes.extend(endpoints(openflow, &old.controllers, &new.controllers).map(ConfigChange::Controllers));
    changes.extend(endpoints(openflow, &old.listen, &new.listen).map(ConfigChange::Listen));
    if before.tls != after.tls {
        changes.push(ConfigChange::Tls);
    }
    if old.standalone != new.standalone {
        changes.push(ConfigChange::FailMode(new.standalone));
    }
    // A section `pof` that is added or removed needs a restart.
    if let (Some(old), Some(new)) = (&before.pof, &after.pof) {
        let pof = ConnectionProtocol::Pof;
        changes.extend(endpoints(pof, &old.controllers, &new.controllers).map(ConfigChange::Controllers));
        changes.extend(endpoints(pof, &old.listen, &new.listen).map(ConfigChange::Listen));
    }
}

/// Returns the change of a list of endpoints. Another order is no change.
fn endpoints(protocol: ConnectionProtocol, old: &[Endpoint], new: &[Endpoint]) -> Option<EndpointChange> {
    let missing = |list: &[Endpoint], other: &[Endpoint]| -> Vec<Endpoint> {
        list.iter().filter(|endpoint| !other.contains(endpoint)).cloned().collect()
    };
    let (added, removed) = (missing(new, old), missing(old, new));
    (!added.is_empty() || !removed.is_empty()).then_some(EndpointChange { protocol, added, removed })
}
