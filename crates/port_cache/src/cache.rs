// SPDX-License-Identifier: Apache-2.0
//! The port cache of one worker: queues of packets without a path record, and the searcher that they wait
//! for.

use crate::active::ActiveRecords;
use crate::counters::MissCounters;
use crate::limits::{LimitError, MissLimits};
use crate::quench::QuenchConfig;
use crate::queues::{Due, FlowKey, MissQueues, OfferResult, Ticket};
use crate::requests::Requests;
use crate::searcher::{Searcher, SearcherFaults};
use flow::{Nanos, PortNo};
use std::sync::Arc;

/// Which packets wait while a flow is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissMode {
    /// Packets of the flow wait. Packets of other flows go on.
    #[default]
    NonBlocking,
    /// No further packet is received from the port. Packets are received one at a time, so that none of them
    /// is received behind a packet that waits.
    Blocking,
}

/// What answers searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SearcherKind {
    /// A part of the port cache that answers after the time for a search. If this time is 0, it stands for
    /// the worker's own tables.
    #[default]
    Own,
    /// A search worker on another core, which has tables of its own. Without it, the worker's own tables are
    /// used.
    Worker,
}

/// Mode, limits and searcher of a port cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCacheConfig {
    /// Which packets wait while a flow is searched.
    pub mode: MissMode,
    /// Budgets and times of the queues.
    pub limits: MissLimits,
    /// What answers searches.
    pub searcher: SearcherKind,
    /// Time in nanoseconds that the searcher takes for a search, at most [`MissLimits::TIME_MAX`]. With 0 the
    /// own searcher answers at once, and no packet waits longer than a burst. In virtual time, a search
    /// worker takes this time in addition.
    pub service_ns: Nanos,
    /// Maximum number of unserved searches, for experiments. While there are as many, packets that do not
    /// wait because their port has too many pending flows are dropped. If `None`, they are never dropped.
    pub unserved_max: Option<u64>,
    /// Faults of the searcher, for tests.
    pub faults: Option<SearcherFaults>,
    /// Quenching of packet-ins.
    pub quench: Option<QuenchConfig>,
}

impl PortCacheConfig {
    /// Checks the ranges of all limits and times.
    ///
    /// # Errors
    /// Returns the first value that is out of its range.
    pub fn check(&self) -> Result<(), LimitError> {
        self.limits.check()?;
        LimitError::check("service_ns", self.service_ns.0, 0, MissLimits::TIME_MAX.0)?;
        let delay = self.faults.map_or(0, |faults| faults.delay_ns.0);
        LimitError::check("delay_ns", delay, 0, MissLimits::TIME_MAX.0)
    }

    /// Returns whether the searcher answers at once. Then packets wait longer than a burst only for the
    /// controller.
    #[must_use]
    pub fn answers_at_once(&self) -> bool {
        self.searcher == SearcherKind::Own && self.service_ns == Nanos(0) && self.faults.is_none()
    }

    /// Returns whether packets may wait longer than a burst.
    #[must_use]
    pub fn waits(&self) -> bool {
        !self.answers_at_once() || self.quench.is_some()
    }
}

/// Port cache of one worker. `K` is the type of keys, and `P` the type of packets.
#[derive(Debug)]
pub struct PortCache<K, P> {
    mode: MissMode,
    unserved_max: Option<u64>,
    pub(crate) queues: MissQueues<K, P>,
    searcher: Searcher,
    /// Searches for a search worker, if there is one. Then `searcher` answers nothing.
    pub(crate) requests: Option<Requests>,
    active: ActiveRecords,
    limits: MissLimits,
    /// Numbers of the worker's ports, in ascending order.
    pub(crate) ports: Box<[PortNo]>,
    /// Whether packets may wait longer than a burst.
    waits: bool,
    pub(crate) quench: Option<QuenchConfig>,
    /// Number of the worker.
    pub(crate) worker: u16,
    /// Time of the current or the last poll iteration.
    pub(crate) now: Nanos,
    /// Number of packets in a burst.
    burst: usize,
    /// Packets of the last burst that must be dropped.
    pub(crate) full: Vec<P>,
}

