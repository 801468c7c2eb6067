// SPDX-License-Identifier: Apache-2.0
//! Builder of frames from a stack of headers. Lengths, next-header numbers and checksums are filled in.
//!
//! ```
//! use wire::{Depth, PacketBuilder, layers::header, locate, vlan};
//!
//! let frame = PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
//!     .vlan(vlan::C_TAG, 5)
//!     .ipv4([10, 0, 0, 1], [10, 0, 0, 2])
//!     .ttl(3)
//!     .udp(4000, 53)
//!     .payload(b"query")
//!     .build();
//! assert!(locate(&frame, Depth::L4).present & header::UDP != 0);
//! ```

mod finish;
mod tags;

#[cfg(test)]
mod tests;

use crate::view::Field;
use crate::{arp, ethernet, icmpv4, icmpv6, ipv6, sctp, tcp, udp};

/// Frame under construction. Each method appends a header, or sets a field of the last header that has this
/// field. If no header has the field, the method does nothing. An IP packet must not exceed 65,535 bytes.
#[derive(Clone, Debug)]
pub struct PacketBuilder {
    bytes: Vec<u8>,
    next: Next,
    layers: Vec<Layer>,
    len_min: usize,
}

/// Offset of the field in which the type of the next header is written.
#[derive(Clone, Copy, Debug)]
enum Next {
    EtherType(usize),
    Proto(usize),
    /// There is no type to write: the last header has no such field, or the caller has already written it.
    Untold,
}

/// A header whose lengths and checksums are filled in later.
#[derive(Clone, Copy, Debug)]
struct Layer {
    kind: Kind,
    at: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The length field of an 802.3 frame.
    Length,
    Mpls,
    Ipv4,
    Ipv6,
    Tcp,
    Udp,
    /// UDP without a checksum.
    UdpUnsummed,
    Sctp,
    Icmpv4,
    Icmpv6,
}

impl PacketBuilder {
    /// Starts a frame with an Ethernet header.
    pub fn ethernet(dst: [u8; 6], src: [u8; 6]) -> Self {
        let bytes = [&dst[..], &src, &[0, 0]].concat();
        Self { bytes, next: Next::EtherType(12), layers: Vec::new(), len_min: 0 }
    }

    /// Appends a VLAN tag: tag protocol identifier, then PCP (3 bits), DEI (1) and VID (12).
    pub fn vlan(mut self, tpid: u16, tci: u16) -> Self {
        self.tell_ethertype(tpid);
        self.append(&tci.to_be_bytes());
        self.next = Next::EtherType(self.append(&[0; 2]));
        self
    }

    /// Inserts LLC and SNAP before the EtherType. The type field of the Ethernet header becomes the payload
    /// length.
    pub fn snap(mut self) -> Self {
        if let Next::EtherType(at) = self.next {
            self.layers.push(Layer { kind: Kind::Length, at });
        }
        let at = self.append(&[0xaa, 0xaa, 3, 0, 0, 0, 0, 0]);
        self.next = Next::EtherType(at + 6);
        self
    }

    /// Writes the EtherType explicitly, for a custom payload or to write a wrong EtherType.
    pub fn ethertype(mut self, ethertype: u16) -> Self {
        self.tell_ethertype(ethertype);
        self.next = Next::Untold;
        self
    }

    /// Appends an MPLS label stack entry: label (20 bits) and traffic class (3). The last entry gets the
    /// bottom-of-stack bit.
    pub fn mpls(mut self, label: u32, tc: u8, ttl: u8) -> Self {
        match self.layers.last() {
            Some(&Layer { kind: Kind::Mpls, at }) if at + 4 == self.bytes.len() => self.bytes[at + 2] &= 0xfe,
            _ => self.tell_ethertype(ethernet::MPLS),
        }
        let word = label << 12 | u32::from(tc & 7) << 9 | 0x100 | u32::from(ttl);
        self.append_layer(Kind::Mpls, &word.to_be_bytes());
        self.next = Next::Untold;
        self
    }

