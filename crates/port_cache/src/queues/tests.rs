// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::counters::MissFigures;

type Queues = MissQueues<u64, u32>;

const LIMITS: MissLimits = MissLimits {
    entries: 3,
    queue: 4,
    bytes: 10_000,
    timeout_ns: Nanos(100),
    retries: 1,
    negative_ns: Nanos(50),
    when_full: WhenFull::Drop,
    ..MissLimits::USUAL
};

fn queues(limits: MissLimits) -> Queues {
    MissQueues::new(limits, 2, 8, Arc::default())
}

fn flow(key: &u64) -> FlowKey<'_, u64> {
    FlowKey { port: 0, key, hash: *key % 2 }
}

/// Offers packet `number` of flow `key` at time `now`.
fn offer(queues: &mut Queues, key: u64, number: u32, now: u64) -> OfferResult<u32> {
    queues.offer(flow(&key), number, 100, Nanos(now), Ok)
}

fn ticket(offered: OfferResult<u32>) -> Ticket {
    match offered {
        OfferResult::New(ticket) => ticket,
        other => panic!("no search began: {other:?}"),
    }
}

/// Offers packets as [`offer`] does, each given by its key and number, at time 0.
fn offer_all(queues: &mut Queues, packets: &[(u64, u32)]) {
    for (key, number) in packets {
        let offered = offer(queues, *key, *number, 0);
        assert!(matches!(offered, OfferResult::New(_) | OfferResult::Merged), "{offered:?}");
    }
}

/// Releases up to `most` packets.
fn release(queues: &mut Queues, most: usize) -> Vec<u32> {
    let mut released = Vec::new();
    let count = queues.release(most, None, |packet| released.push(packet));
    assert_eq!(count, released.len());
    released
}

#[test]
fn followers_wait_behind_the_first_packet_and_leave_in_order() {
    let mut queues = queues(LIMITS);
    let first = ticket(offer(&mut queues, 7, 0, 0));
    assert_eq!((1..4).map(|n| offer(&mut queues, 7, n, 1)).collect::<Vec<_>>(), [OfferResult::Merged; 3]);
    let other = ticket(offer(&mut queues, 9, 10, 2));
    assert_eq!((queues.waiting(), queues.releases(), queues.first_packet(first)), (5, false, Some(&0)));
    assert!(queues.answer(first) && queues.releases() && queues.answer(other));
    assert_eq!(release(&mut queues, 32), [0, 10], "first packets of several flows leave together");
    assert_eq!(release(&mut queues, 2), [1, 2]);
    assert_eq!((release(&mut queues, 2), queues.releases(), queues.waiting()), (vec![3], false, 0));
    assert_eq!(queues.usage(0), (0, 0, 0));
}

#[test]
fn packets_join_a_flow_that_is_being_released() {
    let mut queues = queues(LIMITS);
    let first = ticket(offer(&mut queues, 7, 0, 0));
    offer(&mut queues, 7, 1, 0);
    assert!(queues.answer(first));
    assert_eq!(release(&mut queues, 1), [0]);
    let needs_no_memory = |_| panic!("the packet leaves at once");
    assert_eq!(queues.offer(flow(&7), 2, 100, Nanos(1), needs_no_memory), OfferResult::Merged);
    assert_eq!(release(&mut queues, 32), [1, 2]);
    assert!(matches!(offer(&mut queues, 7, 3, 1), OfferResult::New(_)), "the slot was free");
}

#[test]
fn followers_wait_until_the_first_packet_has_left_the_backlog() {
    let mut queues = queues(LIMITS);
    offer_all(&mut queues, &[(7, 0), (7, 1), (9, 10), (8, 20)]);
    queues.answer_all();
    assert_eq!(queues.release(32, Some(5), drop), 3);
    // The first packets of 7 and 9 join the backlog, that of 8 leaves.
    [7, 9].iter().for_each(|key| queues.await_record(flow(key)));
    queues.end_release(3);
    assert_eq!((queues.releases(), queues.is_learning(), queues.usage(0)), (false, true, (2, 1, 100)));
    assert_eq!([7, 9].map(|key| offer(&mut queues, key, key as u32, 1)), [OfferResult::Merged; 2]);
    queues.settle(|end| end == 5);
    assert!(!queues.releases() && queues.holds(flow(&7)));
    assert!(queues.answer_flow(flow(&7)), "the packet has left the backlog");
    assert_eq!(release(&mut queues, 9), [1, 7]);
    queues.settle(|end| end == 6);
    assert_eq!((release(&mut queues, 9), queues.usage(0)), (vec![9], (0, 0, 0)));
}

