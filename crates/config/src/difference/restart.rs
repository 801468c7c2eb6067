// SPDX-License-Identifier: Apache-2.0
//! Changes that need a restart, each with its key and the reason.

use super::ConfigChange;
use crate::mistakes::{Mistake, wrong};
use crate::settings::{Config, ConfiguredPort, Datapath};
use std::collections::BTreeSet;

/// Changes that need a restart.
#[derive(Default)]
pub(super) struct Restarts(Vec<Mistake>);

impl Restarts {
    /// Collects the changes of settings that apply to the whole process.
    pub fn of_process(running: &[Config], wanted: &[Config]) -> Self {
        let mut restarts = Self::default();
        if let (Some(before), Some(after)) = (running.first(), wanted.first()) {
            restarts.when(before.portable != after.portable, "simd", "the tables are compiled for it");
            let reason = "DPDK is set up once, at the start";
            restarts.when(before.dpdk != after.dpdk, "dpdk", reason);
            let (old, new) = (&before.process, &after.process);
            restarts.when(
                old.metrics != new.metrics,
                "metrics",
                "the server of metrics starts with the switch",
            );
            let reason = "the log is set up at the start; use `shunt log set` to change levels";
            restarts.when(old.log != new.log, "log", reason);
            let reason = "the switch gives up its privileges at the start";
            restarts.when(old.security != new.security, "security", reason);
            let reason = "the process that starts new programs is started before privileges are given up";
            restarts.when(old.upgrade != new.upgrade, "upgrade", reason);
            restarts.workers(before, after);
        }
        let ids = |configs: &[Config]| -> BTreeSet<u64> {
            configs.iter().map(|config| config.datapath.id).collect()
        };
        let (before, after) = (ids(running), ids(wanted));
        for (n, id) in wanted.iter().map(|config| config.datapath.id).enumerate() {
            let key = if wanted.len() == 1 { "datapath.id".to_owned() } else { format!("datapath[{n}].id") };
            let reason = format!("there is no datapath {id} yet, and datapaths are created at the start");
            restarts.when(!before.contains(&id), &key, &reason);
        }
        for id in before.difference(&after) {
            let reason = format!("datapath {id} is missing, and datapaths are removed only by a restart");
            restarts.when(true, "datapath", &reason);
        }
        restarts
    }

    fn workers(&mut self, before: &Config, after: &Config) {
        let (old, new) = (&before.file_workers, &after.file_workers);
        let reason = format!(
            "the number of workers is {} instead of {}, and their threads are started with the switch",
            new.len(),
            old.len()
        );
        self.when(old.len() != new.len(), "worker", &reason);
        for (n, (old, new)) in old.iter().zip(new).enumerate() {
            let reason = "a worker's thread is pinned when it starts";
            self.when(old.cpu != new.cpu, &format!("worker[{n}].cpu"), reason);
            let reason = "a worker's thread gets this setting when it starts";
            self.when(old.idle != new.idle, &format!("worker[{n}].idle"), reason);
        }
    }

    /// Adds the changes of a datapath's settings that workers and the model have only at the start. `key` is
    /// the key of the datapath.
    pub fn of_datapath(&mut self, key: &str, before: &Config, after: &Config) {
        let control = if key == "datapath" { "control".to_owned() } else { format!("{key}.control") };
        let reason = "the socket is created at the start";
        self.when(before.control != after.control, &control, reason);
        let (before, after) = (&before.datapath, &after.datapath);
        let of_start = "each worker's memory is allocated at the start";
        let (old, new) = (&before.forwarding, &after.forwarding);
        for (is_changed, name, reason) in [
            (old.lut_entries != new.lut_entries, "ffp", of_start),
            (old.consistency != new.consistency, "ffp.consistency", "all LUTs have it from the start"),
            (old.express_records != new.express_records, "express", of_start),
            (old.port_cache != new.port_cache, "port_cache", of_start),
            (old.lanes != new.lanes, "lanes", of_start),
            (
                before.searcher_cpu != after.searcher_cpu,
                "port_cache.searcher_cpu",
                "the search worker's thread is pinned when it starts",
            ),
            (before.kept_rules != after.kept_rules, "store", "rules are restored and kept from the start"),
            (before.device != after.device, "device", "the connection to the device is set up at the start"),
            (
                before.openflow.packet_ins.quench != after.openflow.packet_ins.quench,
                "openflow.packet_in.quench",
                "quenched packets wait in memory that is allocated at the start",
            ),
        ] {
            self.when(is_changed, &format!("{key}.{name}"), reason);
        }
        self.pof(key, before, after);
    }

