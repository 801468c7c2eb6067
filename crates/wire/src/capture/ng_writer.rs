// SPDX-License-Identifier: Apache-2.0
//! Writer of pcapng files with several interfaces, directions and nanosecond time stamps.

use super::writer::failed;
use super::{CaptureError, PACKET_LEN_MAX};
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

/// Bits 0 and 1 of a packet's flags: the direction.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// Resolution of time stamps: 10^-9 s.
const NANOSECONDS: u8 = 9;

/// A packet to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NgPacket<'a> {
    /// Place of the interface in the list of interfaces.
    pub interface: usize,
    /// Nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// Whether the packet left by the interface. Otherwise it arrived there.
    pub is_outbound: bool,
    /// Length of the packet on the wire.
    pub original_len: u32,
    /// First bytes of the packet, at most [`PACKET_LEN_MAX`].
    pub bytes: &'a [u8],
}

/// Writes Ethernet frames to a pcapng file.
pub struct NgWriter<W: Write> {
    writer: PcapNgWriter<Counted<W>>,
    packets: u64,
}

/// An output that counts its bytes.
struct Counted<W> {
    output: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.output.write(bytes)?;
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl<W: Write> NgWriter<W> {
    /// Writes to any output, which should be buffered. The file has interfaces with these names. `snap_bytes`
    /// is the number of bytes that are kept of each packet.
    ///
    /// # Errors
    /// Returns an error if the header cannot be written.
    pub fn new(output: W, snap_bytes: usize, interfaces: &[String]) -> Result<Self, CaptureError> {
        let mut writer = PcapNgWriter::new(Counted { output, bytes: 0 }).map_err(|error| failed(0, error))?;
        let snaplen = snap_bytes.min(PACKET_LEN_MAX) as u32;
        for name in interfaces {
            let options = vec![
                InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen, options };
            writer.write_block(&block.into_block()).map_err(|error| failed(0, error))?;
        }
        Ok(Self { writer, packets: 0 })
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// Returns an error if the packet cannot be written.
    pub fn write(&mut self, packet: &NgPacket<'_>) -> Result<(), CaptureError> {
        let number = self.packets + 1;
        let direction = if packet.is_outbound { OUTBOUND } else { INBOUND };
        let block = EnhancedPacketBlock {
            interface_id: packet.interface as u32,
            timestamp: Duration::from_nanos(packet.timestamp_ns),
            original_len: packet.original_len,
            data: Cow::Borrowed(packet.bytes),
            options: vec![EnhancedPacketOption::Flags(direction)],
        };
        self.writer.write_block(&block.into_block()).map_err(|error| failed(number, error))?;
        self.packets = number;
        Ok(())
    }

    /// Returns the number of bytes that a packet with `captured` bytes takes in the file.
    #[must_use]
    pub fn len_of(captured: usize) -> u64 {
        /// The block's kind, its length at both ends, its fixed fields, and the option with its end.
        const AROUND: u64 = 12 + 20 + 12;
        AROUND + captured.next_multiple_of(4) as u64
    }

    /// Returns the number of packets written.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the number of bytes written, with the header.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.writer.get_ref().bytes
    }

    /// Passes buffered bytes on.
    ///
    /// # Errors
    /// Returns an error if the output cannot be flushed.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        let packet = self.packets;
        self.writer
            .get_mut()
            .flush()
            .map_err(|error| CaptureError::Write { packet, reason: error.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::CaptureReader;

    #[test]
    fn packets_are_read_back_and_have_the_announced_lengths() {
        let mut file = Vec::new();
        let names = ["p1".to_owned(), "port-2".to_owned()];
        let mut writer = NgWriter::new(&mut file, 64, &names).unwrap();
        let mut lengths = Vec::new();
        for (n, captured) in [14, 15, 16, 17, 64].into_iter().enumerate() {
            let before = writer.bytes();
            let bytes = vec![n as u8; captured];
            let packet = NgPacket {
                interface: n % 2,
                timestamp_ns: 1_700_000_000_123_456_789 + n as u64,
                is_outbound: n % 2 == 0,
                original_len: 1_500,
                bytes: &bytes,
            };
            writer.write(&packet).unwrap();
            lengths.push((writer.bytes() - before, NgWriter::<Vec<u8>>::len_of(captured)));
        }
        writer.flush().unwrap();
        assert!(lengths.iter().all(|(real, announced)| real == announced), "{lengths:?}");
        assert_eq!(writer.packets(), 5);
        let bad = NgPacket { interface: 2, timestamp_ns: 0, is_outbound: true, original_len: 1, bytes: &[1] };
        let error = writer.write(&bad).unwrap_err().to_string();
        assert!(error.starts_with("cannot write the capture, packet 6: "), "{error}");
        let bytes = writer.bytes();
        drop(writer);
        assert_eq!(file.len() as u64, bytes);
        let mut reader = CaptureReader::new(io::Cursor::new(file)).unwrap();
        for (n, captured) in [14, 15, 16, 17, 64].into_iter().enumerate() {
            let packet = reader.next_packet().unwrap().unwrap();
            assert_eq!(
                (packet.timestamp_ns, packet.interface),
                (1_700_000_000_123_456_789 + n as u64, n as u32 % 2)
            );
            assert_eq!((packet.original_len, packet.bytes), (1_500, &vec![n as u8; captured][..]));
        }
        assert!(reader.next_packet().unwrap().is_none());
    }
}
