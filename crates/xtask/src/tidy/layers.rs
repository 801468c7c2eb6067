// SPDX-License-Identifier: Apache-2.0
//! Checks dependencies between crates. A crate may use only crates of lower layers, and none that
//! [`FORBIDDEN`] excludes.

use toml::{Table, Value};

use super::Finding;
use crate::tree::File;

/// Crates by layer, from the lowest: each uses only crates that are listed before it.
const LAYERS: &[&str] = &[
    "wire",
    "frame",
    "flow",
    "reference",
    "engines",
    "tables",
    "dataplane",
    "actions",
    "keys",
    "stateless",
    "backlog",
    "port_cache",
    "pipeline",
    "port",
    "openflow",
    "pof",
    "model",
    "pof_agent",
    "store",
    "worker",
    "device",
    "device_sim",
    "metrics",
    "config",
    "sim",
    "scenario",
    "oracle",
    "switch",
    "shunt",
    "xtask",
];

/// Forbidden dependencies on lower layers: crate, dependency, and reason.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("flow", "frame", "the flow model uses only the headers of packets"),
    ("reference", "frame", "the interpreter shares nothing with the fast paths"),
    ("engines", "wire", "engines know bits, not protocols"),
    ("engines", "frame", "engines know bits, not packets"),
    ("tables", "wire", "tables know bits, not protocols"),
    ("tables", "frame", "tables know bits, not packets"),
    ("port", "flow", "drivers do not know flows"),
    ("port", "engines", "drivers do not know tables"),
    ("port", "tables", "drivers do not know tables"),
    ("dataplane", "tables", "the interface does not know engines"),
    ("port", "dataplane", "drivers do not know the control plane"),
    ("actions", "tables", "actions look nothing up"),
    ("port", "actions", "drivers change no packets"),
    ("keys", "tables", "keys do not depend on tables"),
    ("stateless", "tables", "the stateless forwarder looks nothing up"),
    ("port", "keys", "drivers do not know keys"),
    ("port", "stateless", "drivers do not know tags"),
    ("port", "pipeline", "drivers do not know pipelines"),
    ("openflow", "engines", "codecs do not know engines"),
    ("openflow", "tables", "codecs do not know tables"),
    ("openflow", "pipeline", "codecs do not know pipelines"),
    ("openflow", "port", "codecs do no I/O"),
    ("pof", "engines", "codecs do not know engines"),
    ("pof", "tables", "codecs do not know tables"),
    ("pof", "pipeline", "codecs do not know pipelines"),
    ("pof", "port", "codecs do no I/O"),
    ("model", "port", "the model sees ports only through `DataPlane`"),
    ("model", "keys", "the model does not know keys"),
    ("model", "stateless", "the model forwards only through `DataPlane`"),
    ("model", "pipeline", "the model forwards only through `DataPlane`"),
    ("pof_agent", "port", "the agent does no I/O"),
    ("pof_agent", "worker", "the agent sees packets only through `DataPlane`"),
    ("worker", "model", "a data plane does not know its controller"),
    ("switch", "sim", "the daemon does not simulate"),
    ("switch", "scenario", "the daemon does not simulate"),
];

const SELF: &str = "crates/xtask/src/tidy/layers.rs";

/// Crate that only [`REFERENCE_USERS`] may use outside of dev-dependencies, because it must not enter the
/// forwarding path.
const REFERENCE: &str = "reference";
const REFERENCE_USERS: [&str; 3] = ["model", "sim", "oracle"];

pub fn check(files: &[File]) -> Vec<Finding> {
    let manifests = files.iter().filter_map(|file| Some((file, crate_of(&file.path)?)));
    let mut findings: Vec<Finding> = manifests.flat_map(|(file, name)| check_one(file, name)).collect();
    findings.extend(missing(files));
    findings
}

/// Finds listed crates that do not exist.
fn missing(files: &[File]) -> Vec<Finding> {
    let Some(list) = files.iter().find(|file| file.path == SELF) else { return Vec::new() };
    let exists = |name: &str| files.iter().any(|file| crate_of(&file.path) == Some(name));
    let says = |name: &str| format!("there is no crate `{name}`; remove it from the list");
    LAYERS.iter().filter(|name| !exists(name)).map(|name| Finding::new(list, 0, says(name))).collect()
}

/// Returns the crate whose manifest is `path`.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml").filter(|name| !name.contains('/'))
}

