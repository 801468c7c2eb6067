// SPDX-License-Identifier: Apache-2.0
//! Tests of damaged plans. Each row contains the damage and the place that the error message must name.

use super::examples::tree_with_external_hosts;
use super::*;
use flow::{Field, FlowModCommand};
use model::Change;
use serde_json::{Value, json};
use std::fs;

/// Returns the error of a plan in which the value at `pointer` is replaced.
fn refusal(name: &str, pointer: &str, value: Value) -> String {
    let mut document = examples::plan(name);
    *document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
    PathPlan::read(&document.to_string()).err().map(|error| error.to_string()).unwrap_or_default()
}

fn rows(name: &str, rows: &[(&str, Value, &str)]) {
    assert!(PathPlan::read(&examples::plan(name).to_string()).is_ok(), "{name}");
    for (pointer, value, expected) in rows {
        let refusal = refusal(name, pointer, value.clone());
        assert!(refusal.contains(expected), "{name}, {pointer} = {value}: {refusal}");
    }
}

#[test]
fn damaged_plans_are_refused_by_place() {
    rows(
        "abilene.json",
        &[
            ("/format", json!("x"), "format: is not \"shunt-plan\""),
            ("/version", json!(2), "version: is not 1"),
            ("/kind", json!("x"), "kind: \"x\" cannot be simulated; use keyflow"),
            (
                "/switches",
                json!(7),
                "is not a valid plan: invalid type: integer `7`, expected a sequence at line 1",
            ),
            ("/plans", json!([]), "plans: are 0"),
            ("/network/nodes/0", json!("Denver"), "network.nodes[6]: Denver is given twice"),
            ("/network/links/0/a", json!("x"), "network.links[0]: x is not a node of the network"),
            ("/network/links/1/a_port", json!(1), "network.links[1]: port 1 of New York has two links"),
            ("/network/links/0/b", json!("New York"), "network.links[0]: port 1 of New York has two links"),
            ("/network/links/0/a_port", json!(0), "network.links[0]: 0 is not a port number"),
            ("/switches/0/name", json!("x"), "switches[0]: x is not a node of the network"),
            ("/switches/0/name", json!("Denver"), "switches[6]: Denver is given twice"),
            ("/switches/0/banks/0/epoch", json!(2), "switches[0].banks[0] (New York): has the epoch 2"),
            ("/switches/0/banks/0/epoch", json!(1), "has the epoch 1, for which there is no plan"),
            ("/switches/0/banks/0/id", json!(1), "switches[0].banks[0] (New York): has the id 1"),
            (
                "/switches/0/banks/0/labels/0",
                json!("x"),
                "has the label \"x\"; a label is a port or \"tables\"",
            ),
            ("/switches/0/banks/0/labels/0", json!(77), "names port 77, which the network does not have"),
            ("/switches/0/banks/0/backups", json!({"1": 77}), "names port 77"),
            ("/plans/0/epoch", json!(2), "plans[0].epoch: is 2, not 0 or 1"),
            ("/plans/0/arithmetic", json!("real"), "plans[0].arithmetic: \"real\" is unknown"),
            ("/plans/0/width_bits", json!(100), "plans[0].width_bits: is 100"),
            ("/plans/0/routes/0/from", json!("x"), "plans[0].routes[0] (x to "),
            ("/plans/0/routes/0/segments", json!([]), "does not lead to its destination"),
            ("/plans/0/routes/0/segments/0/path", json!([]), "has an empty path"),
            ("/plans/0/routes/0/segments/0/path/0", json!("x"), "x is not a switch"),
            ("/plans/0/routes/0/segments/0/out_port", json!(9), "has the port 9, which does not lead to"),
            ("/plans/0/routes/0/segments/0/backup_port", json!(9), "has the backup port 9"),
            ("/plans/0/routes/0/segments/0/key", json!("77"), "not a hexadecimal number with 0x"),
            ("/plans/0/routes/0/segments/0/key", json!("0xg"), "not a hexadecimal number with 0x"),
            (
                "/plans/0/routes/0/segments/0/key",
                json!("0x100000000000000000000000000000000"),
                "does not fit into 128 bits",
            ),
            ("/plans/0/routes/7/segments/0/bits", json!(21), "has 21 bits for a key of 22 bits"),
            (
                "/plans/0/routes/7/segments/0/bits",
                json!(129),
                "has 129 bits for a key of 22 bits; give the size of the largest",
            ),
            ("/plans/0/routes/0/segments/0/hop_limit", json!(256), "invalid value: integer `256`"),
            ("/plans/0/routes/0/segments/0/guards", json!([]), "has 0 guards for a path of"),
            ("/plans/0/routes/0/segments/0/guards/0", json!("x"), "has the guard \"x\""),
        ],
    );
    rows(
        "row-freertr.json",
        &[
            ("/ethertype", json!("8842"), "ethertype: is \"8842\"; write an EtherType in hexadecimal"),
            ("/ethertype", json!("0x18842"), "write an EtherType in hexadecimal"),
            (
                "/switches/0/polynomial",
                json!("0x1"),
                "switches[0] (s1): has the polynomial \"0x1\"; write a number from 0x2",
            ),
            ("/switches/0/polynomial", json!("0x+5"), "has the polynomial \"0x+5\""),
            (
                "/switches/0/next",
                json!({"2": 77}),
                "switches[0] (s1): names port 77, which the network does not have",
            ),
            ("/switches/0/next", json!({"0": 1}), "leads to index 0, which marks the end"),
            (
                "/switches/0/next",
                json!({"65536": 1}),
                "leads to index 65536, which is not a residue modulo 0x10001",
            ),
            ("/switches/0/next", json!({"x": 1}), "expected key to be a number in quotes"),
            ("/routes/0/from", json!("x"), "routes[0] (x to "),
            ("/routes/0/segments/0/key", json!("0x"), "not a hexadecimal number with 0x"),
            (
                "/routes/0/segments/0/key",
                json!("0x100000000000000000000000000000000"),
                "does not fit into 128 bits",
            ),
            ("/routes/0/segments/0/out_port", json!(9), "has the port 9, which does not lead to"),
            ("/routes/0/segments/0/path", json!([]), "has an empty path"),
        ],
    );
    rows(
        "tree.json",
        &[
            ("/header/name", json!("x"), "header.name: \"x\" is unknown; use paper or wide"),
            ("/header/up_bits", json!(29), "header: has 29 and 13 bits; UP and DOWN have 32 and 13 in paper"),
            ("/header/name", json!("wide"), "header: has 32 and 13 bits; UP and DOWN have 29 and 16 in wide"),
            ("/ups/1/0", json!(0), "ups[1]: has 0; UP is at least 1 and has 32 bits"),
            ("/hosts/3/gate", json!(8192), "hosts[3]: has the gate 8192; DOWN has 13 bits"),
            ("/ups/0", json!([44]), "is core switch 2 of plane 0, for which ups has no value"),
            ("/switches/0/layer", json!("x"), "switches[0] (es1): has the layer \"x\""),
            ("/switches/0/uplinks", json!([3]), "switches[0] (es1): has 1 uplinks for 2 planes"),
            ("/switches/0/uplinks/0", json!(1), "has the uplink 1, which leads to no switch"),
            ("/switches/0/gates/0/0", json!(9), "has a gate at port 9, which the network does not have"),
            ("/switches/0/gates/0/0", json!(2), "has two gates at port 2"),
            ("/switches/0/gates/0/1", json!(0), "has the gate 0 at port 1"),
            ("/switches/0/gates/0/2", json!("G_X"), "has the flag \"G_X\""),
            ("/hosts/0/switch", json!("x"), "hosts[0]: is at x, which is not a switch"),
            ("/hosts/0/port", json!(9), "have no gate for port 1 of es1, where s1 is connected"),
            ("/network/links/1/b", json!("s1"), "network.links[1]: s1 is not a switch and has two links"),
        ],
    );
}

