// SPDX-License-Identifier: Apache-2.0
//! Egress queues in virtual time, with a link that sends a fixed number of bytes per millisecond.

use super::*;
use Lane::{LowLatency, Normal};
use std::collections::BTreeMap;

const MS: Nanos = Nanos(1_000_000);

fn queue(id: u32, min_mbps: u32, max_mbps: u32, priority: u8) -> EgressQueue {
    let rate = |mbps: u32| (mbps > 0).then_some(mbps * 1_000);
    EgressQueue {
        min_rate_kbps: rate(min_mbps),
        max_rate_kbps: rate(max_mbps),
        priority,
        ..EgressQueue::new(QueueId(id))
    }
}

/// Egress queues that always have frames of the given lengths, and a link after them.
struct Lab {
    shaper: Shaper,
    now: Nanos,
    lengths: BTreeMap<u32, usize>,
    /// Bytes that each queue has sent. The first byte of a frame is its queue number.
    sent: BTreeMap<u32, usize>,
}

impl Lab {
    fn new(queues: &[EgressQueue], lengths: &[(u32, usize)]) -> Self {
        let shaper = Shaper::new(&EgressQueue::complete(queues.to_vec()));
        Self { shaper, now: Nanos(0), lengths: lengths.iter().copied().collect(), sent: BTreeMap::new() }
    }

    fn push(&mut self, queue: u32, len: usize, lane: Lane) -> bool {
        self.shaper.push(QueueId(queue), Frame::from_bytes(&vec![queue as u8; len]), lane).is_ok()
    }

    fn next(&mut self) -> Option<(u8, usize)> {
        let frame = match self.shaper.next_urgent() {
            Some(frame) => frame,
            None => self.shaper.next_normal()?.0,
        };
        Some((frame.bytes().first().copied().unwrap_or_default(), frame.len()))
    }

    /// Lets `milliseconds` pass on a link of `line_mbps` Mbit/s. All queues in `lengths` have more frames
    /// than they can send.
    fn run(&mut self, milliseconds: usize, line_mbps: usize) {
        let mut room = 0isize;
        for _ in 0..milliseconds {
            self.now += MS;
            self.shaper.fill(self.now);
            room = (room + (line_mbps * 125) as isize).min((line_mbps * 125) as isize);
            while room > 0 {
                for (queue, len) in self.lengths.clone() {
                    while self.push(queue, len, Normal) {}
                }
                let Some((queue, len)) = self.next() else { break };
                *self.sent.entry(queue.into()).or_default() += len;
                room -= len as isize;
            }
        }
    }

    /// Returns the rate at which each queue has sent over `milliseconds`, in Mbit/s.
    fn mbps(&self, milliseconds: usize) -> BTreeMap<u32, usize> {
        self.sent
            .iter()
            .map(|(queue, bytes)| (*queue, (bytes * 8 + milliseconds * 500) / (milliseconds * 1_000)))
            .collect()
    }
}

/// Runs queues over a saturated link of 100 Mbit/s for 1 s. Returns the rate of each queue in Mbit/s.
fn shares(queues: &[EgressQueue], lengths: &[(u32, usize)]) -> BTreeMap<u32, usize> {
    let mut lab = Lab::new(queues, lengths);
    lab.run(1_000, 100);
    lab.mbps(1_000)
}

#[test]
fn rates_are_kept_for_frames_of_any_length() {
    for len in [60, 1_514, 65_000] {
        for max in [1, 7, 60] {
            let sent = shares(&[queue(1, 0, max, 0)], &[(1, len)])[&1];
            // Allows for the depth of the bucket and for a debt of one frame.
            let slack = 1 + (2 * len + 3_036) * 8 / 1_000_000 + max as usize / 100;
            assert!(sent.abs_diff(max as usize) <= slack, "{len} bytes at {max} Mbit/s: {sent}");
        }
    }
}

#[test]
fn a_guarantee_holds_against_a_flood_of_a_higher_priority() {
    let shared = shares(&[queue(1, 30, 0, 0), queue(2, 0, 0, 7)], &[(1, 200), (2, 1_514)]);
    assert!(shared[&1].abs_diff(30) <= 1 && shared[&2].abs_diff(70) <= 1, "{shared:?}");
    // If the guarantees exceed the link's rate, priority decides.
    let shared = shares(&[queue(1, 80, 0, 1), queue(2, 80, 0, 2)], &[(1, 1_514), (2, 1_514)]);
    assert!(shared[&1].abs_diff(20) <= 1 && shared[&2].abs_diff(80) <= 1, "{shared:?}");
}

#[test]
fn a_higher_priority_queue_takes_the_link_up_to_its_maximum_rate() {
    let shared = shares(&[queue(1, 0, 0, 0), queue(2, 0, 0, 3)], &[(1, 1_514), (2, 60)]);
    assert_eq!(shared, BTreeMap::from([(2, 100)]));
    let shared = shares(&[queue(1, 0, 0, 0), queue(2, 0, 25, 3)], &[(1, 1_514), (2, 60)]);
    assert!(shared[&1].abs_diff(75) <= 1 && shared[&2].abs_diff(25) <= 1, "{shared:?}");
}

