// SPDX-License-Identifier: Apache-2.0
//! `shunt trace`: what would become of a packet, told so that a user finds why it was dropped.
//!
//! An imagined packet is a list of fields, bytes, or a packet of a capture. The way through the tables is the model's
//! ([`model::trace`]); here it is made from what was typed and put into words.

mod capture;
mod form;
mod hexadecimal;
pub(crate) mod imagine;
mod live;
mod offline;
mod report;
mod why;

pub use capture::packet_of;
pub use form::{Group, Near, Output, Packet, PacketIn, Rule, Table, Trace};
pub(crate) use live::Watch;
pub use live::{Live, Real, RealHit, Summary};
pub use offline::from_file;

use flow::PortNo;
use model::{DataPlane, Model};
use port::LARGE_FRAME_BYTES;
use wire::capture::CaptureError;
use worker::WorkerSet;

/// The port of packets for which none is named.
const IN_PORT: PortNo = 1;

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The list of fields is not understood.
    #[error("the packet is not understood: {0}")]
    Fields(String),
    /// A field that a packet cannot be made of.
    #[error("the packet is not understood: {0} {1}")]
    Field(String, &'static str),
    /// Not a TTL.
    #[error("the packet is not understood: \"{0}\" is no TTL; give nw_ttl=0 to nw_ttl=255")]
    Ttl(String),
    /// Not a port that packets come in by.
    #[error("{0} is no port that packets come in by; give one of 1 to 4294967040")]
    InPort(u32),
    /// The port is named twice.
    #[error("the packet comes in by port {0} and by port {1}; give one of them")]
    TwoPorts(u32, u32),
    /// Not hexadecimal.
    #[error("the packet's bytes are not understood: {0}")]
    Hex(String),
    /// Longer than any frame.
    #[error("the packet has {0} bytes; a frame has at most {LARGE_FRAME_BYTES}")]
    TooLong(usize),
    /// The filter of real packets is not understood.
    #[error("the filter is not understood: {0}")]
    Filter(String),
    /// Too many packets, or none.
    #[error("{0} packets can not be traced; ask for 1 to {1}")]
    Count(u64, u64),
    /// Too long, or no time at all.
    #[error("a trace can not take {0} ms; give it 1 to {1}")]
    Timeout(u64, u64),
    /// There is one at a time.
    #[error("another client traces real packets; wait until it has ended, one does at a time")]
    Busy,
    /// Neither fields nor bytes, or both.
    #[error("give a packet either as \"fields\" or as \"hex\"")]
    NoPacket,
    /// The capture is not to be read.
    #[error("{path}: {source}", path = path.display())]
    Capture {
        /// Its path.
        path: std::path::PathBuf,
        /// Why.
        source: CaptureError,
    },
    /// The capture is shorter.
    #[error("{path}: has {packets} packets, not {number}; packets are counted from 1", path = path.display())]
    NoSuchPacket {
        /// Its path.
        path: std::path::PathBuf,
        /// Packets in it.
        packets: u64,
        /// The one that was asked for.
        number: u64,
    },
    /// The flow file is not to be read.
    #[error("{path}: {source}", path = path.display())]
    Flows {
        /// Its path.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Traces an imagined packet through a model.
///
/// # Errors
/// A packet that cannot be made.
pub fn imagined(model: &mut Model<WorkerSet>, packet: &Packet) -> Result<Trace, TraceError> {
    let (in_port, frame) = frame_of(packet, &port_names(model))?;
    let trace = model.trace(in_port, &frame);
    Ok(report::report(model, &trace))
}

/// The numbers of a model's ports by their names.
fn port_names<D: DataPlane>(model: &Model<D>) -> crate::flow_file::PortNames {
    model.ports().map(|port| (port.desc.name.clone(), port.desc.number)).collect()
}

/// The frame that a packet stands for, and the port it comes in by.
fn frame_of(packet: &Packet, names: &crate::flow_file::PortNames) -> Result<(PortNo, Vec<u8>), TraceError> {
    let (port, frame) = match (&packet.fields, &packet.hex) {
        (Some(fields), None) => {
            let made = imagine::imagine(fields, &|name| names.get(name).copied())?;
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
