// SPDX-License-Identifier: Apache-2.0
//! The number of packets that a poll iteration takes from each queue and from the backlog.

use crate::lab::{Lab, RULES, USUAL, low, normal, other_low};
use pipeline::LaneLimits;

/// Number of packets in a burst.
const BURST: usize = pipeline::BURST;

/// The share of a worker's time for normal traffic must not depend on the number of flooded ports. There is
/// at most one quantum per four bursts.
#[test]
fn the_share_of_normal_packets_does_not_depend_on_the_number_of_ports() {
    for (with_low, quantum) in [(true, 8), (false, BURST)] {
        for ports in [1, 2, 3, 4, 6, 8, 16_usize] {
            let mut lab = Lab::with_ports(18, 4 * BURST, &config(USUAL, 16_384), RULES);
            let (mut received, mut worked) = (0, 0);
            for turn in 0..600 {
                for port in 1..=ports {
                    (0..BURST).for_each(|_| lab.push(if port < 3 { port } else { port + 1 }, &normal()));
                }
                if with_low {
                    lab.push(18, &low(64, 1));
                }
                let done = lab.turn();
                lab.pop(3);
                if turn >= 200 {
                    (received, worked) = (received + done.received, worked + done.worked);
                    assert!(done.worked <= quantum * ports.div_ceil(4), "{ports} ports: {done:?}");
                }
            }
            let expected = received / (4 * BURST) * quantum;
            assert!(worked.abs_diff(expected) <= expected / 10, "{ports} ports: {worked} of {received}");
        }
    }
}

/// If no burst is full, there is one quantum per poll iteration.
#[test]
fn a_poll_iteration_without_a_full_burst_has_one_quantum() {
    let mut lab = Lab::with_ports(18, 4 * BURST, &config(USUAL, 16_384), RULES);
    for turn in 0..200 {
        for port in [1, 2, 4, 5] {
            (0..if turn < 10 { 0 } else { BURST - 1 }).for_each(|_| lab.push(port, &normal()));
        }
        lab.push(18, &low(64, 1));
        let done = lab.turn();
        assert!(turn < 20 || done.worked == 8, "{done:?}");
        lab.pop(3);
    }
}

/// If the hold queue is full or no frame is free, the worker polls the queues in turn, so that no port is
/// preferred.
#[test]
fn no_port_is_favoured_while_room_is_scarce() {
    const TURNS: u16 = 1_500;
    let no_hold = LaneLimits { normal: 0, unknown: 64, hold: 0 };
    for (lanes, frames) in [(no_hold, 8_192), (LaneLimits::NONE, 40), (USUAL, 40)] {
        let mut lab = Lab::with_ports(12, BURST, &config(lanes, frames), RULES);
        let mut taken = [0; 9];
        for turn in 0..TURNS {
            // Every other poll iteration starts a new flow. All packets of the flow after the first are held.
            for (taken, port) in taken.iter_mut().zip(4..) {
                *taken += lab.fill(port, &other_low(turn / 2));
            }
            lab.turn();
            // The device does not accept all frames sent to it.
            lab.pop_some(3, 24);
        }
        let (least, most) = (taken.iter().min().unwrap(), taken.iter().max().unwrap());
        assert!(most - least <= most / 40, "{lanes:?}, {frames} frames: {taken:?}");
        assert!(*most < usize::from(TURNS) * BURST * 9 / 10, "space is not scarce: {taken:?}");
    }
}

fn config(lanes: LaneLimits, small_frames: usize) -> worker::WorkerSetConfig {
    worker::WorkerSetConfig { small_frames, large_frames: 0, lanes, ..worker::WorkerSetConfig::default() }
}
