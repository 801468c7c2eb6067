// SPDX-License-Identifier: Apache-2.0
//! Walk over a frame's headers, written from the specifications of the protocols. The documentation of
//! `wire::layers::header` states when a header counts as present.

/// EtherType of LLC frames without a SNAP EtherType.
pub(crate) const LLC: u16 = 0x05ff;

/// Maximum numbers of VLAN tags and of IPv6 extension headers that are skipped.
const VLAN_TAGS_MAX: usize = 8;
const EXTENSION_HEADERS_MAX: usize = 16;

/// Header after the EtherType.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Network {
    #[default]
    Other,
    Mpls,
    Pbb,
    Arp,
    Ipv4,
    Ipv6,
}

/// Upper-layer header of an IP packet, if it is complete and not in a later fragment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Upper {
    #[default]
    None,
    Tcp,
    Udp,
    Sctp,
    Icmpv4,
    Icmpv6,
}

/// Values that the walk finds in both IPv4 and IPv6 headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ip {
    /// ToS or traffic class byte.
    pub tos: u8,
    /// Protocol after extension headers.
    pub proto: u8,
    /// Extension headers, as OFPIEH_* bits.
    pub exthdr: u16,
    /// Offset of the upper layer.
    pub l4: usize,
    /// End of the datagram in the frame. Padding may follow.
    pub end: usize,
    pub fragment: bool,
}

/// Headers of one frame. Offsets are in bytes from the start of the frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers {
    /// Control information of the outermost VLAN tag.
    pub vlan_tci: Option<u16>,
    /// EtherType after the tags, and its offset.
    pub eth_type: u16,
    pub type_at: usize,
    /// Offset of the header after the EtherType.
    pub l3: usize,
    pub network: Network,
    pub ip: Option<Ip>,
    pub upper: Upper,
    /// Whether the packet is a neighbour solicitation or advertisement that contains its target.
    pub nd: bool,
    /// Offsets of the link-layer addresses in the options of this message.
    pub nd_sll: Option<usize>,
    pub nd_tll: Option<usize>,
}

/// Returns the 16 bits at `at`, or `None` if they are not completely within `bytes`.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Returns whether a valid IPv4 header begins at `at`: complete, version 4, at least five words, and a total
/// length that covers the header.
pub(crate) fn is_ipv4(bytes: &[u8], at: usize) -> bool {
    let Some(total_len) = word(bytes, at + 2) else { return false };
    let header_len = usize::from(bytes[at] & 15) * 4;
    bytes[at] >> 4 == 4
        && header_len >= 20
        && bytes.len() >= at + header_len
        && usize::from(total_len) >= header_len
}

/// Returns whether a complete IPv6 fixed header begins at `at`.
pub(crate) fn is_ipv6(bytes: &[u8], at: usize) -> bool {
    bytes.len() >= at + 40 && bytes[at] >> 4 == 6
}

/// Finds the headers of `frame`. A frame of less than 14 bytes has no headers.
pub(crate) fn walk(frame: &[u8]) -> Headers {
    let mut found = Headers::default();
    let Some(first_type) = word(frame, 12) else { return found };
    found.eth_type = first_type;
    found.type_at = 12;
    for _ in 0..VLAN_TAGS_MAX {
        if !matches!(found.eth_type, 0x8100 | 0x88a8 | 0x9100) {
            break;
        }
        let (Some(tci), Some(inner)) = (word(frame, found.type_at + 2), word(frame, found.type_at + 4))
        else {
            break;
        };
        found.vlan_tci = found.vlan_tci.or(Some(tci));
        found.eth_type = inner;
        found.type_at += 4;
    }
    if found.eth_type < 0x0600 {
        // This is an 802.3 length, followed by LLC. With SNAP and OUI 0, the last two bytes are an EtherType.
        let snap = frame.get(found.type_at + 2..found.type_at + 8) == Some(&[0xaa, 0xaa, 3, 0, 0, 0]);
        match word(frame, found.type_at + 8) {
            Some(eth_type) if snap && eth_type >= 0x0600 => {
                found.eth_type = eth_type;
                found.type_at += 8;
            }
            _ => found.eth_type = LLC,
        }
    }
    found.l3 = found.type_at + 2;
    let rest = frame.len() - found.l3;
    found.network = match found.eth_type {
        0x8847 | 0x8848 if rest >= 4 => Network::Mpls,
        0x88e7 if rest >= 4 => Network::Pbb,
        0x0806 if rest >= 28 && frame[found.l3..found.l3 + 6] == [0, 1, 8, 0, 6, 4] => Network::Arp,
        0x0800 if is_ipv4(frame, found.l3) => Network::Ipv4,
        0x86dd if is_ipv6(frame, found.l3) => Network::Ipv6,
        _ => Network::Other,
    };
    match found.network {
        Network::Ipv4 => ipv4(frame, &mut found),
        Network::Ipv6 => ipv6(frame, &mut found),
        _ => {}
    }
    found
}

