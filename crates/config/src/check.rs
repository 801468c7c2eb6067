// SPDX-License-Identifier: Apache-2.0
//! Checks that the settings of a configuration file are consistent and that this build supports them.
//!
//! Begin with [`configs`].

use crate::cables::check_cables;
use crate::cache::check_pool;
use crate::channels::{channels, share_no_address};
use crate::device::{DeviceKind, check_others, device};
use crate::endpoint::socket_path;
use crate::file::{self, ConfigFile};
use crate::forwarding::{Forwarding, ForwardingSections, forwarding};
use crate::kept::kept_rules;
use crate::machine::Scope;
use crate::mirror::mirrors;
use crate::mistakes::Mistakes;
use crate::ports::{Around, has_no_device, ports};
use crate::process::process;
use crate::settings::{
    Config, ConfiguredPort, DEFAULT_CONTROL, Datapath, Idle, Pace, TlsFiles, WorkerConfig,
};
use crate::socket::SocketPurpose;
use crate::tls::{tls_files, tls_of};
use crate::value::in_range;
use port_cache::{MissMode, PortCacheConfig};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Range of the number of packet buffers of a DPDK port.
const MBUFS: RangeInclusive<i64> = 64..=16_777_216;
/// Range of the MTU of a DPDK port, in bytes.
const MTU: RangeInclusive<i64> = 68..=65_500;
/// Maximum number of workers of a daemon.
const WORKERS: usize = 64;
/// Maximum number of datapaths of a daemon.
const DATAPATHS: usize = 1_024;
/// Maximum number of CPUs on Linux.
const CPUS: i64 = 8_192;

/// Returns the configurations of a file. They are valid only if no mistakes were added.
pub fn configs(file: ConfigFile, scope: Scope, mistakes: &mut Mistakes) -> Vec<Config> {
    let (process, mut process_notes) = process(&file, mistakes);
    let tls = file.tls.as_ref().and_then(|section| tls_files("tls", section, mistakes));
    let ConfigFile { control, simd, dpdk: dpdk_of, worker, datapath: datapaths, .. } = file;
    let portable = portable(simd.as_deref(), mistakes);
    let has_dpdk = dpdk_of.is_some();
    let dpdk = dpdk(dpdk_of, mistakes);
    let mut worker_notes = Vec::new();
    // Devices forward without workers, and ports without devices carry no packets.
    let needs_workers = datapaths.is_empty() || datapaths.iter().any(is_served_by_workers);
    let workers = if worker.is_empty() && !needs_workers {
        Some(Vec::new())
    } else {
        workers(&worker, scope, &mut worker_notes, mistakes)
    };
    let count = datapaths.len();
    if count == 0 {
        mistakes.wrong("datapath", "there is none; add [[datapath]] with an id and ports");
    }
    if count > DATAPATHS {
        mistakes.wrong("datapath", format!("there are {count}; the maximum is {DATAPATHS}"));
        return Vec::new();
    }
    let mut made: Vec<(usize, Config)> = Vec::with_capacity(count);
    for (n, d) in datapaths.into_iter().enumerate() {
        let key = if count == 1 { "datapath".to_owned() } else { format!("datapath[{n}]") };
        let control = socket(n, &key, d.control.as_deref(), &control, scope, mistakes);
        let mut notes = if n == 0 { std::mem::take(&mut worker_notes) } else { Vec::new() };
        notes.append(&mut process_notes);
        let context = Context {
            key: &key,
            workers: workers.as_deref(),
            control: control.as_deref(),
            tls: tls.as_ref(),
            scope,
        };
        let datapath = datapath(d, &context, &mut notes, mistakes);
        let (Some(control), Some(datapath), Some(dpdk), Some(workers)) = (control, datapath, &dpdk, &workers)
        else {
            continue;
        };
        let (dpdk, file_workers) = (dpdk.clone(), workers.clone());
        let mut workers = workers.clone();
        if datapath.device.is_some() {
            if !needs_workers && !workers.is_empty() {
                notes.push("worker has no effect: devices forward the packets.".to_owned());
            }
            workers.clear();
        } else if carries_nothing(&datapath.ports) {
            workers.clear();
        }
        let (process, pace) = (process.clone(), Pace::default());
        let one = Config { control, portable, process, dpdk, workers, file_workers, pace, datapath, notes };
        made.iter().for_each(|(_, other)| apart(&key, other, &one, mistakes));
        made.push((n, one));
    }
    check_cables(&mut made, count, mistakes);
    let mut made: Vec<Config> = made.into_iter().map(|(_, config)| config).collect();
    let uses_dpdk =
        |config: &&Config| config.datapath.ports.iter().any(|port| port.driver == port::dpdk::NAME);
    match made.iter().filter(uses_dpdk).count() {
        0 if has_dpdk => {
            let note = "[dpdk] has no effect: no port has the driver \"dpdk\".";
            made.iter_mut().take(1).for_each(|first| first.notes.push(note.to_owned()));
        }
        0 | 1 => {}
        _ => mistakes.wrong("datapath", "only one datapath of a daemon can have dpdk ports"),
    }
    if count > 1 && mistakes.is_empty() {
        made.iter_mut().for_each(keep_used_workers);
    }
    made
}

