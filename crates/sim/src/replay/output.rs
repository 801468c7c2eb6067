// SPDX-License-Identifier: Apache-2.0
//! Output captures of a replay.

use crate::replay::ReplayError;
use crate::replay::input::Arrival;
use flow::PortNo;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use wire::capture::CaptureWriter;

/// A capture that is being written.
pub(super) struct Output {
    path: PathBuf,
    writer: CaptureWriter<BufWriter<File>>,
}

impl Output {
    fn create(path: PathBuf) -> Result<Self, ReplayError> {
        match CaptureWriter::create(&path) {
            Ok(writer) => Ok(Self { path, writer }),
            Err(source) => Err(ReplayError::Output { path, source }),
        }
    }

    /// Writes a frame that was sent for a packet, with the packet's time stamp. The frame lacks as many bytes
    /// as the captured packet.
    pub fn write(&mut self, packet: &Arrival, whole_len: usize, bytes: &[u8]) -> Result<(), ReplayError> {
        let original_len = (whole_len as u32).saturating_add(packet.missing);
        self.writer
            .write(packet.timestamp_ns.0, original_len, bytes)
            .map_err(|source| ReplayError::Output { path: self.path.clone(), source })
    }

    fn finish(self) -> Result<(), ReplayError> {
        match self.writer.finish() {
            Ok(_) => Ok(()),
            Err(source) => Err(ReplayError::Output { path: self.path, source }),
        }
    }
}

/// Captures of the output: one per port, and one for the controller.
pub(super) struct Outputs {
    pub ports: BTreeMap<PortNo, Output>,
    pub controller: Output,
}

impl Outputs {
    pub fn create(folder: &Path, ports: &BTreeSet<PortNo>) -> Result<Self, ReplayError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| ReplayError::Folder { path: folder.to_path_buf(), source })?;
        let port = |number: &PortNo| {
            Output::create(folder.join(format!("port-{number}.pcap"))).map(|output| (*number, output))
        };
        Ok(Self {
            ports: ports.iter().map(port).collect::<Result<_, _>>()?,
            controller: Output::create(folder.join("controller.pcap"))?,
        })
    }

    pub fn finish(self) -> Result<(), ReplayError> {
        self.ports.into_values().chain([self.controller]).try_for_each(Output::finish)
    }
}
