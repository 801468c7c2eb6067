// SPDX-License-Identifier: Apache-2.0
//! Checks of ports and their egress queues.

use crate::device::DeviceKind;
use crate::file;
use crate::forwarding::outstanding;
use crate::machine::Scope;
use crate::mistakes::Mistakes;
use crate::settings::ConfiguredPort;
use crate::storm::storm;
use crate::value::{in_range, port_name};
use crate::vlans::vlans;
use flow::{BridgePort, EgressQueue, Limits, PortNo, QueueId, port_no};
use std::ops::RangeInclusive;

/// Value of `driver` for a port without a device.
const NO_DRIVER: &str = "none";
/// Maximum of `mac_limit`: the number of addresses that a datapath can learn.
const MAC_LIMIT_MAX: i64 = model::ModelConfig::MACS as i64;
/// Values of `receive_ring`.
const RECEIVE_RING: RangeInclusive<i64> = 256..=65_536;
/// Problem of a setting for NORMAL of a device's port.
const NO_NORMAL: &str = "a device does not forward by NORMAL; omit it";

/// Settings of the daemon against which ports are checked.
pub struct Around {
    /// Number of workers, or `None` if it is unknown.
    pub workers: Option<usize>,
    /// Default of `outstanding_bytes`, in bytes.
    pub outstanding_bytes: usize,
    /// Extent of the checks beyond the file.
    pub scope: Scope,
    /// The device whose channels the ports are, if workers do not forward.
    pub device: Option<DeviceKind>,
}

/// Checks the ports of the datapath at `key`. Returns the ports without mistakes.
pub fn ports(
    key: &str,
    list: &[file::PortSection],
    around: &Around,
    mistakes: &mut Mistakes,
) -> Vec<ConfiguredPort> {
    if list.len() > Limits::PORTS {
        let problem = format!("there are {}; the maximum is {}", list.len(), Limits::PORTS);
        mistakes.wrong(format!("{key}.port"), problem);
        return Vec::new();
    }
    let mut ports = Vec::with_capacity(list.len());
    for (n, port_of_file) in list.iter().enumerate() {
        let key = format!("{key}.port[{n}]");
        let port = port(&key, port_of_file, around, mistakes);
        unlike(&key, port_of_file, &list[..n], mistakes);
        ports.extend(port);
    }
    ports
}

/// Checks that none of `others`, the ports before this one, has the same number, name or device.
fn unlike(key: &str, p: &file::PortSection, others: &[file::PortSection], mistakes: &mut Mistakes) {
    let at = |is_same: &dyn Fn(&file::PortSection) -> bool| others.iter().position(is_same);
    if let (Some(number), Some(m)) = (p.number, at(&|other| other.number == p.number)) {
        let problem = format!("{number} is also that of port[{m}]; give each port a different number");
        mistakes.wrong(format!("{key}.number"), problem);
    }
    if let (Some(name), Some(m)) = (&p.name, at(&|other| other.name == p.name)) {
        let problem = format!("\"{name}\" is also that of port[{m}]; give each port a different name");
        mistakes.wrong(format!("{key}.name"), problem);
    }
    let alone = |port: &file::PortSection| {
        port.driver.as_ref().is_some_and(|it| port::is_of_interfaces(it) || it == port::dpdk::NAME)
    };
    let same_device = |other: &file::PortSection| alone(other) && other.device == p.device;
    if let (Some(device), true, Some(m)) = (&p.device, alone(p), at(&same_device)) {
        let problem = format!(
            "\"{device}\" is also that of port[{m}]; give each port a different device; for speed, give a port several workers"
        );
        mistakes.wrong(format!("{key}.device"), problem);
    }
}

