// SPDX-License-Identifier: Apache-2.0
//! Settings of mirrors (docs/adr/0064).

use flow::{MirrorSelection, PortNo};
use std::path::PathBuf;

/// A mirror, which copies frames of some ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredMirror {
    /// Name of the mirror.
    pub name: String,
    /// Frames to copy.
    pub selection: MirrorSelection,
    /// Where the copies go.
    pub output: MirrorOutput,
}

/// Where the copies of a mirror go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MirrorOutput {
    /// A port.
    Port {
        /// Number of the port.
        port: PortNo,
        /// Whether the port also forwards other traffic.
        other_traffic: bool,
    },
    /// A pcapng file.
    File(MirrorFile),
}

/// A pcapng file with its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of bytes that are kept of each frame.
    pub snap_bytes: usize,
    /// Maximum size of the file in bytes.
    pub max_bytes: u64,
    /// Maximum number of frames in the file, if there is one.
    pub max_packets: Option<u64>,
}

impl ConfiguredMirror {
    /// Returns the port that forwards only copies of this mirror, if there is one.
    #[must_use]
    pub fn reserved_port(&self) -> Option<PortNo> {
        match self.output {
            MirrorOutput::Port { port, other_traffic: false } => Some(port),
            MirrorOutput::Port { other_traffic: true, .. } | MirrorOutput::File(_) => None,
        }
    }

    /// Returns the output port, if the copies go to a port.
    pub(crate) fn output_port(&self) -> Option<PortNo> {
        match self.output {
            MirrorOutput::Port { port, .. } => Some(port),
            MirrorOutput::File(_) => None,
        }
    }

    /// Returns the path of the file to which the mirror writes, if it writes to one.
    #[must_use]
    pub fn file(&self) -> Option<&PathBuf> {
        match &self.output {
            MirrorOutput::Port { .. } => None,
            MirrorOutput::File(file) => Some(&file.path),
        }
    }

    /// Returns whether frames of this port are copied.
    pub(crate) fn is_source(&self, port: PortNo) -> bool {
        self.selection.ingress.contains(&port) || self.selection.egress.contains(&port)
    }
}
