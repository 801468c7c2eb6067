// SPDX-License-Identifier: Apache-2.0
//! Time that searches take, and faults of the search worker. Both are for virtual time only.

use super::Answer;
use fastrand::Rng;
use flow::Nanos;
use port_cache::{PortCacheConfig, SearcherFaults};
use std::collections::VecDeque;

/// Maximum number of searches that are served ahead of time. Further ones stay in their ring.
const AHEAD: u64 = 32;

/// Maximum number of answers that have not arrived.
const ANSWERS: usize = 4_096;

/// An answer for a worker.
pub(super) struct Due {
    pub at: Nanos,
    pub worker: usize,
    pub answer: Answer,
}

/// Answers that arrive later.
pub(super) struct Delay {
    service_ns: Nanos,
    /// Time from which the next search can be served.
    free_from: Nanos,
    /// In order of arrival.
    due: VecDeque<Due>,
    faults: Option<(SearcherFaults, Rng)>,
}

impl Delay {
    /// Returns the delay of this configuration, or `None` if answers arrive at once.
    pub fn of(config: &PortCacheConfig) -> Option<Self> {
        let PortCacheConfig { service_ns, faults, .. } = *config;
        (service_ns > Nanos(0) || faults.is_some()).then(|| Self {
            service_ns,
            free_from: Nanos(0),
            due: VecDeque::with_capacity(ANSWERS),
            faults: faults.map(|faults| (faults, Rng::with_seed(faults.seed))),
        })
    }

    /// Returns whether another search can be served.
    pub fn has_room(&self, now: Nanos) -> bool {
        let ahead = self.free_from.saturating_sub(now).0;
        ahead < AHEAD * self.service_ns.0.max(1) && self.due.len() + 2 <= ANSWERS
    }

    /// Adds an answer to a search of `worker` that was begun now.
    pub fn add(&mut self, now: Nanos, worker: usize, answer: Answer) {
        self.free_from = self.free_from.max(now).saturating_add(self.service_ns);
        let ends = self.free_from;
        let Some((faults, rng)) = &mut self.faults else {
            return self.insert(Due { at: ends, worker, answer });
        };
        let faults = *faults;
        let (is_lost, is_doubled) = (rng.u8(0..100) < faults.lost, rng.u8(0..100) < faults.doubled);
        let delays = [0; 2].map(|_| Nanos(rng.u64(0..=faults.delay_ns.0)));
        let answers = if is_lost { 0 } else { 1 + usize::from(is_doubled) };
        for delay in delays.into_iter().take(answers) {
            self.insert(Due { at: ends.saturating_add(delay), worker, answer });
        }
    }

    fn insert(&mut self, due: Due) {
        let place = self.due.partition_point(|other| other.at <= due.at);
        self.due.insert(place, due);
    }

    /// Returns the next answer that has arrived by now.
    pub fn next(&mut self, now: Nanos) -> Option<Due> {
        self.due.front().filter(|due| due.at <= now)?;
        self.due.pop_front()
    }

    /// Returns the time of the next answer.
    pub fn next_at(&self) -> Option<Nanos> {
        self.due.front().map(|due| due.at)
    }
}
