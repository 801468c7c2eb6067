// SPDX-License-Identifier: Apache-2.0
//! All messages of POF, with their encoding and decoding.
//!
//! The header is that of OpenFlow 1.3, and so is the version number 4. Message types above 12 differ.

pub mod packet;
pub mod port;
pub mod resource;
pub mod setup;
pub mod table;

use openflow::{HEADER_BYTES, Header, MESSAGE_BYTES_MAX, VERSION};

use crate::dialect::PofDialect;
use crate::error::{self, Fault, PofDecodeError, PofEncodeError};
use crate::layout::{Record, Sizes, Wire, size};
use packet::{PofPacketIn, PofPacketOut};
use port::PofPortStatus;
use resource::{PofBucketGroupMod, PofCounter, PofGroupMod, PofMeterMod};
use setup::{PofErrorMessage, PofFeatures, PofSwitchConfig, QueryAll, SlotConfig, SlotStatus};
use table::{PofFlowMod, PofTableMod, ResourceReport};

/// Sender of a message type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Controller,
    Switch,
    Both,
}

/// A message type.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub number: u8,
    pub name: &'static str,
    /// Size of the body without the bytes of a packet.
    pub sizes: Sizes,
    pub tail_max: usize,
    pub sender: Sender,
    #[cfg(test)]
    pub table: Option<crate::layout::Table>,
    read: fn(&[u8], PofDialect) -> Result<PofMessage, Fault>,
}

impl Kind {
    /// Returns whether a body of this length is valid in the dialect.
    fn has_length(&self, body_bytes: usize, dialect: PofDialect) -> bool {
        let size = self.sizes[dialect.column()];
        size.is_some_and(|size| (size..=size + self.tail_max).contains(&body_bytes))
    }
}

