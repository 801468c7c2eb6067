// SPDX-License-Identifier: Apache-2.0
//! Errors of a replay.

use config::flow_file::FlowFileError;
use flow::PortNo;
use model::ModelError;
use std::io;
use std::path::PathBuf;
use wire::capture::CaptureError;

/// Reason why a replay failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The capture cannot be read, or is not an Ethernet capture.
    #[error("{}: {source}", path.display())]
    Capture {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the error.
        source: CaptureError,
    },
    /// The capture is a pipe, a folder or a device.
    #[error("{}: is not a regular file; a capture is read twice, so write it to a file first", .0.display())]
    NoFile(PathBuf),
    /// The flows cannot be read.
    #[error("{}: cannot read the flows: {source}", path.display())]
    ReadFlows {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the error.
        source: io::Error,
    },
    /// The flow file has mistakes, or a flow was refused.
    #[error("{}", mistakes.of(path))]
    Flows {
        /// Path of the file.
        path: PathBuf,
        /// Mistakes with their lines.
        mistakes: FlowFileError,
    },
    /// A port that the flows or the capture use cannot be created.
    #[error("cannot create a port that the flows or the capture use: {0}")]
    Port(#[from] ModelError),
    /// The configured ingress port is not a valid port.
    #[error("in-port {0} is not a port; ports are 1 to {max}", max = flow::port_no::MAX)]
    InPort(PortNo),
    /// A search worker is requested without a port cache.
    #[error("a search worker answers searches of the port cache, which is off; use --port-cache nonblocking")]
    Searcher,
    /// The output folder cannot be created.
    #[error("{}: cannot create the folder for the captures: {source}", path.display())]
    Folder {
        /// Path of the folder.
        path: PathBuf,
        /// Cause of the error.
        source: io::Error,
    },
    /// An output capture cannot be written.
    #[error("{}: {source}", path.display())]
    Output {
        /// Path of the file.
        path: PathBuf,
        /// Cause of the error.
        source: CaptureError,
    },
}
