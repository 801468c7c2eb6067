// SPDX-License-Identifier: Apache-2.0
//! Reasons why the device cannot execute an entry, with the error types and codes of OpenFlow 1.3.

use flow::{Field, PortNo, TableId};
use thiserror::Error;

const BAD_ACTION: u16 = 2;
const BAD_INSTRUCTION: u16 = 3;
const BAD_MATCH: u16 = 4;
const FLOW_MOD_FAILED: u16 = 5;

/// Reason why an entry was refused. A refused change has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CompileError {
    /// The device has no PPU for the table (OFPFMFC_BAD_TABLE_ID).
    #[error("the device has no table {0}")]
    NoTable(TableId),
    /// The next table does not exist, or is not behind this one (OFPBIC_BAD_TABLE_ID).
    #[error("the device has no table {0} behind this one")]
    NoNextTable(TableId),
    /// All entries of a PPU are in use (OFPFMFC_TABLE_FULL).
    #[error("PPU {ppu} has {free} free entries, and the change needs {needed}")]
    TableFull {
        /// Number of the PPU.
        ppu: u8,
        /// Number of free entries.
        free: usize,
        /// Number of entries that the change needs.
        needed: usize,
    },
    /// The entries of the table examine too many slices (OFPFMFC_TABLE_FULL).
    #[error("the key of PPU {ppu} would have {slices} slices; the device has 4 of 4 bytes")]
    KeyFull {
        /// Number of the PPU.
        ppu: u8,
        /// Number of slices that the key would have.
        slices: usize,
    },
    /// All tags or numbers of packet-ins are in use (OFPFMFC_TABLE_FULL).
    #[error("all 8-bit numbers for {0} are in use")]
    NumbersUsed(&'static str),
    /// The device cannot compare the field, or the packet's copied part does not reach it (OFPBMC_BAD_FIELD).
    #[error("the device cannot match {0}")]
    Match(Field),
    /// The match is an index of a linear table (OFPBMC_BAD_FIELD).
    #[error("the device has no linear tables")]
    Index,
    /// The device does not have the instruction (OFPBIC_UNSUP_INST).
    #[error("the device cannot execute the instruction: {0}")]
    Instruction(&'static str),
    /// Bits of the metadata register that the device does not have (OFPBIC_UNSUP_METADATA).
    #[error("the device has only the low 8 bits of the metadata register")]
    Metadata,
    /// Not all bits of the metadata register are written (OFPBIC_UNSUP_METADATA_MASK).
    #[error("the device writes all 8 bits of the metadata register, unless the entry matches the others")]
    MetadataMask,
    /// The device does not have the action (OFPBAC_BAD_TYPE).
    #[error("the device cannot execute the action: {0}")]
    Action(&'static str),
    /// The port is not one of the device (OFPBAC_BAD_OUT_PORT).
    #[error("the device cannot send to port {0:#x}")]
    OutPort(PortNo),
    /// The device has no egress queues (OFPBAC_BAD_QUEUE).
    #[error("the device has only queue 0")]
    Queue,
    /// The device cannot write the field (OFPBAC_BAD_SET_TYPE).
    #[error("the device cannot write {0}")]
    SetField(Field),
    /// A byte of the field has other bits that the entry does not match (OFPBAC_BAD_SET_ARGUMENT).
    #[error("the device writes whole bytes; match the other bits of the bytes of {0}")]
    PartOfByte(Field),
    /// More edits than the PPUs up to the next table can execute (OFPBAC_TOO_MANY).
    #[error("the actions need {needed} PPUs, and there are {available} up to the next table")]
    TooManyEdits {
        /// Number of PPUs.
        needed: usize,
        /// Number of PPUs that the table can use.
        available: usize,
    },
    /// A packet could have two outputs (OFPBAC_TOO_MANY).
    #[error("a packet leaves the device once: {0}")]
    Outputs(&'static str),
    /// The device copies and edits only the first bytes of a frame (OFPBAC_BAD_ARGUMENT).
    #[error("the edit ends at byte {end} of its header, and the device edits up to byte {limit}")]
    Reach {
        /// Byte behind the edit, counted from the frame's first byte or from the header of the slice.
        end: u16,
        /// Largest possible value of `end`.
        limit: u16,
    },
    /// Frames could become too long or too short (OFPBAC_TOO_MANY).
    #[error("entries can lengthen or shorten a frame by 16 bytes in all")]
    Growth,
}

impl CompileError {
    /// Returns the error type and code.
    #[must_use]
    pub fn openflow(self) -> (u16, u16) {
        match self {
            Self::TableFull { .. } | Self::KeyFull { .. } | Self::NumbersUsed(_) => (FLOW_MOD_FAILED, 1),
            Self::NoTable(_) => (FLOW_MOD_FAILED, 2),
            Self::Match(_) | Self::Index => (BAD_MATCH, 6),
            Self::Instruction(_) => (BAD_INSTRUCTION, 1),
            Self::NoNextTable(_) => (BAD_INSTRUCTION, 2),
            Self::Metadata => (BAD_INSTRUCTION, 3),
            Self::MetadataMask => (BAD_INSTRUCTION, 4),
            Self::Action(_) => (BAD_ACTION, 0),
            Self::OutPort(_) => (BAD_ACTION, 4),
            Self::Reach { .. } => (BAD_ACTION, 5),
            Self::TooManyEdits { .. } | Self::Outputs(_) | Self::Growth => (BAD_ACTION, 7),
            Self::Queue => (BAD_ACTION, 8),
            Self::SetField(_) => (BAD_ACTION, 13),
            Self::PartOfByte(_) => (BAD_ACTION, 15),
        }
    }
}
