// SPDX-License-Identifier: Apache-2.0
//! Messages between daemon and device, each in one UDP datagram.
//!
//! A message begins with 8 bytes: version, type, length of the message in bytes (2), transaction ID (4). A
//! reply carries the ID of its request. The sender repeats a request until the reply arrives. All values are
//! big-endian.
//!
//! # Sessions and transaction IDs
//!
//! A Hello begins a session; its ID is the session's first. A duplicate of that Hello is answered, but begins
//! no new session. The ID of each further Flow_mod and Packet_out must be higher than the Hello's, and new.
//! IDs are compared modulo 2^32, so one that is 2^31 or more above the window's begin counts as old. The
//! device remembers the last [`WINDOW`] IDs up to the highest one:
//!
//! - A Flow_mod that was executed is not executed again; the answer is the same.
//! - A Flow_mod older than one that was executed is not executed. The answer is a Flow_ack with `done` 0. So
//!   Flow_mods take effect in the order of their IDs. A daemon that lost one sends it again with a new ID.
//! - A Packet_out that was sent is not sent again. Packet_outs may arrive in any order.
//! - Flow_mods and Packet_outs from before the window, or from before the first Hello, are dropped.
//!
//! Echo_request, Flow_request and Stats_request change nothing, so they may have any ID. The IDs of
//! Packet_ins count up from 0 after a reset.

use thiserror::Error;

use crate::action::{ACTION_BYTES, ActionWord};
use crate::command::{PpuCommand, decode_action, decode_key, encode_key};
use crate::key::{KEY_BYTES, TernaryKey};
use crate::reader::BodyReader;

/// Version of the protocol.
pub const VERSION: u8 = 1;
/// Bytes of the header of a message.
pub const HEADER_BYTES: usize = 8;
/// Maximum length of a frame in a Packet_in or Packet_out.
pub const FRAME_BYTES_MAX: usize = 1_536;
/// Maximum length of a message: the longest frame in a Packet_in.
pub const MESSAGE_BYTES_MAX: usize = HEADER_BYTES + 8 + FRAME_BYTES_MAX;
/// Maximum number of counters in a Stats_reply.
pub const COUNTERS_MAX: usize = 128;
/// Transaction IDs that the device remembers.
pub const WINDOW: u32 = 64;

/// Type codes of messages.
pub const TYPES: [(&str, u8); 11] = [
    ("hello", 0),
    ("echo_request", 1),
    ("echo_reply", 2),
    ("flow_mod", 3),
    ("flow_ack", 4),
    ("flow_request", 5),
    ("flow_reply", 6),
    ("packet_in", 7),
    ("packet_out", 8),
    ("stats_request", 9),
    ("stats_reply", 10),
];

/// Reason why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CodecError {
    /// The bytes end within the message.
    #[error("the message ends too early")]
    Short,
    /// Bytes follow the end of the body.
    #[error("{0} bytes follow the message")]
    Long(usize),
    /// The header's length is not that of the datagram.
    #[error("the length field is {0}, which is not the length of the datagram")]
    Length(u16),
    /// The version is unknown.
    #[error("version {0} is unknown; this side knows version {VERSION}")]
    Version(u8),
    /// The type is unknown.
    #[error("message type {0} is unknown")]
    Type(u8),
    /// A field has a value that is not allowed.
    #[error("the {field} {value} is not allowed")]
    Value {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
    },
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceMessage {
    /// Transaction ID.
    pub id: u32,
    /// Type and content.
    pub body: Body,
}

