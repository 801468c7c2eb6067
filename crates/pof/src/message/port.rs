// SPDX-License-Identifier: Apache-2.0
//! Ports, PORT_STATUS and PORT_MOD.

use crate::error;
use crate::layout::{self, choice, record};
use crate::value::PofText;

choice! {
    /// Whether a port takes part in forwarding.
    pub enum PofForwarding: "of_enable", else error::PORT_MOD_UNKNOWN {
        /// The port receives and sends nothing.
        Disabled = 0,
        /// The port receives and sends packets.
        Enabled = 1,
    }
}

record! {
    /// Description of a port. Configuration, state and features have the bits of OpenFlow 1.3.
    pub struct PofPort: "port" [120 120] {
        /// Slot of the port.
        slot: u16 = (-) (0 2),
        /// Port number within the slot.
        number: u32 = (0 4) (2 2),
        /// Number that the controller knows the switch by.
        device_id: u32 = (4 4) (4 4),
        /// MAC address.
        mac: [u8; 6] = (8 6) (8 6),
        /// Name of the port.
        name: PofText<64> = (16 64) (16 64),
        /// Configuration.
        config: u32 = (80 4) (80 4),
        /// State.
        state: u32 = (84 4) (84 4),
        /// Features in use.
        current: u32 = (88 4) (88 4),
        /// Features that the port advertises.
        advertised: u32 = (92 4) (92 4),
        /// Features that the port supports.
        supported: u32 = (96 4) (96 4),
        /// Features that the link partner advertises.
        peer: u32 = (100 4) (100 4),
        /// Current bit rate in kbit/s.
        speed_kbps: u32 = (104 4) (104 4),
        /// Highest bit rate in kbit/s.
        max_speed_kbps: u32 = (108 4) (108 4),
        /// Whether the port takes part in forwarding. Only this field of PORT_MOD has an effect.
        forwarding: PofForwarding = (112 1) (112 1),
    }
}

choice! {
    /// Reason for a PORT_STATUS.
    pub enum PofPortReason: "port-status reason", else error::BAD_TYPE {
        /// The port was added.
        Add = 0,
        /// The port was removed.
        Delete = 1,
        /// The port changed.
        Modify = 2,
    }
}

record! {
    /// Body of PORT_STATUS and PORT_MOD.
    pub struct PofPortStatus: "PORT_STATUS, PORT_MOD" [128 128] {
        /// Reason. PORT_MOD has [`PofPortReason::Modify`], and switches do not examine it.
        reason: PofPortReason = (0 1) (0 1),
        /// The port.
        port: PofPort = (8 120) (8 120),
    }
}
