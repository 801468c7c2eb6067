// SPDX-License-Identifier: Apache-2.0
//! The walk's result for the most common packets, without a walk: TCP or UDP in IPv4 without options or in
//! IPv6 without extension headers, in an Ethernet frame with at most one VLAN tag.
//!
//! All offsets are constants here, so one comparison of the length replaces the checks of the walk.

use super::walk::is_tpid;
use super::{Depth, Layers, header};

/// Offset of the EtherType without a VLAN tag.
const TYPE_AT: usize = 12;

/// Bytes of an Ethernet header without a tag.
const UNTAGGED: usize = 14;
/// Bytes of an Ethernet header with one tag.
const TAGGED: usize = 18;

/// Minimum length of the frames that are handled here. It suffices for one tag with IPv4 and TCP, and for one
/// tag with IPv6.
const FRAME_MIN: usize = TAGGED + 40;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Finds the headers of a common packet to depth [`Depth::L4`], as [`super::locate`] does. Returns false, and
/// leaves `layers` unchanged, for other packets.
///
/// Each value is written directly to its field: copying a value that was just written in parts stalls the
/// core (failed store forwarding).
#[must_use]
#[inline(always)]
pub fn locate_common(data: &[u8], layers: &mut Layers) -> bool {
    let Some(start) = data.first_chunk::<FRAME_MIN>() else { return false };
    let tpid = u16::from_be_bytes([start[TYPE_AT], start[TYPE_AT + 1]]);
    match tpid {
        0x0800 => ipv4::<UNTAGGED>(data.len(), start, layers),
        0x86dd => ipv6::<UNTAGGED>(data.len(), start, layers),
        _ if is_tpid(tpid) => tagged(data.len(), start, layers),
        _ => false,
    }
}

/// Handles a packet with a VLAN tag.
#[inline(never)]
fn tagged(len: usize, start: &[u8; FRAME_MIN], layers: &mut Layers) -> bool {
    let found = match u16::from_be_bytes([start[16], start[17]]) {
        0x0800 => ipv4::<TAGGED>(len, start, layers),
        0x86dd => ipv6::<TAGGED>(len, start, layers),
        _ => false,
    };
    if found {
        layers.present |= header::VLAN;
        layers.vlan_tci = u16::from_be_bytes([start[14], start[15]]);
    }
    found
}

/// Returns the minimum length of the upper-layer header, and its bit; the length is out of reach for
/// protocols that are not handled here.
#[inline(always)]
fn upper(ip_proto: u8) -> (u16, u32) {
    match ip_proto {
        UDP => (8, header::UDP),
        TCP => (20, header::TCP),
        _ => (u16::MAX, 0),
    }
}

/// Handles IPv4 at offset `L3` of a frame of `len` bytes.
#[inline(always)]
fn ipv4<const L3: usize>(len: usize, start: &[u8; FRAME_MIN], layers: &mut Layers) -> bool {
    let total_len = u16::from_be_bytes([start[L3 + 2], start[L3 + 3]]);
    let fragment = u16::from_be_bytes([start[L3 + 6], start[L3 + 7]]);
    let (upper_len, upper) = upper(start[L3 + 9]);
    let is_common = start[L3] == 0x45
        && fragment & 0x3fff == 0
        && total_len >= upper_len.saturating_add(20)
        && upper != 0;
    if is_common {
        *layers = Layers {
            present: header::IPV4 | header::IP | upper,
            l4_end: len.min(L3 + usize::from(total_len)) as u32,
            eth_type: 0x0800,
            l3: L3 as u16,
            l4: L3 as u16 + 20,
            ip_proto: start[L3 + 9],
            ip_tos: start[L3 + 1],
            depth: Depth::L4,
            type_at: L3 as u16 - 2,
            ..Layers::default()
        };
    }
    is_common
}

/// Handles IPv6 at offset `L3` of a frame of `len` bytes.
#[inline(always)]
fn ipv6<const L3: usize>(len: usize, start: &[u8; FRAME_MIN], layers: &mut Layers) -> bool {
    let payload_len = u16::from_be_bytes([start[L3 + 4], start[L3 + 5]]);
    let (upper_len, upper) = upper(start[L3 + 6]);
    let l4 = L3 + 40;
    let is_common =
        start[L3] >> 4 == 6 && payload_len >= upper_len && len >= l4 + usize::from(upper_len) && upper != 0;
    if is_common {
        *layers = Layers {
            present: header::IPV6 | header::IP | upper,
            l4_end: len.min(l4 + usize::from(payload_len)) as u32,
            eth_type: 0x86dd,
            l3: L3 as u16,
            l4: l4 as u16,
            ip_proto: start[L3 + 6],
            ip_tos: (start[L3] << 4) | (start[L3 + 1] >> 4),
            depth: Depth::L4,
            type_at: L3 as u16 - 2,
            ..Layers::default()
        };
    }
    is_common
}
