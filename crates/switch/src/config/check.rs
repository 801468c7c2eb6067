// SPDX-License-Identifier: Apache-2.0
//! What the file says, checked against itself and against what this build has.

use super::endpoint::{controller, listen_address, socket_path};
use super::file::{self, File};
use super::value::{cookie, duration, in_range, port_name};
use super::{
    Config, DEFAULT_CONTROL, Datapath, Endpoint, Forwarding, Idle, Mistake, OpenFlow, PortConfig,
    WorkerConfig,
};
use flow::{EgressQueue, Limits, Nanos, port_no};
use model::Learning;
use pipeline::{BURST, LaneLimits};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use worker::{Consistency, Quanta};

/// Drivers of the contract that come later.
const LATER_DRIVERS: [&str; 1] = ["rtl"];
/// Packet buffers of a port of DPDK.
const MBUFS: RangeInclusive<i64> = 64..=16_777_216;
/// The MTU of one: from what IPv4 needs to what a large frame holds.
const MTU: RangeInclusive<i64> = 68..=65_500;
/// Workers of one daemon.
const WORKERS: usize = 64;
/// Datapaths of one daemon.
const DATAPATHS: usize = 256;
/// Controllers of one datapath, and addresses that it listens on.
const ENDPOINTS: usize = 16;
/// Windows over which rates are taken for learning: from 100 ms to 1 hour.
const LEARN_WINDOWS_NS: RangeInclusive<Nanos> = 100_000_000..=3_600_000_000_000;
/// Numbers of CPUs that Linux can have.
const CPUS: i64 = 8_192;

pub(crate) fn at<T>(key: impl Into<String>, result: Result<T, String>) -> Result<T, Mistake> {
    result.map_err(|problem| wrong(key, problem))
}

pub(crate) fn wrong(key: impl Into<String>, problem: impl Into<String>) -> Mistake {
    Mistake { line: None, key: key.into(), problem: problem.into() }
}

pub fn configs(file: File) -> Result<Vec<Config>, Mistake> {
    let File { control, simd, dpdk: dpdk_of, worker, datapath: datapaths } = file;
    let portable = match simd.as_deref() {
        None | Some("auto") => false,
        Some("portable") => true,
        Some(other) => {
            return Err(wrong("simd", format!("\"{other}\" is unknown; use \"auto\" or \"portable\"")));
        }
    };
    let has_dpdk = dpdk_of.is_some();
    let dpdk = dpdk(dpdk_of)?;
    let workers = workers(&worker)?;
    let count = datapaths.len();
    if count == 0 {
        return Err(wrong("datapath", "there is none; add [[datapath]] with an id and ports"));
    }
    if count > DATAPATHS {
        return Err(wrong("datapath", format!("there are {count}; {DATAPATHS} is the most")));
    }
    let mut made: Vec<Config> = Vec::with_capacity(count);
    for (n, d) in datapaths.into_iter().enumerate() {
        let numbered = |mistake| if count == 1 { mistake } else { of_datapath(n, mistake) };
        let control = socket(n, d.control.as_deref(), control.as_deref())?;
        let mut notes = Vec::new();
        let datapath = datapath(d, workers.len(), &control, &mut notes).map_err(numbered)?;
        let one = Config { control, portable, dpdk: dpdk.clone(), workers: workers.clone(), datapath, notes };
        made.iter().try_for_each(|other| apart(other, &one)).map_err(numbered)?;
        made.push(one);
    }
    let uses_dpdk =
        |config: &&Config| config.datapath.ports.iter().any(|port| port.driver == port::dpdk::NAME);
    match made.iter().filter(uses_dpdk).count() {
        0 if has_dpdk => {
            made[0].notes.push("[dpdk] has no effect: no port has the driver \"dpdk\".".to_owned());
        }
        0 | 1 => {}
        _ => return Err(wrong("datapath", "only one datapath of a daemon can have dpdk ports")),
    }
    if count > 1 {
        made.iter_mut().for_each(keep_used_workers);
    }
    Ok(made)
}