    /// Appends an ARP body with the operation and the addresses of sender and target.
    pub fn arp(mut self, operation: u16, sha: [u8; 6], spa: [u8; 4], tha: [u8; 6], tpa: [u8; 4]) -> Self {
        self.tell_ethertype(ethernet::ARP);
        self.append(&arp::ETHERNET_IPV4);
        self.append(&operation.to_be_bytes());
        self.append(&[&sha[..], &spa, &tha, &tpa].concat());
        self.next = Next::Untold;
        self
    }

    /// Appends an IPv4 header with TTL 64.
    pub fn ipv4(mut self, src: [u8; 4], dst: [u8; 4]) -> Self {
        self.tell_ethertype(ethernet::IPV4);
        let at = self.append_layer(Kind::Ipv4, &[0x45, 0, 0, 20, 0, 0, 0, 0, 64, 0, 0, 0]);
        self.append(&[src, dst].concat());
        self.next = Next::Proto(at + 9);
        self
    }

    /// Appends options to the IPv4 header just started: at most 40 bytes, padded with zeros (end of options)
    /// to 4-byte units.
    pub fn ipv4_options(mut self, options: &[u8]) -> Self {
        if let Some(&Layer { kind: Kind::Ipv4, at }) = self.layers.last() {
            let len = self.append_padded(options, 40, 4);
            self.bytes[at] += (len / 4) as u8;
        }
        self
    }

    /// Makes the IPv4 packet a fragment. `offset` is in units of 8 bytes, and `more` states whether more
    /// fragments follow.
    pub fn ipv4_fragment(mut self, offset: u16, more: bool) -> Self {
        if let Some(at) = self.last(&[Kind::Ipv4]) {
            self.put(at + 6, offset & 0x1fff | u16::from(more) << 13);
        }
        self
    }

    /// Sets the identification of the IPv4 packet.
    pub fn id(mut self, id: u16) -> Self {
        if let Some(at) = self.last(&[Kind::Ipv4]) {
            self.put(at + 4, id);
        }
        self
    }

    /// Appends an IPv6 header with hop limit 64.
    pub fn ipv6(mut self, src: [u8; 16], dst: [u8; 16]) -> Self {
        self.tell_ethertype(ethernet::IPV6);
        let at = self.append_layer(Kind::Ipv6, &[0x60, 0, 0, 0, 0, 0, ipv6::NO_NEXT, 64]);
        self.append(&[src, dst].concat());
        self.next = Next::Proto(at + 6);
        self
    }

    /// Sets the flow label of the IPv6 packet, 20 bits.
    pub fn flow_label(mut self, label: u32) -> Self {
        if let Some(at) = self.last(&[Kind::Ipv6])
            && let Ok(mut ip) = ipv6::Packet::new_checked(&mut self.bytes[at..])
        {
            ip.set_flow_label(label);
        }
        self
    }

    /// Appends an IPv6 extension header of type `number`. `body` is the content after next header and length.
    /// It is padded with zeros to the unit of the length (4 bytes for an authentication header, else 8).
    pub fn extension(mut self, number: u8, body: &[u8]) -> Self {
        self.tell_proto(number);
        let at = self.append(&[ipv6::NO_NEXT, 0]);
        let (unit, excess) = if number == ipv6::AUTHENTICATION { (4, 2) } else { (8, 1) };
        self.append(body);
        while self.bytes.len() - at < 8 || !(self.bytes.len() - at).is_multiple_of(unit) {
            self.bytes.push(0);
        }
        self.bytes[at + 1] = ((self.bytes.len() - at) / unit - excess) as u8;
        self.next = Next::Proto(at);
        self
    }

    /// Appends an IPv6 fragment header: offset in 8-byte units, whether more fragments follow, and
    /// identification.
    pub fn ipv6_fragment(mut self, offset: u16, more: bool, id: u32) -> Self {
        self.tell_proto(ipv6::FRAGMENT);
        let at = self.append(&[ipv6::NO_NEXT, 0]);
        self.append(&(offset << 3 | u16::from(more)).to_be_bytes());
        self.append(&id.to_be_bytes());
        self.next = Next::Proto(at);
        self
    }

