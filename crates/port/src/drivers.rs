// SPDX-License-Identifier: Apache-2.0
//! The list of drivers. A new driver is a new module and a line in [`DRIVERS`].

use crate::spec::{Queues, Spec};
use crate::{PortError, af_packet, af_xdp, dpdk, interface, mem, patch, pcap};

/// A driver with its entry points.
pub struct Driver {
    /// Name of the driver in configurations.
    pub name: &'static str,
    /// Whether devices are network interfaces, each of which can belong to one port only.
    pub interfaces: bool,
    /// Checks a specification without access to the device.
    pub check: fn(&Spec) -> Result<(), PortError>,
    /// Checks whether the device exists without opening it. The specification must have passed
    /// [`Driver::check`].
    pub find: fn(&Spec) -> Result<(), PortError>,
    /// Opens a port's queues.
    pub open: fn(&Spec) -> Result<Queues, PortError>,
    /// Opens a port's queues, which need not receive before [`Queue::start`](crate::Queue::start).
    pub open_held: fn(&Spec) -> Result<Queues, PortError>,
}

/// All drivers.
pub const DRIVERS: &[Driver] = &[
    Driver {
        name: mem::NAME,
        interfaces: false,
        check: mem::check,
        find: any_device,
        open: mem::open,
        open_held: mem::open,
    },
    Driver {
        name: patch::NAME,
        interfaces: false,
        check: patch::check,
        find: any_device,
        open: patch::open,
        open_held: patch::open_held,
    },
    Driver {
        name: pcap::NAME,
        interfaces: false,
        check: pcap::check,
        find: pcap::find,
        open: pcap::open,
        open_held: pcap::open,
    },
    Driver {
        name: af_packet::NAME,
        interfaces: true,
        check: af_packet::check,
        find: interface::find,
        open: af_packet::open,
        open_held: af_packet::open_held,
    },
    Driver {
        name: af_xdp::NAME,
        interfaces: true,
        check: af_xdp::check,
        find: interface::find,
        open: af_xdp::open,
        open_held: af_xdp::open,
    },
    Driver {
        name: dpdk::NAME,
        interfaces: false,
        check: dpdk::check,
        find: any_device,
        open: dpdk::open,
        open_held: dpdk::open,
    },
];

/// Opens a port: one queue for each worker that serves it.
///
/// # Errors
/// Returns an error if the driver is unknown, the device is missing or unsuitable, or privileges are missing.
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    (driver(spec)?.open)(spec)
}

/// Opens a port like [`open`] for a worker that takes the queues later, and then calls
/// [`Queue::start`](crate::Queue::start). A port of the driver `af_packet` receives nothing before, even if
/// another port still uses its interface. A port of the driver `patch` is connected by
/// [`PatchEnd::start`](crate::patch::PatchEnd::start).
///
/// # Errors
/// Returns the errors of [`open`].
pub fn open_held(spec: &Spec) -> Result<Queues, PortError> {
    (driver(spec)?.open_held)(spec)
}

/// Checks a port's specification: driver, device string, number of queues. Needs no privileges, and does not
/// check whether the device or file exists.
///
/// # Errors
/// Returns the error with which [`open`] would refuse the specification on every machine.
pub fn check(spec: &Spec) -> Result<(), PortError> {
    (driver(spec)?.check)(spec)
}

/// Checks whether a port's device exists: a network interface in the calling thread's network namespace, a
/// readable capture to receive from, or the folder in which a capture is to be written. Opens no device and
/// needs no privileges. DPDK devices are not checked.
///
/// # Errors
/// Returns the errors of [`check`], and an error if a device, file or folder is missing.
pub fn find(spec: &Spec) -> Result<(), PortError> {
    check(spec)?;
    (driver(spec)?.find)(spec)
}

/// The `find` function of drivers whose devices need not exist before they are opened.
fn any_device(_: &Spec) -> Result<(), PortError> {
    Ok(())
}

/// Returns whether devices of this driver are network interfaces, each of which can belong to one port only.
/// False for an unknown driver.
#[must_use]
pub fn is_of_interfaces(driver: &str) -> bool {
    DRIVERS.iter().any(|known| known.name == driver && known.interfaces)
}

/// Returns the kernel's network interface on which a port of this driver is based, if there is one.
#[must_use]
pub fn interface_of<'a>(driver: &str, device: &'a str) -> Option<&'a str> {
    if driver == dpdk::NAME { dpdk::interface(device) } else { is_of_interfaces(driver).then_some(device) }
}