/// Returns the JSON pointers of the segments that have return ports.
fn returning(plan: &Value) -> Vec<String> {
    let routes = plan["plans"][0]["routes"].as_array().unwrap();
    let segments = routes.iter().enumerate().flat_map(|(route, document)| {
        let segments = document["segments"].as_array().unwrap().iter().enumerate();
        segments.map(move |(at, segment)| (format!("/plans/0/routes/{route}/segments/{at}"), segment))
    });
    segments.filter(|(_, segment)| segment.get("return_ports").is_some()).map(|(place, _)| place).collect()
}

#[test]
fn return_ports_belong_to_waypoints() {
    let plan = examples::plan("rings.json");
    let place = &returning(&plan)[0];
    let ports = format!("{place}/return_ports");
    rows("rings.json", &[(&ports, json!([99]), "has the return port 99, which is neither its port nor its")]);
    let mut first = plan;
    let segment = first.pointer_mut("/plans/0/routes/0/segments/0").unwrap();
    segment["return_ports"] = json!([segment["out_port"]]);
    let refusal = PathPlan::read(&first.to_string()).unwrap_err().to_string();
    assert!(
        refusal.contains("has return ports where it begins; only waypoints have return ports"),
        "{refusal}"
    );
}

/// Returns how many entries for a single ingress port each step of a renumbering adds and deletes.
fn entries_for_one_port(before: &Value, after: &Value) -> Vec<(usize, usize)> {
    let mut both = before.clone();
    let mut newer = after["plans"][0].clone();
    newer["epoch"] = json!(1);
    both["plans"].as_array_mut().unwrap().push(newer);
    for switch in both["switches"].as_array_mut().unwrap() {
        let banks = switch["banks"].as_array_mut().unwrap();
        let mut bank = banks[0].clone();
        bank["epoch"] = json!(1);
        banks.push(bank);
    }
    let plan = PathPlan::read(&both.to_string()).unwrap();
    let hosts = 0..plan.graph().hosts.len();
    let pairs: Vec<Pair> = hosts.clone().flat_map(|a| hosts.clone().map(move |b| (a, b))).collect();
    let count = |setups: &Setups, wanted: FlowModCommand| {
        let changes = setups.iter().flat_map(|setup| &setup.changes);
        let is_one = |change: &&Change| matches!(change, Change::Flow(flow) if flow.command == wanted && flow.matching.get(Field::InPort).is_some());
        changes.filter(is_one).count()
    };
    let stages = plan.stages(&pairs, Numberings::Both).unwrap();
    stages
        .iter()
        .map(|setups| (count(setups, FlowModCommand::Add), count(setups, FlowModCommand::DeleteStrict)))
        .collect()
}

