// SPDX-License-Identifier: Apache-2.0
//! What controllers are told unasked.

use super::buffers::Buffers;
use super::{describe, whole};
use crate::notices::{FlowRemoved, Notice, PacketIn, PortReason, RemovedReason};
use flow::action::WHOLE_PACKET;
use flow::{Field, FieldMatch, Match, Nanos};
use openflow::role::AsyncKind;
use openflow::{Message, flow_mod, packet, port};

/// By what channels choose whether they want to hear of it.
pub fn kind(notice: &Notice) -> AsyncKind {
    match notice {
        Notice::PacketIn(p) => AsyncKind::PacketIn(p.reason.into()),
        Notice::FlowRemoved(removed) => AsyncKind::FlowRemoved(removed_reason(removed.reason)),
        Notice::PortStatus { reason, .. } => AsyncKind::PortStatus(port_reason(*reason)),
    }
}

/// Whether no action says how much of a packet is told: then the channel's miss_send_len does (7.4.1).
pub fn is_cut_by_channel(notice: &Notice) -> bool {
    matches!(notice, Notice::PacketIn(p) if p.reason == flow::PacketInReason::InvalidTtl)
}

/// The messages that tell it, with so many bytes of a packet, or as many as its action said.
pub fn messages(notice: &Notice, cut: Option<u16>, now: Nanos, buffers: &mut Buffers) -> Vec<Message> {
    match notice {
        Notice::PacketIn(p) => packet_ins(p, cut.unwrap_or(p.max_len), now, buffers),
        Notice::FlowRemoved(removed) => vec![Message::FlowRemoved(flow_removed(removed))],
        Notice::PortStatus { reason, port } => {
            let status = port::PortStatus { reason: port_reason(*reason), port: describe::port(port) };
            vec![Message::PortStatus(status)]
        }
    }
}

fn port_reason(reason: PortReason) -> port::PortReason {
    match reason {
        PortReason::Add => port::PortReason::Add,
        PortReason::Delete => port::PortReason::Delete,
        PortReason::Modify => port::PortReason::Modify,
    }
}

fn removed_reason(reason: RemovedReason) -> flow_mod::RemovedReason {
    match reason {
        RemovedReason::IdleTimeout => flow_mod::RemovedReason::IdleTimeout,
        RemovedReason::HardTimeout => flow_mod::RemovedReason::HardTimeout,
        RemovedReason::Delete => flow_mod::RemovedReason::Delete,
        RemovedReason::GroupDelete => flow_mod::RemovedReason::GroupDelete,
    }
}

/// A packet that is longer than was asked for is held and its beginning sent; without room it goes as a whole (7.4.1).
fn packet_ins(p: &PacketIn, max_len: u16, now: Nanos, buffers: &mut Buffers) -> Vec<Message> {
    let mut conditions = vec![FieldMatch::exact(Field::InPort, p.frame.meta.in_port.into())];
    if p.metadata != 0 {
        conditions.push(FieldMatch::exact(Field::Metadata, p.metadata.into()));
    }
    if p.tunnel_id != 0 {
        conditions.push(FieldMatch::exact(Field::TunnelId, p.tunnel_id.into()));
    }
    // Each fits its field, and is there once.
    let matching = Match::unchecked_prerequisites(conditions).unwrap_or_default();
    let message = |mut data: Vec<u8>| {
        let total_len = u16::try_from(data.len()).unwrap_or(u16::MAX);
        let mut buffer_id = None;
        if max_len != WHOLE_PACKET && usize::from(max_len) < data.len() {
            buffer_id = buffers.hold(now, p.frame.meta.in_port, &data);
        }
        if buffer_id.is_some() {
            data.truncate(max_len.into());
        }
        Message::PacketIn(packet::PacketIn {
            buffer_id,
            total_len,
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
        reason: removed_reason(removed.reason),
        table: entry.table,
        duration_ns: removed.duration_ns,
        idle_timeout_s: entry.idle_timeout_s,
        hard_timeout_s: entry.hard_timeout_s,
        packets: removed.packets,
        bytes: removed.bytes,
        matching: entry.matching.clone(),
    }
}