fn port(at: &str, p: &file::PortSection, around: &Around, mistakes: &mut Mistakes) -> Option<ConfiguredPort> {
    let key = |name: &str| format!("{at}.{name}");
    let most = around.device.map_or(port_no::MAX.0, |device| device.ports_max().into());
    let number = mistakes
        .needed(key("number"), p.number, "number = 1")
        .and_then(|number| mistakes.at(key("number"), in_range(number, 1..=i64::from(most))));
    let name = mistakes.needed(key("name"), p.name.clone(), "name = \"p1\"");
    let name = name.filter(|name| mistakes.at(key("name"), port_name(name)).is_some());
    if let Some(device) = around.device {
        refuse_of_workers(at, p, device, mistakes);
    }
    let is_bare = around.device.is_none() && has_no_device(p);
    if is_bare {
        refuse_without_device(at, p, mistakes);
    }
    if is_bare || matches!(around.device, Some(DeviceKind::Udp { .. })) {
        return Some(ConfiguredPort {
            number: PortNo(number? as u32),
            name: name?,
            driver: String::new(),
            device: String::new(),
            workers: Vec::new(),
            outstanding_bytes: usize::MAX,
            receive_ring: None,
            queues: Vec::new(),
            bridge: BridgePort::default(),
        });
    }
    let known = mistakes.needed(key("driver"), p.driver.clone(), "driver = \"af_packet\"");
    let known = known.filter(|name| mistakes.at(key("driver"), driver(name)).is_some());
    let device = mistakes.needed(key("device"), p.device.clone(), "device = \"veth1\"");
    let device = device.filter(|device| {
        let problem = "is empty; name the device, such as \"veth1\" for af_packet";
        mistakes.at(key("device"), if device.is_empty() { Err(problem.to_owned()) } else { Ok(()) }).is_some()
    });
    let workers = match around.device {
        // The simulated device serves one queue.
        Some(_) => Some(vec![0]),
        None => {
            let workers = mistakes.needed(key("workers"), p.workers.as_ref(), "workers = [0]");
            workers.and_then(|list| mistakes.at(key("workers"), serving(list, around.workers)))
        }
    };
    let outstanding_bytes = match around.device {
        Some(_) => Some(usize::MAX),
        None => outstanding(at, p.outstanding_bytes, around.outstanding_bytes, mistakes),
    };
    let receive_ring =
        receive_ring(p).map_or(Some(None), |ring| mistakes.at(key("receive_ring"), ring).map(Some));
    let queues = queues(&key("queue"), &p.queue, mistakes);
    let vlans = vlans(at, p, mistakes);
    let storm = storm(&key("storm"), &p.storm, mistakes);
    let mac_limit = p.mac_limit.map(|limit| {
        mistakes.at(key("mac_limit"), in_range(limit, 1..=MAC_LIMIT_MAX)).map(|limit| limit as u32)
    });
    let port = ConfiguredPort {
        number: PortNo(number? as u32),
        name: name?,
        driver: known?,
        device: device?,
        workers: workers?,
        outstanding_bytes: outstanding_bytes?,
        receive_ring: receive_ring?,
        queues,
        bridge: BridgePort {
            vlans: vlans?,
            storm: storm?,
            mac_limit: mac_limit.map_or(Some(None), |limit| limit.map(Some))?,
        },
    };
    around.scope.port(at, &port, mistakes);
    Some(port)
}

/// Returns whether no device carries the packets of a port.
pub(crate) fn has_no_device(p: &file::PortSection) -> bool {
    p.driver.as_deref() == Some(NO_DRIVER)
}

/// Reports the settings of a port without a device that need one.
fn refuse_without_device(at: &str, p: &file::PortSection, mistakes: &mut Mistakes) {
    let settings = [
        ("device", p.device.is_some()),
        ("workers", p.workers.is_some()),
        ("outstanding_bytes", p.outstanding_bytes.is_some()),
        ("receive_ring", p.receive_ring.is_some()),
        ("queue", !p.queue.is_empty()),
        ("vlan_mode", p.vlan_mode.is_some()),
        ("tag", p.tag.is_some()),
        ("trunks", p.trunks.is_some()),
        ("storm", p.storm != file::StormSection::default()),
        ("mac_limit", p.mac_limit.is_some()),
    ];
    for (name, _) in settings.iter().filter(|(_, is_given)| *is_given) {
        mistakes.wrong(
            format!("{at}.{name}"),
            "a port with driver = \"none\" carries no packets; omit it, or name another driver",
        );
    }
}

/// Reports the settings of a port that need workers.
fn refuse_of_workers(at: &str, p: &file::PortSection, device: DeviceKind, mistakes: &mut Mistakes) {
    let has_channels = matches!(device, DeviceKind::Udp { .. });
    let settings = [
        ("driver", p.driver.is_some() && has_channels, "the device has its own channels; omit it"),
        ("device", p.device.is_some() && has_channels, "the device has its own channels; omit it"),
        ("workers", p.workers.is_some(), "a device forwards the packets, and no worker; omit it"),
        ("outstanding_bytes", p.outstanding_bytes.is_some(), "a device has no such limit; omit it"),
        (
            "receive_ring",
            p.receive_ring.is_some() && has_channels,
            "the device has its own channels; omit it",
        ),
        ("queue", !p.queue.is_empty(), "a device has no egress queues; omit it"),
        ("vlan_mode", p.vlan_mode.is_some(), NO_NORMAL),
        ("tag", p.tag.is_some(), NO_NORMAL),
        ("trunks", p.trunks.is_some(), NO_NORMAL),
        ("storm", p.storm != file::StormSection::default(), NO_NORMAL),
        ("mac_limit", p.mac_limit.is_some(), NO_NORMAL),
    ];
    for (name, _, problem) in settings.iter().filter(|(_, is_given, _)| *is_given) {
        mistakes.wrong(format!("{at}.{name}"), *problem);
    }
}

