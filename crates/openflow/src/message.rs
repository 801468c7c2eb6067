// SPDX-License-Identifier: Apache-2.0
//! All messages of OpenFlow 1.3, with their encoding and decoding.

use crate::bundle::{BundleAdd, BundleControl};
use crate::bytes::{Put, Reader};
use crate::error::{self, DecodeError, TooLong};
use crate::features::{Features, SwitchConfig, TableMod};
use crate::flow_mod::{FlowModMessage, FlowRemovedMessage};
use crate::group::GroupMod;
use crate::header::{Header, MESSAGE_BYTES_MAX, VERSION, kind};
use crate::hello::Hello;
use crate::meter::MeterMod;
use crate::multipart::{MultipartReply, MultipartRequest, Query};
use crate::packet::{PacketInMessage, PacketOutMessage};
use crate::port::{PortModMessage, PortStatus};
use crate::queue::QueueConfig;
use crate::role::{AsyncConfig, RoleMessage};
use crate::stateless::StatelessReply;
use crate::symmetric::{self, ErrorMessage};
use flow::PortNo;
use flow::stateless::StatelessChange;

/// A message of OpenFlow 1.3, from the controller or from the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Opens a connection and negotiates the version.
    Hello(Hello),
    /// Refuses a message.
    Error(ErrorMessage),
    /// Requests an echo of these bytes.
    EchoRequest(Vec<u8>),
    /// Returns the bytes of an echo request.
    EchoReply(Vec<u8>),
    /// Bundle control (ONF experimenter), request or reply.
    BundleControl(BundleControl),
    /// Message to add to a bundle (ONF experimenter).
    BundleAdd(BundleAdd),
    /// Changes the stateless configuration (Shunt's experimenter).
    StatelessMod(StatelessChange),
    /// Requests the stateless configuration (Shunt's experimenter).
    StatelessRequest,
    /// Stateless configuration (Shunt's experimenter).
    StatelessReply(StatelessReply),
    /// Requests the features of the switch.
    FeaturesRequest,
    /// Features of the switch.
    FeaturesReply(Features),
    /// Requests the switch configuration.
    GetConfigRequest,
    /// Switch configuration.
    GetConfigReply(SwitchConfig),
    /// Sets the switch configuration.
    SetConfig(SwitchConfig),
    /// Packet sent to the controller.
    PacketIn(PacketInMessage),
    /// An entry was removed.
    FlowRemoved(FlowRemovedMessage),
    /// A port was added, changed or removed.
    PortStatus(PortStatus),
    /// Packet to send from the switch.
    PacketOut(PacketOutMessage),
    /// Changes flow entries.
    FlowMod(FlowModMessage),
    /// Changes a group.
    GroupMod(GroupMod),
    /// Changes a port.
    PortMod(PortModMessage),
    /// Changes a table's configuration.
    TableMod(TableMod),
    /// Requests statistics or descriptions.
    MultipartRequest(MultipartRequest),
    /// Statistics or descriptions.
    MultipartReply(MultipartReply),
    /// Requests a reply that is sent after all preceding messages were processed.
    BarrierRequest,
    /// All messages before the request were processed.
    BarrierReply,
    /// Requests a port's queues.
    QueueGetConfigRequest {
        /// Port number, or ANY for all ports.
        port: PortNo,
    },
    /// Queues of a port.
    QueueGetConfigReply(QueueConfig),
    /// Requests a role.
    RoleRequest(RoleMessage),
    /// Role of the controller.
    RoleReply(RoleMessage),
    /// Requests the filter of asynchronous messages.
    GetAsyncRequest,
    /// Filter of asynchronous messages.
    GetAsyncReply(AsyncConfig),
    /// Sets the filter of asynchronous messages.
    SetAsync(AsyncConfig),
    /// Changes a meter.
    MeterMod(MeterMod),
}

/// Decodes one complete message. A HELLO may have any version; all other messages must be OpenFlow 1.3.
/// Memory use is bounded by a small multiple of the length.
///
/// # Errors
/// Returns an error with the code of the ERROR message to send. The start of the next message is unknown if
/// the code is OFPBRC_BAD_VERSION, or if it is OFPBRC_BAD_LEN because `bytes` is not exactly one message.
pub fn decode(bytes: &[u8]) -> Result<Message, DecodeError> {
    let (header, body) = Header::split(bytes)?;
    Message::decode_body(header, body)
}

/// Appends a message to `out`. A multipart reply that exceeds one message is written as several parts.
///
/// # Errors
/// Returns an error if the message exceeds 65535 bytes. In that case `out` is unchanged.
pub fn encode(message: &Message, xid: u32, out: &mut Vec<u8>) -> Result<(), TooLong> {
    let start = out.len();
    let done = match message {
        Message::MultipartReply(reply) => reply.encode_parts(xid, out),
        one => {
            one.encode_one(xid, out);
            let length = out.len() - start;
            if length > MESSAGE_BYTES_MAX { Err(TooLong(length)) } else { Ok(()) }
        }
    };
    if done.is_err() {
        out.truncate(start);
    }
    done
}

