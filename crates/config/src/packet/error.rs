// SPDX-License-Identifier: Apache-2.0
//! Errors of packets that are given as text or in a capture.

use flow::PortNo;
use port::LARGE_FRAME_BYTES;
use std::path::PathBuf;
use wire::capture::CaptureError;

/// Error of a packet that is given as text or in a capture.
#[derive(Debug, thiserror::Error)]
pub enum PacketError {
    /// The list of fields cannot be parsed.
    #[error("the packet is not understood: {0}")]
    Fields(String),
    /// A received packet cannot have the field, or the field cannot have this mask.
    #[error("the packet is not understood: {0} {1}")]
    Field(String, &'static str),
    /// The TTL is invalid.
    #[error("the packet is not understood: \"{0}\" is not a TTL; give nw_ttl=0 to nw_ttl=255")]
    Ttl(String),
    /// The number cannot be an ingress port.
    #[error("{0} is not an ingress port; use 1 to 4294967040")]
    InPort(PortNo),
    /// Two different ingress ports are given.
    #[error("the packet has the ingress ports {0} and {1}; give one of them")]
    TwoPorts(PortNo, PortNo),
    /// The bytes are not hexadecimal.
    #[error("the packet's bytes are not understood: {0}")]
    Hex(String),
    /// The packet is longer than any frame.
    #[error("the packet has {0} bytes; a frame has at most {LARGE_FRAME_BYTES}")]
    TooLong(usize),
    /// Neither fields nor bytes are given, or both are given.
    #[error("give a packet either as \"fields\" or as \"hex\"")]
    NoPacket,
    /// The capture cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Capture {
        /// Path of the capture.
        path: PathBuf,
        /// Error of the reader.
        source: CaptureError,
    },
    /// The capture has fewer packets.
    #[error("{path}: has {packets} packets, not {number}; packets are counted from 1", path = path.display())]
    NoSuchPacket {
        /// Path of the capture.
        path: PathBuf,
        /// Number of packets in the capture.
        packets: u64,
        /// Requested packet number.
        number: u64,
    },
}
