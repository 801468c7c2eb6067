// SPDX-License-Identifier: Apache-2.0
//! Tests of networks with plans from the route planners. Correct plans must pass, and each planted fault must
//! be detected.

use super::plan::examples::{plan, tree_with_external_hosts};
use super::*;
use crate::scenario::{Overrides, Scenario, parse};
use config::PortCacheMode;
use serde_json::{Value, json};
use std::fs;

/// Reads a scenario for a plan. The plan is written to a file in the same directory.
pub(super) fn read(plan: &Value, rest: &str) -> Result<NetworkScenario, String> {
    read_with(plan, rest, &Overrides::default())
}

pub(super) fn read_with(plan: &Value, rest: &str, overrides: &Overrides) -> Result<NetworkScenario, String> {
    let name = std::thread::current().name().unwrap_or("main").replace(':', "-");
    let folder = std::env::temp_dir().join(format!("shunt-network-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("plan.json"), plan.to_string()).unwrap();
    let text = format!("seed = 3\n[network]\nplan = \"plan.json\"\n{rest}");
    let read = parse(&folder.join("scenario.toml"), &text, overrides);
    fs::remove_dir_all(&folder).unwrap();
    match read {
        Ok(Scenario::Network(scenario)) => Ok(*scenario),
        Ok(Scenario::Switch(_)) => panic!("expected a scenario of a network"),
        Err(mistakes) => {
            let refusal: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            Err(refusal.join("\n").replace(&folder.display().to_string(), ""))
        }
    }
}

pub(super) fn run(plan: &Value, rest: &str) -> NetworkOutcome {
    let outcome = read(plan, rest).unwrap().run().unwrap();
    assert_eq!(outcome.sent, outcome.delivered + outcome.lost);
    outcome
}

/// Returns the numbers of delivered and of lost packets that encountered this kind of failure.
fn met(outcome: &NetworkOutcome, failure: &str) -> (u64, u64) {
    let found = outcome.met.iter().find(|met| met.failure == failure);
    found.map_or((0, 0), |met| (met.delivered, met.lost))
}

/// Returns a switch of a plan by its name.
fn switch<'a>(plan: &'a mut Value, name: &str) -> &'a mut Value {
    let switches = plan["switches"].as_array_mut().unwrap();
    switches.iter_mut().find(|switch| switch["name"] == name).unwrap()
}

const FAILURES: &str = "delay = \"1ms\"\ndetection = \"10ms\"\n\
    [network.traffic]\npackets = 300\ninterval = \"10ms\"\n\
    [[network.failure]]\nat = \"50ms\"\neach = \"link\"\nlasting = \"50ms\"\n\
    [[network.failure]]\nat = \"1600ms\"\neach = \"node\"\nlasting = \"50ms\"\n";

const RENUMBER: &str = "delay = \"1ms\"\n[network.traffic]\npackets = 200\ninterval = \"1ms\"\n\
    [network.renumber]\nat = \"20ms\"\nstep = \"50ms\"\nspread = \"40ms\"\n";

#[test]
fn tags_use_every_path_of_a_tree() {
    let outcome = run(&plan("tree.json"), "");
    assert!(outcome.right && outcome.lost == 0, "{outcome:?}");
    // 192 pairs in different pods have 4 paths, 32 pairs at two edges of a pod have 2 paths, and 16 pairs at
    // one edge have 1 path.
    assert_eq!((outcome.pairs, outcome.flows, outcome.paths), (240, 848, 848));
    assert_eq!((outcome.hops.max, outcome.hops_beyond_shortest.max), (4, 0));
    assert_eq!((outcome.header.on_links_bits.min, outcome.header.on_links_bits.max), (64, 64));
    let state = outcome.state;
    assert_eq!((state.without_entries, state.gates.max, state.labels.max), (12, 6, 0));
    assert_eq!((state.entries.max, state.groups.max), (16, 14));
    let of = |name: &str| {
        let found = outcome.switches.iter().find(|switch| switch.name == name).unwrap();
        (found.entries, found.groups, found.labels, found.gates)
    };
    assert_eq!([of("es1"), of("as1"), of("cs1")], [(16, 14, 0, 4), (0, 0, 0, 4), (0, 0, 0, 6)]);
    assert_eq!(outcome.switches.len(), 20);
}

