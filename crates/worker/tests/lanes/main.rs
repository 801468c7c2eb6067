// SPDX-License-Identifier: Apache-2.0
//! The two lanes of an overloaded worker. Tests which packets are lost, in which order packets leave, and how
//! long operations wait.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod inherited;
mod lab;
mod limits;
mod match_all;
mod narrowed;
mod recorded;
mod slots;
mod turns;

use dataplane::DataPlane;
use flow::{DropReason, Nanos, TableId};
use lab::{Lab, RULES, USUAL, low, normal};
use pipeline::LaneLimits;
use std::sync::OnceLock;
use std::time::Instant;

/// Maximum number of poll iterations until an operation is active under any load. An operation waits eight
/// iterations, then the iterations in which the limits of the backlog shrink to zero, and then the iterations
/// in which the backlog is processed. The last eight bursts of the backlog are processed in small quanta.
const CLOSING_TURNS: u32 = 8 + 3_072 / 32 + 3_072 / 32 + 256 / 8;

/// All packets are equal in all bits that a table examines. One packet is dropped after its first output,
/// because its TTL expires.
#[test]
fn a_packet_that_ends_early_does_not_overtake_its_flow() {
    for (next, lanes) in
        [("", LaneLimits::NONE), ("", USUAL), ("low_latency,", LaneLimits::NONE), ("low_latency,", USUAL)]
    {
        let mut lab = Lab::new(
            lanes,
            1_024,
            &[
                "table=0,low_latency,priority=20,udp,nw_dst=10.0.0.0/24,actions=output:2,dec_ttl,goto_table:1",
                "table=0,low_latency,priority=20,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=output:2",
                &format!("table=1,{next}priority=20,udp,nw_dst=10.0.0.0/24,actions=output:3"),
                &format!("table=1,{next}priority=20,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=output:3"),
            ],
        );
        for _ in 0..4 {
            lab.push(1, &low(64, 0));
            lab.turn();
            lab.turn();
        }
        lab.pop(2);
        (1..=9).for_each(|mark| lab.push(1, &low(if mark % 4 == 3 { 1 } else { 64 }, mark)));
        for _ in 0..4 {
            lab.turn();
        }
        let marks: Vec<u8> = lab.pop(2).iter().filter_map(|bytes| bytes.last().copied()).collect();
        assert_eq!(marks, [1, 2, 3, 4, 5, 6, 7, 8, 9], "{next} {lanes:?}");
    }
}

/// A new low-latency flow competes with a flood that fills the backlog. Packets sent before the flow is
/// learned may be dropped. After that, no packet of the flow is lost, whatever the capacity of the hold
/// queue.
#[test]
fn no_held_packet_is_lost() {
    for hold in [0, 1, 256, 4_096] {
        let mut lab = Lab::new(LaneLimits { hold, ..USUAL }, 8_192, RULES);
        for _ in 0..400 {
            (0..32).for_each(|_| lab.push(1, &normal()));
            lab.turn();
            lab.pop(3);
        }
        let (mut pushed, mut marks) = (0_u64, Vec::new());
        for turn in 0..6_000 {
            if turn < 2_000 {
                (0..32).for_each(|_| lab.push(1, &normal()));
            }
            if turn < 1_500 {
                for _ in 0..4 {
                    pushed += 1;
                    lab.push(2, &low(64, 1 + (pushed % 250) as u8));
                }
            }
            lab.turn();
            marks
                .extend(lab.pop(3).iter().filter_map(|bytes| bytes.last().copied()).filter(|mark| *mark > 0));
        }
        let unknown = lab.dropped(DropReason::BacklogUnknown);
        assert_eq!(lab.dropped(DropReason::TransmitFull), 0, "{hold}");
        assert!(unknown < pushed / 2, "{hold}: the flow is learned");
        assert_eq!(marks.len() as u64, pushed - unknown, "{hold}");
        // Check the second half of the packets, which are sent after the flow is learned.
        let known = &marks[marks.len() / 2..];
        assert!(known.windows(2).all(|pair| pair[1] == pair[0] % 250 + 1 || pair[1] == 1), "{hold}");
    }
}

/// Operations must take effect under any load.
#[test]
fn an_operation_waits_for_no_more_than_some_turns() {
    for with_low in [false, true] {
        let mut lab = Lab::new(USUAL, 8_192, RULES);
        let load = |lab: &mut Lab| {
            for port in [1, 2] {
                (0..32).for_each(|_| lab.push(port, &normal()));
            }
            if with_low {
                lab.push(4, &low(64, 1));
            }
            lab.turn();
            lab.pop(3);
        };
        (0..600).for_each(|_| load(&mut lab));
        assert!(lab.model.plane_mut().totals().held > 2_000, "the backlog is full");
        for number in 0..40 {
            lab.rule(&format!("priority=7,udp,nw_dst=10.7.{number}.0/24,actions=output:3"));
        }
        let barrier = lab.model.barrier();
        let mut turns = 0;
        while !lab.model.is_applied(barrier) {
            load(&mut lab);
            turns += 1;
            assert!(turns <= CLOSING_TURNS, "with low-latency packets: {with_low}");
        }
    }
}

/// When frames are scarce, known normal packets leave some frames for unknown packets.
#[test]
fn a_flow_is_learned_while_frames_are_scarce() {
    let mut lab = Lab::new(USUAL, 1_024, RULES);
    for turn in 0..500 {
        (0..32).for_each(|_| lab.push(1, &normal()));
        if turn > 100 {
            lab.push(2, &low(64, 1));
        }
        lab.turn();
        lab.pop(3);
    }
    assert!(lab.dropped(DropReason::BacklogNormal) > 0 && lab.model.plane_mut().totals().fast > 100);
}

/// Received bursts alternate with bursts from the backlog. Lookup costs must still be measured.
#[test]
fn costs_of_lookups_are_measured_with_lanes() {
    fn elapsed() -> Nanos {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().into()
    }
    for lanes in [LaneLimits::NONE, USUAL] {
        let stopwatch = Some(elapsed as fn() -> Nanos);
        let config = worker::WorkerSetConfig {
            lanes,
            stopwatch,
            timed_bursts: 16,
            ..worker::WorkerSetConfig::default()
        };
        let mut lab = Lab::with(&config, RULES);
        for _ in 0..2_000 {
            lab.push(1, &normal());
            lab.push(1, &low(64, 1));
            lab.turn();
            lab.pop(3);
        }
        let costs = lab.model.plane_mut().lookup_costs(TableId(0));
        assert!(costs.extract_ps > 0 && costs.probe_ps > 0 && costs.lookup_ps > 0, "{lanes:?}: {costs:?}");
    }
}
