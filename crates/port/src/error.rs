// SPDX-License-Identifier: Apache-2.0
//! Why a port could not be opened.

use std::io;

/// Why a port could not be opened: which port, what was wrong, what would be right.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// No driver of that name.
    #[error("port {port}: there is no driver \"{driver}\"; the drivers are {known}")]
    UnknownDriver {
        /// The port's name.
        port: String,
        /// The driver asked for.
        driver: String,
        /// The drivers there are, separated by commas.
        known: String,
    },
    /// This build lacks the driver.
    #[error("port {port}: this build has no driver {driver}; {how}")]
    NotBuilt {
        /// The port's name.
        port: String,
        /// The driver.
        driver: &'static str,
        /// How to get one that has it.
        how: &'static str,
    },
    /// The device string means nothing to the driver.
    #[error("port {port}: device \"{device}\" of driver {driver}: {wrong}; expected {expected}")]
    BadDevice {
        /// The port's name.
        port: String,
        /// The driver.
        driver: &'static str,
        /// The device string.
        device: String,
        /// What is wrong with it.
        wrong: String,
        /// What would be right.
        expected: &'static str,
    },
    /// The device does not exist.
    #[error(
        "port {port}: there is no network device \"{device}\" in this network namespace; `ip link` lists those there are"
    )]
    NoDevice {
        /// The port's name.
        port: String,
        /// The device's name.
        device: String,
    },
    /// The process may not open such a device.
    #[error("port {port}: no permission to {what}; run as root or with {needs}")]
    NoPermission {
        /// The port's name.
        port: String,
        /// What was attempted.
        what: &'static str,
        /// The capabilities that allow it.
        needs: &'static str,
    },
    /// A number of queues the driver can not give.
    #[error("port {port}: driver {driver} can not open {queues} queues; it needs {expected}")]
    BadQueues {
        /// The port's name.
        port: String,
        /// The driver.
        driver: &'static str,
        /// Queues asked for.
        queues: usize,
        /// What would be right.
        expected: &'static str,
    },
    /// The system refused for another reason.
    #[error("port {port}: can not {what} for device \"{device}\": {source}")]
    Io {
        /// The port's name.
        port: String,
        /// The device string.
        device: String,
        /// What was attempted.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}
