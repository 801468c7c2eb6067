// SPDX-License-Identifier: Apache-2.0
//! Resources shared by both lanes: frames for copies, slots for pending outputs, and the ring to the
//! controller. Normal packets must leave part of each resource to low-latency packets.

use crate::lab::{Lab, RULES, udp};
use flow::DropReason;
use pipeline::{BURST, LaneLimits};

/// Limits under which more packets may wait than there are slots for pending outputs.
const LANES: LaneLimits = LaneLimits { normal: 2_048, unknown: 1_024, hold: 256 };

/// Packets from port 1 cause copies and then wait for table 1. A low-latency flow from port 2 goes to ports 3
/// and 4.
const COPIES: &[&str] = &[
    "table=0,priority=5,in_port=1,actions=ALL,goto_table:1",
    "table=0,low_latency,priority=5,in_port=2,actions=goto_table:1",
    "table=1,low_latency,priority=20,udp,nw_dst=10.0.0.0/24,actions=output:3,output:4",
    "table=1,low_latency,priority=20,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=output:3",
    "table=1,priority=10,udp,nw_dst=10.1.0.0/16,actions=output:3",
];

fn low(mark: u8) -> Vec<u8> {
    udp([10, 0, 0, 9], 5, 64, mark)
}

fn normal() -> Vec<u8> {
    udp([10, 1, 0, 1], 5, 64, 0)
}

#[test]
fn copies_of_waiting_packets_leave_room_for_those_of_low_latency_ones() {
    // In the first case there are too few frames; in the second, too few slots for copies.
    for (ports, small_frames, scarce) in
        [(20, 1_024, DropReason::NoBuffer), (20, 32_768, DropReason::TransmitFull)]
    {
        let config = worker::WorkerSetConfig {
            small_frames,
            large_frames: 0,
            lanes: LANES,
            ..worker::WorkerSetConfig::default()
        };
        let mut lab = Lab::with_ports(ports, 512, &config, COPIES);
        // The flow is learned.
        for _ in 0..4 {
            lab.push(2, &low(0));
            lab.turn();
        }
        let pop_all = |lab: &mut Lab, marks: &mut [Vec<u8>; 2]| {
            for port in 1..=ports as usize {
                let frames = lab.pop(port);
                if let 3 | 4 = port {
                    marks[port - 3].extend(frames.iter().map(|bytes| bytes[59]).filter(|mark| *mark > 0));
                }
            }
        };
        let (mut marks, mut pushed) = ([vec![], vec![]], Vec::new());
        for turn in 0..1_000_u32 {
            (0..BURST).for_each(|_| lab.push(1, &normal()));
            let mark = (turn % 250 + 1) as u8;
            (0..3).for_each(|_| lab.push(2, &low(mark)));
            pushed.extend([mark; 3]);
            lab.turn();
            pop_all(&mut lab, &mut marks);
            assert_eq!(
                marks,
                [pushed.clone(), pushed.clone()],
                "{scarce:?}: sent immediately and completely"
            );
        }
        assert!(lab.dropped(scarce) > 0, "no packet was dropped as {scarce:?}");
    }
}

#[test]
fn packet_ins_of_normal_packets_leave_room_for_those_of_low_latency_ones() {
    let rules = [
        "low_latency,priority=20,udp,nw_dst=10.0.0.0/24,actions=CONTROLLER:128",
        "low_latency,priority=20,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=output:3",
        "priority=10,udp,nw_dst=10.1.0.0/16,actions=CONTROLLER:128",
    ];
    // In the first case, frames for the controller run out. In the second case, the ring to the controller is
    // full.
    for (controller_frames, events) in [(64, 1_024), (512, 64)] {
        let config = worker::WorkerSetConfig {
            controller_frames,
            events,
            lanes: LANES,
            ..worker::WorkerSetConfig::default()
        };
        let mut lab = Lab::with_ports(4, 512, &config, &rules);
        for _ in 0..4 {
            lab.push(2, &low(0));
            lab.turn();
        }
        // The test does not take packet-ins from the ring.
        for turn in 0..200 {
            (0..BURST).for_each(|_| lab.push(1, &normal()));
            lab.turn_alone();
            assert!(turn < 100 || lab.dropped(DropReason::PacketInFull) > 0);
        }
        let full = lab.dropped(DropReason::PacketInFull);
        (0..12).for_each(|_| lab.push(2, &low(1)));
        lab.turn_alone();
        assert_eq!(lab.dropped(DropReason::PacketInFull), full + 8, "one quantum of normal packets");
    }
}

/// More packets may wait than there are frames. Enough frames must remain to receive packets in each poll
/// iteration.
#[test]
fn waiting_packets_leave_frames_for_receiving_low_latency_packets() {
    let mut lab = Lab::new(LANES, 1_024, RULES);
    for turn in 0..600 {
        if turn >= 4 {
            // Half of the packets are known to be normal. The other half belong to new flows.
            (0..BURST).for_each(|n| match n % 2 {
                0 => lab.push(1, &normal()),
                _ => lab.push(4, &udp([10, 2, turn as u8, n as u8], 5, 64, 0)),
            });
        }
        (0..2).for_each(|_| lab.push(2, &low(1)));
        lab.turn();
        let came = lab.pop(3).iter().filter(|bytes| bytes[59] == 1).count();
        assert!(turn < 4 || came == 2, "turn {turn}: {came}");
    }
    let refused = [DropReason::BacklogNormal, DropReason::BacklogUnknown].map(|reason| lab.dropped(reason));
    assert!(refused.iter().all(|count| *count > 0), "{refused:?}: frames are scarce");
}

#[test]
fn frames_for_a_slow_device_leave_frames_to_low_latency_packets() {
    let config = worker::WorkerSetConfig {
        small_frames: 64,
        large_frames: 0,
        lanes: LANES,
        ..worker::WorkerSetConfig::default()
    };
    let rules = [
        "low_latency,priority=20,udp,nw_dst=10.0.0.0/24,actions=output:3",
        "low_latency,priority=20,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=output:3",
        "priority=10,udp,nw_dst=10.1.0.0/16,actions=output:3",
    ];
    let mut lab = Lab::with_slow(3, 4, 512, &config, &rules);
    for _ in 0..4 {
        lab.push(2, &low(0));
        lab.turn();
    }
    lab.pop(3);
    // The test takes no frames from the device, so three quarters of all frames wait for it.
    for _ in 0..100 {
        (0..8).for_each(|_| lab.push(1, &normal()));
        lab.turn();
    }
    assert!(lab.dropped(DropReason::TransmitFull) > 0);
    for mark in 1..=8 {
        lab.push(2, &low(mark));
        lab.turn();
    }
    let marks: Vec<u8> = lab.pop(3).iter().map(|bytes| bytes[59]).filter(|mark| *mark > 0).collect();
    assert_eq!(marks, [1, 2, 3, 4, 5, 6, 7, 8]);
}
