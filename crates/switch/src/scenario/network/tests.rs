// SPDX-License-Identifier: Apache-2.0
//! Networks of plans that planners wrote: what is right passes, and each fault that is planted is seen.

use super::super::{Scenario, check};
use super::*;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn plans() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sim/plans")
}

fn plan(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(plans().join(name)).unwrap()).unwrap()
}

/// Reads a scenario over a plan that is written for it.
fn read(plan: &Value, rest: &str) -> Result<NetworkScenario, String> {
    let name = std::thread::current().name().unwrap_or("main").replace(':', "-");
    let folder = std::env::temp_dir().join(format!("shunt-network-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("plan.json"), plan.to_string()).unwrap();
    let text = format!("seed = 3\n[network]\nplan = \"plan.json\"\n{rest}");
    let read = check::any(&folder.join("scenario.toml"), &text, None);
    fs::remove_dir_all(&folder).unwrap();
    match read {
        Ok(Scenario::Network(scenario)) => Ok(scenario),
        Ok(Scenario::Switch(_)) => panic!("there is a network in it"),
        Err(mistake) => Err(mistake.to_string().replace(&folder.display().to_string(), "")),
    }
}

fn run(plan: &Value, rest: &str) -> NetworkOutcome {
    let outcome = read(plan, rest).unwrap().run().unwrap();
    assert_eq!(outcome.sent, outcome.delivered + outcome.lost);
    outcome
}

/// Packets that met with failures in this way: delivered, lost.
fn met(outcome: &NetworkOutcome, failure: &str) -> (u64, u64) {
    let found = outcome.met.iter().find(|met| met.failure == failure);
    found.map_or((0, 0), |met| (met.delivered, met.lost))
}

/// Switch of a plan by its name.
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
fn tags_lead_over_each_path_of_a_tree() {
    let outcome = run(&plan("tree.json"), "");
    assert!(outcome.right && outcome.lost == 0, "{outcome:?}");
    // 192 pairs of pods with 4 paths, 32 of edges in a pod with 2, 16 at an edge with 1.
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
fn keys_lead_between_all_of_a_tree_and_of_a_backbone() {
    for (name, pairs, without_entries) in [("keyed-tree.json", 240, 12), ("abilene.json", 110, 0)] {
        let outcome = run(&plan(name), "");
        assert!(outcome.right && outcome.lost == 0, "{outcome:?}");
        assert_eq!((outcome.pairs as u64, outcome.paths, outcome.delivered), (pairs, pairs, pairs));
        assert_eq!(outcome.hops_beyond_shortest.max, 0);
        assert_eq!(outcome.state.without_entries, without_entries);
    }
}

#[test]
fn the_same_seed_gives_the_same_and_draws_pairs_of_its_own() {
    let sampled = || {
        let outcome = run(&plan("tree.json"), "[network.traffic]\nsample = 20\npaths = 2\n");
        serde_json::to_string(&outcome).unwrap()
    };
    assert_eq!(sampled(), sampled());
    let outcome = run(&plan("tree.json"), "[network.traffic]\nsample = 20\npaths = 2\n");
    assert_eq!((outcome.pairs, outcome.flows as u64), (20, outcome.paths));
    let all = run(&plan("keyed-tree.json"), "[network.traffic]\nsample = 1000\n");
    assert!(all.pairs > 200 && all.right, "of 224 between edges nearly all are found: {all:?}");
}

#[test]
fn what_is_protected_is_not_lost_once_a_failure_is_detected() {
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
fn a_loss_that_no_failure_explains_is_seen_among_failures() {
    let mut plan = plan("abilene.json");
    let routes = plan["plans"][0]["routes"].as_array_mut().unwrap();
    let route = routes.iter_mut().find(|route| route["from"] == "Seattle" && route["to"] == "Kansas City");
    let key = &mut route.unwrap()["segments"][0]["key"];
    *key = json!(format!("{}1", key.as_str().unwrap()));
    let outcome = run(
        &plan,
        "[network.traffic]\npackets = 50\npairs = [[\"Seattle\", \"Kansas City\"]]\n\
        [[network.failure]]\nat = \"1ms\"\nnode = \"New York\"\n\
        [[network.failure]]\nat = \"2ms\"\nnode = \"Atlanta\"\n",
    );
    assert_eq!((outcome.lost_wrongly, outcome.right), (50, false), "{:?}", outcome.reasons);
}

#[test]
fn what_is_known_as_a_packet_arrives_is_no_excuse_and_no_fault() {
    let outcome = run(
        &plan("abilene.json"),
        "delay = \"10us\"\ndetection = \"5us\"\n[network.traffic]\npackets = 2000\ninterval = \"1us\"\n\
        [[network.failure]]\nat = \"100us\"\neach = \"link\"\nlasting = \"50us\"\n",
    );
    assert!(outcome.right && outcome.sent == 220_000, "{:?}", outcome.met);
    assert!(met(&outcome, "protected hop, detected").0 > 100, "{:?}", outcome.met);
}

#[test]
fn what_is_required_is_there_or_a_sentence_is() {
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
        ["protected_links: 12 of 14 links that are used are protected; 0.9 of them is required"]
    );
    assert_eq!(
        missed("abilene.json", "rate_bps = 1000\nqueue = 0\n[network.require]\ndelivered = 0.99\n"),
        ["delivered: 19 of 110 packets were delivered; 0.99 of them is required"]
    );
    let late = "[[network.failure]]\nat = \"1h\"\neach = \"node\"\nlasting = \"10ms\"\n";
    let nothing = "exercised: nothing that is protected failed while packets came to it";
    let unmet = "exercised: no packet met a failure: New York at 3600000.000 ms, and 10 more";
    assert_eq!(missed("abilene.json", &format!("{late}{tested}")), [unmet, nothing]);
    // Met, but over before it was detected.
    let short = "[network.traffic]\ninterval = \"1us\"\npackets = 200\n\
        [[network.failure]]\nat = \"100us\"\nlink = [\"Denver\", \"Kansas City\"]\n";
    let untested = "exercised: no packet met a failure of what is protected once it was detected: \
        Denver-Kansas City at 0.100 ms";
    assert_eq!(missed("abilene.json", &format!("{short}{tested}")), [untested, nothing]);
    assert_eq!(missed("renumbered.json", &format!("{RENUMBER}{tested}delivered = 1\n")), none);
    let late = "[network.renumber]\nat = \"1h\"\n";
    let unled = "exercised: keys of epoch 1 led no packet that was delivered";
    assert_eq!(missed("renumbered.json", &format!("{late}{tested}")), [unled]);
    // Nothing is promised.
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
    // While both are known there are twice as many.
    assert_eq!(outcome.state.labels.max, 8);
    let old = run(&plan("abilene.json"), "");
    assert_eq!((old.state.labels.max, old.state.entries), (4, outcome.state.entries));
}

#[test]
fn a_bank_that_is_missing_while_the_numbering_changes_is_seen() {
    let mut plan = plan("renumbered.json");
    let banks = switch(&mut plan, "Denver")["banks"].as_array_mut().unwrap();
    banks.retain(|bank| bank["epoch"] == 0);
    let outcome = run(&plan, RENUMBER);
    assert!(!outcome.right && outcome.lost_wrongly > 100, "{outcome:?}");
}

#[test]
fn a_wrong_id_is_seen() {
    let mut plan = plan("keyed-tree.json");
    let bank = &mut switch(&mut plan, "cs1")["banks"][0];
    bank["id"] = json!(bank["id"].as_u64().unwrap() + 1);
    let outcome = run(&plan, "");
    assert!(!outcome.right && outcome.lost_wrongly > 0, "{outcome:?}");
}

#[test]
fn a_wrong_key_is_seen() {
    let mut plan = plan("abilene.json");
    let segment = &mut plan["plans"][0]["routes"][7]["segments"][0];
    segment["key"] = json!(format!("{}1", segment["key"].as_str().unwrap()));
    let outcome = run(&plan, "");
    assert!(!outcome.right && outcome.lost == 1, "{outcome:?}");
}

#[test]
fn gates_that_are_swapped_are_seen() {
    let swap = |plan: &mut Value, name: &str, one: usize, other: usize| {
        let gates = &mut switch(plan, name)["gates"];
        let (a, b) = (gates[one][1].clone(), gates[other][1].clone());
        (gates[one][1], gates[other][1]) = (b, a);
    };
    // Those of two servers: packets come to the other one, of 14 hosts on 14 * 2 ways within the pod and 12 * 4 from others.
    let mut tree = plan("tree.json");
    swap(&mut tree, "es3", 0, 1);
    let outcome = run(&tree, "");
    let from_others = 2 * (12 * 4 + 2 * 2);
    assert_eq!((outcome.misdelivered, outcome.right), (from_others, false), "{outcome:?}");
    assert!(outcome.reasons.iter().all(|lost| lost.reason == "misdelivered"), "{outcome:?}");
    // Those of a core: packets come down in another pod.
    let mut tree = plan("tree.json");
    swap(&mut tree, "cs2", 0, 3);
    let outcome = run(&tree, "");
    assert!(!outcome.right && outcome.lost_wrongly > 50, "{outcome:?}");
}

#[test]
fn a_backup_that_is_missing_is_seen() {
    let mut plan = plan("abilene.json");
    switch(&mut plan, "Denver")["banks"][0]["backups"] = json!({});
    let outcome = run(&plan, FAILURES);
    let (_, lost) = met(&outcome, "protected hop, detected");
    assert!(!outcome.right && lost > 0 && lost == outcome.lost_wrongly, "{outcome:?}");
    // At the first switch, it is the entry's.
    let mut plan = self::plan("abilene.json");
    for route in plan["plans"][0]["routes"].as_array_mut().unwrap() {
        route["segments"][0]["backup_port"] = Value::Null;
    }
    assert!(!run(&plan, FAILURES).right);
}

#[test]
fn a_hop_limit_that_is_too_small_is_seen() {
    let mut plan = plan("abilene.json");
    for route in plan["plans"][0]["routes"].as_array_mut().unwrap() {
        let segment = &mut route["segments"][0];
        segment["hop_limit"] = json!(segment["path"].as_array().unwrap().len() - 2);
    }
    let outcome = run(&plan, "");
    assert!(outcome.right, "it is enough as long as nothing fails: {outcome:?}");
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
    // An entry more, and the same packets.
    assert_eq!(outcome.state.entries.max, 14);
    let outcome = run(&plan, "[network.traffic]\npairs = [[\"Seattle\", \"Kansas City\"]]\n");
    assert_eq!((outcome.delivered, outcome.state.without_entries), (1, 8), "{outcome:?}");
}

#[test]
fn one_mistake_a_row() {
    let rows: &[(&str, &str)] = &[
        ("delay = \"2m\"", "network.delay: is too long"),
        ("queue = 5", "network.queue: has no effect without rate_bps"),
        ("rate_bps = 5", "network.rate_bps: 5 is out of range"),
        ("speed = 5", "unknown field `speed`"),
        ("delay = 5", "network.delay: is the number 5, and a string is needed; write delay = \"10us\""),
        ("[network.traffic]\nbytes = 64", "network.traffic.bytes: 64 is out of range; use 82 to 1518"),
        ("[network.traffic]\ninterval = \"0us\"", "network.traffic.interval: \"0us\" is out of range"),
        ("[network.traffic]\nsample = 1\npairs = []", "network.traffic.sample: is there beside pairs"),
        ("[network.traffic]\npairs = []", "network.traffic.pairs: has none"),
        ("[network.traffic]\npairs = [[\"Denver\", \"x\"]]", "network.traffic.pairs[0]: \"x\" is no host"),
        ("[network.traffic]\npairs = [[\"Denver\", \"Denver\"]]", "has no way from Denver to Denver"),
        ("[[network.failure]]\nat = \"1ms\"", "network.failure[0]: takes one of link, node and each"),
        ("[[network.failure]]\nat = \"1ms\"\nnode = \"x\"", "network.failure[0].node: \"x\" is no switch"),
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
        ("[network.require]\nloss = 1", "unknown field `loss`"),
        ("[load]\nrate_pps = 1.0", "load: is for one switch, and there is a [network]"),
        ("[[traffic]]\nname = \"x\"", "traffic: is for one switch, and there is a [network]"),
    ];
    let plan = plan("abilene.json");
    for (text, expected) in rows {
        let told = read(&plan, text).err().unwrap_or_default();
        assert!(told.contains(expected), "{text}: {told}");
    }
    let renumbered = self::plan("renumbered.json");
    let told =
        read(&renumbered, "[network.renumber]\nat = \"1ms\"\nstep = \"1ms\"\nspread = \"1ms\"").unwrap_err();
    assert!(told.contains("network.renumber.spread: is 1000000 ns; use less than step"), "{told}");
}
