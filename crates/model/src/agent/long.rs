// SPDX-License-Identifier: Apache-2.0
//! Long changes. The driver may apply them on another thread while it answers echo requests (docs/adr/0010).

use super::channel::{Channel, ChannelEvent, Job};
use super::dump::Dump;
use super::{Agent, ChannelId, Context, Refusal, Shared, bundle, flow_mod};
use crate::changes::{Change, LONG_ENTRIES};
use crate::{Changed, Model, ModelError};
use dataplane::DataPlane;
use flow::Nanos;
use openflow::bundle::BundleControl;
use openflow::{Message, Request, RequestHead};

/// Changes to apply. Until they are done, nothing else may use the model.
#[derive(Debug)]
pub struct Work {
    channel: ChannelId,
    now: Nanos,
    changes: Vec<Change>,
}

/// Result of [`Work`].
#[derive(Debug)]
pub struct Done {
    channel: ChannelId,
    result: Result<Changed, (usize, ModelError)>,
}

impl Work {
    /// Applies the changes. The duration is not bounded, so do not call it on the thread that answers echo
    /// requests.
    pub fn run<D: DataPlane>(self, model: &mut Model<D>) -> Done {
        Done { channel: self.channel, result: model.bundle(self.now, self.changes) }
    }
}

/// Continuation of a request after its changes were applied.
#[derive(Debug)]
pub(super) enum Then {
    /// Send a buffered packet through the tables.
    Packet(Option<u32>),
    /// Answer the bundle's commit. Transaction ID and first bytes of each message are kept for an ERROR about
    /// it.
    Commit(BundleControl, Vec<(u32, RequestHead)>),
    /// Report the tables in a reply to the request with this transaction ID.
    TellTables(u32),
}

/// A request whose changes are being applied by the driver.
#[derive(Debug)]
pub(super) struct Away {
    xid: u32,
    head: RequestHead,
    then: Then,
}

impl Channel {
    /// Applies changes, or hands them to the driver if they take long and the driver accepts them.
    pub(super) fn make<D: DataPlane>(
        &mut self,
        request: &Request,
        changes: Vec<Change>,
        then: Then,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<Option<Message>, Refusal> {
        let cost = context.model.cost_of(&changes);
        shared.spent = shared.spent.saturating_add(cost);
        if shared.lends && cost > LONG_ENTRIES {
            shared.work = Some(Work { channel: self.id, now: context.now, changes });
            self.begin(Job::Away(Box::new(Away { xid: request.xid, head: request.head, then })));
            return Ok(None);
        }
        let result = context.model.bundle(context.now, changes);
        self.made(then, result, shared, context)
    }

    fn made<D: DataPlane>(
        &mut self,
        then: Then,
        result: Result<Changed, (usize, ModelError)>,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<Option<Message>, Refusal> {
        match then {
            Then::Packet(buffer) => {
                result.map_err(|(_, error)| error)?;
                flow_mod::release(buffer, shared, context);
                Ok(None)
            }
            Then::TellTables(xid) => {
                result.map_err(|(_, error)| error)?;
                self.begin(Job::Dump(Box::new(Dump::table_features(xid))));
                Ok(None)
            }
            Then::Commit(control, origins) => {
                result.map_err(|(at, error)| self.refuse_bundle(&control, &origins, at, &error))?;
                Ok(Some(bundle::committed(control)))
            }
        }
    }

    /// Continues the request whose changes the driver has applied.
    pub(super) fn finish<D: DataPlane>(
        &mut self,
        done: Done,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Option<ChannelEvent> {
        let away = self.take_away()?;
        match self.made(away.then, done.result, shared, context) {
            Ok(Some(reply)) => self.reply(away.xid, &reply),
            Ok(None) => {}
            Err(refusal) => return Some(self.refuse(away.xid, &away.head, &refusal)),
        }
        None
    }
}

impl Agent {
    /// Announces that the driver calls [`Agent::take_work`] after each step and applies long changes itself.
    pub fn lend_long_work(&mut self) {
        self.shared.lends = true;
    }

    /// Takes the pending long changes. Until [`Agent::finish`], call [`Agent::step_alone`] instead of
    /// [`Agent::step`], and use the model only in [`Work::run`].
    pub fn take_work(&mut self) -> Option<Work> {
        self.shared.work.take()
    }

    /// Returns whether long changes are pending.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.shared.work.is_some()
    }

    /// Answers the request whose changes were applied. Returns an event to log, if any.
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
}