/// Returns whether lookups use portable code.
fn portable(simd: Option<&str>, mistakes: &mut Mistakes) -> bool {
    match simd {
        None | Some("auto") => false,
        Some("portable") => true,
        Some(other) => {
            mistakes.wrong("simd", format!("\"{other}\" is unknown; use \"auto\" or \"portable\""));
            false
        }
    }
}

/// Returns whether workers forward the packets of a datapath. A datapath without ports has a worker, because
/// a controller may send packets through its tables.
fn is_served_by_workers(d: &file::DatapathSection) -> bool {
    d.device.is_none() && (d.port.is_empty() || !d.port.iter().all(has_no_device))
}

/// Returns whether there are ports, but no worker serves any of them.
fn carries_nothing(ports: &[ConfiguredPort]) -> bool {
    !ports.is_empty() && ports.iter().all(|port| port.workers.is_empty())
}

/// Returns the path of a datapath's control socket. The `control` key of the file applies only to the first
/// datapath.
fn socket(
    n: usize,
    datapath: &str,
    own: Option<&str>,
    file: &file::ControlSection,
    scope: Scope,
    mistakes: &mut Mistakes,
) -> Option<PathBuf> {
    let (key, path) = match own {
        Some(path) => (format!("{datapath}.control"), path),
        None if n == 0 => ("control".to_owned(), file.path.as_deref().unwrap_or(DEFAULT_CONTROL)),
        None => {
            let problem =
                "is missing: each further datapath needs its own socket, such as \"/run/shunt/s2.sock\"";
            mistakes.wrong(format!("{datapath}.control"), problem);
            return None;
        }
    };
    let path = mistakes.at(&key, socket_path(path, DEFAULT_CONTROL))?;
    scope.socket_path(&key, &path, SocketPurpose::Control, mistakes);
    Some(path)
}

