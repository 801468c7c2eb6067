// SPDX-License-Identifier: Apache-2.0
//! Tests of scenarios with several switches, which get the same traffic, and of stateless forwarding.

use super::*;

/// Switches that forward by a key, by an empty table and by a filled one. One ping is in the switch at a
/// time.
const THREE: &str = r#"
warm_up = "1ms"
duration = "20ms"
costs = [
    { step = "receive", time_ns = 100.0, unit_ns = 10.0 },
    { step = "stateless", time_ns = 20.0, unit_ns = 3.0 },
    { step = "express", time_ns = 200.0, unit_ns = 30.0 },
    { step = "transmit", time_ns = 50.0, unit_ns = 0.0 },
]
[[datapath]]
name = "key"
push = "push_key(key=0x19,width=64,hops=8)"
rules = "priority=0,actions=drop"
stateless = { trusted = [1, 2, 3], bank = [{ id = 4, labels = [1, 2, 3, 4] }] }
[[datapath]]
name = "empty"
rules = """
dl_dst=02:00:00:00:00:02,actions=output:2
"""
[[datapath]]
name = "full"
fill = 3000
rules = "dl_dst=02:00:00:00:00:02,actions=output:2"
[[traffic]]
name = "ping"
packets = "in_port=1,udp,dl_dst=02:00:00:00:00:02,nw_src=10.0.0.1,nw_dst=10.0.0.2"
pattern = "constant"
rate_pps = 50000
known = true
returns_by = 3
"#;

fn run(text: &str) -> Vec<ScenarioOutcome> {
    read(text).map_err(|mistakes| refusal(&mistakes)).unwrap().run().unwrap()
}

/// A fault in the accounting of costs changes one of these times: a step that is not counted, counted twice
/// or charged to another switch.
#[test]
fn a_round_trip_takes_the_costs_of_its_steps() {
    let runs = run(THREE);
    assert_eq!(runs.iter().flat_map(|run| &run.switch).collect::<Vec<_>>(), ["key", "empty", "full"]);
    // A ping passes each switch twice. Each pass receives, forwards and sends one packet.
    let by_key = 2.0 * (100.0 + 10.0 + 20.0 + 3.0 + 50.0);
    let by_record = 2.0 * (100.0 + 10.0 + 200.0 + 30.0 + 50.0);
    for (run, round_trip_ns) in runs.iter().zip([by_key, by_record, by_record]) {
        let ping = &run.traffic[0];
        assert_eq!((ping.offered, ping.delivered), (1_000, 1_000), "{run:?}");
        // Idle poll iterations, each of which takes 1 ns, may separate the arrival from the poll.
        let most_ns = round_trip_ns + 4.0;
        assert!(ping.latency_ns.p50 >= round_trip_ns && ping.latency_ns.max <= most_ns, "{run:?}");
    }
    let fast = |run: &ScenarioOutcome| (run.traffic[0].express, run.lanes[0].offered);
    // Packets with a key are low-latency without any mark.
    assert_eq!(runs.iter().map(fast).collect::<Vec<_>>(), [(0, 1_000), (2_000, 0), (2_000, 0)]);
}

/// Arrival times and flows do not depend on the switch, so equal switches give equal results even if packets
/// wait for each other.
#[test]
fn equal_switches_give_equal_results() {
    let table = "name = \"empty\"\nrules = \"\"\"\ndl_dst=02:00:00:00:00:02,actions=output:2\n\"\"\"";
    assert!(THREE.contains(table));
    let others = "[[traffic]]\nname = \"others\"\nport = 1\nrate_pps = 2000000\nflows = 500\n\
        packets = \"udp,dl_dst=02:00:00:00:00:02,nw_src=10.0.0.0/16\"\n";
    let text = format!(
        "{}{others}",
        THREE.replace(table, &format!("{table}\n[[datapath]]\n{}", table.replace("empty", "twin")))
    );
    let runs = run(&text);
    let names: Vec<_> = runs.iter().flat_map(|run| run.switch.as_deref()).collect();
    assert_eq!(names, ["key", "empty", "twin", "full"]);
    assert_eq!((&runs[1].traffic, runs[1].turns), (&runs[2].traffic, runs[2].turns));
    let offered = |run: &ScenarioOutcome| run.traffic.iter().map(|part| part.offered).collect::<Vec<_>>();
    assert!(runs.iter().all(|run| offered(run) == offered(&runs[0])), "{runs:?}");
    // With these costs, the key takes less time, so packets wait less.
    let jitter = |run: &ScenarioOutcome| run.traffic[0].latency_ns.p99_9 - run.traffic[0].latency_ns.p50;
    assert!(jitter(&runs[0]) < jitter(&runs[1]), "{runs:?}");
}

