// SPDX-License-Identifier: Apache-2.0
//! Inputs and events of a session.

use crate::error::DecodeError;
use crate::header::{HEADER_BYTES, kind};
use crate::hello::Hello;
use crate::message::Message;
use crate::multipart::MORE;
use crate::symmetric;

/// Type of a multipart message with table features (OFPMP_TABLE_FEATURES).
const TABLE_FEATURES: u16 = 12;

/// Maximum number of bytes of the refused message in an ERROR.
const ERROR_DATA_BYTES: usize = 64;

/// First bytes of a request. An ERROR message that answers the request contains these bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    bytes: [u8; ERROR_DATA_BYTES],
    length: u8,
}

impl RequestHead {
    /// Returns the beginning of a message.
    #[must_use]
    pub fn of(message: &[u8]) -> Self {
        let length = message.len().min(ERROR_DATA_BYTES);
        let mut bytes = [0; ERROR_DATA_BYTES];
        bytes[..length].copy_from_slice(&message[..length]);
        Self { bytes, length: length as u8 }
    }

    /// Returns the first 64 bytes, or the whole message if it is shorter.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Returns the length of the whole message in bytes, from its header.
    #[must_use]
    pub fn message_bytes(&self) -> usize {
        usize::from(u16::from_be_bytes([self.bytes[2], self.bytes[3]]))
    }

    /// Returns the message type.
    pub(super) fn kind(&self) -> u8 {
        self.bytes[1]
    }

    /// Returns whether another part follows, or `None` if the message is not part of a TABLE_FEATURES
    /// request.
    #[must_use]
    pub fn table_features_part(&self) -> Option<bool> {
        let body = self.bytes().get(HEADER_BYTES..)?;
        let is_part =
            self.kind() == kind::MULTIPART_REQUEST && body.starts_with(&TABLE_FEATURES.to_be_bytes());
        let flags = body.get(2..4)?;
        is_part.then(|| u16::from_be_bytes([flags[0], flags[1]]) & MORE != 0)
    }

    /// Returns whether a controller in the slave role must not send the message, even if the message cannot
    /// be decoded.
    pub(super) fn is_barred_for_slaves(&self) -> bool {
        let body = self.bytes().get(HEADER_BYTES..).unwrap_or_default();
        match self.kind() {
            kind::PACKET_OUT
            | kind::FLOW_MOD
            | kind::GROUP_MOD
            | kind::PORT_MOD
            | kind::TABLE_MOD
            | kind::METER_MOD => true,
            // A request without a body only reads the features.
            kind::MULTIPART_REQUEST => body.starts_with(&TABLE_FEATURES.to_be_bytes()) && body.len() > 8,
            kind::EXPERIMENTER => symmetric::is_bundle(body) || symmetric::is_stateless_mod(body),
            _ => false,
        }
    }
}

/// Request of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Transaction number, which replies carry.
    pub xid: u32,
    /// Message of the request. An ERROR message of the controller is also reported as a request.
    pub message: Message,
    /// First bytes of the message, for [`crate::Session::send_error`].
    pub head: RequestHead,
}

/// A request that cannot be decoded and that a slave must not send. The caller knows the sender's role and
/// sends an ERROR about the role or about the malformed message with [`crate::Session::send_error`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undecodable {
    /// Transaction number.
    pub xid: u32,
    /// Reason for the refusal.
    pub error: DecodeError,
    /// First bytes of the message.
    pub head: RequestHead,
}

/// Reason why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CloseReason {
    /// The peers have no version in common.
    #[error(
        "the peer speaks OpenFlow {peer}, this switch only 1.3; enable 1.3 in the peer (ovs-ofctl: use -O OpenFlow13)"
    )]
    Version {
        /// Versions that the peer supports.
        peer: String,
    },
    /// The first message was not a HELLO.
    #[error("the peer began with a message of type {0}; OpenFlow begins with HELLO (type 0)")]
    NoHello(u8),
    /// No HELLO was received in time.
    #[error("no HELLO came in time; is the peer an OpenFlow controller?")]
    HelloTimeout,
    /// No message was received in time after an echo request.
    #[error("the peer did not answer an echo request in time")]
    EchoTimeout,
    /// The end of a message is unknown, or a message has another version.
    #[error("{0}; the following bytes cannot be parsed")]
    Framing(DecodeError),
}

/// An event that a session reports to its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEvent {
    /// The version is negotiated. Asynchronous messages may now be sent.
    Opened,
    /// The controller sent a request.
    Request(Box<Request>),
    /// The controller sent a request that cannot be decoded and is not answered yet.
    Undecodable(Box<Undecodable>),
    /// A message was refused. The session has already queued an ERROR if necessary.
    Refused {
        /// Transaction number of the message.
        xid: u32,
        /// Reason for the refusal.
        error: DecodeError,
    },
    /// The session has ended. The caller writes the remaining output and closes the connection. This is the
    /// last event.
    Closed {
        /// Reason for the end.
        reason: CloseReason,
    },
}

/// Returns the versions that a peer supports as text, such as "1.3".
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