/// Adds mistakes for the datapath at `key` if it shares an ID, a control socket, an address or a device with
/// the other.
fn apart(key: &str, one: &Config, other: &Config, mistakes: &mut Mistakes) {
    let id = other.datapath.id;
    if one.datapath.id == id {
        let problem = format!("{id} is also the id of another datapath; give each a different id");
        mistakes.wrong(format!("{key}.id"), problem);
    }
    if one.control == other.control {
        let problem =
            format!("\"{}\" is also used by another datapath; use each once", other.control.display());
        mistakes.wrong(format!("{key}.control"), problem);
    }
    share_no_address(key, &one.datapath, &other.datapath, mistakes);
    let folder = |config: &Config| config.datapath.kept_rules.as_ref().map(|kept| kept.path.clone());
    if let Some(path) = folder(other).filter(|path| folder(one).as_ref() == Some(path)) {
        let problem = format!("\"{}\" is also used by another datapath; use each once", path.display());
        mistakes.wrong(format!("{key}.store.path"), problem);
    }
    let files = |config: &Config| -> Vec<PathBuf> {
        config.datapath.mirrors.iter().filter_map(|mirror| mirror.file()).cloned().collect()
    };
    if let Some(path) = files(other).iter().find(|path| files(one).contains(path)) {
        let problem = format!("\"{}\" is also used by another datapath; use each once", path.display());
        mistakes.wrong(format!("{key}.mirror"), problem);
    }
    let device = |config: &Config| match config.datapath.device.as_ref()?.kind {
        DeviceKind::Udp { address, .. } => Some(address),
        DeviceKind::Simulated => None,
    };
    if let Some(address) = device(other).filter(|address| device(one) == Some(*address)) {
        let problem = format!("\"{address}\" is also the device of another datapath; give each its own");
        mistakes.wrong(format!("{key}.device.address"), problem);
    }
    let alone =
        |port: &ConfiguredPort| port::is_of_interfaces(&port.driver) || port.driver == port::dpdk::NAME;
    for (n, port) in other.datapath.ports.iter().enumerate().filter(|(_, port)| alone(port)) {
        if one.datapath.ports.iter().any(|it| alone(it) && it.device == port.device) {
            let problem = format!(
                "\"{}\" is also used by another datapath; to link datapaths, use ports with the driver \"patch\"",
                port.device
            );
            mistakes.wrong(format!("{key}.port[{n}].device"), problem);
        }
    }
}

/// Removes the workers that serve no port of this datapath, and renumbers the others.
fn keep_used_workers(config: &mut Config) {
    if config.datapath.device.is_some() || carries_nothing(&config.datapath.ports) {
        return;
    }
    let ports = &mut config.datapath.ports;
    let used: Vec<usize> = (0..config.workers.len())
        .filter(|worker| ports.iter().any(|port| port.workers.contains(worker)))
        .collect();
    for port in ports.iter_mut() {
        for worker in &mut port.workers {
            *worker = used.iter().position(|it| it == worker).unwrap_or_default();
        }
    }
    let kept: Vec<WorkerConfig> = used.iter().map(|worker| config.workers[*worker]).collect();
    // Without ports, one worker remains, because a controller may send packets.
    config.workers = if kept.is_empty() { config.workers[..1].to_vec() } else { kept };
    config.notes.retain(|note| !note.ends_with("serves no port."));
}

fn dpdk(section: Option<file::DpdkSection>, mistakes: &mut Mistakes) -> Option<port::dpdk::DpdkSettings> {
    let default = port::dpdk::DpdkSettings::default();
    let Some(file::DpdkSection { eal, mbufs, mtu }) = section else { return Some(default) };
    let mbufs = mistakes.at("dpdk.mbufs", in_range(mbufs.unwrap_or(default.mbufs.into()), MBUFS));
    let mtu = mistakes.at("dpdk.mtu", in_range(mtu.unwrap_or(default.mtu.into()), MTU));
    Some(port::dpdk::DpdkSettings { eal: eal.unwrap_or(default.eal), mbufs: mbufs? as u32, mtu: mtu? as u16 })
}

/// Checks the workers. Returns `None` if there are none or too many. Wrong values are replaced by defaults.
fn workers(
    list: &[file::WorkerSection],
    scope: Scope,
    notes: &mut Vec<String>,
    mistakes: &mut Mistakes,
) -> Option<Vec<WorkerConfig>> {
    if list.is_empty() {
        let problem = "there is none, so nothing would be forwarded; add [[worker]] with a cpu";
        mistakes.wrong("worker", problem);
        return None;
    }
    if list.len() > WORKERS {
        mistakes.wrong("worker", format!("there are {}; the maximum is {WORKERS}", list.len()));
        return None;
    }
    let mut workers = Vec::with_capacity(list.len());
    for (n, worker) in list.iter().enumerate() {
        let key = format!("worker[{n}].cpu");
        let cpu = worker.cpu.and_then(|cpu| mistakes.at(&key, in_range(cpu, 0..=CPUS - 1)));
        let cpu = cpu.map(|cpu| cpu as usize);
        if let Some(Some(note)) = cpu.and_then(|cpu| mistakes.at(&key, scope.cpu(cpu))) {
            notes.push(format!("{key}: {note}"));
        }
        let idle = match worker.idle.as_deref() {
            None | Some("adaptive") => Idle::Adaptive,
            Some("busy") => Idle::Busy,
            Some(other) => {
                let problem = format!("\"{other}\" is unknown; use \"adaptive\" or \"busy\"");
                mistakes.wrong(format!("worker[{n}].idle"), problem);
                Idle::Adaptive
            }
        };
        workers.push(WorkerConfig { number: n, cpu, idle });
    }
    Some(workers)
}

