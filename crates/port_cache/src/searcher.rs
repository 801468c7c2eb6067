// SPDX-License-Identifier: Apache-2.0
//! A searcher that answers after a given service time, one search after the other. With a service time of 0
//! it answers at once, and stands for a lookup in the worker's own tables. Tests and experiments in virtual
//! time use other service times, and faults.

use crate::queues::Ticket;
use fastrand::Rng;
use flow::Nanos;
use std::collections::VecDeque;

/// Faults of a searcher, for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearcherFaults {
    /// Seed of the random faults.
    pub seed: u64,
    /// Percentage of searches without an answer.
    pub lost: u8,
    /// Percentage of answers that are given twice.
    pub doubled: u8,
    /// Maximum additional delay of each answer in nanoseconds. Answers may overtake each other.
    pub delay_ns: Nanos,
}

/// A searcher with a queue of searches.
#[derive(Debug)]
pub struct Searcher {
    service_ns: Nanos,
    /// Time from which the next search can be served.
    free_from: Nanos,
    /// Tickets to answer, each with the time of its answer, in order of these times.
    answers: VecDeque<(Nanos, Ticket)>,
    /// Maximum number of answers that have not arrived. Further searches get no answer.
    answers_max: usize,
    /// Maximum number of searches that are not served yet. Half of them may be packets that are looked up
    /// without a search.
    searches_max: u64,
    faults: Option<(SearcherFaults, Rng)>,
}

impl Searcher {
    /// Creates a searcher that serves a search in `service_ns`. It has space for `searches` searches, and for
    /// `answers` answers.
    #[must_use]
    pub fn new(service_ns: Nanos, searches: usize, answers: usize, faults: Option<SearcherFaults>) -> Self {
        Self {
            service_ns,
            free_from: Nanos(0),
            answers: VecDeque::with_capacity(answers),
            answers_max: answers,
            searches_max: searches as u64,
            faults: faults.map(|faults| (faults, Rng::with_seed(faults.seed))),
        }
    }

    /// Returns whether every search is answered at the time at which it is asked.
    #[must_use]
    pub fn is_immediate(&self) -> bool {
        self.service_ns == Nanos(0) && self.faults.is_none()
    }

    /// Asks for the search of a flow. Returns false if there are too many searches. This one then gets no
    /// answer. `is_pending` returns whether a search still waits for its answer. Other answers are removed
    /// if they use up the space.
    pub fn ask(&mut self, ticket: Ticket, now: Nanos, is_pending: impl Fn(Ticket) -> bool) -> bool {
        if self.answers.len() + 2 > self.answers_max {
            self.retain(is_pending);
        }
        if !self.serve(now, self.searches_max) || self.answers.len() + 2 > self.answers_max {
            return false;
        }
        let ends = self.free_from;
        let Some((faults, rng)) = &mut self.faults else {
            self.add(ends, ticket);
            return true;
        };
        let faults = *faults;
        let mut percent = |share: u8| rng.u8(0..100) < share;
        let (is_lost, is_doubled) = (percent(faults.lost), percent(faults.doubled));
        let mut delay = || Nanos(rng.u64(0..=faults.delay_ns.0));
        let delays = [delay(), delay()];
        let answers = if is_lost { 0 } else { 1 + usize::from(is_doubled) };
        delays.into_iter().take(answers).for_each(|delay| self.add(ends.saturating_add(delay), ticket));
        true
    }

    /// Notes that a packet is looked up without a search. It takes the searcher as long as a search. Returns
    /// false if there are too many searches. The packet then takes no time of the searcher.
    pub fn occupy(&mut self, now: Nanos) -> bool {
        self.serve(now, self.searches_max / 2)
    }

    /// Appends a search to the searcher's queue, if it contains fewer than `most` searches.
    fn serve(&mut self, now: Nanos, most: u64) -> bool {
        let has_room = self.service_ns == Nanos(0) || self.unserved(now) < most;
        if has_room {
            self.free_from = now.max(self.free_from).saturating_add(self.service_ns);
        }
        has_room
    }

    /// Removes the answers to searches for which `is_pending` returns false.
    pub fn retain(&mut self, is_pending: impl Fn(Ticket) -> bool) {
        self.answers.retain(|(_, ticket)| is_pending(*ticket));
    }

    /// Returns the number of searches that have not been served yet.
    #[must_use]
    pub fn unserved(&self, now: Nanos) -> u64 {
        self.free_from.saturating_sub(now).0.div_ceil(self.service_ns.0.max(1))
    }

    /// Returns the next answer that has been given by now.
    #[inline]
    pub fn next_answer(&mut self, now: Nanos) -> Option<Ticket> {
        self.answers.front().filter(|(at, _)| *at <= now)?;
        self.answers.pop_front().map(|(_, ticket)| ticket)
    }

    /// Returns the time of the next answer, or `None` if no search is asked for.
    #[must_use]
    pub fn answers_at(&self) -> Option<Nanos> {
        self.answers.front().map(|(at, _)| *at)
    }

