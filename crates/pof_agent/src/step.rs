// SPDX-License-Identifier: Apache-2.0
//! A step of a channel. It continues the job in progress, or starts the next requests.

use crate::channel::{PendingRequest, PofChannel, PofProgress};
use crate::shared::Shared;
use crate::work::PofChannelId;
use dataplane::DataPlane;
use model::agent::Context;
use model::agent::limits::REQUESTS_PER_STEP;

impl PofChannel {
    /// Handles a bounded number of requests.
    pub(crate) fn step<D: DataPlane>(
        &mut self,
        id: PofChannelId,
        shared: &mut Shared,
        context: &mut Context<'_, D>,
    ) -> PofProgress {
        self.session.tick(context.now);
        let mut events = Vec::new();
        self.report_lost(context.now, &mut events);
        let mut left = REQUESTS_PER_STEP;
        self.advance(shared, context);
        while left > 0 {
            if let Some(pending) = self.next_ready(shared, context) {
                left -= 1;
                events.extend(self.execute(id, pending, shared, context));
                self.advance(shared, context);
            } else if !self.take_event(&mut left, &mut events) {
                break;
            }
        }
        let answers = self.job.as_ref().is_some_and(|job| !job.waits()) && self.has_room();
        PofProgress { more: left == 0 || answers, events }
    }

    /// Takes the next request if it may start now.
    fn next_ready<D: DataPlane>(
        &mut self,
        shared: &Shared,
        context: &mut Context<'_, D>,
    ) -> Option<PendingRequest> {
        if self.waiting.is_empty()
            || self.job.is_some()
            || shared.work.is_some()
            || self.session.is_output_full()
            || context.model.is_congested()
        {
            return None;
        }
        self.waiting.pop()
    }

    /// Continues the current job.
    fn advance<D: DataPlane>(&mut self, shared: &mut Shared, context: &mut Context<'_, D>) {
        if self.has_room()
            && let Some(job) = self.job.take_if(|job| !job.is_offloaded())
        {
            self.session.answer_goes_on(context.now);
            self.job = job.advance(self, shared, context);
        }
    }
}
