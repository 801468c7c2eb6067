// SPDX-License-Identifier: Apache-2.0
use super::cells::LatencyCells;
use super::*;
use frame::{Frame, Meta};
use std::cell::Cell;
use std::sync::Arc;

thread_local!(static NOW: Cell<u64> = const { Cell::new(0) });

fn clock() -> Clock {
    Clock::counting_ns(|| NOW.with(Cell::get))
}

fn at(now: u64) {
    NOW.with(|cell| cell.set(now));
}

/// Returns a monitor that has started a poll iteration at time `now`.
fn begun(now: u64) -> (LatencyMonitor, Arc<LatencyCells>) {
    let cells = Arc::new(LatencyCells::default());
    let mut monitor = LatencyMonitor::new(clock(), Arc::clone(&cells));
    at(now);
    monitor.begin(&());
    (monitor, cells)
}

/// Polls a burst of `packets` packets at the current time. Returns the metadata of its frames.
fn polled(monitor: &mut LatencyMonitor, packets: usize) -> Meta {
    let mut meta = Meta::NONE;
    meta.arrive(1, 0, monitor.poll(&()));
    monitor.worked(packets);
    meta
}

fn send(monitor: &mut LatencyMonitor, frames: &[Meta]) {
    let frames = frames.iter().map(|meta| {
        let mut frame = Frame::hollow();
        frame.meta = *meta;
        frame
    });
    let mut rest = frames.collect::<Vec<_>>();
    let mut runs = StampRuns::default();
    while !rest.is_empty() {
        let count = runs.read(&rest);
        monitor.sent(&runs, count, &());
        rest.drain(..count);
    }
}

fn reported(cells: &LatencyCells) -> Latencies {
    Latencies::over(&clock(), [cells].into_iter())
}

#[test]
fn quantiles_exceed_exact_ones_by_at_most_a_32nd() {
    let cells = LatencyCells::default();
    let mut random = fastrand::Rng::with_seed(7);
    let mut all: Vec<u32> = (0..50_000)
        .map(|n| if n % 1_000 == 0 { random.u32(..) } else { 1 << random.u32(0..20) | random.u32(0..100) })
        .collect();
    all.iter().for_each(|age| cells.ages(Lane::Normal, false).record(*age, 1));
    all.sort_unstable();
    let spread = reported(&cells).normal.whole;
    assert_eq!(spread.frames(), 50_000);
    for share in [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0] {
        let exact = u64::from(all[((all.len() as f64 * share).ceil() as usize).max(1) - 1]);
        let quantile = spread.quantile_ns(share);
        assert!(
            quantile >= Nanos(exact) && quantile <= Nanos(exact + exact / 32),
            "{share}: {quantile}, not {exact}"
        );
    }
    assert_eq!(spread.quantile_ns(1.0), Nanos(u64::from(all[all.len() - 1])));
    assert_eq!(spread.max_ns, Nanos(u64::from(all[all.len() - 1])));
}

#[test]
fn an_empty_distribution_has_no_latency() {
    let nothing = Spread::default();
    assert_eq!((nothing.frames(), nothing.quantile_ns(0.5), nothing.max_ns), (0, Nanos(0), Nanos(0)));
}

#[test]
fn distributions_can_be_subtracted_and_added() {
    let earlier = Spread { buckets: vec![(Nanos(10), 4), (Nanos(70), 1)], max_ns: Nanos(69) };
    let later = Spread {
        buckets: vec![(Nanos(10), 4), (Nanos(20), 2), (Nanos(70), 3), (Nanos(90), 1)],
        max_ns: Nanos(88),
    };
    let new = later.since(&earlier);
    assert_eq!(
        new,
        Spread { buckets: vec![(Nanos(20), 2), (Nanos(70), 2), (Nanos(90), 1)], max_ns: Nanos(88) }
    );
    assert_eq!(earlier.with(&new), later);
    assert_eq!(later.since(&later), Spread::default());
}

#[test]
fn frames_count_in_their_lane_by_their_age() {
    let (mut monitor, cells) = begun(1_000);
    let early = polled(&mut monitor, 1);
    at(1_050);
    let late = polled(&mut monitor, 1);
    at(1_060);
    let fast = |meta: Meta| Meta { lane: Lane::LowLatency, ..meta };
    // The last frame was not received from a port: it is a packet-out.
    send(&mut monitor, &[early, early, fast(early), fast(late), late, Meta::default()]);
    let reported = reported(&cells);
    assert_eq!(
        reported.normal.whole,
        Spread { buckets: vec![(Nanos(10), 1), (Nanos(60), 2)], max_ns: Nanos(60) }
    );
    assert_eq!(
        reported.low_latency.whole,
        Spread { buckets: vec![(Nanos(10), 1), (Nanos(60), 1)], max_ns: Nanos(60) }
    );
    assert_eq!((reported.gaps, reported.low_latency.in_gaps.frames()), (0, 0));
}