fn check_one(file: &File, name: &str) -> Vec<Finding> {
    let text = file.text.as_deref().unwrap_or_default();
    let manifest: Table = match text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::new(file, 0, format!("not a manifest: {error}"))],
    };
    let Some(layer) = layer(name) else {
        let says = format!("the crate `{name}` is not in {SELF}; add it at the place of its layer");
        return vec![Finding::new(file, 0, says)];
    };
    let mut findings = Vec::new();
    for used in dependencies(&manifest) {
        if let Some(why) = objection(name, layer, &used) {
            let line = text.lines().position(|line| names(line, &used)).map_or(0, |at| at + 1);
            findings.push(Finding::new(file, line, format!("`{name}` may not use `{used}`: {why}")));
        }
    }
    findings
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|listed| *listed == name)
}

fn objection(name: &str, own_layer: usize, used: &str) -> Option<String> {
    if layer(used)? >= own_layer {
        return Some("a crate uses only crates of lower layers".into());
    }
    if used == REFERENCE && !REFERENCE_USERS.contains(&name) {
        let [traces, replay, tests] = REFERENCE_USERS;
        return Some(format!(
            "`{REFERENCE}` may only be a dev-dependency, except in `{traces}` (traces), `{replay}` (replay) and `{tests}`"
        ));
    }
    let forbidden = FORBIDDEN.iter().find(|(from, to, _)| *from == name && *to == used);
    forbidden.map(|(_, _, why)| (*why).into())
}

/// Returns the packages in `[dependencies]` and `[build-dependencies]`, including per-target sections but not
/// dev-dependencies.
fn dependencies(manifest: &Table) -> Vec<String> {
    let per_target = manifest.get("target").and_then(Value::as_table);
    let places = std::iter::once(manifest)
        .chain(per_target.into_iter().flat_map(|targets| targets.values().filter_map(Value::as_table)));
    let mut found = Vec::new();
    for place in places {
        for section in ["dependencies", "build-dependencies"] {
            let entries = place.get(section).and_then(Value::as_table).into_iter().flatten();
            found.extend(entries.map(|(name, value)| package(name, value).to_owned()));
        }
    }
    found
}

/// Returns the package of a dependency, which `package = ".."` may rename.
fn package<'a>(name: &'a str, value: &'a Value) -> &'a str {
    value.get("package").and_then(Value::as_str).unwrap_or(name)
}

fn names(line: &str, package: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '_').any(|word| word == package)
        && !line.trim_start().starts_with("name")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, manifest: &str) -> Vec<Finding> {
        check(&[File::planted(&format!("crates/{name}/Cargo.toml"), manifest)])
    }

    #[test]
    fn a_dependency_on_a_higher_layer_is_found() {
        let found = found("tables", "[dependencies]\nflow.workspace = true\npipeline.workspace = true\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].line, 3);
        assert!(found[0].says.contains("`tables` may not use `pipeline`"));
    }

    #[test]
    fn a_forbidden_dependency_on_a_lower_layer_is_found() {
        for (name, used) in
            [("port", "pipeline"), ("tables", "wire"), ("model", "port"), ("worker", "reference")]
        {
            let found = found(name, &format!("[dependencies]\n{used} = {{ workspace = true }}\n"));
            assert_eq!(found.len(), 1, "{name} -> {used}");
        }
    }

    #[test]
    fn a_dependency_is_found_in_every_section_of_a_manifest() {
        for manifest in [
            "[build-dependencies]\nshunt.workspace = true\n",
            "[target.'cfg(unix)'.dependencies]\nshunt.workspace = true\n",
            "[dependencies]\nalias = { path = \"../shunt\", package = \"shunt\" }\n",
        ] {
            assert_eq!(found("wire", manifest).len(), 1, "{manifest}");
        }
    }

    #[test]
    fn allowed_dependencies_are_accepted() {
        let manifest = "[dependencies]\nreference.workspace = true\nserde = \"1\"\n";
        assert_eq!(found("oracle", manifest), []);
        assert_eq!(
            found(
                "worker",
                "[dependencies]\nport.workspace = true\n[dev-dependencies]\nreference.workspace = true\n"
            ),
            []
        );
    }

    #[test]
    fn a_crate_that_does_not_exist_is_found() {
        let manifest = |name: &&str| File::planted(&format!("crates/{name}/Cargo.toml"), "[package]\n");
        let mut files: Vec<File> = LAYERS.iter().map(manifest).collect();
        files.push(File::planted(SELF, ""));
        assert_eq!(check(&files), []);
        files.remove(0);
        let found = check(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].says.contains("`wire`"));
    }

    #[test]
    fn a_crate_without_a_layer_is_found() {
        assert_eq!(found("annex", "[package]\nname = \"annex\"\n").len(), 1);
    }
}
