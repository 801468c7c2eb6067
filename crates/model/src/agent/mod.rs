// SPDX-License-Identifier: Apache-2.0
//! The OpenFlow agent: several controllers' channels over one [`Model`], without I/O.
//!
//! Each connection is a [`Channel`] with an `openflow::Session` of its own. The driver gives a channel what it reads,
//! calls [`Agent::step`], and writes the channel's output; [`Agent::tell`] passes a [`Notice`] on to the channels that
//! want it. Each call does a bounded amount of work, and a channel whose peer does not read is not worked for.

mod buffers;
mod bundle;
mod channel;
mod describe;
mod dump;
mod flow_mod;
mod group;
mod layout;
mod long;
mod lost;
mod meter;
mod notice;
mod numbered;
mod packet_out;
mod port_mod;
mod query;
mod queues;
mod request;
mod role;
mod table_features;
mod whole;

pub use channel::{Channel, ChannelEvent, Progress};
pub use long::{Done, Work};
pub use lost::Lost;

use crate::data_plane::DataPlane;
use crate::model::Model;
use crate::notices::Notice;
use buffers::Buffers;
use flow::{Nanos, Settings};
use openflow::packet::PacketInReason;
use openflow::role::{AsyncKind, Generation};
use openflow::{ErrorCode, Message, SessionConfig};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What requests are answered from.
pub struct Context<'a, D: DataPlane> {
    /// The switch.
    pub model: &'a mut Model<D>,
    /// The time.
    pub now: Nanos,
    /// Publishes the counters that the data plane does not keep live, before ports are asked for.
    pub refresh: &'a mut dyn FnMut(),
}

/// A channel's number; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChannelId(u64);

/// What all channels share.
#[derive(Debug, Default)]
struct Shared {
    generation: Generation,
    master: Option<ChannelId>,
    /// What bundles hold that are not committed.
    bundled: bundle::Size,
    buffers: Buffers,
    /// Who wants which messages may have changed.
    asked_anew: bool,
    /// Bytes of the requests that wait in all channels.
    held_bytes: usize,
    /// Entries that the changes of this step looked at, about.
    spent: usize,
    /// What channels lost that are gone.
    lost: Lost,
    /// The driver makes changes that take long elsewhere.
    lends: bool,
    /// Such changes, until the driver takes them: nobody begins anything before.
    work: Option<Work>,
}

/// Why a request is refused.
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
    /// Begins a channel on a fresh connection.
    pub fn open(&mut self, now: Nanos, config: SessionConfig) -> ChannelId {
        let id = ChannelId(self.next);
        self.next += 1;
        self.channels.insert(id, Channel::new(id, config, now));
        id
    }

    /// A channel, for its input and output.
    pub fn channel(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.channels.get_mut(&id)
    }

    /// Works off what a channel received, a bounded part of it.
    pub fn step<D: DataPlane>(&mut self, id: ChannelId, context: &mut Context<'_, D>) -> Progress {
        let Some(channel) = self.channels.get_mut(&id) else { return Progress::default() };
        let progress =
            counting_held(channel, &mut self.shared, |channel, shared| channel.step(shared, context));
        if std::mem::take(&mut self.shared.asked_anew) {
            let kind = AsyncKind::PacketIn(PacketInReason::InvalidTtl);
            let report_invalid_ttl = self.channels.values().any(|channel| channel.wants(&self.shared, kind));
            context.model.set_settings(Settings { report_invalid_ttl, ..context.model.settings() });
        }
        progress
    }

    /// Takes in what a channel received while the model is lent: echoes are answered, all else waits.
    pub fn step_alone(&mut self, id: ChannelId, now: Nanos) -> Progress {
        let Some(channel) = self.channels.get_mut(&id) else { return Progress::default() };
        counting_held(channel, &mut self.shared, |channel, _| channel.step_alone(now))
    }

    /// Tells the channels that want to hear of it, and gives a packet-in's frame back.
    pub fn tell<D: DataPlane>(&mut self, model: &mut Model<D>, now: Nanos, notice: Notice) {
        let kind = notice::kind(&notice);
        // Made once for all channels that are told the same.
        let mut made: Option<(Option<u16>, Vec<Message>)> = None;
        for channel in self.channels.values_mut() {
            if !channel.wants(&self.shared, kind) {
                continue;
            }
            let cut = notice::is_cut_by_channel(&notice).then_some(channel.config.miss_send_len);
            let messages = match made.take() {
                Some((as_before, messages)) if as_before == cut => messages,
                _ => notice::messages(&notice, cut, now, &mut self.shared.buffers),
            };
            messages.iter().for_each(|message| channel.tell(&self.shared, kind, message));
            made = Some((cut, messages));
        }
        if let Notice::PacketIn(packet_in) = notice {
            model.recycle(packet_in.frame);
        }
    }

    /// Messages that controllers did not get because they did not read, of all channels that there were.
    #[must_use]
    pub fn lost(&self) -> Lost {
        self.channels.values().fold(self.shared.lost, |sum, channel| sum.plus(channel.lost()))
    }

    /// Forgets a channel whose connection is gone.
    pub fn close(&mut self, id: ChannelId) {
        if let Some(channel) = self.channels.remove(&id) {
            channel.give_back(&mut self.shared);
            self.shared.asked_anew = true;
        }
    }
}

/// Keeps the sum of what waits in channels right while one has its turn.
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
