// SPDX-License-Identifier: Apache-2.0
//! Asynchronous messages: PACKET_IN and PORT_STATUS. POF does not report removed entries.

use crate::config::AgentConfig;
use crate::describe;
use crate::shared::Shared;
use flow::PacketInReason;
use model::agent::packets;
use model::{AsyncMessage, PacketIn, PortReason};
use pof::message::packet::{NO_BUFFER, PACKET_BYTES_MAX, PofPacketIn, PofPacketInReason};
use pof::message::port::{PofPortReason, PofPortStatus};
use pof::{PofDialect, PofMessage};

/// Returns the messages for controllers.
pub fn messages(message: &AsyncMessage, shared: &Shared) -> Vec<PofMessage> {
    let config = &shared.config;
    match message {
        AsyncMessage::PacketIn(packet_in) => packet_ins(packet_in, reason(packet_in, shared), config),
        AsyncMessage::FlowRemoved(_) => Vec::new(),
        AsyncMessage::PortStatus { reason, port } => {
            let reason = match reason {
                PortReason::Add => PofPortReason::Add,
                PortReason::Delete => PofPortReason::Delete,
                PortReason::Modify => PofPortReason::Modify,
            };
            let port = describe::port(port, config);
            port.map(|port| PofMessage::PortStatus(PofPortStatus { reason, port })).into_iter().collect()
        }
    }
}

/// Returns the reason of a packet-in. An entry of a POF controller has the reason of its action PACKET_IN,
/// even if OpenFlow would take the entry for a table-miss entry.
fn reason(p: &PacketIn, shared: &Shared) -> PofPacketInReason {
    let of_entry = || shared.tables.get(&p.table)?.packet_in_reason(p.entry?);
    match p.reason {
        PacketInReason::InvalidTtl => PofPacketInReason::InvalidTtl,
        PacketInReason::NoMatch => of_entry().unwrap_or(PofPacketInReason::NoMatch),
        PacketInReason::Action => of_entry().unwrap_or(PofPacketInReason::Action),
    }
}

/// Returns a PACKET_IN for each packet of the frame. A packet longer than the message allows is cut.
fn packet_ins(p: &PacketIn, reason: PofPacketInReason, config: &AgentConfig) -> Vec<PofMessage> {
    // Dialect 1.2 does not have the ingress port, and dialect 1.4.0.015 cannot express large numbers.
    let port = if config.dialect == PofDialect::V1_2 { 0 } else { p.frame.meta.in_port };
    let port = u16::try_from(port).unwrap_or(0);
    let message = |mut data: Vec<u8>| {
        let total_length_bytes = u16::try_from(data.len()).unwrap_or(u16::MAX);
        data.truncate(PACKET_BYTES_MAX);
        PofMessage::PacketIn(PofPacketIn {
            buffer_id: NO_BUFFER,
            total_length_bytes,
            reason,
            table: p.table,
            cookie: p.cookie,
            device_id: config.device_id,
            slot: 0,
            port,
            data,
        })
    };
    packets(&p.frame).into_iter().map(message).collect()
}
