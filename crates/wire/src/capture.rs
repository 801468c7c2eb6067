// SPDX-License-Identifier: Apache-2.0
//! Capture files: pcap and pcapng in, pcap with nanoseconds out. Ethernet only.
//!
//! The crate `pcap-file` cuts files into records and blocks. What is in them is decoded here: its own decoder refuses
//! packets that were longer on the wire than the snapshot length, and leaves pcapng time stamps in their file's units.

mod ng;
mod writer;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Chain, Cursor, Read};
use std::path::Path;

use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::PcapNgReader;
use pcap_file::{DataLink, PcapError, TsResolution};

pub use writer::CaptureWriter;

/// Link type of Ethernet in capture files.
const ETHERNET: u32 = 1;
/// Bytes of a packet at most, as in libpcap; a larger length is taken as a sign of a corrupt file.
pub const PACKET_LEN_MAX: usize = 262_144;

/// Why a capture cannot be read or written. Packets are counted from 1.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file itself cannot be read.
    #[error("cannot read the capture: {0}")]
    Read(#[source] io::Error),
    /// The first bytes are of neither format.
    #[error("not a capture: begins with {magic:02x?}; a pcap or pcapng file is needed")]
    Format {
        /// The first bytes, four at most.
        magic: Vec<u8>,
    },
    /// The header of the file, before the first packet, is bad.
    #[error("bad capture header: {reason}")]
    Header {
        /// What is wrong with it.
        reason: String,
    },
    /// Packets of another link layer.
    #[error("link type {name} ({number}) is not supported: Ethernet (1) is needed")]
    LinkType {
        /// Its name, as registered for capture files.
        name: String,
        /// Its number.
        number: u32,
    },
    /// The file ends within a packet, or says so.
    #[error("packet {packet}: {reason}")]
    Packet {
        /// Which packet.
        packet: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// The file cannot be written.
    #[error("cannot write the capture, packet {packet}: {reason}")]
    Write {
        /// Which packet; 0 for the header.
        packet: u64,
        /// What went wrong.
        reason: String,
    },
}

/// One packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket<'a> {
    /// When it was captured, in nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Number of its interface within the pcapng section; 0 in pcap.
    pub interface: u32,
    /// Its length on the wire in bytes.
    pub original_len: u32,
    /// Whether bytes are missing: captured less than there was on the wire.
    pub truncated: bool,
    /// The bytes captured, from the Ethernet header on.
    pub bytes: &'a [u8],
}

/// The bytes behind the four that told the format.
type Input = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

/// Reads a capture packet by packet.
pub struct CaptureReader {
    format: Format,
    /// The packet lent last, from pcapng.
    bytes: Vec<u8>,
    /// Packets read so far.
    packets: u64,
    /// No packet follows: the end was reached, or an error that cannot be stepped over.
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
    /// Opens a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        Self::new(File::open(path).map_err(CaptureError::Read)?)
    }

    /// Reads from anything; reads are large, no buffer is needed in front.
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
            // The upper bits tell of a frame check sequence.
            need_ethernet(u32::from(reader.header().datalink) & 0x03ff_ffff)?;
            let nanoseconds = reader.header().ts_resolution == TsResolution::NanoSecond;
            Format::Pcap { reader: Box::new(reader), nanoseconds }
        };
        Ok(Self { format, bytes: Vec::new(), packets: 0, ended: false })
    }

    /// The next packet; None at the end of the file, and after an error.
    pub fn next_packet(&mut self) -> Result<Option<CapturedPacket<'_>>, CaptureError> {
        if self.ended {
            return Ok(None);
        }
        // Until proven otherwise: an error ends the file, because lengths cannot be trusted behind it.
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
                    bytes: borrowed(record.data).ok_or_else(|| bad("its bytes are not at hand".into()))?,
                }
            }
            Format::Ng { reader, section } => loop {
                let Some(block) = reader.next_raw_block() else { return Ok(None) };
                let block = block.map_err(|error| bad(reason(error)))?;
                let body = borrowed(block.body).ok_or_else(|| bad("its bytes are not at hand".into()))?;
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
                "says it has {len} bytes, at most {PACKET_LEN_MAX} are possible; the file is corrupt"
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
        DataLink::Unknown(_) => "of no known name".to_owned(),
        known => format!("{known:?}"),
    };
    Err(CaptureError::LinkType { name, number })
}

/// The bytes of a record, which `pcap-file` always lends from its buffer.
fn borrowed(bytes: std::borrow::Cow<'_, [u8]>) -> Option<&[u8]> {
    match bytes {
        std::borrow::Cow::Borrowed(bytes) => Some(bytes),
        std::borrow::Cow::Owned(_) => None,
    }
}

/// What an error of `pcap-file` means for the file.
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
