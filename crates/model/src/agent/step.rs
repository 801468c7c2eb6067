// SPDX-License-Identifier: Apache-2.0
//! A step of a channel. It continues the job in progress, or starts the next requests.

use super::channel::{Channel, ChannelEvent, Job, PendingRequest, Progress};
use super::context::{Context, Refusal};
use super::limits::REQUESTS_PER_STEP;
use super::shared::Shared;
use crate::changes::LONG_ENTRIES;
use dataplane::DataPlane;
use openflow::{Message, Request, Undecodable};

impl Channel {
    /// Handles a bounded number of requests.
    pub(super) fn step<D: DataPlane>(
        &mut self,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Progress {
        self.session.tick(context.now);
        let mut events = Vec::new();
        self.report_lost(context.now, &mut events);
        let mut left = REQUESTS_PER_STEP;
        shared.spent = 0;
        self.advance(context);
        while left > 0 {
            if let Some(pending) = self.next_ready(shared, context) {
                left -= 1;
                events.extend(self.take_up(pending, shared, context));
                // After this much work, other channels get a turn. After a change of subscriptions,
                // `Agent::step` must first update the settings.
                if shared.spent >= LONG_ENTRIES || shared.subscriptions_changed {
                    left = 0;
                }
                self.advance(context);
                continue;
            }
            if !self.take_event(&mut left, &mut events) {
                break;
            }
        }
        let opens = |event: &ChannelEvent| matches!(event, ChannelEvent::Opened | ChannelEvent::Closed(_));
        shared.subscriptions_changed |= events.iter().any(opens);
        let dumps = matches!(self.job, Some(Job::Dump(_))) && self.has_room();
        Progress { more: left == 0 || dumps, events }
    }

    /// Takes the next request if it may start now.
    fn next_ready<D: DataPlane>(
        &mut self,
        shared: &Shared,
        context: &mut Context<'_, D>,
    ) -> Option<PendingRequest> {
        let pending = self.waiting.front()?;
        let free = match &self.job {
            None => true,
            Some(Job::Barrier(..) | Job::Offloaded(_)) => false,
            Some(Job::Dump(_)) => !pending.waits_for_others(),
        };
        if !free || shared.work.is_some() || self.session.is_output_full() || context.model.is_congested() {
            return None;
        }
        self.waiting.pop()
    }

    /// Continues the current job.
    fn advance<D: DataPlane>(&mut self, context: &mut Context<'_, D>) {
        self.job = match self.job.take() {
            Some(Job::Barrier(xid, version)) if context.model.is_settled(version) => {
                self.reply(xid, &Message::BarrierReply);
                None
            }
            Some(Job::Dump(dump)) if self.has_room() => {
                self.session.answer_goes_on(context.now);
                dump.advance(&mut self.session, context).map(|rest| Job::Dump(Box::new(rest)))
            }
            other => other,
        };
    }

    /// Executes or refuses the next request.
    fn take_up<D: DataPlane>(
        &mut self,
        pending: PendingRequest,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Option<ChannelEvent> {
        match pending {
            PendingRequest::Request(request) => {
                let refusal = self.start(&request, shared, context).err()?;
                Some(self.refuse(request.xid, &request.head, &refusal))
            }
            PendingRequest::Undecodable(request) => {
                let Undecodable { xid, error, head } = *request;
                if let Some(more) = head.table_features_part() {
                    self.layout.refuse(xid, more);
                }
                let refusal = self.barred(shared).unwrap_or(Refusal::new(error.code, error.problem));
                Some(self.refuse(xid, &head, &refusal))
            }
        }
    }

    fn start<D: DataPlane>(
        &mut self,
        request: &Request,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> Result<(), Refusal> {
        if let Some(reply) = self.answer(request, shared, context)? {
            self.reply(request.xid, &reply);
        }
        Ok(())
    }
}
