// SPDX-License-Identifier: Apache-2.0
//! Latencies in virtual time, which depend only on the costs of the switch's steps.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use flow::Nanos;
use sim::cost::{CostTable, Rig};

/// Number of packets per poll iteration.
const BURST: u64 = 32;

#[test]
fn the_latency_of_a_frame_is_the_cost_of_the_steps_of_its_burst() {
    const UNIT_NS: f64 = 10.0;
    const TURNS: u64 = 100;
    let mut rig = Rig::mix().unwrap();
    CostTable::even(UNIT_NS).drive(rig.worker.probe());
    let mut longest_ns = 0.0_f64;
    for turn in 1..=TURNS {
        // Time that passes between two poll iterations is not part of any latency.
        rig.worker.probe().pass(1e9);
        let before_ns = rig.worker.probe().virtual_ns();
        assert_eq!(rig.worker.turn(Nanos(turn)).sent as u64, BURST);
        // The cost of the iteration itself is charged before the first poll, and the cost of the doorbell
        // after the last doorbell. Neither cost is part of a latency.
        let outside_ns = (1 + BURST) as f64 * UNIT_NS;
        longest_ns = longest_ns.max(rig.worker.probe().virtual_ns() - before_ns - outside_ns);
    }
    let reported = rig.model.plane_mut().latencies();
    let normal = reported.normal.whole;
    assert_eq!((normal.frames(), normal.max_ns), (BURST * TURNS, Nanos(longest_ns as u64)));
    assert!(normal.quantile_ns(0.5) > Nanos(200 * UNIT_NS as u64), "{normal:?}");
    assert_eq!(
        (reported.gaps, reported.normal.in_gaps.frames(), reported.low_latency.whole.frames()),
        (0, 0, 0)
    );
}
