// SPDX-License-Identifier: Apache-2.0
//! Port caches in all switches of a fat tree of 8-port switches: 80 switches and 128 hosts. All switches run
//! in one process, each with its own worker, entries and searcher.

use crate::cell::{Mode, Part, Setting};
use crate::traffic::{FlowSource, SOURCE_PORTS, Traffic, periods};
use crate::tree::Routing;
use fastrand::Rng;
use flow::Nanos;
use serde::Serialize;
use sim::network::{
    BufferReport, Flow, HostAddress, LayerReport, Network, SwitchBuffers, TreeLinks, distances, ecmp,
    fat_tree, run,
};
use std::error::Error;
use std::sync::Arc;
use wire::PacketBuilder;

/// Number of ports of a switch.
const PORTS: usize = 8;
/// Number of hosts.
const HOSTS: u8 = 128;
/// Sources per host. They are chosen before any switch has run: the offered load of the links of hosts is
/// 50 % on average (see the test).
const SOURCES: usize = 84;
/// Service times in nanoseconds, each with its durations. In the warm-up, a searcher can end at least four
/// times as many searches as the ports of its switch have records, so that the caches are not cold.
const SERVICES: [(u64, Durations); 2] = [
    (10_000, Durations { warm_up_ns: 15e6, end_ns: 25e6 }),
    (100_000, Durations { warm_up_ns: 103e6, end_ns: 123e6 }),
];
/// Length of packets in bytes, with the FCS.
const BYTES: u16 = 64;
/// Length of the FCS, and of the Ethernet, IPv4 and UDP headers.
const FCS_BYTES: usize = 4;
const HEADER_BYTES: usize = 42;
/// UDP destination port of the first flows.
const DESTINATION_PORT: u16 = 9;
/// Rate of all links in bit/s, their queue in frames, and their delay.
const RATE_BPS: u64 = 1_000_000_000;
const QUEUE_FRAMES: usize = 1_000;
const DELAY_NS: Nanos = Nanos(1_000);
/// Maximum number of packets that wait in a receive ring.
const RING: usize = crate::line::RING;
/// Path records of a switch, more than its ports can have.
const RECORDS: usize = 1_024;

/// Results of the switches of a layer. Counters do not include the warm-up.
#[derive(Debug, Serialize)]
struct TreeCell {
    part: Part,
    seed: u64,
    sources: usize,
    /// Layer of the switches, or "total".
    position: &'static str,
    routing: Routing,
    bytes: u16,
    #[serde(flatten)]
    setting: Setting,
    span_ns: f64,
    warm_up_ns: f64,
    /// Number of switches.
    switches: usize,
    /// Packets that arrived.
    offered: u64,
    /// Packets that workers received from the receive rings.
    received: u64,
    /// Packets that left.
    forwarded: u64,
    /// Packets that left without a search of their own.
    hits: u64,
    /// Counters of the port cache, which count each received packet once.
    record_hits: u64,
    merged: u64,
    searched: u64,
    passed: u64,
    uncached: u64,
    dropped: u64,
    evicted: u64,
    /// Packets that were dropped by the port cache, at a full receive ring, and at a full link. Links from
    /// hosts belong to no layer, and are part of "total" only.
    queue_full: u64,
    ring_full: u64,
    link_full: u64,
    /// Time from the arrival of a packet until it left the switch; for "total", from host to host.
    p50_ns: f64,
    p99_ns: f64,
    p99_9_ns: f64,
    /// Packets that hosts sent after the warm-up, and those of them that were delivered and lost; 0 unless
    /// "total". `overtaken` counts packets that left a switch after a later packet of their flow.
    sent: u64,
    delivered: u64,
    lost: u64,
    overtaken: u64,
    /// Offered load of the links of hosts after the warm-up: mean, and that of the host with most packets.
    load: f64,
    load_max: f64,
}

/// Flows between the hosts.
#[derive(Default)]
struct Pairs {
    all: Vec<(u8, u8)>,
}

impl FlowSource for Pairs {
    fn begin(&mut self, from: u8, rng: &mut Rng) -> (u32, u32) {
        let number = self.all.len() as u32;
        self.all.push((from, (from + rng.u8(1..HOSTS)) % HOSTS));
        (number, periods(rng))
    }
}

/// Packets of all hosts.
struct Sent {
    flows: Vec<Flow>,
    load: f64,
    load_max: f64,
}