/// Key of a datapath in the file, and other settings against which the datapath is checked.
pub(crate) struct Context<'a> {
    pub key: &'a str,
    pub workers: Option<&'a [WorkerConfig]>,
    pub control: Option<&'a Path>,
    /// Certificates of datapaths without certificates of their own.
    pub tls: Option<&'a TlsFiles>,
    pub scope: Scope,
}

fn datapath(
    d: file::DatapathSection,
    context: &Context<'_>,
    notes: &mut Vec<String>,
    mistakes: &mut Mistakes,
) -> Option<Datapath> {
    let Context { key, workers, scope, .. } = *context;
    let workers = workers.map(<[_]>::len);
    let before = mistakes.len();
    let id = mistakes.needed(format!("{key}.id"), d.id, "id = 1");
    let id = id.and_then(|id| mistakes.at(format!("{key}.id"), in_range(id, 1..=i64::MAX)));
    let device = d.device.as_ref().map(|section| device(key, section, scope, mistakes));
    if device.is_some() {
        check_others(key, &d, notes, mistakes);
    }
    let (mut openflow, pof) = channels(&d, id, context, mistakes);
    // A device does not learn MACs.
    openflow.standalone &= device.is_none();
    let sections = ForwardingSections {
        low_latency: &d.low_latency,
        ffp: &d.ffp,
        express: &d.express,
        lanes: &d.lanes,
        port_cache: &d.port_cache,
    };
    let forwarding = forwarding(key, sections, mistakes);
    let outstanding_bytes = forwarding.as_ref().map_or(0, |forwarding| forwarding.outstanding_bytes);
    let searcher_cpu = searcher_cpu(&d, context, notes, mistakes);
    if openflow.packet_ins.quench.is_some() && d.port_cache.is_off() {
        let problem = "quenched packets wait in the port cache; use \"nonblocking\", or omit port_cache for the usual limits";
        mistakes.wrong(format!("{key}.port_cache.mode"), problem);
    }
    // Quenching alone uses a port cache with the usual limits.
    let quenching = openflow.packet_ins.quench.map(|_| PortCacheConfig::default());
    if let Some(cache) = forwarding.as_ref().and_then(|forwarding| forwarding.port_cache.or(quenching)) {
        if cache.mode == MissMode::Blocking {
            let problem = "\"blocking\" needs drivers that receive single packets, and is for shunt replay and scenarios of shunt sim; use \"nonblocking\"";
            mistakes.wrong(format!("{key}.port_cache.mode"), problem);
        }
        check_pool(key, &cache, d.port.len().max(1), workers.unwrap_or(1).max(1), mistakes);
    }
    let kind = device.as_ref().map(|device| device.as_ref().map(|device| device.kind));
    let mut ports = match kind {
        // The ports depend on what was wrong with the device.
        Some(None) => Vec::new(),
        kind => {
            let around = Around { workers, outstanding_bytes, scope, device: kind.flatten() };
            ports(key, &d.port, &around, mistakes)
        }
    };
    let has_all_ports = ports.len() == d.port.len();
    let mirrors = mirrors(key, &d.mirror, &ports, has_all_ports, mistakes);
    let stateless = d.stateless.and_then(|form| form.checked(&format!("{key}.stateless"), mistakes));
    let forwarding = forwarding?;
    if openflow.packet_ins.quench.is_some() && forwarding.express_records == 0 {
        let problem = "packet-ins are quenched per path record; use express.enabled = true";
        mistakes.wrong(format!("{key}.openflow.packet_in.quench"), problem);
    }
    let (workers, device) = (workers?, device.flatten());
    let used = if device.is_some() { 0 } else { workers };
    note_and_adjust(&forwarding, &mut ports, used, notes);
    let datapath = Datapath {
        id: id?,
        tls: tls_of(d.tls.as_ref(), context, &openflow, pof.as_ref(), notes, mistakes),
        openflow,
        pof,
        forwarding,
        flows: d.flows.map(PathBuf::from),
        kept_rules: kept_rules(key, d.store, d.pof.is_some(), mistakes),
        stateless: stateless.map(Arc::new),
        searcher_cpu,
        device,
        ports,
        mirrors,
    };
    (mistakes.len() == before).then_some(datapath)
}

