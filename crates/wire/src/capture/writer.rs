// SPDX-License-Identifier: Apache-2.0
//! Writer of pcap files with nanosecond time stamps.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{Endianness, PcapError, TsResolution};

use super::{CaptureError, PACKET_LEN_MAX};

/// Writes Ethernet frames to a pcap file with time stamps in nanoseconds.
#[derive(Debug)]
pub struct CaptureWriter<W: Write> {
    writer: PcapWriter<W>,
    packets: u64,
}

impl CaptureWriter<BufWriter<File>> {
    /// Creates a file, or overwrites an existing file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created or its header cannot be written.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        let file = File::create(path)
            .map_err(|error| CaptureError::Write { packet: 0, reason: error.to_string() })?;
        Self::new(BufWriter::new(file))
    }
}

impl<W: Write> CaptureWriter<W> {
    /// Writes to any output, which should be buffered.
    ///
    /// # Errors
    /// Returns an error if the header cannot be written.
    pub fn new(output: W) -> Result<Self, CaptureError> {
        let header = PcapHeader {
            snaplen: PACKET_LEN_MAX as u32,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let writer = PcapWriter::with_header(output, header).map_err(|error| failed(0, error))?;
        Ok(Self { writer, packets: 0 })
    }

    /// Writes one packet of at most [`PACKET_LEN_MAX`] bytes. `timestamp_ns` is in nanoseconds since 1970 and
    /// before 2106. `original_len` is the length on the wire; if it is too small, the length of `bytes` is
    /// used instead.
    ///
    /// # Errors
    /// Returns an error if the packet cannot be written.
    pub fn write(&mut self, timestamp_ns: u64, original_len: u32, bytes: &[u8]) -> Result<(), CaptureError> {
        let packet = self.packets + 1;
        let original_len = original_len.max(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.writer
            .write_packet(&PcapPacket::new(Duration::from_nanos(timestamp_ns), original_len, bytes))
            .map_err(|error| failed(packet, error))?;
        self.packets = packet;
        Ok(())
    }

    /// Returns the number of packets written.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Flushes the output and returns it. Without this call, a write error at the end of the file would go
    /// unnoticed.
    ///
    /// # Errors
    /// Returns an error if the output cannot be flushed.
    pub fn finish(self) -> Result<W, CaptureError> {
        let mut output = self.writer.into_writer();
        output
            .flush()
            .map_err(|error| CaptureError::Write { packet: self.packets, reason: error.to_string() })?;
        Ok(output)
    }
}

pub(super) fn failed(packet: u64, error: PcapError) -> CaptureError {
    let reason = match error {
        PcapError::IoError(error) => error.to_string(),
        other => other.to_string(),
    };
    CaptureError::Write { packet, reason }
}