#[test]
fn keys_connect_all_hosts_of_a_tree_and_of_a_backbone() {
    let plans = [("keyed-tree.json", 240, 12), ("abilene.json", 110, 0), ("polynomials.json", 110, 0)];
    for (name, pairs, without_entries) in plans {
        let outcome = run(&plan(name), "");
        assert!(outcome.right && outcome.lost == 0, "{outcome:?}");
        assert_eq!((outcome.pairs as u64, outcome.paths, outcome.delivered), (pairs, pairs, pairs));
        assert_eq!(outcome.hops_beyond_shortest.max, 0);
        assert_eq!(outcome.state.without_entries, without_entries);
    }
}

#[test]
fn the_seed_determines_the_outcome_and_the_sample() {
    let text = "[network.traffic]\nsample = 20\npaths = 2\n";
    let sampled = |seed| {
        let overrides = Overrides { seed: Some(seed), ..Overrides::default() };
        let scenario = read_with(&plan("tree.json"), text, &overrides).unwrap();
        let pairs: Vec<_> = scenario.network.flows.iter().map(|flow| (flow.from, flow.to)).collect();
        (pairs, serde_json::to_string(&scenario.run().unwrap()).unwrap())
    };
    assert_eq!(sampled(4), sampled(4));
    assert_ne!(sampled(4).0, sampled(5).0);
    let outcome = run(&plan("tree.json"), "[network.traffic]\nsample = 20\npaths = 2\n");
    assert_eq!((outcome.pairs, outcome.flows as u64), (20, outcome.paths));
    let all = run(&plan("keyed-tree.json"), "[network.traffic]\nsample = 1000\n");
    assert!(all.pairs > 200 && all.right, "nearly all of the 224 pairs between edges are drawn: {all:?}");
}

#[test]
fn protected_packets_are_not_lost_after_detection() {
    let outcome = run(&plan("abilene.json"), FAILURES);
    assert!(outcome.right, "{outcome:?}");
    let (delivered, lost) = met(&outcome, "protected hop, detected");
    assert!(delivered > 1_000 && lost == 0, "{outcome:?}");
    let Protection { links, switches } = outcome.protection;
    assert_eq!((links.used, links.protected, links.failed, links.exercised), (14, 12, 14, 12));
    assert_eq!((switches.used, switches.protected, switches.failed, switches.exercised), (10, 7, 10, 7));
    assert!(outcome.failures.len() == 25 && outcome.failures.iter().all(|failure| failure.packets > 0));
    assert!(met(&outcome, "failure off the path").0 > 5_000);
    assert!(met(&outcome, "not yet detected").1 > 100);
    assert!(outcome.hops.max > 5 && outcome.hops.max <= outcome.hop_budget.max, "{outcome:?}");
}

#[test]
fn polynomials_protect_as_many_parts_as_integers() {
    let outcome = run(&plan("polynomials.json"), FAILURES);
    assert!(outcome.right, "{:?}", outcome.met);
    let Protection { links, switches } = outcome.protection;
    assert_eq!((links.protected, links.exercised, switches.protected, switches.exercised), (12, 12, 7, 7));
}

/// The run samples 800 pairs, whose routes together cross all links.
#[test]
fn each_link_of_a_large_backbone_fails() {
    let outcome = run(
        &plan("geant2012.json"),
        "delay = \"1ms\"\ndetection = \"5ms\"\n[network.traffic]\npackets = 290\ninterval = \"10ms\"\n\
        [[network.failure]]\nat = \"50ms\"\neach = \"link\"\nlasting = \"30ms\"\nevery = \"45ms\"\n\
        [network.require]\nprotected_links = 0.86\nexercised = true\n",
    );
    assert!(outcome.right, "{:?}", outcome.met);
    assert_eq!((outcome.missed.as_slice(), outcome.sent), (&[][..], 800 * 290));
    // Eight links lead to a leaf, and therefore cannot be protected.
    let links = outcome.protection.links;
    assert_eq!((links.total, links.used, links.protected, links.exercised), (61, 61, 53, 53));
    assert!(met(&outcome, "protected hop, detected").0 > 3_000, "{:?}", outcome.met);
}