/// A mistake in one of several datapaths.
fn of_datapath(n: usize, mistake: Mistake) -> Mistake {
    let key = match mistake.key.strip_prefix("datapath") {
        Some(rest) => format!("datapath[{n}]{rest}"),
        None => mistake.key,
    };
    Mistake { key, ..mistake }
}

/// A datapath's control socket. The first one's may be the file's.
fn socket(n: usize, own: Option<&str>, file: Option<&str>) -> Result<PathBuf, Mistake> {
    let key = format!("datapath[{n}].control");
    match own {
        Some(path) => at(key, socket_path(path, DEFAULT_CONTROL)),
        None if n == 0 => at("control", socket_path(file.unwrap_or(DEFAULT_CONTROL), DEFAULT_CONTROL)),
        None => Err(wrong(
            key,
            "is missing: each further datapath needs a socket of its own, such as \"/run/shunt/s2.sock\"",
        )),
    }
}

/// Whether two datapaths can run beside each other.
fn apart(one: &Config, other: &Config) -> Result<(), Mistake> {
    let id = other.datapath.id;
    if one.datapath.id == id {
        return Err(wrong("datapath.id", format!("{id} is another datapath's too; number each differently")));
    }
    if one.control == other.control {
        let problem = format!("\"{}\" is another datapath's too; name each once", other.control.display());
        return Err(wrong("datapath.control", problem));
    }
    let listens = &other.datapath.openflow.listen;
    if let Some(twice) = listens.iter().find(|it| one.datapath.openflow.listen.contains(it)) {
        return Err(wrong("datapath.openflow.listen", format!("\"{twice}\" is another datapath's too")));
    }
    let alone = |port: &&PortConfig| port::is_of_interfaces(&port.driver) || port.driver == port::dpdk::NAME;
    for port in other.datapath.ports.iter().filter(alone) {
        if one.datapath.ports.iter().filter(alone).any(|it| it.device == port.device) {
            let problem = format!(
                "\"{}\" is another datapath's too; datapaths are linked by pairs of interfaces, one end each",
                port.device
            );
            return Err(wrong("datapath.port", problem));
        }
    }
    Ok(())
}

/// Of several datapaths each has the workers that its ports name: threads of its own, at the CPUs and with the habits that
/// the file says.
fn keep_used_workers(config: &mut Config) {
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
    // One without ports has a worker all the same: it may be given packets by a controller.
    config.workers = if kept.is_empty() { config.workers[..1].to_vec() } else { kept };
    config.notes.retain(|note| !note.ends_with("serves no port."));
}

fn dpdk(section: Option<file::Dpdk>) -> Result<port::dpdk::Settings, Mistake> {
    let default = port::dpdk::Settings::default();
    let Some(file::Dpdk { eal, mbufs, mtu }) = section else { return Ok(default) };
    let number = |name: &str, value: Option<i64>, range| match value {
        Some(value) => at(format!("dpdk.{name}"), in_range(value, range)).map(Some),
        None => Ok(None),
    };
    Ok(port::dpdk::Settings {
        eal: eal.unwrap_or(default.eal),
        mbufs: number("mbufs", mbufs, MBUFS)?.map_or(default.mbufs, |mbufs| mbufs as u32),
        mtu: number("mtu", mtu, MTU)?.map_or(default.mtu, |mtu| mtu as u16),
    })
}