/// Type and content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// First message of both sides.
    Hello {
        /// Number of PPUs; 0 from the daemon.
        ppus: u8,
        /// Entries of each PPU; 0 from the daemon.
        entries: u16,
    },
    /// Checks that the other side is alive.
    EchoRequest(Vec<u8>),
    /// The same bytes as in the request.
    EchoReply(Vec<u8>),
    /// Configures a PPU.
    FlowMod {
        /// Number of the PPU.
        ppu: u8,
        /// What is set.
        command: PpuCommand,
    },
    /// The device has executed or refused the Flow_mod with this transaction ID.
    FlowAck {
        /// Whether it was executed. Otherwise, the PPU or the index does not exist, or a newer Flow_mod was
        /// executed before.
        done: bool,
    },
    /// Reads back an entry.
    FlowRequest {
        /// Number of the PPU.
        ppu: u8,
        /// Index of the entry.
        index: u16,
    },
    /// State of an entry.
    FlowReply(EntryState),
    /// A packet for the control plane.
    PacketIn {
        /// Ingress port.
        port: u8,
        /// PPU whose action sent it, or 255 if no PPU set an output.
        ppu: u8,
        /// Field `port` of the action.
        code: u8,
        /// The frame.
        frame: Vec<u8>,
    },
    /// A packet from the control plane.
    PacketOut {
        /// Egress port, or the ingress port if `pipeline` is set.
        port: u8,
        /// Whether the packet passes the PPUs.
        pipeline: bool,
        /// The frame.
        frame: Vec<u8>,
    },
    /// Asks for all counters.
    StatsRequest,
    /// Counters in the order of their registers; see [`crate::register::COUNTERS`].
    StatsReply(Vec<u64>),
}

/// State of an entry in a Flow_reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryState {
    /// Number of the PPU.
    pub ppu: u8,
    /// Index of the entry.
    pub index: u16,
    /// Whether the entry exists. Otherwise the other values have no meaning.
    pub valid: bool,
    /// Value and mask.
    pub key: TernaryKey,
    /// What the entry does.
    pub action: ActionWord,
    /// Packets that hit the entry.
    pub packets: u64,
}

impl DeviceMessage {
    /// Returns the bytes of the message. Frames and echo data must fit into [`MESSAGE_BYTES_MAX`].
    ///
    /// # Errors
    /// The message is longer than [`MESSAGE_BYTES_MAX`].
    pub fn encode(&self) -> Result<Vec<u8>, CodecError> {
        let mut out = vec![VERSION, self.body.code(), 0, 0];
        out.extend(self.id.to_be_bytes());
        self.body.encode(&mut out);
        if out.len() > MESSAGE_BYTES_MAX {
            return Err(CodecError::Long(out.len() - MESSAGE_BYTES_MAX));
        }
        let length = out.len() as u16;
        out[2..4].copy_from_slice(&length.to_be_bytes());
        Ok(out)
    }

    /// Reads the message that a datagram consists of.
    ///
    /// # Errors
    /// The datagram is not exactly one message of this version.
    pub fn decode(datagram: &[u8]) -> Result<Self, CodecError> {
        if datagram.len() > MESSAGE_BYTES_MAX {
            return Err(CodecError::Long(datagram.len() - MESSAGE_BYTES_MAX));
        }
        let mut from = BodyReader(datagram);
        let (version, code, length) = (from.u8()?, from.u8()?, from.u16()?);
        if version != VERSION {
            return Err(CodecError::Version(version));
        }
        if usize::from(length) != datagram.len() {
            return Err(CodecError::Length(length));
        }
        let id = u32::from_be_bytes(from.take()?);
        let body = Body::decode(code, &mut from)?;
        match from.rest().len() {
            0 => Ok(Self { id, body }),
            more => Err(CodecError::Long(more)),
        }
    }
}