#[test]
fn a_stamp_may_wrap_and_be_a_little_ahead() {
    let wrap = 1_u64 << 32;
    let (mut monitor, cells) = begun(wrap - 40);
    let before = polled(&mut monitor, 1);
    at(wrap);
    let zero = polled(&mut monitor, 1);
    assert_eq!(zero.stamp, 1, "a stamp is never 0");
    at(wrap + 20);
    let ahead = Meta { stamp: 30, ..zero };
    send(&mut monitor, &[before, ahead, zero]);
    assert_eq!(reported(&cells).normal.whole.buckets, [(Nanos(0), 1), (Nanos(19), 1), (Nanos(60), 1)]);
}

#[test]
fn an_age_above_the_maximum_is_counted_as_the_maximum() {
    for age in [(1_u64 << 32) - 1, 1 << 32, (1 << 32) + 100, 1_000 << 32, (1 << 47) + 5] {
        let (mut monitor, cells) = begun(7 << 30);
        let meta = polled(&mut monitor, 1);
        at((7 << 30) + age);
        send(&mut monitor, &[meta]);
        let normal = reported(&cells).normal;
        assert_eq!(normal.whole.frames() + normal.in_gaps.frames(), 1);
        assert_eq!(normal.whole.max_ns.max(normal.in_gaps.max_ns), Nanos(u64::from(u32::MAX)), "{age}");
    }
}

#[test]
fn the_longest_age_has_a_bucket() {
    let cells = LatencyCells::default();
    cells.ages(Lane::Normal, false).record(u32::MAX, 3);
    let spread = reported(&cells).normal.whole;
    assert_eq!(
        (spread.buckets, spread.max_ns),
        (vec![(Nanos(u64::from(u32::MAX)), 3)], Nanos(u64::from(u32::MAX)))
    );
}

#[test]
fn frames_with_a_gap_are_counted_separately() {
    let (mut monitor, cells) = begun(1_000);
    let mut now = 1_000;
    let mut pass = |monitor: &mut LatencyMonitor, span: u64| {
        let meta = polled(monitor, 32);
        now += span;
        at(now);
        meta
    };
    for _ in 0..200 {
        pass(&mut monitor, 2_000);
    }
    assert_eq!(reported(&cells).gaps, 0);
    let held_up = pass(&mut monitor, 1_000_000);
    let after = pass(&mut monitor, 2_000);
    send(&mut monitor, &[held_up, after]);
    let reported_now = reported(&cells);
    assert_eq!((reported_now.gaps, reported_now.stolen_ns / 1_000), (1, Nanos(998)));
    assert_eq!(
        reported_now.normal.in_gaps,
        Spread { buckets: vec![(Nanos(1_015_807), 1)], max_ns: Nanos(1_002_000) }
    );
    assert_eq!(reported_now.normal.whole, Spread { buckets: vec![(Nanos(2_015), 1)], max_ns: Nanos(2_000) });
    // Neither sleep nor the processing of operations counts as a gap.
    pass(&mut monitor, 5_000_000);
    monitor.rest();
    monitor.begin(&());
    at(20_000_000);
    monitor.changed(&());
    assert_eq!(reported(&cells).gaps, 1);
}

#[test]
fn frames_of_several_bursts_and_lanes_are_counted_each() {
    let (mut monitor, cells) = begun(1_000);
    let mut metas = Vec::new();
    let mut ages: Vec<(u64, Lane)> = Vec::new();
    let mut random = fastrand::Rng::with_seed(3);
    for burst in 0..30_u64 {
        at(1_000 + burst * 10);
        let meta = polled(&mut monitor, 1);
        for _ in 0..random.usize(0..9) {
            let lane = if random.bool() { Lane::LowLatency } else { Lane::Normal };
            metas.push(Meta { lane, ..meta });
            ages.push((1_300 - (1_000 + burst * 10), lane));
        }
    }
    at(1_300);
    send(&mut monitor, &metas);
    let reported = reported(&cells);
    for (lane, spread) in
        [(Lane::LowLatency, reported.low_latency.whole), (Lane::Normal, reported.normal.whole)]
    {
        let of_lane = || ages.iter().filter(|(_, of)| *of == lane).map(|(age, _)| *age);
        assert_eq!(spread.frames(), of_lane().count() as u64);
        assert_eq!(spread.max_ns, Nanos(of_lane().max().unwrap()));
        let sum: u64 = spread.buckets.iter().map(|(ns, frames)| ns.0 * frames).sum();
        let exact: u64 = of_lane().sum();
        assert!(sum >= exact && sum <= exact + exact / 32, "{sum} is not {exact}");
    }
}

#[test]
fn workers_count_together() {
    let both = [LatencyCells::default(), LatencyCells::default()];
    both[0].ages(Lane::LowLatency, false).record(50, 2);
    both[1].ages(Lane::LowLatency, false).record(50, 1);
    both[1].ages(Lane::LowLatency, false).record(9, 1);
    both.iter().for_each(|cells| cells.add_gap(30));
    let reported = Latencies::over(&clock(), both.iter());
    assert_eq!(
        reported.low_latency.whole,
        Spread { buckets: vec![(Nanos(9), 1), (Nanos(50), 3)], max_ns: Nanos(50) }
    );
    assert_eq!((reported.gaps, reported.stolen_ns), (2, Nanos(60)));
}