/// Without path records, packets of the switches with tables pay for a lookup in each pass, and packets with
/// a key do not. The filled table has all its entries.
#[test]
fn packets_without_a_key_pay_for_lookups() {
    let lookup = "{ step = \"lookup\", table = 0, time_ns = 0.0, unit_ns = 700.0 },\n]\n[[datapath]]";
    let off =
        "express = { enabled = false }\nffp = { enabled = false }\nlanes = { enabled = false }\nrules =";
    let runs = run(&THREE.replacen("]\n[[datapath]]", lookup, 1).replace("rules =", off));
    let passes = |ns: f64| 2.0 * (100.0 + 10.0 + ns + 50.0);
    for (run, round_trip_ns) in runs.iter().zip([passes(20.0 + 3.0), passes(700.0), passes(700.0)]) {
        let latency = run.traffic[0].latency_ns;
        assert_eq!((run.traffic[0].delivered, run.traffic[0].express), (1_000, 0), "{run:?}");
        assert!(
            latency.p50 >= round_trip_ns && latency.max <= round_trip_ns + 4.0,
            "{round_trip_ns} {run:?}"
        );
    }
    let scenario = read(THREE).unwrap();
    let rules = scenario.switches.iter().map(|one| one.switch().rules.lines().collect::<Vec<_>>());
    let different = rules.map(|lines| lines.iter().collect::<std::collections::HashSet<_>>().len());
    assert_eq!(different.collect::<Vec<_>>(), [1, 1, 3_001]);
}

/// A load factor is relative to the switch that carries least.
#[test]
fn all_switches_get_the_rate_that_the_slowest_carries() {
    let text = THREE.replace("rate_pps = 50000", "share = 1");
    let text = text.replace("[[traffic]]", "[load]\nfactor = 0.5\n[[traffic]]");
    let runs = run(&text);
    let capacities: Vec<f64> = runs.iter().flat_map(|run| run.capacity_pps).collect();
    assert!(capacities[0] > 1.1 * capacities[1], "{capacities:?}");
    for run in &runs {
        assert!(
            (run.offered_pps - capacities[1].min(capacities[2]) * 0.5).abs() < 2.0,
            "{capacities:?} {run:?}"
        );
    }
}

/// Costs are measured for the steps that a switch takes, and no step of the run is missing.
#[test]
fn measured_costs_cover_all_steps() {
    let from = THREE.find("costs = [").unwrap();
    let to = THREE.find("[[datapath]]").unwrap();
    let runs = run(&format!("{}{}", &THREE[..from], &THREE[to..]));
    for (run, takes, lacks) in [(&runs[0], "stateless", "express"), (&runs[1], "express", "stateless")] {
        let cost = |name: &str| run.steps.iter().find(|step| step.step == name);
        assert!(cost(takes).is_some_and(|step| step.time_ns + step.unit_ns > 0.0), "{run:?}");
        assert_eq!((cost(lacks), &run.unmeasured), (None, &Vec::new()), "{run:?}");
        assert!(run.agreement.is_some());
    }
}

#[test]
fn every_mistake_of_several_switches_has_a_message() {
    for (what, by, says) in [
        ("name = \"empty\"\n", "", "datapath[1].name: is missing; switches that are compared need names"),
        ("name = \"empty\"", "name = \"key\"", "datapath[1].name: \"key\" is given twice"),
        ("name = \"empty\"", "name = \"\"", "datapath[1].name: is not a name"),
        ("fill = 3000", "fill = -1", "datapath[2].fill: -1 is out of range; use 0 to 1000000"),
        ("fill = 3000", "fill = 3000\nflows = \"x\"", "datapath[2].rules: cannot be combined with flows"),
        ("push_key(key=0x19,width=64,hops=8)", "push_key(key=0x19)", "datapath[0].push: line 1"),
        (
            "push_key(key=0x19,width=64,hops=8)",
            "output:2,output:2",
            "datapath[0].push: does not send one copy",
        ),
        ("id = 4, labels", "id = 1, labels", "datapath[0].stateless.bank[0].id: 1 is out of range"),
        ("id = 4, labels", "modulus = 4, labels", "datapath[0].stateless.bank[0].modulus: unknown key"),
        ("labels = [1, 2, 3, 4]", "labels = [1, 2, 3, 400]", "datapath[0].rules: there is no port 400"),
        ("actions=output:2\"", "actions=group:2\"", "datapath[2].rules: line 1"),
    ] {
        assert_eq!(THREE.matches(what).count(), 1, "{what}");
        let mistakes = refusal(&read(&THREE.replace(what, by)).unwrap_err());
        assert!(mistakes.contains(says), "{by}: {mistakes}, not {says}");
    }
    let many = "[[datapath]]\n".repeat(20);
    assert!(
        refusal(&read(&format!("{many}{THREE}")).unwrap_err())
            .contains("datapath: there are 23; give 1 to 16")
    );
}