/// Adds notes on settings without effect, and removes limits that nothing enforces. `workers` is the number
/// of workers that should serve ports.
fn note_and_adjust(
    forwarding: &Forwarding,
    ports: &mut [ConfiguredPort],
    workers: usize,
    notes: &mut Vec<String>,
) {
    if forwarding.learning.is_some() && forwarding.lut_entries == 0 {
        notes.push("low_latency.learn has no effect on packets: ffp.enabled is false.".into());
    }
    if !forwarding.lanes.limits.is_on() {
        // Without lanes, only ports with egress queues limit the outstanding bytes.
        let unordered = ports.iter_mut().filter(|port| port.queues.is_empty());
        unordered.for_each(|port| port.outstanding_bytes = usize::MAX);
    }
    for worker in (0..workers).filter(|worker| !ports.iter().any(|p| p.workers.contains(worker))) {
        notes.push(format!("worker {worker} serves no port."));
    }
    if let Some(port) = ports.iter().find(|port| port.driver == port::af_xdp::NAME) {
        notes.push(format!(
            "port {}: af_xdp does not see VLAN tags that the device of a sender inserts or this device removes; `ethtool -K DEVICE txvlan off` at the sender and `rxvlan off` here disable these offloads.",
            port.name
        ));
    }
}

/// Checks that the port cache has no searcher of the simulator, and returns the CPU of the search worker's
/// thread.
fn searcher_cpu(
    d: &file::DatapathSection,
    context: &Context<'_>,
    notes: &mut Vec<String>,
    mistakes: &mut Mistakes,
) -> Option<usize> {
    let key = |name: &str| format!("{}.port_cache.{name}", context.key);
    if d.port_cache.is_simulated() {
        let problem = "\"lab\" and its service time are for scenarios of shunt sim; use searcher = \"inline\" or \"worker\"";
        mistakes.wrong(key("searcher"), problem);
    } else if d.port_cache.has_service() {
        mistakes.wrong(key("service"), "is the time of a search in scenarios of shunt sim; omit it");
    }
    if !d.port_cache.has_search_worker() {
        return None;
    }
    if d.port_cache.is_off() {
        let key = key("searcher");
        notes.push(format!("{key} has no effect while the port cache is off; set mode = \"nonblocking\"."));
    }
    let key = key("searcher_cpu");
    let cpu = mistakes.at(&key, in_range(d.port_cache.searcher_cpu()?, 0..=CPUS - 1))? as usize;
    let is_same = |worker: &WorkerConfig| worker.cpu == Some(cpu);
    if let Some(worker) = context.workers.unwrap_or_default().iter().position(is_same) {
        let problem =
            format!("{cpu} is the CPU of worker {worker}, which would wait for searches; use another CPU");
        mistakes.wrong(&key, problem);
        return None;
    }
    if let Some(note) = mistakes.at(&key, context.scope.cpu(cpu))? {
        notes.push(format!("{key}: {note}"));
    }
    Some(cpu)
}
