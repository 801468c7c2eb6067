// SPDX-License-Identifier: Apache-2.0
//! The OpenFlow agent: the channels of several controllers over one [`Model`], without I/O.
//!
//! Each connection is a [`Channel`] with its own `openflow::Session`. The caller of this module is its
//! driver: it passes received bytes to the channel, calls [`Agent::step`] and writes the channel's output.
//! [`Agent::report`] forwards an [`AsyncMessage`] to the channels that subscribe to it. Each call does a
//! bounded amount of work.
//!
//! Begin with [`Agent`], then `channel.rs` (the state of a connection), `step.rs` (which request is next) and
//! `request.rs` (the function that handles each kind of request). Most other files handle one kind of
//! request.

mod apply;
mod async_message;
mod buffers;
mod bundle;
mod bundle_request;
mod channel;
mod context;
mod describe;
mod dump;
mod encoded;
mod finish_offloads;
mod flow_mod;
mod group;
mod layout;
pub mod limits;
mod long;
mod lost;
mod meter;
mod numbered;
mod packet_out;
mod port_mod;
mod query;
mod queues;
mod request;
mod request_queue;
mod role;
mod shared;
mod step;
mod table_features;

pub use channel::{Channel, ChannelEvent, Progress};
pub use context::{ChannelId, Context};
pub use describe::port as describe_port;
pub use finish_offloads::packets;
pub use long::{Done, Work};
pub use lost::{LossCounters, LostMessages};
pub use request_queue::{QueueLimits, QueuedBytes, RequestQueue};

use crate::async_messages::AsyncMessage;
use crate::model::Model;
use dataplane::DataPlane;
use encoded::Encoded;
use flow::{Nanos, Settings};
use openflow::SessionConfig;
use openflow::packet::PacketInCode;
use openflow::role::{AsyncKind, Role};
use shared::Shared;
use std::collections::BTreeMap;

/// All channels of a datapath.
#[derive(Debug, Default)]
pub struct Agent {
    channels: BTreeMap<ChannelId, Channel>,
    next: u64,
    shared: Shared,
}

impl Agent {
    /// Opens a channel on a new connection.
    pub fn open(&mut self, now: Nanos, config: SessionConfig) -> ChannelId {
        let id = ChannelId(self.next);
        self.next += 1;
        self.channels.insert(id, Channel::new(id, config, now));
        id
    }

    /// Returns the channel with this ID.
    pub fn channel(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.channels.get_mut(&id)
    }

    /// Returns the effective role of the channel with this ID: equal, master or slave.
    #[must_use]
    pub fn role(&self, id: ChannelId) -> Option<Role> {
        Some(self.channels.get(&id)?.role(&self.shared))
    }

    /// Handles a bounded number of a channel's requests.
    pub fn step<D: DataPlane>(&mut self, id: ChannelId, context: &mut Context<'_, D>) -> Progress {
        self.shared.buffers.expire(context.now);
        let Some(channel) = self.channels.get_mut(&id) else { return Progress::default() };
        let progress =
            counting_queued(channel, &mut self.shared, |channel, shared| channel.step(shared, context));
        self.update_settings(context.model);
        progress
    }

    /// Adjusts the settings of the data plane to the packet-ins that the controllers subscribe to. Call it
    /// after [`Agent::close`]. [`Agent::step`] calls it.
    pub fn update_settings<D: DataPlane>(&mut self, model: &mut Model<D>) {
        if std::mem::take(&mut self.shared.subscriptions_changed) {
            let wants = |reason| {
                let kind = AsyncKind::PacketIn(reason);
                self.channels.values().any(|channel| channel.wants(&self.shared, kind))
            };
            let report_invalid_ttl = wants(PacketInCode::InvalidTtl);
            let ask_controller = model.config().quenches && wants(PacketInCode::NoMatch);
            model.set_settings(Settings { report_invalid_ttl, ask_controller, ..model.settings() });
        }
    }

