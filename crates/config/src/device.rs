// SPDX-License-Identifier: Apache-2.0
//! Settings of a datapath that forwards in a device.
//!
//! Begin with [`device`]. [`check_others`] reports settings that need workers.

use crate::address::AddressError;
use crate::file::{
    DatapathSection, DeviceSection, ExpressSection, FfpSection, LanesSection, LowLatencySection,
    PortCacheSection,
};
use crate::machine::Scope;
use crate::mistakes::Mistakes;
use crate::value::{duration, in_range};
use device::compile::PpuLayout;
use device::simulated;
use flow::Nanos;
use std::net::SocketAddr;

/// Maximum number of PPUs of a device.
const PPUS: usize = 8;
/// Range of the number of entries of a PPU.
const ENTRIES: std::ops::RangeInclusive<i64> = 16..=4_096;
/// Time after which a request is repeated.
const TIMEOUT: Nanos = Nanos(20_000_000);
/// Range of this time.
const TIMEOUT_MIN: Nanos = Nanos(100_000);
const TIMEOUT_MAX: Nanos = Nanos(10_000_000_000);
/// Maximum number of channels of a device.
const CHANNELS: u8 = 16;

/// The device of a datapath.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredDevice {
    /// Where the device is.
    pub kind: DeviceKind,
    /// PPUs of each table, and entries of each PPU.
    pub layout: PpuLayout,
}

/// Where a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceKind {
    /// The daemon simulates the RTL, with the datapath's ports as channels.
    Simulated,
    /// The device, or a simulation of it, exchanges UDP datagrams with the daemon.
    Udp {
        /// Address of the device.
        address: SocketAddr,
        /// Address of the daemon, if the device expects a certain one.
        bind: Option<SocketAddr>,
        /// Time after which a request is repeated.
        timeout: Nanos,
    },
}

impl DeviceKind {
    /// Returns the highest port number. Port `n` is channel `n - 1`.
    #[must_use]
    pub fn ports_max(self) -> u8 {
        match self {
            Self::Simulated => simulated::CHANNELS,
            Self::Udp { .. } => CHANNELS,
        }
    }
}

/// Checks the device of the datapath at `datapath`.
pub(crate) fn device(
    datapath: &str,
    section: &DeviceSection,
    scope: Scope,
    mistakes: &mut Mistakes,
) -> Option<ConfiguredDevice> {
    let key = |name: &str| format!("{datapath}.device.{name}");
    let kind = mistakes.needed(key("kind"), section.kind.as_deref(), "kind = \"rtl\"")?;
    let kind = match kind {
        "rtl" => {
            for (name, is_given) in
                [("address", section.address.is_some()), ("entries", section.entries.is_some())]
            {
                if is_given {
                    mistakes.wrong(key(name), "is for kind = \"udp\"; omit it");
                }
            }
            if scope >= Scope::Build && !cfg!(feature = "rtl") {
                mistakes.wrong(
                    key("kind"),
                    "this build has no simulated device; build it with `make rtl-switch`",
                );
            }
            DeviceKind::Simulated
        }
        "udp" => {
            let address = mistakes.needed(
                key("address"),
                section.address.as_deref(),
                "address = \"127.0.0.1:6700\"",
            )?;
            let address = mistakes.at(key("address"), socket_address(address, true));
            let bind =
                section.bind.as_deref().map(|text| mistakes.at(key("bind"), socket_address(text, false)));
            let timeout = section.timeout.as_deref().map_or(Ok(TIMEOUT), repetition);
            let timeout = mistakes.at(key("timeout"), timeout);
            DeviceKind::Udp {
                address: address?,
                bind: bind.map_or(Some(None), |bind| bind.map(Some))?,
                timeout: timeout?,
            }
        }
        other => {
            mistakes.wrong(key("kind"), format!("\"{other}\" is unknown; use \"rtl\" or \"udp\""));
            return None;
        }
    };
    let (ppus, entries) = match kind {
        DeviceKind::Simulated => (usize::from(simulated::PPUS), simulated::ENTRIES.into()),
        DeviceKind::Udp { .. } => {
            let entries = mistakes.needed(key("entries"), section.entries, "entries = 512")?;
            (PPUS, mistakes.at(key("entries"), in_range(entries, ENTRIES))?)
        }
    };
    let tables = match (&section.tables, kind) {
        (None, DeviceKind::Simulated) => vec![1; ppus],
        (tables, _) => mistakes.needed(key("tables"), tables.clone(), "tables = [1, 1, 1, 1]")?,
    };
    let layout = layout(&tables, kind, ppus, entries as u16);
    let layout = mistakes.at(key("tables"), layout)?;
    Some(ConfiguredDevice { kind, layout })
}

