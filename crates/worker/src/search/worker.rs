// SPDX-License-Identifier: Apache-2.0
//! The search worker: a pipeline that finds paths and forwards nothing.

use super::delay::{Delay, Due};
use super::link::Client;
use super::{Answer, SearchEnd, SearchState};
use crate::egress::WorkerEgress;
use crate::sleep::{SleepFlag, Sleeper};
use crate::worker::Channel;
use flow::{Nanos, RuleVersion};
use pipeline::{BURST, Egress, LaneLimits, Pipeline};
use port::SMALL_FRAME_BYTES;
use port_cache::PortCacheConfig;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Maximum number of operations applied per poll iteration. It is large because answers that are found before
/// pending operations are outdated when they arrive.
const OPERATIONS_PER_TURN: usize = 1_024;

/// Result of a poll iteration of a search worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchTurn {
    /// Operations applied.
    pub applied: usize,
    /// Packets searched.
    pub searched: usize,
    /// Answers that other workers can take now.
    pub answered: usize,
    /// In virtual time: time of the next answer.
    pub answers_ns: Option<Nanos>,
}

/// A worker that answers the searches of the other workers' port caches.
pub struct SearchWorker {
    pipeline: Pipeline,
    /// Sends nothing. It has the type of other workers' transmit sides, so that the code of the pipeline
    /// exists once, and its stages are inlined.
    egress: WorkerEgress,
    clients: Vec<Client>,
    channel: Channel,
    state: Arc<SearchState>,
    delay: Option<Delay>,
}

impl SearchWorker {
    pub(crate) fn new(
        config: &PortCacheConfig,
        clients: Vec<Client>,
        channel: Channel,
        state: Arc<SearchState>,
    ) -> Self {
        Self {
            // Nothing reads the counters, so searches do not count.
            pipeline: Pipeline::new(Arc::default(), LaneLimits::NONE),
            egress: WorkerEgress::silent(),
            clients,
            channel,
            state,
            delay: Delay::of(config),
        }
    }

    /// Runs one poll iteration: applies operations, and answers some searches of each worker. Never blocks.
    pub fn turn(&mut self, now: Nanos) -> SearchTurn {
        if self.state.is_closed() {
            return SearchTurn::default();
        }
        let applied = self.apply();
        let searched = (0..self.clients.len()).map(|worker| self.serve(worker, now)).sum();
        let mut answered = if self.delay.is_some() { 0 } else { searched };
        while let Some(Due { worker, answer, .. }) = self.delay.as_mut().and_then(|delay| delay.next(now)) {
            self.clients[worker].answer(answer);
            answered += 1;
        }
        SearchTurn { applied, searched, answered, answers_ns: self.delay.as_ref().and_then(Delay::next_at) }
    }

    /// Answers up to a burst of searches of a worker. Returns their number.
    fn serve(&mut self, worker: usize, now: Nanos) -> usize {
        let version = RuleVersion(self.channel.applied.load(Ordering::Relaxed));
        let Self { pipeline, egress, clients, delay, state, .. } = self;
        let client = &mut clients[worker];
        let mut searched = 0;
        while searched < BURST && client.has_room() && delay.as_ref().is_none_or(|delay| delay.has_room(now))
        {
            let Some(mut frame) = egress.buffer(SMALL_FRAME_BYTES) else {
                debug_assert!(false, "the frame returns after each search");
                break;
            };
            let Some(ticket) = client.begin(&mut frame) else {
                egress.free(frame);
                break;
            };
            let found = pipeline.search(frame, now, egress);
            let answer = Answer { ticket, version, found };
            match delay {
                Some(delay) => delay.add(now, worker, answer),
                None => client.answer(answer),
            }
            client.end();
            searched += 1;
        }
        if delay.as_ref().is_some_and(|delay| !delay.has_room(now)) {
            state.pause();
        }
        searched
    }

    /// Applies some of the pending operations. Returns their number.
    pub fn apply(&mut self) -> usize {
        let mut applied = 0;
        // An operation is taken only if the ring for retired updates has space, because the search worker
        // frees no memory either.
        while applied < OPERATIONS_PER_TURN && self.channel.retired.slots() > 0 {
            let Ok(mut request) = self.channel.requests.pop() else { break };
            self.pipeline.apply(&mut request.updates, &mut ());
            self.channel.applied.store(request.updates.version.0, Ordering::Release);
            drop(self.channel.retired.push(request));
            applied += 1;
        }
        applied
    }

    /// Returns a guard for the thread that calls [`Self::turn`]. When the guard is dropped, the other workers
    /// look up packets in their own tables from then on.
    #[must_use]
    pub fn end(&self) -> SearchEnd {
        SearchEnd(Arc::clone(&self.state))
    }

    /// Returns whether the search worker has fallen behind so far that it gets no updates any longer. Its
    /// thread should end.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.state.is_closed()
    }

    /// Returns the flag that shows other threads that this worker sleeps.
    #[must_use]
    pub fn sleeping(&self) -> Arc<SleepFlag> {
        Arc::clone(&self.channel.sleeping)
    }
}

impl Sleeper for SearchWorker {
    fn apply(&mut self) -> usize {
        Self::apply(self)
    }

    fn has_operations(&self) -> bool {
        !self.channel.requests.is_empty()
    }

    fn has_pending(&self) -> bool {
        self.has_operations() || self.clients.iter().any(Client::has_work)
    }

    fn has_output(&self) -> bool {
        false
    }
}