fn workers(list: &[file::Worker]) -> Result<Vec<WorkerConfig>, Mistake> {
    if list.is_empty() {
        return Err(wrong(
            "worker",
            "there is none, so nothing would be forwarded; add [[worker]] with a cpu",
        ));
    }
    if list.len() > WORKERS {
        return Err(wrong("worker", format!("there are {}; {WORKERS} is the most", list.len())));
    }
    let one = |(n, worker): (usize, &file::Worker)| {
        let cpu = match worker.cpu {
            Some(cpu) => Some(at(format!("worker[{n}].cpu"), in_range(cpu, 0..=CPUS - 1))? as usize),
            None => None,
        };
        let idle = match worker.idle.as_deref() {
            None | Some("adaptive") => Idle::Adaptive,
            Some("busy") => Idle::Busy,
            Some(other) => {
                let problem = format!("\"{other}\" is unknown; use \"adaptive\" or \"busy\"");
                return Err(wrong(format!("worker[{n}].idle"), problem));
            }
        };
        Ok(WorkerConfig { cpu, idle })
    };
    list.iter().enumerate().map(one).collect()
}

fn datapath(
    d: file::Datapath,
    workers: usize,
    control: &Path,
    notes: &mut Vec<String>,
) -> Result<Datapath, Mistake> {
    let id = at("datapath.id", in_range(d.id, 1..=i64::MAX))?;
    let openflow = openflow(&d.openflow, control, notes)?;
    let forwarding = forwarding(&d.low_latency, &d.ffp, &d.lanes, &d.port_cache)?;
    let Forwarding { low_latency_cookie, learning, lut_entries, consistency, lanes, outstanding_bytes } =
        forwarding;
    if learning.is_some() && lut_entries == 0 {
        notes.push("low_latency.learn has no effect on packets: ffp.enabled is false.".into());
    }
    let mut ports = ports(d.port, workers, outstanding_bytes)?;
    if !lanes.0.is_on() {
        // Frames leave in the order in which they came, but where queues choose.
        let unordered = ports.iter_mut().filter(|port| port.queues.is_empty());
        unordered.for_each(|port| port.outstanding_bytes = usize::MAX);
    }
    for worker in (0..workers).filter(|worker| !ports.iter().any(|p| p.workers.contains(worker))) {
        notes.push(format!("worker {worker} serves no port."));
    }
    if let Some(port) = ports.iter().find(|port| port.driver == port::af_xdp::NAME) {
        notes.push(format!(
            "port {}: af_xdp does not see VLAN tags that a sender leaves to its device, or that the device takes off; \
             `ethtool -K DEVICE txvlan off` there, or rxvlan, lets them be.",
            port.name
        ));
    }
    let stateless = d.stateless.map(|lane| lane.read()).transpose().map_err(|(key, problem)| {
        let dot = if key.is_empty() { "" } else { "." };
        wrong(format!("datapath.stateless{dot}{key}"), problem)
    })?;
    Ok(Datapath {
        id,
        openflow,
        low_latency_cookie,
        learning,
        lut_entries,
        consistency,
        lanes,
        flows: d.flows.map(PathBuf::from),
        stateless: stateless.map(Arc::new),
        ports,
    })
}

/// What is said of a datapath's forwarding.
pub(crate) fn forwarding(
    low_latency: &file::LowLatency,
    ffp: &file::Ffp,
    waiting: &file::Lanes,
    port_cache: &file::PortCache,
) -> Result<Forwarding, Mistake> {
    let low_latency_cookie = match &low_latency.cookie {
        Some(text) => Some(at("datapath.low_latency.cookie", cookie(text))?),
        None => None,
    };
    let consistency = match &ffp.consistency {
        Some(text) => at("datapath.ffp.consistency", text.parse())?,
        None => Consistency::default(),
    };
    Ok(Forwarding {
        low_latency_cookie,
        learning: learning(&low_latency.learn)?,
        lut_entries: fast_paths(ffp, port_cache)?,
        consistency,
        lanes: lanes(waiting)?,
        outstanding_bytes: outstanding("datapath.lanes", waiting.outstanding_bytes, OUTSTANDING_BYTES)?,
    })
}

