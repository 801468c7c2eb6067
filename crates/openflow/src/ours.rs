// SPDX-License-Identifier: Apache-2.0
//! This switch's extensions to OpenFlow 1.3, under the experimenter ID 0xFF53484E (private use). All numbers are
//! big-endian.
//!
//! ## Match fields (OXM class 0xffff, in matches and in set-field actions)
//! The 4 bytes of the OXM header (class 16, field 7, has-mask 1, length of what follows 8 bits), the experimenter ID
//! (32), then:
//!
//! | field | content |
//! |---|---|
//! | 0 `packet`, 1 `metadata`, 2 `l3`, 3 `l4` | slice with this base: first bit 16, length in bits 16, value, mask if has-mask; value and mask are right-aligned in as many bytes as the length in bits fills |
//! | 4 | index of an entry of a linear table 32, never with a mask; stands alone in its match |
//!
//! ## Actions (type 0xffff)
//! Type 16, length 16, experimenter ID 32, subtype 16, then (and zeros to a multiple of 8 bytes):
//!
//! | subtype | content |
//! |---|---|
//! | 1 `push_key` | hop limit 8, epoch 8, bytes of the key 16, zeros 16, key |
//! | 2 `pop_key`, 5 `pop_tf` | zeros 48 |
//! | 3 `push_tf`, 4 `push_tf_wide` | qid 8, zeros 8, up 32, down 16, zeros 48 |
//!
//! ## Instructions (type 0xffff)
//! Type 16, length 16, experimenter ID 32, subtype 16, then:
//!
//! | subtype | content |
//! |---|---|
//! | 1 `goto_direct` | table 8, zeros 8, index 32 |
//! | 2 `low_latency` | 1 or 0 in 8 bits, zeros 40: overrides what the cookie says, in flow-mods |
//!
//! No messages are defined yet: the ID is answered with OFPBRC_BAD_EXP_TYPE.
//!
//! Masked set-field actions of named fields, which OpenFlow 1.3 does not have, go as Nicira's `reg_load2`
//! (experimenter 0x2320, subtype 33, an OXM with a mask, zeros to a multiple of 8 bytes), which ovs-ofctl prints as
//! set_field; they come as that or as `reg_load` (subtype 7), which ovs-ofctl sends.

/// Our experimenter ID.
pub const EXPERIMENTER: u32 = 0xff53_484e;
/// Nicira's experimenter ID.
pub(crate) const NICIRA: u32 = 0x0000_2320;
/// The Open Networking Foundation's experimenter ID.
pub(crate) const ONF: u32 = 0x4f4e_4600;

/// Number of the OXM field that holds an index.
pub(crate) const OXM_INDEX: u8 = 4;

/// Subtypes of our actions.
pub(crate) mod action {
    pub const PUSH_KEY: u16 = 1;
    pub const POP_KEY: u16 = 2;
    pub const PUSH_TF: u16 = 3;
    pub const PUSH_TF_WIDE: u16 = 4;
    pub const POP_TF: u16 = 5;
    /// Nicira's write of a run of bits.
    pub const NICIRA_REG_LOAD: u16 = 7;
    /// Nicira's masked set-field.
    pub const NICIRA_REG_LOAD2: u16 = 33;
}

/// Subtypes of our instructions.
pub(crate) mod instruction {
    pub const GOTO_DIRECT: u16 = 1;
    pub const LOW_LATENCY: u16 = 2;
}
