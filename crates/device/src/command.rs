// SPDX-License-Identifier: Apache-2.0
//! Commands that configure a PPU (programmable processing unit), the body of a Flow_mod.
//!
//! A command begins with its code, the number of the PPU, and the index of an entry, which is 0 in
//! [`PpuCommand::Select`]. Every command sets a state, so a repeated command does no harm. An entry with a
//! lower index has precedence.

use crate::action::{ACTION_BYTES, ActionWord};
use crate::key::{KEY_BYTES, KEY_SLICES, KeySlice, SLICE_BYTES, SelectorBase, TernaryKey};
use crate::message::CodecError;
use crate::reader::BodyReader;

/// A command for one PPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PpuCommand {
    /// Sets the slices of the key. The table should be empty, because its entries were made for the old key.
    Select {
        /// Slices from the key's most significant end on.
        slices: [KeySlice; KEY_SLICES],
    },
    /// Writes an entry. An existing entry of this index is removed first.
    Write {
        /// Index of the entry.
        index: u16,
        /// Value and mask of the key.
        key: TernaryKey,
        /// What the entry does.
        action: ActionWord,
    },
    /// Removes an entry.
    Remove {
        /// Index of the entry.
        index: u16,
    },
    /// Replaces the action of an entry. No packet sees a mixture of both.
    Act {
        /// Index of the entry.
        index: u16,
        /// What the entry does.
        action: ActionWord,
    },
}

/// Codes of the commands.
pub const COMMAND_CODES: [(&str, u8); 4] = [("select", 0), ("write", 1), ("remove", 2), ("act", 3)];

impl PpuCommand {
    /// Returns the code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Select { .. } => 0,
            Self::Write { .. } => 1,
            Self::Remove { .. } => 2,
            Self::Act { .. } => 3,
        }
    }

    /// Returns the index of the entry, or 0 for `Select`.
    #[must_use]
    pub fn index(&self) -> u16 {
        match *self {
            Self::Select { .. } => 0,
            Self::Write { index, .. } | Self::Remove { index } | Self::Act { index, .. } => index,
        }
    }

    pub(crate) fn encode(&self, ppu: u8, out: &mut Vec<u8>) {
        out.extend([self.code(), ppu]);
        out.extend(self.index().to_be_bytes());
        match self {
            Self::Select { slices } => {
                out.extend(slices.iter().flat_map(|slice| [slice.base as u8, slice.offset, slice.bytes, 0]));
            }
            Self::Write { key, action, .. } => {
                encode_key(key, out);
                out.extend(action.to_bytes());
            }
            Self::Remove { .. } => {}
            Self::Act { action, .. } => out.extend(action.to_bytes()),
        }
    }

    /// Reads the number of the PPU and the command.
    pub(crate) fn decode(from: &mut BodyReader<'_>) -> Result<(u8, Self), CodecError> {
        let (code, ppu, index) = (from.u8()?, from.u8()?, from.u16()?);
        let command = match code {
            0 if index != 0 => return Err(CodecError::Value { field: "index", value: index.into() }),
            0 => {
                let mut slices = [KeySlice::default(); KEY_SLICES];
                for slice in &mut slices {
                    *slice = decode_slice(from)?;
                }
                Self::Select { slices }
            }
            1 => Self::Write { index, key: decode_key(from)?, action: decode_action(from)? },
            2 => Self::Remove { index },
            3 => Self::Act { index, action: decode_action(from)? },
            other => return Err(CodecError::Value { field: "command", value: other.into() }),
        };
        Ok((ppu, command))
    }
}

fn decode_slice(from: &mut BodyReader<'_>) -> Result<KeySlice, CodecError> {
    let [base, offset, bytes] = from.take::<3>()?;
    from.zero()?;
    let unknown = CodecError::Value { field: "base", value: base.into() };
    let base = *SelectorBase::ALL.get(usize::from(base)).ok_or(unknown)?;
    if usize::from(bytes) > SLICE_BYTES {
        return Err(CodecError::Value { field: "bytes of a slice", value: bytes.into() });
    }
    Ok(KeySlice { base, offset, bytes })
}

pub(crate) fn encode_key(key: &TernaryKey, out: &mut Vec<u8>) {
    out.extend(key.value);
    out.extend(key.mask);
    out.extend([0, 0]);
}

pub(crate) fn decode_key(from: &mut BodyReader<'_>) -> Result<TernaryKey, CodecError> {
    let key = TernaryKey { value: from.take::<KEY_BYTES>()?, mask: from.take::<KEY_BYTES>()? };
    from.zero()?;
    from.zero()?;
    if key.is_canonical() { Ok(key) } else { Err(CodecError::Value { field: "key", value: 0 }) }
}

pub(crate) fn decode_action(from: &mut BodyReader<'_>) -> Result<ActionWord, CodecError> {
    let bytes = from.take::<ACTION_BYTES>()?;
    ActionWord::from_bytes(&bytes).ok_or(CodecError::Value { field: "action", value: 0 })
}
