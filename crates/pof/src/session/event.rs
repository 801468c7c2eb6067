// SPDX-License-Identifier: Apache-2.0
//! Events of a session.

use openflow::VERSION;

use crate::error::PofDecodeError;
use crate::message::PofMessage;

/// Request of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PofRequest {
    /// Transaction number, which replies carry.
    pub xid: u32,
    /// Message of the request. An ERROR of the controller is also reported as a request.
    pub message: PofMessage,
}

/// Step of the handshake: the message that the switch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PofStep {
    /// HELLO.
    Hello,
    /// FEATURES_REQUEST.
    FeaturesRequest,
    /// SET_CONFIG.
    SetConfig,
    /// GET_CONFIG_REQUEST.
    GetConfigRequest,
}

impl PofStep {
    /// Returns the name of the message.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Self::Hello => "HELLO",
            Self::FeaturesRequest => "FEATURES_REQUEST",
            Self::SetConfig => "SET_CONFIG",
            Self::GetConfigRequest => "GET_CONFIG_REQUEST",
        }
    }
}

/// Reason why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PofCloseReason {
    /// The HELLO has another version.
    #[error(
        "the controller speaks version {0:#04x}, but POF has version {VERSION:#04x}; if it is an OpenFlow \
         controller, move its address in the configuration from [datapath.pof] to [datapath.openflow]"
    )]
    Version(u8),
    /// The peer is an OpenFlow controller.
    #[error(
        "the controller speaks OpenFlow ({0}), but this address is for POF; move its address in the \
         configuration from [datapath.pof] to [datapath.openflow], or connect a POF controller"
    )]
    OpenFlow(String),
    /// A message came at the wrong step of the handshake.
    #[error("the controller sent {got} where POF's handshake has {}", .expected.message())]
    OutOfOrder {
        /// Message that the switch waited for.
        expected: PofStep,
        /// Message that was received.
        got: String,
    },
    /// A message of the handshake cannot be decoded.
    #[error("the handshake failed: {0}")]
    Handshake(PofDecodeError),
    /// The controller refused a message of the handshake.
    #[error("the controller ended the handshake with an error: {0}")]
    Refused(String),
    /// Another controller has completed its handshake, which empties the switch.
    #[error("another POF controller has connected, and the switch serves one at a time")]
    Replaced,
    /// No HELLO was received in time.
    #[error("no HELLO came in time; is the peer a POF controller?")]
    HelloTimeout,
    /// No message was received in time after an echo request.
    #[error("the controller did not answer an echo request in time")]
    EchoTimeout,
    /// The end of a message is unknown, or a message has another version.
    #[error("{0}; the following bytes cannot be parsed")]
    Framing(PofDecodeError),
}

/// An event that a session reports to its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PofEvent {
    /// The controller sent its HELLO.
    Opened,
    /// The controller sent a request. During the handshake, these are FEATURES_REQUEST, SET_CONFIG and
    /// GET_CONFIG_REQUEST, in this order. At the last, the owner drops all tables, entries, groups, meters
    /// and counters, as POF demands for a new connection.
    Request(Box<PofRequest>),
    /// A message was refused. The session has already queued an ERROR if necessary.
    Refused {
        /// Transaction number of the message.
        xid: u32,
        /// Reason for the refusal.
        error: PofDecodeError,
    },
    /// The session has ended. The owner writes the remaining output and closes the connection. This is the
    /// last event.
    Closed {
        /// Reason for the end.
        reason: PofCloseReason,
    },
}
