// SPDX-License-Identifier: Apache-2.0
//! The project's rules that a program can check.

use std::fmt;
use std::io;
use std::path::Path;

use crate::tree::{self, File};
use crate::{Failure, say};

mod circles;
mod docs;
mod faults;
mod functions;
mod header;
mod idioms;
mod layers;
mod length;
mod names;
mod pages;
mod pipes;
mod width;
mod words;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// Line number, counted from 1, or 0 for the whole file.
    line: usize,
    /// Description of the violation, and of its correction.
    says: String,
}

impl Finding {
    fn new(file: &File, line: usize, says: impl Into<String>) -> Self {
        Self { path: file.path.clone(), line, says: says.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.says),
            line => write!(f, "{}:{line}: {}", self.path, self.says),
        }
    }
}

/// Checks the tree at `root` and prints the findings. Returns true if there are none.
pub fn run(root: &Path) -> Result<bool, Failure> {
    let files = tree::read(root)?;
    let mut findings = check(&files);
    findings.sort();
    findings.dedup();
    for finding in &findings {
        say(io::stderr(), &finding.to_string());
    }
    let sizes = length::Sizes::of(&files);
    say(io::stdout(), &format!("tidy: {} files, {sizes}, {} findings", files.len(), findings.len()));
    Ok(findings.is_empty())
}

fn check(files: &[File]) -> Vec<Finding> {
    [
        length::check,
        names::check,
        header::check,
        idioms::check,
        layers::check,
        words::check,
        docs::check,
        faults::check,
        functions::check,
        pages::check,
        pipes::check,
        width::check,
        circles::check,
    ]
    .iter()
    .flat_map(|rule| rule(files))
    .collect()
}