impl Message {
    pub(crate) fn decode_body(header: Header, body: &[u8]) -> Result<Self, DecodeError> {
        if header.version != VERSION && header.kind != kind::HELLO {
            return error::BAD_VERSION.says(format!(
                "OpenFlow version {:#04x} is not supported; this switch speaks 1.3 (0x04) only",
                header.version
            ));
        }
        let mut reader = Reader::new(body, "the message", error::BAD_LEN);
        let r = &mut reader;
        let message = match header.kind {
            kind::HELLO => Self::Hello(Hello::decode(header.version, r)?),
            kind::ERROR => Self::Error(ErrorMessage::decode(r)?),
            kind::ECHO_REQUEST => Self::EchoRequest(r.rest().to_vec()),
            kind::ECHO_REPLY => Self::EchoReply(r.rest().to_vec()),
            kind::EXPERIMENTER => symmetric::decode_experimenter(header.xid, r)?,
            kind::FEATURES_REQUEST => Self::FeaturesRequest,
            kind::FEATURES_REPLY => Self::FeaturesReply(Features::decode(r)?),
            kind::GET_CONFIG_REQUEST => Self::GetConfigRequest,
            kind::GET_CONFIG_REPLY => Self::GetConfigReply(SwitchConfig::decode(r)?),
            kind::SET_CONFIG => Self::SetConfig(SwitchConfig::decode(r)?),
            kind::PACKET_IN => Self::PacketIn(PacketInMessage::decode(r)?),
            kind::FLOW_REMOVED => Self::FlowRemoved(FlowRemovedMessage::decode(r)?),
            kind::PORT_STATUS => Self::PortStatus(PortStatus::decode(r)?),
            kind::PACKET_OUT => Self::PacketOut(PacketOutMessage::decode(r)?),
            kind::FLOW_MOD => Self::FlowMod(FlowModMessage::decode(r)?),
            kind::GROUP_MOD => Self::GroupMod(GroupMod::decode(r)?),
            kind::PORT_MOD => Self::PortMod(PortModMessage::decode(r)?),
            kind::TABLE_MOD => Self::TableMod(TableMod::decode(r)?),
            kind::MULTIPART_REQUEST => Self::MultipartRequest(MultipartRequest::decode(r)?),
            kind::MULTIPART_REPLY => Self::MultipartReply(MultipartReply::decode(r)?),
            kind::BARRIER_REQUEST => Self::BarrierRequest,
            kind::BARRIER_REPLY => Self::BarrierReply,
            kind::QUEUE_GET_CONFIG_REQUEST => {
                let port = r.u32()?;
                r.skip(4)?;
                Self::QueueGetConfigRequest { port: PortNo(port) }
            }
            kind::QUEUE_GET_CONFIG_REPLY => Self::QueueGetConfigReply(QueueConfig::decode(r)?),
            kind::ROLE_REQUEST => Self::RoleRequest(RoleMessage::decode(r)?),
            kind::ROLE_REPLY => Self::RoleReply(RoleMessage::decode(r)?),
            kind::GET_ASYNC_REQUEST => Self::GetAsyncRequest,
            kind::GET_ASYNC_REPLY => Self::GetAsyncReply(AsyncConfig::decode(r)?),
            kind::SET_ASYNC => Self::SetAsync(AsyncConfig::decode(r)?),
            kind::METER_MOD => Self::MeterMod(MeterMod::decode(r)?),
            unknown => {
                return error::BAD_TYPE
                    .says(format!("message type {unknown}; OpenFlow 1.3 has types 0 to 29"));
            }
        };
        reader.end()?;
        Ok(message)
    }

