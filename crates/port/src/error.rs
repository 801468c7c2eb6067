// SPDX-License-Identifier: Apache-2.0
//! Errors of opening a port.

use std::io;

/// Reason why a port could not be opened: the port, the fault, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// There is no driver of this name.
    #[error("port {port}: there is no driver \"{driver}\"; the drivers are {known}")]
    UnknownDriver {
        /// Name of the port.
        port: String,
        /// Driver in the configuration.
        driver: String,
        /// Names of all drivers, separated by commas.
        known: String,
    },
    /// The driver was not compiled into this build.
    #[error("port {port}: this build has no driver {driver}; {how}")]
    NotBuilt {
        /// Name of the port.
        port: String,
        /// Name of the driver.
        driver: &'static str,
        /// How to build with the driver.
        how: &'static str,
    },
    /// The device string is invalid for the driver.
    #[error("port {port}: device \"{device}\" of driver {driver}: {wrong}; expected {expected}")]
    BadDevice {
        /// Name of the port.
        port: String,
        /// Name of the driver.
        driver: &'static str,
        /// The device string.
        device: String,
        /// Description of the fault.
        wrong: String,
        /// Description of valid device strings.
        expected: &'static str,
    },
    /// The network device does not exist.
    #[error(
        "port {port}: there is no network device \"{device}\" in this network namespace; `ip link` lists the existing devices"
    )]
    NoDevice {
        /// Name of the port.
        port: String,
        /// Name of the device.
        device: String,
    },
    /// Another program that forwards serves the interface.
    #[error(
        "port {port}: another switch serves the device \"{device}\" in this network namespace, and the two would feed \
         each other; stop it first, or give this port another device"
    )]
    Taken {
        /// Name of the port.
        port: String,
        /// Name of the device.
        device: String,
    },
    /// The process lacks the permission to open the device.
    #[error("port {port}: no permission to {what}; run as root or with {needs}")]
    NoPermission {
        /// Name of the port.
        port: String,
        /// The attempted operation.
        what: &'static str,
        /// Capabilities that permit the operation.
        needs: &'static str,
    },
    /// The driver cannot open this number of queues.
    #[error("port {port}: driver {driver} cannot open {queues} queues; it needs {expected}")]
    BadQueues {
        /// Name of the port.
        port: String,
        /// Name of the driver.
        driver: &'static str,
        /// Number of queues in the request.
        queues: usize,
        /// Valid numbers of queues.
        expected: &'static str,
    },
    /// A system call failed for another reason.
    #[error("port {port}: cannot {what} for device \"{device}\": {source}")]
    Io {
        /// Name of the port.
        port: String,
        /// The device string.
        device: String,
        /// The attempted operation.
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
}