    fn add(&mut self, at: Nanos, ticket: Ticket) {
        let place = self.answers.partition_point(|(other, _)| *other <= at);
        self.answers.insert(place, (at, ticket));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::{FlowKey, MissQueues, OfferResult};
    use crate::{MissCounters, MissLimits};
    use std::sync::Arc;

    fn tickets(count: u64) -> Vec<Ticket> {
        let counters = Arc::<MissCounters>::default();
        let mut queues: MissQueues<u64, u64> = MissQueues::new(MissLimits::USUAL, 1, 0, counters);
        let ticket =
            |key: u64| match queues.offer(FlowKey { port: 0, key: &key, hash: key }, key, 60, Nanos(0), Ok) {
                OfferResult::New(ticket) => ticket,
                other => panic!("{other:?}"),
            };
        (0..count).map(ticket).collect()
    }

    #[test]
    fn searches_are_served_one_after_the_other() {
        let tickets = tickets(3);
        let mut searcher = Searcher::new(Nanos(10), 8, 6, None);
        searcher.ask(tickets[0], Nanos(100), |_| true);
        searcher.ask(tickets[1], Nanos(101), |_| true);
        assert_eq!((searcher.next_answer(Nanos(109)), searcher.answers_at()), (None, Some(Nanos(110))));
        assert_eq!(searcher.next_answer(Nanos(110)), Some(tickets[0]));
        assert_eq!(searcher.next_answer(Nanos(119)), None, "the second search began at 110");
        searcher.occupy(Nanos(300));
        assert_eq!([300, 301, 309, 310].map(|now| searcher.unserved(Nanos(now))), [1, 1, 1, 0]);
        searcher.ask(tickets[2], Nanos(301), |_| true);
        assert_eq!(searcher.answers_at(), Some(Nanos(120)));
        let answers: Vec<_> = std::iter::from_fn(|| searcher.next_answer(Nanos(320))).collect();
        assert_eq!((answers, searcher.answers_at()), (tickets[1..].to_vec(), None));
        assert!(!searcher.is_immediate() && Searcher::new(Nanos(0), 1, 1, None).is_immediate());
    }

    #[test]
    fn the_queue_of_searches_is_bounded_and_packets_without_a_search_use_half_of_it() {
        let tickets = tickets(8);
        let mut searcher = Searcher::new(Nanos(10), 8, 100, None);
        assert_eq!((0..100).filter(|_| searcher.occupy(Nanos(0))).count(), 4);
        let asked = tickets.iter().filter(|ticket| searcher.ask(**ticket, Nanos(0), |_| true)).count();
        assert_eq!((asked, searcher.unserved(Nanos(0))), (4, 8));
        assert_eq!(std::iter::from_fn(|| searcher.next_answer(Nanos(80))).count(), 4);
        assert!(searcher.occupy(Nanos(80)) && searcher.ask(tickets[7], Nanos(80), |_| true));
        // The end of time is not exceeded.
        let mut slow = Searcher::new(Nanos(u64::MAX / 2), 8, 100, None);
        assert!(tickets.iter().take(3).all(|ticket| slow.ask(*ticket, Nanos(9), |_| true)));
        assert_eq!(std::iter::from_fn(|| slow.next_answer(Nanos::MAX)).count(), 3);
    }

    #[test]
    fn answers_to_searches_that_are_over_make_room() {
        let tickets = tickets(9);
        let mut searcher = Searcher::new(Nanos(1), 1_000, 8, None);
        assert!(tickets[..7].iter().all(|ticket| searcher.ask(*ticket, Nanos(0), |_| true)));
        assert!(!searcher.ask(tickets[7], Nanos(0), |_| true), "all of them wait for their answers");
        assert!(searcher.ask(tickets[8], Nanos(0), |ticket| ticket == tickets[3]));
        let answers: Vec<_> = std::iter::from_fn(|| searcher.next_answer(Nanos(1_000))).collect();
        assert_eq!(answers, [tickets[3], tickets[8]]);
    }

    #[test]
    fn faults_occur_as_often_as_asked_for() {
        let all = tickets(100);
        let answered = |faults| {
            let mut searcher = Searcher::new(Nanos(1), 1_000, 1_000, Some(faults));
            all.iter().for_each(|ticket| assert!(searcher.ask(*ticket, Nanos(0), |_| true)));
            std::iter::from_fn(|| searcher.next_answer(Nanos(10_000))).collect::<Vec<_>>()
        };
        let faults = SearcherFaults { seed: 3, lost: 0, doubled: 0, delay_ns: Nanos(0) };
        assert_eq!(answered(faults), all);
        assert_eq!(answered(SearcherFaults { lost: 100, ..faults }), []);
        assert_eq!(answered(SearcherFaults { doubled: 100, ..faults }).len(), 200);
        let some = answered(SearcherFaults { lost: 30, ..faults }).len();
        assert!((55..85).contains(&some), "{some}");
        let delayed = answered(SearcherFaults { delay_ns: Nanos(50), ..faults });
        assert!(delayed.len() == 100 && delayed != all, "answers overtake each other");
    }
}
