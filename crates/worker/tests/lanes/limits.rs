// SPDX-License-Identifier: Apache-2.0
//! The usage of each limited resource must be reported, and packets that wait when the worker ends must be
//! counted.

use crate::lab::{Lab, RULES, low, normal, other_low};
use dataplane::DataPlane;
use flow::{DropReason, Match, PortNo, TableId};
use pipeline::{BURST, LaneLimits};
use worker::{ShutdownLoss, UsagePlace};

fn lab(lanes: LaneLimits) -> Lab {
    Lab::with_ports(4, 512, &worker::WorkerSetConfig { lanes, ..worker::WorkerSetConfig::default() }, RULES)
}

/// Returns the usage and the limit of a resource of a worker or port.
fn usage(lab: &mut Lab, place: UsagePlace, name: &str) -> (u64, Option<u64>) {
    let usages = lab.model.plane_mut().usages();
    let (_, usage) = usages.iter().find(|(at, usage)| *at == place && usage.name == name).unwrap();
    (usage.used, usage.limit)
}

#[test]
fn waiting_packets_are_reported_with_their_limit() {
    let worker = UsagePlace::Worker(0);
    for (unknown, normal_share) in [(64, 96), (1, 1), (0, 1)] {
        let mut lab = lab(LaneLimits { normal: normal_share, unknown, hold: 8 });
        for _ in 0..40 {
            (0..BURST).for_each(|_| lab.push(1, &normal()));
            lab.turn();
        }
        let (pushed, _) = (BURST * 40, lab.pop(3));
        lab.housekeeping();
        let totals = lab.model.plane_mut().totals();
        let known = usage(&mut lab, worker, "backlog_normal");
        let other = usage(&mut lab, worker, "backlog_unknown");
        assert_eq!((known.1, other.1), (Some(normal_share.into()), Some(unknown.into())));
        assert_eq!(known.0 + other.0, totals.held);
        assert_eq!(totals.received, pushed as u64);
        assert_eq!(usage(&mut lab, worker, "hold"), (0, Some(8)));
        assert_eq!(usage(&mut lab, worker, "copies"), (0, Some(16_384)));
        let frames = usage(&mut lab, worker, "small_frames");
        assert!(frames.0 >= totals.held && frames.1 == Some(8_192), "{frames:?}");
        for (name, limit) in [
            ("large_frames", 256),
            ("device_buffers", 0),
            ("controller_frames", 512),
            ("recorder", 0),
            ("operations", 1_024),
            ("events", 1_024),
            ("handovers_normal", 0),
            ("handovers_low_latency", 0),
        ] {
            assert_eq!(usage(&mut lab, worker, name), (0, Some(limit)), "{name}");
        }
        let outbox = usage(&mut lab, UsagePlace::Queue { port: PortNo(3), worker: 0 }, "outbox_normal");
        assert_eq!(outbox, (0, Some(512)));
        assert_eq!(
            usage(&mut lab, UsagePlace::Queue { port: PortNo(3), worker: 0 }, "outstanding_bytes").1,
            None
        );
        assert_eq!(usage(&mut lab, UsagePlace::Table(TableId(0)), "lut_records").1, Some(4_096));
    }
}

#[test]
fn packets_that_wait_at_the_end_are_counted() {
    let mut lab = lab(LaneLimits { normal: 256, unknown: 256, hold: 64 });
    // More frames are sent than the device accepts, and more packets arrive than the worker forwards. Some
    // packets are held.
    for turn in 0..200 {
        (0..BURST).for_each(|_| lab.push(1, &normal()));
        (0..BURST / 2).for_each(|_| {
            lab.push(2, if turn % 2 == 0 { low(64, 1) } else { other_low(turn / 16) }.as_slice())
        });
        lab.turn();
    }
    let before = lab.model.plane_mut().totals();
    assert!(before.held > 0);
    let ShutdownLoss { packets, frames } = lab.end();
    let totals = lab.model.plane_mut().totals();
    assert_eq!((totals.held, packets), (0, before.held));
    assert_eq!(totals.dropped.of(DropReason::Shutdown), packets);
    assert_eq!(totals.copies_dropped.of(DropReason::Shutdown), frames);
    assert!(frames > 0);
    assert_eq!(totals.received, totals.forwarded + totals.dropped.sum());
    assert_eq!(totals.copies - frames, lab.pop(3).len() as u64);
    lab.housekeeping();
    assert_eq!(
        usage(&mut lab, UsagePlace::Worker(0), "small_frames").0,
        0,
        "all frames are back in their pool"
    );
    assert_eq!(lab.end(), ShutdownLoss::default());
}

#[test]
fn packets_that_find_no_place_in_the_recorder_are_counted() {
    let mut lab = lab(LaneLimits { normal: 256, unknown: 256, hold: 64 });
    lab.turn();
    assert!(lab.model.plane_mut().record(&Match::any(), 100_000));
    let (mut pushed, mut taken) = (0, 0);
    for turn in 0..100 {
        if turn < 30 {
            (0..BURST).for_each(|_| lab.push(1, &normal()));
            pushed += BURST as u64;
        } else if turn == 30 {
            lab.housekeeping();
            assert_eq!(usage(&mut lab, UsagePlace::Worker(0), "recorder"), (64, Some(64)));
        }
        lab.turn();
        taken += std::iter::from_fn(|| lab.model.plane_mut().next_record()).count() as u64;
    }
    let lost = lab.model.plane_mut().records_lost();
    assert!(lost > 0 && taken > 0);
    assert_eq!(taken + lost, pushed);
}
