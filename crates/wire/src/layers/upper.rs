// SPDX-License-Identifier: Apache-2.0
//! Detection of TCP, UDP, SCTP and ICMP, and of neighbour discovery in ICMPv6.

use super::header;
use super::walk::chunk;

const ICMPV4: u8 = 1;
/// Next-header number of ICMPv6.
pub(super) const ICMPV6: u8 = 58;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// Returns the bit of the upper-layer header at the start of an IPv4 payload of `len` bytes.
#[inline(always)]
pub(super) fn v4(len: usize, proto: u8) -> u32 {
    match proto {
        ICMPV4 if len >= 4 => header::ICMPV4,
        _ => transport(len, proto),
    }
}

/// Returns the bit of the transport header at the start of a payload of `len` bytes.
#[inline(always)]
pub(super) fn transport(len: usize, proto: u8) -> u32 {
    let (len_min, bit) = match proto {
        6 => (20, header::TCP),
        17 => (8, header::UDP),
        132 => (12, header::SCTP),
        _ => return 0,
    };
    if len >= len_min { bit } else { 0 }
}

/// Result of parsing an ICMPv6 message.
#[derive(Default)]
pub(super) struct Icmpv6 {
    pub present: u32,
    /// Offsets of the link-layer addresses. Each is valid only if its bit is set in `present`.
    pub sll: u16,
    pub tll: u16,
}

/// Parses the ICMPv6 message that begins at `l4` and extends to the end of `data`.
#[inline(never)]
pub(super) fn icmpv6(data: &[u8], l4: usize) -> Icmpv6 {
    let Some(&[kind, code, ..]) = chunk::<4>(data, l4) else { return Icmpv6::default() };
    let mut found = Icmpv6 { present: header::ICMPV6, ..Icmpv6::default() };
    let (wanted, bit, place) = match kind {
        NEIGHBOUR_SOLICITATION => (1, header::ND_SLL, &mut found.sll),
        NEIGHBOUR_ADVERTISEMENT => (2, header::ND_TLL, &mut found.tll),
        _ => return found,
    };
    if code != 0 || data.len() < l4 + 24 {
        return found;
    }
    found.present |= header::ND;
    // An address whose offset exceeds 16 bits is treated as absent.
    if let Some(Ok(address)) = link_layer_address(data, l4 + 24, wanted).map(u16::try_from) {
        found.present |= bit;
        *place = address;
    }
    found
}

/// Returns the offset of the address in the first complete 8-byte option of type `wanted`, searching from
/// `at`.
fn link_layer_address(data: &[u8], mut at: usize, wanted: u8) -> Option<usize> {
    loop {
        let &[kind, units] = chunk::<2>(data, at)?;
        let len = usize::from(units) * 8;
        if len == 0 || data.len() - at < len {
            return None;
        }
        if kind == wanted && len == 8 {
            return Some(at + 2);
        }
        at += len;
    }
}