macro_rules! messages {
    (
        plain {
            $($(#[$plain_doc:meta])* $plain:ident = $plain_number:literal, $plain_name:literal, $plain_sender:ident, [$a:tt $b:tt];)*
        }
        records {
            $($(#[$doc:meta])* $variant:ident($record:ty) = $number:literal, $name:literal, $sender:ident;)*
        }
    ) => {
        /// A message of POF, from the controller or from the switch.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum PofMessage {
            $($(#[$plain_doc])* $plain,)*
            $($(#[$doc])* $variant($record),)*
        }

        /// All message types. Two types with the same number differ in size.
        pub(crate) const KINDS: &[Kind] = &[
            $(Kind {
                number: $plain_number,
                name: $plain_name,
                sizes: [size!($a), size!($b)],
                tail_max: 0,
                sender: Sender::$plain_sender,
                #[cfg(test)]
                table: None,
                read: |_, _| Ok(PofMessage::$plain),
            },)*
            $(Kind {
                number: $number,
                name: $name,
                sizes: <$record>::SIZES,
                tail_max: <$record>::TAIL_MAX,
                sender: Sender::$sender,
                #[cfg(test)]
                table: Some(crate::layout::Table::of::<$record>($number)),
                read: |bytes, dialect| <$record>::read(bytes, dialect).map(PofMessage::$variant),
            },)*
        ];

        impl PofMessage {
            fn name_and_sizes(&self) -> (u8, &'static str, Sizes) {
                match self {
                    $(Self::$plain => ($plain_number, $plain_name, [size!($a), size!($b)]),)*
                    $(Self::$variant(_) => ($number, $name, <$record>::SIZES),)*
                }
            }

            /// Returns the length of a packet in the message, and its maximum.
            fn tail(&self) -> (usize, usize) {
                match self {
                    $(Self::$plain => (0, 0),)*
                    $(Self::$variant(record) => (record.tail_bytes(), <$record>::TAIL_MAX),)*
                }
            }

            fn write_body(&self, bytes: &mut [u8], dialect: PofDialect) -> Result<(), PofEncodeError> {
                match self {
                    $(Self::$plain => Ok(()),)*
                    $(Self::$variant(record) => record.write(bytes, dialect),)*
                }
            }
        }
    };
}

messages! {
    plain {
        /// Opens a connection. It has no body.
        Hello = 0, "HELLO", Both, [0 0];
        /// Requests an ECHO_REPLY.
        EchoRequest = 2, "ECHO_REQUEST", Both, [0 0];
        /// Answers an ECHO_REQUEST.
        EchoReply = 3, "ECHO_REPLY", Both, [0 0];
        /// Requests the features of the switch.
        FeaturesRequest = 5, "FEATURES_REQUEST", Controller, [0 0];
        /// Requests the configuration. During the handshake, the switch also reports resources and ports.
        GetConfigRequest = 7, "GET_CONFIG_REQUEST", Controller, [0 0];
        /// Ends the answer to QUERYALL_REQUEST.
        QueryAllFin = 35, "QUERYALL_FIN", Switch, [- 0];
    }
    records {
        /// Refuses a message.
        Error(PofErrorMessage) = 1, "ERROR", Both;
        /// Features of the switch.
        FeaturesReply(PofFeatures) = 6, "FEATURES_REPLY", Switch;
        /// Configuration of the switch.
        GetConfigReply(PofSwitchConfig) = 8, "GET_CONFIG_REPLY", Switch;
        /// Sets the configuration of the switch.
        SetConfig(PofSwitchConfig) = 9, "SET_CONFIG", Controller;
        /// Packet sent to the controller.
        PacketIn(PofPacketIn) = 10, "PACKET_IN", Switch;
        /// A port was added, changed or removed.
        PortStatus(PofPortStatus) = 12, "PORT_STATUS", Switch;
        /// Resources of the switch.
        ResourceReport(ResourceReport) = 13, "RESOURCE_REPORT", Switch;
        /// Packet to send from the switch.
        PacketOut(PofPacketOut) = 14, "PACKET_OUT", Controller;
        /// Changes an entry. Answers of the switch to a query have the same type.
        FlowMod(PofFlowMod) = 15, "FLOW_MOD", Both;
        /// Changes a group that has one list of actions.
        GroupMod(PofGroupMod) = 16, "GROUP_MOD", Controller;
        /// Changes a group that has buckets.
        BucketGroupMod(PofBucketGroupMod) = 16, "GROUP_MOD", Controller;
        /// Changes a port.
        PortMod(PofPortStatus) = 17, "PORT_MOD", Controller;
        /// Creates or deletes a table. Answers of the switch to a query have the same type.
        TableMod(PofTableMod) = 18, "TABLE_MOD", Both;
        /// Changes a meter.
        MeterMod(PofMeterMod) = 30, "METER_MOD", Controller;
        /// Changes a counter.
        CounterMod(PofCounter) = 31, "COUNTER_MOD", Controller;
        /// Requests a counter.
        CounterRequest(PofCounter) = 32, "COUNTER_REQUEST", Controller;
        /// The requested counter.
        CounterReply(PofCounter) = 33, "COUNTER_REPLY", Switch;
        /// Requests all tables and entries.
        QueryAllRequest(QueryAll) = 34, "QUERYALL_REQUEST", Controller;
        /// Changes a slot. Public switches have this message in dialect 1.5.0 only.
        SlotConfig(SlotConfig) = 101, "SLOT_CONFIG", Controller;
        /// State of a slot. Public switches have this message in dialect 1.5.0 only.
        SlotStatus(SlotStatus) = 102, "SLOT_STATUS", Switch;
    }
}

/// Names of message types that have a number but no layout: no public switch handles or sends them.
const WITHOUT_LAYOUT: &[(u8, &str)] = &[
    (4, "EXPERIMENTER"),
    (11, "FLOW_REMOVED"),
    (19, "MULTIPART_REQUEST"),
    (20, "MULTIPART_REPLY"),
    (21, "BARRIER_REQUEST"),
    (22, "BARRIER_REPLY"),
    (23, "QUEUE_GET_CONFIG_REQUEST"),
    (24, "QUEUE_GET_CONFIG_REPLY"),
    (25, "ROLE_REQUEST"),
    (26, "ROLE_REPLY"),
    (27, "GET_ASYNC_REQUEST"),
    (28, "GET_ASYNC_REPLY"),
    (29, "SET_ASYNC"),
    (36, "INSTRUCTION_BLOCK_MOD"),
];

/// Returns the name of a message type, or `None` if POF has no such type.
#[must_use]
pub fn name_of(number: u8) -> Option<&'static str> {
    let known = KINDS.iter().map(|kind| (kind.number, kind.name));
    known.chain(WITHOUT_LAYOUT.iter().copied()).find(|(known, _)| *known == number).map(|(_, name)| name)
}

/// Decodes one complete message. Memory use is bounded by a small multiple of the length.
///
/// # Errors
/// Returns an error with the code of the ERROR message to send. The start of the next message is unknown if
/// the code is POFBRC_BAD_VERSION, or if the offset is 2 because `bytes` is not exactly one message.
pub fn decode(bytes: &[u8], dialect: PofDialect) -> Result<PofMessage, PofDecodeError> {
    let Some(header) = Header::read(bytes) else {
        let reason = format!("{} bytes are too few for a message; its header alone has 8", bytes.len());
        return Err(refuse("message", error::BAD_LEN.at(0, reason)));
    };
    let name = name_of(header.kind).unwrap_or("message");
    decode_body(header, bytes, dialect).map_err(|fault| refuse(name, fault))
}

fn refuse(message: &'static str, fault: Fault) -> PofDecodeError {
    PofDecodeError { code: fault.code, message: message.into(), offset: fault.at, reason: fault.reason }
}

fn decode_body(header: Header, bytes: &[u8], dialect: PofDialect) -> Result<PofMessage, Fault> {
    if header.version != VERSION {
        let reason = format!("version {:#04x} is not supported; POF has version 0x04", header.version);
        return Err(error::BAD_VERSION.at(0, reason));
    }
    if usize::from(header.length) != bytes.len() {
        let reason = format!("the message claims {} bytes, but it has {}", header.length, bytes.len());
        return Err(error::BAD_LEN.at(2, reason));
    }
    let body = &bytes[HEADER_BYTES..];
    let (kind, layout) = find(header.kind, body.len(), dialect)?;
    (kind.read)(body, layout).map_err(|fault| fault.within(HEADER_BYTES))
}

/// Returns the message type for a number and a length, and the dialect of its layout.
fn find(number: u8, body_bytes: usize, dialect: PofDialect) -> Result<(&'static Kind, PofDialect), Fault> {
    let mut known = KINDS.iter().filter(|kind| kind.number == number).peekable();
    if known.peek().is_none() {
        let reason = match name_of(number) {
            Some(name) => format!("POF numbers {name} ({number}) but defines no layout for it"),
            None => format!("POF has no message of type {number}"),
        };
        return Err(error::BAD_TYPE.at(1, reason));
    }
    let mut lengths = Vec::new();
    for kind in known {
        let Some(size) = kind.sizes[dialect.column()] else { continue };
        if kind.has_length(body_bytes, dialect) {
            return Ok((kind, dialect));
        }
        // Some controllers of dialect 1.4.0.015 send the configuration without the device's number.
        let short = kind.sizes[PofDialect::V1_2.column()];
        if kind.name == "SET_CONFIG" && short == Some(body_bytes) {
            return Ok((kind, PofDialect::V1_2));
        }
        lengths.push(match kind.tail_max {
            0 => format!("{}", HEADER_BYTES + size),
            tail => format!("{} to {}", HEADER_BYTES + size, HEADER_BYTES + size + tail),
        });
    }
    if lengths.is_empty() {
        return Err(error::BAD_TYPE.at(1, format!("dialect {dialect} has no message of type {number}")));
    }
    let mut reason = format!(
        "the message has {} bytes; in dialect {dialect} it has {}",
        HEADER_BYTES + body_bytes,
        lengths.join(" or ")
    );
    let fits = |other: &PofDialect| {
        KINDS.iter().any(|kind| kind.number == number && kind.has_length(body_bytes, *other))
    };
    if let Some(other) = PofDialect::ALL.iter().find(|other| fits(other)) {
        reason += &format!(" (this is its length in dialect {other}; check the dialect of this channel)");
    }
    Err(error::BAD_LEN.at(2, reason))
}

/// Appends a message to `out`.
///
/// # Errors
/// Returns an error if the dialect cannot express the message, or if the message is invalid. In that case
/// `out` is unchanged.
pub fn encode(
    message: &PofMessage,
    xid: u32,
    dialect: PofDialect,
    out: &mut Vec<u8>,
) -> Result<(), PofEncodeError> {
    let (number, what, sizes) = message.name_and_sizes();
    let Some(size) = sizes[dialect.column()] else { return Err(PofEncodeError::Missing { what, dialect }) };
    let (tail, max) = message.tail();
    if tail > max {
        return Err(PofEncodeError::TooMany { field: "data", count: tail, max, dialect });
    }
    let (start, length) = (out.len(), HEADER_BYTES + size + tail);
    debug_assert!(length <= MESSAGE_BYTES_MAX);
    Header { version: VERSION, kind: number, length: length as u16, xid }.write(out);
    out.resize(start + length, 0);
    let written = message.write_body(&mut out[start + HEADER_BYTES..], dialect);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

impl PofMessage {
    /// Returns the message type and its name.
    #[must_use]
    pub fn kind(&self) -> (u8, &'static str) {
        let (number, name, _) = self.name_and_sizes();
        (number, name)
    }

    /// Returns whether only switches send the message. A switch refuses such a message.
    #[must_use]
    pub fn is_from_switch(&self) -> bool {
        let (number, _) = self.kind();
        KINDS.iter().any(|kind| kind.number == number && kind.sender == Sender::Switch)
    }
}
