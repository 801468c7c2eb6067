// SPDX-License-Identifier: Apache-2.0
//! All POF channels of a datapath.

use crate::async_message;
use crate::channel::{PofChannel, PofChannelEvent, PofProgress};
use crate::config::AgentConfig;
use crate::long;
use crate::shared::Shared;
use crate::tables::PofTable;
use crate::work::{PofChannelId, PofDone, PofWork};
use dataplane::DataPlane;
use flow::Nanos;
use model::AsyncMessage;
use model::agent::limits::REQUESTS_PER_STEP;
use model::agent::{Context, LostMessages};
use openflow::SessionConfig;
use std::collections::BTreeMap;

/// Maximum number of removed entries whose final counts are added to their counters in one step. It exceeds
/// the number of entries that a step can add.
const RETIRED_PER_STEP: usize = 4 * REQUESTS_PER_STEP;

/// All POF channels of a datapath.
#[derive(Debug)]
pub struct PofAgent {
    channels: BTreeMap<PofChannelId, PofChannel>,
    next: u64,
    shared: Shared,
}

impl PofAgent {
    /// Creates an agent without channels.
    #[must_use]
    pub fn new(config: AgentConfig) -> Self {
        let shared = Shared::new(config);
        Self { channels: BTreeMap::new(), next: 0, shared }
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &AgentConfig {
        &self.shared.config
    }

    /// Opens a channel on a new connection.
    pub fn open(&mut self, now: Nanos, timers: SessionConfig) -> PofChannelId {
        let id = PofChannelId(self.next);
        self.next += 1;
        self.channels.insert(id, PofChannel::new(&self.shared.config, timers, now));
        id
    }

    /// Returns the channel with this ID.
    pub fn channel(&mut self, id: PofChannelId) -> Option<&mut PofChannel> {
        self.channels.get_mut(&id)
    }

    /// Handles a bounded number of a channel's requests.
    pub fn step<D: DataPlane>(&mut self, id: PofChannelId, context: &mut Context<'_, D>) -> PofProgress {
        self.retire_released(context);
        let mut progress = self.counting_queued(id, |channel, shared| channel.step(id, shared, context));
        if let Some(sole) = self.shared.sole.take() {
            progress.more |= self.replace_others(sole);
        }
        progress
    }

    /// Adds the final counts of some removed entries to their counters. Waits while a counter is added up in
    /// parts, so that no entry is added twice.
    fn retire_released<D: DataPlane>(&mut self, context: &mut Context<'_, D>) {
        if self.channels.values().any(PofChannel::is_counting) {
            return;
        }
        for _ in 0..RETIRED_PER_STEP {
            let Some((entry, last)) = context.model.take_final_counts() else { return };
            self.shared.counters.entry_released(entry, last.into());
        }
    }

    /// Answers echo requests of a channel, and queues all other requests while another thread uses the model.
    pub fn step_alone(&mut self, id: PofChannelId, now: Nanos) -> PofProgress {
        self.counting_queued(id, |channel, _| channel.step_alone(now))
    }

    /// Ends all channels but one, except those that have not completed their handshake. Returns whether there
    /// were any.
    fn replace_others(&mut self, sole: PofChannelId) -> bool {
        let mut replaced = false;
        for (id, channel) in &mut self.channels {
            if *id != sole && channel.is_running() {
                self.shared.queued.remove(&channel.waiting);
                channel.replace();
                replaced = true;
            }
        }
        replaced
    }

    /// Updates the total size of waiting requests after a step of one channel.
    fn counting_queued(
        &mut self,
        id: PofChannelId,
        step: impl FnOnce(&mut PofChannel, &mut Shared) -> PofProgress,
    ) -> PofProgress {
        let Some(channel) = self.channels.get_mut(&id) else { return PofProgress::default() };
        let before = self.shared.queued.before(&mut channel.waiting);
        let progress = step(channel, &mut self.shared);
        self.shared.queued.after(before, &channel.waiting);
        progress
    }

    /// Lets the agent leave long changes to the driver, which then calls [`PofAgent::take_work`] after each
    /// step.
    pub fn offload_long_work(&mut self) {
        self.shared.offloads = true;
    }

    /// Takes the pending long changes. Until [`PofAgent::finish`] is called, call [`PofAgent::step_alone`]
    /// instead of [`PofAgent::step`], and use the model only in [`PofWork::run`].
    pub fn take_work(&mut self) -> Option<PofWork> {
        self.shared.work.take()
    }

    /// Returns whether long changes are pending.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.shared.work.is_some()
    }

    /// Ends the request whose changes were applied. Returns an event to log, if there is one.
    pub fn finish(&mut self, done: PofDone) -> Option<(PofChannelId, PofChannelEvent)> {
        let id = done.channel;
        let refusal = long::end(done.then, done.result, &mut self.shared).err();
        // The connection may have been closed meanwhile.
        let event = self.channels.get_mut(&id)?.finish(done.xid, refusal)?;
        Some((id, event))
    }

    /// Sends a message of the model to all channels that have completed their handshake.
    pub fn report(&mut self, message: &AsyncMessage) {
        let mut channels = self.channels.values_mut().filter(|channel| channel.is_described()).peekable();
        if channels.peek().is_none() {
            return;
        }
        let encoded = async_message::messages(message, &self.shared);
        channels.for_each(|channel| channel.report(message, &encoded));
    }

    /// Returns whether a controller has completed its handshake and is still served.
    #[must_use]
    pub fn has_controller(&self) -> bool {
        self.channels.values().any(PofChannel::is_running)
    }

    /// Returns the numbers of messages lost because controllers did not read, over open and closed channels.
    #[must_use]
    pub fn lost(&self) -> LostMessages {
        self.channels.values().fold(self.shared.lost, |sum, channel| sum.plus(channel.lost()))
    }

    /// Returns the number of entries of which the agent has records. Records of entries that the model has
    /// removed are included until the agent finds them.
    #[must_use]
    pub fn records(&self) -> usize {
        self.shared.tables.values().map(PofTable::len).sum()
    }

    /// Removes a channel whose connection is closed.
    pub fn close(&mut self, id: PofChannelId) {
        if let Some(channel) = self.channels.remove(&id) {
            self.shared.queued.remove(&channel.waiting);
            self.shared.lost = self.shared.lost.plus(channel.lost());
        }
    }
}
