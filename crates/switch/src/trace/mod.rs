// SPDX-License-Identifier: Apache-2.0
//! `shunt trace`: explains how the switch forwards a packet, and why it drops it.
//!
//! A synthetic packet is a list of fields, bytes, or a packet of a capture. [`model::trace`] traces it
//! through the tables. This module builds the packet and formats the trace. It must not send, count or learn
//! anything. Begin with [`TraceForm`] and [`from_file`].

mod capture;
mod form;
mod hexadecimal;
mod live;
mod offline;
mod report;
pub(crate) mod synthesize;
mod why;

pub use capture::packet_of;
pub use form::{GroupForm, NearMissForm, Output, PacketForm, PacketInForm, Rule, TableForm, TraceForm};
pub(crate) use live::Watch;
pub use live::{Live, LiveSummary, Real, RealHit};
pub use offline::from_file;

use dataplane::DataPlane;
use flow::PortNo;
use model::Model;
use port::LARGE_FRAME_BYTES;
use wire::capture::CaptureError;
use worker::WorkerSet;

/// Default ingress port.
const IN_PORT: PortNo = 1;

/// Error of a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The list of fields cannot be parsed.
    #[error("the packet is not understood: {0}")]
    Fields(String),
    /// A field cannot be a property of a received packet.
    #[error("the packet is not understood: {0} {1}")]
    Field(String, &'static str),
    /// The TTL is invalid.
    #[error("the packet is not understood: \"{0}\" is no TTL; give nw_ttl=0 to nw_ttl=255")]
    Ttl(String),
    /// The number cannot be an ingress port.
    #[error("{0} is no port that packets come in by; give one of 1 to 4294967040")]
    InPort(u32),
    /// Two different ingress ports are given.
    #[error("the packet comes in by port {0} and by port {1}; give one of them")]
    TwoPorts(u32, u32),
    /// The bytes are not hexadecimal.
    #[error("the packet's bytes are not understood: {0}")]
    Hex(String),
    /// The packet is longer than any frame.
    #[error("the packet has {0} bytes; a frame has at most {LARGE_FRAME_BYTES}")]
    TooLong(usize),
    /// The filter for real packets cannot be parsed.
    #[error("the filter is not understood: {0}")]
    Filter(String),
    /// The number of packets is out of range.
    #[error("{0} packets can not be traced; ask for 1 to {1}")]
    Count(u64, u64),
    /// The duration is out of range.
    #[error("a trace can not take {0} ms; give it 1 to {1}")]
    Timeout(u64, u64),
    /// Another client traces real packets. Only one trace can be active.
    #[error("another client traces real packets; wait until it has ended, one does at a time")]
    Busy,
    /// Neither fields nor bytes are given, or both.
    #[error("give a packet either as \"fields\" or as \"hex\"")]
    NoPacket,
    /// The capture cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Capture {
        /// Path of the capture.
        path: std::path::PathBuf,
        /// Error of the reader.
        source: CaptureError,
    },
    /// The capture has fewer packets.
    #[error("{path}: has {packets} packets, not {number}; packets are counted from 1", path = path.display())]
    NoSuchPacket {
        /// Path of the capture.
        path: std::path::PathBuf,
        /// Number of packets in the capture.
        packets: u64,
        /// Requested packet number.
        number: u64,
    },
    /// The flow file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Flows {
        /// Path of the file.
        path: std::path::PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
}

/// Traces a synthetic packet through a model.
///
/// # Errors
///
/// Returns an error if the packet cannot be built.
pub fn trace_synthesized(model: &mut Model<WorkerSet>, packet: &PacketForm) -> Result<TraceForm, TraceError> {
    let (in_port, frame) = frame_of(packet, &port_names(model))?;
    let trace = model.trace(in_port, &frame);
    Ok(report::report(model, &trace))
}

/// Returns the port numbers of a model by port name.
fn port_names<D: DataPlane>(model: &Model<D>) -> config::flow_file::PortNames {
    model.ports().map(|port| (port.desc.name.clone(), port.desc.number)).collect()
}

/// Builds the frame of a packet, and returns it with its ingress port.
fn frame_of(
    packet: &PacketForm,
    names: &config::flow_file::PortNames,
) -> Result<(PortNo, Vec<u8>), TraceError> {
    let (port, frame) = match (&packet.fields, &packet.hex) {
        (Some(fields), None) => {
            let made = synthesize::synthesize(fields, &|name| names.get(name).copied())?;
            (made.in_port, made.frame)
        }
        (None, Some(hex)) => (None, hexadecimal::parse(hex)?),
        _ => return Err(TraceError::NoPacket),
    };
    if let (Some(one), Some(other)) = (port, packet.in_port)
        && one != other
    {
        return Err(TraceError::TwoPorts(one, other));
    }
    let port = port.or(packet.in_port).unwrap_or(IN_PORT);
    if !flow::port_no::is_real(port) {
        return Err(TraceError::InPort(port));
    }
    Ok((port, frame))
}
