// SPDX-License-Identifier: Apache-2.0
//! Changes of ports: their links, configuration, removal and return.

use super::{Driver, Subject};
use crate::drive::setup::port_desc;
use flow::PortNo;
use model::PortConfig;

impl Driver {
    /// Usually restores ports. Returns true if some ports are still down or missing.
    pub(super) fn restore_ports(&mut self) -> Result<bool, String> {
        let whole = |model: &model::Model<_>, number: PortNo| {
            model.port(number).is_some_and(|port| port.is_up() && !port.config.no_recv)
        };
        let lacking: Vec<PortNo> =
            self.style.port_numbers().filter(|number| !whole(&self.model, *number)).collect();
        self.record.changes.several_ports_down += usize::from(lacking.len() > 1);
        if lacking.is_empty() || self.rng.u8(0..4) == 0 {
            return Ok(!lacking.is_empty());
        }
        for number in lacking {
            if self.model.port(number).is_none() {
                let added = self.model.add_port(self.now, port_desc(number), true);
                added.map_err(|error| error.to_string())?;
                self.record.changes.ports_added += 1;
            }
            drop(self.model.set_link(self.now, number, true));
            drop(self.model.set_port_config(self.now, number, PortConfig::default()));
        }
        self.follow()?;
        Ok(false)
    }

    /// Changes the state of the packet's output port, and sometimes of other ports at the same time.
    pub(super) fn disturb_ports(&mut self, subject: &Subject) {
        let egress = subject.before.sent.first().map_or(subject.port, |copy| copy.port);
        self.disturb_port(egress);
        if self.rng.u8(0..3) == 0 {
            for _ in 0..self.rng.usize(1..3) {
                let other = self.style.any_port(&mut self.rng);
                self.disturb_port(other);
            }
        }
    }

    fn disturb_port(&mut self, port: PortNo) {
        match self.rng.u8(0..8) {
            0..4 => drop(self.model.set_link(self.now, port, false)),
            4 | 5 => {
                if self.model.remove_port(self.now, port).is_ok() {
                    self.closed.forget(port);
                    self.record.changes.ports_removed += 1;
                }
            }
            _ => {
                let config = PortConfig {
                    down: self.rng.u8(0..6) == 0,
                    no_recv: self.rng.u8(0..6) == 0,
                    no_fwd: self.rng.u8(0..8) > 0,
                    no_flood: self.rng.u8(0..4) == 0,
                    no_packet_in: self.rng.u8(0..4) == 0,
                };
                drop(self.model.set_port_config(self.now, port, config));
            }
        }
    }
}
