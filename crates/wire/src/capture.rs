// SPDX-License-Identifier: Apache-2.0
//! Capture files of Ethernet packets. This module reads and writes pcap and pcapng. Written files have
//! nanosecond time stamps.
//!
//! The crate `pcap-file` splits files into records and blocks. Its decoder is not used, because it refuses
//! packets that were longer on the wire than the snapshot length.

mod ng;
mod ng_writer;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::Path;

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::{DataLink, PcapError, TsResolution};

pub use ng_writer::{NgPacket, NgWriter};
pub use writer::CaptureWriter;

/// Link type of Ethernet in capture files.
const ETHERNET: u32 = 1;
/// Maximum length of a packet in bytes, as in libpcap. A larger length indicates a corrupt file.
pub const PACKET_LEN_MAX: usize = 262_144;

/// Error in reading or writing a capture. Packets are numbered from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file could not be read.
    #[error("cannot read the capture: {0}")]
    Read(#[source] io::Error),
    /// The first bytes of the file belong to neither format.
    #[error("not a capture: begins with {magic:02x?}; a pcap or pcapng file is needed")]
    Format {
        /// First bytes of the file, at most four.
        magic: Vec<u8>,
    },
    /// The file header before the first packet is invalid.
    #[error("bad capture header: {reason}")]
    Header {
        /// Reason why the header is invalid.
        reason: String,
    },
    /// The packets have an unsupported link layer.
    #[error("link type {name} ({number}) is not supported: Ethernet (1) is needed")]
    LinkType {
        /// Name of the link type, as registered for capture files.
        name: String,
        /// Number of the link type.
        number: u32,
    },
    /// A packet is cut short or invalid.
    #[error("packet {packet}: {reason}")]
    Packet {
        /// Number of the packet.
        packet: u64,
        /// Reason why the packet is invalid.
        reason: String,
    },
    /// The file could not be written.
    #[error("cannot write the capture, packet {packet}: {reason}")]
    Write {
        /// Number of the packet, or 0 for the file header.
        packet: u64,
        /// Reason for the failure.
        reason: String,
    },
}

/// Packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// Time of capture in nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Number of the interface within the pcapng section; 0 in pcap.
    pub interface: u32,
    /// Length on the wire in bytes.
    pub original_len: u32,
    /// Whether fewer bytes were captured than were on the wire.
    pub truncated: bool,
    /// Captured bytes, from the Ethernet header on.
    pub bytes: &'a [u8],
}

/// The whole input: the four bytes that were read to detect the format, then the rest.
type Input = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// Reads a capture packet by packet.
pub struct CaptureReader {
    format: Format,
    /// Buffer of the last packet returned from pcapng.
    bytes: Vec<u8>,
    /// Number of packets read.
    packets: u64,
    /// Whether reading has ended, at the end of the file or because of an error.
    ended: bool,
}

enum Format {
    Pcap { reader: Box<PcapReader<Input>>, nanoseconds: bool },
    Ng { reader: Box<PcapNgReader<Input>>, section: ng::Section },
}

impl std::fmt::Debug for CaptureReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureReader").field("packets", &self.packets).finish_non_exhaustive()
    }
}