fn openflow(o: &file::OpenFlow, control: &Path, notes: &mut Vec<String>) -> Result<OpenFlow, Mistake> {
    let controllers = endpoints("controllers", &o.controllers, controller)?;
    let listen = endpoints("listen", &o.listen, listen_address)?;
    if listen.contains(&Endpoint::Unix(control.into())) {
        let problem =
            format!("\"unix:{}\" is the control socket; use another path for OpenFlow", control.display());
        return Err(wrong("datapath.openflow.listen", problem));
    }
    let standalone = match o.fail_mode.as_deref() {
        Some("standalone") => true,
        None | Some("secure") => false,
        Some(other) => {
            let problem = format!("\"{other}\" is unknown; use \"secure\" or \"standalone\"");
            return Err(wrong("datapath.openflow.fail_mode", problem));
        }
    };
    if o.fail_mode.as_deref() == Some("secure") && controllers.is_empty() {
        notes.push(
            "fail_mode = \"secure\" has no effect: without controllers the datapath learns MACs.".into(),
        );
    }
    Ok(OpenFlow { standalone: standalone || controllers.is_empty(), controllers, listen })
}

/// A list of different ends of connections.
fn endpoints(
    name: &str,
    texts: &[String],
    read: fn(&str) -> Result<Endpoint, String>,
) -> Result<Vec<Endpoint>, Mistake> {
    let key = format!("datapath.openflow.{name}");
    if texts.len() > ENDPOINTS {
        return Err(wrong(key, format!("there are {}; {ENDPOINTS} is the most", texts.len())));
    }
    let mut all = Vec::with_capacity(texts.len());
    for (n, text) in texts.iter().enumerate() {
        let key = format!("{key}[{n}]");
        let endpoint = at(key.clone(), read(text))?;
        if all.contains(&endpoint) {
            return Err(wrong(key, format!("\"{text}\" is there twice; name each once")));
        }
        all.push(endpoint);
    }
    Ok(all)
}

fn learning(l: &file::Learn) -> Result<Option<Learning>, Mistake> {
    let key = |name: &str| format!("datapath.low_latency.learn.{name}");
    let min_pps = at(key("min_pps"), in_range(l.min_pps.unwrap_or(1_000), 1..=1_000_000_000))?;
    let window = at(key("window"), duration(l.window.as_deref().unwrap_or("5s")))?;
    let min_timeout = at(key("min_timeout"), duration(l.min_timeout.as_deref().unwrap_or("10m")))?;
    if !LEARN_WINDOWS_NS.contains(&window) {
        let problem = "is the time over which a rate is taken; use \"100ms\" to \"1h\", such as \"5s\"";
        return Err(wrong(key("window"), problem));
    }
    Ok(l.enabled.then_some(Learning { min_pps, window, min_timeout }))
}

/// What may wait in a worker, and how much of it is worked off at once.
fn lanes(l: &file::Lanes) -> Result<(LaneLimits, Quanta), Mistake> {
    let number = |name: &str, value: Option<i64>, default: usize, range| {
        let value = value.unwrap_or(default as i64);
        at(format!("datapath.lanes.{name}"), in_range(value, range))
    };
    let packets = |name, value, default: u16| {
        number(name, value, default.into(), 0..=i64::from(LaneLimits::MAX)).map(|value| value as u16)
    };
    let quantum =
        |name, value, default| number(name, value, default, 1..=BURST as i64).map(|value| value as usize);
    let limits = LaneLimits {
        normal: packets("normal", l.normal, LaneLimits::USUAL.normal)?,
        unknown: packets("unknown", l.unknown, LaneLimits::USUAL.unknown)?,
        hold: packets("hold", l.hold, LaneLimits::USUAL.hold)?,
    };
    let quiet_ns = match &l.quiet {
        Some(text) => at("datapath.lanes.quiet", duration(text).and_then(quiet_range))?,
        None => Quanta::DEFAULT.quiet_ns,
    };
    let quanta = Quanta {
        small: quantum("small_quantum", l.small_quantum, Quanta::DEFAULT.small)?,
        large: quantum("large_quantum", l.large_quantum, Quanta::DEFAULT.large)?,
        quiet_ns,
    };
    Ok((if l.enabled.unwrap_or(true) { limits } else { LaneLimits::NONE }, quanta))
}