/// Reads `receive_ring`, the number of packets. Returns `None` if it is not given.
fn receive_ring(p: &file::PortSection) -> Option<Result<usize, String>> {
    let packets = p.receive_ring?;
    Some(match p.driver.as_deref() {
        Some(name) if name != port::af_packet::NAME && driver(name).is_ok() => {
            Err(format!("only the driver {} has such rings; omit it", port::af_packet::NAME))
        }
        _ => in_range(packets, RECEIVE_RING).map(|packets| packets as usize),
    })
}

/// Checks the workers that serve a port. The number of workers may be unknown.
fn serving(list: &[i64], workers: Option<usize>) -> Result<Vec<usize>, String> {
    if list.is_empty() {
        return Err("is empty, so no worker would serve the port; name a worker, such as [0]".to_owned());
    }
    let mut serving = Vec::with_capacity(list.len());
    for worker in list {
        let number = usize::try_from(*worker).ok().filter(|&number| workers.is_none_or(|most| number < most));
        let number = number.ok_or_else(|| match workers {
            Some(1) => format!("there is no worker {worker}; the only one is 0"),
            Some(count) => format!("there is no worker {worker}; use 0 to {}", count.saturating_sub(1)),
            None => format!("there is no worker {worker}; use 0 or more"),
        })?;
        if serving.contains(&number) {
            return Err(format!("worker {number} is named twice; name each once"));
        }
        serving.push(number);
    }
    Ok(serving)
}

/// Checks the egress queues of a port. Returns the queues without mistakes.
fn queues(key: &str, list: &[file::QueueSection], mistakes: &mut Mistakes) -> Vec<EgressQueue> {
    let mut queues: Vec<EgressQueue> = Vec::with_capacity(list.len());
    for (n, of_file) in list.iter().enumerate() {
        let same = |other: &file::QueueSection| other.id.is_some() && other.id == of_file.id;
        let key = format!("{key}[{n}]");
        let queue = queue(&key, of_file, mistakes);
        if let (Some(id), Some(other)) = (of_file.id, list[..n].iter().position(same)) {
            let problem = format!("{id} is also that of queue[{other}]; give each queue a different id");
            mistakes.wrong(format!("{key}.id"), problem);
        }
        queues.extend(queue);
    }
    queues
}

fn queue(at: &str, queue: &file::QueueSection, mistakes: &mut Mistakes) -> Option<EgressQueue> {
    let key = |name: &str| format!("{at}.{name}");
    let mut number = |name: &str, value, range| mistakes.at(key(name), in_range(value, range));
    let rates = 1..=i64::from(EgressQueue::RATE_MAX_KBPS);
    let min_rate_kbps = queue.min_rate_kbps.map(|kbps| number("min_rate_kbps", kbps, rates.clone()));
    let max_rate_kbps = queue.max_rate_kbps.map(|kbps| number("max_rate_kbps", kbps, rates));
    let priority = number("priority", queue.priority.unwrap_or(0), 0..=EgressQueue::PRIORITY_MAX.into());
    let frames = queue.limit_frames.unwrap_or(EgressQueue::FRAMES.into());
    let limit_frames = number("limit_frames", frames, 1..=EgressQueue::FRAMES_MAX.into());
    if let (Some(Some(min)), Some(Some(max))) = (min_rate_kbps, max_rate_kbps)
        && min > max
    {
        let problem = format!("{min} is more than the queue's max_rate_kbps; use 1 to {max}");
        mistakes.wrong(key("min_rate_kbps"), problem);
    }
    let id = mistakes
        .needed(key("id"), queue.id, "id = 1")
        .and_then(|id| mistakes.at(key("id"), in_range(id, 0..=EgressQueue::ID_MAX.0.into())));
    // A missing rate is valid, but a rate out of range is not.
    let rate = |kbps: Option<Option<u64>>| kbps.map_or(Some(None), |kbps| kbps.map(|kbps| Some(kbps as u32)));
    Some(EgressQueue {
        id: QueueId(id? as u32),
        min_rate_kbps: rate(min_rate_kbps)?,
        max_rate_kbps: rate(max_rate_kbps)?,
        priority: priority? as u8,
        limit_frames: limit_frames? as u16,
    })
}

