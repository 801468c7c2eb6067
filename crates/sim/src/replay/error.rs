// SPDX-License-Identifier: Apache-2.0
//! Why a replay could not be done.

use flow::PortNo;
use flow::syntax::SyntaxError;
use model::ModelError;
use std::io;
use std::path::PathBuf;
use wire::capture::CaptureError;

/// Why a replay could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The capture cannot be read, or is not of Ethernet.
    #[error("{}: {source}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: CaptureError,
    },
    /// The capture is a pipe, a folder or a device.
    #[error("{}: is no regular file; a capture is read twice, so write it to a file first", .0.display())]
    NoFile(PathBuf),
    /// The flows cannot be read.
    #[error("{}: cannot read the flows: {source}", path.display())]
    ReadFlows {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A flow is not written as it must be.
    #[error("{}: {source}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        source: SyntaxError,
    },
    /// A flow is refused.
    #[error("{}: line {line}: {source}", path.display())]
    Flow {
        /// The file.
        path: PathBuf,
        /// The line.
        line: u32,
        /// Why it is refused.
        source: ModelError,
    },
    /// A port that flows or capture name cannot be made.
    #[error("the flows and the capture name ports that cannot be: {0}")]
    Port(#[from] ModelError),
    /// The port to come in by is none.
    #[error("in-port {0} is no port; ports are 1 to {max}", max = flow::port_no::MAX)]
    InPort(PortNo),
    /// A port cache is asked for.
    #[error("this build has no port cache, so the mode \"{0}\" cannot be replayed; use \"off\"")]
    NoPortCache(&'static str),
    /// The folder for the output cannot be made.
    #[error("{}: cannot make the folder for the captures: {source}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A capture cannot be written.
    #[error("{}: {source}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: CaptureError,
    },
}
