// SPDX-License-Identifier: Apache-2.0
//! Changes that take long: the driver may have them made while it answers echoes (docs/adr/0010).

use super::channel::{Channel, ChannelEvent, Job};
use super::dump::Dump;
use super::{Agent, ChannelId, Context, Refusal, Shared, bundle, flow_mod};
use crate::change::{Change, LONG_ENTRIES};
use crate::data_plane::DataPlane;
use crate::{Changed, Model, ModelError};
use flow::Nanos;
use openflow::bundle::BundleControl;
use openflow::{Head, Message, Request};

/// Changes to make. While they are, nothing else may use the model.
#[derive(Debug)]
pub struct Work {
    channel: ChannelId,
    now: Nanos,
    changes: Vec<Change>,
}

/// What became of [`Work`].
#[derive(Debug)]
pub struct Done {
    channel: ChannelId,
    result: Result<Changed, (usize, ModelError)>,
}

impl Work {
    /// Makes the changes. Takes as long as it takes.
    pub fn run<D: DataPlane>(self, model: &mut Model<D>) -> Done {
        Done { channel: self.channel, result: model.bundle(self.now, self.changes) }
    }
}

/// What follows when changes are made.
#[derive(Debug)]
pub(super) enum Then {
    /// A held packet goes through the tables.
    Packet(Option<u32>),
    /// A bundle is answered. Number and first bytes of each message, for the ERROR that may name it.
    Commit(BundleControl, Vec<(u32, Head)>),
    /// The tables are reported in a reply to the request of this number.
    TellTables(u32),
}

/// A request whose changes are being made elsewhere.
#[derive(Debug)]
pub(super) struct Away {
    xid: u32,
    head: Head,
    then: Then,
}

impl Channel {
    /// Makes changes, or leaves them to the driver if they take long and it wants them.
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

    /// Goes on with the request whose changes were made elsewhere.
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
    /// Says that the driver asks for [`Agent::take_work`] after each step, and makes such changes elsewhere.
    pub fn lend_long_work(&mut self) {
        self.shared.lends = true;
    }

    /// Changes that take long. Until [`Agent::finish`], call [`Agent::step_alone`] instead of [`Agent::step`], and leave
    /// the model to [`Work::run`].
    pub fn take_work(&mut self) -> Option<Work> {
        self.shared.work.take()
    }

    /// Whether there are changes to take.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.shared.work.is_some()
    }

    /// Answers the request whose changes were made; what is to be logged of it.
    pub fn finish<D: DataPlane>(
        &mut self,
        done: Done,
        context: &mut Context<'_, D>,
    ) -> Option<(ChannelId, ChannelEvent)> {
        let id = done.channel;
        // Its connection may be gone meanwhile.
        let event = self.channels.get_mut(&id)?.finish(done, &mut self.shared, context)?;
        Some((id, event))
    }
}
