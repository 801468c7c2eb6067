// SPDX-License-Identifier: Apache-2.0
//! Asynchronous messages: packet-in, flow-removed and port-status.

use super::buffers::Buffers;
use super::{describe, finish_offloads};
use crate::async_messages::{AsyncMessage, FlowRemoved, PacketIn, PortReason, RemovedReason};
use flow::action::WHOLE_PACKET;
use flow::{Field, FieldMatch, Match, Nanos, PortNo};
use openflow::role::AsyncKind;
use openflow::{Message, flow_mod, packet, port};

/// Returns the kind of a message. Channels subscribe to kinds.
pub fn kind(async_message: &AsyncMessage) -> AsyncKind {
    match async_message {
        AsyncMessage::PacketIn(p) => AsyncKind::PacketIn(p.reason.into()),
        AsyncMessage::FlowRemoved(removed) => AsyncKind::FlowRemoved(removed_reason(removed.reason)),
        AsyncMessage::PortStatus { reason, .. } => AsyncKind::PortStatus(port_reason(*reason)),
    }
}

/// Returns whether the channel's `miss_send_len` limits the packet-in, because no action gives a length
/// (OpenFlow 1.3, section 7.4.1).
pub fn is_cut_by_channel(async_message: &AsyncMessage) -> bool {
    matches!(async_message, AsyncMessage::PacketIn(p) if p.reason == flow::PacketInReason::InvalidTtl)
}

/// Encodes an asynchronous message. `cut` is the number of packet bytes to send, or `None` for the length
/// given by the packet's action.
pub fn messages(
    async_message: &AsyncMessage,
    cut: Option<u16>,
    now: Nanos,
    buffers: &mut Buffers,
) -> Vec<Message> {
    match async_message {
        AsyncMessage::PacketIn(p) => packet_ins(p, cut.unwrap_or(p.max_len), now, buffers),
        AsyncMessage::FlowRemoved(removed) => vec![Message::FlowRemoved(flow_removed(removed))],
        AsyncMessage::PortStatus { reason, port } => {
            let status = port::PortStatus { reason: port_reason(*reason), port: describe::port(port) };
            vec![Message::PortStatus(status)]
        }
    }
}

fn port_reason(reason: PortReason) -> port::PortStatusReason {
    match reason {
        PortReason::Add => port::PortStatusReason::Add,
        PortReason::Delete => port::PortStatusReason::Delete,
        PortReason::Modify => port::PortStatusReason::Modify,
    }
}

fn removed_reason(reason: RemovedReason) -> flow_mod::FlowRemovedReason {
    match reason {
        RemovedReason::IdleTimeout => flow_mod::FlowRemovedReason::IdleTimeout,
        RemovedReason::HardTimeout => flow_mod::FlowRemovedReason::HardTimeout,
        RemovedReason::Delete => flow_mod::FlowRemovedReason::Delete,
        RemovedReason::GroupDelete => flow_mod::FlowRemovedReason::GroupDelete,
    }
}

/// Encodes packet-ins. A packet longer than `max_len` is buffered, and only its beginning is sent. Without a
/// free buffer, the whole packet is sent (OpenFlow 1.3, section 7.4.1).
///
/// If later packets of the flow wait for the answer, a packet of any length is buffered, so that the answer
/// names them by the buffer ID. They belong to the last of the packets, if there are several.
fn packet_ins(p: &PacketIn, max_len: u16, now: Nanos, buffers: &mut Buffers) -> Vec<Message> {
    let mut conditions = vec![FieldMatch::exact(Field::InPort, p.frame.meta.in_port.into())];
    if p.metadata != 0 {
        conditions.push(FieldMatch::exact(Field::Metadata, p.metadata.into()));
    }
    if p.tunnel_id != 0 {
        conditions.push(FieldMatch::exact(Field::TunnelId, p.tunnel_id.into()));
    }
    // This cannot fail: each value fits into its field, and each field occurs once.
    let matching = Match::unchecked_prerequisites(conditions).unwrap_or_default();
    let packets = finish_offloads::packets(&p.frame);
    let count = packets.len();
    let message = |(at, mut data): (usize, Vec<u8>)| {
        let total_len = u16::try_from(data.len()).unwrap_or(u16::MAX);
        let mut buffer_id = None;
        let question = p.question.filter(|_| at + 1 == count);
        if max_len != WHOLE_PACKET && (usize::from(max_len) < data.len() || question.is_some()) {
            buffer_id = buffers.hold(now, PortNo(p.frame.meta.in_port), &data, question);
        }
        if buffer_id.is_some() {
            data.truncate(max_len.into());
        }
        Message::PacketIn(packet::PacketInMessage {
            buffer_id,
            total_len,
            reason: p.reason.into(),
            table: p.table,
            cookie: p.cookie,
            matching: matching.clone(),
            data,
        })
    };
    packets.into_iter().enumerate().map(message).collect()
}