impl<K: PartialEq + Copy + Default, P> PortCache<K, P> {
    /// Creates an empty port cache for these ports. `burst` is the maximum number of packets in a burst, and
    /// `records` is the maximum number of path records of the worker.
    #[must_use]
    pub fn new(
        config: &PortCacheConfig,
        mut ports: Vec<PortNo>,
        burst: usize,
        records: usize,
        counters: Arc<MissCounters>,
    ) -> Self {
        ports.sort_unstable();
        ports.dedup();
        let packets = ports.len() * config.limits.packets();
        // There is a search for each waiting packet, and as many searches for packets that do not wait. Each
        // search is repeated, and may be answered twice.
        // An experiment's limit of unserved searches must be reached before packets take no time.
        let unserved = config.unserved_max.map_or(0, |most| usize::try_from(most).unwrap_or(usize::MAX / 2));
        let searches = (2 * packets + burst).max(unserved.saturating_mul(2));
        let answers = 2 * (usize::from(config.limits.retries) + 1) * packets + burst;
        let (searcher, requests) = match config.searcher {
            SearcherKind::Own => (Searcher::new(config.service_ns, searches, answers, config.faults), None),
            SearcherKind::Worker => {
                let requests = Requests::new(ports.len(), burst, config.limits.packets() + burst);
                (Searcher::new(Nanos(0), 0, 0, None), Some(requests))
            }
        };
        Self {
            mode: config.mode,
            unserved_max: config.unserved_max,
            queues: MissQueues::new(config.limits, ports.len(), burst, counters)
                .with_immediate_answers(config.answers_at_once())
                .with_questions(config.quench.is_some()),
            searcher,
            requests,
            active: ActiveRecords::new(ports.len(), if config.limits.records > 0 { records } else { 0 }),
            limits: config.limits,
            ports: ports.into_boxed_slice(),
            waits: config.waits(),
            quench: config.quench,
            worker: 0,
            now: Nanos(0),
            burst,
            full: Vec::with_capacity(burst),
        }
    }

    /// Sets the time of the current poll iteration.
    pub fn begin(&mut self, now: Nanos) {
        self.now = now;
    }

    /// Returns the maximum number of packets that may be received from a port now.
    #[must_use]
    pub fn accepts(&self, number: PortNo) -> usize {
        match (self.mode, self.port(number)) {
            (MissMode::Blocking, Some(port)) => usize::from(self.queues.usage(port).0 == 0),
            _ => self.burst,
        }
    }

    /// Returns the number of waiting packets.
    #[must_use]
    #[inline]
    pub fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    /// Returns whether packets can be released.
    #[must_use]
    #[inline]
    pub fn releases(&self) -> bool {
        self.queues.releases()
    }

    /// Returns the time of the next answer or timeout, or `None` if no packet waits.
    #[must_use]
    pub fn due_at(&self) -> Option<Nanos> {
        let next = self.searcher.answers_at().into_iter().chain(self.queues.next_timeout()).min();
        next.filter(|_| self.waiting() > 0)
    }

    pub(crate) fn port(&self, number: PortNo) -> Option<u16> {
        self.ports.binary_search(&number).ok().map(|at| at as u16)
    }

    /// Counts packets that arrived at a port and have a path record.
    pub fn count_hits(&self, in_port: PortNo, packets: usize) {
        if let Some(port) = self.port(in_port).filter(|_| packets > 0) {
            self.queues.counters().hits(port, packets as u64);
        }
    }

    /// Offers a packet of `bytes` bytes without a path record, which has arrived at `in_port`. Returns the
    /// packet if it is to be processed now. `copy` moves a packet into memory in which it can wait, or
    /// returns it as the error if there is none.
    pub fn offer(
        &mut self,
        in_port: PortNo,
        (key, hash): (&K, u64),
        packet: P,
        bytes: u32,
        copy: impl FnOnce(P) -> Result<P, P>,
    ) -> Option<P> {
        let Some(port) = self.port(in_port) else { return Some(packet) };
        let flow = FlowKey { port, key, hash };
        if let Some(requests) = &self.requests {
            self.queues.set_may_search(requests.has_room(port));
        }
        let waits = self.waits;
        let hold = |packet| if waits { copy(packet) } else { Ok(packet) };
        match self.queues.offer(flow, packet, bytes, self.now, hold) {
            // Followers that are released in this poll iteration need no space in the queue.
            OfferResult::New(ticket)
                if self.quench.is_some() && self.requests.is_none() && self.searcher.is_immediate() =>
            {
                self.queues.answer(ticket);
                None
            }
            OfferResult::New(ticket) => {
                self.search(port, ticket);
                None
            }
            OfferResult::Merged | OfferResult::Forced => None,
            OfferResult::Passed(packet) => {
                self.occupy(port);
                Some(packet)
            }
            OfferResult::Uncached(packet) => {
                if self.unserved_max.is_some_and(|most| self.searcher.unserved(self.now) >= most) {
                    self.full.push(packet);
                    return None;
                }
                self.occupy(port);
                Some(packet)
            }
            OfferResult::Full(packet) => {
                self.full.push(packet);
                None
            }
        }
    }

