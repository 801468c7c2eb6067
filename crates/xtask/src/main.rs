// SPDX-License-Identifier: Apache-2.0
//! Checks of the source tree.
//!
//! `cargo xtask tidy` checks the tree against the project's rules. `cargo xtask mutants` checks that tests
//! detect planted faults. Exit codes: 0 success, 1 a finding or failure, 2 a usage error. Begin with `tidy`
//! and `mutants`. The crate must not depend on a crate that it checks.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

mod code;
mod mutants;
mod tidy;
mod tree;

use mutants::PatchChoice;

const USAGE: &str = "usage: cargo xtask tidy | mutants [--features LIST] [--all | NAME...] | mutants --random N [--seed S] [--crates A,B] [--again | --list]";

/// Error of a command, as a sentence for the user.
type Failure = String;

fn main() -> ExitCode {
    // The checked tree is the one from which this program was built.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["tidy"] => tidy::run(&root),
        ["mutants", "--features", features, patches @ ..] => planted(&root, patches, Some(features)),
        ["mutants", "--all"] => planted(&root, &["--all"], None),
        ["mutants", options @ ..] if options.iter().any(|word| word.starts_with('-')) => {
            let Some(options) = mutants::random::RandomOptions::parse(options) else { return usage() };
            mutants::random::run(&root, &options)
        }
        ["mutants", patches @ ..] => planted(&root, patches, None),
        _ => return usage(),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            say(io::stderr(), &format!("xtask: {failure}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs planted faults: `--all`, the named ones, or the faults of CI if there is no word.
fn planted(root: &Path, words: &[&str], features: Option<&str>) -> Result<bool, Failure> {
    let choice = match words {
        [] => PatchChoice::Quick,
        ["--all"] => PatchChoice::All,
        names => PatchChoice::Named(names),
    };
    mutants::run(root, choice, features)
}

fn usage() -> ExitCode {
    say(io::stderr(), USAGE);
    ExitCode::from(2)
}

/// Writes a line. A closed pipe is not an error.
fn say(mut to: impl Write, line: &str) {
    let _ = writeln!(to, "{line}");
}
