// SPDX-License-Identifier: Apache-2.0
//! Reads one packet of a capture.

use super::{PacketError, PacketForm, hexadecimal};
use flow::PortNo;
use port::LARGE_FRAME_BYTES;
use std::path::Path;
use wire::capture::CaptureReader;

/// Returns packet `number` of a capture, counted from 1. Without `in_port`, the ingress port is the number of
/// the capture interface plus 1.
///
/// # Errors
///
/// Returns an error if the capture cannot be read or has fewer packets, or if the packet is longer than any
/// frame.
pub fn packet_of(path: &Path, number: u64, in_port: Option<PortNo>) -> Result<PacketForm, PacketError> {
    let failed = |source| PacketError::Capture { path: path.into(), source };
    let mut reader = CaptureReader::open(path).map_err(failed)?;
    let mut packets = 0;
    while let Some(packet) = reader.next_packet().map_err(failed)? {
        packets += 1;
        if packets != number {
            continue;
        }
        if packet.bytes.len() > LARGE_FRAME_BYTES {
            return Err(PacketError::TooLong(packet.bytes.len()));
        }
        let in_port = in_port.unwrap_or(PortNo(packet.interface.saturating_add(1)));
        return Ok(PacketForm {
            fields: None,
            hex: Some(hexadecimal::format(packet.bytes)),
            in_port: Some(in_port),
        });
    }
    Err(PacketError::NoSuchPacket { path: path.into(), packets, number })
}
