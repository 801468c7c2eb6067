// SPDX-License-Identifier: Apache-2.0
//! Errors of measurements.

use std::io;
use std::path::PathBuf;

/// Reason why a figure could not be measured, written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call for clocks or pinning failed.
    #[error("{what}: {source}")]
    System {
        /// Attempted operation.
        what: String,
        /// Error of the system.
        source: io::Error,
    },
    /// A contender's program failed, or did not print a window.
    #[error("the program `{command}` {fault}")]
    Program {
        /// Command line of the program.
        command: String,
        /// Description of the failure.
        fault: String,
    },
    /// A contender reported a failure.
    #[error("a contender failed: {0}")]
    Contender(String),
    /// A window's figure is not a positive number.
    #[error(
        "{side} measured {value}, which is not a positive number; a window must do work that takes CPU time"
    )]
    Value {
        /// Contender: `ours` or `peer`.
        side: &'static str,
        /// Measured figure.
        value: f64,
    },
    /// Every window, or every pair of windows, was disturbed by preemption.
    #[error(
        "none of {attempts} windows or pairs of windows was undisturbed; use shorter windows or a quieter machine"
    )]
    AllDisturbed {
        /// Number of windows or pairs run.
        attempts: usize,
    },
    /// A report file could not be written or read.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// A line of a report file is not a figure.
    #[error("{}, line {line}: not a figure: {source}", path.display())]
    Line {
        /// Path of the file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Error of the parser.
        source: serde_json::Error,
    },
}
