// SPDX-License-Identifier: Apache-2.0
//! Tests of the lane latencies that `shunt top` and `shunt show counters` read over the socket.

use crate::lab::{Lab, until};
use crate::{counters, frame};
use std::time::Duration;
use switch::control::{ControlRequest, LatencyBuckets};
use switch::top::{Board, Reading};

const FLOWS: &str =
    "in_port=1,low_latency,actions=output:2\nin_port=2,actions=output:1\nin_port=3,actions=drop\n";

fn frames(latencies: &LatencyBuckets, lane: &str) -> u64 {
    let lane = latencies.lanes[lane].latencies();
    lane.whole.with(&lane.in_gaps).frames()
}

#[test]
fn latencies_are_reported_per_lane() {
    let mut lab = Lab::start(2, 3, Some(FLOWS));
    for _ in 0..3 {
        lab.pass(1, &frame(1, 2), 2);
    }
    lab.pass(2, &frame(2, 1), 1);
    until("all frames are counted", || {
        let lanes = counters(&lab).lanes;
        (lanes["low_latency"].raw.frames, lanes["normal"].raw.frames) == (3, 1)
    });
    let reported = counters(&lab);
    for lane in reported.lanes.values() {
        let raw = lane.raw;
        assert!(raw.p50_ns > 0 && raw.p50_ns <= raw.p99_ns && raw.p9999_ns <= raw.max_ns, "{raw:?}");
        assert!(lane.gaps_aside.frames <= raw.frames && lane.gaps_aside.max_ns <= raw.max_ns);
    }
    let latencies: LatencyBuckets = lab.client().ask(&ControlRequest::Latencies).unwrap();
    assert_eq!((frames(&latencies, "low_latency"), frames(&latencies, "normal")), (3, 1));
    assert_eq!(reported.gaps == 0, reported.stolen_ns == 0);
}

#[test]
fn a_board_shows_the_rates_between_two_readings() {
    let mut lab = Lab::start(1, 3, Some(FLOWS));
    lab.pass(1, &frame(1, 2), 2);
    until("the first packet is counted", || counters(&lab).lanes["low_latency"].raw.frames == 1);
    let before = Reading::take(&mut lab.client()).unwrap();
    for _ in 0..20 {
        lab.pass(2, &frame(2, 1), 1);
        assert!(lab.ports[2].push(0, &frame(3, 1)));
    }
    until("all packets are counted", || {
        let now = counters(&lab);
        now.received == 41 && now.lanes["normal"].raw.frames == 20
    });
    let after = Reading::take(&mut lab.client()).unwrap();
    let board = Board::between(&before, &after, Duration::from_secs(2));
    assert_eq!(
        board.summary,
        "packets/s: received 20, forwarded 10, to the controller 0, dropped 10, by the fast path alone 0; held 0"
    );
    let [ports, lanes, tables, drops] = &board.sections;
    let rows = |at: usize| ports.rows.iter().map(|row| row[at].as_str()).collect::<Vec<_>>();
    assert_eq!(
        (rows(1), rows(3), rows(6)),
        (vec!["p1", "p2", "p3"], vec!["0", "10", "10"], vec!["10", "0", "0"])
    );
    assert_eq!(rows(4), ["0", "4.80k", "4.80k"]);
    assert_eq!(lanes.rows[0][..3], ["low_latency", "0", "-"]);
    assert_eq!(lanes.rows[1][..2], ["normal", "10"]);
    assert!(lanes.rows[1][2].parse::<f64>().unwrap() > 0.0, "{lanes:?}");
    assert_eq!(tables.rows[0][..5], ["0", "4", "20", "20", "100.0"]);
    assert_eq!(drops.rows, [["no_output", "packet", "10", "20"]]);
    for section in &board.sections {
        assert!(section.rows.iter().all(|row| row.len() == section.head.len()), "{section:?}");
    }
}