    /// Asks for a search. If the searcher has too many, this one is repeated at its timeout.
    fn search(&mut self, port: u16, ticket: Ticket) {
        let Self { queues, searcher, requests, now, .. } = self;
        if let Some(requests) = requests {
            return requests.add(queues, ticket);
        }
        if !searcher.ask(ticket, *now, |ticket| queues.is_pending(ticket)) {
            queues.counters().unserved(port, 1);
        }
    }

    /// Notes that a packet is looked up without a search.
    fn occupy(&mut self, port: u16) {
        if !self.searcher.occupy(self.now) {
            self.queues.counters().unserved(port, 1);
        }
    }

    /// Returns whether packets of the last burst must be dropped because there was no space for them.
    #[must_use]
    #[inline]
    pub fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Takes a packet of the last burst that must be dropped because there was no space for it. Call it until
    /// it returns `None`.
    pub fn take_full(&mut self) -> Option<P> {
        self.full.pop()
    }

    /// Takes the answers that have come by now. Returns a packet to drop because its search was given up, if
    /// there is one. Call it until it returns `None`. All answers of the controller that came until time
    /// `answered` have been taken. `is_passed` returns whether all packets before a fence have left the
    /// backlog.
    pub fn poll(&mut self, answered: Nanos, is_passed: impl Fn(u32) -> bool) -> Option<P> {
        while let Some(ticket) = self.searcher.next_answer(self.now) {
            self.queues.answer(ticket);
        }
        loop {
            match self.queues.next_due(self.now, answered, &is_passed)? {
                Due::Ask(ticket) => self.search(self.queues.port_of(ticket), ticket),
                Due::Drop(packet) => return Some(packet),
            }
        }
    }

    /// Returns whether the next packets to release are the first ones of their flows.
    #[must_use]
    pub fn releases_firsts(&self) -> bool {
        self.queues.releases_firsts()
    }

    /// Returns the port of the next packets to release, or `None` if none can be released.
    #[must_use]
    pub fn next_port(&self) -> Option<PortNo> {
        self.queues.next_port().and_then(|port| self.ports.get(usize::from(port)).copied())
    }

    /// Returns whether packets may wait longer than a burst.
    #[must_use]
    #[inline]
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Releases up to a burst of packets of one port, and calls `take` with each of them. If packets without
    /// a record join a backlog, `backlog` is the position of its end. Returns the number of packets. Call
    /// [`Self::end_release`] when they have been processed.
    pub fn release(&mut self, backlog: Option<u32>, take: impl FnMut(P)) -> usize {
        // With a searcher that answers at once, the frames belong to the receive pool and do not wait for a
        // backlog.
        self.queues.release(self.burst, backlog.filter(|_| self.waits), take)
    }

    /// Notes that a packet with this key, which was released, has joined the backlog.
    pub fn await_record(&mut self, in_port: PortNo, key: &K, hash: u64) {
        if let Some(port) = self.port(in_port) {
            self.queues.await_record(FlowKey { port, key, hash });
        }
    }

    /// Notes that the last `packets` released packets have been processed. `waits` is that of
    /// [`Self::settle`].
    pub fn end_release(&mut self, packets: usize, waits: impl Fn(u32) -> bool) {
        self.queues.end_release(packets);
        self.queues.settle(waits);
    }

