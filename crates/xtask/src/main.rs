// SPDX-License-Identifier: Apache-2.0
//! Generators and checks of the source tree.
//!
//! `cargo xtask tidy` holds the tree against the rules of the house; `cargo xtask mutants` shows that planted faults
//! are caught. Exit codes: 0, 1 something was found or failed, 2 usage.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

mod code;
mod mutants;
mod tidy;
mod tree;

use mutants::Choice;

const USAGE: &str = "usage: cargo xtask tidy | mutants [--all | NAME...] | mutants --random N [--seed S] [--crates A,B] [--again | --list]";

/// Why a command could not do its work; a sentence for the user.
type Failure = String;

fn main() -> ExitCode {
    // The tree is the one this program was built from.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["tidy"] => tidy::run(&root),
        ["mutants", "--all"] => mutants::run(&root, Choice::All),
        ["mutants", options @ ..] if options.iter().any(|word| word.starts_with('-')) => {
            let Some(options) = mutants::random::Options::parse(options) else { return usage() };
            mutants::random::run(&root, &options)
        }
        ["mutants"] => mutants::run(&root, Choice::Quick),
        ["mutants", names @ ..] => mutants::run(&root, Choice::Named(names)),
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

fn usage() -> ExitCode {
    say(io::stderr(), USAGE);
    ExitCode::from(2)
}

/// Writes a line; a reader that has gone away is no reason to fail.
fn say(mut to: impl Write, line: &str) {
    let _ = writeln!(to, "{line}");
}
