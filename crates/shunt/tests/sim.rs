// SPDX-License-Identifier: Apache-2.0
//! Tests of `shunt sim`: repeated runs print identical output, and error messages contain the place of the
//! mistake.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sim").join(name)
}

/// Returns exit code, stdout and stderr.
fn sim(scenario: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shunt"));
    let output = command.arg("sim").arg(scenario).args(arguments).stdin(Stdio::null()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_output_depends_on_the_seed_and_not_on_the_process() {
    for (name, arguments) in [("capture.toml", &["--json"][..]), ("overload.toml", &[])] {
        let first = sim(&example(name), arguments);
        assert_eq!((first.0, first.2.as_str()), (Some(0), ""), "{name}");
        assert_eq!(first, sim(&example(name), arguments), "{name}");
        let other = sim(&example(name), &[arguments, &["--seed", "9"]].concat());
        assert_eq!(other.0, Some(0), "{name}: {}", other.2);
        assert_ne!(first.1, other.1, "{name}");
    }
}

#[test]
fn every_packet_of_an_example_is_reported() {
    let (code, out, _) = sim(&example("capture.toml"), &["--json"]);
    assert_eq!(code, Some(0));
    let run: Value = serde_json::from_str(&out).unwrap();
    for part in run["lanes"].as_array().unwrap().iter().chain(run["traffic"].as_array().unwrap()) {
        let dropped: u64 = part["dropped"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
        let sum = part["delivered"].as_u64().unwrap() + part["consumed"].as_u64().unwrap() + dropped;
        assert_eq!(part["offered"].as_u64(), Some(sum), "{part}");
        assert!(sum > 1_000, "{part}");
    }
    assert_eq!((&run["seed"], &run["costs"]), (&1.into(), &"even".into()));
}

#[test]
fn example_networks_have_no_faults_and_a_fault_has_an_exit_code() {
    for name in ["tags", "keys", "polka", "failures", "renumber"] {
        let file = example(&format!("network-{name}.toml"));
        let first = sim(&file, &["--json"]);
        assert_eq!((first.0, first.2.as_str()), (Some(0), ""), "{name}");
        assert_eq!(first, sim(&file, &["--json"]), "{name}");
        let run: Value = serde_json::from_str(&first.1).unwrap();
        assert_eq!((&run["right"], &run["over_budget"]), (&true.into(), &0.into()), "{name}");
        let (code, text, _) = sim(&file, &["--seed", "7"]);
        assert!(code == Some(0) && text.contains("\nright     0 misdelivered"), "{name}: {text}");
    }
    let folder = std::env::temp_dir().join(format!("shunt-sim-net-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let plan = std::fs::read_to_string(example("plans/tree.json")).unwrap();
    let wrong = plan.replacen("[[1, 2, \"G_SRV\", \"s1\"], [2, 4,", "[[1, 4, \"G_SRV\", \"s1\"], [2, 2,", 1);
    assert_ne!(plan, wrong);
    std::fs::write(folder.join("plan.json"), wrong).unwrap();
    std::fs::write(folder.join("net.toml"), "[network]\nplan = \"plan.json\"\n").unwrap();
    let (code, text, reported) = sim(&folder.join("net.toml"), &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("\nWRONG     104 misdelivered"), "{text}");
    assert!(reported.starts_with("shunt: packets were misdelivered"), "{reported}");
    let plain = std::fs::read_to_string(example("plans/abilene.json")).unwrap();
    std::fs::write(folder.join("plan.json"), plain).unwrap();
    let slow =
        "rate_bps = 1000\nqueue = 0\n[network.traffic]\npackets = 100\n[network.require]\ndelivered = 0.9\n";
    std::fs::write(folder.join("net.toml"), format!("[network]\nplan = \"plan.json\"\n{slow}")).unwrap();
    let (code, text, reported) = sim(&folder.join("net.toml"), &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("\nMISSED    delivered: ") && text.contains("  for lack of room\n"), "{text}");
    assert!(!text.contains("as required"), "{text}");
    assert!(reported.starts_with("shunt: network.require is not met: delivered: "), "{reported}");
    std::fs::write(folder.join("plan.json"), &plan[..1_000]).unwrap();
    let (code, _, reported) = sim(&folder.join("net.toml"), &[]);
    assert_eq!(code, Some(1));
    assert!(
        reported.contains("network.plan: ") && reported.contains("plan.json: is not a valid plan: EOF"),
        "{reported}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn port_caches_of_all_switches_of_a_tree_are_reported() {
    let file = example("network-port-caches.toml");
    for mode in ["nonblocking", "blocking", "off"] {
        let first = sim(&file, &["--json", "--port-cache", mode]);
        assert_eq!((first.0, first.2.as_str()), (Some(0), ""), "{mode}");
        assert_eq!(first, sim(&file, &["--json", "--port-cache", mode]), "{mode}");
        let run: Value = serde_json::from_str(&first.1).unwrap();
        let found = &run["by_entries"];
        assert_eq!((&found["port_cache"], &found["overtaken"]), (&mode.into(), &0.into()));
        for layer in found["layers"].as_array().unwrap().iter().chain([&found["total"]]) {
            let of = |key: &str| layer["port_cache"][key].as_u64().unwrap();
            let names = ["hits", "merged", "new", "passed", "uncached", "dropped"];
            if mode == "off" {
                assert!(
                    layer["port_cache"].is_null() && layer["lost"].as_object().unwrap().is_empty(),
                    "{layer}"
                );
                continue;
            }
            assert_eq!(layer["received"].as_u64(), Some(names.map(of).iter().sum()), "{layer}");
            assert!(of("hits") > 1_000 && layer["hit_rate_percent"].as_f64() > Some(50.0), "{layer}");
        }
    }
    let (code, text, _) = sim(&file, &[]);
    assert_eq!(code, Some(0));
    assert!(text.contains(" unexcused losses, 0 overtaken\n"), "{text}");
    assert!(text.contains("\nport cache nonblocking, after a warm-up of 1.000 ms\n"), "{text}");
    assert!(
        ["edge ", "aggregation ", "core ", "total "].iter().all(|row| text.contains(&format!("\n{row}")))
    );
}

#[test]
fn mistakes_have_their_place_and_exit_code() {
    let folder = std::env::temp_dir().join(format!("shunt-sim-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("wrong.toml");
    std::fs::write(&file, "seed = 1\nspeed = 2\n").unwrap();
    let (code, out, reported) = sim(&file, &[]);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        reported.starts_with(&format!("shunt: {}:2:1: speed: unknown key; ", file.display())),
        "{reported}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(sim(Path::new("none.toml"), &[]).0, Some(1));
    assert_eq!(sim(Path::new("none.toml"), &["--seed", "x"]).0, Some(2));
}
