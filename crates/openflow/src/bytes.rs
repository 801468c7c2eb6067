// SPDX-License-Identifier: Apache-2.0
//! A bounds-checked reader, and a writer in network byte order.

use crate::error::{DecodeError, ErrorCode};
use flow::Nanos;

type Read<T> = Result<T, DecodeError>;

/// Reader of a structure's bytes. A read past the end fails with the structure's error code.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
    short: ErrorCode,
}

impl<'a> Reader<'a> {
    /// Creates a reader. `what` names the structure in error messages. `short` is the error code for a wrong
    /// length.
    pub fn new(bytes: &'a [u8], what: &'static str, short: ErrorCode) -> Self {
        Self { rest: bytes, what, short }
    }

    /// Returns a reader of the next `length` bytes, which form a nested structure.
    pub fn part(&mut self, length: usize, what: &'static str, short: ErrorCode) -> Read<Reader<'a>> {
        match self.rest.split_at_checked(length) {
            Some((part, rest)) => {
                self.rest = rest;
                Ok(Reader::new(part, what, short))
            }
            None => short.says(format!(
                "{what} claims {length} bytes, but {} are left in {}",
                self.rest.len(),
                self.what
            )),
        }
    }

    pub fn take(&mut self, length: usize) -> Read<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return self.short.says(format!(
                "{} is cut short: {length} more bytes are needed, but {} follow",
                self.what,
                self.rest.len()
            ));
        };
        self.rest = rest;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Read<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub fn u8(&mut self) -> Read<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    pub fn u16(&mut self) -> Read<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Read<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Read<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    pub fn u128(&mut self) -> Read<u128> {
        Ok(u128::from_be_bytes(self.array()?))
    }

    /// Skips padding with any content.
    pub fn skip(&mut self, length: usize) -> Read<()> {
        self.take(length).map(|_| ())
    }

    /// Returns all unread bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the next `length` bytes without consuming them, or `None` if there are fewer.
    pub fn peek(&self, length: usize) -> Option<&'a [u8]> {
        self.rest.get(..length)
    }

    /// Returns the 16-bit number that is `at` bytes ahead, without consuming it.
    pub fn peek_u16(&self, at: usize) -> Read<u16> {
        let mut ahead = self.clone();
        ahead.skip(at)?;
        ahead.u16()
    }

    /// Returns an error if the structure has unread bytes.
    pub fn end(&self) -> Read<()> {
        if self.rest.is_empty() {
            return Ok(());
        }
        self.short.says(format!("{} has {} bytes too many", self.what, self.rest.len()))
    }

    /// Reads text from a field of `N` bytes, up to the first NUL. Invalid UTF-8 is replaced.
    pub fn text<const N: usize>(&mut self) -> Read<String> {
        let bytes = self.take(N)?;
        let length = bytes.iter().position(|b| *b == 0).unwrap_or(N);
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

/// Writer in network byte order.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);
    fn zeros(&mut self, count: usize);
    /// Overwrites the 16-bit number at offset `at`.
    fn patch_u16(&mut self, at: usize, value: u16);
    fn length(&self) -> usize;

    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }

    /// Writes text to a field of `size` bytes. The last byte of the field is 0. Longer text is cut at a
    /// character boundary.
    fn put_text(&mut self, text: &str, size: usize) {
        let mut length = text.len().min(size - 1);
        while !text.is_char_boundary(length) {
            length -= 1;
        }
        self.put(&text.as_bytes()[..length]);
        self.zeros(size - length);
    }

    /// Writes the length of the data since `start` to offset `at`. A length above 65535 is detected when the
    /// message is complete.
    fn patch_length(&mut self, at: usize, start: usize) {
        let length = self.length() - start;
        self.patch_u16(at, u16::try_from(length).unwrap_or(u16::MAX));
    }

    /// Pads the data since `start` to a multiple of 8 bytes.
    fn pad8(&mut self, start: usize) {
        let length = self.length() - start;
        self.zeros(length.next_multiple_of(8) - length);
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }

    fn patch_u16(&mut self, at: usize, value: u16) {
        self[at..at + 2].copy_from_slice(&value.to_be_bytes());
    }

    fn length(&self) -> usize {
        self.len()
    }
}

/// Writes a duration in the format of statistics: whole seconds and remaining nanoseconds.
pub(crate) fn put_duration(out: &mut Vec<u8>, duration: Nanos) {
    out.put_u32(u32::try_from(duration / Nanos::SECOND).unwrap_or(u32::MAX));
    out.put_u32((duration % Nanos::SECOND).0 as u32);
}

/// Reads a duration written by [`put_duration`].
pub(crate) fn duration(r: &mut Reader<'_>) -> Read<Nanos> {
    let seconds = u64::from(r.u32()?);
    Ok(seconds * Nanos::SECOND + Nanos(r.u32()?.into()))
}

/// Returns `None` if `value` equals `none`, which stands for "none" or "any" on the wire.
pub(crate) fn unless(none: u32, value: u32) -> Option<u32> {
    (value != none).then_some(value)
}
