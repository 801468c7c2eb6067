// SPDX-License-Identifier: Apache-2.0
//! Changes to ports that the owner of the model makes. Port-mods of controllers are handled in `changes`.

use crate::async_messages::PortReason;
use crate::error::ModelError;
use crate::model::Model;
use crate::port::{Port, PortConfig, PortDesc};
use dataplane::DataPlane;
use flow::{Limits, Nanos, Operation, PortNo, port_no};

impl<D: DataPlane> Model<D> {
    /// Adds a port.
    ///
    /// # Errors
    /// Returns an error if the number is in use or reserved, or if there are too many ports.
    pub fn add_port(&mut self, now: Nanos, desc: PortDesc, link_up: bool) -> Result<(), ModelError> {
        let number = desc.number;
        if !port_no::is_real(number) {
            return Err(ModelError::BadPortNumber(number));
        }
        if self.rules.ports.contains_key(&number) {
            return Err(ModelError::PortExists(number));
        }
        if self.rules.ports.len() >= Limits::PORTS {
            return Err(ModelError::TooManyPorts);
        }
        let config = PortConfig::default();
        let port = Port { desc, config, reserved: false, link_up, is_blocked: false, added_ns: now };
        self.plane.submit(Operation::Port(port.state()));
        self.async_messages.port_status(PortReason::Add, port.clone());
        self.rules.ports.insert(number, port);
        Ok(())
    }

    /// Sets a port's link state. A port that loses its link loses its learned MACs.
    ///
    /// # Errors
    /// Returns an error if the port does not exist.
    pub fn set_link(&mut self, now: Nanos, number: PortNo, up: bool) -> Result<(), ModelError> {
        self.change_port(now, number, |port| port.link_up = up)
    }

    /// Sets a port's configuration.
    ///
    /// # Errors
    /// Returns an error if the port does not exist.
    pub fn set_port_config(
        &mut self,
        now: Nanos,
        number: PortNo,
        config: PortConfig,
    ) -> Result<(), ModelError> {
        self.change_port(now, number, |port| port.config = config)
    }

    /// Reserves a port for the copies of a mirror, or ends the reservation. A reserved port forwards no other
    /// packets, whatever its configuration is.
    ///
    /// # Errors
    /// Returns an error if the port does not exist.
    pub fn reserve_port(&mut self, now: Nanos, number: PortNo, reserved: bool) -> Result<(), ModelError> {
        self.change_port(now, number, |port| port.reserved = reserved)
    }

    /// Updates a port's description: features, speed, name or MAC. `desc.number` selects the port.
    ///
    /// # Errors
    /// Returns an error if the port does not exist.
    pub fn set_port_desc(&mut self, now: Nanos, desc: PortDesc) -> Result<(), ModelError> {
        self.change_port(now, desc.number, |port| port.desc = desc)
    }

    /// Removes a port and its learned MACs. Entries that output to the port stay.
    ///
    /// # Errors
    /// Returns an error if the port does not exist.
    pub fn remove_port(&mut self, now: Nanos, number: PortNo) -> Result<(), ModelError> {
        let port = self.rules.ports.remove(&number).ok_or(ModelError::NoSuchPort(number))?;
        self.storms.forget(number);
        self.plane.submit(Operation::RemovePort(number));
        self.forget_macs_of(now, number);
        self.macs.forget_counts(number);
        self.async_messages.port_status(PortReason::Delete, port);
        Ok(())
    }

    fn change_port(
        &mut self,
        now: Nanos,
        number: PortNo,
        change: impl FnOnce(&mut Port),
    ) -> Result<(), ModelError> {
        self.transact(now, |transaction| {
            if !transaction.rules().ports.contains_key(&number) {
                return Err(ModelError::NoSuchPort(number));
            }
            transaction.change_port(number, change);
            Ok(())
        })?;
        Ok(())
    }
}
