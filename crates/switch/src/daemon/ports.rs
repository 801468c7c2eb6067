// SPDX-License-Identifier: Apache-2.0
//! Opens the ports of a configuration.

use super::DaemonError;
use super::claim::{Claim, ClaimError};
use crate::config::{Config, PortConfig, spec};
use port::{Link, Queue};

/// A port whose device is open.
pub struct OpenPort {
    /// Its number.
    pub number: flow::PortNo,
    /// Its name.
    pub name: String,
    /// Its queues with the numbers of the workers that serve them.
    pub queues: Vec<(usize, Box<dyn Queue>)>,
    /// That its interface is served by no other switch.
    pub claim: Option<Claim>,
}

impl OpenPort {
    /// The link as the queues tell it: up if it is for all of them.
    pub(super) fn poll_link(&mut self) -> Link {
        let mut link = Link::default();
        for (n, (_, queue)) in self.queues.iter_mut().enumerate() {
            let told = queue.poll_link();
            link = if n == 0 {
                told
            } else {
                Link {
                    up: link.up && told.up,
                    index: link.index.filter(|_| link.index == told.index),
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
/// The first that can not be opened, or that another switch serves.
pub fn open(config: &Config) -> Result<Vec<OpenPort>, DaemonError> {
    port::dpdk::log_to(crate::log::say);
    port::dpdk::configure(config.dpdk.clone());
    let open_one = |port: &PortConfig| {
        let claim = claim(port)?;
        let queues = port::open(&spec(port))?;
        let queues = port.workers.iter().copied().zip(queues).collect();
        Ok(OpenPort { number: port.number, name: port.name.clone(), queues, claim })
    };
    config.datapath.ports.iter().map(open_one).collect()
}

fn claim(port: &PortConfig) -> Result<Option<Claim>, DaemonError> {
    if !port::is_of_interfaces(&port.driver) {
        return Ok(None);
    }
    Claim::take(&port.device).map_err(|error| match error {
        ClaimError::Taken => DaemonError::Taken { port: port.name.clone(), device: port.device.clone() },
        ClaimError::Io(source) => DaemonError::Io { what: "claim a port's device", source },
    })
}