#[test]
fn a_flow_whose_first_packet_is_in_the_backlog_can_turn_negative_or_get_a_new_key() {
    let mut queues = queues(LIMITS);
    offer_all(&mut queues, &[(7, 70), (8, 80), (8, 81)]);
    queues.answer_all();
    queues.release(32, Some(0), drop);
    [7, 8].iter().for_each(|key| queues.await_record(flow(key)));
    queues.end_release(2);
    queues.set_negative(flow(&7), Nanos(0));
    assert_eq!((offer(&mut queues, 7, 71, 1), queues.usage(0)), (OfferResult::Passed(71), (1, 1, 100)));
    queues.rekey(Nanos(5), |_| (9, 9), |_, _| panic!("no new search"));
    assert_eq!((queues.is_learning(), release(&mut queues, 9)), (false, vec![81]));
    offer_all(&mut queues, &[(3, 30), (3, 31)]);
    queues.answer_all();
    queues.release(32, Some(0), drop);
    queues.await_record(flow(&3));
    assert_eq!((queues.take_any(), queues.take_any(), queues.usage(0)), (Some(31), None, (0, 0, 0)));
}

#[test]
fn an_answer_is_taken_once_and_only_for_the_flow_that_asked() {
    let mut queues = queues(LIMITS);
    let old = ticket(offer(&mut queues, 7, 0, 0));
    assert!(queues.answer(old) && !queues.answer(old), "the second answer is stale");
    assert_eq!(release(&mut queues, 32), [0]);
    let new = ticket(offer(&mut queues, 8, 1, 0));
    assert_eq!((old.slot, old.generation.wrapping_add(1)), (new.slot, new.generation), "the slot is reused");
    assert!(!queues.answer(old) && !queues.releases(), "an old answer does not release another flow");
    assert!(queues.first_packet(old).is_none());
    assert!(!queues.answer(Ticket { slot: u32::MAX, generation: 0 }), "no such slot");
    assert!(queues.answer(new));
    assert_eq!(queues.counters.read().stale, 3);
}

#[test]
fn budgets_of_a_port_do_not_concern_other_ports() {
    let mut queues = queues(LIMITS);
    offer_all(&mut queues, &[(0, 0), (1, 0), (2, 0)]);
    assert_eq!(offer(&mut queues, 3, 5, 0), OfferResult::Uncached(5), "no slot");
    assert_eq!(
        (0..4).map(|n| offer(&mut queues, n % 3, n as u32, 0)).collect::<Vec<_>>(),
        [OfferResult::Merged; 4]
    );
    assert_eq!(offer(&mut queues, 0, 6, 0), OfferResult::Full(6), "the fifth follower");
    let other = FlowKey { port: 1, ..flow(&0) };
    assert!(matches!(queues.offer(other, 1, 100, Nanos(0), Ok), OfferResult::New(_)));
    assert_eq!(queues.offer(other, 2, 9_900, Nanos(0), Ok), OfferResult::Merged);
    assert_eq!(queues.offer(other, 3, 1, Nanos(0), Ok), OfferResult::Full(3), "one byte too many");
    let another = FlowKey { port: 1, ..flow(&1) };
    assert_eq!(queues.offer(another, 4, 1, Nanos(0), Ok), OfferResult::Uncached(4));
    assert_eq!((queues.usage(0), queues.usage(1)), ((3, 4, 700), (1, 1, 10_000)));
    let figures = queues.counters.read();
    let expected = MissFigures { searched: 4, merged: 5, uncached: 2, dropped: 2, ..MissFigures::default() };
    assert_eq!((figures, figures.offered()), (expected, 13));
}

#[test]
fn packets_without_memory_are_treated_like_packets_without_budget() {
    let mut queues = queues(LIMITS);
    let refuse = Err;
    assert_eq!(queues.offer(flow(&7), 0, 100, Nanos(0), refuse), OfferResult::Uncached(0));
    assert!(matches!(offer(&mut queues, 7, 1, 0), OfferResult::New(_)));
    assert_eq!(queues.offer(flow(&7), 2, 100, Nanos(0), refuse), OfferResult::Full(2));
    assert_eq!((queues.usage(0), queues.waiting()), ((1, 0, 100), 1));
}

