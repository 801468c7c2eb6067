// SPDX-License-Identifier: Apache-2.0
//! What controllers are told unasked.

use super::{describe, whole};
use crate::notices::{FlowRemoved, Notice, PacketIn, PortReason, RemovedReason};
use flow::{Field, FieldMatch, Match};
use openflow::role::AsyncKind;
use openflow::{Message, flow_mod, packet, port};

/// The messages that tell it, and by what channels choose whether they want them.
pub fn messages(notice: &Notice) -> (AsyncKind, Vec<Message>) {
    match notice {
        Notice::PacketIn(p) => (AsyncKind::PacketIn(p.reason.into()), packet_ins(p)),
        Notice::FlowRemoved(removed) => {
            let message = flow_removed(removed);
            (AsyncKind::FlowRemoved(message.reason), vec![Message::FlowRemoved(message)])
        }
        Notice::PortStatus { reason, port } => {
            let reason = match reason {
                PortReason::Add => port::PortReason::Add,
                PortReason::Delete => port::PortReason::Delete,
                PortReason::Modify => port::PortReason::Modify,
            };
            let status = port::PortStatus { reason, port: describe::port(port) };
            (AsyncKind::PortStatus(reason), vec![Message::PortStatus(status)])
        }
    }
}

/// Packets are not held for controllers, so each goes as a whole, whatever length was asked for (7.4.1).
fn packet_ins(p: &PacketIn) -> Vec<Message> {
    let mut conditions = vec![FieldMatch::exact(Field::InPort, p.frame.meta.in_port.into())];
    if p.metadata != 0 {
        conditions.push(FieldMatch::exact(Field::Metadata, p.metadata.into()));
    }
    if p.tunnel_id != 0 {
        conditions.push(FieldMatch::exact(Field::TunnelId, p.tunnel_id.into()));
    }
    // Each fits its field, and is there once.
    let matching = Match::unchecked_prerequisites(conditions).unwrap_or_default();
    let message = |data: Vec<u8>| {
        Message::PacketIn(packet::PacketIn {
            buffer_id: None,
            total_len: u16::try_from(data.len()).unwrap_or(u16::MAX),
            reason: p.reason.into(),
            table: p.table,
            cookie: p.cookie,
            matching: matching.clone(),
            data,
        })
    };
    whole::packets(&p.frame).into_iter().map(message).collect()
}

fn flow_removed(removed: &FlowRemoved) -> flow_mod::FlowRemoved {
    let entry = &removed.entry;
    flow_mod::FlowRemoved {
        cookie: entry.cookie,
        priority: entry.priority,
        reason: match removed.reason {
            RemovedReason::IdleTimeout => flow_mod::RemovedReason::IdleTimeout,
            RemovedReason::HardTimeout => flow_mod::RemovedReason::HardTimeout,
            RemovedReason::Delete => flow_mod::RemovedReason::Delete,
        },
        table: entry.table,
        duration_ns: removed.duration_ns,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        packets: removed.packets,
        bytes: removed.bytes,
        matching: entry.matching.clone(),
    }
}
