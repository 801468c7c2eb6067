// SPDX-License-Identifier: Apache-2.0
//! Tests of fat trees whose switches have port caches.

use super::*;
use flow::Nanos;
use port_cache::{MissLimits, MissMode, PortCacheConfig};
use std::sync::Arc;
use wire::PacketBuilder;

const PACKETS: u32 = 20;

fn address(host: usize) -> [u8; 4] {
    [10, 0, host as u8, 1]
}

fn mac(host: usize) -> [u8; 6] {
    [2, 0, 0, 0, 0, host as u8]
}

fn flow(from: usize, to: usize, number: usize) -> Flow {
    let packet = PacketBuilder::ethernet(mac(to), mac(from)).ipv4(address(from), address(to));
    let packet = packet.udp(1_024 + number as u16, 9).no_udp_checksum().payload(&[0; 22]).build();
    let begin = (number as u64 * 7_919) % 1_200_000;
    Flow {
        from,
        to,
        template: packet.into(),
        payload_at: 42,
        first_ns: Nanos(begin),
        interval_ns: Nanos(3_000 + (number as u64 * 131) % 40_000),
        packets: PACKETS,
        times: None,
        hops_max: 4,
        routes: Vec::new(),
    }
}

fn cache(mode: MissMode, service_ns: u64) -> PortCacheConfig {
    let limits = MissLimits { entries: 4, queue: 4, records: 16, ..MissLimits::USUAL };
    PortCacheConfig { mode, limits, service_ns: Nanos(service_ns), ..PortCacheConfig::default() }
}

/// Returns a tree of 4-port switches in which each host sends to all others.
fn tree(port_cache: Option<PortCacheConfig>, seed: u64) -> Network {
    let links = TreeLinks { delay_ns: Nanos(500), rate_bps: Some(1_000_000_000), queue_frames: 100 };
    let mut network = fat_tree(4, links);
    let hosts = network.hosts.len();
    let pairs = (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to)));
    let pairs = pairs.filter(|(from, to)| from != to).enumerate();
    network.flows = pairs.map(|(number, (from, to))| flow(from, to, number)).collect();
    network.seed = seed;
    network.buffers = Some(SwitchBuffers {
        port_cache,
        records: 256,
        ring: 64,
        host_link: Some((1_000_000_000, 100)),
        begin_ns: Nanos(0),
        end_ns: None,
    });
    with_entries(network)
}

fn with_entries(mut network: Network) -> Network {
    let hosts: Vec<usize> = (0..network.hosts.len()).collect();
    let changes = ecmp(&network, &hosts, |host| HostAddress(address(host))).unwrap();
    network.nodes.iter_mut().zip(changes).for_each(|(node, changes)| node.setup.changes = changes);
    network
}

fn buffers(report: &Report) -> &BufferReport {
    report.buffers.as_ref().unwrap()
}

/// Checks that the counters of a layer count each packet once.
fn check(layer: &LayerReport) {
    let (misses, name) = (&layer.misses, layer.layer.map(Layer::name));
    let dropped = |reason| layer.dropped.get(reason).copied().unwrap_or(0);
    assert_eq!(misses.arrived(), layer.received, "{name:?}: {misses:?}");
    assert_eq!(layer.offered, layer.received + dropped("ring_full"), "{name:?}: {misses:?}");
    assert_eq!(layer.offered, layer.forwarded + layer.lost(), "{name:?}: {:?}", layer.dropped);
    assert_eq!(misses.dropped, dropped("miss_queue_full"), "{name:?}: {misses:?}");
    assert_eq!(layer.delay.count(), layer.forwarded, "{name:?}");
    assert!(misses.hits > 100 && misses.searched > 100, "{name:?}: {misses:?}");
}