#[test]
fn a_loss_that_no_failure_explains_is_reported() {
    let mut plan = plan("abilene.json");
    let routes = plan["plans"][0]["routes"].as_array_mut().unwrap();
    let route = routes.iter_mut().find(|route| route["from"] == "Seattle" && route["to"] == "Kansas City");
    let segment = &mut route.unwrap()["segments"][0];
    segment["key"] = json!(format!("{}1", segment["key"].as_str().unwrap()));
    segment["bits"] = json!(64);
    let outcome = run(
        &plan,
        "[network.traffic]\npackets = 50\npairs = [[\"Seattle\", \"Kansas City\"]]\n\
        [[network.failure]]\nat = \"1ms\"\nnode = \"New York\"\n\
        [[network.failure]]\nat = \"2ms\"\nnode = \"Atlanta\"\n",
    );
    assert_eq!((outcome.lost_wrongly, outcome.right), (50, false), "{:?}", outcome.reasons);
}

#[test]
fn a_failure_detected_at_the_arrival_of_a_packet_causes_no_loss() {
    let outcome = run(
        &plan("abilene.json"),
        "delay = \"10us\"\ndetection = \"5us\"\n[network.traffic]\npackets = 2000\ninterval = \"1us\"\n\
        [[network.failure]]\nat = \"100us\"\neach = \"link\"\nlasting = \"50us\"\n",
    );
    assert!(outcome.right && outcome.sent == 220_000, "{:?}", outcome.met);
    assert!(met(&outcome, "protected hop, detected").0 > 100, "{:?}", outcome.met);
}

#[test]
fn unmet_requirements_are_reported() {
    let missed = |name: &str, rest: &str| {
        let outcome = run(&plan(name), rest);
        assert!(outcome.right, "{:?}", outcome.met);
        outcome.missed
    };
    let none: [&str; 0] = [];
    let tested = "\n[network.require]\nexercised = true\n";
    let all =
        format!("{FAILURES}{tested}delivered = 0.9\nprotected_links = 0.85\nprotected_switches = 0.7\n");
    assert_eq!(missed("abilene.json", &all), none);
    assert_eq!(
        missed("abilene.json", "[network.require]\nprotected_links = 0.9\n"),
        ["protected_links: 12 of 14 used links are protected; the required share is 0.9"]
    );
    assert_eq!(
        missed("abilene.json", "rate_bps = 1000\nqueue = 0\n[network.require]\ndelivered = 0.99\n"),
        ["delivered: 19 of 110 packets were delivered; the required share is 0.99"]
    );
    let late = "[[network.failure]]\nat = \"1h\"\neach = \"node\"\nlasting = \"10ms\"\n";
    let nothing = "exercised: no protected part failed while packets reached it";
    let unmet = "exercised: no packet encountered a failure: New York at 3600000.000 ms, and 10 more";
    assert_eq!(missed("abilene.json", &format!("{late}{tested}")), [unmet, nothing]);
    // All packets that encountered the failure did so before its detection.
    let short = "[network.traffic]\ninterval = \"1us\"\npackets = 200\n\
        [[network.failure]]\nat = \"100us\"\nlink = [\"Denver\", \"Kansas City\"]\n";
    let untested = "exercised: no packet encountered a failure of a protected part after its detection: \
        Denver-Kansas City at 0.100 ms";
    assert_eq!(missed("abilene.json", &format!("{short}{tested}")), [untested, nothing]);
    assert_eq!(missed("renumbered.json", &format!("{RENUMBER}{tested}delivered = 1\n")), none);
    let late = "[network.renumber]\nat = \"1h\"\n";
    let unled = "exercised: no delivered packet had a key of epoch 1";
    assert_eq!(missed("renumbered.json", &format!("{late}{tested}")), [unled]);
    // A plan without guards promises no protection.
    let mut plan = plan("abilene.json");
    for route in plan["plans"][0]["routes"].as_array_mut().unwrap() {
        let guards = route["segments"][0]["guards"].as_array_mut().unwrap();
        guards.iter_mut().for_each(|guard| *guard = json!(""));
    }
    let outcome = run(&plan, &all);
    assert!(outcome.right && outcome.missed.len() == 3, "{:?}", outcome.missed);
    assert_eq!((outcome.protection.links.protected, outcome.protection.links.failed), (0, 14));
}

