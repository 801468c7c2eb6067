// SPDX-License-Identifier: Apache-2.0
//! IPv6 header and extension headers (RFC 8200).

use crate::view::view;

/// Next-header number of hop-by-hop options.
pub const HOP_BY_HOP: u8 = 0;
/// Next-header number of the routing header.
pub const ROUTING: u8 = 43;
/// Next-header number of the fragment header.
pub const FRAGMENT: u8 = 44;
/// Next-header number of the encapsulating security payload.
pub const ESP: u8 = 50;
/// Next-header number of the authentication header.
pub const AUTHENTICATION: u8 = 51;
/// Next-header number for "no next header".
pub const NO_NEXT: u8 = 59;
/// Next-header number of destination options.
pub const DESTINATION: u8 = 60;
/// Next-header number of the mobility header.
pub const MOBILITY: u8 = 135;

view! {
    /// IPv6 packet: a complete fixed header of version 6.
    Packet, "IPv6 header", 40, |bytes| bytes[0] >> 4 == 6;
    /// Version (4 bits), traffic class (8), flow label (20).
    0: first_word, set_first_word, u32;
    /// Length in bytes of the packet after the fixed header, or 0 for a jumbo payload.
    4: payload_len, set_payload_len, u16;
    /// Number of the next header.
    6: next_header, set_next_header, u8;
    /// Hop limit.
    7: hop_limit, set_hop_limit, u8;
    /// Source address.
    8: src, set_src, [u8; 16];
    /// Destination address.
    24: dst, set_dst, [u8; 16];
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Returns the traffic class: DSCP (6 bits) and ECN (2).
    pub fn traffic_class(&self) -> u8 {
        (self.first_word() >> 20) as u8
    }

    /// Returns the flow label, 20 bits.
    pub fn flow_label(&self) -> u32 {
        self.first_word() & 0xf_ffff
    }

    /// Returns the bytes after the fixed header, as many as the payload length states. A jumbo payload
    /// extends to the end of the buffer.
    pub fn payload(&self) -> &[u8] {
        let rest = &self.buffer.as_ref()[40..];
        let jumbo = self.payload_len() == 0 && self.next_header() == HOP_BY_HOP;
        &rest[..if jumbo { rest.len() } else { rest.len().min(usize::from(self.payload_len())) }]
    }

    /// Returns the extension headers that can be skipped, in order.
    pub fn extension_headers(&self) -> ExtensionHeaders<'_> {
        ExtensionHeaders { next_header: self.next_header(), rest: self.payload() }
    }

    /// Returns the destination of the pseudo-header: the last destination of a routing header of type 0, 2 or
    /// 4 with segments left, otherwise [`dst`](Self::dst).
    pub fn final_dst(&self) -> [u8; 16] {
        let Some(routing) = self.extension_headers().find(|header| header.number == ROUTING) else {
            return self.dst();
        };
        let (kind, segments_left) = (routing.bytes[2], routing.bytes[3]);
        let last = match kind {
            _ if segments_left == 0 => None,
            0 | 2 => routing.bytes[8..].last_chunk(),
            4 => routing.bytes[8..].first_chunk(),
            _ => None,
        };
        last.copied().unwrap_or_else(|| self.dst())
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> Packet<T> {
    /// Sets the traffic class.
    pub fn set_traffic_class(&mut self, class: u8) {
        self.set_first_word(self.first_word() & 0xf00f_ffff | u32::from(class) << 20);
    }

    /// Sets the flow label to the low 20 bits of `label`.
    pub fn set_flow_label(&mut self, label: u32) {
        self.set_first_word(self.first_word() & 0xfff0_0000 | label & 0xf_ffff);
    }
}

/// IPv6 extension header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionHeader<'a> {
    /// Number of this header.
    pub number: u8,
    /// Bytes of the whole header, from its next-header byte on.
    pub bytes: &'a [u8],
}

/// Iterator over extension headers. It ends before a header that is not an extension header, is cut short, or
/// is an encapsulating security payload. It also ends after the fragment header of any fragment except the
/// first.
#[derive(Clone, Debug)]
pub struct ExtensionHeaders<'a> {
    next_header: u8,
    rest: &'a [u8],
}

impl<'a> ExtensionHeaders<'a> {
    /// After the last item, returns the number of the header at which the iterator ended.
    pub fn next_header(&self) -> u8 {
        self.next_header
    }

    /// After the last item, returns the bytes after the extension headers.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for ExtensionHeaders<'a> {
    type Item = ExtensionHeader<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.next_header;
        let &[next_header, units, high, low] = self.rest.first_chunk()?;
        let len = match number {
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(units) + 2) * 4,
            HOP_BY_HOP | ROUTING | DESTINATION | MOBILITY => (usize::from(units) + 1) * 8,
            _ => return None,
        };
        let (bytes, rest) = self.rest.split_at_checked(len)?;
        let later_fragment = number == FRAGMENT && u16::from_be_bytes([high, low]) & 0xfff8 != 0;
        self.rest = if later_fragment { &[] } else { rest };
        self.next_header = next_header;
        Some(ExtensionHeader { number, bytes })
    }
}
