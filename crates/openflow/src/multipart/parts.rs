// SPDX-License-Identifier: Apache-2.0
//! Writer of replies that are lists. Only the current part is kept in memory.

use super::{MORE, put_multipart_header};
use crate::bytes::{Put, Reader};
use crate::error::{DecodeError, TooLong};
use crate::header::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, VERSION, kind};
use std::marker::PhantomData;

/// Length in bytes of a part before its first item.
const PART_HEADER_BYTES: usize = HEADER_BYTES + 8;

/// Item of a multipart list.
pub trait Item: Sized + private::Coded {}

impl<T: private::Coded> Item for T {}

pub(crate) mod private {
    use super::{DecodeError, Reader};

    pub trait Coded: Sized {
        /// Type of the multipart message.
        const KIND: u16;

        fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError>;
        fn encode(&self, out: &mut Vec<u8>);
    }
}

/// Decodes the remaining bytes of the reader as items. Each item consumes at least one byte, so the loop
/// ends.
pub(crate) fn decode_all<T: Item>(r: &mut Reader<'_>) -> Result<Vec<T>, DecodeError> {
    let mut items = Vec::new();
    while !r.is_empty() {
        items.push(T::decode(r)?);
    }
    Ok(items)
}

/// Writes one multipart reply as one or more messages. Other messages may be sent between the parts.
#[derive(Debug)]
pub struct Parts<T> {
    xid: u32,
    /// The part that is being written.
    part: Vec<u8>,
    items: PhantomData<fn(&T)>,
}

impl<T: Item> Parts<T> {
    /// Starts the reply to the request with transaction number `xid`.
    #[must_use]
    pub fn new(xid: u32) -> Self {
        let mut parts = Self { xid, part: Vec::new(), items: PhantomData };
        parts.begin();
        parts
    }

    fn begin(&mut self) {
        self.part.clear();
        Header { version: VERSION, kind: kind::MULTIPART_REPLY, length: 0, xid: self.xid }
            .write(&mut self.part);
        put_multipart_header(T::KIND, false, &mut self.part);
    }

    /// Adds an item. A full part is written to `out` as a complete message, and the item begins the next
    /// part.
    ///
    /// # Errors
    /// Returns an error if the item does not fit into an empty part. The reply then lacks the item.
    pub fn push(&mut self, item: &T, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let end = self.part.len();
        item.encode(&mut self.part);
        if self.part.len() <= MESSAGE_BYTES_MAX {
            return Ok(());
        }
        let length = self.part.len() - end + PART_HEADER_BYTES;
        if length > MESSAGE_BYTES_MAX {
            self.part.truncate(end);
            return Err(TooLong(length));
        }
        let last = self.part.split_off(end);
        self.emit(true, out);
        self.begin();
        self.part.extend_from_slice(&last);
        Ok(())
    }

    /// Writes the last part, which may be empty, and ends the reply.
    pub fn finish(self, out: &mut Vec<u8>) {
        self.end(false, out);
    }

    pub(crate) fn end(mut self, more: bool, out: &mut Vec<u8>) {
        self.emit(more, out);
    }

    fn emit(&mut self, more: bool, out: &mut Vec<u8>) {
        self.part.patch_length(2, 0);
        self.part.patch_u16(HEADER_BYTES + 2, if more { MORE } else { 0 });
        out.extend_from_slice(&self.part);
    }
}