    /// Answers echo requests of a channel, and queues all other requests while another thread uses the model.
    pub fn step_alone(&mut self, id: ChannelId, now: Nanos) -> Progress {
        let Some(channel) = self.channels.get_mut(&id) else { return Progress::default() };
        counting_queued(channel, &mut self.shared, |channel, _| channel.step_alone(now))
    }

    /// Lets the agent leave long changes to the driver, which then calls [`Agent::take_work`] after each
    /// step.
    pub fn offload_long_work(&mut self) {
        self.shared.offloads = true;
    }

    /// Takes the pending long changes. Until [`Agent::finish`] is called, call [`Agent::step_alone`] instead
    /// of [`Agent::step`], and use the model only in [`Work::run`].
    pub fn take_work(&mut self) -> Option<Work> {
        self.shared.work.take()
    }

    /// Returns whether long changes are pending.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.shared.work.is_some()
    }

    /// Answers the request whose changes were applied. Returns an event to log, if there is one.
    pub fn finish<D: DataPlane>(
        &mut self,
        done: Done,
        context: &mut Context<'_, D>,
    ) -> Option<(ChannelId, ChannelEvent)> {
        let id = done.channel;
        // The connection may have been closed meanwhile.
        let event = self.channels.get_mut(&id)?.finish(done, &mut self.shared, context)?;
        Some((id, event))
    }

    /// Sends an asynchronous message to the channels that subscribe to it, and recycles the frame of a
    /// packet-in.
    pub fn report<D: DataPlane>(&mut self, model: &mut Model<D>, now: Nanos, async_message: AsyncMessage) {
        let kind = async_message::kind(&async_message);
        // The last encoded messages, and the length to which their packet was cut. Channels with the same
        // length share these messages.
        let mut encoded: Option<(Option<u16>, Encoded)> = None;
        let mut is_asked = false;
        for channel in self.channels.values_mut() {
            if !channel.wants(&self.shared, kind) {
                continue;
            }
            let cut =
                async_message::is_cut_by_channel(&async_message).then_some(channel.config.miss_send_len);
            if let Some((_, before)) = encoded.take_if(|(as_before, _)| *as_before != cut) {
                is_asked |= before.end(now, &mut self.shared.buffers);
            }
            let (_, messages) = encoded.get_or_insert_with(|| {
                (cut, Encoded::new(&async_message, cut, now, &mut self.shared.buffers))
            });
            messages.report(channel, &self.shared, kind);
        }
        if let Some((_, last)) = encoded {
            is_asked |= last.end(now, &mut self.shared.buffers);
        }
        if let AsyncMessage::PacketIn(packet_in) = async_message {
            if let Some(question) = packet_in.question.filter(|_| !is_asked) {
                model.end_wait(question.flow);
            }
            model.recycle(packet_in.frame);
        }
    }

    /// Returns the numbers of messages lost because controllers did not read, over open and closed channels,
    /// and the number of expired buffers.
    #[must_use]
    pub fn lost(&self) -> LostMessages {
        let lost = self.channels.values().fold(self.shared.lost, |sum, channel| sum.plus(channel.lost()));
        LostMessages { expired_buffer: self.shared.buffers.expired(), ..lost }
    }

    /// Removes a channel whose connection is closed.
    pub fn close(&mut self, id: ChannelId) {
        if let Some(channel) = self.channels.remove(&id) {
            channel.give_back(&mut self.shared);
            self.shared.subscriptions_changed = true;
        }
    }
}

/// Updates the total size of waiting requests after a step of one channel.
fn counting_queued(
    channel: &mut Channel,
    shared: &mut Shared,
    turn: impl FnOnce(&mut Channel, &mut Shared) -> Progress,
) -> Progress {
    let before = shared.queued.before(&mut channel.waiting);
    let progress = turn(channel, shared);
    shared.queued.after(before, &channel.waiting);
    progress
}