#[test]
fn a_network_is_renumbered_under_load_without_loss() {
    let outcome = run(&plan("renumbered.json"), RENUMBER);
    assert!(outcome.right && outcome.lost == 0, "{outcome:?}");
    let by = outcome.delivered_by.unwrap();
    assert!(by.epoch_0 > 5_000 && by.epoch_1 > 5_000 && by.epoch_0 + by.epoch_1 == outcome.sent, "{by:?}");
    // While switches accept both numberings, they have twice as many labels.
    assert_eq!(outcome.state.labels.max, 8);
    let old = run(&plan("abilene.json"), "");
    assert_eq!((old.state.labels.max, old.state.entries), (4, outcome.state.entries));
}

#[test]
fn a_bank_missing_during_renumbering_is_detected() {
    let mut plan = plan("renumbered.json");
    let banks = switch(&mut plan, "Denver")["banks"].as_array_mut().unwrap();
    banks.retain(|bank| bank["epoch"] == 0);
    let outcome = run(&plan, RENUMBER);
    assert!(!outcome.right && outcome.lost_wrongly > 100, "{outcome:?}");
}

#[test]
fn a_wrong_id_is_detected() {
    let mut plan = plan("keyed-tree.json");
    let bank = &mut switch(&mut plan, "cs1")["banks"][0];
    bank["id"] = json!(bank["id"].as_u64().unwrap() + 1);
    let outcome = run(&plan, "");
    assert!(!outcome.right && outcome.lost_wrongly > 0, "{outcome:?}");
}

#[test]
fn a_wrong_key_is_detected() {
    let mut plan = plan("abilene.json");
    let segment = &mut plan["plans"][0]["routes"][7]["segments"][0];
    segment["key"] = json!(format!("{}1", segment["key"].as_str().unwrap()));
    segment["bits"] = json!(64);
    let outcome = run(&plan, "");
    assert!(!outcome.right && outcome.lost == 1, "{outcome:?}");
}

#[test]
fn swapped_gates_are_detected() {
    let swap = |plan: &mut Value, name: &str, one: usize, other: usize| {
        let gates = &mut switch(plan, name)["gates"];
        let (a, b) = (gates[one][1].clone(), gates[other][1].clone());
        (gates[one][1], gates[other][1]) = (b, a);
    };
    // Swaps the gates of two servers. Packets for each server then go to the other server: from 12 hosts in
    // other pods on 4 paths, and from 2 hosts of the same pod on 2 paths.
    let mut tree = plan("tree.json");
    swap(&mut tree, "es3", 0, 1);
    let outcome = run(&tree, "");
    let from_others = 2 * (12 * 4 + 2 * 2);
    assert_eq!((outcome.misdelivered, outcome.right), (from_others, false), "{outcome:?}");
    assert!(outcome.reasons.iter().all(|lost| lost.reason == "misdelivered"), "{outcome:?}");
    // Swaps two gates of a core switch. Packets then go down into the wrong pod.
    let mut tree = plan("tree.json");
    swap(&mut tree, "cs2", 0, 3);
    let outcome = run(&tree, "");
    assert!(!outcome.right && outcome.lost_wrongly > 50, "{outcome:?}");
}