/// Bytes outstanding at a device before normal frames wait, unless it is said. A device of 10 Gbit/s is busy with them for
/// 0.1 ms: longer than it takes to tell that it has sent them.
const OUTSTANDING_BYTES: usize = 256 * 1024;

/// More than a socket's buffer holds: no limit.
const OUTSTANDING_MAX_BYTES: i64 = 16 * 1024 * 1024;

fn outstanding(table: &str, bytes: Option<i64>, default: usize) -> Result<usize, Mistake> {
    let bytes = bytes.unwrap_or(default as i64);
    at(format!("{table}.outstanding_bytes"), in_range(bytes, 0..=OUTSTANDING_MAX_BYTES))
        .map(|bytes| bytes as usize)
}

/// Longer than that, quanta would be small for ever.
const QUIET_MAX_NS: Nanos = 1_000_000_000;

fn quiet_range(quiet_ns: Nanos) -> Result<Nanos, String> {
    match quiet_ns {
        ..=QUIET_MAX_NS => Ok(quiet_ns),
        _ => Err("is a time without low-latency packets; use \"0us\" to \"1s\"".to_owned()),
    }
}

/// Records of a LUT; 0 without the fast-forwarding path.
fn fast_paths(ffp: &file::Ffp, cache: &file::PortCache) -> Result<usize, Mistake> {
    let key = |name: &str| format!("datapath.port_cache.{name}");
    let lut_entries =
        at("datapath.ffp.lut_entries", in_range(ffp.lut_entries.unwrap_or(4_096), 64..=65_536))?;
    at(key("entries"), in_range(cache.entries.unwrap_or(64), 1..=65_536))?;
    at(key("queue"), in_range(cache.queue.unwrap_or(64), 1..=65_536))?;
    match cache.mode.as_deref() {
        None | Some("off") => Ok(if ffp.enabled.unwrap_or(true) { lut_entries as usize } else { 0 }),
        Some("nonblocking" | "blocking") => {
            Err(wrong(key("mode"), "this build has no port cache yet; use mode = \"off\""))
        }
        Some(other) => {
            let problem = format!("\"{other}\" is unknown; use \"off\", \"nonblocking\" or \"blocking\"");
            Err(wrong(key("mode"), problem))
        }
    }
}

fn ports(list: Vec<file::Port>, workers: usize, outstanding: usize) -> Result<Vec<PortConfig>, Mistake> {
    if list.len() > Limits::PORTS {
        return Err(wrong(
            "datapath.port",
            format!("there are {}; {} is the most", list.len(), Limits::PORTS),
        ));
    }
    let mut ports: Vec<PortConfig> = Vec::with_capacity(list.len());
    for (n, p) in list.into_iter().enumerate() {
        let port = port(n, p, workers, outstanding)?;
        let key = |name: &str| format!("datapath.port[{n}].{name}");
        for (m, other) in ports.iter().enumerate() {
            if other.number == port.number {
                let problem =
                    format!("{} is port[{m}]'s too; give each port a number of its own", port.number);
                return Err(wrong(key("number"), problem));
            }
            if other.name == port.name {
                let problem =
                    format!("\"{}\" is port[{m}]'s too; give each port a name of its own", port.name);
                return Err(wrong(key("name"), problem));
            }
            let alone = |driver: &String| port::is_of_interfaces(driver) || driver == port::dpdk::NAME;
            if other.device == port.device && [&port.driver, &other.driver].into_iter().all(alone) {
                let problem = format!(
                    "\"{}\" is port[{m}]'s too; give each port a device of its own, and more workers to one for speed",
                    port.device
                );
                return Err(wrong(key("device"), problem));
            }
        }
        ports.push(port);
    }
    Ok(ports)
}

