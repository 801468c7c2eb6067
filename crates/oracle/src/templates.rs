// SPDX-License-Identifier: Apache-2.0
//! Random packets with few distinct values, so that rules overlap and flows hit each other's entries.

use super::log::{TAG_BYTES, tag_of};
use fastrand::Rng;
use flow::{Ext, Field, FieldBase, PortNo};
use reference::Unfinished;
use wire::layers::header;
use wire::tf::{self, Form};
use wire::{Depth, Layers, PacketBuilder};

/// A packet of a flow, without the tag at its end.
#[derive(Clone, Debug)]
pub(super) struct Template {
    pub bytes: Vec<u8>,
    pub shape: Shape,
    /// Work that the sender leaves to its device.
    pub unfinished: Unfinished,
    /// Base from which [`Template::value`] counts, in bytes.
    pub base: usize,
}

/// How the packets of a template differ from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Each packet has its tag after all bytes that rules examine.
    Whole,
    /// The packet is cut short or scrambled, so its tag overlaps examined bytes. Each packet is a separate
    /// flow.
    Broken,
    /// The packet ends within its first headers, so it has no tag. All packets of the template are equal and
    /// are compared without order.
    Short,
}

/// Kind of most packets of a case.
#[derive(Clone, Copy, Debug)]
pub(super) enum Family {
    /// Any packets.
    Mixed,
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
    /// Packets with MPLS labels.
    Mpls,
}

impl Family {
    pub fn random(rng: &mut Rng) -> Self {
        [Self::Mixed, Self::Mixed, Self::Ipv4, Self::Ipv6, Self::Ipv4, Self::Mpls][rng.usize(0..6)]
    }

    /// Returns the kind of the next packet, as a number for [`Template::random`].
    fn kind(self, rng: &mut Rng) -> u8 {
        match self {
            _ if rng.u8(0..4) == 0 => rng.u8(0..16),
            Self::Mixed => rng.u8(0..16),
            Self::Ipv4 => 9,
            Self::Ipv6 => 5,
            Self::Mpls => 3,
        }
    }
}

/// EtherTypes of the headers that a short packet lacks in part or as a whole.
const CUT_TYPES: [u16; 10] =
    [0x8100, 0x8100, 0x88a8, 0x0800, 0x86dd, 0x0806, 0x8847, 0x88e7, 0x88b5, tf::ETHERTYPE];

pub(super) fn mac(rng: &mut Rng) -> [u8; 6] {
    match rng.u8(0..12) {
        0 => [0xff; 6],
        1 => [0x01, 0x00, 0x5e, 0, 0, rng.u8(0..3)],
        // If the last byte is at most 0x0f, the address is reserved, and NORMAL does not forward the packet.
        2 if rng.bool() => [0x01, 0x80, 0xc2, 0, 0, rng.u8(0..20)],
        _ => [0x02, 0, 0, 0, 0, rng.u8(1..6)],
    }
}

pub(super) fn ipv4(rng: &mut Rng) -> [u8; 4] {
    [10, 0, rng.u8(0..3), rng.u8(0..4)]
}

