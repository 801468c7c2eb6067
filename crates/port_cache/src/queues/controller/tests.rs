// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::{Due, MissCounters, MissLimits, OfferResult};
use std::sync::Arc;

const LIMITS: MissLimits = MissLimits { entries: 3, queue: 4, ..MissLimits::USUAL };
const TIMEOUT_NS: Nanos = Nanos(100);

/// Queues of one port. Packets are numbers, and the key of a packet is its number divided by `divisor`.
struct Lab {
    queues: MissQueues<u64, u64>,
    divisor: u64,
}

impl Lab {
    fn new() -> Self {
        let counters = Arc::<MissCounters>::default();
        Self { queues: MissQueues::new(LIMITS, 1, 8, counters), divisor: 100 }
    }

    fn flow<R>(
        &mut self,
        packet: u64,
        then: impl FnOnce(&mut MissQueues<u64, u64>, FlowKey<'_, u64>) -> R,
    ) -> R {
        let key = packet / self.divisor;
        then(&mut self.queues, FlowKey { port: 0, key: &key, hash: key })
    }

    fn ask(&mut self, packet: u64, at: u64) -> AskResult {
        self.flow(packet, |queues, flow| queues.ask(flow, Nanos(at), TIMEOUT_NS, 0))
    }

    fn ticket(&mut self, packet: u64, at: u64) -> Ticket {
        match self.ask(packet, at) {
            AskResult::New(ticket) => ticket,
            other => panic!("{other:?}"),
        }
    }

    fn offer(&mut self, packet: u64, at: u64) -> OfferResult<u64> {
        self.flow(packet, |queues, flow| queues.offer(flow, packet, 60, Nanos(at), Ok))
    }

    fn give_back(&mut self, packet: u64) -> Result<(), u64> {
        self.flow(packet, |queues, flow| queues.give_back(flow, packet, 60, Ok))
    }

    /// Releases all packets, in order. Each inner list was released together.
    fn released(&mut self) -> Vec<Vec<u64>> {
        let next = || {
            let mut burst = Vec::new();
            let count = self.queues.release(8, None, |packet| burst.push(packet));
            self.queues.end_release(count);
            (count > 0).then_some(burst)
        };
        std::iter::from_fn(next).collect()
    }
}

#[test]
fn packets_wait_for_the_answer_to_their_own_question() {
    let mut lab = Lab::new();
    let first = lab.ticket(100, 0);
    assert_eq!(lab.ask(101, 1), AskResult::Asked);
    assert!([101, 102].into_iter().all(|packet| lab.offer(packet, 1) == OfferResult::Merged));
    assert_eq!((lab.released(), lab.queues.usage(0)), (vec![], (1, 2, 120)));
    assert!(lab.queues.answer(first));
    // The first waiting packet is released alone. It causes the next question.
    let mut alone = Vec::new();
    lab.queues.release(8, None, |packet| alone.push(packet));
    assert_eq!(alone, [101]);
    let second = lab.ticket(101, 2);
    assert!(first != second && !lab.queues.answer(first), "a late answer is ignored");
    assert_eq!(lab.released(), [[0; 0]; 0]);
    assert!(lab.queues.answer(second));
    assert_eq!((lab.released(), lab.queues.usage(0)), (vec![vec![102]], (0, 0, 0)));
    // Without waiting packets, the answer frees the slot.
    let third = lab.ticket(100, 3);
    assert!(lab.queues.answer(third) && !lab.queues.answer(third) && !lab.queues.is_asking());
}

#[test]
fn packets_that_return_go_before_those_that_were_never_released() {
    let mut lab = Lab::new();
    lab.ticket(100, 0);
    assert_eq!(lab.offer(103, 1), OfferResult::Merged);
    assert_eq!((lab.give_back(101), lab.give_back(102)), (Ok(()), Ok(())));
    assert_eq!(lab.offer(104, 1), OfferResult::Merged);
    assert_eq!((lab.give_back(105), lab.offer(106, 1)), (Err(105), OfferResult::Full(106)));
    lab.queues.answer_all();
    assert_eq!(lab.released(), [vec![101], vec![102, 103, 104]]);
    // A new plan of keys keeps this order, too.
    lab.ticket(100, 0);
    assert_eq!(lab.offer(103, 1), OfferResult::Merged);
    assert_eq!((lab.give_back(101), lab.give_back(102)), (Ok(()), Ok(())));
    lab.queues.rekey(Nanos(1), |_| (7, 7), |_, _| panic!("the question stays"));
    lab.queues.answer_all();
    assert_eq!(lab.released(), [vec![101], vec![102, 103]]);
}

#[test]
fn a_question_ends_in_time() {
    let mut lab = Lab::new();
    lab.ticket(100, 0);
    lab.ticket(200, 10);
    assert_eq!(lab.offer(101, 20), OfferResult::Merged);
    assert_eq!((lab.queues.next_due(Nanos(99), Nanos::MAX, |_| true), lab.released()), (None, vec![]));
    assert_eq!(lab.queues.next_timeout(), Some(Nanos(100)));
    assert_eq!(
        (lab.queues.next_due(Nanos(100), Nanos::MAX, |_| true), lab.released()),
        (None, vec![vec![101]])
    );
    // A rule for the flow shortens the time, but not for other flows.
    lab.ticket(300, 200);
    assert_eq!(lab.offer(301, 200), OfferResult::Merged);
    lab.queues.note_rules(|key| *key == 3);
    lab.queues.note_rules(|_| false);
    assert_eq!(lab.queues.next_due(Nanos(220), Nanos::MAX, |_| true), None);
    let end = 220 + CONFIRMED_NS.0;
    assert_eq!((lab.queues.next_due(Nanos(299), Nanos::MAX, |_| true), lab.released()), (None, vec![]));
    assert_eq!(
        (lab.queues.next_due(Nanos(300.min(end)), Nanos::MAX, |_| true), lab.released()),
        (None, vec![vec![301]])
    );
    assert_eq!(lab.queues.counters().read().unanswered, 2);
    assert!(!lab.queues.is_asking());
    let long = |lab: &mut Lab, packet| {
        lab.flow(packet, |queues, flow| queues.ask(flow, Nanos(0), Nanos(1_000_000_000), 0))
    };
    long(&mut lab, 400);
    assert_eq!(lab.offer(401, 0), OfferResult::Merged);
    lab.queues.note_rules(|_| true);
    assert_eq!(lab.queues.next_due(Nanos(0), Nanos::MAX, |_| true), None);
    assert_eq!(
        (lab.queues.next_due(Nanos(CONFIRMED_NS.0 - 1), Nanos::MAX, |_| true), lab.released()),
        (None, vec![])
    );
    assert_eq!(
        (lab.queues.next_due(CONFIRMED_NS, Nanos::MAX, |_| true), lab.released()),
        (None, vec![vec![401]])
    );
}

#[test]
fn questions_use_the_budget_of_flows_until_their_time_is_over() {
    let mut lab = Lab::new();
    for flow in 1..=3 {
        lab.ticket(100 * flow, 0);
    }
    assert_eq!((lab.ask(400, 50), lab.offer(500, 50)), (AskResult::Full, OfferResult::Uncached(500)));
    assert!(matches!(lab.ask(400, 100), AskResult::New(_)), "the other questions are over");
    let counters = lab.queues.counters().read();
    assert_eq!((counters.asked, counters.unquenched, counters.unanswered), (4, 1, 3));
    // A question that could not be sent ends at once.
    let ticket = lab.ticket(500, 100);
    assert_eq!(lab.offer(501, 100), OfferResult::Merged);
    lab.queues.withdraw(ticket);
    assert_eq!((lab.released(), lab.queues.usage(0)), (vec![vec![501]], (1, 0, 0)));
}

#[test]
fn a_flow_that_is_searched_can_become_one_that_is_asked_about() {
    let mut lab = Lab::new();
    let OfferResult::New(search) = lab.offer(101, 0) else { panic!("a search") };
    // A packet that did not wait leads to a question.
    let question = lab.ticket(100, 0);
    assert_eq!((lab.queues.answer(search), lab.queues.usage(0)), (false, (1, 1, 60)));
    assert!(lab.queues.answer(question));
    assert_eq!((lab.released(), lab.queues.usage(0)), (vec![vec![101]], (0, 0, 0)));
    // Negative slots, and the end of the worker.
    lab.flow(600, |queues, flow| queues.set_negative(flow, Nanos(0)));
    let question = lab.ticket(600, 0);
    assert_eq!(lab.offer(601, 0), OfferResult::Merged);
    lab.ticket(700, 0);
    assert_eq!((lab.queues.take_any(), lab.queues.take_any()), (Some(601), None));
    assert!(!lab.queues.answer(question));
}

/// The packet about which the controller was asked may belong to the flow of any packet that waits.
#[test]
fn packets_with_new_keys_wait_a_short_time_for_the_answer_to_their_question() {
    let mut lab = Lab::new();
    let question = lab.ticket(100, 0);
    (101..104).for_each(|packet| assert_eq!(lab.offer(packet, 0), OfferResult::Merged));
    lab.ticket(200, 0);
    lab.divisor = 1;
    // All packets have different keys now. No packet waits for the answer about flow 2.
    lab.queues.rekey(Nanos(1), |packet| (*packet, *packet), |_, _| panic!("no new search"));
    assert_eq!((lab.queues.usage(0), lab.queues.releases()), ((3, 3, 180), false));
    assert_eq!(lab.offer(102, 2), OfferResult::Merged);
    assert!(lab.queues.answer(question));
    assert_eq!(lab.released(), [vec![101]], "the answer is for the flow that keeps the question");
    assert_eq!(
        (lab.queues.next_due(Nanos(99), Nanos::MAX, |_| true), lab.released()),
        (None::<Due<u64>>, vec![])
    );
    assert_eq!(lab.queues.next_due(TIMEOUT_NS, Nanos::MAX, |_| true), None::<Due<u64>>);
    assert_eq!(lab.released(), [vec![102, 103], vec![102]]);
    assert_eq!((lab.queues.waiting(), lab.queues.usage(0)), (0, (0, 0, 0)));
}

#[test]
fn packets_of_a_released_flow_wait_for_the_controller_only_if_there_is_space() {
    let mut lab = Lab::new();
    lab.queues = MissQueues::new(LIMITS, 1, 8, Arc::default()).with_questions(true);
    let OfferResult::New(ticket) = lab.offer(100, 0) else { panic!("the flow is new") };
    assert!(lab.queues.answer(ticket));
    // Four packets have space in the queue. The others wait only until the release.
    assert!((101..=107).all(|packet| lab.offer(packet, 0) == OfferResult::Merged));
    let mut released = Vec::new();
    assert_eq!(lab.queues.release(1, None, |packet| released.push(packet)), 1);
    let question = lab.ticket(100, 1);
    let mut dropped = Vec::new();
    lab.queues.trim(question.slot, |packet| dropped.push(packet));
    assert_eq!((released, dropped), (vec![100], vec![105, 106, 107]));
    let figures = lab.queues.counters().read();
    assert_eq!((figures.searched, figures.merged, figures.dropped), (1, 4, 3));
    assert_eq!(lab.queues.usage(0), (1, 4, 240));
    lab.queues.answer(question);
    assert_eq!(lab.released(), [vec![101], vec![102, 103, 104]]);
    assert_eq!((lab.queues.waiting(), lab.queues.usage(0)), (0, (0, 0, 0)));
}

/// Without an answer, the waiting packets do not wait for one question each.
#[test]
fn packets_that_have_waited_in_vain_cause_no_further_question() {
    for backlog in [None, Some(5)] {
        let mut lab = Lab::new();
        lab.ticket(700, 0);
        for packet in [701, 702, 703] {
            assert_eq!(lab.offer(packet, 1), OfferResult::Merged);
        }
        lab.queues.end_questions(Nanos(100), |_| true);
        for expected in [vec![701], vec![702, 703]] {
            let mut burst = Vec::new();
            let count = lab.queues.release(8, backlog, |packet| burst.push(packet));
            if backlog.is_some() {
                lab.flow(701, |queues, flow| queues.await_record(flow));
            }
            lab.queues.end_release(if backlog.is_none() { 0 } else { count });
            assert_eq!(burst, expected);
            assert!(burst.iter().all(|packet| lab.ask(*packet, 100) == AskResult::Full), "{backlog:?}");
            if expected == [701] {
                lab.queues.settle(|_| false);
            }
        }
        // A packet that arrives before the last ones have left the backlog does not leave with them.
        assert_eq!(lab.offer(704, 100), OfferResult::Merged);
        lab.queues.settle(|_| false);
        assert_eq!(lab.released(), [[704]]);
        assert!(matches!(lab.ask(704, 101), AskResult::New(_)), "the next packet asks again");
        let figures = lab.queues.counters().read();
        assert_eq!((figures.unanswered, figures.unquenched, figures.asked), (1, 3, 2));
        lab.queues.answer_all();
        assert_eq!((lab.queues.waiting(), lab.queues.usage(0)), (0, (0, 0, 0)));
    }
}

/// A meter may drop a packet that has waited in vain, so that its path cannot be recorded.
#[test]
fn a_flow_that_turns_negative_after_waiting_in_vain_can_be_asked_about() {
    let mut lab = Lab::new();
    lab.ticket(700, 1);
    assert_eq!(lab.offer(701, 1), OfferResult::Merged);
    lab.queues.end_questions(Nanos(101), |_| true);
    let mut alone = Vec::new();
    let count = lab.queues.release(8, None, |packet| alone.push(packet));
    lab.flow(701, |queues, flow| queues.set_negative(flow, Nanos(101)));
    lab.queues.end_release(count);
    assert_eq!((alone, lab.offer(702, 102)), (vec![701], OfferResult::Passed(702)));
    assert!(matches!(lab.ask(702, 102), AskResult::New(_)), "the next packet asks");
    // The queue of the slot stays empty until then, so no packet has waited since the first question.
    assert_eq!(lab.offer(703, 102), OfferResult::Merged);
    lab.queues.answer_all();
    assert_eq!(lab.released(), [[703]]);
    assert!(matches!(lab.ask(703, 201), AskResult::New(_)));
}

/// If each answer releases one packet, the others do not wait for one answer each.
#[test]
fn packets_wait_for_several_answers_only_for_a_limited_time() {
    let mut lab = Lab::new();
    let mut question = lab.ticket(700, 1);
    (701..705).for_each(|packet| assert_eq!(lab.offer(packet, 1), OfferResult::Merged));
    let released = |lab: &mut Lab| {
        let mut alone = Vec::new();
        lab.queues.release(8, None, |packet| alone.push(packet));
        alone
    };
    for (at, packet) in [(40, 701), (80, 702)] {
        assert!(lab.queues.answer(question));
        assert_eq!(released(&mut lab), [packet]);
        question = lab.ticket(packet, at);
    }
    // Packets 703 and 704 have waited since time 1.
    assert!(lab.queues.answer(question));
    assert_eq!((released(&mut lab), lab.ask(703, 101)), (vec![703], AskResult::Full));
    assert_eq!((released(&mut lab), lab.ask(704, 101)), (vec![704], AskResult::Full));
    lab.queues.end_release(1);
    assert!(matches!(lab.ask(705, 102), AskResult::New(_)));
    // If no packet waits, the controller may be asked for ever.
    for at in 2..20 {
        let question = lab.ticket(800, at * 60);
        assert!(lab.queues.answer(question));
    }
    assert_eq!(lab.queues.counters().read().unquenched, 2);
}

#[test]
fn a_question_waits_for_answers_that_have_come() {
    let mut lab = Lab::new();
    lab.ticket(100, 0);
    assert_eq!(lab.offer(101, 0), OfferResult::Merged);
    // Operations that were requested at time 99 still wait.
    assert_eq!((lab.queues.next_due(Nanos(200), Nanos(99), |_| true), lab.released()), (None, vec![]));
    assert_eq!((lab.queues.next_due(Nanos(200), Nanos(100), |_| false), lab.released()), (None, vec![]));
    assert_eq!(
        (lab.queues.next_due(Nanos(200), Nanos(100), |_| true), lab.released()),
        (None, vec![vec![101]])
    );
}

#[test]
fn all_questions_end_at_once() {
    let mut lab = Lab::new();
    let first = lab.ticket(100, 0);
    lab.ticket(200, 0);
    assert_eq!(lab.offer(101, 0), OfferResult::Merged);
    lab.queues.note_rules(|key| *key == 2);
    lab.queues.end_all_questions();
    assert!(!lab.queues.is_asking() && !lab.queues.answer(first));
    assert_eq!((lab.released(), lab.queues.usage(0)), (vec![vec![101]], (0, 0, 0)));
}

/// Frames of the receive pool must not wait for a backlog.
#[test]
fn followers_without_memory_of_their_own_do_not_wait_for_a_record() {
    for (is_held, left) in [(true, vec![vec![700]]), (false, vec![vec![700], vec![701]])] {
        let mut lab = Lab::new();
        let hold = |packet| if is_held { Ok(packet) } else { Err(packet) };
        lab.queues = MissQueues::new(LIMITS, 1, 8, Arc::default()).with_immediate_answers(true);
        assert!(matches!(lab.offer(700, 0), OfferResult::New(_)));
        assert_eq!(
            lab.flow(701, |queues, flow| queues.offer(flow, 701, 60, Nanos(0), hold)),
            OfferResult::Merged
        );
        lab.queues.answer_all();
        let mut released = Vec::new();
        while lab.queues.releases() {
            let mut burst = Vec::new();
            let count = lab.queues.release(8, Some(5), |packet| burst.push(packet));
            if burst == [700] {
                lab.flow(700, |queues, flow| queues.await_record(flow));
            }
            lab.queues.end_release(count);
            released.push(burst);
        }
        assert_eq!((released, lab.queues.is_learning()), (left, is_held));
        // A packet beyond the budget is dropped, although the searcher answers at once.
        for packet in 702..712 {
            let full = lab.flow(packet, |queues, flow| queues.offer(flow, packet, 60, Nanos(0), Err));
            assert!(!is_held || full == OfferResult::Full(packet), "{full:?}");
        }
    }
}