fn port(n: usize, p: file::Port, workers: usize, default: usize) -> Result<PortConfig, Mistake> {
    let key = |name: &str| format!("datapath.port[{n}].{name}");
    let number = at(key("number"), in_range(p.number, 1..=i64::from(port_no::MAX)))? as flow::PortNo;
    at(key("name"), port_name(&p.name))?;
    driver(&p.driver).map_err(|problem| wrong(key("driver"), problem))?;
    if p.device.is_empty() {
        return Err(wrong(key("device"), "is empty; name the device, such as \"veth1\" for af_packet"));
    }
    if p.workers.is_empty() {
        return Err(wrong(
            key("workers"),
            "is empty, so nobody would serve the port; name a worker, such as [0]",
        ));
    }
    let mut serving = Vec::with_capacity(p.workers.len());
    for worker in p.workers {
        let number = usize::try_from(worker).ok().filter(|&number| number < workers).ok_or_else(|| {
            let problem = match workers {
                1 => format!("there is no worker {worker}; the only one is 0"),
                _ => format!("there is no worker {worker}; use 0 to {}", workers - 1),
            };
            wrong(key("workers"), problem)
        })?;
        if serving.contains(&number) {
            return Err(wrong(key("workers"), format!("worker {number} is named twice; name each once")));
        }
        serving.push(number);
    }
    let outstanding_bytes = outstanding(&format!("datapath.port[{n}]"), p.outstanding_bytes, default)?;
    Ok(PortConfig {
        number,
        name: p.name,
        driver: p.driver,
        device: p.device,
        workers: serving,
        outstanding_bytes,
        queues: queues(&format!("datapath.port[{n}].queue"), &p.queue)?,
    })
}

/// A port's egress queues.
fn queues(key: &str, list: &[file::Queue]) -> Result<Vec<EgressQueue>, Mistake> {
    let mut queues: Vec<EgressQueue> = Vec::with_capacity(list.len());
    for (n, queue) in list.iter().enumerate() {
        let key = |name: &str| format!("{key}[{n}].{name}");
        let number = |name, value, range| at(key(name), in_range(value, range));
        let rate = |name, value: Option<i64>| match value {
            Some(kbps) => {
                number(name, kbps, 1..=EgressQueue::RATE_MAX_KBPS.into()).map(|kbps| Some(kbps as u32))
            }
            None => Ok(None),
        };
        let id = number("id", queue.id, 0..=EgressQueue::ID_MAX.into())? as u32;
        if let Some(other) = queues.iter().position(|queue| queue.id == id) {
            return Err(wrong(
                key("id"),
                format!("{id} is queue[{other}]'s too; number each queue differently"),
            ));
        }
        let min_rate_kbps = rate("min_rate_kbps", queue.min_rate_kbps)?;
        let max_rate_kbps = rate("max_rate_kbps", queue.max_rate_kbps)?;
        if let (Some(min), Some(max)) = (min_rate_kbps, max_rate_kbps)
            && min > max
        {
            let problem = format!("{min} is more than the queue's max_rate_kbps; use 1 to {max}");
            return Err(wrong(key("min_rate_kbps"), problem));
        }
        let priority =
            number("priority", queue.priority.unwrap_or(0), 0..=EgressQueue::PRIORITY_MAX.into())? as u8;
        let frames = queue.limit_frames.unwrap_or(EgressQueue::FRAMES.into());
        let limit_frames = number("limit_frames", frames, 1..=EgressQueue::FRAMES_MAX.into())? as u16;
        queues.push(EgressQueue { id, min_rate_kbps, max_rate_kbps, priority, limit_frames });
    }
    Ok(queues)
}

fn driver(name: &str) -> Result<(), String> {
    let known =
        || port::DRIVERS.iter().map(|driver| format!("\"{}\"", driver.name)).collect::<Vec<_>>().join(", ");
    if port::DRIVERS.iter().any(|driver| driver.name == name) {
        Ok(())
    } else if LATER_DRIVERS.contains(&name) {
        Err(format!("the driver \"{name}\" is not in this build yet; use one of {}", known()))
    } else {
        Err(format!("there is no driver \"{name}\"; use one of {}", known()))
    }
}
