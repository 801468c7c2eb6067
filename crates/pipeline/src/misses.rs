// SPDX-License-Identifier: Apache-2.0
//! The port cache of one worker: frames without a path record, which wait until their flow has been searched.
//!
//! The frames wait in crate [`port_cache`]. This module gives it keys and frames of the express path.

use crate::lanes::Queued;
use crate::slab::BURST;
use arrayvec::ArrayVec;
use flow::{Nanos, PortNo};
use frame::Frame;
use keys::ExpressKey;
use port_cache::{
    Due, FlowKey, MissCounters, MissLimits, MissQueues, OfferResult, Searcher, SearcherFaults, Ticket,
};
use std::sync::Arc;

/// Limits and searcher of a port cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCacheConfig {
    /// Budgets and times of the queues.
    pub limits: MissLimits,
    /// Time in nanoseconds that the searcher takes for a search. With 0 it answers at once. Then no packet
    /// waits longer than a burst.
    pub service_ns: Nanos,
    /// SearcherFaults of the searcher, for tests.
    pub faults: Option<SearcherFaults>,
}

impl PortCacheConfig {
    /// Returns whether packets may wait longer than a burst.
    #[must_use]
    pub fn waits(&self) -> bool {
        self.service_ns > Nanos(0) || self.faults.is_some()
    }
}

/// Port cache of one worker.
#[derive(Debug)]
pub struct PortCache {
    queues: MissQueues<ExpressKey, Frame>,
    searcher: Searcher,
    /// Numbers of the worker's ports, in ascending order.
    ports: Box<[PortNo]>,
    /// Whether packets may wait longer than a burst.
    waits: bool,
    /// Time of the current or the last poll iteration.
    pub(crate) now: Nanos,
    /// Frames of the last burst that must be dropped.
    pub(crate) full: ArrayVec<Frame, BURST>,
    /// Temporary list for the frames of a burst that is released.
    pub(crate) burst: Vec<Frame>,
}

impl PortCache {
    /// Creates an empty port cache for these ports.
    #[must_use]
    pub fn new(config: &PortCacheConfig, mut ports: Vec<PortNo>, counters: Arc<MissCounters>) -> Self {
        ports.sort_unstable();
        ports.dedup();
        let packets = ports.len() * config.limits.packets();
        let answers = 2 * (usize::from(config.limits.retries) + 1) * packets;
        Self {
            queues: MissQueues::new(config.limits, ports.len(), BURST, counters),
            searcher: Searcher::new(config.service_ns, answers + BURST, config.faults),
            ports: ports.into_boxed_slice(),
            waits: config.waits(),
            now: Nanos(0),
            full: ArrayVec::new(),
            burst: Vec::with_capacity(BURST),
        }
    }

    /// Returns the number of waiting packets.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    /// Returns which packets wait, given that `queued` wait in the pipeline. Packets of the port cache count
    /// as packets of the backlog.
    #[inline]
    pub(crate) fn queued(&self, queued: Queued) -> Queued {
        if queued == Queued::Nothing && self.waiting() > 0 { Queued::Backlog } else { queued }
    }

    /// Returns whether packets can be released.
    #[inline]
    pub(crate) fn releases(&self) -> bool {
        self.queues.releases()
    }

    /// Returns the time of the next answer or timeout, or `None` if no packet waits.
    pub(crate) fn due_at(&self) -> Option<Nanos> {
        let next = self.searcher.answers_at().into_iter().chain(self.queues.next_timeout()).min();
        next.filter(|_| self.waiting() > 0)
    }

    fn port(&self, number: PortNo) -> Option<u16> {
        self.ports.binary_search(&number).ok().map(|at| at as u16)
    }

    /// Offers a frame without a path record. Returns the frame if it is to be processed now. `copy` moves a
    /// frame into memory in which it can wait, or returns it as the error if there is none.
    pub(crate) fn offer(
        &mut self,
        frame: Frame,
        (key, hash): (&ExpressKey, u64),
        copy: impl FnOnce(Frame) -> Result<Frame, Frame>,
    ) -> Option<Frame> {
        let Some(port) = self.port(PortNo(frame.meta.in_port)) else { return Some(frame) };
        let bytes = frame.len() as u32;
        let waits = self.waits;
        let hold = |frame| if waits { copy(frame) } else { Ok(frame) };
        match self.queues.offer(FlowKey { port, key, hash }, frame, bytes, self.now, hold) {
            OfferResult::New(ticket) => {
                self.searcher.ask(ticket, self.now);
                None
            }
            OfferResult::Merged | OfferResult::Forced => None,
            OfferResult::Passed(frame) | OfferResult::Uncached(frame) => Some(frame),
            OfferResult::Full(frame) => {
                self.full.push(frame);
                None
            }
        }
    }

    /// Takes the answers that have come by now. Returns a frame to drop because its search was given up, if
    /// there is one. Call it until it returns `None`.
    pub(crate) fn poll(&mut self) -> Option<Frame> {
        while let Some(ticket) = self.searcher.next_answer(self.now) {
            self.queues.answer(ticket);
        }
        loop {
            match self.queues.next_due(self.now)? {
                Due::Ask(ticket) => self.searcher.ask(ticket, self.now),
                Due::Drop(frame) => return Some(frame),
            }
        }
    }

    /// Moves up to a burst of frames of one port that are released into [`Self::burst`].
    pub(crate) fn release(&mut self) {
        let Self { queues, burst, .. } = self;
        queues.release(BURST, |frame| burst.push(frame));
    }

    /// Notes that a packet with this key is processed now although it has no record, so that a record may be
    /// made. Packets of its flow that wait are released before later ones can use the record.
    pub(crate) fn overtake(&mut self, in_port: PortNo, key: &ExpressKey, hash: u64) {
        if let Some(port) = self.port(in_port) {
            self.queues.answer_flow(FlowKey { port, key, hash });
        }
    }

    /// Notes that packets with this key cannot have a record.
    pub(crate) fn set_negative(&mut self, in_port: PortNo, key: &ExpressKey, hash: u64) {
        if let Some(port) = self.port(in_port) {
            self.queues.set_negative(FlowKey { port, key, hash }, self.now);
        }
    }

    /// Releases all waiting packets.
    pub(crate) fn answer_all(&mut self) {
        self.queues.answer_all();
    }

    /// Gives all waiting packets new keys.
    pub(crate) fn rekey(&mut self, key_of: impl FnMut(&Frame) -> (ExpressKey, u64)) {
        let Self { queues, searcher, now, .. } = self;
        queues.rekey(*now, key_of, |ticket: Ticket| searcher.ask(ticket, *now));
    }

    /// Takes any waiting frame, because the worker ends.
    pub(crate) fn take_any(&mut self) -> Option<Frame> {
        self.queues.take_any()
    }
}
