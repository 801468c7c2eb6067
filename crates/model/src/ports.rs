// SPDX-License-Identifier: Apache-2.0
//! Ports as controllers see them.

use crate::async_messages::PortReason;
use crate::error::ModelError;
use crate::model::Model;
use crate::stage::{Staged, Step};
use dataplane::{DataPlane, PortCounters, PortQueue};
use flow::{Limits, Nanos, Operation, PortNo, PortState, port_no};

/// Description of a port. Feature bits are OpenFlow's OFPPF_*.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortDesc {
    /// Port number.
    pub number: PortNo,
    /// Port name.
    pub name: String,
    /// MAC address of the port.
    pub mac: [u8; 6],
    /// Features in use.
    pub current: u32,
    /// Features that the port advertises.
    pub advertised: u32,
    /// Features that the port supports.
    pub supported: u32,
    /// Features that the link partner advertises.
    pub peer: u32,
    /// Current bit rate in kbit/s; 0: unknown.
    pub speed_kbps: u32,
    /// Maximum bit rate in kbit/s; 0: unknown.
    pub max_speed_kbps: u32,
}

/// Port configuration set by controllers (OFPPC_*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortConfig {
    /// The port is administratively down.
    pub down: bool,
    /// Drop packets received on the port.
    pub no_recv: bool,
    /// Drop packets sent to the port.
    pub no_fwd: bool,
    /// Exclude the port from floods (NORMAL, and versions before OpenFlow 1.3).
    pub no_flood: bool,
    /// Send no packet-ins for packets received on the port.
    pub no_packet_in: bool,
}

/// A port-mod: a request to change a port's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortMod {
    /// Port number.
    pub number: PortNo,
    /// MAC address of the port; must match, as a check against mistakes.
    pub mac: [u8; 6],
    /// Values to set.
    pub config: PortConfig,
    /// Settings to change; the others are kept.
    pub mask: PortConfig,
    /// Features to advertise; must be 0 or the features already advertised.
    pub advertise: u32,
}

/// A port with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Description of the port.
    pub desc: PortDesc,
    /// Configuration of the port.
    pub config: PortConfig,
    /// Whether the port has a link.
    pub link_up: bool,
    /// Time when the port was added.
    pub added_ns: Nanos,
}

impl PortConfig {
    /// Returns this configuration with the masked settings replaced by those of `other`.
    fn with(self, other: Self, mask: Self) -> Self {
        let choose = |old, new, set| if set { new } else { old };
        Self {
            down: choose(self.down, other.down, mask.down),
            no_recv: choose(self.no_recv, other.no_recv, mask.no_recv),
            no_fwd: choose(self.no_fwd, other.no_fwd, mask.no_fwd),
            no_flood: choose(self.no_flood, other.no_flood, mask.no_flood),
            no_packet_in: choose(self.no_packet_in, other.no_packet_in, mask.no_packet_in),
        }
    }
}

impl Port {
    /// Returns whether packets can pass: the link is up and the port is not administratively down.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.link_up && !self.config.down
    }

    pub(crate) fn state(&self) -> PortState {
        PortState {
            number: self.desc.number,
            up: self.is_up(),
            no_recv: self.config.no_recv,
            no_fwd: self.config.no_fwd,
            no_flood: self.config.no_flood,
            no_packet_in: self.config.no_packet_in,
        }
    }
}

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
        if self.ports.contains_key(&number) {
            return Err(ModelError::PortExists(number));
        }
        if self.ports.len() >= Limits::PORTS {
            return Err(ModelError::TooManyPorts);
        }
        let port = Port { desc, config: PortConfig::default(), link_up, added_ns: now };
        self.version = self.plane.submit(Operation::Port(port.state()));
        self.async_messages.port_status(PortReason::Add, port.clone());
        self.ports.insert(number, port);
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

    /// Updates a port's description: features, speed, name or MAC. `desc.number` selects the port.
    ///
    /// # Errors
    /// Returns an error if the port does not exist.
    pub fn set_port_desc(&mut self, now: Nanos, desc: PortDesc) -> Result<(), ModelError> {
        self.change_port(now, desc.number, |port| port.desc = desc)
    }

    fn change_port(
        &mut self,
        now: Nanos,
        number: PortNo,
        change: impl FnOnce(&mut Port),
    ) -> Result<(), ModelError> {
        let mut staged = Staged::default();
        self.stage_port(number, change, &mut staged)?;
        self.commit(now, staged);
        Ok(())
    }

    pub(crate) fn stage_port_mod(&mut self, m: &PortMod, staged: &mut Staged) -> Result<(), ModelError> {
        let port = self.ports.get(&m.number).ok_or(ModelError::NoSuchPort(m.number))?;
        if port.desc.mac != m.mac {
            return Err(ModelError::PortMac(m.number));
        }
        if m.advertise != 0 && m.advertise != port.desc.advertised {
            return Err(ModelError::PortAdvertise(m.number));
        }
        self.stage_port(m.number, |port| port.config = port.config.with(m.config, m.mask), staged)
    }

    fn stage_port(
        &mut self,
        number: PortNo,
        change: impl FnOnce(&mut Port),
        staged: &mut Staged,
    ) -> Result<(), ModelError> {
        let port = self.ports.get_mut(&number).ok_or(ModelError::NoSuchPort(number))?;
        let before = port.clone();
        change(port);
        if *port == before {
            return Ok(());
        }
        if port.state() != before.state() {
            staged.others.push(Operation::Port(port.state()));
        }
        staged.log.push(Step::Port(Box::new(before)));
        Ok(())
    }

    /// Applies the consequences of committed changes to a port; `before` is its state before the first one.
    pub(crate) fn port_changed(&mut self, now: Nanos, before: &Port) {
        let number = before.desc.number;
        let Some(after) = self.ports.get(&number).filter(|after| *after != before).cloned() else { return };
        if before.is_up() && !after.is_up() {
            self.forget_macs_of(now, number);
        }
        self.async_messages.port_status(PortReason::Modify, after);
    }

    /// Removes a port and its learned MACs. Entries that output to the port stay.
    ///
    /// # Errors
    /// Returns an error if the port does not exist.
    pub fn remove_port(&mut self, now: Nanos, number: PortNo) -> Result<(), ModelError> {
        let port = self.ports.remove(&number).ok_or(ModelError::NoSuchPort(number))?;
        self.version = self.plane.submit(Operation::RemovePort(number));
        self.forget_macs_of(now, number);
        self.async_messages.port_status(PortReason::Delete, port);
        Ok(())
    }

    /// Returns the ports in order of their numbers.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.values()
    }

    /// Returns the port with this number.
    #[must_use]
    pub fn port(&self, number: PortNo) -> Option<&Port> {
        self.ports.get(&number)
    }

    /// Returns a port's counters, or `None` if the port does not exist.
    pub fn port_counters(&mut self, number: PortNo) -> Option<PortCounters> {
        self.ports.contains_key(&number).then(|| self.plane.port_counters(number).unwrap_or_default())
    }

    /// Returns a port's egress queues in order of their numbers; empty if the port has none.
    pub fn queues(&mut self, number: PortNo) -> Vec<PortQueue> {
        self.plane.queues(number)
    }
}
