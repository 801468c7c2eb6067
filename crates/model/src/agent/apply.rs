// SPDX-License-Identifier: Apache-2.0
//! Applies the changes of a request and answers the request. Long changes may be left to the driver, the
//! thread that runs the agent.

use super::channel::{Channel, ChannelEvent, Job};
use super::context::{Context, Refusal};
use super::dump::Dump;
use super::long::{Done, OffloadedRequest, Then, Work};
use super::shared::Shared;
use super::{bundle_request, flow_mod};
use crate::changes::{Change, Changed, LONG_ENTRIES};
use crate::error::ModelError;
use dataplane::DataPlane;
use openflow::{Message, Request};

impl Channel {
    /// Applies changes. Long changes go to the driver if the driver accepts them.
    pub(super) fn apply<D: DataPlane>(
        &mut self,
        request: &Request,
        changes: Vec<Change>,
        then: Then,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<Option<Message>, Refusal> {
        let cost = context.model.cost_of(&changes);
        shared.spent = shared.spent.saturating_add(cost);
        if shared.offloads && cost > LONG_ENTRIES {
            shared.work = Some(Work { channel: self.id, now: context.now, changes });
            self.begin(Job::Offloaded(Box::new(OffloadedRequest {
                xid: request.xid,
                head: request.head,
                then,
            })));
            return Ok(None);
        }
        let result = context.model.bundle(context.now, changes);
        self.applied(then, result, shared, context)
    }

    fn applied<D: DataPlane>(
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
            Then::ReportTables(xid) => {
                result.map_err(|(_, error)| error)?;
                self.begin(Job::Dump(Box::new(Dump::table_features(xid))));
                Ok(None)
            }
            Then::Commit(control, origins) => {
                result.map_err(|(at, error)| self.refuse_bundle(&control, &origins, at, &error))?;
                Ok(Some(bundle_request::committed(control)))
            }
        }
    }

    /// Resumes a request after its long-running change has been applied.
    pub(super) fn finish<D: DataPlane>(
        &mut self,
        done: Done,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Option<ChannelEvent> {
        let offloaded = self.take_offloaded()?;
        match self.applied(offloaded.then, done.result, shared, context) {
            Ok(Some(reply)) => self.reply(offloaded.xid, &reply),
            Ok(None) => {}
            Err(refusal) => return Some(self.refuse(offloaded.xid, &offloaded.head, &refusal)),
        }
        None
    }
}