fn flow_removed(removed: &FlowRemoved) -> flow_mod::FlowRemovedMessage {
    let entry = &removed.entry;
    flow_mod::FlowRemovedMessage {
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

#[cfg(test)]
mod tests {
    use super::super::buffers::Buffered;
    use super::*;
    use flow::{EntryId, FlowEntry, PacketInReason, TableId};
    use frame::Frame;
    use std::sync::Arc;

    /// Returns a packet-in of 60 bytes that port 3 received.
    fn packet_in(max_len: u16, metadata: u64, tunnel_id: u64) -> AsyncMessage {
        let mut frame = Frame::from_bytes(&[7; 60]);
        frame.meta.in_port = 3;
        let reason = PacketInReason::Action;
        AsyncMessage::PacketIn(PacketIn {
            frame,
            table: TableId(4),
            entry: None,
            cookie: 5,
            reason,
            max_len,
            metadata,
            tunnel_id,
            question: None,
        })
    }

    fn reported(
        async_message: &AsyncMessage,
        cut: Option<u16>,
        buffers: &mut Buffers,
    ) -> packet::PacketInMessage {
        match messages(async_message, cut, Nanos(0), buffers).pop() {
            Some(Message::PacketIn(packet_in)) => packet_in,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_packet_in_contains_the_registers_that_are_not_zero() {
        let in_port = FieldMatch::exact(Field::InPort, 3);
        let metadata = FieldMatch::exact(Field::Metadata, 8);
        let tunnel_id = FieldMatch::exact(Field::TunnelId, 9);
        for (of_metadata, of_tunnel, expected) in [
            (0, 0, vec![in_port]),
            (8, 0, vec![in_port, metadata]),
            (0, 9, vec![in_port, tunnel_id]),
            (8, 9, vec![in_port, metadata, tunnel_id]),
        ] {
            let reported = reported(&packet_in(128, of_metadata, of_tunnel), None, &mut Buffers::default());
            assert_eq!(
                (reported.table, reported.cookie, reported.reason),
                (TableId(4), 5, packet::PacketInCode::Action)
            );
            assert_eq!(reported.matching, Match::new(expected).unwrap());
        }
    }

    #[test]
    fn a_packet_longer_than_requested_is_buffered_and_truncated() {
        for (max_len, data) in [(0, 0), (1, 1), (59, 59), (60, 60), (61, 60), (WHOLE_PACKET, 60)] {
            for cut in [None, Some(max_len)] {
                let mut buffers = Buffers::default();
                let asked = if cut.is_some() { WHOLE_PACKET } else { max_len };
                let reported = reported(&packet_in(asked, 0, 0), cut, &mut buffers);
                assert_eq!((reported.total_len, reported.data), (60, vec![7; data]), "{max_len} bytes");
                assert_eq!(reported.buffer_id.is_some(), data < 60, "{max_len} bytes");
                let held = reported.buffer_id.and_then(|id| buffers.take(Nanos(0), id));
                let expected = Buffered { in_port: PortNo(3), bytes: vec![7; 60], releases: None };
                assert!(held.is_none_or(|held| held == expected));
            }
        }
        // Without space in the buffers, the whole packet is sent.
        let mut buffers = Buffers::default();
        while buffers.hold(Nanos(0), PortNo(1), &[], None).is_some() {}
        let reported = reported(&packet_in(10, 0, 0), None, &mut buffers);
        assert_eq!((reported.buffer_id, reported.data.len()), (None, 60));
    }

    #[test]
    fn miss_send_len_truncates_packets_that_no_action_sent() {
        assert!(!is_cut_by_channel(&packet_in(1, 0, 0)));
        let AsyncMessage::PacketIn(packet_in) = packet_in(1, 0, 0) else { panic!("expected a packet-in") };
        let invalid = PacketIn { reason: PacketInReason::InvalidTtl, ..packet_in };
        assert!(is_cut_by_channel(&AsyncMessage::PacketIn(invalid)));
    }

    #[test]
    fn a_removed_entry_is_reported_with_reason_and_counts() {
        use flow_mod::FlowRemovedReason as WireReason;
        for (reason, expected) in [
            (RemovedReason::IdleTimeout, WireReason::IdleTimeout),
            (RemovedReason::HardTimeout, WireReason::HardTimeout),
            (RemovedReason::Delete, WireReason::Delete),
            (RemovedReason::GroupDelete, WireReason::GroupDelete),
        ] {
            let entry = FlowEntry {
                id: EntryId(0),
                table: TableId(1),
                priority: 2,
                matching: Match::new([FieldMatch::exact(Field::InPort, 9)]).unwrap(),
                instructions: Arc::default(),
                idle_timeout_s: 3,
                hard_timeout_s: 4,
                cookie: 5,
                flags: flow::EntryFlags::default(),
                low_latency: false,
            };
            let matching = entry.matching.clone();
            let removed =
                FlowRemoved { entry: Arc::new(entry), reason, duration_ns: Nanos(6), packets: 7, bytes: 8 };
            let async_message = AsyncMessage::FlowRemoved(removed);
            assert_eq!(kind(&async_message), AsyncKind::FlowRemoved(expected));
            let reported = flow_mod::FlowRemovedMessage {
                cookie: 5,
                priority: 2,
                reason: expected,
                table: TableId(1),
                duration_ns: Nanos(6),
                idle_timeout_s: 3,
                hard_timeout_s: 4,
                packets: 7,
                bytes: 8,
                matching,
            };
            assert_eq!(
                messages(&async_message, None, Nanos(0), &mut Buffers::default()),
                [Message::FlowRemoved(reported)]
            );
        }
    }
}