    /// Sets the TTL of IPv4 or MPLS, or the IPv6 hop limit.
    pub fn ttl(mut self, ttl: u8) -> Self {
        match self.layers.iter().rfind(|l| matches!(l.kind, Kind::Ipv4 | Kind::Ipv6 | Kind::Mpls)) {
            Some(&Layer { kind: Kind::Ipv4, at }) => self.put(at + 8, ttl),
            Some(&Layer { kind: Kind::Ipv6, at }) => self.put(at + 7, ttl),
            Some(&Layer { at, .. }) => self.put(at + 3, ttl),
            None => {}
        }
        self
    }

    /// Sets the IPv4 type of service or IPv6 traffic class.
    pub fn tos(mut self, tos: u8) -> Self {
        match self.layers.iter().rfind(|l| matches!(l.kind, Kind::Ipv4 | Kind::Ipv6)) {
            Some(&Layer { kind: Kind::Ipv4, at }) => self.put(at + 1, tos),
            Some(&Layer { at, .. }) => {
                if let Ok(mut ip) = ipv6::Packet::new_checked(&mut self.bytes[at..]) {
                    ip.set_traffic_class(tos);
                }
            }
            None => {}
        }
        self
    }

    /// Writes the upper-layer protocol explicitly, for a custom payload or to write a wrong protocol.
    pub fn proto(mut self, proto: u8) -> Self {
        self.tell_proto(proto);
        self.next = Next::Untold;
        self
    }

    /// Appends a TCP header. The ACK flag is set, the sequence and acknowledgement numbers are 0, and the
    /// window is 65,535.
    pub fn tcp(self, src_port: u16, dst_port: u16) -> Self {
        let mut header = [0; 20];
        header[12..16].copy_from_slice(&[0x50, tcp::ACK as u8, 0xff, 0xff]);
        self.ports(Kind::Tcp, tcp::PROTO, src_port, dst_port, &mut header)
    }

    /// Sets the control bits of TCP, 12 bits.
    pub fn tcp_flags(mut self, flags: u16) -> Self {
        if let Some(at) = self.last(&[Kind::Tcp]) {
            let old: u16 = Field::load(&self.bytes[at + 12..]);
            self.put(at + 12, old & 0xf000 | flags & 0x0fff);
        }
        self
    }

    /// Sets the sequence number and the acknowledgement number of TCP.
    pub fn tcp_numbers(mut self, seq: u32, ack: u32) -> Self {
        if let Some(at) = self.last(&[Kind::Tcp]) {
            self.put(at + 4, seq);
            self.put(at + 8, ack);
        }
        self
    }

    /// Appends options to the TCP header just started: at most 40 bytes, padded with zeros (end of options)
    /// to 4-byte units.
    pub fn tcp_options(mut self, options: &[u8]) -> Self {
        if let Some(&Layer { kind: Kind::Tcp, at }) = self.layers.last() {
            let len = self.append_padded(options, 40, 4);
            self.bytes[at + 12] += (len / 4 * 16) as u8;
        }
        self
    }

    /// Appends a UDP header.
    pub fn udp(self, src_port: u16, dst_port: u16) -> Self {
        self.ports(Kind::Udp, udp::PROTO, src_port, dst_port, &mut [0; 8])
    }

    /// Sets the UDP checksum to zero, which means that the packet has no checksum.
    pub fn no_udp_checksum(mut self) -> Self {
        if let Some(layer) = self.layers.iter_mut().rfind(|layer| layer.kind == Kind::Udp) {
            layer.kind = Kind::UdpUnsummed;
        }
        self
    }

    /// Appends an SCTP common header. Chunks are appended as payload.
    pub fn sctp(self, src_port: u16, dst_port: u16, verification_tag: u32) -> Self {
        let mut header = [0; 12];
        verification_tag.store(&mut header[4..]);
        self.ports(Kind::Sctp, sctp::PROTO, src_port, dst_port, &mut header)
    }