impl CaptureReader {
    /// Opens a capture file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or its header is invalid.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        Self::new(File::open(path).map_err(CaptureError::Read)?)
    }

    /// Reads a capture from any source, which need not be buffered.
    ///
    /// # Errors
    /// Returns an error if the source cannot be read or the file header is invalid.
    pub fn new(input: impl Read + Send + 'static) -> Result<Self, CaptureError> {
        let mut input: Box<dyn Read + Send> = Box::new(input);
        let mut magic = Vec::new();
        input.by_ref().take(4).read_to_end(&mut magic).map_err(CaptureError::Read)?;
        let is_ng = magic == [0x0a, 0x0d, 0x0d, 0x0a];
        let is_pcap = matches!(
            magic[..],
            [0xa1, 0xb2, 0xc3, 0xd4]
                | [0xd4, 0xc3, 0xb2, 0xa1]
                | [0xa1, 0xb2, 0x3c, 0x4d]
                | [0x4d, 0x3c, 0xb2, 0xa1]
        );
        if !is_ng && !is_pcap {
            return Err(CaptureError::Format { magic });
        }
        let input = Cursor::new(magic).chain(input);
        let header = |error| CaptureError::Header { reason: reason(error) };
        let format = if is_ng {
            let reader = PcapNgReader::new(input).map_err(header)?;
            let section = ng::Section::new(reader.section().endianness);
            Format::Ng { reader: Box::new(reader), section }
        } else {
            let reader = PcapReader::new(input).map_err(header)?;
            // The upper bits of the link type describe the frame check sequence.
            need_ethernet(u32::from(reader.header().datalink) & 0x03ff_ffff)?;
            let nanoseconds = reader.header().ts_resolution == TsResolution::NanoSecond;
            Format::Pcap { reader: Box::new(reader), nanoseconds }
        };
        Ok(Self { format, bytes: Vec::new(), packets: 0, ended: false })
    }

    /// Returns the next packet, or `None` at the end of the file and after an error.
    ///
    /// # Errors
    /// Returns an error if the packet or the file cannot be read; see [`CaptureError`].
    pub fn next_packet(&mut self) -> Result<Option<CapturedPacket<'_>>, CaptureError> {
        if self.ended {
            return Ok(None);
        }
        // If this packet cannot be parsed, reading ends, because no later length can be trusted.
        self.ended = true;
        let packet = self.packets + 1;
        let bad = |reason| CaptureError::Packet { packet, reason };
        let found = match &mut self.format {
            Format::Pcap { reader, nanoseconds } => {
                let Some(record) = reader.next_raw_packet() else { return Ok(None) };
                let record = record.map_err(|error| bad(reason(error)))?;
                let unit_ns = if *nanoseconds { 1 } else { 1000 };
                CapturedPacket {
                    timestamp_ns: u64::from(record.ts_sec) * 1_000_000_000
                        + u64::from(record.ts_frac) * unit_ns,
                    interface: 0,
                    original_len: record.orig_len,
                    truncated: false,
                    bytes: borrowed(record.data).ok_or_else(|| bad("its bytes are not available".into()))?,
                }
            }
            Format::Ng { reader, section } => loop {
                let Some(block) = reader.next_raw_block() else { return Ok(None) };
                let block = block.map_err(|error| bad(reason(error)))?;
                let body = borrowed(block.body).ok_or_else(|| bad("its bytes are not available".into()))?;
                match section.block(block.type_, body) {
                    Ok(Some(found)) => {
                        self.bytes.clear();
                        self.bytes.extend_from_slice(found.bytes);
                        break CapturedPacket {
                            timestamp_ns: found.timestamp_ns,
                            interface: found.interface,
                            original_len: found.original_len,
                            truncated: found.truncated,
                            bytes: &self.bytes,
                        };
                    }
                    Ok(None) => {}
                    Err(ng::BlockError::Content(reason)) => return Err(bad(reason)),
                    Err(ng::BlockError::LinkType(number)) => need_ethernet(number)?,
                }
            },
        };
        let len = found.bytes.len();
        if len > PACKET_LEN_MAX {
            return Err(bad(format!(
                "its length of {len} bytes exceeds the maximum of {PACKET_LEN_MAX}; the file is corrupt"
            )));
        }
        self.packets = packet;
        self.ended = false;
        Ok(Some(CapturedPacket { truncated: len < found.original_len as usize, ..found }))
    }
}

/// Refuses link types other than Ethernet.
fn need_ethernet(number: u32) -> Result<(), CaptureError> {
    if number == ETHERNET {
        return Ok(());
    }
    let name = match DataLink::from(number) {
        DataLink::Unknown(_) => "of unknown name".to_owned(),
        known => format!("{known:?}"),
    };
    Err(CaptureError::LinkType { name, number })
}

/// Returns the bytes of a record. `pcap-file` always borrows them from its buffer.
fn borrowed(bytes: std::borrow::Cow<'_, [u8]>) -> Option<&[u8]> {
    match bytes {
        std::borrow::Cow::Borrowed(bytes) => Some(bytes),
        std::borrow::Cow::Owned(_) => None,
    }
}

/// Returns the description of an error of `pcap-file`.
fn reason(error: PcapError) -> String {
    match error {
        PcapError::IncompleteBuffer => "the file ends within it, or its length is corrupt".to_owned(),
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            "the file ends within it, or its length is corrupt".to_owned()
        }
        PcapError::IoError(error) => format!("cannot be read: {error}"),
        other => format!("corrupt: {other}"),
    }
}
