// SPDX-License-Identifier: Apache-2.0
//! Planted faults. Each patch of `tests/mutations` names a test, which must fail with the patch and pass
//! without it.
//!
//! The tree is copied once to `target/mutants/tree`, where the patches are applied, tested and reverted one
//! after another. The build folder is `target/mutants/build`; compiled units of the tree are copied to it
//! first (`seed.rs`).

use std::fs;
use std::io;
use std::path::Path;
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

/// Runs the chosen mutations of the tree at `root`. Returns true if all of them are caught.
///
/// If `features` are given, `cargo test --workspace --features FEATURES --no-run` has compiled the tree. Then
/// a new build folder gets the units of all packages, and only patched crates and their dependents are
/// compiled.
pub fn run(root: &Path, choice: PatchChoice<'_>, features: Option<&str>) -> Result<bool, Failure> {
    let patches = Patch::read_all(&root.join(FOLDER), choice)?;
    let target = root.join("target");
    let logs = target.join("mutants");
    fs::create_dir_all(&logs).map_err(|error| format!("target/mutants cannot be created: {error}"))?;
    let copy = TreeCopy::make(root, &logs.join("tree"))?;
    let build = logs.join("build");
    let test_units = features.filter(|_| !build.exists()).map(|_| {
        let units = patches.iter().filter_map(|patch| patch.command.unit());
        units.collect()
    });
    if test_units.is_some() {
        copy.keep_times()?;
    }
    seed::copy_units(
        &target.join("debug"),
        &build.join("debug"),
        &seed::own_packages(root)?,
        test_units.as_ref(),
    )?;
    let tests = Tests { runner: Runner::new(copy.root(), &build, &logs)?, features };

    let unpatched = run_unpatched(&tests, &patches)?;
    let mut rows = Vec::new();
    for patch in &patches {
        let started = Instant::now();
        let baseline = unpatched.iter().find(|(command, _)| *command == patch.command);
        let (caught, verdict) = match baseline {
            Some((_, RunOutcome::Passed)) => judge(&copy, &tests, patch)?,
            _ => (false, format!("the unpatched code does not pass `{}`", patch.command.line())),
        };
        rows.push(Row {
            name: patch.name.clone(),
            verdict,
            seconds: started.elapsed().as_secs_f64(),
            caught,
        });
    }
    print(&rows);
    Ok(rows.iter().all(|row| row.caught))
}

/// Runs the tests of the patches once on the unmodified code: every command with the tests of its patches.
fn run_unpatched(tests: &Tests<'_>, patches: &[Patch]) -> Result<Vec<(TestCommand, RunOutcome)>, Failure> {
    let mut done: Vec<(TestCommand, RunOutcome)> = Vec::new();
    for patch in patches {
        if done.iter().all(|(command, _)| *command != patch.command) {
            let same = patches.iter().filter(|other| other.command == patch.command);
            let names: Vec<&str> = same.map(|other| other.fails.as_str()).collect();
            let outcome = tests.run(&format!("unpatched-{}", done.len()), &patch.command, &names)?;
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
