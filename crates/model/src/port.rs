// SPDX-License-Identifier: Apache-2.0
//! Ports as controllers see them.

use flow::{Nanos, PortNo, PortState};

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
    /// Current bit rate in kbit/s, or 0 if unknown.
    pub speed_kbps: u32,
    /// Maximum bit rate in kbit/s, or 0 if unknown.
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

/// A port with its state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Port {
    /// Description of the port.
    pub desc: PortDesc,
    /// Configuration of the port.
    pub config: PortConfig,
    /// Whether the port is reserved for the copies of a mirror. It then forwards no other packets.
    pub reserved: bool,
    /// Whether the port has a link.
    pub link_up: bool,
    /// Whether a storm limit has closed the port (OFPPS_BLOCKED).
    pub is_blocked: bool,
    /// Time when the port was added.
    pub added_ns: Nanos,
}

impl PortConfig {
    /// Returns this configuration with the settings in `mask` taken from `other`.
    pub(crate) fn with(self, other: Self, mask: Self) -> Self {
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
    /// Returns whether packets can pass: the link is up, the port is not administratively down, and no storm
    /// limit has closed it.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.link_up && !self.config.down && !self.is_blocked
    }

    /// Returns whether the port drops packets that it receives.
    #[must_use]
    pub fn no_recv(&self) -> bool {
        self.config.no_recv || self.reserved
    }

    /// Returns whether the port drops packets that are sent to it.
    #[must_use]
    pub fn no_fwd(&self) -> bool {
        self.config.no_fwd || self.reserved
    }

    pub(crate) fn state(&self) -> PortState {
        PortState {
            disabled: self.config.down,
            number: self.desc.number,
            up: self.is_up(),
            no_recv: self.no_recv(),
            no_fwd: self.no_fwd(),
            no_flood: self.config.no_flood,
            no_packet_in: self.config.no_packet_in,
        }
    }
}