impl Body {
    /// Returns the type code.
    #[must_use]
    pub fn code(&self) -> u8 {
        match self {
            Self::Hello { .. } => 0,
            Self::EchoRequest(_) => 1,
            Self::EchoReply(_) => 2,
            Self::FlowMod { .. } => 3,
            Self::FlowAck { .. } => 4,
            Self::FlowRequest { .. } => 5,
            Self::FlowReply(_) => 6,
            Self::PacketIn { .. } => 7,
            Self::PacketOut { .. } => 8,
            Self::StatsRequest => 9,
            Self::StatsReply(_) => 10,
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Hello { ppus, entries } => {
                out.extend([*ppus, 0]);
                out.extend(entries.to_be_bytes());
            }
            Self::EchoRequest(data) | Self::EchoReply(data) => out.extend(data),
            Self::FlowMod { ppu, command } => command.encode(*ppu, out),
            Self::FlowAck { done } => out.extend([u8::from(*done), 0, 0, 0]),
            Self::FlowRequest { ppu, index } => {
                out.extend([*ppu, 0]);
                out.extend(index.to_be_bytes());
            }
            Self::FlowReply(state) => state.encode(out),
            Self::PacketIn { port, ppu, code, frame } => {
                out.extend([*port, *ppu, *code, 0, 0, 0, 0, 0]);
                out.extend(frame);
            }
            Self::PacketOut { port, pipeline, frame } => {
                out.extend([*port, u8::from(*pipeline), 0, 0, 0, 0, 0, 0]);
                out.extend(frame);
            }
            Self::StatsRequest => {}
            Self::StatsReply(counters) => out.extend(counters.iter().flat_map(|value| value.to_be_bytes())),
        }
    }

    fn decode(code: u8, from: &mut BodyReader<'_>) -> Result<Self, CodecError> {
        Ok(match code {
            0 => {
                let ppus = from.u8()?;
                from.zero()?;
                Self::Hello { ppus, entries: from.u16()? }
            }
            1 => Self::EchoRequest(from.rest().to_vec()),
            2 => Self::EchoReply(from.rest().to_vec()),
            3 => {
                let (ppu, command) = PpuCommand::decode(from)?;
                Self::FlowMod { ppu, command }
            }
            4 => {
                let done = from.flag()?;
                padding(from, 3)?;
                Self::FlowAck { done }
            }
            5 => {
                let ppu = from.u8()?;
                from.zero()?;
                Self::FlowRequest { ppu, index: from.u16()? }
            }
            6 => Self::FlowReply(EntryState::decode(from)?),
            7 => {
                let (port, ppu, code) = (from.u8()?, from.u8()?, from.u8()?);
                padding(from, 5)?;
                Self::PacketIn { port, ppu, code, frame: from.rest().to_vec() }
            }
            8 => {
                let (port, pipeline) = (from.u8()?, from.flag()?);
                padding(from, 6)?;
                Self::PacketOut { port, pipeline, frame: from.rest().to_vec() }
            }
            9 => Self::StatsRequest,
            10 => Self::StatsReply(counters(from)?),
            other => return Err(CodecError::Type(other)),
        })
    }
}

fn padding(from: &mut BodyReader<'_>, bytes: usize) -> Result<(), CodecError> {
    (0..bytes).try_for_each(|_| from.zero())
}

fn counters(from: &mut BodyReader<'_>) -> Result<Vec<u64>, CodecError> {
    let mut counters = Vec::new();
    while !from.0.is_empty() {
        if counters.len() == COUNTERS_MAX {
            return Err(CodecError::Long(from.0.len()));
        }
        counters.push(from.u64()?);
    }
    Ok(counters)
}

/// Bytes of key, padding, action and packets.
const UNUSED_BYTES: usize = 2 * KEY_BYTES + 2 + ACTION_BYTES + 8;

impl EntryState {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend([self.ppu, u8::from(self.valid)]);
        out.extend(self.index.to_be_bytes());
        encode_key(&self.key, out);
        out.extend(self.action.to_bytes());
        out.extend(self.packets.to_be_bytes());
    }

    fn decode(from: &mut BodyReader<'_>) -> Result<Self, CodecError> {
        let (ppu, valid, index) = (from.u8()?, from.flag()?, from.u16()?);
        if !valid {
            // The device has no meaningful key, action and count for a place without an entry.
            from.take::<UNUSED_BYTES>()?;
            let (key, action) = (TernaryKey::default(), ActionWord::default());
            return Ok(Self { ppu, index, valid, key, action, packets: 0 });
        }
        let (key, action, packets) = (decode_key(from)?, decode_action(from)?, from.u64()?);
        Ok(Self { ppu, index, valid, key, action, packets })
    }
}