    /// Writes the message without splitting it, even if it is too long.
    pub(crate) fn encode_one(&self, xid: u32, out: &mut Vec<u8>) {
        let start = out.len();
        let version = if let Self::Hello(hello) = self { hello.version } else { VERSION };
        Header { version, kind: self.kind(), length: 0, xid }.write(out);
        match self {
            Self::Hello(m) => m.encode(out),
            Self::Error(m) => m.encode(out),
            Self::EchoRequest(data) | Self::EchoReply(data) => out.put(data),
            Self::BundleControl(_)
            | Self::BundleAdd(_)
            | Self::StatelessMod(_)
            | Self::StatelessRequest
            | Self::StatelessReply(_) => symmetric::encode_experimenter(self, xid, out),
            Self::FeaturesReply(m) => m.encode(out),
            Self::GetConfigReply(m) | Self::SetConfig(m) => m.encode(out),
            Self::PacketIn(m) => m.encode(out),
            Self::FlowRemoved(m) => m.encode(out),
            Self::PortStatus(m) => m.encode(out),
            Self::PacketOut(m) => m.encode(out),
            Self::FlowMod(m) => m.encode(out),
            Self::GroupMod(m) => m.encode(out),
            Self::PortMod(m) => m.encode(out),
            Self::TableMod(m) => m.encode(out),
            Self::MultipartRequest(m) => m.encode(out),
            Self::MultipartReply(m) => m.encode_one(out),
            Self::QueueGetConfigRequest { port } => {
                out.put_u32(port.0);
                out.zeros(4);
            }
            Self::QueueGetConfigReply(m) => m.encode(out),
            Self::RoleRequest(m) | Self::RoleReply(m) => m.encode(out),
            Self::GetAsyncReply(m) | Self::SetAsync(m) => m.encode(out),
            Self::MeterMod(m) => m.encode(out),
            Self::FeaturesRequest
            | Self::GetConfigRequest
            | Self::BarrierRequest
            | Self::BarrierReply
            | Self::GetAsyncRequest => {}
        }
        out.patch_length(start + 2, start);
    }

    fn kind(&self) -> u8 {
        match self {
            Self::Hello(_) => kind::HELLO,
            Self::Error(_) => kind::ERROR,
            Self::EchoRequest(_) => kind::ECHO_REQUEST,
            Self::EchoReply(_) => kind::ECHO_REPLY,
            Self::BundleControl(_)
            | Self::BundleAdd(_)
            | Self::StatelessMod(_)
            | Self::StatelessRequest
            | Self::StatelessReply(_) => kind::EXPERIMENTER,
            Self::FeaturesRequest => kind::FEATURES_REQUEST,
            Self::FeaturesReply(_) => kind::FEATURES_REPLY,
            Self::GetConfigRequest => kind::GET_CONFIG_REQUEST,
            Self::GetConfigReply(_) => kind::GET_CONFIG_REPLY,
            Self::SetConfig(_) => kind::SET_CONFIG,
            Self::PacketIn(_) => kind::PACKET_IN,
            Self::FlowRemoved(_) => kind::FLOW_REMOVED,
            Self::PortStatus(_) => kind::PORT_STATUS,
            Self::PacketOut(_) => kind::PACKET_OUT,
            Self::FlowMod(_) => kind::FLOW_MOD,
            Self::GroupMod(_) => kind::GROUP_MOD,
            Self::PortMod(_) => kind::PORT_MOD,
            Self::TableMod(_) => kind::TABLE_MOD,
            Self::MultipartRequest(_) => kind::MULTIPART_REQUEST,
            Self::MultipartReply(_) => kind::MULTIPART_REPLY,
            Self::BarrierRequest => kind::BARRIER_REQUEST,
            Self::BarrierReply => kind::BARRIER_REPLY,
            Self::QueueGetConfigRequest { .. } => kind::QUEUE_GET_CONFIG_REQUEST,
            Self::QueueGetConfigReply(_) => kind::QUEUE_GET_CONFIG_REPLY,
            Self::RoleRequest(_) => kind::ROLE_REQUEST,
            Self::RoleReply(_) => kind::ROLE_REPLY,
            Self::GetAsyncRequest => kind::GET_ASYNC_REQUEST,
            Self::GetAsyncReply(_) => kind::GET_ASYNC_REPLY,
            Self::SetAsync(_) => kind::SET_ASYNC,
            Self::MeterMod(_) => kind::METER_MOD,
        }
    }

    /// Returns whether only switches send the message. A switch refuses such a message.
    #[must_use]
    pub fn is_from_switch(&self) -> bool {
        matches!(
            self,
            Self::FeaturesReply(_)
                | Self::GetConfigReply(_)
                | Self::PacketIn(_)
                | Self::FlowRemoved(_)
                | Self::PortStatus(_)
                | Self::MultipartReply(_)
                | Self::BarrierReply
                | Self::QueueGetConfigReply(_)
                | Self::RoleReply(_)
                | Self::GetAsyncReply(_)
                | Self::StatelessReply(_)
        )
    }

    /// Returns whether a controller in the slave role must not send the message (OFPBRC_IS_SLAVE).
    #[must_use]
    pub fn is_barred_for_slaves(&self) -> bool {
        match self {
            Self::PacketOut(_)
            | Self::FlowMod(_)
            | Self::GroupMod(_)
            | Self::PortMod(_)
            | Self::TableMod(_)
            | Self::MeterMod(_)
            | Self::BundleControl(_)
            | Self::BundleAdd(_)
            | Self::StatelessMod(_) => true,
            Self::MultipartRequest(m) => {
                matches!(&m.query, Query::TableFeatures(tables) if !tables.is_empty())
            }
            _ => false,
        }
    }
}
