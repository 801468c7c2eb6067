// SPDX-License-Identifier: Apache-2.0
//! Ports of DPDK: network cards by their PCI address, and its virtual devices (`net_pcap`, `net_memif`, `net_tap` and
//! others) by their device strings.
//!
//! A received packet stays in its mbuf: the frame has the mbuf's memory on loan ([`frame::Loan`]), and a frame that leaves
//! by another port of DPDK takes its mbuf along. Only between such a port and one of another driver bytes are copied.
//! Without the cargo feature `dpdk` there is nothing of this but a sentence that says so.

#[cfg(feature = "dpdk")]
mod device;
#[cfg(feature = "dpdk")]
mod eal;
#[cfg(feature = "dpdk")]
mod queue;
#[cfg(feature = "dpdk")]
mod shim;

use crate::{PortError, Queues, Spec};
use std::sync::OnceLock;

/// The driver's name.
pub const NAME: &str = "dpdk";

/// Most queues of a port.
const MAX_QUEUES: usize = 64;

/// What all ports of DPDK in a process have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Arguments of DPDK's environment (EAL), such as `--in-memory`.
    pub eal: Vec<String>,
    /// Packet buffers (mbufs) of each port.
    pub mbufs: u32,
    /// Most bytes behind the Ethernet header of a packet, as far as the device goes along.
    pub mtu: u16,
}

impl Default for Settings {
    /// Huge pages, and nothing that is left in the file system.
    fn default() -> Self {
        Self { eal: ["--in-memory", "--no-telemetry"].map(String::from).to_vec(), mbufs: 16_384, mtu: 1_500 }
    }
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

/// Says how DPDK is to be started. To be called before the first port is opened; what comes later has no effect, as a process
/// starts DPDK once.
pub fn configure(settings: Settings) {
    let _ = SETTINGS.set(settings);
}

static LOG: OnceLock<fn(&str)> = OnceLock::new();

/// Says where DPDK's messages are to go: to a function that does not block, for they come from workers, too. Without, DPDK
/// writes them to stderr and syslog. To be called before the first port is opened.
pub fn log_to(log: fn(&str)) {
    let _ = LOG.set(log);
}

/// Checks the device string's form and the number of queues.
///
/// # Errors
/// What no device could be; any port, in a build without DPDK.
pub fn check(spec: &Spec) -> Result<(), PortError> {
    if cfg!(not(feature = "dpdk")) {
        return Err(PortError::NotBuilt {
            port: spec.name.clone(),
            driver: NAME,
            how: "build it with `make dpdk`, which installs DPDK's libraries and turns the cargo feature `dpdk` on",
        });
    }
    if spec.queues == 0 || spec.queues > MAX_QUEUES {
        return Err(PortError::BadQueues {
            port: spec.name.clone(),
            driver: NAME,
            queues: spec.queues,
            expected: "1 to 64",
        });
    }
    let wrong = match spec.device.chars().find(|c| c.is_control()) {
        _ if spec.device.is_empty() => "the name has no bytes".into(),
        Some(c) => format!("no device can have {c:?} in its name"),
        None if spec.device.starts_with([',', '=', '-', '/']) => "it begins with no name".into(),
        // DPDK has another notation, of layers, that it does not take everywhere.
        None if spec.device.split(',').next().is_some_and(|name| name.contains(['=', '/'])) => {
            "it begins with a key".into()
        }
        None => return Ok(()),
    };
    Err(bad(spec, wrong))
}

/// What a device string says of an interface of the kernel.
pub(crate) fn interface(device: &str) -> Option<&str> {
    device.split(',').find_map(|part| part.strip_prefix("iface="))
}

fn bad(spec: &Spec, wrong: String) -> PortError {
    PortError::BadDevice {
        port: spec.name.clone(),
        driver: NAME,
        device: spec.device.clone(),
        wrong,
        expected: "a device string of DPDK: a PCI address such as 0000:01:00.0, or a virtual device such as net_tap0,iface=tap0",
    }
}

/// Opens `spec.queues` queues of a device, and starts DPDK before the first.
///
/// # Errors
/// As for [`check`]; DPDK can not be started, or has no such device, or not so many queues of it.
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    check(spec)?;
    #[cfg(feature = "dpdk")]
    return device::open(spec, SETTINGS.get_or_init(Settings::default));
    #[cfg(not(feature = "dpdk"))]
    Ok(Queues::new())
}

#[cfg(test)]
#[cfg(feature = "dpdk")]
mod tests;