#[test]
fn losses_for_lack_of_a_backup_are_reported() {
    let mut plan = plan("abilene.json");
    switch(&mut plan, "Denver")["banks"][0]["backups"] = json!({});
    let outcome = run(&plan, FAILURES);
    let (_, lost) = met(&outcome, "protected hop, detected");
    assert!(!outcome.right && lost > 0 && lost == outcome.lost_wrongly, "{outcome:?}");
    // The backup of a route's first switch is in the switch's entry, not in its bank.
    let mut plan = self::plan("abilene.json");
    for route in plan["plans"][0]["routes"].as_array_mut().unwrap() {
        route["segments"][0]["backup_port"] = Value::Null;
    }
    assert!(!run(&plan, FAILURES).right);
}

#[test]
fn a_hop_limit_that_is_too_small_is_detected() {
    let mut plan = plan("abilene.json");
    for route in plan["plans"][0]["routes"].as_array_mut().unwrap() {
        let segment = &mut route["segments"][0];
        segment["hop_limit"] = json!(segment["path"].as_array().unwrap().len() - 2);
    }
    let outcome = run(&plan, "");
    assert!(outcome.right, "the hop limit suffices while nothing fails: {outcome:?}");
    let outcome = run(&plan, FAILURES);
    assert!(!outcome.right && outcome.reasons.iter().any(|lost| lost.reason == "hop_limit"), "{outcome:?}");
}

#[test]
fn a_route_may_be_split_at_a_waypoint() {
    let mut plan = plan("abilene.json");
    let routes = plan["plans"][0]["routes"].as_array_mut().unwrap();
    let find = |routes: &[Value], from: &str, to: &str| {
        let is_it = |route: &&Value| route["from"] == from && route["to"] == to;
        routes.iter().find(is_it).unwrap()["segments"][0].clone()
    };
    let parts = [find(routes, "Seattle", "Denver"), find(routes, "Denver", "Kansas City")];
    let long = |route: &&mut Value| route["from"] == "Seattle" && route["to"] == "Kansas City";
    routes.iter_mut().find(long).unwrap()["segments"] = json!(parts);
    let outcome = run(&plan, FAILURES);
    assert!(outcome.right, "{outcome:?}");
    // The route needs one more entry, and delivers the same packets.
    assert_eq!(outcome.state.entries.max, 14);
    let outcome = run(&plan, "[network.traffic]\npairs = [[\"Seattle\", \"Kansas City\"]]\n");
    assert_eq!((outcome.delivered, outcome.state.without_entries), (1, 8), "{outcome:?}");
}

/// A detour may reach a waypoint through the port to which the waypoint's next key leads.
#[test]
fn protected_routes_that_are_split_lose_nothing() {
    let failures = FAILURES.replace("1600ms", "4150ms").replace("packets = 300", "packets = 780");
    let mut plan = plan("rings.json");
    let outcome = run(&plan, &failures);
    assert!(outcome.right, "{:?}", outcome.reasons);
    let (delivered, lost) = met(&outcome, "protected hop, detected");
    assert!(delivered > 2_000 && lost == 0, "{:?}", outcome.met);
    let Protection { links, switches } = outcome.protection;
    assert_eq!((links.used, links.protected, links.exercised), (40, 36, 36));
    assert!(switches.protected > 10 && switches.exercised == switches.protected, "{switches:?}");
    assert!(outcome.hops.max <= outcome.hop_budget.max, "{:?}", outcome.hops);
    // If the entries that send packets back are missing, waypoints drop these packets.
    for route in plan["plans"][0]["routes"].as_array_mut().unwrap() {
        for segment in route["segments"].as_array_mut().unwrap() {
            segment.as_object_mut().unwrap().remove("return_ports");
        }
    }
    let without = run(&plan, &failures);
    let (_, lost) = met(&without, "protected hop, detected");
    let dropped = without.reasons.iter().filter(|lost| lost.reason == "ingress_port");
    assert!(!without.right && lost > 100, "{:?}", without.met);
    // Some of the dropped packets also encountered a failure that explains their loss.
    assert!(dropped.map(|lost| lost.packets).sum::<u64>() >= lost, "{:?}", without.reasons);
    assert!(without.state.entries.mean < outcome.state.entries.mean);
}

