// SPDX-License-Identifier: Apache-2.0
//! Opens the ports of a configuration.

use super::DaemonError;
use super::device_lock::{DeviceLock, DeviceLockError};
use config::{Config, ConfiguredPort};
use port::{Link, Queue};

/// Port whose device is open.
pub struct OpenPort {
    /// Port number.
    pub number: flow::PortNo,
    /// Port name.
    pub name: String,
    /// Number of the serving worker, and the queue, for each queue of the port.
    pub queues: Vec<(usize, Box<dyn Queue>)>,
    /// Claim of the interface, which excludes other switches.
    pub device_lock: Option<DeviceLock>,
}

impl OpenPort {
    /// Returns the link as its queues report it. The link is up if it is up for all queues.
    pub(super) fn poll_link(&mut self) -> Link {
        let mut link = Link::default();
        for (n, (_, queue)) in self.queues.iter_mut().enumerate() {
            let reported = queue.poll_link();
            link = if n == 0 {
                reported
            } else {
                Link {
                    up: link.up && reported.up,
                    index: link.index.filter(|_| link.index == reported.index),
                    ..link
                }
            };
        }
        link
    }
}

/// Opens all ports of a configuration.
///
/// # Errors
///
/// Returns the error of the first port that cannot be opened or that another switch serves.
pub fn open(config: &Config) -> Result<Vec<OpenPort>, DaemonError> {
    port::dpdk::log_to(crate::log::say);
    port::dpdk::configure(config.dpdk.clone());
    let open_one = |port: &ConfiguredPort| {
        let device_lock = device_lock(port)?;
        let queues = port::open(&port.spec())?;
        let queues = port.workers.iter().copied().zip(queues).collect();
        Ok(OpenPort { number: port.number, name: port.name.clone(), queues, device_lock })
    };
    config.datapath.ports.iter().map(open_one).collect()
}

fn device_lock(port: &ConfiguredPort) -> Result<Option<DeviceLock>, DaemonError> {
    if !port::is_of_interfaces(&port.driver) {
        return Ok(None);
    }
    DeviceLock::take(&port.device).map_err(|error| match error {
        DeviceLockError::Taken => DaemonError::Taken { port: port.name.clone(), device: port.device.clone() },
        DeviceLockError::Io(source) => DaemonError::Io { what: "claim a port's device", source },
    })
}
