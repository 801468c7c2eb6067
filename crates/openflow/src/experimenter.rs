// SPDX-License-Identifier: Apache-2.0
//! Numbers of Shunt's extensions of OpenFlow 1.3. docs/openflow-extensions.md describes layouts, semantics
//! and errors.

/// Experimenter ID of Shunt.
pub const EXPERIMENTER: u32 = 0xff53_484e;
/// Experimenter ID of Nicira.
pub(crate) const NICIRA: u32 = 0x0000_2320;
/// Experimenter ID of the Open Networking Foundation.
pub(crate) const ONF: u32 = 0x4f4e_4600;

/// Number of the OXM field for an index of a linear table.
pub(crate) const OXM_INDEX: u8 = 4;

/// Subtypes of experimenter actions: Shunt's own, and two of Nicira's.
pub(crate) mod action {
    pub const PUSH_KEY: u16 = 1;
    pub const POP_KEY: u16 = 2;
    pub const PUSH_TF: u16 = 3;
    pub const PUSH_TF_WIDE: u16 = 4;
    pub const POP_TF: u16 = 5;
    pub const PUSH_POLKA: u16 = 6;
    pub const MOVE_BASE: u16 = 7;
    pub const ADD_FIELD: u16 = 8;
    pub const DELETE_FIELD: u16 = 9;
    pub const MODIFY_FIELD: u16 = 10;
    pub const COPY_FIELD: u16 = 11;
    pub const CALCULATE_CHECKSUM: u16 = 12;
    pub const CUT_FRONT: u16 = 13;
    /// Nicira's `reg_load`, which writes a range of bits.
    pub const NICIRA_REG_LOAD: u16 = 7;
    /// Nicira's `reg_load2`, which is a set-field with a mask.
    pub const NICIRA_REG_LOAD2: u16 = 33;
}

/// Types of Shunt's messages.
pub(crate) mod message {
    pub const STATELESS_MOD: u32 = 1;
    pub const STATELESS_REQUEST: u32 = 2;
    pub const STATELESS_REPLY: u32 = 3;
}

/// Subtypes of Shunt's instructions.
pub(crate) mod instruction {
    pub const GOTO_DIRECT: u16 = 1;
    pub const LOW_LATENCY: u16 = 2;
}
