// SPDX-License-Identifier: Apache-2.0
//! Tests of networks whose switches forward by flow entries.

use super::refusal;
use crate::network::plan::examples::plan;
use crate::network::tests::{read, read_with, run};
use crate::network::{LayerOutcome, NetworkOutcome};
use crate::scenario::Overrides;
use config::PortCacheMode;
use sim::network::{EcmpError, Network, Node};

const CACHED: &str = "forwarding = \"entries\"\nrate_bps = 1000000000\nqueue = 200\nring = 64\n\
    [network.traffic]\nflows = 2\npackets = 20\ninterval = \"100us\"\n\
    [[datapath]]\n[datapath.port_cache]\nmode = \"nonblocking\"\nentries = 4\nrecords = 16\nqueue = 8\n\
    searcher = \"lab\"\nservice = \"10us\"\n";

fn with_mode(mode: PortCacheMode) -> NetworkOutcome {
    let overrides = Overrides { port_cache: Some(mode), ..Overrides::default() };
    read_with(&plan("tree.json"), CACHED, &overrides).unwrap().run().unwrap()
}

fn dropped(layer: &LayerOutcome, reason: &str) -> u64 {
    layer.lost.get(reason).copied().unwrap_or(0)
}

#[test]
fn each_layer_counts_each_packet_once() {
    for mode in [PortCacheMode::Nonblocking, PortCacheMode::Blocking] {
        let outcome = with_mode(mode);
        let found = outcome.by_entries.as_ref().unwrap();
        let names: Vec<_> = found.layers.iter().map(|layer| (layer.layer, layer.switches)).collect();
        assert_eq!(names, [("edge", 8), ("aggregation", 8), ("core", 4)]);
        for layer in found.layers.iter().chain([&found.total]) {
            let cache = layer.port_cache.unwrap();
            let sum = cache.hits + cache.merged + cache.new + cache.passed + cache.uncached + cache.dropped;
            assert_eq!(layer.received, sum, "{layer:?}");
            assert_eq!(layer.offered, layer.received + dropped(layer, "ring_full"), "{layer:?}");
            // Uncached packets are dropped while the searcher has too many unserved searches.
            let refused = dropped(layer, "miss_queue_full") - cache.dropped;
            let is_limited = refused > 0 || layer.layer != "edge";
            assert!(refused <= cache.uncached, "{layer:?}");
            assert!(is_limited || mode == PortCacheMode::Blocking, "{layer:?}");
            // A packet that finds its link full has left the switch.
            let gone = layer.forwarded + layer.lost.values().sum::<u64>() - dropped(layer, "link_queue_full");
            assert_eq!(layer.offered, gone, "{layer:?}");
            assert!(cache.hits > 100 && cache.new > 100 && layer.delay_ns.max >= 10_000.0, "{layer:?}");
        }
        assert_eq!(found.sent, found.delivered + found.lost.values().sum::<u64>());
        assert_eq!((found.sent, found.delivered), (outcome.sent, outcome.delivered));
        assert_eq!((found.overtaken, outcome.right, found.port_cache), (0, true, mode.name()));
        assert!(found.delivered > found.sent / 8, "{}", found.delivered);
    }
}

#[test]
fn followers_count_as_hits_and_the_seed_decides() {
    let [one, same] = [0, 1].map(|_| with_mode(PortCacheMode::Nonblocking));
    assert_eq!(one, same);
    let other = Overrides { seed: Some(9), ..Overrides::default() };
    let other = read_with(&plan("tree.json"), CACHED, &other).unwrap().run().unwrap();
    assert_ne!(one.by_entries, other.by_entries);
    let total = &one.by_entries.unwrap().total;
    let cache = total.port_cache.unwrap();
    let rate = 100.0 * (cache.hits + cache.merged) as f64 / total.offered as f64;
    assert!((rate - total.hit_rate_percent).abs() < 0.5, "{rate} {total:?}");
}

#[test]
fn without_caches_all_packets_arrive_on_shortest_paths() {
    let outcome = with_mode(PortCacheMode::Off);
    let found = outcome.by_entries.as_ref().unwrap();
    assert_eq!((outcome.lost, outcome.hops_beyond_shortest.max, outcome.forwarding), (0, 0, "entries"));
    assert_eq!((found.port_cache, found.total.port_cache, found.total.delay_ns.max), ("off", None, 0.0));
    // 16 hosts: 16 pairs at one edge switch, 32 more in one pod, and 192 between pods.
    assert_eq!(found.total.offered, 2 * 20 * (16 + 32 * 3 + 192 * 5));
    // A tree has no more paths than pairs and flows, and all core switches are used.
    assert!(outcome.paths > 240 && found.layers[2].offered == 2 * 20 * 192, "{found:?}");
}