#[test]
fn a_full_queue_can_release_its_flow() {
    let mut queues = queues(MissLimits { queue: 1, when_full: WhenFull::Forward, ..LIMITS });
    let first = ticket(offer(&mut queues, 7, 0, 0));
    assert_eq!(offer(&mut queues, 7, 1, 0), OfferResult::Merged);
    assert_eq!(offer(&mut queues, 7, 2, 0), OfferResult::Forced);
    assert_eq!(offer(&mut queues, 7, 3, 0), OfferResult::Merged, "behind the earlier packets");
    assert!(!queues.answer(first));
    assert_eq!((release(&mut queues, 32), release(&mut queues, 32)), (vec![0], vec![1, 2, 3]));
    let figures = queues.counters.read();
    assert_eq!((figures.forced, figures.merged, figures.dropped, figures.stale), (1, 3, 0, 1));
}

#[test]
fn a_search_is_repeated_and_then_given_up() {
    let mut queues = queues(LIMITS);
    let first = ticket(offer(&mut queues, 7, 0, 0));
    offer(&mut queues, 7, 1, 90);
    assert_eq!(
        (queues.next_due(Nanos(99), Nanos::MAX, |_| true), queues.next_timeout()),
        (None, Some(Nanos(100)))
    );
    assert_eq!(queues.next_due(Nanos(100), Nanos::MAX, |_| true), Some(Due::Ask(first)), "the same search");
    assert_eq!(
        (queues.next_due(Nanos(199), Nanos::MAX, |_| true), queues.next_timeout()),
        (None, Some(Nanos(200)))
    );
    assert_eq!(queues.next_due(Nanos(200), Nanos::MAX, |_| true), Some(Due::Drop(0)));
    assert_eq!(queues.next_due(Nanos(200), Nanos::MAX, |_| true), Some(Due::Drop(1)));
    assert_eq!(
        (queues.next_due(Nanos(900), Nanos::MAX, |_| true), queues.next_timeout(), queues.usage(0)),
        (None, None, (0, 0, 0))
    );
    assert!(!queues.answer(first), "too late");
    assert_ne!(ticket(offer(&mut queues, 7, 2, 300)), first, "the next packet asks again");
    let figures = queues.counters.read();
    assert_eq!((figures.retried, figures.timed_out, figures.stale), (1, 2, 1));
}

#[test]
fn an_answer_to_the_first_try_is_taken_after_the_second() {
    let mut queues = queues(LIMITS);
    let first = ticket(offer(&mut queues, 7, 0, 0));
    assert_eq!(queues.next_due(Nanos(150), Nanos::MAX, |_| true), Some(Due::Ask(first)));
    assert!(queues.answer(first) && queues.next_due(Nanos(1_000), Nanos::MAX, |_| true).is_none());
    assert_eq!(release(&mut queues, 32), [0]);
}

#[test]
fn a_flow_without_a_record_is_not_queued_for_a_while() {
    let mut queues = queues(LIMITS);
    queues.set_negative(flow(&7), Nanos(10));
    assert_eq!(offer(&mut queues, 7, 0, 59), OfferResult::Passed(0));
    assert!(matches!(offer(&mut queues, 7, 1, 60), OfferResult::New(_)));
    // The flow turns negative only after its waiting packets have been released.
    offer(&mut queues, 7, 2, 60);
    queues.set_negative(flow(&7), Nanos(70));
    assert_eq!(offer(&mut queues, 7, 3, 70), OfferResult::Merged);
    assert_eq!((release(&mut queues, 9), release(&mut queues, 9)), (vec![1], vec![2, 3]));
    assert_eq!(offer(&mut queues, 7, 4, 70), OfferResult::Passed(4));
    assert_eq!(queues.usage(0), (0, 0, 0));
    // A port has at most as many negative slots as pending ones. They take no place of pending flows.
    (20..24).for_each(|key| queues.set_negative(flow(&key), Nanos(80)));
    let passed = (20..24).filter(|key| offer(&mut queues, *key, 0, 90) == OfferResult::Passed(0)).count();
    assert_eq!(passed, 2, "7 is the third");
    assert!(matches!(offer(&mut queues, 30, 0, 90), OfferResult::New(_)));
    let mut none = MissQueues::new(MissLimits { negative_ns: Nanos(0), ..LIMITS }, 1, 0, Arc::default());
    none.set_negative(flow(&7), Nanos(0));
    assert!(matches!(offer(&mut none, 7, 0, 0), OfferResult::New(_)));
}

#[test]
fn expired_negative_slots_make_room() {
    let mut queues = queues(LIMITS);
    (0..3).for_each(|key| queues.set_negative(flow(&key), Nanos(0)));
    assert_eq!(queues.next_due(Nanos(50), Nanos::MAX, |_| true), None);
    queues.set_negative(flow(&9), Nanos(50));
    assert_eq!(offer(&mut queues, 9, 0, 51), OfferResult::Passed(0));
}

