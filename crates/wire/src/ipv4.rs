// SPDX-License-Identifier: Apache-2.0
//! IPv4 header (RFC 791).

use crate::checksum;
use crate::view::view;

fn is_whole(bytes: &[u8]) -> bool {
    let header_len = usize::from(bytes[0] & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
    bytes[0] >> 4 == 4 && header_len >= 20 && bytes.len() >= header_len && total_len >= header_len
}

view! {
    /// IPv4 packet: version 4, a complete header, and a total length not shorter than the header.
    Packet, "IPv4 header", 20, is_whole;
    /// Type of service: DSCP (6 bits) and ECN (2).
    1: tos, set_tos, u8;
    /// Length of header and payload in bytes.
    2: total_len, set_total_len, u16;
    /// Identification of the fragments of one packet.
    4: id, set_id, u16;
    /// Reserved bit, don't-fragment bit, more-fragments bit, and offset (13 bits, in 8-byte units).
    6: fragment, set_fragment, u16;
    /// Time to live.
    8: ttl, set_ttl, u8;
    /// Upper-layer protocol.
    9: proto, set_proto, u8;
    /// Header checksum.
    10: checksum, set_checksum, u16;
    /// Source address.
    12: src, set_src, [u8; 4];
    /// Destination address.
    16: dst, set_dst, [u8; 4];
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Returns the length of the header with options in bytes.
    pub fn header_len(&self) -> usize {
        usize::from(self.buffer.as_ref()[0] & 0x0f) * 4
    }

    /// Returns whether the packet is a fragment of a longer packet.
    pub fn is_fragment(&self) -> bool {
        self.fragment() & 0x3fff != 0
    }

    /// Returns the differentiated services code point, 6 bits.
    pub fn dscp(&self) -> u8 {
        self.tos() >> 2
    }

    /// Returns the explicit congestion notification, 2 bits.
    pub fn ecn(&self) -> u8 {
        self.tos() & 3
    }

    /// Returns the payload, without padding after the total length.
    pub fn payload(&self) -> &[u8] {
        let bytes = self.buffer.as_ref();
        &bytes[self.header_len()..bytes.len().min(usize::from(self.total_len()))]
    }

    /// Returns whether the header checksum is valid.
    pub fn checksum_ok(&self) -> bool {
        checksum::sum(&self.buffer.as_ref()[..self.header_len()]) == 0xffff
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Computes and writes the header checksum.
    pub fn fill_checksum(&mut self) {
        let value = checksum::ipv4_header(&self.buffer.as_ref()[..self.header_len()]);
        self.set_checksum(value);
    }
}
