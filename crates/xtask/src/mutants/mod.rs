// SPDX-License-Identifier: Apache-2.0
//! Planted faults. Each patch of `tests/mutations` names a test, which must fail with the patch and pass
//! without it.
//!
//! Two lanes run at a time, because a compiler and a test often use one CPU only. Each lane has a copy of the
//! tree, `target/mutants/tree-N`, where the patches are applied, tested and reverted one after another. Its
//! build folder is `target/mutants/build-N`; compiled units of the tree are copied to it first (`seed.rs`). A
//! lane takes all patches that test one package, so that no package is compiled in both lanes.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::{Failure, say};

mod copy;
mod patch;
pub mod random;
mod runner;
mod seed;

use copy::TreeCopy;
pub use patch::PatchChoice;
use patch::{Patch, TestCommand};
use runner::{RunOutcome, Runner};

const FOLDER: &str = "tests/mutations";

/// Result of one mutation.
struct Row {
    name: String,
    verdict: String,
    seconds: f64,
    caught: bool,
}

/// Number of lanes.
const LANES: usize = 2;

/// Runs the chosen mutations of the tree at `root`. Returns true if all of them are caught.
///
/// If `features` are given, `cargo test --workspace --features FEATURES --no-run` has compiled the tree. Then
/// a new build folder gets the units of all packages, and only patched crates and their dependents are
/// compiled.
pub fn run(root: &Path, choice: PatchChoice<'_>, features: Option<&str>) -> Result<bool, Failure> {
    let patches = Patch::read_all(&root.join(FOLDER), choice)?;
    let (count, units) = (patches.len(), patches.iter().filter_map(|patch| patch.command.unit()).collect());
    let groups = by_package(patches);
    let lanes = groups.len().min(LANES);
    let (groups, units) = (&Mutex::new(groups), &units);
    let lock = || groups.lock().unwrap_or_else(PoisonError::into_inner);
    let results: Vec<Result<Vec<Row>, Failure>> = thread::scope(|scope| {
        let lane = |number| {
            scope.spawn(move || {
                let rows =
                    Lane::new(root, number, features, units).and_then(|lane| lane.run(|| lock().pop()));
                // After a failure, the other lanes end after their groups.
                rows.inspect_err(|_| lock().clear())
            })
        };
        let lanes: Vec<_> = (1..=lanes).map(lane).collect();
        lanes
            .into_iter()
            .map(|lane| lane.join().unwrap_or_else(|_| Err("a lane has panicked".into())))
            .collect()
    });
    let rows: Vec<Vec<Row>> = results.into_iter().collect::<Result<_, _>>()?;
    let mut rows: Vec<Row> = rows.into_iter().flatten().collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    print(&rows);
    Ok(rows.len() == count && rows.iter().all(|row| row.caught))
}

/// Returns the patches in groups that test the same package. The largest group is the last.
fn by_package(patches: Vec<Patch>) -> Vec<Vec<Patch>> {
    let mut groups: Vec<Vec<Patch>> = Vec::new();
    for patch in patches {
        let is_same = |group: &&mut Vec<Patch>| group[0].command.package() == patch.command.package();
        match groups.iter_mut().find(is_same) {
            Some(group) => group.push(patch),
            None => groups.push(vec![patch]),
        }
    }
    groups.sort_by_key(Vec::len);
    groups
}

/// A copy of the tree with its build folder.
struct Lane<'a> {
    copy: TreeCopy,
    tests: Tests<'a>,
}

