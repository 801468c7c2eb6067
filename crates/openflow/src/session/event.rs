// SPDX-License-Identifier: Apache-2.0
//! What a session is told, and what it tells.

use crate::error::DecodeError;
use crate::header::{HEADER_BYTES, kind};
use crate::hello::Hello;
use crate::message::Message;
use crate::multipart::MORE;
use crate::symmetric;
use flow::Nanos;

/// OFPMP_TABLE_FEATURES.
const TABLE_FEATURES: u16 = 12;

/// Bytes of a message at fault that an ERROR returns.
const ERROR_DATA_BYTES: usize = 64;

/// What is set for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// How long the peer has for its HELLO.
    pub hello_timeout_ns: Nanos,
    /// After how long a silence an echo request goes out.
    pub echo_interval_ns: Nanos,
    /// How long after it the connection is given up if nothing came.
    pub echo_timeout_ns: Nanos,
    /// Bytes of output from which on nothing more is read or worked off.
    pub output_limit: usize,
}

impl Default for SessionConfig {
    fn default() -> Self {
        const SECOND_NS: Nanos = 1_000_000_000;
        Self {
            hello_timeout_ns: 10 * SECOND_NS,
            echo_interval_ns: 15 * SECOND_NS,
            echo_timeout_ns: 15 * SECOND_NS,
            output_limit: 256 * 1024,
        }
    }
}

/// The start of a request, for the ERROR message that may answer it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    bytes: [u8; ERROR_DATA_BYTES],
    length: u8,
}

impl Head {
    pub(super) fn of(message: &[u8]) -> Self {
        let length = message.len().min(ERROR_DATA_BYTES);
        let mut bytes = [0; ERROR_DATA_BYTES];
        bytes[..length].copy_from_slice(&message[..length]);
        Self { bytes, length: length as u8 }
    }

    /// The bytes: 64, or all of a shorter message.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Bytes of the whole message, as its header says.
    #[must_use]
    pub fn message_bytes(&self) -> usize {
        usize::from(u16::from_be_bytes([self.bytes[2], self.bytes[3]]))
    }

    /// The message's type.
    pub(super) fn kind(&self) -> u8 {
        self.bytes[1]
    }

    /// Whether another part follows, if the message is a part of a TABLE_FEATURES request.
    #[must_use]
    pub fn table_features_part(&self) -> Option<bool> {
        let body = self.bytes().get(HEADER_BYTES..)?;
        let is_part =
            self.kind() == kind::MULTIPART_REQUEST && body.starts_with(&TABLE_FEATURES.to_be_bytes());
        let flags = body.get(2..4)?;
        is_part.then(|| u16::from_be_bytes([flags[0], flags[1]]) & MORE != 0)
    }

    /// Whether a controller in the slave role may not send the message, by what its first bytes say: as
    /// [`Message::is_barred_for_slaves`], for messages that cannot be decoded.
    pub(super) fn is_barred_for_slaves(&self) -> bool {
        let body = self.bytes().get(HEADER_BYTES..).unwrap_or_default();
        match self.kind() {
            kind::PACKET_OUT
            | kind::FLOW_MOD
            | kind::GROUP_MOD
            | kind::PORT_MOD
            | kind::TABLE_MOD
            | kind::METER_MOD => true,
            // Without a body it only asks.
            kind::MULTIPART_REQUEST => body.starts_with(&TABLE_FEATURES.to_be_bytes()) && body.len() > 8,
            kind::EXPERIMENTER => symmetric::is_bundle(body) || symmetric::is_lane_mod(body),
            _ => false,
        }
    }
}

/// Something that the controller wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its number, which replies carry.
    pub xid: u32,
    /// What it is. Also ERROR messages come this way.
    pub message: Message,
    /// Its first bytes, for [`crate::Session::send_error`].
    pub head: Head,
}

/// A request that cannot be decoded and that a slave may not make: whether the role or the message is at fault, the
/// driver knows. It answers with [`crate::Session::send_error`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// Its number.
    pub xid: u32,
    /// What is wrong with it.
    pub error: DecodeError,
    /// Its first bytes.
    pub head: Head,
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// No version in common.
    #[error(
        "the peer speaks OpenFlow {peer}, this switch 1.3 only; make the peer speak 1.3 (ovs-ofctl and its like: use -O OpenFlow13)"
    )]
    Version {
        /// What the peer says.
        peer: String,
    },
    /// The first message was another than HELLO.
    #[error("the peer began with a message of type {0}; OpenFlow begins with HELLO (type 0)")]
    NoHello(u8),
    /// No HELLO came.
    #[error("no HELLO came in time; is the peer an OpenFlow controller?")]
    HelloTimeout,
    /// No echo reply and nothing else came.
    #[error("the peer did not answer an echo request in time")]
    EchoTimeout,
    /// The end of a message cannot be known, or it is of another version.
    #[error("{0}; what follows cannot be understood")]
    Framing(DecodeError),
}

/// What a session tells its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// The version is agreed on: asynchronous messages may be sent.
    Opened,
    /// The controller wants something.
    Request(Box<Request>),
    /// The controller wants something that cannot be decoded; it is not answered yet.
    Undecodable(Box<Undecodable>),
    /// A message was refused; the answer is sent. For the log.
    Refused {
        /// The message's number.
        xid: u32,
        /// Why.
        error: DecodeError,
    },
    /// It is over: write the rest of the output and close the connection. Comes once, as the last event.
    Closed {
        /// Why.
        reason: CloseReason,
    },
}

/// The versions that a peer speaks, as people write them.
pub(super) fn versions(peer: &Hello) -> String {
    let name = |version: u8| match version {
        1..=6 => format!("1.{}", version - 1),
        other => format!("version {other:#04x}"),
    };
    match peer.bitmap {
        None => format!("{} at most", name(peer.version)),
        Some(0) => "no version".into(),
        Some(bitmap) => {
            let spoken: Vec<_> = (0..32).filter(|v| bitmap >> v & 1 == 1).map(name).collect();
            spoken.join(", ")
        }
    }
}