#[test]
fn equal_queues_share_the_rest_of_the_link_by_bytes() {
    let shared = shares(
        &[queue(1, 0, 0, 2), queue(2, 0, 0, 2), queue(3, 0, 0, 2)],
        &[(1, 60), (2, 1_514), (3, 9_000)],
    );
    assert!(shared.values().all(|mbps| mbps.abs_diff(33) <= 1), "{shared:?}");
    let shared = shares(&[queue(1, 40, 0, 2), queue(2, 0, 0, 2)], &[(1, 1_514), (2, 60)]);
    assert!(shared[&1].abs_diff(70) <= 1 && shared[&2].abs_diff(30) <= 1, "{shared:?}");
    // One queue is limited by its rate. The other queues share the rest of the link equally.
    let shared =
        shares(&[queue(1, 0, 10, 2), queue(2, 0, 0, 2), queue(3, 0, 0, 2)], &[(1, 60), (2, 1_514), (3, 500)]);
    assert!(shared[&1].abs_diff(10) <= 1, "{shared:?}");
    assert!([2, 3].iter().all(|queue| shared[queue].abs_diff(45) <= 1), "{shared:?}");
}

#[test]
fn a_link_is_fully_used_while_a_queue_may_send() {
    let queues = [queue(1, 50, 0, 0), queue(2, 50, 60, 7), queue(3, 0, 20, 3)];
    for (lengths, all) in
        [(&[(1, 300)][..], 100), (&[(2, 300), (3, 60)], 80), (&[(1, 60), (2, 60), (3, 60)], 100)]
    {
        let sum: usize = shares(&queues, lengths).values().sum();
        assert!(sum.abs_diff(all) <= 2, "{lengths:?}: {sum}");
    }
}

#[test]
fn an_idle_queue_earns_no_credit() {
    let mut lab = Lab::new(&[queue(1, 0, 0, 2), queue(2, 0, 0, 2)], &[(1, 1_000)]);
    lab.run(1_000, 100);
    lab.sent.clear();
    lab.lengths.insert(2, 1_000);
    lab.run(100, 100);
    let shared = lab.mbps(100);
    assert!(shared[&1].abs_diff(50) <= 2 && shared[&2].abs_diff(50) <= 2, "{shared:?}");
}

#[test]
fn low_latency_frames_go_first_within_the_rate_of_their_queue() {
    let mut lab = Lab::new(&[queue(1, 0, 1, 7), queue(2, 90, 0, 3)], &[]);
    lab.shaper.fill(MS);
    for queue in [1, 2, 0] {
        assert!(lab.push(queue, 100, Normal) && lab.push(queue, 101, LowLatency));
    }
    // In each lane, the order follows from guarantee and priority. Queue 0 is the default queue.
    let order: Vec<_> = std::iter::from_fn(|| lab.next()).collect();
    assert_eq!(order, [(2, 101), (1, 101), (0, 101), (2, 100), (1, 100), (0, 100)]);
    while lab.push(1, 1_000, LowLatency) {}
    while lab.next().is_some() {}
    assert!(
        !lab.shaper.is_ready() && lab.shaper.opens_ns().is_some(),
        "above its maximum rate, a queue also holds low-latency frames"
    );
    assert!(lab.push(2, 60, Normal) && lab.next() == Some((2, 60)) && lab.next().is_none());
    let opens = lab.shaper.opens_ns().unwrap_or_default();
    lab.shaper.fill(opens - Nanos(1));
    assert!(lab.next().is_none());
    lab.shaper.fill(opens);
    assert_eq!((lab.next(), lab.next()), (Some((1, 1_000)), None));
}

#[test]
fn a_queue_keeps_its_order_and_its_limits() {
    for limit_frames in [1, 3] {
        let mut lab = Lab::new(&[EgressQueue { limit_frames, ..queue(4, 0, 8, 1) }], &[]);
        let frames = usize::from(limit_frames);
        for lane in [LowLatency, Normal] {
            let taken = (0..5).filter(|n| lab.push(4, 100 + n, lane)).count();
            assert_eq!(taken, frames);
        }
        assert_eq!(
            (lab.shaper.is_full(QueueId(4), LowLatency), lab.shaper.is_full(QueueId(0), LowLatency)),
            (true, false)
        );
        let lengths: Vec<usize> = std::iter::from_fn(|| lab.next()).map(|(_, len)| len).collect();
        let expected: Vec<usize> = (100..100 + frames).chain(100..100 + frames).collect();
        assert_eq!(lengths, expected);
        lab.shaper.refuse(QueueId(4));
        let report = lab.shaper.reports()[4];
        let bytes = lengths.iter().sum::<usize>() as u64;
        assert_eq!(
            (report.tx_packets, report.tx_bytes, report.dropped, report.waiting),
            (2 * frames as u64, bytes, 1, 0)
        );
    }
    // Frames of zero bytes cost no tokens, but only one of them leaves at a time.
    let mut lab = Lab::new(&[queue(4, 1, 1, 1)], &[]);
    assert!(lab.push(4, 0, Normal) && lab.push(4, 1, Normal));
    assert_eq!([lab.next(), lab.next(), lab.next()], [Some((0, 0)), Some((4, 1)), None]);
}