pub(super) fn ipv6(rng: &mut Rng) -> [u8; 16] {
    let mut address = [0; 16];
    address[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
    address[7] = rng.u8(0..3);
    address[15] = rng.u8(0..4);
    address
}

fn l4_port(rng: &mut Rng) -> u16 {
    [53, 80, 443, 5_000][rng.usize(0..4)]
}

/// Returns a ToS byte with any DSCP, or with one of an assured forwarding class, which meters remark.
fn tos(rng: &mut Rng) -> u8 {
    let dscp = if rng.bool() { rng.u8(0..4) } else { [10, 12, 14, 18, 34, 46][rng.usize(0..6)] };
    dscp << 2 | rng.u8(0..4)
}

fn ttl(rng: &mut Rng) -> u8 {
    [0, 1, 2, 20, 64, 64, 100, 255][rng.usize(0..8)]
}

/// Returns the payload length. Most frames are short; some have the minimum or maximum length of Ethernet.
/// The test tag comes after the `examined` leading bytes.
fn payload_bytes(rng: &mut Rng, headers: usize, examined: usize, longest: usize) -> usize {
    let least = TAG_BYTES + examined.saturating_sub(headers);
    let frame = match rng.u8(0..16) {
        0..2 => 60,
        2 => 64,
        3 => rng.usize(1_400..=1_518),
        4 if longest > 1_518 => rng.usize(1_519..=longest.min(9_018)),
        5 if longest > 1_518 => rng.usize(longest / 2..=longest),
        _ => headers + least + rng.usize(0..64),
    };
    frame.saturating_sub(headers).max(least)
}

/// Returns the frame with a PBB header in front of it.
fn in_backbone(rng: &mut Rng, customer: Vec<u8>) -> Vec<u8> {
    let service = [rng.u8(0..8) << 5, 0, 0, rng.u8(0..4)];
    [&mac(rng)[..], &[0x02, 0, 0, 0, 1, rng.u8(1..6)], &[0x88, 0xe7], &service, &customer].concat()
}

/// Returns the frame with a header of stateless forwarding, which may be damaged, after its MAC addresses.
fn tagged(rng: &mut Rng, frame: &[u8]) -> Vec<u8> {
    let (macs, rest) = frame.split_at(12);
    let hops = rng.u8(0..4);
    let random = |rng: &mut Rng, bytes: usize| (0..bytes).map(|_| rng.u8(..)).collect::<Vec<u8>>();
    let header = match rng.u8(0..5) {
        0 | 1 => {
            let units = rng.u8(1..=4);
            let first = if rng.u8(0..16) == 0 { 0x20 } else { 0x10 | rng.u8(0..2) << 3 };
            let head = [0x88, 0xb5, first, hops, units, 0, rest[0], rest[1], 0, 0];
            [&head[..], &random(rng, 8 * usize::from(units)), &rest[2..]].concat()
        }
        2 => [&[0x88, 0x42, 0, hops, rest[0], rest[1]][..], &random(rng, 16), &rest[2..]].concat(),
        kind => {
            let form = if kind == 3 { Form::Paper } else { Form::Wide };
            let eth_type = if kind == 3 { tf::ETHERTYPE } else { tf::ETHERTYPE_WIDE };
            let bits = form.pack(rng.u8(0..4), rng.u32(0..9), rng.u16(0..9));
            [&eth_type.to_be_bytes()[..], &bits, rest].concat()
        }
    };
    [macs, &header].concat()
}

/// Returns the length of a frame that ends within the header after its MAC addresses, or in rare cases before
/// that header.
fn short_bytes(rng: &mut Rng) -> usize {
    if rng.u8(0..8) == 0 { rng.usize(12..14) } else { rng.usize(14..18) }
}

/// Returns a frame that ends within the header after its MAC addresses.
fn short(rng: &mut Rng, macs: &[u8]) -> Vec<u8> {
    let [high, low] = CUT_TYPES[rng.usize(0..CUT_TYPES.len())].to_be_bytes();
    // If the header is a VLAN tag, some complete packets have the same VLAN ID.
    let header = [high, low, rng.u8(0..3) << 5, rng.u8(0..3), 0x08];
    let mut bytes = [macs, &header].concat();
    bytes.truncate(short_bytes(rng));
    bytes
}

/// Adds an IPv6 header, often an extension header, and a header of layer 4.
fn ipv6_headers(rng: &mut Rng, b: PacketBuilder, source: &[u8; 6]) -> PacketBuilder {
    let b = b.ipv6(ipv6(rng), ipv6(rng)).tos(tos(rng)).ttl(ttl(rng));
    let b = match rng.u8(0..6) {
        0 => b.extension(0, &[1, 4, 0, 0, 0, 0]),
        1 => b.extension(60, &[1, 4, 0, 0, 0, 0]),
        2 => b.ipv6_fragment([0, 185][rng.usize(0..2)], true, 7),
        _ => b,
    };
    match rng.u8(0..5) {
        0 => b.neighbour_solicitation(ipv6(rng)).nd_option(1, source),
        1 => b.neighbour_advertisement(ipv6(rng)).nd_option(2, source),
        2 => b.icmpv6(128, 0, [0; 4]),
        3 => b.udp(l4_port(rng), l4_port(rng)),
        _ => b.tcp(l4_port(rng), l4_port(rng)),
    }
}

/// Adds an IPv4 header, sometimes with options or as a fragment, and a header of layer 4.
fn ipv4_headers(rng: &mut Rng, b: PacketBuilder) -> PacketBuilder {
    let b = b.ipv4(ipv4(rng), ipv4(rng)).tos(tos(rng)).ttl(ttl(rng));
    let b = match rng.u8(0..10) {
        0 => b.ipv4_options(&[1, 1, 1, 1]),
        1 => b.ipv4_fragment([0, 185][rng.usize(0..2)], true),
        _ => b,
    };
    match rng.u8(0..8) {
        0 => b.icmpv4(8, rng.u8(0..2), [0; 4]),
        1 => b.sctp(l4_port(rng), l4_port(rng), 5),
        2 => b.proto(47),
        3 => b.udp(l4_port(rng), l4_port(rng)).no_udp_checksum(),
        4 | 5 => b.udp(l4_port(rng), l4_port(rng)),
        _ => b.tcp(l4_port(rng), l4_port(rng)),
    }
}

impl Template {
    /// Returns a random packet of at most `longest` bytes, or of the maximum length of Ethernet if that is
    /// greater. Rules may examine the packet's `examined` leading bytes.
    pub fn random(rng: &mut Rng, family: Family, examined: usize, longest: usize, offloads: bool) -> Self {
        let source = loop {
            let mac = mac(rng);
            if mac[0] & 1 == 0 || rng.u8(0..20) == 0 {
                break mac;
            }
        };
        let mut b = PacketBuilder::ethernet(mac(rng), source);
        for _ in 0..[0, 0, 0, 1, 1, 2][rng.usize(0..6)] {
            let tpid = if rng.bool() { 0x8100 } else { 0x88a8 };
            b = b.vlan(tpid, u16::from(rng.u8(0..3)) | u16::from(rng.u8(0..3)) << 13);
        }
        let b = match family.kind(rng) {
            0 => b.arp(rng.u16(1..3), source, ipv4(rng), [0; 6], ipv4(rng)),
            1 => b.ethertype([0x88f7, 0x88cc, 0x88e7, 0x9999][rng.usize(0..4)]),
            2 => b.snap().ethertype(0x0800).ipv4(ipv4(rng), ipv4(rng)).udp(l4_port(rng), l4_port(rng)),
            3 | 4 => {
                let b = b.mpls(u32::from(rng.u8(16..19)), rng.u8(0..8), rng.u8(0..4));
                let b = if rng.bool() { b.mpls(u32::from(rng.u8(16..19)), 0, 9) } else { b };
                let b =
                    if rng.u8(0..4) == 0 { b.mpls(u32::from(rng.u8(16..19)), 1, rng.u8(0..9)) } else { b };
                if rng.u8(0..4) == 0 {
                    b.ipv6(ipv6(rng), ipv6(rng)).udp(l4_port(rng), l4_port(rng))
                } else {
                    b.ipv4(ipv4(rng), ipv4(rng)).ttl(rng.u8(0..9)).tcp(l4_port(rng), l4_port(rng))
                }
            }
            5..9 => ipv6_headers(rng, b, &source),
            _ => ipv4_headers(rng, b),
        };
        let headers = b.clone().build().len();
        let payload =
            (0..payload_bytes(rng, headers, examined, longest)).map(|_| rng.u8(..)).collect::<Vec<u8>>();
        let mut bytes = b.payload(&payload).build();
        if rng.u8(0..10) == 0 {
            bytes = in_backbone(rng, bytes);
        }
        if rng.u8(0..10) == 0 {
            bytes = tagged(rng, &bytes);
        }
        let shape = match rng.u8(0..48) {
            0 | 1 => {
                bytes.truncate(rng.usize(TAG_BYTES..bytes.len()));
                Shape::Broken
            }
            2 | 3 => {
                let at = rng.usize(12..bytes.len().min(60));
                bytes[at] = rng.u8(..);
                Shape::Broken
            }
            4..7 => {
                bytes = short(rng, &bytes[..12]);
                Shape::Short
            }
            _ => Shape::Whole,
        };
        let made = Self { bytes, shape, unfinished: Unfinished::default(), base: 0 };
        if offloads && rng.bool() { made.left_to_device(rng) } else { made }
    }

    /// Returns a copy that ends within the `examined` leading bytes, mostly within its first headers, or that
    /// has a reserved multicast address. All other bytes are equal, so a rule or record for one of the two
    /// packets may wrongly apply to the other.
    pub fn near_copy(&self, rng: &mut Rng, examined: usize) -> Self {
        let mut made = self.clone();
        if rng.bool() {
            let end = if rng.u8(0..4) == 0 { rng.usize(14..examined.max(64)) } else { short_bytes(rng) };
            made.bytes.truncate(end);
            return Self { shape: Shape::Short, unfinished: Unfinished::default(), ..made };
        }
        let at = if rng.u8(0..8) == 0 { 6 } else { 0 };
        if let Some(address) = made.bytes.get_mut(at..at + 6) {
            address.copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, rng.u8(0..16)]);
        }
        made
    }

    /// Returns a packet of the flow, with its tag at the end unless the packet is short.
    pub fn tagged(&self, tag: usize) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        if self.shape == Shape::Short {
            return bytes;
        }
        let at = bytes.len() - TAG_BYTES;
        bytes[at..].copy_from_slice(&tag_of(tag));
        bytes
    }

    /// Returns the template with another TTL or hop limit, or unchanged if no IP header directly follows its
    /// Ethernet header and tags.
    pub fn with_ttl(&self, ttl: u8) -> Self {
        let mut made = self.clone();
        let layers = self.layers();
        let l3 = usize::from(layers.l3);
        if self.shape != Shape::Whole || layers.present & (header::MPLS | header::PBB) != 0 {
            return made;
        }
        if layers.present & header::IPV4 != 0
            && let Some(ip) = made.bytes.get_mut(l3..l3 + 20)
        {
            let before = u16::from_be_bytes([ip[8], ip[9]]);
            ip[8] = ttl;
            let after = u16::from_be_bytes([ip[8], ip[9]]);
            // RFC 1624, equation 3.
            let sum = u16::from_be_bytes([ip[10], ip[11]]);
            let mut new = u32::from(!sum) + u32::from(!before) + u32::from(after);
            while new > 0xffff {
                new = (new >> 16) + (new & 0xffff);
            }
            ip[10..12].copy_from_slice(&(!(new as u16)).to_be_bytes());
        } else if layers.present & header::IPV6 != 0
            && let Some(ip) = made.bytes.get_mut(l3..l3 + 40)
        {
            ip[7] = ttl;
        }
        made
    }

    /// Returns whether the packet has a header of stateless forwarding.
    pub fn is_tagged(&self) -> bool {
        let types = [0x88b5, 0x8842, tf::ETHERTYPE, tf::ETHERTYPE_WIDE];
        self.bytes.get(12..14).is_some_and(|t| types.contains(&u16::from_be_bytes([t[0], t[1]])))
    }

    /// Returns the packet's headers.
    pub fn layers(&self) -> Layers {
        wire::locate(&self.bytes, Depth::L4)
    }

    /// Returns a field's value in the packet received on `in_port`, or `None` if the packet lacks the field.
    pub fn value(&self, field: Field, in_port: PortNo) -> Option<u128> {
        let layers = self.layers();
        let location = field.location();
        if layers.present & location.needs != location.needs {
            return None;
        }
        let mut ext = Ext::arriving(in_port);
        ext.set_layers(&layers);
        let (bytes, start) = match location.base {
            FieldBase::Ext => (ext.bytes(), 0),
            FieldBase::Frame => (&self.bytes[..], 0),
            FieldBase::Moving => (&self.bytes[..], self.base),
            FieldBase::L3 => (&self.bytes[..], layers.l3.into()),
            FieldBase::L4 => (&self.bytes[..], layers.l4.into()),
            FieldBase::NdSll => (&self.bytes[..], layers.nd_sll.into()),
            FieldBase::NdTll => (&self.bytes[..], layers.nd_tll.into()),
        };
        let mut value = 0;
        for bit in 0..usize::from(location.length_bits) {
            let at: usize = 8 * start + usize::from(location.offset_bits) + bit;
            value = value << 1 | u128::from(bytes.get(at / 8)? >> (7 - at % 8) & 1);
        }
        Some(value)
    }
}
