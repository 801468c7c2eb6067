// SPDX-License-Identifier: Apache-2.0
//! TCP, UDP, SCTP, ICMP, and neighbour discovery in ICMPv6.

use super::walk::chunk;
use super::{Layers, header};

const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;

/// The upper layer at `l4` of an IPv4 packet that ends with `data`.
#[inline(always)]
pub(super) fn v4(data: &[u8], l4: usize, layers: &mut Layers) {
    match layers.ip_proto {
        1 if data.len() >= l4 + 4 => layers.present |= header::ICMPV4,
        _ => transport(data, l4, layers),
    }
}

/// The upper layer at `l4` of an IPv6 packet that ends with `data`.
#[inline(always)]
pub(super) fn v6(data: &[u8], l4: usize, layers: &mut Layers) {
    match layers.ip_proto {
        58 => {
            let (present, address) = icmpv6(data, l4);
            layers.present |= present;
            layers.nd_sll = if present & header::ND_SLL != 0 { address } else { 0 };
            layers.nd_tll = if present & header::ND_TLL != 0 { address } else { 0 };
        }
        _ => transport(data, l4, layers),
    }
}

#[inline(always)]
fn transport(data: &[u8], l4: usize, layers: &mut Layers) {
    let (len_min, bit) = match layers.ip_proto {
        6 => (20, header::TCP),
        17 => (8, header::UDP),
        132 => (12, header::SCTP),
        _ => return,
    };
    if data.len() >= l4 + len_min {
        layers.present |= bit;
    }
}

/// Which headers an ICMPv6 message holds, and where the link-layer address is that goes with it.
fn icmpv6(data: &[u8], l4: usize) -> (u32, u16) {
    let Some(&[kind, code, ..]) = chunk::<4>(data, l4) else { return (0, 0) };
    let (wanted, bit) = match kind {
        NEIGHBOUR_SOLICITATION => (1, header::ND_SLL),
        NEIGHBOUR_ADVERTISEMENT => (2, header::ND_TLL),
        _ => return (header::ICMPV6, 0),
    };
    if code != 0 || data.len() < l4 + 24 {
        return (header::ICMPV6, 0);
    }
    // An address so far behind that 16 bits do not tell its place is taken as absent.
    match link_layer_address(data, l4 + 24, wanted).map(u16::try_from) {
        Some(Ok(address)) => (header::ICMPV6 | header::ND | bit, address),
        _ => (header::ICMPV6 | header::ND, 0),
    }
}

/// Offset of the address in the first whole 8-byte option of type `wanted` from `at` on.
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
