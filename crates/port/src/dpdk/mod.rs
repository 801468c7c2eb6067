// SPDX-License-Identifier: Apache-2.0
//! DPDK ports: network cards by PCI address, and virtual devices (`net_pcap`, `net_memif`, `net_tap` and
//! others) by device string.
//!
//! A received packet stays in its mbuf, which has the layout of a frame ([`frame::Head`]). Another DPDK port
//! sends the packet from the same mbuf. Bytes are copied only between DPDK ports and ports of other drivers.
//! Without the cargo feature `dpdk` the driver only returns an error that explains how to build it.

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

/// Name of the driver.
pub const NAME: &str = "dpdk";

const MAX_QUEUES: usize = 64;

/// Settings for all DPDK ports of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpdkSettings {
    /// Arguments of DPDK's environment abstraction layer (EAL), such as `--in-memory`.
    pub eal: Vec<String>,
    /// Number of packet buffers (mbufs) per port.
    pub mbufs: u32,
    /// MTU in bytes; a device with a smaller maximum uses its maximum.
    pub mtu: u16,
}

impl Default for DpdkSettings {
    /// Returns the default settings, with which DPDK uses huge pages and leaves no files.
    fn default() -> Self {
        Self { eal: ["--in-memory", "--no-telemetry"].map(String::from).to_vec(), mbufs: 16_384, mtu: 1_500 }
    }
}

static SETTINGS: OnceLock<DpdkSettings> = OnceLock::new();

/// Sets how DPDK is started. Must be called before the first port is opened; later calls have no effect.
pub fn configure(settings: DpdkSettings) {
    let _ = SETTINGS.set(settings);
}

static LOG: OnceLock<fn(&str)> = OnceLock::new();

/// Sets the function that gets DPDK's messages, which otherwise go to stderr and syslog. The function must
/// not block, because workers also call it. Must be called before the first port is opened.
pub fn log_to(log: fn(&str)) {
    let _ = LOG.set(log);
}

/// Checks the form of the device string and the number of queues.
///
/// # Errors
/// Returns an error for a string that no device can have, for a number of queues other than 1 to 64, and for
/// any port in a build without DPDK.
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
        _ if spec.device.is_empty() => "the name is empty".into(),
        Some(c) => format!("a device name cannot contain {c:?}"),
        None if spec.device.starts_with([',', '=', '-', '/']) => "it does not begin with a name".into(),
        // DPDK has a second syntax for device strings, which only some of its functions accept.
        None if spec.device.split(',').next().is_some_and(|name| name.contains(['=', '/'])) => {
            "it begins with a key".into()
        }
        None => return Ok(()),
    };
    Err(bad(spec, wrong))
}

/// Returns the kernel interface that a device string names, if any.
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

/// Opens `spec.queues` queues of a device. The first call starts DPDK.
///
/// # Errors
/// Returns the errors of [`check`], and an error if DPDK cannot be started or has no such device, or if the
/// device has too few queues.
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    check(spec)?;
    #[cfg(feature = "dpdk")]
    return device::open(spec, SETTINGS.get_or_init(DpdkSettings::default));
    #[cfg(not(feature = "dpdk"))]
    Ok(Queues::new())
}

#[cfg(test)]
#[cfg(feature = "dpdk")]
mod tests;
