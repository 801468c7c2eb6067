// SPDX-License-Identifier: Apache-2.0
//! Ports as controllers see them.

use crate::data_plane::{DataPlane, PortCounters, PortQueue};
use crate::error::ModelError;
use crate::model::Model;
use crate::notices::PortReason;
use crate::stage::{Staged, Step};
use flow::{Limits, Nanos, Operation, PortNo, PortState, port_no};

/// What a port is. Feature bits are OpenFlow's OFPPF_*.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortDesc {
    /// Its number.
    pub number: PortNo,
    /// Its name.
    pub name: String,
    /// Its MAC.
    pub mac: [u8; 6],
    /// Features in use.
    pub current: u32,
    /// Features that the port advertises.
    pub advertised: u32,
    /// Features that the port can do.
    pub supported: u32,
    /// Features that its peer advertises.
    pub peer: u32,
    /// Current bit rate in kbit/s; 0: unknown.
    pub speed_kbps: u32,
    /// Highest bit rate in kbit/s; 0: unknown.
    pub max_speed_kbps: u32,
}

/// What controllers set at a port (OFPPC_*).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortConfig {
    /// Administratively down.
    pub down: bool,
    /// Drop what comes in.
    pub no_recv: bool,
    /// Drop what is sent here.
    pub no_fwd: bool,
    /// Not part of a flood (older versions of OpenFlow, and NORMAL).
    pub no_flood: bool,
    /// No packet-ins for packets from here.
    pub no_packet_in: bool,
}

/// A request to set a port's configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PortMod {
    /// The port.
    pub number: PortNo,
    /// Its MAC, against mistakes.
    pub mac: [u8; 6],
    /// What to set.
    pub config: PortConfig,
    /// Where to set it; the rest stays.
    pub mask: PortConfig,
    /// Features to advertise; 0: as they are, the only thing that can be had.
    pub advertise: u32,
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// What it is.
    pub desc: PortDesc,
    /// How it is set.
    pub config: PortConfig,
    /// Whether it has a link.
    pub link_up: bool,
    /// Since when it is there.
    pub added_ns: Nanos,
}

impl PortConfig {
    /// These settings, with others where the mask is set.
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
    /// Whether packets can pass: link and configuration.
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
    /// A number that is taken or not a port's, or too many ports.
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
        self.notices.port_status(PortReason::Add, port.clone());
        self.ports.insert(number, port);
        Ok(())
    }

    /// Says whether a port has a link. Without one it forgets its MACs.
    ///
    /// # Errors
    /// No such port.
    pub fn set_link(&mut self, now: Nanos, number: PortNo, up: bool) -> Result<(), ModelError> {
        self.change_port(now, number, |port| port.link_up = up)
    }

    /// Sets a port's configuration.
    ///
    /// # Errors
    /// No such port.
    pub fn set_port_config(
        &mut self,
        now: Nanos,
        number: PortNo,
        config: PortConfig,
    ) -> Result<(), ModelError> {
        self.change_port(now, number, |port| port.config = config)
    }

    /// Says that features, speed, name or MAC of a port changed; `desc.number` names it.
    ///
    /// # Errors
    /// No such port.
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

    /// What follows from changes of a port that are made for good; `before` the first of them.
    pub(crate) fn port_changed(&mut self, now: Nanos, before: &Port) {
        let number = before.desc.number;
        let Some(after) = self.ports.get(&number).filter(|after| *after != before).cloned() else { return };
        if before.is_up() && !after.is_up() {
            self.forget_macs_of(now, number);
        }
        self.notices.port_status(PortReason::Modify, after);
    }

    /// Takes a port away, and its MACs with it. Entries that name it stay.
    ///
    /// # Errors
    /// No such port.
    pub fn remove_port(&mut self, now: Nanos, number: PortNo) -> Result<(), ModelError> {
        let port = self.ports.remove(&number).ok_or(ModelError::NoSuchPort(number))?;
        self.version = self.plane.submit(Operation::RemovePort(number));
        self.forget_macs_of(now, number);
        self.notices.port_status(PortReason::Delete, port);
        Ok(())
    }

    /// The ports, by number.
    pub fn ports(&self) -> impl Iterator<Item = &Port> {
        self.ports.values()
    }

    /// One port.
    #[must_use]
    pub fn port(&self, number: PortNo) -> Option<&Port> {
        self.ports.get(&number)
    }

    /// A port's counters; none for a port that is not there.
    pub fn port_counters(&mut self, number: PortNo) -> Option<PortCounters> {
        self.ports.contains_key(&number).then(|| self.plane.port_counters(number).unwrap_or_default())
    }

    /// A port's egress queues, by number; none for a port that has none.
    pub fn queues(&mut self, number: PortNo) -> Vec<PortQueue> {
        self.plane.queues(number)
    }
}
