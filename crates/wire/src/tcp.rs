// SPDX-License-Identifier: Apache-2.0
//! TCP header (RFC 9293).

use crate::view::view;

/// IP protocol number.
pub const PROTO: u8 = 6;
/// The sender has no more data.
pub const FIN: u16 = 0x01;
/// Synchronise sequence numbers.
pub const SYN: u16 = 0x02;
/// Reset.
pub const RST: u16 = 0x04;
/// Push.
pub const PSH: u16 = 0x08;
/// The acknowledgement number is valid.
pub const ACK: u16 = 0x10;
/// The urgent pointer is valid.
pub const URG: u16 = 0x20;
/// ECN echo (RFC 3168).
pub const ECE: u16 = 0x40;
/// Congestion window reduced (RFC 3168).
pub const CWR: u16 = 0x80;

view! {
    /// TCP segment with a complete header, including options.
    Segment, "TCP header", 20, |bytes| {
        let header_len = usize::from(bytes[12] >> 4) * 4;
        header_len >= 20 && bytes.len() >= header_len
    };
    /// Source port.
    0: src_port, set_src_port, u16;
    /// Destination port.
    2: dst_port, set_dst_port, u16;
    /// Sequence number of the first byte of payload.
    4: seq, set_seq, u32;
    /// Acknowledgement number.
    8: ack, set_ack, u32;
    /// Data offset (4 bits) and control bits (12).
    12: offset_and_flags, set_offset_and_flags, u16;
    /// Receive window.
    14: window, set_window, u16;
    /// Checksum.
    16: checksum, set_checksum, u16;
    /// Urgent pointer.
    18: urgent, set_urgent, u16;
}

impl<T: AsRef<[u8]>> Segment<T> {
    /// Returns the length of the header with options in bytes.
    pub fn header_len(&self) -> usize {
        usize::from(self.offset_and_flags() >> 12) * 4
    }

    /// Returns the 12 control bits ([`FIN`] and others). OpenFlow extensions match these bits.
    pub fn flags(&self) -> u16 {
        self.offset_and_flags() & 0x0fff
    }

    /// Returns the bytes after the header.
    pub fn payload(&self) -> &[u8] {
        &self.buffer.as_ref()[self.header_len()..]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Segment<T> {
    /// Sets the 12 control bits.
    pub fn set_flags(&mut self, flags: u16) {
        self.set_offset_and_flags(self.offset_and_flags() & 0xf000 | flags & 0x0fff);
    }
}