fn socket_address(text: &str, is_remote: bool) -> Result<SocketAddr, String> {
    let parsed = match crate::address::socket_address(text, None) {
        Err(AddressError::Form) => None,
        Err(error) => return Err(format!("\"{text}\" {error}")),
        Ok(address) => Some(address),
    };
    let right = parsed.filter(|address| {
        let is_any = address.ip().is_unspecified();
        address.port() != 0 && !address.ip().is_multicast() && !(is_remote && is_any)
    });
    right.ok_or_else(|| format!("\"{text}\" is not an address; write IP:PORT, such as \"127.0.0.1:6700\""))
}

/// Parses the time after which a request is repeated.
fn repetition(text: &str) -> Result<Nanos, String> {
    let time = duration(text)?;
    let wrong = || format!("\"{text}\" is out of range; use {} us to 10 s", TIMEOUT_MIN.0 / 1_000);
    Some(time).filter(|time| (TIMEOUT_MIN..=TIMEOUT_MAX).contains(time)).ok_or_else(wrong)
}

/// Returns the layout of these tables. A device behind an address has exactly the PPUs of its tables.
fn layout(tables: &[i64], kind: DeviceKind, ppus: usize, entries: u16) -> Result<PpuLayout, String> {
    let wrong = || {
        format!(
            "must be the number of PPUs of each table, each at least 1, with a sum of at most {ppus}; write tables = \
             [1, 1, 2]"
        )
    };
    let counts: Option<Vec<u8>> = tables.iter().map(|count| u8::try_from(*count).ok()).collect();
    let counts = counts.ok_or_else(wrong)?;
    let sum: usize = counts.iter().copied().map(usize::from).sum();
    let all = if kind == DeviceKind::Simulated { ppus } else { sum };
    let made = PpuLayout::new(u8::try_from(all).unwrap_or(u8::MAX), entries, &counts);
    made.filter(|_| sum <= ppus).ok_or_else(wrong)
}