    /// Makes the flows ready whose first packets have left the backlog. `waits` returns whether a packet that
    /// joined the backlog at a position may still wait in it.
    #[inline]
    pub fn settle(&mut self, waits: impl Fn(u32) -> bool) {
        self.queues.settle(waits);
    }

    /// Returns whether flows are pending or being released.
    #[must_use]
    #[inline]
    pub fn has_flows(&self) -> bool {
        self.queues.waiting() > 0 || self.queues.is_learning()
    }

    /// Notes that a packet with this key is processed now although it has no record, so that a record may be
    /// made. Packets of its flow that wait are released before later ones can use the record.
    pub fn overtake(&mut self, in_port: PortNo, key: &K, hash: u64) {
        if let Some(port) = self.port(in_port) {
            self.queues.answer_flow(FlowKey { port, key, hash });
        }
    }

    /// Returns whether packets with this key wait.
    #[must_use]
    pub fn holds(&self, in_port: PortNo, key: &K, hash: u64) -> bool {
        self.port(in_port).is_some_and(|port| self.queues.holds(FlowKey { port, key, hash }))
    }

    /// Returns whether the number of path records per port is limited.
    #[must_use]
    #[inline]
    pub fn limits_records(&self) -> bool {
        self.limits.records > 0
    }

    /// Returns the place of a record to remove, so that a port has at most its number of records and pending
    /// flows, with `more` further records. Returns `None` if nothing is to be removed. `used` returns the
    /// time of the last hit of the record at a place, or `None` if the record must stay.
    pub fn take_victim(
        &mut self,
        in_port: PortNo,
        more: u32,
        used: impl Fn(u32) -> Option<Nanos>,
    ) -> Option<u32> {
        let port = self.port(in_port).filter(|_| self.limits_records())?;
        if !self.is_exceeded(port, more) {
            return None;
        }
        let victim = self.active.take_victim(port, self.limits.victim, used);
        victim.inspect(|_| self.queues.counters().evicted(port, 1))
    }

    /// Returns whether a port may have `more` further records.
    #[must_use]
    pub fn has_room(&self, in_port: PortNo, more: u32) -> bool {
        !self.limits_records() || self.port(in_port).is_none_or(|port| !self.is_exceeded(port, more))
    }

    fn is_exceeded(&self, port: u16, more: u32) -> bool {
        self.active.count(port) + self.queues.usage(port).0 + more > self.limits.records.into()
    }

    /// Notes that a record has been made at a place, where no other record is any longer.
    pub fn add_record(&mut self, in_port: PortNo, place: u32) {
        if let Some(port) = self.port(in_port).filter(|_| self.limits_records()) {
            self.active.add(port, place, self.now);
        }
    }

    /// Notes that all records have been removed.
    pub fn forget_records(&mut self) {
        if self.limits_records() {
            self.active.clear();
        }
    }

    /// Returns the number of records of a port, if it is limited.
    #[must_use]
    pub fn records(&self, in_port: PortNo) -> u32 {
        self.port(in_port).map_or(0, |port| self.active.count(port))
    }

    /// Notes that packets with this key cannot have a record.
    pub fn set_negative(&mut self, in_port: PortNo, key: &K, hash: u64) {
        if let Some(port) = self.port(in_port) {
            self.queues.set_negative(FlowKey { port, key, hash }, self.now);
        }
    }

    /// Releases all waiting packets.
    pub fn answer_all(&mut self) {
        self.queues.answer_all();
    }

    /// Gives all waiting packets new keys. `key_of` returns the key and the hash of a packet.
    pub fn rekey(&mut self, key_of: impl FnMut(&P) -> (K, u64)) {
        let Self { queues, searcher, requests, now, .. } = self;
        // The other answers leave room for all new searches.
        searcher.retain(|ticket| queues.is_pending(ticket));
        requests.iter_mut().for_each(|requests| requests.retain(|ticket| queues.is_pending(ticket)));
        queues.rekey(*now, key_of, |port, ticket: Ticket| match requests {
            Some(requests) => drop(requests.push(port, ticket)),
            None => drop(searcher.ask(ticket, *now, |_| true)),
        });
    }

    /// Takes any waiting packet, because the worker ends.
    pub fn take_any(&mut self) -> Option<P> {
        self.queues.take_any()
    }
}
