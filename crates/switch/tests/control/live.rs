// SPDX-License-Identifier: Apache-2.0
//! Tests of tracing real packets of a running switch.

use crate::lab::{Lab, Raw, until};
use crate::{counters, frame};
use serde_json::Value;

const FLOWS: &str =
    "priority=5,in_port=p1,dl_type=0x88b7,low_latency actions=output:p2\npriority=0 actions=drop\n";

/// Returns a request to trace packets.
fn live(filter: &str, count: u64, timeout_ms: u64) -> String {
    format!(
        r#"{{"id":7,"request":"trace_live","live":{{"filter":"{filter}","count":{count},"timeout_ms":{timeout_ms}}}}}"#
    )
}

/// Starts a trace and waits until it is active on all workers.
fn begin(lab: &mut Lab, request: &str) -> Raw {
    let mut raw = lab.raw();
    raw.send(format!("{request}\n").as_bytes());
    // Requests are processed in order, and a worker starts the trace before it forwards packets that arrive
    // later.
    let answer = lab.raw().ask(r#"{"id":1,"request":"ports"}"#);
    assert!(answer.contains("done"), "{answer}");
    std::thread::sleep(std::time::Duration::from_millis(20));
    raw
}

fn parsed(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

#[test]
fn traced_packets_are_reported_with_their_path_and_agree_with_the_rules() {
    for workers in [1, 2] {
        let mut lab = Lab::start(workers, 2, Some(FLOWS));
        let mut raw = begin(&mut lab, &live("dl_type=0x88b7", 3, 20_000));
        assert_eq!(lab.pass(1, &frame(1, 2), 2), frame(1, 2));
        assert_eq!(lab.pass(1, &frame(1, 2), 2), frame(1, 2));
        assert!(lab.ports[1].push(0, &frame(2, 1)));
        let mut dropped = 0;
        for _ in 0..3 {
            let part = parsed(&raw.line())["part"].clone();
            assert_eq!(part["verdict"], "agrees", "{part}");
            if part["in_port"] == 1 {
                assert_eq!(part["ports"], Value::from(vec![2]));
                assert!(part["hits"][0]["line"].as_str().unwrap().contains("output:2"), "{part}");
            } else {
                assert_eq!(
                    (part["outcome"].as_str(), part["reason"].as_str()),
                    (Some("dropped"), Some("no_output"))
                );
                dropped += 1;
            }
        }
        assert_eq!(dropped, 1);
        let done = parsed(&raw.line())["done"].clone();
        assert_eq!(
            (&done["recorded"], &done["compared"], &done["faults"]),
            (&3.into(), &3.into(), &0.into())
        );
        assert_eq!(counters(&lab).traced["compared"], 3);
        // The same connection can run another trace.
        let answer = raw.ask(&live("", 1, 1));
        assert!(answer.contains("\"recorded\":0"), "{answer}");
    }
}

#[test]
fn one_client_traces_at_a_time_until_it_disconnects() {
    let mut lab = Lab::start(1, 2, Some(FLOWS));
    let first = begin(&mut lab, &live("", 100, 600_000));
    let mut second = lab.raw();
    let answer = second.ask(&live("", 1, 1_000));
    assert!(answer.contains("another client traces real packets"), "{answer}");
    drop(first);
    until("the recording has ended", || second.ask(&live("in_port=9", 1, 1)).contains("\"recorded\":0"));
    // A client may also end a trace while packets arrive.
    let mut third = begin(&mut lab, &live("", 100_000, 600_000));
    assert_eq!(lab.pass(1, &frame(1, 2), 2), frame(1, 2));
    assert!(third.line().contains("agrees"));
    third.end();
    until("the recording has ended", || second.ask(&live("in_port=9", 1, 1)).contains("\"recorded\":0"));
}

/// The client closes its sending direction during the first trace. The second trace begins after that.
#[test]
fn a_trace_that_begins_after_its_client_has_gone_ends_at_once() {
    let mut lab = Lab::start(1, 2, Some(FLOWS));
    let requests = [live("", 100, 600_000), live("", 100, 600_000)].join("\n");
    drop(begin(&mut lab, &requests));
    let mut other = lab.raw();
    until("the recording has ended", || other.ask(&live("in_port=9", 1, 1)).contains("\"recorded\":0"));
}

#[test]
fn too_many_waiting_requests_end_a_trace() {
    let mut lab = Lab::start(1, 2, Some(FLOWS));
    let mut raw = begin(&mut lab, &live("", 100, 600_000));
    raw.send(&vec![b' '; 1_024 * 1_024 + 1]);
    let answer = raw.line();
    assert!(answer.contains("\"error\"") && answer.contains("the trace has ended"), "{answer}");
    let mut other = lab.raw();
    until("the recording has ended", || other.ask(&live("in_port=9", 1, 1)).contains("\"recorded\":0"));
}

/// A trace ends at its timeout even if packets still arrive and the client does not read.
#[test]
fn a_trace_ends_at_its_timeout_even_under_traffic() {
    let mut lab = Lab::start(1, 2, Some(FLOWS));
    let mut raw = begin(&mut lab, &live("", 100_000, 200));
    let mut other = lab.raw();
    until("the recording has ended", || {
        for _ in 0..64 {
            lab.ports[0].push(0, &frame(1, 2));
        }
        while lab.ports[1].pop(0).is_some() {}
        other.ask(&live("in_port=9", 1, 1)).contains("\"recorded\":0")
    });
    let mut line = raw.line();
    while line.contains("\"part\"") {
        line = raw.line();
    }
    assert!(parsed(&line)["done"]["recorded"].as_u64().unwrap() > 0, "{line}");
}

#[test]
fn wrong_requests_are_refused() {
    let lab = Lab::start(1, 1, None);
    let mut raw = lab.raw();
    for (request, says) in [
        (live("colour=red", 1, 1), "the filter is not understood"),
        (live("index=3", 1, 1), "selects an entry"),
        (live("", 0, 1), "0 packets cannot be traced"),
        (live("", 100_001, 1), "100001 packets cannot be traced"),
        (live("", 1, 0), "a trace cannot take 0 ms"),
        (live("", 1, 3_600_001), "a trace cannot take"),
        (r#"{"id":7,"request":"trace_live"}"#.to_owned(), "live"),
        (r#"{"id":7,"request":"trace_live","live":{"count":1}}"#.to_owned(), "timeout_ms"),
    ] {
        let answer = raw.ask(&request);
        assert!(answer.contains("\"error\"") && answer.contains(says), "{answer}");
    }
}
