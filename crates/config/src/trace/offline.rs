// SPDX-License-Identifier: Apache-2.0
//! Traces without a running switch. They use the flows of a file, and all ports are up.

use super::form::TraceForm;
use super::report::report;
use crate::flow_file::{FlowFile, PortNames, read_pieces};
use crate::packet::{PacketError, PacketForm};
use model::{Model, ModelConfig, PortDesc};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

/// Number of bytes of a flow file that are parsed at a time.
const PIECE_BYTES: usize = 64 * 1_024;

/// Error of a trace that is based on the flows of a file.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The packet cannot be built.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// The flow file cannot be read, or its flows are refused.
    #[error("{path}: {source}", path = path.display())]
    Flows {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system, or of the flows.
        source: io::Error,
    },
}

/// Traces a packet through the flows of a file. The switch has the ports that the flows name, and the ingress
/// port.
///
/// # Errors
///
/// Returns an error if the packet cannot be built, or if the file cannot be read or its flows are refused.
pub fn from_file(path: &Path, packet: &PacketForm) -> Result<TraceForm, TraceError> {
    let (in_port, frame) = packet.frame(&PortNames::new())?;
    let failed = |source| TraceError::Flows { path: path.into(), source };
    let mut file = FlowFile::default();
    let limit = flow::Limits::ENTRIES;
    let opened = File::open(path).map_err(failed)?;
    read_pieces(BufReader::new(opened), PIECE_BYTES, |piece| {
        file.push(piece);
        if file.len() > limit {
            let sentence = format!("has more than {limit} flows, the maximum of a switch");
            return Err(io::Error::new(io::ErrorKind::InvalidData, sentence));
        }
        Ok(())
    })
    .map_err(failed)?;
    // The last line may lack a line feed.
    file.push("\n");
    let (plane, _) = worker::build(
        &worker::WorkerSetConfig { workers: 0, ..worker::WorkerSetConfig::default() },
        Vec::new(),
    );
    let mut model = Model::new(ModelConfig::default(), plane, 0);
    let mut ports = file.ports();
    ports.insert(in_port);
    let invalid = |error: String| failed(io::Error::new(io::ErrorKind::InvalidData, error));
    for number in ports {
        let desc = PortDesc { number, name: format!("port-{number}"), ..PortDesc::default() };
        model.add_port(0, desc, true).map_err(|error| invalid(error.to_string()))?;
    }
    file.apply(&mut model, 0).map_err(|error| invalid(error.to_string()))?;
    let trace = model.trace(in_port, &frame);
    Ok(report(&mut model, &trace))
}
