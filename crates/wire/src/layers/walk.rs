// SPDX-License-Identifier: Apache-2.0
//! The walk over the headers of a frame. This file parses Ethernet and VLAN tags; `ip` and `upper` parse the
//! headers that follow.
//!
//! Code that runs for every packet is inlined and writes each value directly to its field, because copying a
//! value that was just written in parts stalls the core (failed store forwarding). Rare cases are separate
//! functions that return values.

use super::{Depth, ETH_TYPE_LLC, Layers, header, ip};

/// Maximum number of VLAN tags that are skipped. If a frame has more tags, the rest of it is not examined.
const VLAN_TAGS_MAX: usize = 8;
/// Lowest value of the type field that is an EtherType; smaller values are 802.3 lengths.
const ETH_TYPE_MIN: u16 = 0x0600;

/// Returns the `N` bytes at `at`, or `None` if they are not completely within `data`.
#[inline(always)]
pub(super) fn chunk<const N: usize>(data: &[u8], at: usize) -> Option<&[u8; N]> {
    data.get(at..)?.first_chunk()
}

/// Finds the headers of the Ethernet frame `data` to depth `depth`. A frame under 14 bytes has no headers.
#[must_use]
pub fn locate(data: &[u8], depth: Depth) -> Layers {
    let mut layers = Layers::default();
    deepen(data, depth, &mut layers);
    layers
}

/// Extends the result of an earlier walk to `depth`.
#[inline]
pub fn deepen(data: &[u8], depth: Depth, layers: &mut Layers) {
    let from = layers.depth;
    if depth <= from {
        return;
    }
    if from == Depth::L3 {
        // Parsing the upper layers needs values from the walk over IP that `Layers` does not store, so the
        // whole frame is parsed again.
        *layers = Layers::default();
    }
    layers.depth = depth;
    // If `type_at` is 0, the frame has no complete Ethernet header.
    if if from == Depth::L2 { layers.type_at == 0 } else { !link(data, layers) } {
        return;
    }
    if depth >= Depth::L3 {
        network(data, usize::from(layers.l3), layers);
    }
}

/// Parses Ethernet and VLAN tags. Returns false if there is no complete Ethernet header.
#[inline(always)]
fn link(data: &[u8], layers: &mut Layers) -> bool {
    let Some(ethernet) = chunk::<14>(data, 0) else { return false };
    let mut eth_type = u16::from_be_bytes([ethernet[12], ethernet[13]]);
    let mut type_at = 12;
    if is_tpid(eth_type) {
        let tags = skip_tags(data, eth_type);
        (eth_type, type_at) = (tags.eth_type, tags.type_at);
        if type_at > 12 {
            layers.present |= header::VLAN;
            layers.vlan_tci = tags.outer_tci;
        }
    }
    if eth_type < ETH_TYPE_MIN {
        (eth_type, type_at) = logical_link(data, type_at);
    }
    layers.eth_type = eth_type;
    layers.type_at = type_at as u16;
    layers.l3 = (type_at + 2) as u16;
    true
}

/// Result of skipping VLAN tags.
struct Tags {
    /// EtherType after the last complete tag, and the offset of this EtherType (12 without a tag).
    eth_type: u16,
    type_at: usize,
    outer_tci: u16,
}

/// Skips the VLAN tags of a frame whose first type field is the tag protocol identifier `tpid`.
#[inline(never)]
fn skip_tags(data: &[u8], tpid: u16) -> Tags {
    let mut tags = Tags { eth_type: tpid, type_at: 12, outer_tci: 0 };
    for _ in 0..VLAN_TAGS_MAX {
        let Some(tag) = chunk::<4>(data, tags.type_at + 2) else { break };
        if tags.type_at == 12 {
            tags.outer_tci = u16::from_be_bytes([tag[0], tag[1]]);
        }
        tags.eth_type = u16::from_be_bytes([tag[2], tag[3]]);
        tags.type_at += 4;
        if !is_tpid(tags.eth_type) {
            break;
        }
    }
    tags
}

/// Returns the EtherType of a frame with an 802.3 length at `length_at`, and the offset of the EtherType. The
/// EtherType follows LLC and SNAP, if present.
#[inline(never)]
fn logical_link(data: &[u8], length_at: usize) -> (u16, usize) {
    match chunk::<8>(data, length_at + 2) {
        Some(&[0xaa, 0xaa, 0x03, 0, 0, 0, high, low]) if high >= (ETH_TYPE_MIN >> 8) as u8 => {
            (u16::from_be_bytes([high, low]), length_at + 8)
        }
        _ => (ETH_TYPE_LLC, length_at),
    }
}

/// Returns whether `eth_type` is a tag protocol identifier that is skipped: C-tag, S-tag, or the older Q-in-Q
/// tag.
#[inline(always)]
pub(super) fn is_tpid(eth_type: u16) -> bool {
    matches!(eth_type, 0x8100 | 0x88a8 | 0x9100)
}

/// Parses the header after the EtherType.
#[inline(always)]
fn network(data: &[u8], l3: usize, layers: &mut Layers) {
    match layers.eth_type {
        0x0800 => ip::v4(data, l3, layers),
        0x86dd => ip::v6(data, l3, layers),
        eth_type => layers.present |= other(data, l3, eth_type),
    }
}

/// Returns the bit in [`header`] of the ARP, MPLS or PBB header at `l3`, or 0 if there is none.
#[inline(never)]
fn other(data: &[u8], l3: usize, eth_type: u16) -> u32 {
    match eth_type {
        // ARP with hardware type 1 (Ethernet), protocol 0x0800 (IPv4), and address lengths 6 and 4.
        0x0806 if chunk::<28>(data, l3).is_some_and(|arp| arp[..6] == [0, 1, 8, 0, 6, 4]) => header::ARP,
        0x8847 | 0x8848 if chunk::<4>(data, l3).is_some() => header::MPLS,
        0x88e7 if chunk::<4>(data, l3).is_some() => header::PBB,
        _ => 0,
    }
}