#[test]
fn every_packet_is_counted_once_in_each_switch() {
    for mode in [MissMode::NonBlocking, MissMode::Blocking] {
        let report = run(&tree(Some(cache(mode, 10_000)), 3)).unwrap();
        let total = buffers(&report).total().unwrap();
        buffers(&report).layers.iter().chain([&total]).for_each(check);
        assert_eq!(buffers(&report).layers.iter().map(|layer| layer.switches).collect::<Vec<_>>(), [8, 8, 4]);
        assert_eq!(report.sent, 240 * u64::from(PACKETS));
        assert_eq!(report.sent, report.delivered + report.lost());
        assert_eq!(buffers(&report).overtaken, 0);
        assert!(report.is_right());
        assert!(
            report.delivered > report.sent / 2 && report.lost() > 0,
            "{} {:?}",
            report.delivered,
            report.lost
        );
        assert!(total.misses.merged > 100 || mode == MissMode::Blocking, "{:?}", total.misses);
    }
}

#[test]
fn a_network_without_caches_delivers_the_same_packets_faster() {
    let without = run(&tree(None, 3)).unwrap();
    assert_eq!((without.delivered, without.lost()), (without.sent, 0));
    let with = run(&tree(Some(cache(MissMode::NonBlocking, 100)), 3)).unwrap();
    assert_eq!((with.delivered, with.lost()), (with.sent, 0));
    assert_eq!((with.paths, with.hops), (without.paths, without.hops));
    assert!(with.latency.mean_ns() > without.latency.mean_ns() + 1.0);
    assert_eq!(buffers(&without).total().unwrap().misses, port_cache::MissFigures::default());
}

#[test]
fn equal_seeds_give_equal_reports() {
    let of = |seed| run(&tree(Some(cache(MissMode::NonBlocking, 10_000)), seed)).unwrap();
    let [one, same, other] = [of(3), of(3), of(4)];
    assert!(one.buffers == same.buffers && one.lost == same.lost && one.latency == same.latency);
    assert!(one.buffers != other.buffers);
}

#[test]
fn flows_of_a_pair_take_all_shortest_paths() {
    let mut network = tree(None, 3);
    network.flows = (0..64).map(|number| flow(0, 15, number)).collect();
    network.flows.iter_mut().for_each(|flow| flow.interval_ns = Nanos(200_000));
    let report = run(&network).unwrap();
    assert_eq!((report.paths, report.lost(), report.hops.min, report.hops.max), (4, 0, 4, 4));
}

#[test]
fn only_the_stated_time_is_counted() {
    let mut network = tree(Some(cache(MissMode::NonBlocking, 10_000)), 3);
    let all = run(&network).unwrap();
    let mut part = |begin_ns, end_ns| {
        if let Some(buffers) = &mut network.buffers {
            (buffers.begin_ns, buffers.end_ns) = (Nanos(begin_ns), Some(Nanos(end_ns)));
        }
        run(&network).unwrap()
    };
    let parts = [part(0, 500_000), part(500_000, 1_000_000), part(1_000_000, 1_000_000_000)];
    let sum = |of: fn(&BufferReport) -> u64| parts.iter().map(|part| of(buffers(part))).sum::<u64>();
    let received = |report: &BufferReport| report.total().unwrap().received;
    assert_eq!(sum(received), received(buffers(&all)));
    let hits = |report: &BufferReport| report.total().unwrap().misses.hits;
    assert_eq!(sum(hits), hits(buffers(&all)));
    assert_eq!(sum(|report| report.sent), all.sent);
    assert_eq!(sum(|report| report.delivered), all.delivered);
    assert!(parts.iter().all(|part| part.delivered == all.delivered && buffers(part).sent > 100));
}

#[test]
fn packets_are_sent_at_the_given_times() {
    let mut network = tree(None, 3);
    let times: Arc<[Nanos]> = [5, 5, 90_000].map(Nanos).into();
    network.flows = vec![Flow { packets: 3, times: Some(times), ..flow(0, 1, 1) }];
    let report = run(&network).unwrap();
    // Two links of 1 Gbit/s to hosts, and none between switches. The second packet waits for the first one.
    assert_eq!((report.delivered, report.end_ns), (3, Nanos(90_000 + 2 * 704)));
    assert_eq!((report.latency.max_ns() / 704.0).round(), 3.0);
}

#[test]
fn switches_with_receive_rings_cannot_fail() {
    let mut network = tree(None, 3);
    network.acts = vec![(Nanos(1), Act::Link { link: 0, works: false })];
    assert!(matches!(run(&network), Err(NetworkError::Acts)));
}