#[test]
fn the_key_selects_one_of_parallel_links() {
    let mut plan = plan("abilene.json");
    let link = json!({"a": "Denver", "a_port": 4, "b": "Kansas City", "b_port": 4});
    plan["network"]["links"].as_array_mut().unwrap().push(link);
    let bank = &mut switch(&mut plan, "Denver")["banks"][0];
    let label = bank["labels"].as_array().unwrap().iter().position(|port| *port == 3).unwrap();
    bank["labels"][label] = json!(4);
    bank["backups"]["4"] = bank["backups"]["3"].clone();
    let failed = |port: u32| {
        let text = format!(
            "[network.traffic]\npackets = 50\npairs = [[\"Seattle\", \"Kansas City\"]]\n\
            [[network.failure]]\nat = \"10ms\"\nlink = [\"Denver\", \"Kansas City\"]\nport = {port}\n"
        );
        let outcome = run(&plan, &text);
        assert!(outcome.right, "{:?}", outcome.met);
        (outcome.failures[0].part.clone(), outcome.failures[0].packets > 30, outcome.lost > 0)
    };
    assert_eq!(failed(3), ("Denver-Kansas City (port 3 of Denver)".into(), false, false));
    assert_eq!(failed(4), ("Denver-Kansas City (port 4 of Denver)".into(), true, true));
    let both = "[[network.failure]]\nat = \"1ms\"\nlink = [\"Denver\", \"Kansas City\"]";
    let refusal = |rest: &str| read(&plan, &format!("{both}\n{rest}")).unwrap_err();
    assert!(
        refusal("")
            .contains("network.failure[0].port: is missing: links to Kansas City are at the ports 3 and 4")
    );
    assert!(refusal("port = 2").contains(
        "network.failure[0].port: 2 of Denver has no link to Kansas City; use a port with a link, 3 and 4"
    ));
}

#[test]
fn tags_lead_to_external_hosts_and_back() {
    let outcome = run(&tree_with_external_hosts(), "");
    assert!(outcome.right && outcome.lost == 0, "{:?}", outcome.reasons);
    assert_eq!((outcome.pairs, outcome.flows), (240 + 4 * 16, 848 + 4 * 16));
}

#[test]
fn unexplained_losses_of_tagged_packets_are_not_excused() {
    let mut plan = plan("tree.json");
    let text = "[network.traffic]\npackets = 20\npairs = [[\"s1\", \"s16\"]]\n\
        [[network.failure]]\nat = \"0ms\"\nnode = ";
    // Each aggregation switch of the pod is on two of the four paths.
    let outcome = run(&plan, &format!("{text}\"as1\""));
    assert!(outcome.right && outcome.lost >= 38, "{:?}", outcome.met);
    assert_eq!(met(&outcome, "failure off the path"), (40, 0));
    assert_eq!(run(&plan, &format!("{text}\"as3\"")).delivered, 80);
    let gates = switch(&mut plan, "cs4")["gates"].as_array_mut().unwrap();
    gates.retain(|gate| gate[0] != 4);
    let outcome = run(&plan, &format!("{text}\"as1\""));
    assert_eq!((outcome.right, outcome.lost_wrongly), (false, 20), "{:?}", outcome.reasons);
}

