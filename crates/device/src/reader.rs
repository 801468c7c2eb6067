// SPDX-License-Identifier: Apache-2.0
//! Reads values from the body of a message.

use crate::message::CodecError;

/// Rest of a body.
pub struct BodyReader<'a>(pub &'a [u8]);

impl<'a> BodyReader<'a> {
    /// Takes the next `N` bytes.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], CodecError> {
        let (first, rest) = self.0.split_first_chunk::<N>().ok_or(CodecError::Short)?;
        self.0 = rest;
        Ok(*first)
    }

    pub fn u8(&mut self) -> Result<u8, CodecError> {
        Ok(u8::from_be_bytes(self.take()?))
    }

    pub fn u16(&mut self) -> Result<u16, CodecError> {
        Ok(u16::from_be_bytes(self.take()?))
    }

    pub fn u64(&mut self) -> Result<u64, CodecError> {
        Ok(u64::from_be_bytes(self.take()?))
    }

    /// Reads a byte that is 0 or 1.
    pub fn flag(&mut self) -> Result<bool, CodecError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(CodecError::Value { field: "flag", value: other.into() }),
        }
    }

    /// Skips a byte that must be 0.
    pub fn zero(&mut self) -> Result<(), CodecError> {
        match self.u8()? {
            0 => Ok(()),
            other => Err(CodecError::Value { field: "padding", value: other.into() }),
        }
    }

    /// Takes all remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
