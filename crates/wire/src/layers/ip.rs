// SPDX-License-Identifier: Apache-2.0
//! Walk over IPv4, and over IPv6 with its extension headers.

use super::walk::chunk;
use super::{Depth, Layers, exthdr, header, upper};

/// Maximum number of IPv6 extension headers that are skipped. Further headers are not examined.
const EXTENSION_HEADERS_MAX: usize = 16;

/// Parses IPv4 at `l3`.
#[inline(always)]
pub(super) fn v4(data: &[u8], l3: usize, layers: &mut Layers) {
    let Some(ip) = chunk::<20>(data, l3) else { return };
    let header_len = usize::from(ip[0] & 0x0f) * 4;
    let total_len = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let whole = data.len() - l3 >= header_len;
    if ip[0] >> 4 != 4 || header_len < 20 || !whole || total_len < header_len {
        return;
    }
    let (end, l4) = (data.len().min(l3 + total_len), l3 + header_len);
    let fragment = u16::from_be_bytes([ip[6], ip[7]]);
    layers.ip_tos = ip[1];
    layers.ip_proto = ip[9];
    layers.l4 = l4 as u16;
    layers.l4_end = end as u32;
    // The packet is a fragment if the more-fragments bit is set or the offset is not 0. The don't-fragment
    // and reserved bits are masked out.
    layers.fragment = fragment & 0x3fff != 0;
    let is_first = layers.depth >= Depth::L4 && fragment & 0x1fff == 0;
    let upper = if is_first { upper::v4(end.saturating_sub(l4), ip[9]) } else { 0 };
    layers.present |= header::IPV4 | header::IP | upper;
}

/// Parses IPv6 at `l3`. Skips the extension headers, and records their presence and order.
#[inline(always)]
pub(super) fn v6(data: &[u8], l3: usize, layers: &mut Layers) {
    let Some(ip) = chunk::<40>(data, l3) else { return };
    if ip[0] >> 4 != 6 {
        return;
    }
    let payload_len = usize::from(u16::from_be_bytes([ip[4], ip[5]]));
    let next = ip[6];
    let jumbo = payload_len == 0 && next == HOP_BY_HOP;
    let end = if jumbo { data.len() } else { data.len().min(l3 + 40 + payload_len) };
    layers.ip_tos = (ip[0] << 4) | (ip[1] >> 4);
    layers.l4_end = end as u32;
    let (mut l4, mut proto, mut has_upper) = (l3 + 40, next, true);
    if is_walked(next) {
        let walked = extensions(&data[..end], l4, next);
        (l4, proto, has_upper) = (walked.l4, walked.proto, walked.has_upper);
        layers.exthdr = walked.exthdr;
        layers.fragment = walked.fragment;
    }
    // There are at most 16 headers of at most 2,048 bytes each, so the offset fits into 16 bits.
    layers.l4 = l4 as u16;
    layers.ip_proto = proto;
    let mut upper = 0;
    if has_upper && layers.depth >= Depth::L4 {
        upper = upper::transport(end.saturating_sub(l4), proto);
        if proto == upper::ICMPV6 {
            let found = upper::icmpv6(&data[..end], l4);
            upper = found.present;
            layers.nd_sll = found.sll;
            layers.nd_tll = found.tll;
        }
    }
    layers.present |= header::IPV6 | header::IP | upper;
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const ESP: u8 = 50;
const AUTHENTICATION: u8 = 51;
const NO_NEXT: u8 = 59;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;

/// Returns whether [`extensions`] handles this next-header number.
#[inline(always)]
fn is_walked(next: u8) -> bool {
    matches!(next, HOP_BY_HOP | ROUTING | FRAGMENT | ESP | AUTHENTICATION | NO_NEXT | DESTINATION | MOBILITY)
}

/// Result of the walk over extension headers.
struct Walked {
    /// Offset of the next header.
    l4: usize,
    /// Number of the next header.
    proto: u8,
    /// Whether an upper-layer header begins at `l4`.
    has_upper: bool,
    /// Extension headers, as bits of [`exthdr`].
    exthdr: u16,
    fragment: bool,
}

/// Walks the extension headers from `at` on. `next` is the number of the first one.
#[inline(never)]
fn extensions(data: &[u8], mut at: usize, mut next: u8) -> Walked {
    let mut order = Order::default();
    let mut has_upper = false;
    let mut is_fragment = false;
    for _ in 0..=EXTENSION_HEADERS_MAX {
        // The last iteration only checks whether an upper-layer header follows.
        match next {
            ESP | NO_NEXT => {
                order.note(next);
                break;
            }
            _ if !is_walked(next) => {
                has_upper = true;
                break;
            }
            _ if order.count == EXTENSION_HEADERS_MAX => break,
            _ => {}
        }
        let Some(extension) = chunk::<8>(data, at) else { break };
        let len = match next {
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(extension[1]) + 2) * 4,
            _ => (usize::from(extension[1]) + 1) * 8,
        };
        if data.len() - at < len {
            break;
        }
        order.note(next);
        let fragment = if next == FRAGMENT { u16::from_be_bytes([extension[2], extension[3]]) } else { 0 };
        next = extension[0];
        at += len;
        // The mask covers the offset (13 bits) and the more-fragments bit. If they are 0, the packet is an
        // "atomic fragment": it has a fragment header but is complete.
        is_fragment |= fragment & 0xfff9 != 0;
        if fragment & 0xfff8 != 0 {
            break;
        }
    }
    Walked { l4: at, proto: next, has_upper, exthdr: order.bits, fragment: is_fragment }
}

/// Extension headers seen, and whether they are in the order that RFC 8200, section 4.1, recommends.
#[derive(Default)]
struct Order {
    /// Headers seen, as bits of [`exthdr`].
    bits: u16,
    /// Number of extension headers seen so far.
    count: usize,
    /// Position reached in the recommended order.
    place: u8,
    destinations: u8,
    /// Bitmap of the headers seen so far, to detect repeated headers. Some headers have no bit in `bits`.
    seen: u8,
}

impl Order {
    fn note(&mut self, next: u8) {
        // Destination options have two positions: before the routing header and before the upper layer. RFC
        // 8200 does not list the mobility header, so that header is accepted anywhere.
        let (bit, place, seen) = match next {
            HOP_BY_HOP => (exthdr::HOP, 0, 1 << 0),
            DESTINATION if self.place < 1 => (exthdr::DEST, 1, 0),
            DESTINATION => (exthdr::DEST, 6, 0),
            ROUTING => (exthdr::ROUTER, 2, 1 << 1),
            FRAGMENT => (exthdr::FRAG, 3, 1 << 2),
            AUTHENTICATION => (exthdr::AUTH, 4, 1 << 3),
            ESP => (exthdr::ESP, 5, 1 << 4),
            MOBILITY => (0, self.place, 1 << 5),
            _ => (exthdr::NONEXT, self.place, 1 << 6),
        };
        let repeated = self.seen & seen != 0;
        // OpenFlow defines the hop-by-hop bit as "present as the first extension header".
        let late_hop = next == HOP_BY_HOP && self.count > 0;
        self.destinations += u8::from(next == DESTINATION);
        if !late_hop {
            self.bits |= bit;
        }
        if repeated || self.destinations > 2 {
            self.bits |= exthdr::UNREP;
        }
        if place < self.place || late_hop {
            self.bits |= exthdr::UNSEQ;
        }
        self.place = self.place.max(place);
        self.seen |= seen;
        self.count += 1;
    }
}
