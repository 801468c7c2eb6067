// SPDX-License-Identifier: Apache-2.0
//! The list of drivers. A new driver is a new file and a line in [`DRIVERS`].

use crate::{PortError, Queue, af_packet, mem, pcap};

/// What to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Port number, from 1; becomes `meta.in_port`.
    pub number: u32,
    /// The port's name, for messages.
    pub name: String,
    /// Which driver of [`DRIVERS`].
    pub driver: String,
    /// The device in the driver's own notation.
    pub device: String,
    /// Queues to open: one for each worker that serves the port.
    pub queues: usize,
}

/// A port's queues.
pub type Queues = Vec<Box<dyn Queue>>;

/// A driver by name.
pub struct Driver {
    /// The name that configuration uses.
    pub name: &'static str,
    /// Opens a port's queues.
    pub open: fn(&Spec) -> Result<Queues, PortError>,
}

/// All drivers.
pub const DRIVERS: &[Driver] = &[
    Driver { name: mem::NAME, open: mem::open },
    Driver { name: pcap::NAME, open: pcap::open },
    Driver { name: af_packet::NAME, open: af_packet::open },
];

/// Opens a port: one queue for each worker that serves it.
///
/// # Errors
/// An unknown driver, a device that is missing or wrong, missing privileges.
pub fn open(spec: &Spec) -> Result<Queues, PortError> {
    match DRIVERS.iter().find(|driver| driver.name == spec.driver) {
        Some(driver) => (driver.open)(spec),
        None => Err(PortError::UnknownDriver {
            port: spec.name.clone(),
            driver: spec.driver.clone(),
            known: DRIVERS.iter().map(|driver| driver.name).collect::<Vec<_>>().join(", "),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_driver_is_named_with_the_known_ones() {
        let spec =
            Spec { number: 1, name: "p1".into(), driver: "mme".into(), device: String::new(), queues: 1 };
        let message = open(&spec).err().unwrap().to_string();
        assert!(
            message.contains("p1") && message.contains("\"mme\"") && message.contains("mem"),
            "{message}"
        );
    }
}
