// SPDX-License-Identifier: Apache-2.0
//! What can go wrong in a comparison.

use std::io;
use std::path::PathBuf;

/// Why a figure could not be measured, written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call for clocks or placement was refused.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A contender's program failed, or did not end with a window.
    #[error("the program `{command}` {fault}")]
    Program {
        /// The command line.
        command: String,
        /// What it did.
        fault: String,
    },
    /// A contender reported a failure of its own.
    #[error("a contender failed: {0}")]
    Contender(String),
    /// A window's figure is not a positive number.
    #[error(
        "{side} measured {value}, which is not a positive number; a window must do work that takes CPU time"
    )]
    Value {
        /// `ours` or `peer`.
        side: &'static str,
        /// The figure.
        value: f64,
    },
    /// The core was taken away in every window, or in every pair of them.
    #[error("no window or pair was left undisturbed in {attempts}; use shorter windows or a quieter machine")]
    AllDisturbed {
        /// Windows or pairs run.
        attempts: usize,
    },
    /// A report file could not be written or read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A line of a report file is not a figure.
    #[error("{}, line {line}: not a figure: {source}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// What the parser says.
        source: serde_json::Error,
    },
}