#[test]
fn excessive_traffic_is_refused_before_it_is_generated() {
    let tree = plan("tree.json");
    let refusal = |plan: &Value, rest: &str| {
        read(plan, &format!("[network.traffic]\n{rest}")).err().unwrap_or_default()
    };
    let many = refusal(&tree, "packets = 1000000");
    assert!(
        many.contains("network.traffic: has 1000000 packets for each of 848 flows; the maximum is 100000000"),
        "{many}"
    );
    // One edge switch with 1,000 servers, and 70 core switches on the paths to each server.
    let cores = 70;
    let (mut nodes, mut links) =
        (vec![json!("a"), json!("b"), json!("e"), json!("f"), json!("s0")], Vec::new());
    let mut link = |a: &str, a_port: usize, b: &str, b_port: usize| {
        links.push(json!({"a": a, "a_port": a_port, "b": b, "b_port": b_port}));
    };
    let switch = |name: &str, layer: &str, pod: Value, plane: Value, uplinks: Value| json!({"name": name, "layer": layer, "pod": pod, "plane": plane, "down_d": 2, "up_d": 2, "external_d": 0, "gates": [], "uplinks": uplinks});
    let mut switches = vec![
        switch("e", "edge", json!(0), Value::Null, json!([1])),
        switch("f", "edge", json!(1), Value::Null, json!([1])),
        switch("a", "aggregation", json!(0), json!(0), json!([])),
        switch("b", "aggregation", json!(1), json!(0), json!([])),
    ];
    let mut hosts = vec![json!({"name": "s0", "switch": "e", "port": 2, "gate": 2})];
    link("e", 1, "a", 1);
    link("f", 1, "b", 1);
    link("e", 2, "s0", 1);
    for at in 0..cores {
        let name = format!("c{at}");
        link("a", at + 2, &name, 1);
        link("b", at + 2, &name, 2);
        switches.push(switch(&name, "core", Value::Null, json!(0), json!([])));
        nodes.push(json!(name));
    }
    for at in 1..=1_000 {
        let name = format!("s{at}");
        link("f", at + 1, &name, 1);
        hosts.push(json!({"name": name, "switch": "f", "port": at + 1, "gate": 2 * at + 2}));
        nodes.push(json!(name));
    }
    let wide = json!({
        "format": "shunt-plan", "version": 1, "kind": "tag-and-forward", "network": {"nodes": nodes, "links": links},
        "header": {"name": "paper", "up_bits": 32, "down_bits": 13}, "server_gate_max": 2_002,
        "ups": [(0..cores).map(|at| 4_000 + 2 * at).collect::<Vec<_>>()], "switches": switches, "hosts": hosts, "external": [],
    });
    let refused = refusal(&wide, "");
    assert!(
        refused.contains(
            "network.traffic: needs more than 4096 groups, or more than 65536 paths in groups, at e: give sample or paths"
        ),
        "{refused}"
    );
    assert_eq!(refusal(&wide, "paths = 60"), "");
    let pairs: Vec<[&str; 2]> = vec![["s0", "s1"]; 60_000];
    let refused = refusal(&wide, &format!("pairs = {}", json!(pairs)));
    assert!(
        refused.contains("has 4200000 paths of 60000 pairs; the maximum is 2000000: give sample or paths"),
        "{refused}"
    );
}

