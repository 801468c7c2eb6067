// SPDX-License-Identifier: Apache-2.0
//! The rings between a worker and the search worker.
//!
//! A request is a header and the bytes of the packet, in a ring of bytes, so that short packets use little
//! memory. The header is written first; the reader waits until the ring has the whole request.

use super::{Answer, SearchState, Watch};
use dataplane::{Event, SearcherEvent};
use flow::{Nanos, PortNo, RuleVersion};
use frame::Frame;
use pipeline::{BURST, Egress, Pipeline, Probe};
use port::SMALL_FRAME_BYTES;
use port_cache::{MissLimits, SendResult, Ticket};
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::Arc;

/// Capacity of a ring of requests in bytes: 62 packets of the maximum length, or 1,600 of the minimum length.
const REQUEST_BYTES: usize = 128 * 1_024;

/// Capacity of a ring of answers.
const ANSWERS: usize = 1_024;

/// Part of the waiting answers that is taken in a poll iteration, but at least one. Received packets wait for
/// the records, and making one takes several times as long as finding one.
const ANSWERS_PART: usize = 16;

/// Number of waiting answers from which a burst of them is taken in each poll iteration.
const MANY_ANSWERS: usize = 2 * BURST;

/// Maximum number of consecutive poll iterations with packets in which no answers are taken.
const BUSY_TURNS: u32 = 16;

/// Longest time in nanoseconds after which a search worker that has requests, but serves none, is taken for
/// dead.
const STALL_NS: Nanos = Nanos(100_000_000);

/// Maximum part of this time that passes between two poll iterations of the worker. A process that was
/// stopped as a whole has made none.
const POLL_NS: Nanos = Nanos(1_000_000);

/// Length of a request's header in bytes.
const HEADER_BYTES: usize = 16;

/// Header of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    ticket: Ticket,
    in_port: PortNo,
    packet_bytes: u32,
}

impl Header {
    fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let Self { ticket: Ticket { slot, generation }, in_port, packet_bytes } = self;
        let mut bytes = [0; HEADER_BYTES];
        let words = [slot, generation, in_port.0, packet_bytes];
        bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = word.to_ne_bytes());
        bytes
    }

    fn of(bytes: [u8; HEADER_BYTES]) -> Self {
        let word = |at: usize| u32::from_ne_bytes(bytes.as_chunks().0[at]);
        let ticket = Ticket { slot: word(0), generation: word(1) };
        Self { ticket, in_port: PortNo(word(2)), packet_bytes: word(3) }
    }
}

/// Returns the time after which a search worker that has requests is taken for dead. It is shorter than the
/// time for which a packet waits for an answer, so that packets are not dropped first.
fn stall_ns(limits: &MissLimits) -> Nanos {
    let MissLimits { timeout_ns, retries, .. } = *limits;
    let waits_ns = timeout_ns.0.saturating_mul(u64::from(retries) + 1);
    STALL_NS.min(Nanos((waits_ns / 2).max(1)))
}

/// Creates both ends of the rings between worker `worker`, which has these limits, and the search worker.
pub(crate) fn links(worker: u16, limits: &MissLimits, state: &Arc<SearchState>) -> (SearchLink, Client) {
    let (requests, requests_out) = RingBuffer::new(REQUEST_BYTES);
    let (answers_in, answers) = RingBuffer::new(ANSWERS);
    let link = SearchLink {
        worker,
        requests,
        answers,
        sent: 0,
        needs_wake: false,
        deferred: 0,
        state: Arc::clone(state),
        watch: Watch::default(),
        stall_ns: stall_ns(limits),
        is_answering: true,
        is_reported: true,
    };
    (link, Client { requests: requests_out, answers: answers_in, taken: 0 })
}

/// The worker's end of the rings.
pub(crate) struct SearchLink {
    worker: u16,
    requests: Producer<u8>,
    answers: Consumer<Answer>,
    /// Number of bytes put into the ring of requests.
    sent: u64,
    /// Whether the search worker may have got work since the last call of [`Self::take_work`].
    needs_wake: bool,
    /// Number of poll iterations since answers were last taken.
    deferred: u32,
    state: Arc<SearchState>,
    watch: Watch,
    /// Time after which the search worker is taken for dead.
    stall_ns: Nanos,
    is_answering: bool,
    /// Whether the control thread knows `is_answering`.
    is_reported: bool,
}

impl SearchLink {
    /// Returns the number of answers to take in a poll iteration, after one that received `received` packets.
    /// Known flows come first: while packets arrive, answers wait for a few poll iterations.
    pub fn answers_to_take(&mut self, received: usize) -> usize {
        let waiting = self.answers.slots();
        if received > 0 && self.deferred < BUSY_TURNS && waiting < MANY_ANSWERS {
            self.deferred += 1;
            return 0;
        }
        self.deferred = 0;
        if waiting < MANY_ANSWERS { (waiting / ANSWERS_PART).max(1) } else { BURST }
    }

