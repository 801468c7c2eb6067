// SPDX-License-Identifier: Apache-2.0
//! Outer headers of a super-frame in a tunnel.
//!
//! A walk from the start of the frame to the innermost IP header finds the fields to correct in each segment:
//! lengths, identifications and checksums of outer IP, UDP and GRE headers. The walk supports Ethernet with
//! VLAN tags, IP in IP, GRE (RFC 2784, 2890), VXLAN (RFC 7348) with its extension GPE, Geneve (RFC 8926), and
//! IP directly in UDP. A frame with another header after UDP or GRE is not segmented. After other layer 2
//! headers (MPLS, PBB, KeyFlow), the walk searches for the next IP header.

#[cfg(test)]
mod tests;

use crate::layers::header;
use crate::view::Field;
use crate::{Depth, checksum, ipv4, ipv6, locate, udp};

/// Maximum number of headers around the innermost packet.
const HEADERS_MAX: usize = 8;

const IP_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;

/// Flags in the first word of a GRE header: presence of checksum, key and sequence number, and bits that must
/// be 0.
const GRE_HAS_CHECKSUM: u16 = 0x8000;
const GRE_HAS_KEY: u16 = 0x2000;
const GRE_HAS_SEQUENCE: u16 = 0x1000;
const GRE_RESERVED: u16 = 0x4fff;
/// Offset of the checksum in a GRE header in bytes.
const GRE_CHECKSUM: usize = 4;

/// EtherType of a complete Ethernet frame in a tunnel.
const ETHERNET: u16 = 0x6558;
/// Flag of a VXLAN header that marks its network identifier as valid.
const VXLAN_VALID: u8 = 0x08;

/// A header to correct, at an offset in the frame.
#[derive(Clone, Copy, Debug, Default)]
enum Header {
    #[default]
    None,
    Ipv4(usize),
    Ipv6(usize),
    /// A UDP header, with the offset of the IP header before it.
    Udp(usize, usize),
    /// A GRE header with a checksum.
    Gre(usize),
}

/// Headers around the innermost packet, the outermost first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outer {
    headers: [Header; HEADERS_MAX],
    count: usize,
}

impl Outer {
    /// Returns the headers around the IP header at `inner` of a super-frame without padding, or `None` if one
    /// of them cannot be corrected.
    pub(super) fn find(frame: &[u8], inner: usize) -> Option<Self> {
        Walk { frame, inner }.ethernet(0, Self::default())
    }

    fn with(mut self, header: Header) -> Option<Self> {
        *self.headers.get_mut(self.count)? = header;
        self.count += 1;
        Some(self)
    }

    /// Corrects the outer headers of the segment `out`, whose innermost packet is complete. `count` segments
    /// were written before it.
    pub(super) fn finish(&self, out: &mut [u8], count: u16) {
        for header in self.headers[..self.count].iter().rev() {
            match *header {
                Header::None => {}
                Header::Ipv4(at) => finish_ipv4(&mut out[at..], count),
                Header::Ipv6(at) => {
                    let payload_len = out.len() - at - 40;
                    (payload_len as u16).store(&mut out[at + 4..]);
                }
                Header::Udp(at, ip) => finish_udp(out, at, ip),
                Header::Gre(at) => {
                    0u16.store(&mut out[at + GRE_CHECKSUM..]);
                    checksum::l4(0, &out[at..]).store(&mut out[at + GRE_CHECKSUM..]);
                }
            }
        }
    }
}

/// Writes length, identification and header checksum of an IPv4 packet that extends to the end of `packet`.
pub(super) fn finish_ipv4(packet: &mut [u8], count: u16) {
    let total_len = packet.len() as u16;
    if let Ok(mut ip) = ipv4::Packet::new_checked(packet) {
        ip.set_total_len(total_len);
        ip.set_id(ip.id().wrapping_add(count));
        ip.fill_checksum();
    }
}

/// Completes an outer UDP header. A checksum of 0, which means that there is none, is unchanged. Any other
/// checksum is recomputed.
fn finish_udp(out: &mut [u8], at: usize, ip: usize) {
    let len = out.len() - at;
    (len as u16).store(&mut out[at + super::UDP_LENGTH..]);
    let field: u16 = Field::load(&out[at + super::UDP_CHECKSUM..]);
    if field == 0 {
        return;
    }
    let addresses = if out[ip] >> 4 == 4 { ip + 12..ip + 20 } else { ip + 8..ip + 40 };
    let upper = checksum::add(u16::from(udp::PROTO), checksum::length(len as u32));
    let pseudo = checksum::add(checksum::sum(&out[addresses]), upper);
    0u16.store(&mut out[at + super::UDP_CHECKSUM..]);
    checksum::udp(pseudo, &out[at..]).store(&mut out[at + super::UDP_CHECKSUM..]);
}

/// An IP header whose length extends to the end of the frame.
struct Ip {
    is_v4: bool,
    proto: u8,
    l4: usize,
}

struct Walk<'a> {
    frame: &'a [u8],
    /// Offset of the innermost IP header.
    inner: usize,
}

