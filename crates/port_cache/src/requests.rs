// SPDX-License-Identifier: Apache-2.0
//! Searches for a search worker: a searcher on another core. The caller sends them after each burst.
//!
//! While the search worker does not answer, searches end at once. Their packets are then looked up in the
//! worker's own tables.

use crate::cache::PortCache;
use crate::queues::{MissQueues, Ticket};
use flow::PortNo;
use std::collections::VecDeque;

/// What happened to a search that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendResult {
    /// It was sent.
    Sent,
    /// There is no space for it now.
    Full,
    /// The packet is too long to be sent.
    TooLong,
}

/// Searches that are not sent yet.
#[derive(Debug)]
pub(crate) struct Requests {
    /// Searches of each port. They are sent in turn, so that no port takes all space for searches.
    ports: Box<[VecDeque<Ticket>]>,
    /// Index of the port whose search is sent next.
    next: usize,
    /// Maximum number of searches of each port that are begun before some are sent.
    burst: usize,
    /// Maximum number of searches of a port, because all waiting packets may get new keys.
    most: usize,
    /// Whether the search worker does not answer.
    is_down: bool,
}

impl Requests {
    /// Creates empty lists for `burst` new searches of each port at a time, and `most` searches of each port
    /// in total.
    pub fn new(ports: usize, burst: usize, most: usize) -> Self {
        let ports = (0..ports).map(|_| VecDeque::with_capacity(most)).collect();
        Self { ports, next: 0, burst, most, is_down: false }
    }

    /// Returns whether a new search of a port can be begun.
    pub fn has_room(&self, port: u16) -> bool {
        self.ports.get(usize::from(port)).is_some_and(|tickets| tickets.len() < self.burst)
    }

    /// Appends a search. If there is no space, the search is repeated at its timeout.
    pub fn push(&mut self, port: u16, ticket: Ticket) -> bool {
        let tickets = self.ports.get_mut(usize::from(port)).filter(|tickets| tickets.len() < self.most);
        tickets.map(|tickets| tickets.push_back(ticket)).is_some()
    }

    /// Returns the search to send next.
    fn first(&mut self) -> Option<Ticket> {
        let ports = self.ports.len();
        let at = (0..ports).map(|step| (self.next + step) % ports).find(|at| !self.ports[*at].is_empty())?;
        self.next = at;
        self.ports[at].front().copied()
    }

    /// Removes the search that [`Self::first`] has returned.
    fn remove_first(&mut self) {
        self.ports[self.next].pop_front();
        self.next = (self.next + 1) % self.ports.len();
    }

    /// Removes the searches for which `is_pending` returns false.
    pub fn retain(&mut self, is_pending: impl Fn(Ticket) -> bool) {
        self.ports.iter_mut().for_each(|tickets| tickets.retain(|ticket| is_pending(*ticket)));
    }

    /// Begins a search, or ends it if the search worker does not answer.
    pub fn add<K: PartialEq + Copy + Default, P>(&mut self, queues: &mut MissQueues<K, P>, ticket: Ticket) {
        let port = queues.port_of(ticket);
        if self.is_down {
            queues.counters().fallen_back(port, 1);
            queues.answer(ticket);
        } else if !self.push(port, ticket) {
            queues.counters().unserved(port, 1);
        }
    }
}

impl<K: PartialEq + Copy + Default, P> PortCache<K, P> {
    /// Calls `send` with the first packet of each flow that is to be searched, until there is no space.
    pub fn send_searches(&mut self, mut send: impl FnMut(Ticket, &P) -> SendResult) {
        let Self { queues, requests: Some(requests), .. } = self else { return };
        while let Some(ticket) = requests.first() {
            // A search that ended before it was sent needs no answer.
            let result = queues.first_packet(ticket).map(|packet| send(ticket, packet));
            let port = queues.port_of(ticket);
            match result {
                Some(SendResult::Full) => return,
                Some(SendResult::Sent) => queues.counters().sent(port, 1),
                Some(SendResult::TooLong) => {
                    queues.counters().fallen_back(port, 1);
                    queues.answer(ticket);
                }
                None => {}
            }
            requests.remove_first();
        }
    }

