// SPDX-License-Identifier: Apache-2.0
//! Compares the miss queues with a naive model. Packets, answers, timeouts, releases and new key plans come
//! in random order. Answers may be lost, late, doubled or reordered, because any ticket may be answered at
//! any time.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod naive;

use fastrand::Rng;
use flow::Nanos;
use naive::{Expected, Model, Packet};
use port_cache::{
    Due, FlowKey, MissCounters, MissFigures, MissLimits, MissQueues, OfferResult, Ticket, WhenFull,
};
use std::sync::Arc;

const PORTS: u16 = 3;

/// Maximum number of packets of a burst.
const BURST: usize = 8;

fn limits(rng: &mut Rng) -> MissLimits {
    MissLimits {
        entries: rng.u16(1..6),
        queue: [0, 1, 3, 8, 20][rng.usize(0..5)],
        bytes: [600, 2_000, 1_000_000][rng.usize(0..3)],
        timeout_ns: Nanos(rng.u64(1..200)),
        retries: rng.u8(0..3),
        negative_ns: Nanos([0, 50, 500][rng.usize(0..3)]),
        when_full: [WhenFull::Drop, WhenFull::Forward][rng.usize(0..2)],
        ..MissLimits::USUAL
    }
}

/// The queues and their model.
struct Pair {
    rng: Rng,
    limits: MissLimits,
    queues: MissQueues<u64, Packet>,
    model: Model,
    now: Nanos,
    /// Bits of packets that keys hold.
    mask: u64,
    /// All tickets so far.
    tickets: Vec<Ticket>,
    /// Numbers of packets that were offered, and that have left the queues.
    offered: u64,
    gone: u64,
}

fn hash_of(key: u64) -> u64 {
    key % 3
}

impl Pair {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let limits = limits(&mut rng);
        let counters = Arc::<MissCounters>::default();
        Self {
            queues: MissQueues::new(limits, PORTS.into(), BURST, counters),
            model: Model::new(limits),
            limits,
            now: Nanos(1),
            mask: 0b0111,
            tickets: Vec::new(),
            offered: 0,
            gone: 0,
            rng,
        }
    }

    fn figures(&self) -> MissFigures {
        self.queues.counters().read()
    }

    /// Offers a packet. As in a worker, no packet is received while packets can be released.
    fn offer(&mut self) {
        let bits = self.rng.u64(0..16);
        let packet = Packet {
            number: self.offered,
            port: self.rng.u16(0..PORTS),
            bits,
            bytes: [60, 300, 1_500][self.rng.usize(0..3)],
        };
        self.offered += 1;
        let key = bits & self.mask;
        let has_memory = self.rng.u8(0..10) > 0;
        let expected = self.model.offer(packet, key, self.now, has_memory);
        let flow = FlowKey { port: packet.port, key: &key, hash: hash_of(key) };
        let hold = |packet| if has_memory { Ok(packet) } else { Err(packet) };
        let offered = self.queues.offer(flow, packet, packet.bytes, self.now, hold);
        match offered {
            OfferResult::New(ticket) => {
                assert_eq!(expected, Expected::New);
                self.model.set_ticket(packet.port, key, ticket);
                self.tickets.push(ticket);
            }
            OfferResult::Merged => assert_eq!(expected, Expected::Merged),
            OfferResult::Forced => assert_eq!(expected, Expected::Forced),
            OfferResult::Passed(_) => assert_eq!(expected, Expected::Passed),
            OfferResult::Uncached(_) => assert_eq!(expected, Expected::Uncached),
            OfferResult::Full(_) => assert_eq!(expected, Expected::Full),
        }
        let is_queued = matches!(offered, OfferResult::New(_) | OfferResult::Merged | OfferResult::Forced);
        self.gone += u64::from(!is_queued);
    }

    fn answer(&mut self) {
        if self.tickets.is_empty() {
            return;
        }
        // Usually one of the last tickets.
        let recent = if self.rng.bool() { self.tickets.len().min(4) } else { self.tickets.len() };
        let ticket = self.tickets[self.tickets.len() - 1 - self.rng.usize(0..recent)];
        let first = self.model.flow_of(ticket).map(|flow| flow.packets[0].number);
        assert_eq!(self.queues.first_packet(ticket).map(|packet| packet.number), first);
        assert_eq!(self.queues.answer(ticket), self.model.answer(ticket));
    }

    fn by_key(&mut self) {
        let (port, key) = (self.rng.u16(0..PORTS), self.rng.u64(0..16) & self.mask);
        let flow = FlowKey { port, key: &key, hash: hash_of(key) };
        if self.rng.bool() {
            assert_eq!(self.queues.answer_flow(flow), self.model.answer_flow(port, key));
        } else {
            self.queues.set_negative(flow, self.now);
            self.model.set_negative(port, key, self.now);
        }
    }

    fn due(&mut self) {
        while let Some(due) = self.queues.next_due(self.now, Nanos::MAX, |_| true) {
            match due {
                Due::Ask(ticket) => self.model.repeat(ticket, self.now),
                Due::Drop(packet) => {
                    self.model.give_up(packet, self.now);
                    self.gone += 1;
                }
            }
        }
        self.model.end_negative(self.now);
        let ends = self.model.pending().map(|(ends, _)| ends).min();
        assert_eq!(self.queues.next_timeout(), ends);
        assert!(ends.is_none_or(|ends| ends > self.now), "a search has ended");
    }

    fn release(&mut self, most: usize) {
        let mut released = Vec::new();
        let count = self.queues.release(most, None, |packet| released.push(packet));
        assert!(count == released.len() && count <= most);
        assert_eq!(count > 0, self.model.releases());
        self.gone += count as u64;
        self.model.release(&released);
    }

    fn rekey(&mut self) {
        self.mask = [0b0001, 0b0011, 0b0111, 0b1111, 0b1100][self.rng.usize(0..5)];
        let (mask, mut asked) = (self.mask, Vec::new());
        let key_of = |packet: &Packet| (packet.bits & mask, hash_of(packet.bits & mask));
        self.queues.rekey(self.now, key_of, |_, ticket| asked.push(ticket));
        self.model.rekey(self.now, mask, &asked);
        self.tickets.extend(asked);
    }

    fn step(&mut self) {
        self.now += Nanos(self.rng.u64(0..20));
        match self.rng.u8(0..100) {
            0..55 => {
                if self.queues.releases() {
                    self.release(1 + self.rng.clone().usize(0..BURST));
                } else {
                    (0..self.rng.usize(1..=BURST)).for_each(|_| self.offer());
                }
            }
            55..75 => self.answer(),
            75..80 => self.by_key(),
            80..90 => self.due(),
            90..97 => self.release(BURST),
            97 => self.rekey(),
            98 => {
                self.queues.answer_all();
                self.model.answer_all();
            }
            _ => self.now += Nanos(1_000),
        }
        self.check();
    }

    fn check(&self) {
        for port in 0..PORTS {
            assert_eq!(self.queues.usage(port), self.model.usage(port));
            let (flows, followers, bytes) = self.model.usage(port);
            // A new key plan and packets that release their flow may exceed a budget.
            if !self.model.is_exceeded {
                assert!(flows <= self.limits.entries.into() && bytes <= self.limits.bytes.into());
                assert!(followers <= self.limits.queue.into());
            }
        }
        assert_eq!(self.queues.waiting(), self.model.waiting());
        assert_eq!(self.offered, self.gone + self.queues.waiting() as u64, "packets are conserved");
        assert_eq!(self.figures().offered(), self.offered);
        assert_eq!(self.queues.releases(), self.model.releases());
    }
}