    /// Appends an ICMP header: type, code, and the 4 bytes after the checksum.
    pub fn icmpv4(mut self, kind: u8, code: u8, rest: [u8; 4]) -> Self {
        self.tell_proto(icmpv4::PROTO);
        self.append_layer(Kind::Icmpv4, &[&[kind, code, 0, 0], &rest[..]].concat());
        self.next = Next::Untold;
        self
    }

    /// Appends an ICMPv6 header: type, code, and the 4 bytes after the checksum.
    pub fn icmpv6(mut self, kind: u8, code: u8, rest: [u8; 4]) -> Self {
        self.tell_proto(icmpv6::PROTO);
        self.append_layer(Kind::Icmpv6, &[&[kind, code, 0, 0], &rest[..]].concat());
        self.next = Next::Untold;
        self
    }

    /// Appends a neighbour solicitation for `target`.
    pub fn neighbour_solicitation(self, target: [u8; 16]) -> Self {
        self.icmpv6(icmpv6::NEIGHBOUR_SOLICITATION, 0, [0; 4]).payload(&target)
    }

    /// Appends a neighbour advertisement of `target` with the solicited and override flags.
    pub fn neighbour_advertisement(self, target: [u8; 16]) -> Self {
        self.icmpv6(icmpv6::NEIGHBOUR_ADVERTISEMENT, 0, [0x60, 0, 0, 0]).payload(&target)
    }

    /// Appends an option of neighbour discovery, padded with zeros to 8-byte units.
    pub fn nd_option(mut self, kind: u8, body: &[u8]) -> Self {
        let at = self.append(&[kind, 0]);
        self.append(body);
        while !(self.bytes.len() - at).is_multiple_of(8) {
            self.bytes.push(0);
        }
        self.bytes[at + 1] = ((self.bytes.len() - at) / 8) as u8;
        self
    }

    /// Appends payload bytes.
    pub fn payload(mut self, payload: &[u8]) -> Self {
        self.append(payload);
        self
    }

    /// Pads the frame with zeros after all payloads to at least `len_min` bytes.
    pub fn pad_to(mut self, len_min: usize) -> Self {
        self.len_min = len_min;
        self
    }

    fn ports(mut self, kind: Kind, proto: u8, src: u16, dst: u16, header: &mut [u8]) -> Self {
        src.store(header);
        dst.store(&mut header[2..]);
        self.tell_proto(proto);
        self.append_layer(kind, header);
        self.next = Next::Untold;
        self
    }

    fn tell_ethertype(&mut self, ethertype: u16) {
        if let Next::EtherType(at) = self.next {
            self.put(at, ethertype);
        }
    }

    fn tell_proto(&mut self, proto: u8) {
        if let Next::Proto(at) = self.next {
            self.put(at, proto);
        }
    }

    fn last(&self, kinds: &[Kind]) -> Option<usize> {
        self.layers.iter().rfind(|layer| kinds.contains(&layer.kind)).map(|layer| layer.at)
    }

    fn put(&mut self, at: usize, value: impl Field) {
        value.store(&mut self.bytes[at..]);
    }

    /// Appends bytes and returns their offset.
    fn append(&mut self, bytes: &[u8]) -> usize {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        at
    }

    fn append_layer(&mut self, kind: Kind, bytes: &[u8]) -> usize {
        let at = self.append(bytes);
        self.layers.push(Layer { kind, at });
        at
    }

    /// Appends at most `len_max` bytes of `bytes`, and then zeros up to a multiple of `unit`. Returns the
    /// number of bytes appended.
    fn append_padded(&mut self, bytes: &[u8], len_max: usize, unit: usize) -> usize {
        let at = self.append(&bytes[..bytes.len().min(len_max)]);
        let len = (self.bytes.len() - at).next_multiple_of(unit);
        self.bytes.resize(at + len, 0);
        len
    }
}
