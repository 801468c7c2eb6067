// SPDX-License-Identifier: Apache-2.0
//! Opens the ports of a configuration.

use crate::config::Config;
use port::{Link, PortError, Queue, Spec};

/// A port whose device is open.
pub struct OpenPort {
    /// Its number.
    pub number: flow::PortNo,
    /// Its name.
    pub name: String,
    /// Its queues with the numbers of the workers that serve them.
    pub queues: Vec<(usize, Box<dyn Queue>)>,
}

impl OpenPort {
    /// The link as the queues tell it: up if it is for all of them.
    pub(super) fn poll_link(&mut self) -> Link {
        let mut link = Link::default();
        for (n, (_, queue)) in self.queues.iter_mut().enumerate() {
            let told = queue.poll_link();
            link = if n == 0 { told } else { Link { up: link.up && told.up, ..link } };
        }
        link
    }
}

/// Opens all ports of a configuration.
///
/// # Errors
/// The first that can not be opened.
pub fn open(config: &Config) -> Result<Vec<OpenPort>, PortError> {
    let open_one = |port: &crate::config::PortConfig| {
        let queues = port::open(&Spec {
            number: port.number,
            name: port.name.clone(),
            driver: port.driver.clone(),
            device: port.device.clone(),
            queues: port.workers.len(),
        })?;
        let queues = port.workers.iter().copied().zip(queues).collect();
        Ok(OpenPort { number: port.number, name: port.name.clone(), queues })
    };
    config.datapath.ports.iter().map(open_one).collect()
}