#[test]
fn queues_do_what_the_model_does() {
    let (mut sum, mut repeated, mut split) = (MissFigures::default(), 0, 0);
    for seed in 0..600 {
        let mut pair = Pair::new(seed);
        (0..400).for_each(|_| pair.step());
        repeated += pair.model.negative_flows;
        split += pair.model.split_flows;
        sum.add(&pair.figures());
        let rest = std::iter::from_fn(|| pair.queues.take_any()).count();
        assert_eq!((rest, pair.queues.waiting()), (pair.model.waiting(), 0));
    }
    let MissFigures {
        hits: _,
        searched,
        merged,
        passed,
        uncached,
        dropped,
        forced,
        retried,
        timed_out,
        stale,
        released,
        evicted: _,
        unserved: _,
        asked: _,
        returned: _,
        unquenched: _,
        unanswered: _,
        sent: _,
        answered: _,
        outdated: _,
        fallen_back: _,
    } = sum;
    let all = [searched, merged, passed, uncached, dropped, forced, retried, timed_out, stale, released];
    assert!(all.iter().all(|count| *count > 3_000), "{sum:?}");
    assert!(repeated > 1_000 && split > 1_000, "flows that turned negative: {repeated}; split: {split}");
}

#[test]
fn without_answers_memory_is_bounded_and_every_drop_is_counted() {
    for when_full in [WhenFull::Drop, WhenFull::Forward] {
        let limits = MissLimits { entries: 4, queue: 6, when_full, ..MissLimits::USUAL };
        let mut queues: MissQueues<u64, u64> = MissQueues::new(limits, 1, BURST, Arc::default());
        let (mut now, mut gone, mut offered) = (Nanos(0), 0, 0);
        // One hour, a packet every 100 ms.
        while now < Nanos(3_600_000_000_000) {
            now += Nanos(100_000_000);
            let key = offered % 7;
            let flow = FlowKey { port: 0, key: &key, hash: key };
            let result = queues.offer(flow, offered, 1_500, now, Ok);
            offered += 1;
            gone += u64::from(matches!(result, OfferResult::Uncached(_) | OfferResult::Full(_)));
            while let Some(due) = queues.next_due(now, Nanos::MAX, |_| true) {
                gone += u64::from(matches!(due, Due::Drop(_)));
            }
            while queues.releases() {
                gone += queues.release(BURST, None, drop) as u64;
            }
            assert!(queues.waiting() <= limits.packets());
        }
        let figures = queues.counters().read();
        assert_eq!(offered, gone + queues.waiting() as u64);
        let counted = figures.uncached + figures.dropped + figures.timed_out + figures.released;
        assert!(counted == gone && figures.timed_out > 1_000, "{figures:?}");
    }
}

#[test]
fn one_new_flow_is_searched_once_whatever_its_rate() {
    let mut queues: MissQueues<u64, u64> = MissQueues::new(MissLimits::USUAL, 1, BURST, Arc::default());
    let flow = FlowKey { port: 0, key: &7, hash: 7 };
    let mut ticket = None;
    for number in 0..1_000_000 {
        if let OfferResult::New(new) = queues.offer(flow, number, 60, Nanos(number / 10), Ok) {
            assert!(ticket.replace(new).is_none(), "a second search");
        }
    }
    assert!(ticket.is_some_and(|ticket| queues.answer(ticket)));
    let mut released = Vec::new();
    while queues.releases() {
        queues.release(BURST, None, |packet| released.push(packet));
    }
    let expected: Vec<u64> = (0..=MissLimits::USUAL.queue.into()).collect();
    assert_eq!(released, expected, "all that fits the budget leaves in order");
    let figures = queues.counters().read();
    assert_eq!((figures.searched, figures.merged + figures.dropped), (1, 999_999));
}