#[test]
fn entries_for_one_port_change_with_the_entry_for_all_ports() {
    let plan = examples::plan("rings.json");
    let mut without = plan.clone();
    for place in returning(&plan) {
        without.pointer_mut(&place).unwrap().as_object_mut().unwrap().remove("return_ports");
    }
    let counts = entries_for_one_port(&plan, &without);
    let all = counts[0].0;
    assert!(all > 5, "{counts:?}");
    // If entries for one port were kept, packets of that port would still get old keys.
    assert_eq!(counts, [(all, 0), (0, 0), (0, all), (0, 0)]);
    // Entries for one port must not push new keys before all switches accept the new numbering.
    assert_eq!(entries_for_one_port(&without, &plan), [(0, 0), (0, 0), (all, 0), (0, 0)]);
    assert_eq!(entries_for_one_port(&plan, &plan), [(all, 0), (0, 0), (all, 0), (0, 0)]);
}

#[test]
fn only_a_regular_file_is_a_plan() {
    let folder = std::env::temp_dir().join(format!("shunt-plan-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let pipe = folder.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // A sparse file, which has this length but no data on disk.
    let huge = folder.join("huge");
    File::create(&huge).unwrap().set_len(FILE_BYTES + 1).unwrap();
    let refusal = |path: &Path| PathPlan::open(path).unwrap_err().to_string();
    for path in [Path::new("/dev/zero"), &pipe, &folder] {
        assert_eq!(refusal(path), "is not a regular file; name the file of a plan", "{}", path.display());
    }
    assert_eq!(refusal(&huge), "has more than 268435456 bytes");
    assert!(refusal(&folder.join("none")).starts_with("cannot read the plan: "));
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_tag_selects_its_planned_path() {
    let plan = PathPlan::read(&examples::plan("tree.json").to_string()).unwrap();
    let graph = plan.graph();
    let named = |pair: Pair, share: usize| {
        let way = plan.way(pair, share, Numberings::Newest);
        assert!(way.routes.iter().flatten().all(|hop| !hop.link_guarded && !hop.node_guarded));
        let nodes = way.routes[0].iter().map(|hop| graph.switches[hop.node].as_str());
        (way.hops_max, way.key_bits, nodes.collect::<Vec<_>>().join(" "))
    };
    // UP values 44 to 56 have 6 bits. Gates 2, 6 and 32 have 2, 3 and 6 bits.
    assert_eq!(named((0, 1), 0), (0, vec![], String::new()));
    assert_eq!(named((0, 2), 1), (2, vec![3], "as2 es2".into()));
    assert_eq!(named((15, 0), 1), (4, vec![8], "as7 cs2 as1 es1".into()));
    assert_eq!(named((0, 15), 2), (4, vec![12], "as2 cs3 as8 es8".into()));
}

#[test]
fn truncated_plans_are_reported_with_line_and_column() {
    let text = examples::plan("tree.json").to_string();
    for end in (0..text.len()).step_by(997).filter(|end| text.is_char_boundary(*end)) {
        let refusal = PathPlan::read(&text[..end]).unwrap_err().to_string();
        assert!(refusal.contains("line 1 column"), "{refusal}");
    }
}

#[test]
fn external_hosts_are_reached_by_their_core_switch() {
    let plan = PathPlan::read(&tree_with_external_hosts().to_string()).unwrap();
    let graph = plan.graph();
    let path = |pair| {
        plan.way(pair, 0, Numberings::Newest).routes[0]
            .iter()
            .map(|hop| graph.switches[hop.node].as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!([path((0, 17)), path((16, 2))], [["as2", "cs4"], ["as1", "es2"]].map(|names| names.to_vec()));
    assert_eq!(graph.hosts.len(), 18);
    let [one, other] = [16, 17];
    assert_eq!((plan.has((0, one)), plan.has((other, 3)), plan.has((one, other))), (true, true, false));
    assert_eq!((plan.shares((0, one)), plan.way((0, one), 0, Numberings::Newest).hops_max), (1, 2));
}
