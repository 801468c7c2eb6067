// SPDX-License-Identifier: Apache-2.0
//! Traces without a running switch, through the flows of a file.

use super::form::TraceForm;
use super::report::report;
use crate::flow_file::{FlowFile, FlowFileError, PortNames};
use crate::packet::{PacketError, PacketForm};
use model::ModelConfig;
use std::io;
use std::path::{Path, PathBuf};

/// Error of a trace through the flows of a file.
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

/// Traces a packet through the flows of a file. The ingress port and all ports that the flows name exist and
/// are up.
///
/// # Errors
///
/// Returns an error if the packet cannot be built, or if the file cannot be read or its flows are refused.
pub fn from_file(path: &Path, packet: &PacketForm) -> Result<TraceForm, TraceError> {
    let (in_port, frame) = packet.frame(&PortNames::new())?;
    let failed = |source| TraceError::Flows { path: path.into(), source };
    let file = FlowFile::open(path).map_err(failed)?;
    let mut ports = file.ports();
    ports.insert(in_port);
    let invalid =
        |error: FlowFileError| failed(io::Error::new(io::ErrorKind::InvalidData, error.to_string()));
    let mut model = file.into_model(ModelConfig::default(), ports).map_err(invalid)?;
    let trace = model.trace(in_port, &frame);
    Ok(report(&mut model, &trace))
}