    fn pof(&mut self, key: &str, before: &Datapath, after: &Datapath) {
        let (old, new) = match (&before.pof, &after.pof) {
            (None, None) => return,
            (Some(old), Some(new)) => (old, new),
            _ => {
                let reason = "a datapath speaks POF from the start, or not at all";
                return self.when(true, &format!("{key}.pof"), reason);
            }
        };
        let reason = "the tables of POF are set up at the start";
        for (is_changed, name) in [
            (old.dialect != new.dialect, "dialect"),
            (old.tables != new.tables, "tables"),
            (old.device_id != new.device_id, "device_id"),
            (old.miss != new.miss, "miss"),
        ] {
            self.when(is_changed, &format!("{key}.pof.{name}"), reason);
        }
    }

    /// Adds the changes of ports that this datapath cannot make while it runs.
    pub fn of_changes(&mut self, key: &str, before: &Config, after: &Config, changes: &[ConfigChange]) {
        let (old, new) = (&before.datapath, &after.datapath);
        let has_cache = old.forwarding.port_cache.is_some() || old.openflow.packet_ins.quench.is_some();
        for change in changes {
            let (closed, opened) = match change {
                ConfigChange::AddPort(port) => (None, Some(port)),
                ConfigChange::RemovePort(port) => (Some(port), None),
                ConfigChange::ReopenPort { before, after } => (Some(before.as_ref()), Some(after)),
                _ => continue,
            };
            let key = match opened {
                Some(port) => port_key(key, new, port),
                None => format!("{key}.port"),
            };
            let port = opened.or(closed);
            let name = port.map(|port| format!("port {} ({})", port.number, port.name)).unwrap_or_default();
            let of_driver = |driver: &str| closed.into_iter().chain(opened).any(|port| port.driver == driver);
            let is_xdp = |port: &ConfiguredPort| port.driver == port::af_xdp::NAME;
            let is_used = |port: &ConfiguredPort| {
                old.ports.iter().any(|other| is_xdp(other) && other.device == port.device)
            };
            if let Some(port) = opened.filter(|port| is_xdp(port) && is_used(port)) {
                let problem = format!(
                    "{name} cannot be opened: af_xdp cannot use \"{}\" twice at a time; remove the port in one \
                     reload and add it in the next, or restart the switch",
                    port.device
                );
                self.0.push(wrong(key, problem));
                continue;
            }
            let reason = if old.device.is_some() {
                "a device forwards, and its ports are fixed"
            } else if has_cache {
                "the port cache, which quenched packet-ins use too, has the ports of the start"
            } else if of_driver(port::dpdk::NAME) {
                "DPDK devices are opened and closed only with the switch"
            } else {
                continue;
            };
            self.0
                .push(wrong(key, format!("{name} cannot be opened or closed: {reason}; restart the switch")));
        }
    }

    /// Adds the devices that move from one datapath to another.
    pub fn of_moves(&mut self, running: &[Config], changes: &[Vec<ConfigChange>], wanted: &[Config]) {
        for (at, changes) in changes.iter().enumerate() {
            for change in changes {
                let (ConfigChange::AddPort(port) | ConfigChange::ReopenPort { after: port, .. }) = change
                else {
                    continue;
                };
                if !port::is_of_interfaces(&port.driver) {
                    continue;
                }
                let others = running.iter().enumerate().filter(|(other, _)| *other != at);
                let mut ports = others.flat_map(|(_, config)| &config.datapath.ports);
                let is_used =
                    ports.any(|other| port::is_of_interfaces(&other.driver) && other.device == port.device);
                let datapath = running.get(at).map_or(0, |config| config.datapath.id);
                let found = wanted.iter().enumerate().find(|(_, config)| config.datapath.id == datapath);
                let Some((n, config)) = found.filter(|_| is_used) else { continue };
                let key = port_key(&format!("datapath[{n}]"), &config.datapath, port);
                let problem = format!(
                    "\"{}\" belongs to another datapath that runs; remove it there in one reload and add it \
                     here in the next",
                    port.device
                );
                self.0.push(wrong(format!("{key}.device"), problem));
            }
        }
    }

    /// Adds a port that is to be served by a worker without a thread for the datapath.
    pub fn no_such_worker(&mut self, key: &str, number: usize) {
        let reason = format!("worker {number} has served no port of this datapath since the start");
        self.when(true, key, &reason);
    }

    fn when(&mut self, is_changed: bool, key: &str, reason: &str) {
        if is_changed && !self.0.iter().any(|other| other.key == key) {
            let problem = format!("cannot change while the switch runs: {reason}; restart the switch");
            self.0.push(wrong(key, problem));
        }
    }

    pub fn into_mistakes(self) -> Vec<Mistake> {
        self.0
    }
}

/// Returns the key of a port in the file.
fn port_key(datapath: &str, of: &Datapath, port: &ConfiguredPort) -> String {
    match of.ports.iter().position(|other| other.number == port.number) {
        Some(at) => format!("{datapath}.port[{at}]"),
        None => format!("{datapath}.port"),
    }
}