#[test]
fn packets_before_the_end_of_the_warm_up_are_not_counted() {
    let all = run(&plan("tree.json"), CACHED).by_entries.unwrap();
    let text = CACHED.replace("ring = 64", "ring = 64\nwarm_up = \"1ms\"");
    let outcome = run(&plan("tree.json"), &text);
    let found = outcome.by_entries.unwrap();
    assert_eq!((outcome.sent, found.warm_up_ns), (all.sent, 1_000_000));
    assert!(found.sent > all.sent / 4 && found.sent < all.sent * 3 / 4, "{} {}", found.sent, all.sent);
    assert_eq!(found.sent, found.delivered + found.lost.values().sum::<u64>());
    let rates = [&all, &found].map(|outcome| outcome.total.hit_rate_percent);
    assert!(rates[1] > rates[0], "the first packet of each flow starts a search: {rates:?}");
}

#[test]
fn plans_without_layers_have_one_row() {
    let outcome = run(&plan("abilene.json"), CACHED);
    let found = outcome.by_entries.unwrap();
    assert_eq!((found.layers.len(), found.layers[0].layer, found.layers[0].switches), (1, "none", 11));
    assert_eq!((outcome.right, outcome.hops_beyond_shortest.max), (true, 0));
}

/// Rows of mistakes: the replaced text, its replacement, and the expected message.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("\"entries\"", "\"rules\"", "network.forwarding: \"rules\" is unknown; use \"plan\" or \"entries\""),
    ("forwarding = \"entries\"\n", "", "datapath: needs network.forwarding = \"entries\"; add it"),
    ("forwarding = \"entries\"\n", "", "network.ring: needs network.forwarding = \"entries\"; add it"),
    ("forwarding = \"entries\"\n", "", "network.traffic.flows: needs network.forwarding = \"entries\""),
    ("ring = 64", "ring = 0", "network.ring: 0 is out of range; use 1 to 65536"),
    ("ring = 64", "ring = 52429", "network.ring: 52429 packets for each of 80 ports; use at most 52428"),
    ("ring = 64", "warm_up = \"2h\"", "network.warm_up: is too long; use at most \"1h\""),
    ("ring = 64", "detection = \"1ms\"", "network.detection: needs the forwarding of the plan"),
    ("flows = 2", "flows = 0", "network.traffic.flows: 0 is out of range; use 1 to 10000"),
    ("flows = 2", "flows = 2\npaths = 2", "network.traffic.paths: needs the forwarding of the plan"),
    (
        "flows = 2",
        "flows = 10000",
        "network.traffic: has 2400000 flows of 240 pairs; the maximum is 2000000: give sample or flows",
    ),
    ("[[datapath]]", "[[datapath]]\n[[datapath]]", "datapath: there are 2; give one"),
    ("[[datapath]]", "[[datapath]]\nrules = \"\"", "datapath.rules: cannot be set in a network"),
    (
        "[[datapath]]",
        "[[datapath]]\nlanes = { enabled = true }",
        "datapath.lanes: cannot be set in a network",
    ),
    (
        "[[datapath]]",
        "[[datapath]]\nexpress = { records = 262144 }",
        "datapath.express.records: 262144 for each of 20 switches; use at most 209715",
    ),
    (
        "[[datapath]]",
        "[[datapath]]\nexpress = { enabled = false }",
        "datapath.port_cache.mode: needs path records",
    ),
    ("entries = 4", "entries = 0", "datapath.port_cache.entries: 0 is out of range; use 1 to 4096"),
    (
        "queue = 8",
        "queue = 4096",
        "datapath.port_cache.queue: 4096 packets and 4 entries of each of 80 ports",
    ),
    ("\"lab\"", "\"inline\"", "datapath.port_cache.service: is for searcher = \"lab\""),
    ("\"nonblocking\"", "\"fast\"", "datapath.port_cache.mode: \"fast\" is unknown; use \"off\""),
];

#[test]
fn every_mistake_has_a_message() {
    for (what, by, says) in MISTAKES {
        assert!(CACHED.contains(what), "{what}");
        let refusal = read(&plan("tree.json"), &CACHED.replacen(what, by, 1)).unwrap_err();
        assert!(refusal.contains(says), "{by}: {refusal}, not {says}");
    }
    let failure = format!("{CACHED}[[network.failure]]\nat = \"1ms\"\neach = \"link\"\nlasting = \"1ms\"\n");
    let refusal = read(&plan("tree.json"), &failure).unwrap_err();
    assert!(refusal.contains("network.failure: needs the forwarding of the plan"), "{refusal}");
    let overrides = Overrides { port_cache: Some(PortCacheMode::Off), ..Overrides::default() };
    let refusal = read_with(&plan("tree.json"), "", &overrides).unwrap_err();
    assert!(refusal.contains("--port-cache: needs [[datapath]] in a network"), "{refusal}");
}

#[test]
fn too_many_buckets_are_refused_with_the_number_of_hosts_that_fit() {
    let node = Node { name: "core".to_owned(), ..Node::default() };
    let network = Network { nodes: vec![node], ..Network::default() };
    let of = |hosts| refusal(&EcmpError::Buckets { node: 0, hosts }, &network).to_string();
    assert!(
        of(40).contains("network.traffic: needs more groups for shortest paths than fit: core would have")
    );
    assert!(
        of(40).ends_with("; give sample, or pairs with 40 receiving hosts, which fit here"),
        "{}",
        of(40)
    );
    assert!(of(0).ends_with("; use a plan with fewer switches"), "{}", of(0));
}
