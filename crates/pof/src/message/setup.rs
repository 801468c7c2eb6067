// SPDX-License-Identifier: Apache-2.0
//! ERROR, FEATURES_REPLY, switch configuration, and the messages about slots.

use crate::error::{self, PofErrorCode};
use crate::layout::{self, choice, record};
use crate::value::PofText;

record! {
    /// Body of ERROR.
    pub struct PofErrorMessage: "ERROR" [264 272] {
        /// Error type.
        kind: u16 = (0 2) (0 2),
        /// Code within the type.
        code: u16 = (2 2) (2 2),
        /// Number that the controller knows the switch by.
        device_id: u32 = (4 4) (4 4),
        /// Slot of the switch.
        slot: u16 = (-) (8 2),
        /// Description.
        text: PofText<256> = (8 256) (16 256),
    }
}

impl PofErrorMessage {
    /// Returns type and code.
    #[must_use]
    pub fn error_code(&self) -> PofErrorCode {
        PofErrorCode::new(self.kind, self.code)
    }
}

/// Capabilities in FEATURES_REPLY.
pub mod capability {
    /// Counters of entries.
    pub const FLOW_STATS: u32 = 1;
    /// Counters of tables.
    pub const TABLE_STATS: u32 = 1 << 1;
    /// Counters of ports.
    pub const PORT_STATS: u32 = 1 << 2;
    /// Counters of groups.
    pub const GROUP_STATS: u32 = 1 << 3;
}

record! {
    /// Body of FEATURES_REPLY.
    pub struct PofFeatures: "FEATURES_REPLY" [208 208] {
        /// Number that the controller knows the switch by.
        device_id: u32 = (0 4) (0 4),
        /// Slot of the switch.
        slot: u16 = (-) (4 2),
        /// Number of ports.
        ports: u16 = (4 2) (6 2),
        /// Number of tables of all types.
        tables: u16 = (6 2) (8 2),
        /// Bits of [`capability`].
        capabilities: u32 = (8 4) (12 4),
        /// Vendor.
        vendor: PofText<64> = (16 64) (16 64),
        /// Name and version of the forwarding engine.
        forwarding_engine: PofText<64> = (80 64) (80 64),
        /// Name and version of the lookup engine.
        lookup_engine: PofText<64> = (144 64) (144 64),
    }
}

record! {
    /// Body of SET_CONFIG and GET_CONFIG_REPLY.
    pub struct PofSwitchConfig: "SET_CONFIG, GET_CONFIG_REPLY" [4 8] {
        /// Number that the controller knows the switch by.
        device_id: u32 = (-) (0 4),
        /// Treatment of IP fragments: 0 normal, 1 drop, 2 reassemble.
        flags: u16 = (0 2) (4 2),
        /// Maximum number of bytes of a packet in a packet-in.
        miss_send_length: u16 = (2 2) (6 2),
    }
}

record! {
    /// Body of QUERYALL_REQUEST: requests all tables and entries.
    pub struct QueryAll: "QUERYALL_REQUEST" [- 8] {
        /// Slot of the switch, or 0xffff for all slots.
        slot: u16 = (-) (0 2),
    }
}

choice! {
    /// State that SLOT_CONFIG requests.
    pub enum SlotForwarding: "forwarding of a slot", else error::BAD_TYPE {
        /// The slot does not forward.
        Disabled = 0,
        /// The slot forwards.
        Enabled = 1,
    }
}

record! {
    /// Body of SLOT_CONFIG.
    pub struct SlotConfig: "SLOT_CONFIG" [- 8] {
        /// Slot of the switch, or 0xffff for all slots.
        slot: u16 = (-) (0 2),
        /// Requested state.
        forwarding: SlotForwarding = (-) (2 1),
    }
}

choice! {
    /// State of a slot.
    pub enum SlotState: "slot state", else error::BAD_TYPE {
        /// The slot does not work.
        Down = 0,
        /// The slot works.
        Up = 1,
    }
}

choice! {
    /// Whether the controller must send tables and entries of a slot again.
    pub enum SlotResend: "resend flag", else error::BAD_TYPE {
        /// The slot has its tables.
        No = 0,
        /// The slot lost its tables.
        Yes = 1,
    }
}

record! {
    /// Body of SLOT_STATUS.
    pub struct SlotStatus: "SLOT_STATUS" [- 8] {
        /// Slot of the switch.
        slot: u16 = (-) (0 2),
        /// State of the slot.
        state: SlotState = (-) (2 1),
        /// Whether tables and entries must be sent again.
        resend: SlotResend = (-) (3 1),
    }
}
