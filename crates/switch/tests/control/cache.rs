// SPDX-License-Identifier: Apache-2.0
//! Tests of the port cache of a running switch: its counters, and its verdicts in traces of real packets.

use crate::frame;
use crate::lab::{Lab, config, until};
use serde_json::Value;
use switch::control::{CacheReport, Changes, ControlRequest};

const FLOWS: &str = "in_port=p1,dl_type=0x88b7 actions=output:p2\n";

/// Starts a switch whose port cache is on.
fn start() -> Lab {
    let with_cache = |socket: &std::path::Path| {
        let mut config = config(socket, 1, 2);
        config.datapath.forwarding.port_cache = Some(port_cache::PortCacheConfig::default());
        config
    };
    Lab::start_with(with_cache, Some(FLOWS), &[])
}

fn report(lab: &Lab) -> CacheReport {
    lab.client().ask(&ControlRequest::Cache).unwrap()
}

#[test]
fn every_packet_of_a_port_is_counted_once() {
    let mut lab = start();
    (0..5).for_each(|_| assert_eq!(lab.pass(1, &frame(1, 2), 2), frame(1, 2)));
    until("all packets are counted", || report(&lab).sum.packets == 5);
    let CacheReport { mode, entries, queue, ports, sum, .. } = report(&lab);
    assert_eq!((mode.as_str(), entries, queue, ports.len()), ("nonblocking", 128, 256, 2));
    let counts = ports[0].counts;
    assert_eq!((ports[0].port.0, counts.new, counts.pending, counts.waiting), (1, 1, 0, 0));
    assert_eq!(counts.packets, counts.hits + counts.new + counts.merged, "{counts:?}");
    assert!(counts.hits >= 3 && counts.released == 1 + counts.merged, "{counts:?}");
    assert_eq!((ports[1].counts, sum), (Default::default(), counts));
}

/// The search worker sleeps between packets, and the barrier of each change of the rules is answered.
#[test]
fn a_search_worker_finds_the_paths_of_new_flows() {
    let with_cache = |socket: &std::path::Path| {
        let mut config = config(socket, 2, 2);
        let searcher = port_cache::SearcherKind::Worker;
        let cache = port_cache::PortCacheConfig { searcher, ..port_cache::PortCacheConfig::default() };
        config.datapath.forwarding.port_cache = Some(cache);
        config
    };
    let mut lab = Lab::start_with(with_cache, Some(FLOWS), &[]);
    for round in 1..=5 {
        (0..3).for_each(|_| assert_eq!(lab.pass(1, &frame(1, 2), 2), frame(1, 2)));
        until("a search is answered", || report(&lab).sum.answered == round);
        // The record of the flow is outdated afterwards.
        let flow = format!("priority={},in_port=p1,dl_type=0x88b7 actions=output:p2\n", 40_000 + round);
        lab.client().load::<Changes>(|take| take(&flow)).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let CacheReport { searcher, sum, .. } = report(&lab);
    assert_eq!((searcher.as_str(), sum.sent, sum.new, sum.fallen_back), ("worker", 5, 5, 0), "{sum:?}");
    assert_eq!(sum.packets, 15);
}

#[test]
fn a_trace_shows_which_packets_waited() {
    let mut lab = start();
    let mut raw = lab.raw();
    let request = r#"{"id":7,"request":"trace_live","live":{"filter":"","count":2,"timeout_ms":20000}}"#;
    raw.send(format!("{request}\n").as_bytes());
    assert!(lab.raw().ask(r#"{"id":1,"request":"ports"}"#).contains("done"));
    std::thread::sleep(std::time::Duration::from_millis(20));
    (0..2).for_each(|_| drop(lab.pass(1, &frame(1, 2), 2)));
    let waited: Vec<Value> = (0..2)
        .map(|_| serde_json::from_str::<Value>(&raw.line()).unwrap()["part"]["waited"].clone())
        .collect();
    assert_eq!(waited, [Value::from("new"), Value::Null], "the second packet hits the record of the first");
}

#[test]
fn a_switch_without_a_port_cache_says_so() {
    let lab = Lab::start(1, 2, Some(FLOWS));
    assert_eq!((report(&lab).mode.as_str(), report(&lab).ports.len()), ("off", 0));
}
