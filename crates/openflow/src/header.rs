// SPDX-License-Identifier: Apache-2.0
//! Message header: version 8 bits, type 8, length 16, transaction number 32.

use crate::bytes::Put;
use crate::error::{self, DecodeError};

/// Version number of OpenFlow 1.3.
pub const VERSION: u8 = 4;
/// Length of a header in bytes.
pub const HEADER_BYTES: usize = 8;
/// Maximum length of a message in bytes.
pub const MESSAGE_BYTES_MAX: usize = 0xffff;

/// Header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Protocol version.
    pub version: u8,
    /// Message type (OFPT_*).
    pub kind: u8,
    /// Length in bytes of the whole message, including the header.
    pub length: u16,
    /// Transaction number. A reply has the number of its request.
    pub xid: u32,
}

impl Header {
    /// Reads the header at the start of `bytes`. Returns `None` if there are fewer than 8 bytes.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let &[version, kind, l0, l1, x0, x1, x2, x3] = bytes.first_chunk::<HEADER_BYTES>()?;
        let length = u16::from_be_bytes([l0, l1]);
        Some(Self { version, kind, length, xid: u32::from_be_bytes([x0, x1, x2, x3]) })
    }

    /// Splits a message into its header and its body.
    pub(crate) fn split(message: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let Some(header) = Self::read(message) else {
            return error::BAD_LEN
                .says(format!("{} bytes are too few for a message; its header alone has 8", message.len()));
        };
        if usize::from(header.length) != message.len() {
            return error::BAD_LEN.says(format!(
                "the message claims {} bytes, but it has {}",
                header.length,
                message.len()
            ));
        }
        Ok((header, &message[HEADER_BYTES..]))
    }

    /// Appends the 8 bytes of the header.
    pub fn write(self, out: &mut Vec<u8>) {
        out.put(&[self.version, self.kind]);
        out.put_u16(self.length);
        out.put_u32(self.xid);
    }
}

/// Message types (OFPT_*).
pub(crate) mod kind {
    pub const HELLO: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const ECHO_REQUEST: u8 = 2;
    pub const ECHO_REPLY: u8 = 3;
    pub const EXPERIMENTER: u8 = 4;
    pub const FEATURES_REQUEST: u8 = 5;
    pub const FEATURES_REPLY: u8 = 6;
    pub const GET_CONFIG_REQUEST: u8 = 7;
    pub const GET_CONFIG_REPLY: u8 = 8;
    pub const SET_CONFIG: u8 = 9;
    pub const PACKET_IN: u8 = 10;
    pub const FLOW_REMOVED: u8 = 11;
    pub const PORT_STATUS: u8 = 12;
    pub const PACKET_OUT: u8 = 13;
    pub const FLOW_MOD: u8 = 14;
    pub const GROUP_MOD: u8 = 15;
    pub const PORT_MOD: u8 = 16;
    pub const TABLE_MOD: u8 = 17;
    pub const MULTIPART_REQUEST: u8 = 18;
    pub const MULTIPART_REPLY: u8 = 19;
    pub const BARRIER_REQUEST: u8 = 20;
    pub const BARRIER_REPLY: u8 = 21;
    pub const QUEUE_GET_CONFIG_REQUEST: u8 = 22;
    pub const QUEUE_GET_CONFIG_REPLY: u8 = 23;
    pub const ROLE_REQUEST: u8 = 24;
    pub const ROLE_REPLY: u8 = 25;
    pub const GET_ASYNC_REQUEST: u8 = 26;
    pub const GET_ASYNC_REPLY: u8 = 27;
    pub const SET_ASYNC: u8 = 28;
    pub const METER_MOD: u8 = 29;
}
