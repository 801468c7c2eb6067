// SPDX-License-Identifier: Apache-2.0
//! Common parts of the drivers of network interfaces: checks of names, and errors.

use crate::{PortError, Spec, sys};
use std::io;

/// Description of a valid device.
const ETHERNET: &str = "the name of an Ethernet interface in this network namespace";

/// Checks whether an interface can have the device's name, by the rules of the kernel's `dev_valid_name`.
pub(crate) fn check_name(spec: &Spec, driver: &'static str) -> Result<(), PortError> {
    let name = &spec.device;
    let refused = |c: &char| matches!(c, '/' | ':' | '\0' | '\u{b}') || c.is_ascii_whitespace();
    let wrong = match name.len() {
        0 => "the name is empty".into(),
        len if len > sys::NAME_BYTES => format!("the name has {len} bytes"),
        _ if name == "." || name == ".." => format!("an interface cannot have the name {name:?}"),
        _ => match name.chars().find(refused) {
            Some(c) => format!("the name of an interface cannot contain {c:?}"),
            None => return Ok(()),
        },
    };
    let expected = "the name of a network interface: 1 to 15 bytes without spaces, slashes and colons";
    Err(Owner::new(spec, driver).bad_device(wrong, expected))
}

/// Checks whether the interface exists in the calling thread's network namespace.
pub(crate) fn find(spec: &Spec) -> Result<(), PortError> {
    match sys::index_of(&spec.device) {
        Some(_) => Ok(()),
        None => Err(PortError::NoDevice { port: spec.name.clone(), device: spec.device.clone() }),
    }
}

/// Returns the index of a network interface in the calling thread's network namespace.
#[must_use]
pub fn interface_index(name: &str) -> Option<u32> {
    sys::index_of(name)
}

/// The port and device that errors refer to.
pub(crate) struct Owner {
    pub(crate) port: String,
    pub(crate) device: String,
    driver: &'static str,
}

impl Owner {
    pub(crate) fn new(spec: &Spec, driver: &'static str) -> Self {
        Self { port: spec.name.clone(), device: spec.device.clone(), driver }
    }

    /// Converts a failed system call to an error. `needs` are the capabilities to name if permission is
    /// missing.
    pub(crate) fn error(&self, what: &'static str, needs: &'static str, source: io::Error) -> PortError {
        let (port, device) = (self.port.clone(), self.device.clone());
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => PortError::NoPermission { port, what, needs },
            Some(libc::ENODEV | libc::ENXIO) => PortError::NoDevice { port, device },
            _ => PortError::Io { port, device, what, source },
        }
    }

    /// Returns the error for a device that does not meet the driver's requirements.
    pub(crate) fn bad_device(&self, wrong: String, expected: &'static str) -> PortError {
        let (port, device) = (self.port.clone(), self.device.clone());
        PortError::BadDevice { port, driver: self.driver, device, wrong, expected }
    }

    /// Refuses a device whose link layer (`ARPHRD_*`) is not Ethernet.
    pub(crate) fn check_link_layer(&self, kind: u16) -> Result<(), PortError> {
        match kind {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => Ok(()),
            _ => {
                let wrong = format!("not an Ethernet interface (its link layer is ARPHRD {kind})");
                Err(self.bad_device(wrong, ETHERNET))
            }
        }
    }
}