    /// Takes up to `most` of the answers that have arrived. `applied` is the version of the pipeline's rules.
    pub fn poll<E: Egress, P: Probe>(
        &mut self,
        most: usize,
        pipeline: &mut Pipeline,
        applied: RuleVersion,
        now: Nanos,
        egress: &mut E,
        probe: &mut P,
    ) {
        for _ in 0..most {
            let Ok(Answer { ticket, version, found }) = self.answers.pop() else { break };
            let is_outdated = version != applied;
            pipeline.take_answer((ticket, found.as_ref()), is_outdated, now, egress, probe);
            // The search worker may sleep because there was no space for further answers.
            self.needs_wake |= self.has_requests();
        }
        let is_answering = self.serves(now) && !self.state.is_closed() && !self.requests.is_abandoned();
        if is_answering != self.is_answering {
            (self.is_answering, self.is_reported) = (is_answering, false);
            pipeline.port_cache().into_iter().for_each(|cache| cache.set_answering(is_answering));
        }
        if !self.is_reported {
            let event = SearcherEvent { worker: self.worker, is_answering };
            self.is_reported = egress.report(Event::Searcher(event)).is_ok();
        }
    }

    /// Returns whether the search worker serves requests, if there are any.
    fn serves(&mut self, now: Nanos) -> bool {
        let (before, progress) = (self.watch.seen, self.progress());
        let silent_ns = self.watch.silent_ns(progress, self.has_requests(), now, POLL_NS);
        if self.is_answering { silent_ns < self.stall_ns } else { progress != before }
    }

    /// Returns a number that changes when the search worker has served a request. In virtual time, it also
    /// changes when the search worker holds requests back.
    fn progress(&self) -> u64 {
        let unserved = self.requests.buffer().capacity() - self.requests.slots();
        self.sent.wrapping_sub(unserved as u64).wrapping_add(self.state.pauses())
    }

    /// Sends the searches that were begun.
    pub fn send(&mut self, pipeline: &mut Pipeline) {
        let Some(cache) = pipeline.port_cache() else { return };
        cache.send_searches(|ticket, frame| self.send_one(ticket, frame));
    }

    fn send_one(&mut self, ticket: Ticket, frame: &Frame) -> SendResult {
        let bytes = frame.bytes();
        if bytes.len() > SMALL_FRAME_BYTES {
            return SendResult::TooLong;
        }
        if self.requests.slots() < HEADER_BYTES + bytes.len() {
            return SendResult::Full;
        }
        let in_port = PortNo(frame.meta.in_port);
        let header = Header { ticket, in_port, packet_bytes: bytes.len() as u32 };
        let pushed = self.requests.push_entire_slice(&header.to_bytes()).is_ok()
            && self.requests.push_entire_slice(bytes).is_ok();
        debug_assert!(pushed, "there was enough space");
        self.sent = self.sent.wrapping_add((HEADER_BYTES + bytes.len()) as u64);
        self.needs_wake = true;
        SendResult::Sent
    }

    /// Returns whether the search worker may have got work since the last call. Requests that it does not
    /// serve are not new.
    pub fn take_work(&mut self) -> bool {
        std::mem::take(&mut self.needs_wake)
    }

    /// Returns whether answers can be taken.
    pub fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Returns whether the search worker has requests to serve.
    fn has_requests(&self) -> bool {
        self.requests.slots() < self.requests.buffer().capacity()
    }
}

/// The search worker's end of the rings.
pub(crate) struct Client {
    requests: Consumer<u8>,
    answers: Producer<Answer>,
    /// Length in bytes of the request that is served.
    taken: usize,
}

impl Client {
    /// Returns whether there is a request, and space for its answer.
    pub fn has_work(&self) -> bool {
        self.requests.slots() >= HEADER_BYTES && self.has_room()
    }

    /// Returns whether there is space for an answer.
    pub fn has_room(&self) -> bool {
        self.answers.slots() > 0
    }

    /// Copies the packet of the next request into `frame`, and returns the ticket. The request stays in the
    /// ring until [`Self::end`] is called.
    pub fn begin(&mut self, frame: &mut Frame) -> Option<Ticket> {
        let header = self.requests.read_chunk(HEADER_BYTES).ok()?;
        let (first, second) = header.as_slices();
        let mut bytes = [0; HEADER_BYTES];
        bytes[..first.len()].copy_from_slice(first);
        bytes[first.len()..].copy_from_slice(second);
        let header = Header::of(bytes);
        let length = HEADER_BYTES + header.packet_bytes as usize;
        let request = self.requests.read_chunk(length).ok()?;
        let (first, second) = request.as_slices();
        let in_first = first.get(HEADER_BYTES..).unwrap_or_default();
        let in_second = &second[HEADER_BYTES.saturating_sub(first.len())..];
        let fits = frame.fill(in_first) && frame.append(in_second);
        debug_assert!(fits, "longer packets are not sent");
        frame.meta.in_port = header.in_port.0;
        self.taken = length;
        Some(header.ticket)
    }