impl Walk<'_> {
    /// Walks from the Ethernet header at `at`. `outer` holds the headers found before it.
    fn ethernet(&self, at: usize, outer: Outer) -> Option<Outer> {
        let layers = locate(self.frame.get(at..)?, Depth::L3);
        let l3 = at + usize::from(layers.l3);
        if layers.present & header::IP != 0 { self.ip(l3, outer) } else { self.search(l3, outer) }
    }

    /// Searches for the next IP header from `at` on, and walks from there. All headers are assumed to have
    /// even lengths. An IPv4 header must also have a valid checksum.
    fn search(&self, at: usize, outer: Outer) -> Option<Outer> {
        let is_ip = |at: &usize| {
            self.ip_at(*at).is_some_and(|ip| !ip.is_v4 || checksum::sum(&self.frame[*at..ip.l4]) == 0xffff)
        };
        self.ip((at..self.inner).step_by(2).find(is_ip).unwrap_or(self.inner), outer)
    }

    fn ip(&self, at: usize, outer: Outer) -> Option<Outer> {
        if at >= self.inner {
            return (at == self.inner).then_some(outer);
        }
        let ip = self.ip_at(at)?;
        let outer = outer.with(if ip.is_v4 { Header::Ipv4(at) } else { Header::Ipv6(at) })?;
        match ip.proto {
            IP_IN_IP | IPV6_IN_IP => self.ip(ip.l4, outer),
            GRE => self.gre(ip.l4, outer),
            udp::PROTO => self.udp(ip.l4, at, outer),
            _ => None,
        }
    }

    /// Returns the IP header at `at`. Returns `None` for an incomplete header, a length that does not extend
    /// to the end of the frame, a fragment, or extension headers other than options.
    fn ip_at(&self, at: usize) -> Option<Ip> {
        let bytes = self.frame.get(at..)?;
        if let Ok(ip) = ipv4::Packet::new_checked(bytes) {
            let whole = usize::from(ip.total_len()) == bytes.len() && !ip.is_fragment();
            return whole.then(|| Ip { is_v4: true, proto: ip.proto(), l4: at + ip.header_len() });
        }
        let ip = ipv6::Packet::new_checked(bytes).ok()?;
        if usize::from(ip.payload_len()) + 40 != bytes.len() {
            return None;
        }
        let (mut proto, mut l4) = (ip.next_header(), at + 40);
        while matches!(proto, ipv6::HOP_BY_HOP | ipv6::DESTINATION) {
            let option = self.frame.get(l4..l4 + 8)?;
            proto = option[0];
            l4 += (usize::from(option[1]) + 1) * 8;
        }
        Some(Ip { is_v4: false, proto, l4 })
    }

    fn gre(&self, at: usize, outer: Outer) -> Option<Outer> {
        let head = self.frame.get(at..at + 4)?;
        let (flags, kind): (u16, u16) = (Field::load(head), Field::load(&head[2..]));
        // Each segment would need its own sequence number, but later packets already use the following
        // numbers.
        if flags & (GRE_RESERVED | GRE_HAS_SEQUENCE) != 0 {
            return None;
        }
        let has_checksum = flags & GRE_HAS_CHECKSUM != 0;
        let options = usize::from(has_checksum) + usize::from(flags & GRE_HAS_KEY != 0);
        let outer = if has_checksum { outer.with(Header::Gre(at))? } else { outer };
        self.typed(kind, at + 4 + 4 * options, outer)
    }

    /// Continues the walk at a tunnel payload with this EtherType.
    fn typed(&self, kind: u16, at: usize, outer: Outer) -> Option<Outer> {
        match kind {
            ETHERNET => self.ethernet(at, outer),
            0x0800 | 0x86dd => self.ip(at, outer),
            0x8847 | 0x8848 => self.search(at, outer),
            _ => None,
        }
    }

    /// Continues the walk in a UDP payload. UDP ports do not identify the kind of tunnel, because they can be
    /// configured. The payload is taken for a tunnel header if the walk from there reaches the innermost
    /// packet.
    fn udp(&self, at: usize, ip: usize, outer: Outer) -> Option<Outer> {
        let head = self.frame.get(at..at + 16)?;
        let len: u16 = Field::load(&head[super::UDP_LENGTH..]);
        if usize::from(len) != self.frame.len() - at {
            return None;
        }
        let outer = outer.with(Header::Udp(at, ip))?;
        let tunnel = at + 8;
        let vxlan = || {
            let valid = head[8] & VXLAN_VALID != 0;
            let extended = || self.ip(tunnel + 8, outer);
            if valid { self.ethernet(tunnel + 8, outer).or_else(extended) } else { None }
        };
        let geneve = || {
            let options = usize::from(head[8] & 0x3f) * 4;
            let is_first_version = head[8] >> 6 == 0;
            if is_first_version {
                self.typed(Field::load(&head[10..]), tunnel + 8 + options, outer)
            } else {
                None
            }
        };
        vxlan().or_else(geneve).or_else(|| self.ip(tunnel, outer))
    }
}
