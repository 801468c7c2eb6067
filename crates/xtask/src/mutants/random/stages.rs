// SPDX-License-Identifier: Apache-2.0
//! Which tests judge a mutant: those of its own crate first, then those of the crates that depend on it, cheap ones first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::Failure;

/// Test commands of each crate in the order in which they are tried, below those of the crates that it depends on, and the
/// most seconds on the processor for each test process, several times what it needs. `port` and `shunt` need devices.
const COMMANDS: &[(&str, u64, &[&str])] = &[
    ("wire", 60, &["-p wire --lib --tests"]),
    ("frame", 60, &["-p frame --lib --tests"]),
    ("flow", 60, &["-p flow --lib --tests"]),
    ("reference", 60, &["-p reference --lib --tests"]),
    ("tables", 120, &["-p tables --lib", "-p tables --tests"]),
    ("pipeline", 60, &["-p pipeline --lib"]),
    ("openflow", 60, &["-p openflow --lib --tests"]),
    ("model", 60, &["-p model --lib", "-p model --tests"]),
    ("worker", 120, &["-p worker --lib", "-p worker --tests"]),
    ("sim", 240, &["-p sim --test oracle", "-p sim --lib --tests"]),
    ("switch", 240, &["-p switch --lib --tests"]),
];

/// The command that removes what was built of all these crates.
pub fn clean() -> Vec<String> {
    let packages = COMMANDS.iter().flat_map(|(name, ..)| ["--package", name]);
    ["cargo", "clean", "--quiet"].into_iter().chain(packages).map(str::to_owned).collect()
}

/// One command that may find a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    arguments: Vec<String>,
    /// Seconds on the processor for each test process.
    pub processor_s: u64,
}

impl Stage {
    fn new(arguments: &str, processor_s: u64) -> Self {
        Self { arguments: arguments.split_whitespace().map(str::to_owned).collect(), processor_s }
    }

    /// Its name: the arguments.
    pub fn name(&self) -> String {
        self.arguments.join(" ")
    }

    /// The command that only builds.
    pub fn build(&self) -> Vec<String> {
        let start = ["cargo", "test", "--quiet", "--no-run"].map(str::to_owned);
        start.into_iter().chain(self.arguments.iter().cloned()).collect()
    }

    /// The command that runs what is built, with limits on each process: seconds on the processor, since a loop without
    /// end burns them however busy the machine is, and bytes of memory.
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

/// The stages for a mutant of each crate.
pub struct Stages {
    /// What each crate depends on itself.
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

    /// The stages for a mutant in `name`, in order; none for a crate without tests here.
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
        // The crate's own tests come first, whatever else it uses.
        let own = |stage: &Stage| stage.arguments.get(1).is_some_and(|package| package == name);
        stages.sort_by_key(|stage| !own(stage));
        stages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_without_end_is_told_from_a_failure() {
        // The hard limit would end it with a signal that says nothing.
        let command = Stage::new("-p flow", 1).run();
        let script = command[2].replace("exec cargo test --quiet -p flow", "while true; do true; done");
        let status = std::process::Command::new("bash").args(["-c", &script]).status().unwrap();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(signal_hook::consts::SIGXCPU)
        );
    }

    #[test]
    fn own_tests_come_first_then_those_of_users() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let stages = Stages::read(&root).unwrap();
        let names = |name: &str| stages.of(name).iter().map(Stage::name).collect::<Vec<_>>();
        assert_eq!(
            names("worker"),
            [
                "-p worker --lib",
                "-p worker --tests",
                "-p sim --test oracle",
                "-p sim --lib --tests",
                "-p switch --lib --tests"
            ]
        );
        let of_tables = names("tables");
        assert_eq!(of_tables[..3], ["-p tables --lib", "-p tables --tests", "-p pipeline --lib"]);
        assert!(!of_tables.iter().any(|name| name.contains("flow") || name.contains("reference")));
        assert_eq!(names("nothing"), [""; 0]);
    }
}