fn address(host: usize) -> [u8; 4] {
    [10, 0, host as u8, 1]
}

/// Returns the first packet of a flow. All of its packets have these headers.
fn template(number: usize, (from, to): (u8, u8)) -> Arc<[u8]> {
    let (port, round) = (number as u32 % SOURCE_PORTS, number as u32 / SOURCE_PORTS);
    let payload = [0; BYTES as usize - FCS_BYTES - HEADER_BYTES];
    PacketBuilder::ethernet([2, 0, 0, 0, 0, to], [2, 0, 0, 0, 0, from])
        .ipv4(address(from.into()), address(to.into()))
        .udp(1_024 + port as u16, DESTINATION_PORT + round as u16)
        .no_udp_checksum()
        .payload(&payload)
        .build()
        .into()
}

/// Ends of the warm-up and of the counted time, in nanoseconds.
#[derive(Clone, Copy)]
struct Durations {
    warm_up_ns: f64,
    end_ns: f64,
}

impl Durations {
    fn scaled(self, scale: f64) -> Self {
        Self { warm_up_ns: self.warm_up_ns * scale, end_ns: self.end_ns * scale }
    }
}

/// Lets the sources of all hosts send until the end.
fn send(network: &Network, seed: u64, times: Durations) -> Sent {
    let traffic = Traffic {
        routing: Routing::Ecmp,
        bytes: BYTES,
        span_ns: times.end_ns,
        sources: SOURCES,
        interval_unit_ns: 2_000.0,
        period_unit_ns: 100_000.0,
        seed,
    };
    let (mut pairs, mut rng) = (Pairs::default(), Rng::with_seed(seed));
    let packets = traffic.packets(HOSTS, &mut pairs, &mut rng);
    let mut sent: Vec<Vec<Nanos>> = vec![Vec::new(); pairs.all.len()];
    let mut counted = [0_u64; HOSTS as usize];
    for packet in packets {
        sent[packet.flow as usize].push(Nanos(packet.at_ns as u64));
        let from = pairs.all[packet.flow as usize].0;
        counted[usize::from(from)] += u64::from(packet.at_ns >= times.warm_up_ns);
    }
    let load = |count: u64| count as f64 * traffic.packet_ns() / (times.end_ns - times.warm_up_ns);
    let all: Vec<Vec<Option<u32>>> = (0..network.nodes.len()).map(|node| distances(network, node)).collect();
    let flow = |(number, times): (usize, Vec<Nanos>)| {
        let (from, to) = pairs.all[number];
        let [source, target] = [from, to].map(|host| network.hosts[usize::from(host)].at.node);
        Flow {
            from: from.into(),
            to: to.into(),
            template: template(number, (from, to)),
            payload_at: HEADER_BYTES,
            first_ns: Nanos(0),
            interval_ns: Nanos(0),
            packets: times.len() as u32,
            times: Some(times.into()),
            hops_max: all[target][source].unwrap_or(0),
            routes: Vec::new(),
        }
    };
    let flows = sent.into_iter().enumerate().filter(|(_, times)| !times.is_empty()).map(flow).collect();
    Sent {
        flows,
        load: load(counted.iter().sum()) / f64::from(HOSTS),
        load_max: load(counted.iter().copied().max().unwrap_or(0)),
    }
}

/// Runs the tree with each service time in both modes. Calls `print` with the JSON objects of the layers and
/// of all switches. `usual` are the settings for the mode `nonblocking`.
///
/// # Errors
/// Returns an error if a switch refuses its entries, or if `print` fails.
pub fn run_all(
    seed: u64,
    scale: f64,
    usual: Setting,
    mut print: impl FnMut(String) -> std::io::Result<()>,
) -> Result<(), Box<dyn Error>> {
    for (service_ns, times) in SERVICES {
        let times = times.scaled(scale);
        let (mut network, load, load_max) = tree(seed, times)?;
        let queued = Setting { service_ns, ..usual };
        let blocking = Setting { mode: Mode::Blocking, queue: 0, ..queued };
        for setting in [queued, blocking] {
            network.buffers = Some(buffers(&setting, times));
            let report = run(&network)?;
            let Some(found) = &report.buffers else { continue };
            for layer in found.layers.iter().chain(&found.total()) {
                let cell = cell(seed, setting, found, layer, times);
                print(serde_json::to_string(&TreeCell { load, load_max, ..cell })?)?;
            }
        }
    }
    Ok(())
}

