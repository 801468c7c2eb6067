// SPDX-License-Identifier: Apache-2.0
//! Example plans for tests.

use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Reads an example plan.
pub fn plan(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sim/plans");
    serde_json::from_str(&fs::read_to_string(folder.join(name)).unwrap()).unwrap()
}

/// Returns the plan of the fat tree, with an additional external host at each of two core switches.
pub fn tree_with_external_hosts() -> Value {
    let mut plan = plan("tree.json");
    for (core, port) in [("cs1", 5), ("cs4", 6)] {
        let name = format!("out-{core}");
        let link = json!({"a": core, "a_port": port, "b": name, "b_port": 1});
        plan["network"]["links"].as_array_mut().unwrap().push(link);
        plan["network"]["nodes"].as_array_mut().unwrap().push(json!(name));
        let places = plan["external"].as_array_mut().unwrap();
        let is_it = |place: &&mut Value| place["switch"] == core && place["port"] == port;
        places.iter_mut().find(is_it).unwrap()["name"] = json!(name);
    }
    plan
}