fn driver(name: &str) -> Result<(), String> {
    let known = || {
        let drivers = port::DRIVERS.iter().map(|driver| driver.name).chain([NO_DRIVER]);
        drivers.map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ")
    };
    if port::DRIVERS.iter().any(|driver| driver.name == name) {
        Ok(())
    } else if name == "rtl" {
        Err(format!(
            "there is no driver \"rtl\"; use [datapath.device] for a device, and here one of {}",
            known()
        ))
    } else {
        Err(format!("there is no driver \"{name}\"; use one of {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    /// A file with two datapaths, of which the second one has these ports.
    fn file(worker: &str, ports: &str) -> String {
        format!(
            "control = \"/tmp/a.sock\"\n{worker}\n[[datapath]]\nid = 1\n\
             [[datapath.port]]\nnumber = 1\nname = \"p1\"\ndriver = \"none\"\n\
             [[datapath]]\nid = 2\ncontrol = \"/tmp/b.sock\"\n{ports}"
        )
    }

    fn ports(of_second: &str) -> String {
        format!("[[datapath.port]]\nnumber = 1\nname = \"p1\"\ndriver = \"none\"\n{of_second}")
    }

    /// The mistakes in a file.
    fn problems(text: &str) -> String {
        let mistakes = Config::parse_all(text).unwrap_err();
        mistakes.iter().map(|mistake| format!("{mistake}\n")).collect()
    }

    #[test]
    fn datapaths_without_devices_need_no_workers() {
        let configs = Config::parse_all(&file("", &ports(""))).unwrap();
        assert!(configs.iter().all(|config| config.workers.is_empty()));
        let port = &configs[1].datapath.ports[0];
        assert_eq!((port.driver.as_str(), port.workers.len()), ("", 0));
        // With a port that has a device, the second datapath needs the worker, and the first does not.
        let mixed = ports(
            "[[datapath.port]]\nnumber = 2\nname = \"p2\"\ndriver = \"mem\"\ndevice = \"null\"\nworkers = [0]\n",
        );
        let configs = Config::parse_all(&file("[[worker]]", &mixed)).unwrap();
        let workers: Vec<_> = configs.iter().map(|config| config.workers.len()).collect();
        assert_eq!(workers, [0, 1]);
        let text = problems(&file("", &mixed));
        assert!(text.contains("worker: there is none"), "{text}");
        // A controller may send packets through the tables of a datapath without ports.
        let text = problems(&file("", ""));
        assert!(text.contains("worker: there is none"), "{text}");
        assert_eq!(Config::parse_all(&file("[[worker]]", "")).unwrap()[1].workers.len(), 1);
    }

    #[test]
    fn a_port_without_a_device_has_no_settings_of_one() {
        for setting in [
            "device = \"veth1\"",
            "workers = [0]",
            "outstanding_bytes = 0",
            "receive_ring = 256",
            "[[datapath.port.queue]]\nid = 1",
        ] {
            let text = problems(&file("[[worker]]", &ports(setting)));
            assert!(text.contains("driver = \"none\" carries no packets"), "{setting}: {text}");
        }
    }

    #[test]
    fn receive_rings_have_a_size_and_need_sockets() {
        let port = |driver: &str, setting: &str| {
            file(
                "[[worker]]",
                &format!(
                    "[[datapath.port]]\nnumber = 1\nname = \"p1\"\ndriver = \"{driver}\"\ndevice = \"null\"\n\
                     workers = [0]\n{setting}"
                ),
            )
        };
        let ring = |setting: &str| {
            let configs = Config::parse_all(&port("af_packet", setting)).unwrap();
            let port = &configs[1].datapath.ports[0];
            assert_eq!(port.receive_ring, port.spec().receive_ring);
            port.receive_ring
        };
        assert_eq!(ring(""), None);
        assert_eq!(
            ["256", "5000", "65536"].map(|n| ring(&format!("receive_ring = {n}"))),
            [256, 5000, 65_536].map(Some)
        );
        for wrong in [-1, 0, 255, 65_537] {
            let text = problems(&port("af_packet", &format!("receive_ring = {wrong}")));
            assert!(
                text.contains(&format!("receive_ring: {wrong} is out of range; use 256 to 65536")),
                "{text}"
            );
        }
        let text = problems(&port("af_packet", "receive_ring = \"256\""));
        assert!(text.contains("an integer is needed; write receive_ring = 16384"), "{text}");
        let text = problems(&port("mem", "receive_ring = 256"));
        assert!(text.contains("receive_ring: only the driver af_packet has such rings"), "{text}");
        let text = problems(&port("af_paket", "receive_ring = 256"));
        assert!(text.contains("there is no driver") && !text.contains("such rings"), "{text}");
    }

    #[test]
    fn a_file_has_at_most_1024_datapaths() {
        let file = |count: usize| -> String {
            let datapath =
                |n: usize| format!("[[datapath]]\nid = {n}\ncontrol = \"/tmp/{n}.sock\"\n{}", ports(""));
            (1..=count).map(datapath).collect()
        };
        assert_eq!(Config::parse_all(&file(1_024)).unwrap().len(), 1_024);
        let text = problems(&file(1_025));
        assert!(text.contains("there are 1025; the maximum is 1024"), "{text}");
    }
}
