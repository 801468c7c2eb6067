// SPDX-License-Identifier: Apache-2.0
//! The encoded messages of one asynchronous message, for channels that get the same messages.

use super::async_message;
use super::buffers::Buffers;
use super::channel::Channel;
use super::shared::Shared;
use crate::async_messages::AsyncMessage;
use flow::Nanos;
use openflow::Message;
use openflow::role::AsyncKind;

/// Encoded messages, each with whether a channel has taken it.
pub(super) struct Encoded(Vec<(Message, bool)>);

impl Encoded {
    /// Encodes the messages as [`async_message::messages`] does.
    pub fn new(async_message: &AsyncMessage, cut: Option<u16>, now: Nanos, buffers: &mut Buffers) -> Self {
        let messages = async_message::messages(async_message, cut, now, buffers);
        Self(messages.into_iter().map(|message| (message, false)).collect())
    }

    /// Sends the messages on a channel. Counts them as lost if there are none, because the packet of a
    /// packet-in cannot be segmented.
    pub fn report(&mut self, channel: &mut Channel, shared: &Shared, kind: AsyncKind) {
        if self.0.is_empty() {
            channel.lose(kind);
        }
        for (message, is_taken) in &mut self.0 {
            *is_taken |= channel.report(shared, kind, message);
        }
    }

    /// Frees the buffers of packet-ins that no channel has taken, because no controller knows their buffer
    /// IDs. Returns whether a channel has taken the last message, which has the question.
    pub fn end(self, now: Nanos, buffers: &mut Buffers) -> bool {
        for (message, _) in self.0.iter().filter(|(_, is_taken)| !is_taken) {
            if let Message::PacketIn(packet_in) = message {
                packet_in.buffer_id.into_iter().for_each(|id| drop(buffers.take(now, id)));
            }
        }
        self.0.last().is_some_and(|(_, is_taken)| *is_taken)
    }
}