    /// Ends a search that was answered. Returns the port, the key and the hash of its flow, or `None` if the
    /// search was over. `is_outdated` is whether the answer was found under another version of the rules.
    pub fn end_search(&mut self, ticket: Ticket, is_outdated: bool) -> Option<(PortNo, K, u64)> {
        let flow = self.queues.flow(ticket);
        let is_ended = self.queues.answer(ticket);
        let (port, key, hash) = flow.filter(|_| is_ended)?;
        let counters = self.queues.counters();
        counters.answered(port, 1);
        counters.outdated(port, u64::from(is_outdated));
        self.ports.get(usize::from(port)).map(|number| (*number, key, hash))
    }

    /// Sets whether the search worker answers. If it does not, all searches end.
    pub fn set_answering(&mut self, is_answering: bool) {
        let Self { queues, requests: Some(requests), .. } = self else { return };
        requests.is_down = !is_answering;
        if !is_answering {
            requests.retain(|_| false);
            queues.end_searches();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MissFigures, MissLimits, PortCacheConfig, SearcherKind, WhenFull};
    use flow::Nanos;

    const PORT: PortNo = PortNo(7);
    const BURST: usize = 2;

    fn cache(limits: MissLimits) -> PortCache<u64, u64> {
        let config = PortCacheConfig { limits, searcher: SearcherKind::Worker, ..PortCacheConfig::default() };
        assert!(config.waits() && !config.answers_at_once());
        let mut cache = PortCache::new(&config, vec![PORT], BURST, 0, std::sync::Arc::default());
        cache.begin(Nanos(1));
        cache
    }

    fn offer(cache: &mut PortCache<u64, u64>, key: u64) -> Option<u64> {
        cache.offer(PORT, (&key, key), key, 60, Ok)
    }

    fn send(cache: &mut PortCache<u64, u64>, result: SendResult) -> Vec<(Ticket, u64)> {
        let mut sent = Vec::new();
        cache.send_searches(|ticket, packet| {
            sent.push((ticket, *packet));
            result
        });
        sent
    }

    fn released(cache: &mut PortCache<u64, u64>) -> Vec<u64> {
        let mut all = Vec::new();
        while cache.releases() {
            cache.release(None, |packet| all.push(packet));
        }
        all
    }

    fn figures(cache: &PortCache<u64, u64>) -> MissFigures {
        cache.queues.counters().read()
    }

    #[test]
    fn each_search_is_sent_once_and_its_answer_counts_once() {
        let mut cache = cache(MissLimits::USUAL);
        assert_eq!([5, 6, 5].map(|key| offer(&mut cache, key)), [None; 3]);
        let sent = send(&mut cache, SendResult::Sent);
        assert_eq!(sent.iter().map(|(_, packet)| *packet).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(send(&mut cache, SendResult::Sent), []);
        assert_eq!((cache.releases(), cache.poll(Nanos(1), |_| true)), (false, None));
        assert_eq!(cache.end_search(sent[0].0, false), Some((PORT, 5, 5)));
        assert_eq!(cache.end_search(sent[0].0, false), None, "a second answer");
        assert_eq!(released(&mut cache), [5, 5]);
        assert_eq!(offer(&mut cache, 5), None, "the slot is used again");
        assert_eq!(cache.end_search(sent[0].0, false), None, "an answer for an earlier generation");
        assert_eq!(cache.end_search(sent[1].0, true), Some((PORT, 6, 6)));
        let figures = figures(&cache);
        assert_eq!((figures.sent, figures.answered, figures.outdated, figures.stale), (2, 2, 1, 2));
    }

    #[test]
    fn the_policy_decides_about_flows_for_whose_search_there_is_no_space() {
        for when_full in [WhenFull::Drop, WhenFull::Forward] {
            let mut cache = cache(MissLimits { when_full, ..MissLimits::USUAL });
            assert_eq!([1, 2].map(|key| offer(&mut cache, key)), [None; 2]);
            assert_eq!(send(&mut cache, SendResult::Full).len(), 1);
            let drops = when_full == WhenFull::Drop;
            assert_eq!(offer(&mut cache, 3), (!drops).then_some(3));
            assert_eq!(cache.take_full(), drops.then_some(3));
            assert_eq!(offer(&mut cache, 1), None, "packets of a pending flow still wait");
            let figures = figures(&cache);
            assert_eq!((figures.dropped, figures.uncached), (u64::from(drops), u64::from(!drops)));
            assert_eq!((figures.searched, figures.merged), (2, 1));
            assert_eq!(send(&mut cache, SendResult::Sent).len(), 2);
            assert_eq!(offer(&mut cache, 3), None, "there is space again");
        }
    }

    #[test]
    fn a_port_with_many_searches_leaves_space_to_others_and_searches_are_sent_in_turn() {
        const OTHER: PortNo = PortNo(9);
        let config = PortCacheConfig { searcher: SearcherKind::Worker, ..PortCacheConfig::default() };
        let mut cache = PortCache::new(&config, vec![PORT, OTHER], BURST, 0, std::sync::Arc::default());
        cache.begin(Nanos(1));
        let mut offer = |port, key: u64| cache.offer(port, (&key, key), key, 60, Ok);
        assert_eq!([1, 2, 3, 4].map(|key| offer(PORT, key)), [None; 4]);
        assert_eq!([11, 12, 13].map(|key| offer(OTHER, key)), [None; 3]);
        let full: Vec<_> = std::iter::from_fn(|| cache.take_full()).collect();
        assert_eq!(full, [13, 4, 3]);
        let packets =
            |sent: Vec<(Ticket, u64)>| sent.into_iter().map(|(_, packet)| packet).collect::<Vec<_>>();
        let mut space = 3;
        let mut sent = Vec::new();
        cache.send_searches(|_, packet| {
            space -= 1;
            if space < 0 {
                return SendResult::Full;
            }
            sent.push(*packet);
            SendResult::Sent
        });
        assert_eq!(sent, [1, 11, 2]);
        assert_eq!(packets(send(&mut cache, SendResult::Sent)), [12]);
    }

    #[test]
    fn searches_end_at_once_while_the_search_worker_does_not_answer() {
        let mut cache = cache(MissLimits::USUAL);
        assert_eq!([1, 1].map(|key| offer(&mut cache, key)), [None; 2]);
        let sent = send(&mut cache, SendResult::Sent);
        assert_eq!(offer(&mut cache, 2), None);
        cache.set_answering(false);
        assert_eq!(released(&mut cache), [1, 2, 1]);
        assert_eq!(offer(&mut cache, 3), None);
        assert_eq!(released(&mut cache), [3]);
        assert_eq!(send(&mut cache, SendResult::Sent), []);
        assert_eq!((figures(&cache).fallen_back, figures(&cache).sent), (3, 1));
        cache.set_answering(true);
        assert_eq!(offer(&mut cache, 4), None);
        assert_eq!((cache.end_search(sent[0].0, false), cache.releases()), (None, false));
        assert_eq!(send(&mut cache, SendResult::TooLong).len(), 1);
        assert_eq!(released(&mut cache), [4]);
    }

    #[test]
    fn a_search_without_an_answer_is_sent_again() {
        let mut cache = cache(MissLimits { timeout_ns: Nanos(10), retries: 1, ..MissLimits::USUAL });
        assert_eq!(offer(&mut cache, 1), None);
        let first = send(&mut cache, SendResult::Sent);
        assert_eq!(cache.due_at(), Some(Nanos(11)));
        cache.begin(Nanos(11));
        assert_eq!(cache.poll(Nanos(11), |_| true), None);
        assert_eq!(send(&mut cache, SendResult::Sent), first, "the search is the same one");
        cache.begin(Nanos(21));
        assert_eq!(cache.poll(Nanos(21), |_| true), Some(1));
        assert_eq!((figures(&cache).sent, figures(&cache).retried, figures(&cache).timed_out), (2, 1, 1));
    }
}