#[test]
fn unknown_queue_numbers_select_the_default_queue() {
    let mut lab = Lab::new(&[queue(1, 0, 0, 1)], &[]);
    for number in [0, 5, 8, u32::MAX - 1] {
        assert!(lab.push(number, 60, Normal));
    }
    assert_eq!(lab.shaper.reports()[0].waiting, 4);
}

#[test]
fn frames_queued_before_a_rule_change_leave_before_later_frames() {
    let mut lab = Lab::new(&[queue(1, 0, 0, 0), queue(2, 0, 0, 7)], &[]);
    // A flow moves from queue 1 to queue 2 and back.
    assert!(lab.push(1, 100, Normal));
    lab.shaper.change(false);
    assert!(lab.push(2, 101, Normal));
    lab.shaper.change(false);
    assert!(lab.push(1, 102, Normal) && lab.push(2, 200, Normal));
    // A low-latency frame goes first, because no normal flow has become low-latency.
    assert!(lab.push(1, 60, LowLatency));
    let order: Vec<_> = std::iter::from_fn(|| lab.next()).map(|(_, len)| len).collect();
    assert_eq!(order, [60, 100, 101, 200, 102]);
    // The flow becomes low-latency.
    assert!(lab.push(1, 100, Normal));
    lab.shaper.change(true);
    assert!(lab.push(2, 101, LowLatency) && lab.push(2, 200, Normal));
    lab.shaper.change(false);
    assert!(lab.push(2, 102, LowLatency));
    let order: Vec<_> = std::iter::from_fn(|| lab.next()).map(|(_, len)| len).collect();
    assert_eq!(order, [100, 101, 102, 200]);
    // Frames before a transmit barrier are not urgent while no low-latency frame waits after the barrier.
    assert!(lab.push(1, 100, Normal));
    lab.shaper.change(true);
    assert!(lab.shaper.next_urgent().is_none());
    assert!(lab.shaper.next_normal().is_some_and(|(_, frozen)| frozen));
}

#[test]
fn a_queue_that_waits_for_its_rate_holds_up_no_other_when_rules_change() {
    let mut lab = Lab::new(&[queue(1, 0, 1, 0), queue(2, 0, 0, 7)], &[]);
    while lab.push(1, 1_000, Normal) {}
    while lab.next().is_some() {}
    assert!(lab.push(1, 100, LowLatency));
    lab.shaper.change(true);
    assert!(lab.push(2, 61, LowLatency) && lab.push(2, 62, Normal) && lab.push(1, 101, LowLatency));
    assert_eq!([lab.next(), lab.next(), lab.next()], [Some((2, 61)), Some((2, 62)), None]);
    lab.shaper.fill(3_600_000 * MS);
    // Frames queued before the change leave first, low-latency frames before normal ones. Later frames
    // follow.
    assert_eq!([lab.next(), lab.next()], [Some((1, 100)), Some((1, 1_000))]);
    let mut last = None;
    while let Some(next) = lab.next() {
        lab.shaper.fill(lab.shaper.opens_ns().unwrap_or(lab.now));
        last = Some(next);
    }
    assert_eq!(last, Some((1, 101)));
}

/// Before an upgrade, waiting frames leave in their order, and their queue pays for them afterwards.
#[test]
fn unlimited_queues_send_at_once_and_take_tokens() {
    let mut lab = Lab::new(&[queue(1, 0, 1, 0)], &[]);
    assert!((0..100).all(|_| lab.push(1, 1_000, Normal)));
    lab.shaper.fill(MS);
    assert!(std::iter::from_fn(|| lab.next()).count() < 100);
    assert!(lab.shaper.opens_ns().is_some());
    lab.shaper.set_unlimited(true);
    assert!(lab.shaper.is_ready() && lab.shaper.opens_ns().is_none());
    std::iter::from_fn(|| lab.next()).for_each(drop);
    assert!(lab.shaper.is_empty());
    assert_eq!(lab.shaper.reports()[1].tx_packets, 100);
    lab.shaper.set_unlimited(false);
    assert!(lab.push(1, 1_000, Normal));
    assert_eq!(lab.next(), None);
    // 100,000 bytes take 800 ms at 1 Mbit/s, less the depth of the bucket.
    assert!(lab.shaper.opens_ns().is_some_and(|at| at > Nanos(700_000_000)));
}