    /// Removes the request that [`Self::begin`] returned from the ring.
    pub fn end(&mut self) {
        if let Ok(request) = self.requests.read_chunk(std::mem::take(&mut self.taken)) {
            request.commit_all();
        }
    }

    /// Sends an answer. If there is no space, it is lost, and the search is repeated.
    pub fn answer(&mut self, answer: Answer) {
        let _ = self.answers.push(answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticket(slot: u32) -> Ticket {
        Ticket { slot, generation: !slot }
    }

    #[test]
    fn answers_wait_while_packets_arrive_but_only_for_a_few_poll_iterations() {
        let (mut link, mut client) = links(0, &MissLimits::USUAL, &Arc::default());
        let answer = Answer { ticket: ticket(1), version: RuleVersion(0), found: None };
        client.answer(answer);
        assert_eq!(link.answers_to_take(0), 1);
        for _ in 0..2 {
            let taken: Vec<_> = (0..=BUSY_TURNS).map(|_| link.answers_to_take(1)).collect();
            assert_eq!(taken, [vec![0; BUSY_TURNS as usize], vec![1]].concat());
        }
        (1..40).for_each(|_| client.answer(answer));
        assert_eq!([1, 0, 1].map(|received| link.answers_to_take(received)), [0, 2, 0]);
        (40..MANY_ANSWERS).for_each(|_| client.answer(answer));
        assert_eq!([0, 1, 1].map(|received| link.answers_to_take(received)), [BURST; 3]);
    }

    #[test]
    fn requests_of_all_lengths_arrive_in_order_and_whole() {
        let (mut link, mut client) = links(0, &MissLimits::USUAL, &Arc::default());
        let mut frame = Frame::with_capacity(SMALL_FRAME_BYTES, 0);
        let (mut sent, mut received) = (0, 0);
        let packet = |number: u32| vec![number as u8; (number * 37 % 2_049) as usize];
        let mut fullest = 0;
        while received < 2_000 {
            let mut source = Frame::from_bytes(&packet(sent));
            source.meta.in_port = sent;
            match link.send_one(ticket(sent), &source) {
                SendResult::Sent => sent += 1,
                SendResult::TooLong => panic!("no packet is too long"),
                SendResult::Full => {
                    fullest = fullest.max(sent - received);
                    for _ in 0..=received % 7 {
                        assert_eq!(client.begin(&mut frame), Some(ticket(received)));
                        assert_eq!((frame.bytes(), frame.meta.in_port), (&packet(received)[..], received));
                        client.end();
                        received += 1;
                    }
                }
            }
        }
        assert!(fullest > 100, "{fullest}");
        let long = Frame::from_bytes(&[0; SMALL_FRAME_BYTES + 1]);
        assert_eq!(link.send_one(ticket(0), &long), SendResult::TooLong);
    }

    #[test]
    fn a_search_worker_that_serves_nothing_is_noticed_although_more_requests_are_sent() {
        let (mut link, mut client) = links(0, &MissLimits::USUAL, &Arc::default());
        let source = Frame::from_bytes(&[0; 60]);
        let mut frame = Frame::with_capacity(SMALL_FRAME_BYTES, 0);
        let mut now = Nanos(0);
        // The search worker looks at a request each time.
        let mut serves = |link: &mut SearchLink, is_served: bool| {
            now += Nanos(1_000_000);
            assert_eq!(link.send_one(ticket(0), &source), SendResult::Sent);
            assert!(client.begin(&mut frame).is_some());
            if is_served {
                client.end();
            }
            link.serves(now)
        };
        assert_eq!((0..500).take_while(|_| serves(&mut link, false)).count(), 99);
        link.is_answering = false;
        assert_eq!([false, true, false].map(|is_served| serves(&mut link, is_served)), [false, true, false]);
        link.is_answering = true;
        assert!((0..500).all(|at| serves(&mut link, at % 50 == 0)));
    }

    #[test]
    fn a_request_without_its_packet_is_not_served() {
        let (mut link, mut client) = links(0, &MissLimits::USUAL, &Arc::default());
        let header = Header { ticket: ticket(1), in_port: PortNo(2), packet_bytes: 60 };
        link.requests.push_entire_slice(&header.to_bytes()).unwrap();
        link.requests.push_entire_slice(&[7; 59]).unwrap();
        let mut frame = Frame::with_capacity(SMALL_FRAME_BYTES, 0);
        assert_eq!(client.begin(&mut frame), None);
        link.requests.push_entire_slice(&[7]).unwrap();
        assert_eq!((client.begin(&mut frame), frame.bytes()), (Some(ticket(1)), &[7; 60][..]));
    }
}
