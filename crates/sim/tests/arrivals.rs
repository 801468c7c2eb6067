// SPDX-License-Identifier: Apache-2.0
//! Open-loop load in virtual time, with equal costs for all steps. Every packet must be accounted for, and
//! the same seed must give the same run.

use flow::PortNo;
use pipeline::LaneLimits;
use sim::arrivals::{Class, Harness, Load, Marks, Pattern, Popularity, Report, Switch};
use sim::cost::{CostError, CostTable};
use std::sync::Arc;
use wire::PacketBuilder;

/// The rules have prefixes of two lengths, so that no hash engine serves the table.
const RULES: &str = "\
    low_latency,priority=20,udp,nw_dst=10.0.0.0/24,actions=output:2\n\
    low_latency,priority=20,udp,nw_dst=10.0.0.0/16,tp_dst=7,actions=output:2\n\
    priority=10,udp,nw_dst=10.1.0.0/16,actions=output:3\n\
    priority=5,tcp,actions=drop\n";

const LANES: LaneLimits = LaneLimits { normal: 256, unknown: 64, hold: 64 };

fn flows(network: u8, count: u8) -> Arc<[Vec<u8>]> {
    let packet = |host| {
        let builder = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        builder.ipv4([192, 168, 0, host], [10, network, 0, host]).udp(1_000, 2_000).pad_to(60).build()
    };
    (0..count).map(packet).collect()
}

fn class(name: &str, network: u8, rate_pps: f64, pattern: Pattern) -> Class {
    Class {
        name: name.into(),
        port: PortNo(1),
        flows: flows(network, 100),
        popularity: Popularity::Zipf(1.0),
        pattern,
        rate_pps,
        begin_ns: 0.0,
        known: network == 0,
        comes_back: None,
        low_latency: [].into(),
        capture: None,
    }
}

/// The cost of a packet is about 10 units of 10 ns, so the worker sustains ten million packets/s.
fn run(normal_pps: f64, seed: u64, comes_back: Option<u32>, lanes: LaneLimits) -> Result<Report, CostError> {
    let bursts = Pattern::Bursts { packets: 16, spacing_ns: 10.0 };
    let low = Class { comes_back: comes_back.map(PortNo), ..class("low", 0, 5e5, Pattern::Poisson) };
    let late = Class {
        begin_ns: 3e6,
        flows: flows(0, 101)[100..].into(),
        known: false,
        ..class("late", 0, 1e4, Pattern::Constant)
    };
    let classes = vec![low, late, class("normal", 1, normal_pps, bursts)];
    let load = Load { classes, ring: 256, io_ns: 2_000.0, warm_up_ns: 1e6, span_ns: 1e7, seed };
    let config = worker::WorkerSetConfig { lanes, ..worker::WorkerSetConfig::default() };
    let switch = Switch {
        rules: RULES,
        added: "",
        stateless: None,
        ports: 4,
        config,
        marks: Marks::default(),
        maker: None,
    };
    Ok(Harness::new(&switch, &load)?.run(&CostTable::even(10.0)))
}

#[test]
fn every_packet_is_accounted_for() {
    for normal_pps in [1e5, 1e6, 3e7] {
        for comes_back in [None, Some(4)] {
            let report = run(normal_pps, 1, comes_back, LaneLimits::NONE).unwrap();
            for class in &report.classes {
                assert!(class.offered > 50, "{class:?}");
                assert_eq!(class.offered, class.delivered + class.lost(), "{class:?}");
                assert_eq!((class.latency.count(), class.overtaken), (class.delivered, 0));
                assert!(class.latency.quantile_ns(0.0) >= 2_000.0);
            }
            let [low, late, normal] = &report.classes[..] else { panic!("expected three classes") };
            let passes = if comes_back.is_some() { 2 } else { 1 };
            assert_eq!((normal.fast, late.learning.count()), (0, 1));
            if normal_pps < 1e7 {
                assert_eq!(low.lost() + late.lost() + normal.lost(), 0);
                assert_eq!(low.fast, low.delivered * passes, "{low:?}");
                let least = 2_000.0 * passes as f64;
                assert!(low.latency.mean_ns() < least + 5_000.0, "{}", low.latency.mean_ns());
            } else {
                assert!(normal.lost() > normal.offered / 3, "{normal:?}");
            }
        }
    }
}

#[test]
fn low_latency_packets_overtake_waiting_packets_under_overload() {
    for seed in 1..=3 {
        let report = run(1.1e7, seed, None, LANES).unwrap();
        for class in &report.classes {
            assert_eq!(class.offered, class.delivered + class.lost(), "{class:?}");
            assert_eq!(class.overtaken, 0, "{class:?}");
        }
        let [low, late, normal] = &report.classes[..] else { panic!("expected three classes") };
        assert_eq!((low.lost(), late.learning.count()), (0, 1), "{low:?} {late:?}");
        assert!(normal.lost() > 0, "{normal:?}");
        assert!(low.latency.max_ns() < normal.latency.max_ns(), "{}", low.latency.max_ns());
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let report = run(2e7, 7, Some(4), LANES).unwrap();
    assert_eq!(report, run(2e7, 7, Some(4), LANES).unwrap());
    assert_ne!(report, run(2e7, 8, Some(4), LANES).unwrap());
}
