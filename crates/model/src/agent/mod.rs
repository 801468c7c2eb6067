// SPDX-License-Identifier: Apache-2.0
//! The OpenFlow agent: the channels of several controllers over one [`Model`], without I/O.
//!
//! Each connection is a [`Channel`] with its own `openflow::Session`. The driver passes received bytes to the
//! channel, calls [`Agent::step`] and writes the channel's output. [`Agent::tell`] forwards a
//! [`AsyncMessage`] to the channels that subscribe to it. Each call does a bounded amount of work. The agent
//! does no work for a channel whose peer does not read.

mod async_message;
mod buffers;
mod bundle;
mod channel;
mod describe;
mod dump;
mod finish_offloads;
mod flow_mod;
mod group;
mod layout;
mod long;
mod lost;
mod meter;
mod numbered;
mod packet_out;
mod port_mod;
mod query;
mod queues;
mod request;
mod role;
mod table_features;

pub use channel::{Channel, ChannelEvent, Progress};
pub use long::{Done, Work};
pub use lost::LostMessages;

use crate::async_messages::AsyncMessage;
use crate::model::Model;
use buffers::Buffers;
use dataplane::DataPlane;
use flow::{Nanos, Settings};
use openflow::packet::PacketInCode;
use openflow::role::{AsyncKind, Generation};
use openflow::{ErrorCode, Message, SessionConfig};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The model and its environment, as a step needs them to answer requests.
pub struct Context<'a, D: DataPlane> {
    /// Model of the datapath.
    pub model: &'a mut Model<D>,
    /// Current time.
    pub now: Nanos,
    /// Publishes counters that the data plane does not update continuously. Called before ports are read.
    pub refresh: &'a mut dyn FnMut(),
}

/// ID of a channel; never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(u64);

/// State shared by all channels.
#[derive(Debug, Default)]
struct Shared {
    generation: Generation,
    master: Option<ChannelId>,
    /// Size of the uncommitted bundles of all channels.
    bundled: bundle::Size,
    buffers: Buffers,
    /// A change of role or subscription may have changed which channels get which asynchronous messages.
    asked_anew: bool,
    /// Total size in bytes of the requests that wait in all channels.
    held_bytes: usize,
    /// Approximate number of entries that the changes of this step have examined.
    spent: usize,
    /// Messages lost on channels that are closed.
    lost: LostMessages,
    /// Whether the driver applies long changes on another thread.
    lends: bool,
    /// Long changes for the driver to take. No request starts before they are taken.
    work: Option<Work>,
}

/// Reason why a request is refused, with its OpenFlow error code.
#[derive(Debug)]
struct Refusal {
    code: ErrorCode,
    problem: Cow<'static, str>,
}

impl Refusal {
    fn new(code: ErrorCode, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { code, problem: problem.into() }
    }
}

impl From<crate::ModelError> for Refusal {
    fn from(error: crate::ModelError) -> Self {
        Self::new(error.openflow().into(), error.to_string())
    }
}

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

    /// Returns a channel, for its input and output.
    pub fn channel(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.channels.get_mut(&id)
    }

    /// Handles a bounded number of a channel's requests.
    pub fn step<D: DataPlane>(&mut self, id: ChannelId, context: &mut Context<'_, D>) -> Progress {
        let Some(channel) = self.channels.get_mut(&id) else { return Progress::default() };
        let progress =
            counting_held(channel, &mut self.shared, |channel, shared| channel.step(shared, context));
        if std::mem::take(&mut self.shared.asked_anew) {
            let kind = AsyncKind::PacketIn(PacketInCode::InvalidTtl);
            let report_invalid_ttl = self.channels.values().any(|channel| channel.wants(&self.shared, kind));
            context.model.set_settings(Settings { report_invalid_ttl, ..context.model.settings() });
        }
        progress
    }

    /// Handles input of a channel while the model is lent: answers echo requests and queues all other
    /// requests.
    pub fn step_alone(&mut self, id: ChannelId, now: Nanos) -> Progress {
        let Some(channel) = self.channels.get_mut(&id) else { return Progress::default() };
        counting_held(channel, &mut self.shared, |channel, _| channel.step_alone(now))
    }

    /// Sends a notice to the channels that subscribe to it, and recycles the frame of a packet-in.
    pub fn tell<D: DataPlane>(&mut self, model: &mut Model<D>, now: Nanos, async_message: AsyncMessage) {
        let kind = async_message::kind(&async_message);
        // Messages as encoded last, with the number of packet bytes. Channels with the same number share
        // them.
        let mut made: Option<(Option<u16>, Vec<Message>)> = None;
        for channel in self.channels.values_mut() {
            if !channel.wants(&self.shared, kind) {
                continue;
            }
            let cut =
                async_message::is_cut_by_channel(&async_message).then_some(channel.config.miss_send_len);
            let messages = match made.take() {
                Some((as_before, messages)) if as_before == cut => messages,
                _ => async_message::messages(&async_message, cut, now, &mut self.shared.buffers),
            };
            messages.iter().for_each(|message| channel.tell(&self.shared, kind, message));
            made = Some((cut, messages));
        }
        if let AsyncMessage::PacketIn(packet_in) = async_message {
            model.recycle(packet_in.frame);
        }
    }

    /// Returns the messages lost because controllers did not read, summed over all channels so far.
    #[must_use]
    pub fn lost(&self) -> LostMessages {
        self.channels.values().fold(self.shared.lost, |sum, channel| sum.plus(channel.lost()))
    }

    /// Removes a channel whose connection is closed.
    pub fn close(&mut self, id: ChannelId) {
        if let Some(channel) = self.channels.remove(&id) {
            channel.give_back(&mut self.shared);
            self.shared.asked_anew = true;
        }
    }
}

/// Keeps the total of waiting requests current while one channel does a step.
fn counting_held(
    channel: &mut Channel,
    shared: &mut Shared,
    turn: impl FnOnce(&mut Channel, &mut Shared) -> Progress,
) -> Progress {
    let before = channel.held_bytes();
    channel.set_crowded(shared.held_bytes >= channel::HELD_BYTES_ALL);
    let progress = turn(channel, shared);
    shared.held_bytes = shared.held_bytes.saturating_sub(before) + channel.held_bytes();
    progress
}
