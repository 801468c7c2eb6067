// SPDX-License-Identifier: Apache-2.0
//! Stages in which a mutant is tested. The tests of its own crate come first, then the tests of dependent
//! crates, the cheapest first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::Failure;

/// Test commands of each crate, ordered from lower to higher crates. The number is the CPU time limit of each
/// test process in seconds. `port` and `shunt` are missing because their tests need devices.
const COMMANDS: &[(&str, u64, &[&str])] = &[
    ("wire", 60, &["-p wire --lib --tests"]),
    ("frame", 60, &["-p frame --lib --tests"]),
    ("flow", 60, &["-p flow --lib --tests"]),
    ("reference", 60, &["-p reference --lib --tests"]),
    ("engines", 120, &["-p engines --lib", "-p engines --tests"]),
    ("tables", 120, &["-p tables --lib", "-p tables --tests"]),
    ("dataplane", 60, &["-p dataplane --lib"]),
    ("actions", 60, &["-p actions --lib"]),
    ("keys", 60, &["-p keys --lib"]),
    ("stateless", 60, &["-p stateless --lib"]),
    ("backlog", 60, &["-p backlog --lib"]),
    ("port_cache", 60, &["-p port_cache --lib --tests"]),
    ("pipeline", 60, &["-p pipeline --lib"]),
    ("openflow", 60, &["-p openflow --lib --tests"]),
    ("pof", 60, &["-p pof --lib --tests"]),
    ("model", 60, &["-p model --lib", "-p model --tests"]),
    ("worker", 120, &["-p worker --lib", "-p worker --tests"]),
    ("config", 60, &["-p config --lib"]),
    ("oracle", 240, &["-p oracle --test oracle"]),
    ("sim", 240, &["-p sim --lib --tests"]),
    ("scenario", 240, &["-p scenario --lib"]),
    ("switch", 240, &["-p switch --lib --tests"]),
];

/// Returns the command that removes the build results of all these crates.
pub fn clean() -> Vec<String> {
    let packages = COMMANDS.iter().flat_map(|(name, ..)| ["--package", name]);
    ["cargo", "clean", "--quiet"].into_iter().chain(packages).map(str::to_owned).collect()
}

/// Command that may detect a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    arguments: Vec<String>,
    /// CPU time limit of each test process in seconds.
    pub processor_s: u64,
}

impl Stage {
    fn new(arguments: &str, processor_s: u64) -> Self {
        Self { arguments: arguments.split_whitespace().map(str::to_owned).collect(), processor_s }
    }

    /// Returns the name of the stage, which consists of its arguments.
    pub fn name(&self) -> String {
        self.arguments.join(" ")
    }

    /// Returns the command that only builds the tests.
    pub fn build(&self) -> Vec<String> {
        let start = ["cargo", "test", "--quiet", "--no-run"].map(str::to_owned);
        start.into_iter().chain(self.arguments.iter().cloned()).collect()
    }

    /// Returns the command that runs the compiled tests, with limits for the CPU time and the memory of each
    /// process.
    pub fn run(&self) -> Vec<String> {
        const MEMORY_KIB: u64 = 12 << 20;
        let script = format!(
            "ulimit -S -t {}; ulimit -v {MEMORY_KIB}; exec cargo test --quiet {}",
            self.processor_s,
            self.name()
        );
        ["bash", "-c", &script].map(str::to_owned).into()
    }
}

/// Stages for the mutants of each crate.
pub struct Stages {
    /// Direct dependencies of each crate.
    uses: BTreeMap<String, BTreeSet<String>>,
}

impl Stages {
    /// Reads the dependencies from the manifests below `root`.
    pub fn read(root: &Path) -> Result<Self, Failure> {
        let mut uses = BTreeMap::new();
        for (name, ..) in COMMANDS {
            let path = root.join(format!("crates/{name}/Cargo.toml"));
            let fault = |why: String| format!("{}: {why}", path.display());
            let text = fs::read_to_string(&path).map_err(|error| fault(error.to_string()))?;
            let manifest: Table = text.parse().map_err(|error| fault(format!("not a manifest: {error}")))?;
            let dependencies = manifest.get("dependencies").and_then(Value::as_table);
            uses.insert(
                (*name).to_owned(),
                dependencies.map(|table| table.keys().cloned().collect()).unwrap_or_default(),
            );
        }
        Ok(Self { uses })
    }

    /// Returns the stages for a mutant in crate `name`, in order, or none for a crate without listed tests.
    pub fn of(&self, name: &str) -> Vec<Stage> {
        let mut concerned = BTreeSet::from([name.to_owned()]);
        let mut stages = Vec::new();
        for (name, processor_s, commands) in COMMANDS {
            let uses = self.uses.get(*name);
            if concerned.contains(*name) || uses.is_some_and(|uses| !uses.is_disjoint(&concerned)) {
                concerned.insert((*name).to_owned());
                stages.extend(commands.iter().map(|command| Stage::new(command, *processor_s)));
            }
        }
        // The crate's own tests run first.
        let own = |stage: &Stage| stage.arguments.get(1).is_some_and(|package| package == name);
        stages.sort_by_key(|stage| !own(stage));
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_loop_is_distinguished_from_a_failure() {
        // `Stage::run` sets the soft limit of CPU time, which sends SIGXCPU. The hard limit would send
        // SIGKILL, which does not show the cause.
        let command = Stage::new("-p flow", 1).run();
        let script = command[2].replace("exec cargo test --quiet -p flow", "while true; do true; done");
        let status = std::process::Command::new("bash").args(["-c", &script]).status().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(signal_hook::consts::SIGXCPU)
        );
    }

    #[test]
    fn own_tests_come_first_then_those_of_dependent_crates() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let stages = Stages::read(&root).unwrap();
        let names = |name: &str| stages.of(name).iter().map(Stage::name).collect::<Vec<_>>();
        assert_eq!(
            names("worker"),
            [
                "-p worker --lib",
                "-p worker --tests",
                "-p config --lib",
                "-p oracle --test oracle",
                "-p sim --lib --tests",
                "-p scenario --lib",
                "-p switch --lib --tests"
            ]
        );
        let of_tables = names("tables");
        assert_eq!(of_tables[..3], ["-p tables --lib", "-p tables --tests", "-p pipeline --lib"]);
        assert!(!of_tables.iter().any(|name| name.contains("flow") || name.contains("engines")));
        let of_engines = names("engines");
        assert_eq!(of_engines[..3], ["-p engines --lib", "-p engines --tests", "-p tables --lib"]);
        assert_eq!(names("nothing"), [""; 0]);
    }
}