fn ipv4(frame: &[u8], found: &mut Headers) {
    let ip = &frame[found.l3..];
    let l4 = found.l3 + usize::from(ip[0] & 15) * 4;
    let total_len = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let more_fragments = ip[6] & 0x20 != 0;
    let fragment_offset = u16::from_be_bytes([ip[6] & 0x1f, ip[7]]);
    let end = frame.len().min(found.l3 + total_len);
    found.ip = Some(Ip {
        tos: ip[1],
        proto: ip[9],
        exthdr: 0,
        l4,
        end,
        fragment: more_fragments || fragment_offset != 0,
    });
    if fragment_offset == 0 {
        found.upper = match ip[9] {
            1 if end >= l4 + 4 => Upper::Icmpv4,
            proto => transport(proto, end.saturating_sub(l4)),
        };
    }
}

fn transport(proto: u8, len: usize) -> Upper {
    match proto {
        6 if len >= 20 => Upper::Tcp,
        17 if len >= 8 => Upper::Udp,
        132 if len >= 12 => Upper::Sctp,
        _ => Upper::None,
    }
}

fn ipv6(frame: &[u8], found: &mut Headers) {
    let ip = &frame[found.l3..];
    let payload_len = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
    let jumbo = payload_len == 0 && ip[6] == 0;
    let end = if jumbo { frame.len() } else { frame.len().min(found.l3 + 40 + payload_len) };
    let datagram = &frame[..end];

    let mut seen = Vec::new();
    let mut proto = ip[6];
    let mut l4 = found.l3 + 40;
    let mut fragment = false;
    let mut later_fragment = false;
    let reached = loop {
        if later_fragment {
            break false;
        }
        match proto {
            50 | 59 => {
                seen.push(proto);
                break false;
            }
            0 | 43 | 44 | 51 | 60 | 135 if seen.len() < EXTENSION_HEADERS_MAX => {}
            0 | 43 | 44 | 51 | 60 | 135 => break false,
            _ => break true,
        }
        let Some(header) = datagram.get(l4..l4 + 8) else { break false };
        let header_len = match proto {
            44 => 8,
            51 => 4 * (usize::from(header[1]) + 2),
            _ => 8 * (usize::from(header[1]) + 1),
        };
        if l4 + header_len > end {
            break false;
        }
        if proto == 44 {
            let offset = u16::from_be_bytes([header[2], header[3]]) >> 3;
            later_fragment = offset != 0;
            fragment |= later_fragment || header[3] & 1 != 0;
        }
        seen.push(proto);
        proto = header[0];
        l4 += header_len;
    };
    let tos = (ip[0] & 15) << 4 | ip[1] >> 4;
    found.ip = Some(Ip { tos, proto, exthdr: exthdr_bits(&seen), l4, end, fragment });
    if !reached {
        return;
    }
    found.upper = match proto {
        58 if end >= l4 + 4 => Upper::Icmpv6,
        58 => Upper::None,
        _ => transport(proto, end.saturating_sub(l4)),
    };
    if found.upper == Upper::Icmpv6 {
        neighbour(&datagram[l4..], l4, found);
    }
}

/// Parses neighbour discovery in the ICMPv6 message at offset `l4`.
fn neighbour(message: &[u8], l4: usize, found: &mut Headers) {
    let wanted = match (message[0], message[1]) {
        (135, 0) => 1,
        (136, 0) => 2,
        _ => return,
    };
    if message.len() < 24 {
        return;
    }
    found.nd = true;
    let mut at = 24;
    while let (Some(&kind), Some(&units)) = (message.get(at), message.get(at + 1)) {
        let option_len = usize::from(units) * 8;
        if option_len == 0 || at + option_len > message.len() {
            return;
        }
        if kind == wanted && option_len == 8 {
            // An address whose offset exceeds 16 bits is treated as absent.
            let address = Some(l4 + at + 2).filter(|at| *at <= 0xffff);
            if wanted == 1 {
                found.nd_sll = address;
            } else {
                found.nd_tll = address;
            }
            return;
        }
        at += option_len;
    }
}

/// Returns the OFPIEH_* bits of the extension headers `seen`, in order (OpenFlow 1.3.5, section 7.2.3.8).
fn exthdr_bits(seen: &[u8]) -> u16 {
    let mut bits = 0;
    // Position reached so far in the order of RFC 8200, section 4.1: hop-by-hop, destination (for routers),
    // routing, fragment, authentication, ESP, destination (for the final host).
    let mut reached = 0;
    for (index, number) in seen.iter().enumerate() {
        let earlier = seen[..index].iter().filter(|other| *other == number).count();
        if earlier >= if *number == 60 { 2 } else { 1 } {
            bits |= 1 << 7;
        }
        let (bit, place) = match number {
            0 => (6, 0),
            43 => (5, 2),
            44 => (4, 3),
            51 => (2, 4),
            50 => (1, 5),
            60 if reached == 0 => (3, 1),
            60 => (3, 6),
            59 => (0, reached),
            // The mobility header has no bit and no position in this order.
            _ => continue,
        };
        if *number == 0 && index > 0 {
            // The hop-by-hop bit is set only if the header is in the first position.
            bits |= 1 << 8;
            continue;
        }
        bits |= 1 << bit;
        if place < reached {
            bits |= 1 << 8;
        }
        reached = reached.max(place);
    }
    bits
}
