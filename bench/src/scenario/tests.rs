// SPDX-License-Identifier: Apache-2.0
//! Sends scenarios through a switch. Every flow must have the output and use the path that the generator
//! predicts.

use super::*;
use crate::rig::Rig;
use dataplane::DataPlane;
use port::Queue;
use port::mem::pair;
use tables::compile::Maker;

fn made(options: &Options) -> Scenario {
    Scenario::new(options, &Sources::samples()).unwrap()
}

/// Sends each flow's packet three times. The third time, low-latency flows have records.
fn check(options: &Options, maker: Option<Maker>) {
    let scenario = made(options);
    assert_eq!(scenario.flows.len(), options.flows + options.normal_flows);
    let (mut queues, mut handles) = (Vec::new(), Vec::new());
    for number in 1..=1 + PORTS {
        let (mut queue, handle) = pair(number, 1, 64);
        queues.push(Box::new(queue.remove(0)) as Box<dyn Queue>);
        handles.push(handle);
    }
    let config = worker::WorkerSetConfig { lut_entries: 1_024, ..worker::WorkerSetConfig::default() };
    let mut rig = Rig::<()>::with_queues(&config, queues, &scenario.rules, maker).unwrap();
    rig.warm_up(4);
    for round in 0..3 {
        let fast_before = rig.model.plane_mut().totals().fast;
        for flow in &scenario.flows {
            assert!(handles[0].push(0, &flow.packet));
            rig.warm_up(1);
            let sent = handles[flow.port as usize - 1].pop(0);
            assert_eq!(sent, Some(flow.sent()), "{options:?}, port {}", flow.port);
        }
        let fast = rig.model.plane_mut().totals().fast - fast_before;
        if round == 2 {
            assert_eq!(fast as usize, options.flows, "{options:?}");
        }
    }
}

#[test]
fn flows_are_forwarded_as_the_generator_predicts() {
    for kind in Kind::ALL {
        for bytes in [64, 256, 1_518] {
            check(&Options { bytes, normal_flows: 20, ..Options::new(kind, 100, 60) }, None);
        }
    }
}

#[test]
fn more_rules_than_the_samples_have() {
    for kind in Kind::ALL {
        let options = Options { bytes: 128, ..Options::new(kind, 1_000, 50) };
        check(&options, None);
        // Tables of the paper's kind give the same results.
        check(&options, Some(crate::paper::maker));
    }
}

#[test]
fn packets_have_the_requested_or_the_minimum_length() {
    let lengths = |kind, bytes| {
        let scenario = made(&Options { bytes, ..Options::new(kind, 100, 30) });
        let lengths: HashSet<usize> = scenario.flows.iter().map(|flow| flow.packet.len()).collect();
        let mut lengths: Vec<usize> = lengths.into_iter().collect();
        lengths.sort_unstable();
        lengths
    };
    assert_eq!(lengths(Kind::Server, 64), [62], "Ethernet, IPv6 and UDP");
    assert_eq!(lengths(Kind::Video, 64), [60]);
    assert_eq!(lengths(Kind::Vehicles, 64), [60]);
    for kind in Kind::ALL {
        assert_eq!(lengths(kind, 122), [118]);
        assert_eq!(lengths(kind, 1_518), [1_514]);
    }
}

#[test]
fn the_same_seed_makes_the_same_scenario() {
    let of = |seed| made(&Options { seed, ..Options::new(Kind::Video, 100, 40) });
    assert_eq!(of(7), of(7));
    assert_ne!(of(7), of(8));
    let traffic = |seed| of(7).traffic(100, Popularity::Zipf(1.0), 0, seed);
    assert_eq!(traffic(3), traffic(3));
    assert_ne!(traffic(3), traffic(4));
}

#[test]
fn a_share_of_the_traffic_is_normal() {
    let scenario = made(&Options { normal_flows: 30, ..Options::new(Kind::Vehicles, 100, 40) });
    let traffic = scenario.traffic(10_000, Popularity::Uniform, 200, 1);
    let normal = traffic.iter().filter(|at| !scenario.flows[**at].low_latency).count();
    assert!((1_850..2_150).contains(&normal), "{normal}");
}