/// Reports settings of the datapath at `key` that a device does not have, and notes those without effect.
pub(crate) fn check_others(key: &str, d: &DatapathSection, notes: &mut Vec<String>, mistakes: &mut Mistakes) {
    let mut refuse = |name: &str, is_given: bool, problem: &str| {
        if is_given {
            mistakes.wrong(format!("{key}.{name}"), problem);
        }
    };
    refuse("pof", d.pof.is_some(), "a device serves no controllers of POF; omit it");
    refuse("mirror", !d.mirror.is_empty(), "a device does not mirror frames; omit it");
    refuse("stateless", d.stateless.is_some(), "a device has no stateless forwarding; omit it");
    let caches = d.port_cache != PortCacheSection::default() && !d.port_cache.is_off();
    refuse("port_cache.mode", caches, "a device has no port cache; omit it");
    let quenches = !d.openflow.packet_in.quench.is_empty();
    refuse("openflow.packet_in.quench", quenches, "a device does not quench packet-ins; omit it");
    let rates = &d.openflow.packet_in;
    let limits = rates.no_match.is_some() || rates.action.is_some() || rates.invalid_ttl.is_some();
    refuse("openflow.packet_in", limits, "a device does not limit the rate of packet-ins; omit the rates");
    let standalone = d.openflow.fail_mode.as_deref() == Some("standalone");
    refuse("openflow.fail_mode", standalone, "a device does not learn MACs; use \"secure\"");
    let idle = [
        ("ffp", d.ffp != FfpSection::default()),
        ("express", d.express != ExpressSection::default()),
        ("lanes", d.lanes != LanesSection::default()),
        ("low_latency", d.low_latency != LowLatencySection::default()),
    ];
    for (name, _) in idle.iter().filter(|(_, is_given)| *is_given) {
        notes.push(format!("{key}.{name} has no effect: a device forwards the packets."));
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, DeviceKind, Mistake};
    use flow::Nanos;

    fn read(device: &str, rest: &str) -> Result<Config, String> {
        let text =
            format!("control = \"/tmp/s.sock\"\n[[datapath]]\nid = 1\n[datapath.device]\n{device}\n{rest}\n");
        let lines = |all: Vec<Mistake>| all.iter().map(|one| format!("{one}\n")).collect::<String>();
        Config::parse(&text).map_err(lines)
    }

    const PORTS: &str =
        "[[datapath.port]]\nnumber = 1\nname = \"p1\"\n[[datapath.port]]\nnumber = 16\nname = \"p2\"";
    const UDP: &str = "kind = \"udp\"\naddress = \"127.0.0.1:6700\"\nentries = 512\ntables = [1, 2, 1]";

    #[test]
    fn a_device_behind_an_address_needs_no_workers_and_no_drivers() {
        let config = read(UDP, PORTS).unwrap();
        let device = config.datapath.device.unwrap();
        assert_eq!(
            device.kind,
            DeviceKind::Udp {
                address: "127.0.0.1:6700".parse().unwrap(),
                bind: None,
                timeout: Nanos(20_000_000),
            }
        );
        assert_eq!((device.layout.ppus(), device.layout.tables(), device.layout.entries()), (4, 3, 512));
        assert_eq!(config.datapath.ports.len(), 2);
        assert!(config.workers.is_empty() && !config.datapath.openflow.standalone);
    }

    #[test]
    fn a_simulated_device_has_queues_as_channels() {
        let port = "[[datapath.port]]\nnumber = 4\nname = \"p1\"\ndriver = \"af_packet\"\ndevice = \"veth1\"";
        let config = read("kind = \"rtl\"", port).unwrap();
        let device = config.datapath.device.unwrap();
        assert_eq!((device.kind, device.layout.tables()), (DeviceKind::Simulated, 5));
        assert_eq!(config.datapath.ports[0].spec().queues, 1);
        let config = read("kind = \"rtl\"\ntables = [2, 1]", port).unwrap();
        assert_eq!(config.datapath.device.unwrap().layout.ppus(), 5);
    }

    #[test]
    fn wrong_settings_of_a_device_are_named() {
        let veth = "[[datapath.port]]\nnumber = 1\nname = \"p1\"\ndriver = \"af_packet\"\ndevice = \"veth1\"";
        let rows: [(&str, &str, &[&str]); 20] = [
            ("", "", &["datapath.device.kind", "kind = \"rtl\""]),
            ("kind = \"fpga\"", "", &["datapath.device.kind: \"fpga\" is unknown"]),
            ("kind = \"rtl\"\nentries = 16", "", &["datapath.device.entries: is for kind = \"udp\""]),
            ("kind = \"rtl\"\naddress = \"127.0.0.1:1\"", "", &["datapath.device.address: is for"]),
            ("kind = \"rtl\"\ntables = [3, 3]", "", &["datapath.device.tables: must be", "at most 5"]),
            ("kind = \"rtl\"\ntables = []", "", &["datapath.device.tables: must be"]),
            ("kind = \"rtl\"\ntables = [1, 0]", "", &["datapath.device.tables: must be"]),
            ("kind = \"udp\"", "", &["datapath.device.address", "127.0.0.1:6700"]),
            (
                "kind = \"udp\"\naddress = \"here:1\"",
                "",
                &["datapath.device.address: \"here:1\" is not an address"],
            ),
            ("kind = \"udp\"\naddress = \"0.0.0.0:1\"", "", &["datapath.device.address"]),
            (&(UDP.to_owned() + "\nbind = \"daemon\""), "", &["datapath.device.bind: \"daemon\" is not"]),
            (&(UDP.to_owned() + "\ntimeout = \"20s\""), "", &["datapath.device.timeout", "10 s"]),
            (
                UDP,
                "[datapath.openflow.packet_in]\nno_match = { rate = 9 }",
                &["datapath.openflow.packet_in: a device does not limit"],
            ),
            (UDP, veth, &["datapath.port[0].driver", "the device has its own channels"]),
            (
                UDP,
                "[[datapath.port]]\nnumber = 1\nname = \"p1\"\nreceive_ring = 256",
                &["datapath.port[0].receive_ring: the device has its own channels"],
            ),
            (UDP, "[[datapath.port]]\nnumber = 17\nname = \"p1\"", &["datapath.port[0].number", "16"]),
            (
                "kind = \"rtl\"",
                "[[datapath.port]]\nnumber = 5\nname = \"p1\"",
                &["datapath.port[0].number", "4"],
            ),
            ("kind = \"rtl\"", &(veth.to_owned() + "\nworkers = [0]"), &["datapath.port[0].workers"]),
            (UDP, "[datapath.stateless]\n", &["datapath.stateless: a device has no"]),
            (
                UDP,
                "[datapath.openflow]\nfail_mode = \"standalone\"",
                &["datapath.openflow.fail_mode: a device"],
            ),
        ];
        for (device, rest, wanted) in rows {
            let found = read(device, rest).unwrap_err();
            for part in wanted {
                assert!(found.contains(part), "{device}\n{rest}\nmisses {part:?} in\n{found}");
            }
        }
        let config = read(UDP, "[datapath.ffp]\nenabled = false").unwrap();
        assert_eq!(config.notes, ["datapath.ffp has no effect: a device forwards the packets."]);
    }
}