fn driver(spec: &Spec) -> Result<&'static Driver, PortError> {
    DRIVERS.iter().find(|driver| driver.name == spec.driver).ok_or_else(|| PortError::UnknownDriver {
        port: spec.name.clone(),
        driver: spec.driver.clone(),
        known: DRIVERS.iter().map(|driver| driver.name).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(driver: &str, device: &str, queues: usize) -> Spec {
        Spec {
            number: 1,
            name: "p1".into(),
            driver: driver.into(),
            device: device.into(),
            queues,
            outstanding_bytes: usize::MAX,
            receive_ring: None,
            handover: crate::Handover::Never,
        }
    }

    #[test]
    fn an_unknown_driver_is_named_with_the_known_ones() {
        let spec = spec("mme", "", 1);
        for error in [open(&spec).err(), check(&spec).err()] {
            let message = error.unwrap().to_string();
            assert!(
                message.contains("p1") && message.contains("\"mme\"") && message.contains("mem"),
                "{message}"
            );
        }
    }

    #[test]
    fn a_device_is_found_without_being_opened() {
        let folder = std::env::temp_dir();
        let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/tests/data/built.pcap");
        let no_capture = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let out = folder.join(format!("shunt-find-{}.pcap", std::process::id())).display().to_string();
        for (driver, device) in [
            ("mem", "null".to_owned()),
            ("pcap", format!("in={built},out={out}")),
            ("af_packet", "lo".to_owned()),
            ("af_xdp", "lo".to_owned()),
        ] {
            assert!(find(&spec(driver, &device, 1)).is_ok(), "{driver} {device}");
        }
        assert!(!std::path::Path::new(&out).exists());
        for (driver, device, part) in [
            ("mem", "nul".to_owned(), "\"null\""),
            ("pcap", "in=no/such/file".to_owned(), "no/such/file"),
            ("pcap", format!("in={no_capture}"), "Cargo.toml"),
            ("pcap", "out=no/such/folder/file".to_owned(), "no/such/folder"),
            ("pcap", format!("out={}", folder.display()), "is a folder"),
            ("af_packet", "nosuch0".to_owned(), "no network device \"nosuch0\""),
            ("af_xdp", "nosuch0".to_owned(), "no network device \"nosuch0\""),
        ] {
            let message = find(&spec(driver, &device, 1)).unwrap_err().to_string();
            assert!(message.contains("port p1") && message.contains(part), "{message}");
        }
    }

    #[test]
    fn a_specification_is_checked_without_a_device() {
        for (driver, device, queues) in [
            ("mem", "null", 4),
            ("pcap", "in=no/such/file,loop=0", 1),
            ("pcap", "out=no/such/folder/file", 1),
            ("af_packet", "nosuch0", 1),
            ("af_packet", "fifteen-bytes-x", 256),
            ("af_xdp", "nosuch0", 64),
        ] {
            assert!(check(&spec(driver, device, queues)).is_ok(), "{driver} {device}");
        }
        for (driver, device, queues, part) in [
            ("mem", "nul", 1, "\"null\""),
            ("mem", "null", 0, "at least 1"),
            ("patch", "a b", 1, "name of a cable"),
            ("patch", "", 1, "name of a cable"),
            ("patch", "cable", 65, "1 to 64"),
            ("pcap", "a.pcap", 1, "KEY=VALUE"),
            ("pcap", "in=a", 2, "exactly 1"),
            ("af_packet", "", 1, "is empty"),
            ("af_packet", "sixteen-bytes-xx", 1, "16 bytes"),
            ("af_packet", "eth 0", 1, "' '"),
            ("af_packet", "eth0\u{b}", 1, "'\\u{b}'"),
            ("af_packet", "eth0:1", 1, "':'"),
            ("af_packet", "a/b", 1, "'/'"),
            ("af_packet", "eth\0", 1, "'\\0'"),
            ("af_packet", "..", 1, "\"..\""),
            ("af_packet", "lo", 257, "1 to 256"),
            ("af_xdp", "a/b", 1, "'/'"),
            ("af_xdp", "lo", 0, "1 to 64"),
            ("af_xdp", "lo", 65, "1 to 64"),
        ] {
            let message = check(&spec(driver, device, queues)).unwrap_err().to_string();
            assert!(message.contains("port p1") && message.contains(part), "{message}");
            // `open` refuses the same specification with the same message.
            assert_eq!(open(&spec(driver, device, queues)).err().unwrap().to_string(), message);
        }
    }
}