/// Returns the tree with its entries and flows, the mean load of the links of hosts, and the largest one.
fn tree(seed: u64, times: Durations) -> Result<(Network, f64, f64), Box<dyn Error>> {
    let links = TreeLinks { delay_ns: DELAY_NS, rate_bps: Some(RATE_BPS), queue_frames: QUEUE_FRAMES };
    let mut network = fat_tree(PORTS, links);
    network.seed = seed;
    let hosts: Vec<usize> = (0..HOSTS.into()).collect();
    let changes = ecmp(&network, &hosts, |host| HostAddress(address(host)))?;
    network.nodes.iter_mut().zip(changes).for_each(|(node, changes)| node.setup.changes = changes);
    let Sent { flows, load, load_max } = send(&network, seed, times);
    network.flows = flows;
    Ok((network, load, load_max))
}

fn buffers(setting: &Setting, times: Durations) -> SwitchBuffers {
    SwitchBuffers {
        port_cache: Some(setting.port_cache()),
        records: RECORDS,
        ring: RING,
        host_link: Some((RATE_BPS, QUEUE_FRAMES)),
        begin_ns: Nanos(times.warm_up_ns as u64),
        end_ns: Some(Nanos(times.end_ns as u64)),
    }
}

fn cell(
    seed: u64,
    setting: Setting,
    found: &BufferReport,
    layer: &LayerReport,
    times: Durations,
) -> TreeCell {
    let total = layer.layer.is_none();
    let only = |count: u64| if total { count } else { 0 };
    let dropped = |reason: &str| layer.dropped.get(reason).copied().unwrap_or(0);
    let delay = if total { &found.latency } else { &layer.delay };
    let misses = &layer.misses;
    let link_full = found.lost.get("link_queue_full").copied().unwrap_or(0);
    TreeCell {
        part: Part::Tree,
        seed,
        sources: SOURCES,
        position: layer.layer.map_or("total", |layer| layer.name()),
        routing: Routing::Ecmp,
        bytes: BYTES,
        setting,
        span_ns: times.end_ns - times.warm_up_ns,
        warm_up_ns: times.warm_up_ns,
        switches: layer.switches,
        offered: layer.offered,
        received: layer.received,
        forwarded: layer.forwarded,
        hits: layer.express,
        record_hits: misses.hits,
        merged: misses.merged,
        searched: misses.searched,
        passed: misses.passed,
        uncached: misses.uncached,
        dropped: misses.dropped,
        evicted: misses.evicted,
        queue_full: dropped("miss_queue_full"),
        ring_full: dropped("ring_full"),
        link_full: if total { link_full } else { dropped("link_queue_full") },
        p50_ns: delay.quantile_ns(0.5),
        p99_ns: delay.quantile_ns(0.99),
        p99_9_ns: delay.quantile_ns(0.999),
        sent: only(found.sent),
        delivered: only(found.delivered),
        lost: only(found.lost.values().sum()),
        overtaken: only(found.overtaken),
        load: 0.0,
        load_max: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_hosts_are_half_full_on_average_and_none_is_full() {
        let loads = [1, 2, 3].map(|seed| {
            let (_, load, load_max) = tree(seed, SERVICES[0].1).unwrap();
            assert!(load_max < 1.0, "{load} {load_max}");
            load
        });
        let mean = loads.iter().sum::<f64>() / 3.0;
        assert!((mean - 0.5).abs() < 0.01, "{loads:?}");
    }

    #[test]
    fn each_packet_is_counted_once_in_each_layer_and_flows_stay_in_order() {
        let usual = crate::queued(32, 64);
        let mut lines = Vec::new();
        let print = |line: String| {
            lines.push(serde_json::from_str::<serde_json::Value>(&line).unwrap());
            Ok(())
        };
        run_all(1, 0.05, usual, print).unwrap();
        assert_eq!(lines.len(), 2 * 2 * 4);
        for line in &lines {
            let of = |key: &str| line[key].as_u64().unwrap();
            let keys = ["record_hits", "merged", "searched", "passed", "uncached", "dropped"];
            assert_eq!(of("received"), keys.map(of).iter().sum::<u64>(), "{line}");
            assert_eq!(of("overtaken"), 0, "{line}");
            if line["position"] == "total" {
                assert!(of("record_hits") > 10 && of("searched") > 100, "{line}");
                assert_eq!((of("switches"), of("sent")), (80, of("delivered") + of("lost")), "{line}");
            }
        }
    }
}