#[test]
fn mistakes_of_networks_have_messages() {
    let rows: &[(&str, &str)] = &[
        ("delay = \"2m\"", "network.delay: is too long"),
        ("queue = 5", "network.queue: has no effect without rate_bps"),
        ("rate_bps = 5", "network.rate_bps: 5 is out of range"),
        ("speed = 5", "network.speed: unknown key; use one of `plan`"),
        ("delay = 5", "network.delay: is the number 5, but a string is needed; write delay = \"10us\""),
        ("[network.traffic]\nbytes = 64", "network.traffic.bytes: 64 is out of range; use 82 to 1518"),
        ("[network.traffic]\ninterval = \"0us\"", "network.traffic.interval: \"0us\" is out of range"),
        (
            "[network.traffic]\nsample = 1\npairs = []",
            "network.traffic.sample: cannot be combined with pairs",
        ),
        ("[network.traffic]\npairs = []", "network.traffic.pairs: has no pair"),
        ("[network.traffic]\npairs = [[\"Denver\", \"x\"]]", "network.traffic.pairs[0]: \"x\" is not a host"),
        ("[network.traffic]\npairs = [[\"Denver\", \"Denver\"]]", "has no route from Denver to Denver"),
        ("[[network.failure]]\nat = \"1ms\"", "network.failure[0]: needs exactly one of link, node and each"),
        ("[[network.failure]]\nat = \"1ms\"\nnode = \"Denver\"\nport = 1", "failure[0].port: has no effect"),
        ("[[network.failure]]\nat = \"1ms\"\nnode = \"x\"", "network.failure[0].node: \"x\" is not a switch"),
        (
            "[[network.failure]]\nat = \"1ms\"\nlink = [\"Denver\", \"New York\"]",
            "network.failure[0].link: there is no link between Denver and New York",
        ),
        ("[[network.failure]]\nat = \"1ms\"\neach = \"link\"", "network.failure[0].lasting: is missing"),
        (
            "[[network.failure]]\nat = \"1ms\"\neach = \"link\"\nlasting = \"1ms\"\nevery = \"2ms\"",
            "network.failure[0].every: is 2000000 ns; a repair is detected 2000000 ns after",
        ),
        (
            "[[network.failure]]\nat = \"1ms\"\neach = \"port\"",
            "network.failure[0].each: \"port\" is unknown; use \"link\" or \"node\"",
        ),
        ("[[network.failure]]\nat = \"9h\"\nnode = \"Denver\"", "network.failure[0].at: \"9h\" is too long"),
        ("[network.renumber]\nat = \"1ms\"", "network.renumber: needs a plan of two epochs"),
        ("[network.require]\nexercised = true", "network.require.exercised: has no effect without"),
        ("[network.require]\ndelivered = 1.5", "network.require.delivered: 1.5 is out of range"),
        ("[network.require]\nloss = 1", "network.require.loss: unknown key; use one of `delivered`"),
        ("[[network.failure]]\nnode = \"Denver\"", "network.failure[0].at: is missing; write at = \"10ms\""),
        ("[load]\nrate_pps = 1.0", "load: is for one switch and cannot be combined with [network]"),
        ("[[traffic]]\nname = \"x\"", "traffic: is for one switch and cannot be combined with [network]"),
    ];
    let plan = plan("abilene.json");
    for (text, expected) in rows {
        let refusal = read(&plan, text).err().unwrap_or_default();
        assert!(refusal.contains(expected) && refusal.lines().count() == 1, "{text}: {refusal}");
    }
    let rows = [("delay = \"2m\"", "network.delay: "), ("rate_bps = 5", "network.rate_bps: ")];
    let rows = rows.into_iter().chain([
        ("[[network.failure]]\nat = \"1ms\"\nnode = \"x\"", "network.failure[0].node: "),
        ("[[network.failure]]\nat = \"9h\"\nnode = \"Denver\"", "network.failure[1].at: "),
        ("[network.require]\ndelivered = 1.5", "network.require.delivered: "),
    ]);
    let (texts, expected): (Vec<&str>, Vec<&str>) = rows.unzip();
    let refusal = read(&plan, &texts.join("\n")).err().unwrap_or_default();
    assert_eq!(refusal.lines().count(), expected.len(), "{refusal}");
    assert!(refusal.lines().zip(&expected).all(|(line, expected)| line.starts_with(expected)), "{refusal}");
    let renumbered = self::plan("renumbered.json");
    let refusal =
        read(&renumbered, "[network.renumber]\nat = \"1ms\"\nstep = \"1ms\"\nspread = \"1ms\"").unwrap_err();
    assert!(refusal.contains("network.renumber.spread: is 1000000 ns; use less than step"), "{refusal}");
}

#[test]
fn fast_paths_of_a_network_cannot_be_overridden() {
    let overrides = Overrides { express: Some(true), ..Overrides::default() };
    let refusal = read_with(&plan("tree.json"), "", &overrides).unwrap_err();
    assert!(refusal.contains("--express: needs [[datapath]]"), "{refusal}");
    let overrides = Overrides { port_cache: Some(PortCacheMode::Off), ..Overrides::default() };
    let refusal = read_with(&plan("tree.json"), "", &overrides).unwrap_err();
    assert!(refusal.contains("--port-cache: needs [[datapath]]"), "{refusal}");
}