impl<'a> Lane<'a> {
    /// Prepares a lane. `units` are the names of the test programs that the patches run.
    fn new(
        root: &Path,
        number: usize,
        features: Option<&'a str>,
        units: &HashSet<String>,
    ) -> Result<Self, Failure> {
        let target = root.join("target");
        let logs = target.join("mutants");
        fs::create_dir_all(&logs).map_err(|error| format!("target/mutants cannot be created: {error}"))?;
        let copy = TreeCopy::make(root, &logs.join(format!("tree-{number}")))?;
        let build = logs.join(format!("build-{number}"));
        let test_units = features.filter(|_| !build.exists()).map(|_| units);
        if test_units.is_some() {
            copy.keep_times()?;
        }
        seed::copy_units(
            &target.join("debug"),
            &build.join("debug"),
            &seed::own_packages(root)?,
            test_units,
        )?;
        let tests = Tests { runner: Runner::new(copy.root(), &build, &logs)?, features };
        Ok(Self { copy, tests })
    }

    /// Runs groups of patches until there are no more. Returns a row for each patch.
    fn run(&self, next: impl Fn() -> Option<Vec<Patch>>) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        while let Some(patches) = next() {
            let unpatched = run_unpatched(&self.tests, &patches)?;
            for patch in &patches {
                let started = Instant::now();
                let baseline = unpatched.iter().find(|(command, _)| *command == patch.command);
                let (caught, verdict) = match baseline {
                    Some((_, RunOutcome::Passed)) => judge(&self.copy, &self.tests, patch)?,
                    _ => (false, format!("the unpatched code does not pass `{}`", patch.command.line())),
                };
                let seconds = started.elapsed().as_secs_f64();
                rows.push(Row { name: patch.name.clone(), verdict, seconds, caught });
            }
        }
        Ok(rows)
    }
}

/// Runs the tests of the patches once on the unmodified code: every command with the tests of its patches.
fn run_unpatched(tests: &Tests<'_>, patches: &[Patch]) -> Result<Vec<(TestCommand, RunOutcome)>, Failure> {
    let mut done: Vec<(TestCommand, RunOutcome)> = Vec::new();
    for patch in patches {
        if done.iter().all(|(command, _)| *command != patch.command) {
            let same = patches.iter().filter(|other| other.command == patch.command);
            let names: Vec<&str> = same.map(|other| other.fails.as_str()).collect();
            let log = format!("unpatched-{}-{}", patch.command.package(), done.len());
            let outcome = tests.run(&log, &patch.command, &names)?;
            say(io::stdout(), &format!("mutants: unpatched, `{}`: {outcome}", patch.command.line()));
            done.push((patch.command.clone(), outcome));
        }
    }
    Ok(done)
}

/// Runs tests of commands.
struct Tests<'a> {
    runner: Runner,
    features: Option<&'a str>,
}

impl Tests<'_> {
    fn run(&self, name: &str, command: &TestCommand, tests: &[&str]) -> Result<RunOutcome, Failure> {
        self.runner.run(name, &command.words_for(tests, self.features), &command.environment)
    }
}

fn judge(copy: &TreeCopy, tests: &Tests<'_>, patch: &Patch) -> Result<(bool, String), Failure> {
    let outcome = copy.patched(patch, || tests.run(&patch.name, &patch.command, &[&patch.fails]))?;
    let caught = matches!(&outcome, RunOutcome::Failed(tests) if tests.contains(&patch.fails));
    let verdict = match &outcome {
        RunOutcome::Failed(_) if caught => format!("caught by {}", patch.fails),
        RunOutcome::Failed(tests) => format!("{} passes; these failed: {}", patch.fails, tests.join(", ")),
        RunOutcome::Passed => "NOT CAUGHT: the test passes with the fault in place".into(),
        other => format!("no verdict: {other} (target/mutants/{}.log)", patch.name),
    };
    Ok((caught, verdict))
}

fn print(rows: &[Row]) {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    for row in rows {
        let mark = if row.caught { "ok  " } else { "FAIL" };
        say(io::stdout(), &format!("{mark} {:width$} {:6.1} s  {}", row.name, row.seconds, row.verdict));
    }
    let caught = rows.iter().filter(|row| row.caught).count();
    say(io::stdout(), &format!("mutants: {caught} of {} caught", rows.len()));
}