#[test]
fn a_record_made_by_another_packet_ends_the_search() {
    let mut queues = queues(LIMITS);
    assert!(!queues.answer_flow(flow(&7)));
    let first = ticket(offer(&mut queues, 7, 0, 0));
    ticket(offer(&mut queues, 9, 5, 0));
    assert!(queues.answer_flow(flow(&7)) && !queues.answer(first));
    assert_eq!(release(&mut queues, 32), [0]);
    queues.answer_all();
    assert_eq!(release(&mut queues, 32), [5]);
}

#[test]
fn longer_keys_split_a_flow() {
    let mut queues = queues(LIMITS);
    let first = ticket(offer(&mut queues, 1, 10, 0));
    [21, 12, 22, 13].into_iter().for_each(|n| assert_eq!(offer(&mut queues, 1, n, 0), OfferResult::Merged));
    let mut asked = Vec::new();
    queues.rekey(Nanos(5), |packet| (u64::from(packet / 10), 3), |_, ticket| asked.push(ticket));
    assert_eq!((asked.len(), queues.usage(0)), (1, (2, 3, 500)));
    let key = 2;
    assert_eq!(
        queues.offer(FlowKey { port: 0, key: &key, hash: 3 }, 23, 100, Nanos(6), Ok),
        OfferResult::Merged
    );
    assert!(queues.answer(asked[0]));
    assert_eq!((release(&mut queues, 9), release(&mut queues, 9)), (vec![21], vec![22, 23]));
    assert!(queues.answer(first), "the search of the first packet goes on");
    assert_eq!((release(&mut queues, 9), release(&mut queues, 9)), (vec![10], vec![12, 13]));
}

#[test]
fn shorter_keys_merge_flows_in_order_of_arrival() {
    let mut queues = queues(LIMITS);
    let first = ticket(offer(&mut queues, 1, 0, 0));
    let second = ticket(offer(&mut queues, 2, 1, 0));
    offer_all(&mut queues, &[(1, 2), (2, 3), (1, 4)]);
    queues.rekey(Nanos(5), |_| (9, 9), |_, _| panic!("no new search"));
    assert_eq!((queues.usage(0), queues.waiting()), ((1, 4, 500), 5));
    assert!(!queues.answer(second) && queues.answer(first));
    assert_eq!((release(&mut queues, 9), release(&mut queues, 9)), (vec![0], vec![1, 2, 3, 4]));
}

#[test]
fn flows_merged_into_a_flow_that_is_being_released_are_released_too() {
    let mut queues = queues(LIMITS);
    ticket(offer(&mut queues, 1, 0, 0));
    let second = ticket(offer(&mut queues, 2, 1, 0));
    offer_all(&mut queues, &[(2, 2), (1, 3), (2, 4)]);
    assert!(queues.answer(second));
    assert_eq!(release(&mut queues, 1), [1]);
    queues.rekey(Nanos(5), |_| (9, 9), |_, _| panic!("no new search"));
    assert_eq!((release(&mut queues, 9), release(&mut queues, 9)), (vec![0], vec![2, 3, 4]));
    assert_eq!((queues.waiting(), queues.usage(0)), (0, (0, 0, 0)));
}

#[test]
fn every_packet_may_get_a_key_of_its_own() {
    let mut queues = MissQueues::new(LIMITS, 1, 0, Arc::default());
    offer_all(&mut queues, &[(0, 0), (1, 1), (2, 2), (0, 3), (1, 4), (2, 5), (0, 6)]);
    let mut asked = 0;
    queues.rekey(Nanos(5), |packet| (u64::from(*packet), 1), |_, _| asked += 1);
    assert_eq!((asked, queues.usage(0)), (4, (7, 0, 700)));
    queues.answer_all();
    assert_eq!(release(&mut queues, 9).len(), 7);
    assert_eq!(queues.usage(0), (0, 0, 0));
}

#[test]
fn all_packets_can_be_taken_when_the_worker_ends() {
    let mut queues = queues(LIMITS);
    let first = ticket(offer(&mut queues, 1, 0, 0));
    offer_all(&mut queues, &[(1, 1), (1, 2)]);
    ticket(offer(&mut queues, 2, 3, 0));
    assert!(queues.answer(first));
    let taken: Vec<u32> = std::iter::from_fn(|| queues.take_any()).collect();
    assert_eq!((taken, queues.waiting()), (vec![0, 1, 2, 3], 0));
}
